//! One order as the exchange keeps it.

use domain::instrument::DailyLimits;
use domain::order::{IllegalTransition, OrderTrigger};
use domain::session::TradingHours;
use domain::{
    Money, OrderRecord, OrderRequest, OrderSide, OrderType, Quantity, TimeInForce, TsNanos,
};

/// Key of an order: its origin in the highest bit, below it how many orders of that origin were sent
/// before it. Never used again.
pub(crate) type OrderIx = u32;

/// A key of what becomes due by itself: when, whether only after the rows of that time, and its place among these.
pub(crate) type ScheduleKey = (TsNanos, bool, u64);

/// Where an order stands at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not there: on its way, or done.
    Nowhere,
    /// It waits for the next trading day.
    Parked,
    /// It waits for an auction and for nothing else.
    Auction,
    /// A stop that waits for its trigger.
    Stop,
    /// It takes the next trades.
    Taker,
    /// A limit order that waits for its price.
    Resting,
}

/// One order with where it stands at the exchange.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// What is told of it.
    pub(crate) record: OrderRecord,
    /// Only trades later than this can match (F1).
    pub(crate) after: TsNanos,
    /// When it can be filled first (F1).
    pub(crate) arrival: TsNanos,
    /// Money reserved for it.
    pub(crate) reserved: Money,
    /// The lowest and the highest price that this money is counted with.
    pub(crate) worst: DailyLimits,
    /// Place in time: smaller is older. A change that loses its place gets a new one.
    pub(crate) sequence: u64,
    /// Where it stands at the exchange.
    pub(crate) standing: Standing,
    /// Shares that must trade at its price before it has its turn at a touch (F4).
    pub(crate) queue_left: Quantity,
    /// The auction that it waits for (F6).
    pub(crate) auction: Option<TsNanos>,
    /// A limit order that turns market in the closing auction (F6).
    pub(crate) funari: bool,
    /// Sent for the next trading day, because the present one was over (F6).
    pub(crate) next_day: bool,
    /// When it expires by itself, if it does so before the day's end.
    pub(crate) expiry: Option<ScheduleKey>,
}

impl Order {
    pub(crate) fn new(record: OrderRecord, arrival: TsNanos) -> Self {
        Self {
            after: record.ts_submitted,
            record,
            arrival,
            reserved: Money::ZERO,
            worst: DailyLimits::default(),
            sequence: 0,
            standing: Standing::Nowhere,
            queue_left: Quantity::ZERO,
            auction: None,
            funari: false,
            next_day: false,
            expiry: None,
        }
    }

    pub(crate) fn is_buy(&self) -> bool {
        self.record.request.side == OrderSide::Buy
    }

    /// Whether it is a stop that still waits for its trigger.
    pub(crate) fn waits_for_trigger(&self) -> bool {
        is_stop(&self.record.request) && self.record.ts_triggered.is_none()
    }

    /// F1: strictly later than the event behind the order, and not before its arrival.
    pub(crate) fn may_match_at(&self, ts_event: TsNanos) -> bool {
        ts_event > self.after && ts_event >= self.arrival
    }

    /// An order that comes after a session's close is too late for its closing auction (F6).
    pub(crate) fn miss_late_prints(&mut self, hours: TradingHours, now: TsNanos) {
        let first = hours.not_before(now);
        if first > now {
            self.after = self.after.max(first);
        }
    }

    /// The last date on which it lives, in days since 1970 in Japan, for GTD orders.
    pub(crate) fn last_day(&self) -> Option<u64> {
        let is_gtd = self.record.request.time_in_force == TimeInForce::Gtd;
        self.record.request.expire_time.filter(|_| is_gtd).map(TsNanos::jst_day)
    }

    /// Whether it ends with the trading day that ends at `now` (F6).
    pub(crate) fn ends_with_day(&self, now: TsNanos) -> bool {
        !self.next_day && self.last_day().is_none_or(|last| last <= now.jst_day())
    }

    /// Moves it to its next state, at a time.
    pub(crate) fn take(
        &mut self,
        trigger: OrderTrigger,
        now: TsNanos,
    ) -> Result<(), IllegalTransition> {
        (self.record.status, _) = self.record.status.transition(trigger)?;
        self.record.ts_last = now;
        Ok(())
    }
}

pub(crate) fn is_stop(request: &OrderRequest) -> bool {
    matches!(request.order_type, OrderType::StopMarket | OrderType::StopLimit)
}
