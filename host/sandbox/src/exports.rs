//! What the host calls in a strategy's program.

use std::sync::Arc;

use domain::fault::FaultKind;
use domain::market::Window;
use domain::{Instrument, OrderEvent};
use wasmtime::{AsContextMut, Error, Instance, Result, Store, TypedFunc, WasmParams, WasmResults};

use crate::abi::{self, Guest, Lift, Lower, WindowArguments};
use crate::state::State;

/// The interface that every strategy exports.
pub(crate) const GUEST: &str = "kumiki:strategy/guest@1.0.0";
/// `window.resume`: no payload.
const RESUME: u32 = 0;

/// The functions of one running program.
pub(crate) struct Exports {
    guest: Arc<Guest>,
    init: TypedFunc<(u32, u32, u32, u32), u32>,
    /// Lets the strategy free what `init` answered.
    after_init: Option<TypedFunc<u32, ()>>,
    pub(crate) start: TypedFunc<u64, ()>,
    advance: TypedFunc<WindowArguments, u32>,
    on_order_events: TypedFunc<(u32, u32), ()>,
    pub(crate) stop: TypedFunc<u64, ()>,
}

impl Exports {
    /// Finds them, and lets the program set itself up. The contract was checked before, so an error
    /// means that the program does not follow the naming of wit-component.
    pub(crate) fn find(store: &mut Store<State>, instance: Instance) -> Result<Self> {
        let guest = guest(store, instance)?;
        let after_init = format!("cabi_post_{GUEST}#init");
        Ok(Self {
            guest,
            init: function(store, instance, GUEST, "init")?,
            after_init: instance.get_typed_func(&mut *store, &after_init).ok(),
            start: function(store, instance, GUEST, "start")?,
            advance: function(store, instance, GUEST, "advance")?,
            on_order_events: function(store, instance, GUEST, "on-order-events")?,
            stop: function(store, instance, GUEST, "stop")?,
        })
    }

    /// `init`; the message when the strategy refuses.
    pub(crate) fn init(
        &self,
        store: &mut Store<State>,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<Option<String>> {
        let config = self.guest.copy_in(&mut store.as_context_mut(), 1, config_json.as_bytes())?;
        let list = abi::instruments(Lower::new(store, &self.guest), instruments)?;
        let config_bytes = u32::try_from(config_json.len())?;
        let count = u32::try_from(instruments.len())?;
        let pointer = self.init.call(&mut *store, (config, config_bytes, list, count))?;
        let (memory, state) = self.guest.memory.data_and_store_mut(&mut *store);
        let mut lift = Lift::new(memory, state.limits.result_bytes, state.bytes_left);
        let refusal: Result<_, FaultKind> = abi::refusal(&mut lift, &state.limits, pointer);
        let refusal = refusal.or_else(|kind| state.breach(kind))?;
        if let Some(after_init) = &self.after_init {
            store.data_mut().may_leave = false;
            after_init.call(&mut *store, pointer)?;
            store.data_mut().may_leave = true;
        }
        Ok(refusal)
    }

    /// `advance`
    #[inline]
    pub(crate) fn advance(
        &self,
        store: &mut Store<State>,
        window: Window<'_>,
        limit: u32,
    ) -> Result<u32> {
        let arguments = match window {
            Window::Resume => (RESUME, 0, 0, 0, 0, 0, 0, 0, 0, limit),
            Window::OneTrade(trade) => abi::one_trade(&trade, limit),
            Window::OneBar(bar) => abi::one_bar(&bar, limit),
            Window::Trades(columns) => {
                abi::columns(&mut store.as_context_mut(), &self.guest, columns, limit)?
            }
            Window::Bars(bars) => abi::bars(&mut store.as_context_mut(), &self.guest, bars, limit)?,
        };
        self.advance.call(store, arguments)
    }

    /// `on-order-events`
    pub(crate) fn on_order_events(
        &self,
        store: &mut Store<State>,
        events: &[OrderEvent],
    ) -> Result<()> {
        let pointer = abi::order_events(Lower::new(store, &self.guest), events)?;
        let count = u32::try_from(events.len())?;
        self.on_order_events.call(store, (pointer, count))
    }
}

/// The memory and allocator of a program, after it has set itself up.
pub(crate) fn guest(store: &mut Store<State>, instance: Instance) -> Result<Arc<Guest>> {
    let memory = instance
        .get_memory(&mut *store, "memory")
        .ok_or_else(|| Error::msg("the program does not export its `memory`"))?;
    let realloc = instance.get_typed_func(&mut *store, "cabi_realloc")?;
    let guest = Arc::new(Guest { memory, realloc });
    store.data_mut().guest = Some(Arc::clone(&guest));
    if let Ok(set_up) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        set_up.call(&mut *store, ())?;
    }
    Ok(guest)
}

