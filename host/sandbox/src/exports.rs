//! What the host calls in a strategy's program.

use domain::Instrument;
use domain::strategy::{FaultKind, Window};
use wasmtime::{AsContextMut, Error, Instance, Result, Store, TypedFunc, WasmParams, WasmResults};

use crate::abi::{self, Guest, Lift, Lower, WindowArguments};
use crate::state::State;

const GUEST: &str = "kumiki:strategy/guest@1.0.0";
/// `window.resume`: no payload.
const RESUME: u32 = 0;

/// The functions of one running program.
pub(crate) struct Exports {
    pub(crate) guest: Guest,
    init: TypedFunc<(u32, u32, u32, u32), u32>,
    /// Lets the strategy free what `init` answered.
    after_init: Option<TypedFunc<u32, ()>>,
    pub(crate) start: TypedFunc<u64, ()>,
    advance: TypedFunc<WindowArguments, u32>,
    pub(crate) on_order_events: TypedFunc<(u32, u32), ()>,
    pub(crate) stop: TypedFunc<u64, ()>,
}

impl Exports {
    /// Finds them, and lets the program set itself up. The contract was checked before, so an error
    /// means that the program does not follow the naming of wit-component.
    pub(crate) fn find(store: &mut Store<State>, instance: Instance) -> Result<Self> {
        let memory = instance
            .get_memory(&mut *store, "memory")
            .ok_or_else(|| Error::msg("the program does not export its `memory`"))?;
        let realloc = instance.get_typed_func(&mut *store, "cabi_realloc")?;
        let guest = Guest { memory, realloc };
        store.data_mut().guest = Some(guest.clone());
        if let Ok(set_up) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
            set_up.call(&mut *store, ())?;
        }
        let after_init = format!("cabi_post_{GUEST}#init");
        Ok(Self {
            guest,
            init: function(store, instance, "init")?,
            after_init: instance.get_typed_func(&mut *store, &after_init).ok(),
            start: function(store, instance, "start")?,
            advance: function(store, instance, "advance")?,
            on_order_events: function(store, instance, "on-order-events")?,
            stop: function(store, instance, "stop")?,
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
        let place = self.init.call(&mut *store, (config, config_bytes, list, count))?;
        let (memory, state) = self.guest.memory.data_and_store_mut(&mut *store);
        let mut lift = Lift::new(memory, state.limits.result_bytes, state.bytes_left);
        let refusal: Result<_, FaultKind> = abi::refusal(&mut lift, place);
        let refusal = refusal.or_else(|kind| state.breach(kind))?;
        if let Some(after_init) = &self.after_init {
            store.data_mut().may_leave = false;
            after_init.call(&mut *store, place)?;
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
}

fn function<P: WasmParams, R: WasmResults>(
    store: &mut Store<State>,
    instance: Instance,
    name: &str,
) -> Result<TypedFunc<P, R>> {
    instance.get_typed_func(store, &format!("{GUEST}#{name}"))
}
