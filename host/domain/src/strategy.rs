//! The interface between the host and one strategy, whatever runs it: the sandbox in the product,
//! plain Rust in benches. It mirrors the contract in `wit/strategy`.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::OrderEvent;
use crate::instrument::{Instrument, InstrumentIx};
use crate::money::Money;
use crate::order::{OrderModify, OrderRequest, OrderSide, OrderStatus};
use crate::price::{Price, Quantity};
use crate::time::TsNanos;

/// One execution seen on the market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    /// When it happened.
    pub ts_event: TsNanos,
    /// What traded.
    pub instrument: InstrumentIx,
    /// At which price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
}

/// One bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// The end of the bar's span.
    pub ts_event: TsNanos,
    /// What traded.
    pub instrument: InstrumentIx,
    /// The bar's span.
    pub granularity: BarGranularity,
    /// First price.
    pub open: Price,
    /// Highest price.
    pub high: Price,
    /// Lowest price.
    pub low: Price,
    /// Last price.
    pub close: Price,
    /// Shares traded.
    pub volume: Quantity,
}

/// The span of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BarGranularity {
    /// One minute.
    Minute,
    /// One trading day.
    Day,
}

/// Trades as columns of equal length, in time order.
#[derive(Debug, Clone, Copy)]
pub struct TradeColumns<'a> {
    /// Nanoseconds since 1970 in UTC.
    pub ts_event: &'a [u64],
    /// Position in the list given at init.
    pub instrument: &'a [u16],
    /// 1/10,000 yen.
    pub price: &'a [i64],
    /// Shares.
    pub quantity: &'a [u64],
}

/// Market events handed to a strategy.
#[derive(Debug, Clone, Copy)]
pub enum Window<'a> {
    /// Go on with the window that is already there.
    Resume,
    /// One trade; live trading and the strict replay use nothing else.
    OneTrade(Trade),
    /// One bar.
    OneBar(Bar),
    /// Many trades.
    Trades(TradeColumns<'a>),
    /// Many bars.
    Bars(&'a [Bar]),
}

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SignalKind {
    /// A long entry.
    EntryLong,
    /// A short entry.
    EntryShort,
    /// An exit.
    Exit,
    /// A remark.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// What traded.
    pub instrument: InstrumentIx,
    /// What it says.
    pub kind: SignalKind,
    /// Which way, where that makes sense.
    pub side: Option<OrderSide>,
    /// At which price, where that makes sense.
    pub price: Option<Price>,
    /// A short name to group by.
    pub tag: Option<String>,
    /// Free text.
    pub note: Option<String>,
}

/// A reasoned decision, kept beside the run's orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NarrativeRecord {
    /// The order that it explains, if any.
    pub client_order_id: Option<Arc<str>>,
    /// What was decided, in a few words.
    pub title: String,
    /// Why: free text or JSON.
    pub body: String,
}

/// What a strategy asks the host to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send an order.
    Submit(OrderRequest),
    /// Change an order.
    Modify {
        /// The order.
        client_order_id: Arc<str>,
        /// The change.
        change: OrderModify,
    },
    /// Cancel an order.
    Cancel {
        /// The order.
        client_order_id: Arc<str>,
    },
    /// Cancel every working order, of one instrument or of all.
    CancelAll {
        /// The instrument; `None` for all.
        instrument: Option<InstrumentIx>,
    },
    /// Set a mark.
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

/// Cash and results of the account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Money in the account.
    pub cash: Money,
    /// Money kept back for working buy orders.
    pub reserved: Money,
    /// Profit and loss of closed positions, before fees.
    pub realised_pnl: Money,
    /// Fees paid.
    pub commission: Money,
}

/// What is held of one instrument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The instrument.
    pub instrument: InstrumentIx,
    /// Shares; never negative on a cash account.
    pub quantity: i64,
    /// What the shares held did cost, fees not counted.
    pub cost: Money,
    /// Profit and loss of shares sold, fees not counted.
    pub realised_pnl: Money,
}

/// A working order, as a portfolio query reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingOrder {
    /// The request as it stands after changes.
    pub request: Arc<OrderRequest>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<Arc<str>>,
    /// Where it stands.
    pub status: OrderStatus,
    /// Shares done.
    pub filled_quantity: Quantity,
    /// When it was sent.
    pub ts_submitted: TsNanos,
}

