//! What a journal holds, as types. Written they borrow, read they own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind};
use domain::market::{Bar, Trade};
use domain::strategy::{Action, Capabilities, LogLine};
use domain::{AccountEvent, Instrument, Money, OrderEvent, OrderSide, Price, TsNanos};
use exchange::ExecutionModel;
use serde::{Deserialize, Serialize};
use trader::OrderLimits;

use super::known_days::KnownDays;

/// Version of what a journal holds. In version 1 no line was tied to the one before, and no record told the end.
pub const JOURNAL_VERSION: u32 = 2;

/// What kind of a run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Its orders went to the simulated exchange.
    Paper,
    /// Its orders went to a broker.
    Live,
}

/// The rows that a strategy was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// Trades.
    Trade,
    /// Bars of one minute.
    Minute,
}

/// What a run is: enough to make it again, with its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`JOURNAL_VERSION`] of the program that wrote it.
    pub version: u32,
    /// The number of the file among those of the run, from 1; the journal sets it.
    pub part: u32,
    /// The checksum of the last line of the file before, 0 in the first file; the journal sets it.
    #[serde(default)]
    pub after: u64,
    /// Version of the program.
    pub kumiki_version: String,
    /// What ran the component, with its version.
    pub engine: String,
    /// Paper or live.
    pub run_kind: RunKind,
    /// The run's id.
    pub run_id: String,
    /// The strategy's id.
    pub strategy_id: String,
    /// The component's name.
    pub component: String,
    /// SHA-256 of the component's file, in hexadecimal.
    pub sha256: String,
    /// The parameters that were given, a JSON object as text.
    pub parameters: String,
    /// What is traded, with lots and price steps.
    pub instruments: Vec<Instrument>,
    /// The last close of each before the run; none where it is not known.
    pub base_prices: Vec<Option<Price>>,
    /// What is known of the days of the run.
    #[serde(default)]
    pub days: KnownDays,
    /// Trades or bars.
    pub granularity: RowKind,
    /// Money at the start.
    pub cash: Money,
    /// How the simulated exchange fills orders; none where a broker does.
    pub model: Option<ExecutionModel>,
    /// The limits of its orders.
    pub order_limits: OrderLimits,
    /// The limits of the component by their names, as manifests have them.
    pub limits: BTreeMap<String, u64>,
}

/// A row of the market as the strategy is given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// A trade.
    Trade {
        /// The trade.
        #[serde(flatten)]
        trade: Trade,
        /// Who was its aggressor, where that is known (specification 4, P118).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aggressor: Option<OrderSide>,
    },
    /// A bar.
    Bar(Bar),
}

impl Row {
    /// The row's time; of a bar its end.
    #[must_use]
    pub const fn ts_event(&self) -> TsNanos {
        match self {
            Self::Trade { trade, .. } => trade.ts_event,
            Self::Bar(bar) => bar.ts_event,
        }
    }

    /// Whether both are the same row, whoever was the aggressor.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trade { trade, .. }, Self::Trade { trade: other, .. }) => trade == other,
            (one, other) => one == other,
        }
    }
}

/// What a strategy was called with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input<'a> {
    /// Its configuration.
    Init {
        /// A JSON object as text.
        config: Cow<'a, str>,
        /// The instruments.
        instruments: Cow<'a, [Instrument]>,
        /// What it may ask for.
        capabilities: Capabilities,
    },
    /// That rows follow.
    Start(TsNanos),
    /// The last row before this record.
    Row,
    /// Events of its orders.
    OrderEvents(Cow<'a, [OrderEvent]>),
    /// Events of the account.
    AccountEvents(Cow<'a, [AccountEvent]>),
    /// That no rows follow.
    Stop(TsNanos),
}

impl Input<'_> {
    /// What it is, in a word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Init { .. } => "init",
            Self::Start(_) => "start",
            Self::Row => "row",
            Self::OrderEvents(_) => "order_events",
            Self::AccountEvents(_) => "account_events",
            Self::Stop(_) => "stop",
        }
    }

    /// Its time; `row` is the last row before it.
    #[must_use]
    pub fn ts_event_after(&self, row: Option<Row>) -> Option<TsNanos> {
        match self {
            Self::Row => row.map(|row| row.ts_event()),
            input => input.ts_event(),
        }
    }

    /// Its time, where it has one of its own.
    #[must_use]
    pub fn ts_event(&self) -> Option<TsNanos> {
        match self {
            Self::Init { .. } | Self::Row => None,
            Self::Start(now) | Self::Stop(now) => Some(*now),
            Self::OrderEvents(events) => events.first().map(|event| event.ts_event),
            Self::AccountEvents(events) => events.first().map(|event| event.ts_event),
        }
    }
}

