//! One order with everything that is told of it: what its owner, an order list and a result file see.

use std::sync::Arc;

use super::{OrderRequest, OrderStatus, Origin, Rejection};
use crate::money::Money;
use crate::price::{Price, Quantity};
use crate::text::ShortText;
use crate::time::TsNanos;

/// One order, from its sending to its end.
#[derive(Debug, Clone)]
pub struct OrderRecord {
    /// Who it belongs to.
    pub origin: Origin,
    /// Orders of the same origin that were sent before it.
    pub number: u32,
    /// The request, with the changes that were accepted.
    pub request: Arc<OrderRequest>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<ShortText>,
    /// Its state; a final one once it is done.
    pub status: OrderStatus,
    /// Shares filled so far.
    pub filled: Quantity,
    /// Value of the shares filled, in 1/10,000 yen, fees not counted.
    pub filled_value: Money,
    /// Fees of the shares filled, in 1/10,000 yen.
    pub commission: Money,
    /// Time of its sending.
    pub ts_submitted: TsNanos,
    /// Time of its last event.
    pub ts_last: TsNanos,
    /// Time at which its stop was triggered; `None` before that and for other orders.
    pub ts_triggered: Option<TsNanos>,
    /// Why it was rejected.
    pub rejection: Option<Rejection>,
    /// Why it expired before its time was over: `EX_RIGHTS` and the like.
    pub expired_early: Option<&'static str>,
}

impl OrderRecord {
    /// An order that was made and not sent; `now` is the time of both.
    #[must_use]
    pub fn new(
        origin: Origin,
        number: u32,
        request: impl Into<Arc<OrderRequest>>,
        now: TsNanos,
    ) -> Self {
        Self {
            origin,
            number,
            request: request.into(),
            venue_order_id: None,
            status: OrderStatus::Initialized,
            filled: Quantity::ZERO,
            filled_value: Money::ZERO,
            commission: Money::ZERO,
            ts_submitted: now,
            ts_last: now,
            ts_triggered: None,
            rejection: None,
            expired_early: None,
        }
    }

    /// Shares still open.
    #[must_use]
    pub fn leaves(&self) -> Quantity {
        self.request.quantity.saturating_sub(self.filled)
    }

    /// Average price of the shares filled, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_price(&self) -> Option<Price> {
        let shares = i64::try_from(self.filled.shares()).ok().filter(|shares| *shares > 0)?;
        Some(Price::from_units(self.filled_value.units() / shares))
    }
}
