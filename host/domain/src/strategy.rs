//! The interface between the host and one strategy, whatever runs it: the sandbox in the product,
//! plain Rust in benches. It mirrors the contract in `wit/strategy`.

use std::collections::BTreeMap;

use crate::text::ShortText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::PortfolioView;
use crate::command::OrderCommand;
use crate::event::{AccountEvent, OrderEvent};
use crate::fault::{Fault, Identity};
use crate::instrument::{Instrument, InstrumentIx};
use crate::market::Window;
use crate::order::OrderSide;
use crate::price::Price;
use crate::time::TsNanos;

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SignalKind {
    /// A long entry.
    EntryLong,
    /// A short entry.
    EntryShort,
    /// An exit from a position.
    Exit,
    /// A remark without a trade.
    Annotate,
}

impl SignalKind {
    /// The specification's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EntryLong => "EntryLong",
            Self::EntryShort => "EntryShort",
            Self::Exit => "Exit",
            Self::Annotate => "Annotate",
        }
    }
}

/// A mark that the strategy sets (specification 2, `StrategySignal`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The instrument, by its position in the list given at init.
    pub instrument: InstrumentIx,
    /// Entry, exit or remark.
    pub kind: SignalKind,
    /// Which way, where that makes sense.
    pub side: Option<OrderSide>,
    /// At which price, where that makes sense.
    pub price: Option<Price>,
    /// A short name to group by.
    pub tag: Option<String>,
    /// Free text for people.
    pub note: Option<String>,
}

/// A reasoned decision, kept beside the run's orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrativeRecord {
    /// The order that it explains, if any.
    pub client_order_id: Option<ShortText>,
    /// What was decided, in a few words.
    pub title: String,
    /// Why: free text or JSON.
    pub body: String,
}

/// What a strategy asks the host to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Do something with orders.
    Order(OrderCommand),
    /// Set a mark for charts.
    Signal(Signal),
    /// Keep a reasoned decision.
    Narrative(NarrativeRecord),
}

/// How far a strategy came in its window, and what it wants done.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Rows of the window handled so far.
    pub reached: u32,
    /// In the order in which they were asked for.
    pub actions: Vec<Action>,
}

/// Which optional imports a strategy uses; known before it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Asks for positions or the account.
    pub portfolio: bool,
    /// Asks for the list of working orders.
    pub working_orders: bool,
    /// Asks for the aggressor side, which replay can never tell.
    pub aggressor: bool,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Details for the author.
    Debug,
    /// What a user wants to know.
    Info,
    /// Something odd that stops nothing.
    Warn,
    /// Something failed; the run may go on.
    Error,
    /// The last words of a panic.
    Panic,
}

impl LogLevel {
    /// The name in log files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Panic => "PANIC",
        }
    }
}

/// A line that a strategy wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The event that the strategy was handling, once there was one.
    pub ts_event: Option<TsNanos>,
    /// How grave it is, by the writer's own judgment.
    pub level: LogLevel,
    /// The line without its end.
    pub message: String,
}

/// One running strategy. After a [`Fault`] it must not be called again.
pub trait StrategyRuntime {
    /// Its name and content.
    fn identity(&self) -> Identity;

    /// Which optional imports it uses.
    fn capabilities(&self) -> Capabilities;

    /// Trades that a strict replay may hand over at once, because each reaches the strategy as a window of its own
    /// all the same; 1 by default.
    fn batch_rows(&self) -> u32 {
        1
    }

    /// Hands over the configuration (a JSON object) and the instruments.
    ///
    /// # Errors
    /// A fault; [`crate::fault::FaultKind::Refused`] when the strategy does not accept its
    /// configuration.
    fn init(&mut self, config_json: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>>;

    /// Says that events follow.
    ///
    /// # Errors
    /// A fault.
    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>>;

    /// Lets it handle the rows of `window` below index `limit`; it stops early after a row at which
    /// it wants something done.
    ///
    /// # Errors
    /// A fault.
    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>>;

    /// Sets the aggressor of the trade that is handed over next, where it is known (specification 4, P118). Replay
    /// knows none. Does nothing by default.
    fn set_aggressor(&mut self, side: Option<OrderSide>) {
        let _ = side;
    }

    /// Tells the events of its orders, all at the same instant.
    ///
    /// # Errors
    /// A fault.
    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>>;

    /// Tells what happened to the account without an order, all at the same instant, after the
    /// portfolio view has changed. Does nothing by default: for strategies that keep no prices.
    ///
    /// # Errors
    /// A fault.
    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let _ = events;
        Ok(Vec::new())
    }

    /// Takes a list of actions back, empty and with nothing asked for since, so that the next ones may have its
    /// memory. Does nothing by default.
    fn take_back(&mut self, actions: Vec<Action>) {
        drop(actions);
    }

    /// Says that no events follow.
    ///
    /// # Errors
    /// A fault.
    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>>;

    /// The parameters that it reported in its init, given and default ones, each with its value as
    /// JSON; a second call gives none. None by default.
    fn take_parameters(&mut self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Sets what portfolio queries answer from now on.
    fn set_portfolio(&mut self, view: &PortfolioView);

    /// The lines written since the last call.
    fn take_log(&mut self) -> Vec<LogLine>;
}
