//! What a run leaves behind: the rows of its tables, and the totals that fit in memory whatever its
//! length.

use std::ops::Deref;
use std::sync::Arc;

use domain::digest::Digest;
use domain::strategy::{Fault, LogLine, NarrativeRecord, Signal};
use domain::{InstrumentIx, Money, OrderEvent, OrderSide, Price, Quantity, TsNanos};

use crate::exchange::Order;
use crate::statistics::Performance;

/// One fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillRow {
    /// When.
    pub ts_event: TsNanos,
    /// What.
    pub instrument: InstrumentIx,
    /// The caller's id of the order.
    pub client_order_id: Arc<str>,
    /// The venue's number of the order.
    pub venue_order_id: Arc<str>,
    /// The fill's own number.
    pub trade_id: Arc<str>,
    /// Which way.
    pub side: OrderSide,
    /// At which price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
    /// Shares of the order done so far.
    pub cumulative_quantity: Quantity,
    /// Shares of the order still open.
    pub leaves_quantity: Quantity,
    /// Fee.
    pub commission: Money,
    /// Price of the market's trade that filled it.
    pub market_price: Price,
    /// What it cost against the price of that trade. Zero where a limit order was filled at its own
    /// limit: that price was asked for.
    pub slippage: Money,
}

/// The account at the end of a minute in which any instrument had trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EquityRow {
    /// End of the minute.
    pub ts_event: TsNanos,
    /// Money.
    pub cash: Money,
    /// Money and the value of the shares at the last prices.
    pub equity: Money,
}

/// One instrument at the end of a minute in which it had trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkRow {
    /// End of the minute.
    pub ts_event: TsNanos,
    /// What.
    pub instrument: InstrumentIx,
    /// Its last price.
    pub price: Price,
    /// Shares held of the first instrument.
    pub quantity: i64,
}

/// The account at the end of a trading day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRow {
    /// End of the day's last minute with trades.
    pub ts_event: TsNanos,
    /// Money.
    pub cash: Money,
    /// Money and the value of the shares at the last prices.
    pub equity: Money,
}

/// A position was opened from flat, or went back to flat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionEvent {
    /// When.
    pub ts_event: TsNanos,
    /// What.
    pub instrument: InstrumentIx,
    /// Whether it was opened; else closed.
    pub opened: bool,
    /// Which way the position goes or went: bought first, or sold first.
    pub entry_side: OrderSide,
    /// Shares held after it: those of the fill, or 0.
    pub quantity: i64,
    /// Price of the fill.
    pub price: Price,
    /// Profit or loss of the whole position, fees taken off; known when it closes.
    pub realised_pnl: Option<Money>,
    /// The order whose fill did it.
    pub client_order_id: Arc<str>,
}

/// One way from flat to flat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundTrip {
    /// What.
    pub instrument: InstrumentIx,
    /// Bought first (long), or sold first (short).
    pub entry_side: OrderSide,
    /// When the position was opened.
    pub ts_entry: TsNanos,
    /// When it was flat again.
    pub ts_exit: TsNanos,
    /// The order that opened it.
    pub entry_order: Arc<str>,
    /// The order that closed it.
    pub exit_order: Arc<str>,
    /// Shares bought, which are as many as were sold.
    pub quantity: u64,
    /// Most shares held at the same time, without sign.
    pub quantity_max: u64,
    /// Average price of what was bought, cut off at 1/10,000 yen.
    pub buy_price: Price,
    /// Average price of what was sold, cut off at 1/10,000 yen.
    pub sell_price: Price,
    /// Fills.
    pub fills: u32,
    /// Fees.
    pub commission: Money,
    /// Profit or loss, fees taken off.
    pub pnl: Money,
    /// Lowest profit or loss on the way, at the price of every trade between entry and exit, fees
    /// so far taken off; never above zero (maximum adverse excursion).
    pub mae: Money,
    /// The highest of the same; never below zero (maximum favourable excursion).
    pub mfe: Money,
}

/// One instrument when the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionEnd {
    /// What.
    pub instrument: InstrumentIx,
    /// Shares held.
    pub quantity: i64,
    /// What the shares held did cost, fees not counted.
    pub cost: Money,
    /// The last price; none when the instrument never traded.
    pub last_price: Option<Price>,
    /// Profit and loss of shares sold, fees not counted.
    pub realised_pnl: Money,
}

impl PositionEnd {
    /// Value of the shares at the last price.
    #[must_use]
    pub fn value(&self) -> Money {
        Money::from_units(self.quantity * self.last_price.unwrap_or_default().units())
    }

    /// Average cost of a share held, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_cost(&self) -> Option<Price> {
        (self.quantity != 0).then(|| Price::from_units(self.cost.units() / self.quantity))
    }

    /// Profit and loss that a sale at the last price would bring, fees not counted.
    #[must_use]
    pub fn unrealised_pnl(&self) -> Money {
        self.value() - self.cost
    }
}

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
    /// All.
    pub all: u64,
    /// Filled wholly.
    pub filled: u64,
    /// Refused.
    pub rejected: u64,
    /// Their time ran out.
    pub expired: u64,
    /// Cancelled.
    pub canceled: u64,
}

/// What stays in memory of a run whatever its length.
#[derive(Debug, Clone)]
pub struct RunTotals {
    /// How it ended.
    pub status: RunStatus,
    /// Identity of everything that happened.
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
    /// Fees.
    pub commission: Money,
    /// First and last trade seen.
    pub span: Option<(TsNanos, TsNanos)>,
    /// Days, falls, round trips: what the statistics are made of.
    pub performance: Performance,
}

/// Everything that a run leaves behind, in memory: for tests, sweeps and short runs. The fields of the
/// totals can be read as if they were fields of the result.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The totals.
    pub totals: RunTotals,
    /// Every order.
    pub orders: Vec<Order>,
    /// What happened to them.
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
    pub days: Vec<DayRow>,
    /// Marks of the strategy.
    pub signals: Vec<(TsNanos, Signal)>,
    /// Decisions of the strategy.
    pub narrative: Vec<(TsNanos, NarrativeRecord)>,
    /// Lines of the strategy and warnings of the host.
    pub log: Vec<LogLine>,
}

impl Deref for RunResult {
    type Target = RunTotals;

    fn deref(&self) -> &RunTotals {
        &self.totals
    }
}
