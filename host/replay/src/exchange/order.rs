//! One order as the exchange keeps it.

use std::sync::Arc;

use domain::order::{OrderTrigger, TransitionError};
use domain::session::TradingHours;
use domain::{
    Money, OrderRequest, OrderSide, OrderStatus, OrderType, Price, Quantity, Rejection,
    TimeInForce, TsNanos,
};

/// Number of an order: how many were sent before it. Never used again.
pub(super) type OrderIx = u32;

/// A key of what becomes due by itself.
pub(super) type DueKey = (TsNanos, u64);

/// Where an order stands at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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

/// One order, from its sending to its end.
#[derive(Debug, Clone)]
pub struct Order {
    /// How many orders were sent before it.
    pub number: u32,
    /// The request, with the changes that were accepted.
    pub request: Arc<OrderRequest>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<Arc<str>>,
    /// Where it stands.
    pub status: OrderStatus,
    /// Shares done.
    pub filled: Quantity,
    /// What the shares done did cost or bring, fees not counted.
    pub filled_value: Money,
    /// Fees of the shares done.
    pub commission: Money,
    /// When it was sent.
    pub ts_submitted: TsNanos,
    /// When something last happened to it.
    pub ts_last: TsNanos,
    /// When its stop was triggered.
    pub ts_triggered: Option<TsNanos>,
    /// Why it was refused.
    pub rejection: Option<Rejection>,
    /// Only trades later than this can match (F1).
    pub(super) after: TsNanos,
    /// When it can be filled first (F1).
    pub(super) arrival: TsNanos,
    /// Money kept back for it.
    pub(super) reserved: Money,
    /// Place in time: smaller is older. A change that loses its place gets a new one.
    pub(super) sequence: u64,
    /// Where it stands at the exchange.
    pub(super) place: Place,
    /// Shares that must trade at its price before it has its turn at a touch (F4).
    pub(super) queue_left: Quantity,
    /// The auction that it waits for (F6).
    pub(super) auction: Option<TsNanos>,
    /// A limit order that turns market in the closing auction (F6).
    pub(super) funari: bool,
    /// Sent for the next trading day, because the present one was over (F6).
    pub(super) next_day: bool,
    /// When it lapses by itself, if it does so before the day's end.
    pub(super) lapse: Option<DueKey>,
}

impl Order {
    pub(super) fn new(request: OrderRequest, now: TsNanos, arrival: TsNanos) -> Self {
        Self {
            number: 0,
            request: Arc::new(request),
            venue_order_id: None,
            status: OrderStatus::Initialized,
            filled: Quantity::ZERO,
            filled_value: Money::ZERO,
            commission: Money::ZERO,
            ts_submitted: now,
            ts_last: now,
            ts_triggered: None,
            rejection: None,
            after: now,
            arrival,
            reserved: Money::ZERO,
            sequence: 0,
            place: Place::Nowhere,
            queue_left: Quantity::ZERO,
            auction: None,
            funari: false,
            next_day: false,
            lapse: None,
        }
    }

    /// Shares still open.
    #[must_use]
    pub fn leaves(&self) -> Quantity {
        self.request.quantity.saturating_sub(self.filled)
    }

    /// Average price of the shares done, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_price(&self) -> Option<Price> {
        let shares = i64::try_from(self.filled.shares()).ok().filter(|shares| *shares > 0)?;
        Some(Price::from_units(self.filled_value.units() / shares))
    }

    pub(super) fn is_buy(&self) -> bool {
        self.request.side == OrderSide::Buy
    }

    /// Whether it is a stop that still waits for its trigger.
    pub(super) fn waits_for_trigger(&self) -> bool {
        is_stop(&self.request) && self.ts_triggered.is_none()
    }

    /// F1: strictly later than the event behind the order, and not before its arrival.
    pub(super) fn may_match_at(&self, ts_event: TsNanos) -> bool {
        ts_event > self.after && ts_event >= self.arrival
    }

    /// An order that comes after a session's close is too late for its closing auction (F6).
    pub(super) fn miss_late_prints(&mut self, hours: TradingHours, now: TsNanos) {
        let first = hours.not_before(now);
        if first > now {
            self.after = self.after.max(first);
        }
    }

    /// The last date on which it lives, in days since 1970 in Japan, for GTD orders.
    pub(super) fn last_day(&self) -> Option<u64> {
        let is_gtd = self.request.time_in_force == TimeInForce::Gtd;
        self.request.expire_time.filter(|_| is_gtd).map(TsNanos::jst_day)
    }

    /// Lets something happen to it, at a time.
    pub(super) fn take(
        &mut self,
        trigger: OrderTrigger,
        now: TsNanos,
    ) -> Result<(), TransitionError> {
        self.status = self.status.next(trigger)?;
        self.ts_last = now;
        Ok(())
    }
}

pub(super) fn is_stop(request: &OrderRequest) -> bool {
    matches!(request.order_type, OrderType::StopMarket | OrderType::StopLimit)
}
