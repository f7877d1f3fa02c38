//! The two ways of calling a guest behind one trait for each contract: *direct*, where the host calls
//! the program inside a component itself, and *general*, where the engine's component model does. Both
//! give the same results; a direct call costs a tenth, and a proof that it may be made.

use domain::formula::{FormulaDescription, FormulaInput};
use domain::market::Window;
use domain::{AccountEvent, Instrument, OrderEvent};
use wasmtime::{Result, Store};

use crate::config::CallPath;
use crate::state::State;

/// The calls of one running strategy.
pub(crate) trait StrategyCalls {
    /// `init`; the message when the strategy refuses.
    fn init(
        &self,
        store: &mut Store<State>,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<Option<String>>;

    /// `start`
    fn start(&self, store: &mut Store<State>, now: u64) -> Result<()>;

    /// `advance`
    fn advance(&self, store: &mut Store<State>, window: Window<'_>, limit: u32) -> Result<u32>;

    /// `on-order-events`
    fn on_order_events(&self, store: &mut Store<State>, events: &[OrderEvent]) -> Result<()>;

    /// `on-account-events`
    fn on_account_events(&self, store: &mut Store<State>, events: &[AccountEvent]) -> Result<()>;

    /// `stop`
    fn stop(&self, store: &mut Store<State>, now: u64) -> Result<()>;
}

/// The calls of one running formula module.
pub(crate) trait FormulaCalls {
    /// `describe`
    fn describe(&self, store: &mut Store<State>) -> Result<FormulaDescription>;

    /// `configure`; the message when the module refuses.
    fn configure(
        &self,
        store: &mut Store<State>,
        values: &[f64],
    ) -> Result<Result<Vec<FormulaInput>, String>>;

    /// `evaluate`: each of `columns` is as long as `out`.
    fn evaluate(&self, store: &mut Store<State>, columns: &[&[f64]], out: &mut [f64])
    -> Result<()>;
}

/// One of two ways. The choice is a branch and not a call through a table: a strict replay makes it
/// for every trade.
pub(crate) enum Either<D, G> {
    Direct(D),
    General(G),
}

impl<D, G> Either<D, G> {
    /// Which of them it is.
    pub(crate) const fn path(&self) -> CallPath {
        match self {
            Self::Direct(_) => CallPath::Direct,
            Self::General(_) => CallPath::General,
        }
    }
}

impl<D: StrategyCalls, G: StrategyCalls> StrategyCalls for Either<D, G> {
    fn init(
        &self,
        store: &mut Store<State>,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<Option<String>> {
        match self {
            Self::Direct(calls) => calls.init(store, config_json, instruments),
            Self::General(calls) => calls.init(store, config_json, instruments),
        }
    }

    fn start(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        match self {
            Self::Direct(calls) => calls.start(store, now),
            Self::General(calls) => calls.start(store, now),
        }
    }

    #[inline]
    fn advance(&self, store: &mut Store<State>, window: Window<'_>, limit: u32) -> Result<u32> {
        match self {
            Self::Direct(calls) => calls.advance(store, window, limit),
            Self::General(calls) => calls.advance(store, window, limit),
        }
    }

    fn on_order_events(&self, store: &mut Store<State>, events: &[OrderEvent]) -> Result<()> {
        match self {
            Self::Direct(calls) => calls.on_order_events(store, events),
            Self::General(calls) => calls.on_order_events(store, events),
        }
    }

    fn on_account_events(&self, store: &mut Store<State>, events: &[AccountEvent]) -> Result<()> {
        match self {
            Self::Direct(calls) => calls.on_account_events(store, events),
            Self::General(calls) => calls.on_account_events(store, events),
        }
    }

    fn stop(&self, store: &mut Store<State>, now: u64) -> Result<()> {
        match self {
            Self::Direct(calls) => calls.stop(store, now),
            Self::General(calls) => calls.stop(store, now),
        }
    }
}

impl<D: FormulaCalls, G: FormulaCalls> FormulaCalls for Either<D, G> {
    fn describe(&self, store: &mut Store<State>) -> Result<FormulaDescription> {
        match self {
            Self::Direct(calls) => calls.describe(store),
            Self::General(calls) => calls.describe(store),
        }
    }

    fn configure(
        &self,
        store: &mut Store<State>,
        values: &[f64],
    ) -> Result<Result<Vec<FormulaInput>, String>> {
        match self {
            Self::Direct(calls) => calls.configure(store, values),
            Self::General(calls) => calls.configure(store, values),
        }
    }

    #[inline]
    fn evaluate(
        &self,
        store: &mut Store<State>,
        columns: &[&[f64]],
        out: &mut [f64],
    ) -> Result<()> {
        match self {
            Self::Direct(calls) => calls.evaluate(store, columns, out),
            Self::General(calls) => calls.evaluate(store, columns, out),
        }
    }
}