/// What the portfolio queries of a strategy answer.
#[derive(Debug, Clone, Default)]
pub struct PortfolioView {
    /// The account.
    pub account: Account,
    /// One entry for each instrument, by its position in the list.
    pub positions: Vec<Position>,
    /// Working orders in the order in which they were sent; filled only for strategies that ask.
    pub working_orders: Vec<WorkingOrder>,
}

/// Which optional imports a strategy uses; known before it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Asks for positions or the account.
    pub portfolio: bool,
    /// Asks for the list of working orders.
    pub working_orders: bool,
    /// Asks for the aggressor side, which replay can never tell.
    pub aggressor: bool,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for the author.
    Debug,
    /// News.
    Info,
    /// Something odd.
    Warn,
    /// Something failed.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The event that the strategy was handling, once there was one.
    pub ts_event: Option<TsNanos>,
    /// How grave.
    pub level: LogLevel,
    /// The text.
    pub message: String,
}

/// What went wrong inside a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// It panicked; the text is its own.
    #[error("panicked: {0}")]
    Panic(String),
    /// It did something that WebAssembly forbids.
    #[error("trapped: {0}")]
    Trap(String),
    /// It used up its fuel: an endless loop, or more work than the budget allows.
    #[error(
        "used up its fuel of {budget} units in one call; an endless loop, or raise the fuel limit"
    )]
    Fuel {
        /// Fuel that the call was given.
        budget: u64,
    },
    /// It asked for more memory than allowed.
    #[error("asked for {asked} bytes of memory; {allowed} are allowed")]
    Memory {
        /// Bytes it would have had.
        asked: usize,
        /// Bytes allowed.
        allowed: usize,
    },
    /// It called itself too deeply.
    #[error("used up its stack of {allowed} bytes; look for endless recursion")]
    Stack {
        /// Bytes allowed.
        allowed: usize,
    },
    /// It took too long in live use.
    #[error("did not answer within {allowed_ms} ms")]
    Watchdog {
        /// Milliseconds allowed.
        allowed_ms: u64,
    },
    /// It produced more than allowed.
    #[error("produced {used} {what}; {allowed} are allowed")]
    Limit {
        /// What there was too much of.
        what: &'static str,
        /// How much there was.
        used: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// It broke the contract.
    #[error("broke the contract: {0}")]
    Protocol(String),
    /// Its init refused the configuration; the text is its own.
    #[error("refused its configuration: {0}")]
    Refused(String),
}

/// A strategy failed: what, where, when, and how it got there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the component.
    pub component: String,
    /// Its identity, in hexadecimal.
    pub sha256: String,
    /// The call that failed.
    pub export: &'static str,
    /// The event that the strategy was handling, once there was one.
    pub ts_event: Option<TsNanos>,
    /// What went wrong.
    pub kind: FaultKind,
    /// The strategy's own frames, innermost first.
    pub backtrace: Vec<String>,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short_hash = self.sha256.get(..12).unwrap_or(&self.sha256);
        write!(f, "strategy `{}` ({short_hash})", self.component)?;
        if !matches!(self.kind, FaultKind::Refused(_)) {
            write!(f, ", in `{}`", self.export)?;
            if let Some(moment) = self.ts_event {
                write!(f, " at {moment}")?;
            }
            write!(f, ",")?;
        }
        write!(f, " {}", self.kind)?;
        for frame in &self.backtrace {
            write!(f, "\n    at {frame}")?;
        }
        Ok(())
    }
}

/// Name and content of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its file's name without the ending.
    pub component: String,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
}

/// One running strategy. After a [`Fault`] it must not be called again.
pub trait StrategyRuntime {
    /// Its name and content.
    fn identity(&self) -> Identity;

    /// Which optional imports it uses.
    fn capabilities(&self) -> Capabilities;

    /// Hands over the configuration (a JSON object) and the instruments.
    ///
    /// # Errors
    /// A fault; [`FaultKind::Refused`] when the strategy does not accept its configuration.
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

    /// Tells what happened to its orders, all at the same instant.
    ///
    /// # Errors
    /// A fault.
    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>>;

    /// Says that no events follow.
    ///
    /// # Errors
    /// A fault.
    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>>;

    /// Sets what portfolio queries answer from now on.
    fn set_portfolio(&mut self, view: &PortfolioView);

    /// The lines written since the last call.
    fn take_log(&mut self) -> Vec<LogLine>;
}
