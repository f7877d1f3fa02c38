//! What stays in memory of a run whatever its length, and a whole run in memory for short ones.

use std::collections::BTreeMap;

use domain::digest::Digest;
use domain::fault::Fault;
use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{Money, OrderEvent, OrderRecord, Quantity, TsNanos};

use crate::rows::{EquityRow, FillRow, MarkRow, PositionEnd, PositionEvent, RoundTrip};
use crate::statistics::Performance;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// All data was replayed.
    Completed,
    /// It was stopped from outside; results go up to there.
    Interrupted,
    /// The strategy failed; results go up to there.
    Failed(Box<Fault>),
}

impl RunStatus {
    /// One word for files.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
        }
    }
}

/// How many orders there were, by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Orders of the run, of every origin.
    pub all: u64,
    /// Filled wholly.
    pub filled: u64,
    /// Rejected, by the checks or by the exchange.
    pub rejected: u64,
    /// Their time ran out.
    pub expired: u64,
    /// Ended by a cancel, of whoever sent them.
    pub canceled: u64,
}

/// What stays in memory of a run whatever its length.
#[derive(Debug, Clone)]
pub struct RunTotals {
    /// How it ended.
    pub status: RunStatus,
    /// Digest of every event of the run.
    pub digest: Digest,
    /// Records in the digest.
    pub digest_records: u64,
    /// How many orders there were.
    pub order_counts: OrderCounts,
    /// How many fills there were.
    pub fill_count: u64,
    /// Trades or bars that the strategy has seen.
    pub trades_seen: u64,
    /// Shares traded on the market in them.
    pub market_volume: u128,
    /// Shares traded by our orders.
    pub our_volume: Quantity,
    /// Money at the start.
    pub cash_start: Money,
    /// Money at the end.
    pub cash_end: Money,
    /// Money and value of shares at the end.
    pub equity_end: Money,
    /// Shares held at the end, of all instruments together; [`Self::positions`] tells them apart.
    pub position_end: i64,
    /// Each instrument at the end.
    pub positions: Vec<PositionEnd>,
    /// Profit and loss of sold shares, fees not counted.
    pub realised_pnl: Money,
    /// What happened on the market that a reader of results must know, a line each.
    pub notes: Vec<String>,
    /// Fees of all fills, in yen.
    pub commission: Money,
    /// First and last trade seen.
    pub span: Option<(TsNanos, TsNanos)>,
    /// What a reader of the results must know, a sentence each.
    pub warnings: Vec<String>,
    /// Days, drawdown, round trips: what the statistics are made of.
    pub performance: Performance,
    /// The parameters that the strategy reported as in effect, given and default ones: values as
    /// JSON by their names.
    pub parameters: BTreeMap<String, String>,
}

/// Everything that a run leaves behind, in memory: for tests and short runs.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The totals.
    pub totals: RunTotals,
    /// Every order.
    pub orders: Vec<OrderRecord>,
    /// Their events, in order.
    pub order_events: Vec<OrderEvent>,
    /// Every fill.
    pub fills: Vec<FillRow>,
    /// Positions that were opened and closed.
    pub position_events: Vec<PositionEvent>,
    /// Every way from flat to flat.
    pub round_trips: Vec<RoundTrip>,
    /// The account, minute by minute.
    pub equity: Vec<EquityRow>,
    /// The instruments, minute by minute.
    pub marks: Vec<MarkRow>,
    /// The account, day by day.
    pub days: Vec<EquityRow>,
    /// Marks of the strategy.
    pub signals: Vec<(TsNanos, Signal)>,
    /// Decisions of the strategy.
    pub narrative: Vec<(TsNanos, NarrativeRecord)>,
    /// Lines of the strategy and warnings of the host.
    pub log: Vec<LogLine>,
}
