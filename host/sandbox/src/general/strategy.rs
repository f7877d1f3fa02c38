//! Strategies on the general path: linked, made and called.

use domain::market::Window;
use domain::{AccountEvent, GuestLimit, Instrument, OrderEvent};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Result, Store};

use super::strategy_bindings as bindings;
use super::{HOST_BYTES_PER_BYTE, to_guest};
use crate::calls::StrategyCalls;
use crate::state::State;

/// What the contract lets a strategy import.
pub(crate) struct StrategyLinker(Linker<State>);

impl StrategyLinker {
    pub(crate) fn new(engine: &Engine) -> Result<Self> {
        let mut linker = Linker::new(engine);
        bindings::Strategy::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        Ok(Self(linker))
    }

    /// Hands a module to components that import it: the tests compile large ones once.
    #[cfg(test)]
    pub(crate) fn module(&mut self, name: &str, module: &wasmtime::Module) -> Result<()> {
        self.0.root().module(name, module)
    }

    /// A component, linked; its imports and exports have the contract's types.
    pub(crate) fn ready(&self, component: &Component) -> Result<StrategyReady> {
        bindings::StrategyPre::new(self.0.instantiate_pre(component)?).map(StrategyReady)
    }
}

/// A strategy that can be instantiated.
pub(crate) struct StrategyReady(bindings::StrategyPre<State>);

impl StrategyReady {
    pub(crate) fn instantiate(&self, store: &mut Store<State>) -> Result<Strategy> {
        let bytes = store.data().limits.result_bytes;
        store.set_hostcall_fuel(bytes.saturating_mul(HOST_BYTES_PER_BYTE));
        self.0.instantiate(store).map(Strategy)
    }
}

/// One running strategy.
pub(crate) struct Strategy(bindings::Strategy);

impl StrategyCalls for Strategy {
    fn init(
        &self,
        store: &mut Store<State>,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<Option<String>> {
        let bands: Vec<_> = instruments.iter().map(to_guest::bands).collect();
        let instruments: Vec<_> = instruments
            .iter()
            .zip(&bands)
            .map(|(one, ticks)| to_guest::instrument(one, ticks))
            .collect();
        let guest = self.0.kumiki_strategy_guest();
        let refusal = guest.call_init(&mut *store, config_json, &instruments)?.err();
        let (length, state) = (refusal.as_ref().map_or(0, String::len), store.data_mut());
        let taken = state.limits.allow(GuestLimit::LogLine, length);
        let taken = taken.and_then(|()| state.spend(length));
        taken.or_else(|kind| state.breach(kind))?;
        Ok(refusal)
    }

    fn start(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        self.0.kumiki_strategy_guest().call_start(store, now)
    }

    fn advance(&self, store: &mut Store<State>, window: Window<'_>, limit: u32) -> Result<u32> {
        use bindings::exports::kumiki::strategy::guest::Window as Given;
        let bars: Vec<_>;
        let window = match window {
            Window::Resume => Given::Resume,
            Window::OneTrade(trade) => Given::OneTrade(to_guest::trade(&trade)),
            Window::OneBar(bar) => Given::OneBar(to_guest::bar(&bar)),
            Window::Trades(columns) => Given::Trades(to_guest::columns(columns)),
            Window::Bars(rows) => {
                bars = rows.iter().map(to_guest::bar).collect();
                Given::Bars(&bars)
            }
        };
        self.0.kumiki_strategy_guest().call_advance(store, window, limit)
    }

    fn on_order_events(&self, store: &mut Store<State>, events: &[OrderEvent]) -> Result<()> {
        let events: Vec<_> = events.iter().map(to_guest::order_event).collect();
        self.0.kumiki_strategy_guest().call_on_order_events(store, &events)
    }

    fn on_account_events(&self, store: &mut Store<State>, events: &[AccountEvent]) -> Result<()> {
        let events: Vec<_> = events.iter().map(to_guest::account_event).collect();
        self.0.kumiki_strategy_guest().call_on_account_events(store, &events)
    }

    fn stop(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        self.0.kumiki_strategy_guest().call_stop(store, now)
    }
}
