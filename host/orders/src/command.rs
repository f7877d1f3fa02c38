//! Commands of the order desk, in types of `domain`.
//!
//! A client's texts are decoded before. If one is wrong, the command carries the rejection, and the desk sends
//! it in the order of its checks.

use domain::{
    InstrumentId, Money, OrderFilter, OrderModify, OrderOrigin, OrderRequest, OrderSide, Origin,
    Quantity, Rejection, Secret, ShortText,
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
    /// Prepare the start of a strategy's run with real orders (specification 4, P104, P105, P107). The answer is
    /// [`crate::event::StrategyEvent::TakenOver`].
    TakeOver(ShortText),
    /// Note which strategy's run with real orders is under way, or begins; none after its end (specification 4,
    /// P122).
    StrategyRuns(Option<ShortText>),
    /// Cancel a strategy's own orders, and report what is left once all have ended, or after 30 s (specification
    /// 4, P86). The answer is [`crate::event::StrategyEvent::OwnOrders`].
    CancelOwn(ShortText),
    /// Report a strategy's orders that work or whose outcome is unknown (specification 4, P127). The answer is
    /// [`crate::event::StrategyEvent::OwnOrders`].
    OwnOrders(ShortText),
    /// Decide an order whose answer was lost (specification 4, P124).
    Settle(SettleOrder),
    /// Report what strategies hold (specification 4, P125).
    Holdings,
    /// Correct what a strategy holds (specification 4, P125).
    Adjust(Adjustment),
}

/// A person's decision about an order whose answer was lost (specification 4, P124).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleOrder {
    /// Whose order it is: a strategy's id is not needed, because no two orders of strategies have the same id.
    pub origin: Origin,
    /// The caller's id of it.
    pub client_order_id: ShortText,
    /// The broker's number; none: the broker does not have the order.
    pub venue_order_id: Option<ShortText>,
}

/// A person's correction of what a strategy holds: a split, a sale by hand, a transfer (specification 4, P125).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjustment {
    /// The strategy.
    pub strategy_id: ShortText,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Shares that it holds from now on.
    pub quantity: Quantity,
    /// What they cost, fees not counted.
    pub cost: Money,
    /// Why, in words, on one line.
    pub why: String,
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
///
/// The caller's id reaches the orders of its own kind of sender only, the broker's number those of all
/// (specification 4, P94).
#[derive(Debug, Clone)]
pub struct NamedOrder {
    /// The kind of the sender whose order the caller's id names.
    pub origin: Origin,
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
