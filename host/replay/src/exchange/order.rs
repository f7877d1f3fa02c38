//! One order as the exchange keeps it.

use std::sync::Arc;

use domain::order::{OrderTrigger, TransitionError};
use domain::{Money, OrderRequest, OrderSide, OrderStatus, Price, Quantity, Rejection, TsNanos};

/// Position of an order in the exchange's list of all orders.
pub(super) type OrderIx = usize;

/// One order, from its sending to its end.
#[derive(Debug, Clone)]
pub struct Order {
    /// The request, with the changes that were accepted.
    pub request: Arc<OrderRequest>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<Arc<str>>,
    /// Where it stands.
    pub status: OrderStatus,
    /// Shares done.
    pub filled: Quantity,
    /// What the shares done did cost or bring.
    pub filled_value: Money,
    /// When it was sent.
    pub ts_submitted: TsNanos,
    /// When something last happened to it.
    pub ts_last: TsNanos,
    /// Why it was refused.
    pub rejection: Option<Rejection>,
    /// Only trades later than this can match (F1).
    pub(super) after: TsNanos,
    /// When it can be filled first (F1).
    pub(super) arrival: TsNanos,
    /// Money kept back for it.
    pub(super) reserved: Money,
    /// The price that the reserve counts with.
    pub(super) worst_price: Price,
    /// Place in time: smaller is older. A change that loses its place gets a new one.
    pub(super) sequence: u64,
}

impl Order {
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
