//! What a run leaves behind: tables of orders, fills and equity, signals, narrative, log, digest.

use std::sync::Arc;

use domain::digest::{Digest, EventLogDigest};
use domain::limits::INSTRUMENTS_MAX;
use domain::strategy::{Fault, LogLine, NarrativeRecord, Signal};
use domain::{
    InstrumentIx, Money, OrderEvent, OrderEventKind, OrderSide, Price, Quantity, TsNanos,
};

use crate::exchange::Order;
use crate::series::DaySlice;

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
    /// Last price of the first instrument.
    pub price: Price,
    /// Shares held of the first instrument.
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
    /// Shares held at the end, of all instruments together.
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
    held: Held,
    /// Fills of the present day: when, what, change of cash and of shares.
    changes: Vec<(TsNanos, InstrumentIx, Money, i64)>,
}

/// Cash and, by instrument, shares held and the last price.
#[derive(Default)]
struct Held {
    cash: Money,
    shares: [i64; INSTRUMENTS_MAX],
    prices: [Price; INSTRUMENTS_MAX],
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
            // Kept until the day's minutes are valued.
            let value = Money::checked_notional(fill.last_price, fill.last_quantity);
            let shares = fill.last_quantity.shares().cast_signed() * side.sign();
            let paid = Money::from_units(value.unwrap_or_default().units() * side.sign());
            let cash = Money::ZERO - paid - fill.commission;
            self.changes.push((event.ts_event, event.instrument, cash, shares));
        }
    }

    /// Sets the money at the start.
    pub(crate) fn start(&mut self, cash: Money) {
        self.held.cash = cash;
    }

    /// Values the account at the end of each minute in which any instrument has rows; one slice for
    /// each instrument.
    pub(crate) fn end_day(&mut self, day: &[DaySlice<'_>]) {
        const MINUTE: u64 = domain::time::NANOS_PER_MINUTE;
        let mut changes = self.changes.drain(..).peekable();
        let mut next = vec![0; day.len()];
        loop {
            let heads = day.iter().zip(&next).filter_map(|(slice, row)| slice.ts_event.get(*row));
            let Some(first) = heads.min() else { break };
            // Minutes are the same in every zone that differs by whole minutes.
            let minute_end = (first / MINUTE + 1) * MINUTE;
            for (index, slice) in day.iter().enumerate() {
                let rest = &slice.ts_event[next[index]..];
                next[index] += rest.partition_point(|ts| *ts < minute_end);
                if let Some(row) = next[index].checked_sub(1) {
                    self.held.prices[index] = Price::from_units(slice.price[row]);
                }
            }
            while let Some((_, instrument, cash, shares)) =
                changes.next_if(|(moment, ..)| moment.nanos() < minute_end)
            {
                self.held.cash += cash;
                self.held.shares[usize::from(instrument.0)] += shares;
            }
            let held = self.held.shares.iter().zip(&self.held.prices);
            let value: i64 = held.map(|(shares, price)| shares * price.units()).sum();
            self.equity.push(EquityRow {
                ts_event: TsNanos::from_nanos(minute_end),
                price: self.held.prices[0],
                quantity: self.held.shares[0],
                cash: self.held.cash,
                equity: self.held.cash + Money::from_units(value),
            });
        }
        for (_, instrument, cash, shares) in changes {
            self.held.cash += cash;
            self.held.shares[usize::from(instrument.0)] += shares;
        }
    }
}
