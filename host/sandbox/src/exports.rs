//! The direct path of strategies: what the host calls in a strategy's program.

use std::sync::Arc;

use domain::fault::FaultKind;
use domain::market::Window;
use domain::{AccountEvent, Instrument, OrderEvent};
use wasmtime::{
    AsContextMut, Error, Func, Instance, Memory, Result, Store, TypedFunc, WasmParams, WasmResults,
};

use crate::abi::{self, Lift, Lower, WindowArguments};
use crate::calls::StrategyCalls;
use crate::proof::Plan;
use crate::state::{Guest, State};

/// `window.resume`: no payload.
const RESUME: u32 = 0;

/// The functions of one running program.
pub(crate) struct Exports {
    guest: Arc<Guest>,
    init: Lifted<(u32, u32, u32, u32), u32>,
    start: Lifted<u64, ()>,
    advance: Lifted<WindowArguments, u32>,
    on_order_events: Lifted<(u32, u32), ()>,
    on_account_events: Lifted<(u32, u32), ()>,
    stop: Lifted<u64, ()>,
}

impl Exports {
    /// Finds them, and lets the program set itself up. They are there: the plan is proven.
    pub(crate) fn find(store: &mut Store<State>, instance: Instance, plan: &Plan) -> Result<Self> {
        Ok(Self {
            guest: guest(store, instance, plan)?,
            init: Lifted::find(store, instance, plan, "init")?,
            start: Lifted::find(store, instance, plan, "start")?,
            advance: Lifted::find(store, instance, plan, "advance")?,
            on_order_events: Lifted::find(store, instance, plan, "on-order-events")?,
            on_account_events: Lifted::find(store, instance, plan, "on-account-events")?,
            stop: Lifted::find(store, instance, plan, "stop")?,
        })
    }

    /// `advance` and `on-order-events`, where nothing is to be called after them.
    pub(crate) fn plain(&self) -> Option<[Func; 2]> {
        Some([self.advance.plain()?, self.on_order_events.plain()?])
    }

    /// The program's memory and its allocator.
    pub(crate) fn memory(&self) -> (Memory, Func) {
        (self.guest.memory, *self.guest.realloc.func())
    }
}

impl StrategyCalls for Exports {
    fn init(
        &self,
        store: &mut Store<State>,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<Option<String>> {
        let config = self.guest.copy_in(&mut store.as_context_mut(), 1, config_json.as_bytes())?;
        let list = abi::instruments(Lower::new(store, &self.guest), instruments)?;
        let config_bytes = u32::try_from(config_json.len())?;
        let count = u32::try_from(instruments.len())?;
        let pointer = self.init.call(store, (config, config_bytes, list, count))?;
        let (memory, state) = self.guest.memory.data_and_store_mut(&mut *store);
        let mut lift = Lift::new(memory, state.limits.result_bytes, state.bytes_left);
        let refusal: Result<_, FaultKind> = abi::refusal(&mut lift, &state.limits, pointer);
        let refusal = refusal.or_else(|kind| state.breach(kind))?;
        self.init.finish(store, pointer)?;
        Ok(refusal)
    }

    fn start(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        self.start.call(store, now)?;
        self.start.finish(store, ())
    }

    #[inline]
    fn advance(&self, store: &mut Store<State>, window: Window<'_>, limit: u32) -> Result<u32> {
        let arguments = match window {
            Window::Resume => (RESUME, 0, 0, 0, 0, 0, 0, 0, 0, limit),
            Window::OneTrade(trade) => abi::one_trade(&trade, limit),
            Window::OneBar(bar) => abi::one_bar(&bar, limit),
            Window::Trades(columns) => {
                abi::columns(&mut store.as_context_mut(), &self.guest, columns, limit)?
            }
            Window::Bars(bars) => abi::bars(&mut store.as_context_mut(), &self.guest, bars, limit)?,
        };
        let reached = self.advance.call(store, arguments)?;
        self.advance.finish(store, reached)?;
        Ok(reached)
    }

    fn on_order_events(&self, store: &mut Store<State>, events: &[OrderEvent]) -> Result<()> {
        let pointer = abi::order_events(Lower::new(store, &self.guest), events)?;
        let count = u32::try_from(events.len())?;
        self.on_order_events.call(store, (pointer, count))?;
        self.on_order_events.finish(store, ())
    }

    fn on_account_events(&self, store: &mut Store<State>, events: &[AccountEvent]) -> Result<()> {
        let pointer = abi::account_events(Lower::new(store, &self.guest), events)?;
        let count = u32::try_from(events.len())?;
        self.on_account_events.call(store, (pointer, count))?;
        self.on_account_events.finish(store, ())
    }

    fn stop(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        self.stop.call(store, now)?;
        self.stop.finish(store, ())
    }
}

/// The memory and allocator of a program, after it has set itself up.
pub(crate) fn guest(
    store: &mut Store<State>,
    instance: Instance,
    plan: &Plan,
) -> Result<Arc<Guest>> {
    let memory = instance
        .get_memory(&mut *store, &plan.memory)
        .ok_or_else(|| Error::msg("the program does not export its memory"))?;
    let realloc = instance.get_typed_func(&mut *store, &plan.realloc)?;
    let guest = Arc::new(Guest { memory, realloc });
    store.data_mut().guest = Some(Arc::clone(&guest));
    for set_up in &plan.set_up {
        instance.get_typed_func::<(), ()>(&mut *store, set_up)?.call(&mut *store, ())?;
    }
    Ok(guest)
}

/// A function of the contract, and what is called once its answer has been read.
pub(crate) struct Lifted<P, R> {
    function: TypedFunc<P, R>,
    post_return: Option<TypedFunc<R, ()>>,
}

impl<P: WasmParams, R: WasmResults + WasmParams> Lifted<P, R> {
    pub(crate) fn find(
        store: &mut Store<State>,
        instance: Instance,
        plan: &Plan,
        name: &str,
    ) -> Result<Self> {
        let found = plan
            .functions
            .get(name)
            .ok_or_else(|| Error::msg(format!("`{name}` of the contract is not exported")))?;
        let function = instance.get_typed_func(&mut *store, &found.export)?;
        let post_return = match &found.post_return {
            Some(export) => Some(instance.get_typed_func(&mut *store, export)?),
            None => None,
        };
        Ok(Self { function, post_return })
    }