/// A function of an exported interface.
pub(crate) fn function<P: WasmParams, R: WasmResults>(
    store: &mut Store<State>,
    instance: Instance,
    interface: &str,
    name: &str,
) -> Result<TypedFunc<P, R>> {
    instance.get_typed_func(store, &format!("{interface}#{name}"))
}

#[cfg(test)]
mod tests {
    use domain::{Quantity, TickTable};
    use wasmtime::{Engine, Linker, Module};

    use super::*;
    use crate::config::Limits;
    use crate::imports;

    /// A program with the right exports, and the given bodies of its allocator and its `start`.
    fn program(allocate: &str, start: &str, more: &str) -> Result<(Store<State>, Exports)> {
        let text = format!(
            r#"(module
            (import "kumiki:strategy/log@1.0.0" "write" (func $log (param i32 i64 i32 i32)))
            (import "kumiki:strategy/actions@1.0.0" "act" (func $act (param i32 i32)))
            (import "kumiki:strategy/portfolio@1.0.0" "get-account" (func $account (param i32)))
            (import "kumiki:strategy/portfolio@1.0.0" "working-orders" (func $orders (param i32)))
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {allocate})
            (func (export "{GUEST}#init") (param i32 i32 i32 i32) (result i32) i32.const 64)
            (func (export "{GUEST}#start") (param i64) {start})
            (func (export "{GUEST}#advance") (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32)
                (result i32) i32.const 1)
            (func (export "{GUEST}#on-order-events") (param i32 i32))
            (func (export "{GUEST}#stop") (param i64))
            {more})"#
        );
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker)?;
        let mut store = Store::new(&engine, State::new(Limits::default()));
        let instance =
            linker.instantiate(&mut store, &Module::new(&engine, wat::parse_str(text)?)?)?;
        let exports = Exports::find(&mut store, instance)?;
        Ok((store, exports))
    }

    fn instruments() -> Vec<Instrument> {
        vec![Instrument {
            id: "7203.TSE".parse().unwrap(),
            lot: Quantity::new(100),
            ticks: TickTable::Normal,
        }]
    }

    /// What a call of `start` ends with.
    fn started(start: &str) -> String {
        let (mut store, exports) = program("i32.const 1024", start, "").unwrap();
        let error = exports.start.call(&mut store, 1).unwrap_err();
        match store.data_mut().breach.take() {
            Some(kind) => kind.to_string(),
            None => format!("{error:#}"),
        }
    }

    /// What a call of `init` ends with.
    fn made(allocate: &str) -> String {
        let (mut store, exports) = program(allocate, "", "").unwrap();
        let error = exports.init(&mut store, "{}", &instruments()).unwrap_err();
        store.data_mut().breach.take().map_or(format!("{error:#}"), |kind| kind.to_string())
    }

    #[test]
    fn a_program_that_behaves_is_driven() {
        let (mut store, exports) = program("i32.const 1024", "", "").unwrap();
        assert_eq!(exports.init(&mut store, "{}", &instruments()).unwrap(), None);
        exports.start.call(&mut store, 1).unwrap();
        assert_eq!(exports.advance(&mut store, Window::Resume, 5).unwrap(), 1);
    }

    #[test]
    fn an_allocator_is_not_trusted() {
        let words = made("i32.const 65535");
        assert!(
            words.contains("was asked for 2 bytes at a multiple of 1 and gave 65535"),
            "{words}"
        );
        let words = made("i32.const 1025");
        assert!(words.contains("at a multiple of 8 and gave 1025"), "{words}");
        let words = made("(call $account (i32.const 0)) i32.const 1024");
        assert!(words.contains("it called the host from inside its allocator"), "{words}");
    }

    #[test]
    fn places_that_a_program_names_are_not_trusted() {
        let words = started("(call $act (i32.const 65528) (i32.const 1))");
        assert!(words.contains("104 bytes at 65528 are outside its memory"), "{words}");
        let words = started("(call $act (i32.const 4) (i32.const 1))");
        assert!(words.contains("the place 4 is not a multiple of 8"), "{words}");
        let words = started("(call $log (i32.const 9) (i64.const 0) (i32.const 0) (i32.const 0))");
        assert!(words.contains("9 is no log level"), "{words}");
        let log = "(call $log (i32.const 1) (i64.const 0) (i32.const -1) (i32.const 2))";
        assert!(started(log).contains("2 bytes at 4294967295 are outside its memory"));
        let words = started("(call $account (i32.const 65512))");
        assert!(words.contains("it wants an answer at 65512, where it cannot be"), "{words}");
        let words = started("(call $orders (i32.const 2))");
        assert!(words.contains("it wants an answer at 2, where it cannot be"), "{words}");
    }

    #[test]
    fn nothing_is_asked_while_a_program_is_made() {
        let more = "(func $early (call $account (i32.const 0))) (start $early)";
        let error = program("i32.const 1024", "", more).map(drop).unwrap_err();
        assert!(format!("{error:#}").contains("it called the host while it was made"), "{error:#}");
    }
}
