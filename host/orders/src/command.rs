//! Commands of the order desk, in types of `domain`.
//!
//! A client's texts are decoded before. If one is wrong, the command carries the rejection, and the desk sends
//! it in the order of its checks.

use domain::{
    OrderFilter, OrderModify, OrderOrigin, OrderRequest, OrderSide, Rejection, Secret, ShortText,
};

/// A command for the desk.
#[derive(Debug)]
pub enum DeskCommand {
    /// Send an order.
    Submit(NewOrder),
    /// Change an order.
    Modify(OrderChange),
    /// Cancel an order.
    Cancel(NamedOrder),
    /// Cancel many orders.
    CancelAll(CancelMany),
    /// Send the rows of the broker's order list that pass a filter.
    OrderList(Result<OrderFilter, Rejection>),
    /// Send the buying power.
    BuyingPower,
    /// Send the positions.
    Positions,
    /// Hold the second password.
    SetSecondPassword(Secret),
    /// Forget it.
    ForgetSecondPassword,
    /// Log in at the broker; the command may have no id.
    Login(Option<String>),
    /// Send the state of the venue.
    VenueState,
}

/// A new order.
#[derive(Debug, Clone)]
pub struct NewOrder {
    /// Who sends it.
    pub origin: OrderOrigin,
    /// The caller's id of it, as it was sent.
    pub client_order_id: ShortText,
    /// The key of the request, over the texts as they were sent (specification 4, P35).
    pub request_key: u64,
    /// The order, its instrument by its position in the desk's table; or the rejection of its texts.
    pub request: Result<OrderRequest, Rejection>,
}

/// An order by its ids; the caller's own id takes precedence.
#[derive(Debug, Clone, Default)]
pub struct NamedOrder {
    /// The caller's id.
    pub client_order_id: Option<String>,
    /// The broker's number.
    pub venue_order_id: Option<String>,
}

impl NamedOrder {
    /// Both ids, the caller's first.
    pub(crate) fn ids(&self) -> (Option<&str>, Option<&str>) {
        (self.client_order_id.as_deref(), self.venue_order_id.as_deref())
    }
}

/// A change of an order.
#[derive(Debug, Clone)]
pub struct OrderChange {
    /// Which order.
    pub order: NamedOrder,
    /// The fields that change, or the rejection of their texts.
    pub change: Result<OrderModify, Rejection>,
}

/// Which orders a cancel of many ends.
#[derive(Debug, Clone, Default)]
pub struct CancelMany {
    /// Only orders of this person or strategy. `None`: all orders, also those placed elsewhere.
    pub origin: Option<OrderOrigin>,
    /// Only orders of this instrument, like `7203.TSE`.
    pub instrument_id: Option<String>,
    /// Only orders of this side.
    pub side: Option<OrderSide>,
}