    /// The function, where nothing is to be called after it.
    fn plain(&self) -> Option<Func> {
        self.post_return.is_none().then(|| *self.function.func())
    }

    #[inline]
    pub(crate) fn call(&self, store: &mut Store<State>, arguments: P) -> Result<R> {
        self.function.call(store, arguments)
    }

    /// Lets the program free an answer that was read. It may not call the host meanwhile.
    #[inline]
    pub(crate) fn finish(&self, store: &mut Store<State>, answer: R) -> Result<()> {
        let Some(post_return) = &self.post_return else { return Ok(()) };
        store.data_mut().may_leave = false;
        post_return.call(&mut *store, answer)?;
        store.data_mut().may_leave = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::{Quantity, TickTable};
    use wasmtime::{Engine, Linker, Module};

    use super::*;
    use crate::config::Limits;
    use crate::imports;
    use crate::proof::{HostImport, LiftedFunction};

    const GUEST: &str = crate::contract::STRATEGY.guest_name;

    /// The plan for the programs of these tests.
    fn plan() -> Plan {
        let import = |interface: &str, function: &str| HostImport {
            module: format!("kumiki:strategy/{interface}@1.0.0"),
            name: function.to_owned(),
            interface: interface.to_owned(),
            function: function.to_owned(),
        };
        let function = |name: &str| {
            let export = format!("{GUEST}#{name}");
            (name.to_owned(), LiftedFunction { export, post_return: None })
        };
        Plan {
            program: 0..0,
            imports: vec![
                import("log", "write"),
                import("actions", "act"),
                import("portfolio", "get-account"),
                import("portfolio", "working-orders"),
            ],
            memory: "memory".to_owned(),
            realloc: "cabi_realloc".to_owned(),
            set_up: Vec::new(),
            instances: 1,
            functions: ["init", "start", "advance", "on-order-events", "on-account-events", "stop"]
                .map(function)
                .into(),
        }
    }

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
            (func (export "{GUEST}#on-account-events") (param i32 i32))
            (func (export "{GUEST}#stop") (param i64))
            {more})"#
        );
        let engine = Engine::default();
        let plan = plan();
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker, &plan.imports)?;
        let mut store = Store::new(&engine, State::new(Limits::default()));
        let instance =
            linker.instantiate(&mut store, &Module::new(&engine, wat::parse_str(text)?)?)?;
        let exports = Exports::find(&mut store, instance, &plan)?;
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
        let error = exports.start(&mut store, 1).unwrap_err();
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
        exports.start(&mut store, 1).unwrap();
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
        assert!(words.contains("it wants an answer at 65512, which is outside"), "{words}");
        let words = started("(call $orders (i32.const 2))");
        assert!(words.contains("it wants an answer at 2, which is outside"), "{words}");
    }

    #[test]
    fn nothing_is_asked_while_a_program_is_made() {
        let more = "(func $early (call $account (i32.const 0))) (start $early)";
        let error = program("i32.const 1024", "", more).map(drop).unwrap_err();
        assert!(format!("{error:#}").contains("it called the host while it was made"), "{error:#}");
    }
}
