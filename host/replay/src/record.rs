//! What a run leaves behind: tables of orders, fills and equity, signals, narrative, log, digest.

use std::sync::Arc;

use domain::digest::{Digest, EventLogDigest};
use domain::strategy::{Fault, LogLine, NarrativeRecord, Signal};
use domain::{
    InstrumentIx, Money, OrderEvent, OrderEventKind, OrderSide, Price, Quantity, TsNanos,
};

use crate::exchange::Order;
use crate::series::TradingDay;

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
}

/// The account at the end of a minute that had trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EquityRow {
    /// End of the minute.
    pub ts_event: TsNanos,
    /// Last price.
    pub price: Price,
    /// Shares held.
    pub quantity: i64,
    /// Money.
    pub cash: Money,
    /// Money and the value of the shares.
    pub equity: Money,
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

/// Everything that a run leaves behind.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// How it ended.
    pub status: RunStatus,
    /// Every order.
    pub orders: Vec<Order>,
    /// Every fill.
    pub fills: Vec<FillRow>,
    /// The account, minute by minute.
    pub equity: Vec<EquityRow>,
    /// Marks of the strategy.
    pub signals: Vec<(TsNanos, Signal)>,
    /// Decisions of the strategy.
    pub narrative: Vec<(TsNanos, NarrativeRecord)>,
    /// Lines of the strategy and warnings of the host.
    pub log: Vec<LogLine>,
    /// Identity of everything that happened.
    pub digest: Digest,
    /// Records in the digest.
    pub digest_records: u64,
    /// Trades that the strategy has seen.
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
    /// Shares held at the end.
    pub position_end: i64,
    /// Profit and loss of sold shares.
    pub realised_pnl: Money,
    /// Fees.
    pub commission: Money,
    /// First and last trade seen.
    pub span: Option<(TsNanos, TsNanos)>,
}

/// Takes notes during a run.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) digest: EventLogDigest,
    pub(crate) fills: Vec<FillRow>,
    pub(crate) equity: Vec<EquityRow>,
    pub(crate) signals: Vec<(TsNanos, Signal)>,
    pub(crate) narrative: Vec<(TsNanos, NarrativeRecord)>,
    pub(crate) log: Vec<LogLine>,
    sides: SidesByFill,
}

/// Cash and shares after each fill of the present day, to value the minutes afterwards.
#[derive(Default)]
struct SidesByFill {
    start: (Money, i64),
    changes: Vec<(TsNanos, Money, i64)>,
}

impl Recorder {
    /// Notes an event of an order.
    pub(crate) fn order_event(&mut self, event: &OrderEvent) {
        self.digest.order_event(event);
        if let OrderEventKind::Filled(fill) = &event.kind {
            let side = fill.side;
            self.fills.push(FillRow {
                ts_event: event.ts_event,
                instrument: event.instrument,
                client_order_id: Arc::clone(&event.client_order_id),
                venue_order_id: event.venue_order_id.clone().unwrap_or_default(),
                trade_id: Arc::clone(&fill.trade_id),
                side,
                price: fill.last_price,
                quantity: fill.last_quantity,
                cumulative_quantity: fill.cumulative_quantity,
                leaves_quantity: fill.leaves_quantity,
                commission: fill.commission,
            });
            // A fill's share of cash and position; several fills of one trade are told together,
            // so the account itself is already further.
            let value = Money::checked_notional(fill.last_price, fill.last_quantity);
            let (cash, held) = self.sides.latest();
            let shares = fill.last_quantity.shares().cast_signed() * side.sign();
            let paid = Money::from_units(value.unwrap_or_default().units() * side.sign());
            self.sides.changes.push((event.ts_event, cash - paid - fill.commission, held + shares));
        }
    }

    /// Sets the money at the start.
    pub(crate) fn start(&mut self, cash: Money) {
        self.sides.start = (cash, 0);
    }

    /// Values the account at the end of each minute of the rows `..seen` of a day.
    pub(crate) fn end_day(&mut self, day: &TradingDay<'_>, seen: usize) {
        const MINUTE: u64 = domain::time::NANOS_PER_MINUTE;
        let mut changes = self.sides.changes.iter().peekable();
        let (mut cash, mut held) = self.sides.start;
        let mut from = 0;
        while from < seen {
            // Minutes are the same in every zone that differs by whole minutes.
            let minute_end = (day.ts_event[from] / MINUTE + 1) * MINUTE;
            from += day.ts_event[from..seen].partition_point(|ts| *ts < minute_end);
            while let Some((_, new_cash, new_held)) =
                changes.next_if(|(moment, _, _)| moment.nanos() < minute_end)
            {
                (cash, held) = (*new_cash, *new_held);
            }
            let price = day.price_at(from - 1);
            self.equity.push(EquityRow {
                ts_event: TsNanos::from_nanos(minute_end),
                price,
                quantity: held,
                cash,
                equity: cash + Money::from_units(held * price.units()),
            });
        }
        self.sides.start = self.sides.latest();
        self.sides.changes.clear();
    }
}

impl SidesByFill {
    fn latest(&self) -> (Money, i64) {
        self.changes.last().map_or(self.start, |(_, cash, held)| (*cash, *held))
    }
}