/// A fault with which a strategy answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// The call that failed.
    pub export: String,
    /// The kind, in a word.
    pub kind: String,
    /// The kind for people.
    pub text: String,
}

/// The kind of the one fault that the host's clock makes.
const WATCHDOG: &str = "watchdog";

impl FaultRecord {
    /// Another fault of the same kind in the same call is the same: how far a limit was passed, and the text of a
    /// trap, may differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.export == other.export && self.kind == other.kind
    }

    /// Whether the host's clock made it. Such a fault is no output of the component.
    #[must_use]
    pub fn is_hosts(&self) -> bool {
        self.kind == WATCHDOG
    }
}

impl From<&Fault> for FaultRecord {
    fn from(fault: &Fault) -> Self {
        let kind = match &fault.kind {
            FaultKind::Panic(_) => "panic",
            FaultKind::Trap(_) => "trap",
            FaultKind::Fuel { .. } => "fuel",
            FaultKind::Memory { .. } => "memory",
            FaultKind::Stack { .. } => "stack",
            FaultKind::CompileTime { .. } => "compile_time",
            FaultKind::CompileCost { .. } => "compile_cost",
            FaultKind::CompileConstants { .. } => "compile_constants",
            FaultKind::CompileCosts { .. } => "compile_costs",
            FaultKind::Watchdog { .. } => WATCHDOG,
            FaultKind::Folder { .. } => "folder",
            FaultKind::Budget { .. } => "budget",
            FaultKind::Limit { .. } => "limit",
            FaultKind::Protocol(_) => "protocol",
            FaultKind::TooSlow(_) => "too_slow",
            FaultKind::Journal(_) => "journal",
            FaultKind::Halt(_) => "halt",
            FaultKind::Refused(_) => "refused",
        };
        Self {
            export: fault.export.to_owned(),
            kind: kind.to_owned(),
            text: fault.kind.to_string(),
        }
    }
}

/// What a strategy answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer<'a> {
    /// What it wants done, in order.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub actions: Cow<'a, [Action]>,
    /// The lines that it wrote, in order.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub log: Cow<'a, [LogLine]>,
    /// Its fault; nothing follows then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultRecord>,
}

/// Whether there is none.
fn is_empty<T>(list: &[T]) -> bool {
    list.is_empty()
}

/// A call of the strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call<'a> {
    /// What it was given.
    pub input: Input<'a>,
    /// What it answered.
    pub answer: Answer<'a>,
}

/// What happened beside the strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRecord<'a> {
    /// The trading day was over (specification 4, P119).
    EndOfDay,
    /// A line of the run's log, as a warning.
    Note(Cow<'a, str>),
    /// Market data were lost, or came back (specification 4, P115).
    MarketDataLost(bool),
    /// The run was to stop (specification 4, P86).
    Stop,
    /// The host ended the run with a fault.
    Failed(Cow<'a, str>),
    /// The run has ended, and nothing follows. A run that was killed does not have it.
    End,
}

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record<'a> {
    /// The run; first in each file.
    Header(Box<Header>),
    /// A row of the market, before all that it causes.
    Row(Row),
    /// What the strategy's queries answer from here on.
    Portfolio(Cow<'a, PortfolioView>),
    /// A call of the strategy.
    Call(Box<Call<'a>>),
    /// What happened beside it.
    Host(HostRecord<'a>),
}
