//! Lines of a run's `events.jsonl` (specification 2, "Events"). Events of orders and signals are those
//! of a connection; fills and positions have lines of their own, with the numbers of the order.

use domain::OrderSide;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Decimal, OrderAccepted, OrderCanceled, OrderExpired, OrderFilled, OrderPendingCancel,
    OrderPendingUpdate, OrderRejected, OrderSubmitted, ShareCount, StrategySignal, Text,
};

/// One line, told apart by `event`, in the order of their events. A change that was taken
/// has no event in the specification and so no line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum EventLine<'a> {
    /// An order was taken.
    OrderSubmitted(OrderSubmitted<'a>),
    /// An order has a number.
    OrderAccepted(OrderAccepted<'a>),
    /// An order, a change or a cancel was rejected.
    OrderRejected(OrderRejected<'a>),
    /// A change was sent.
    OrderPendingUpdate(OrderPendingUpdate<'a>),
    /// A cancel was sent.
    OrderPendingCancel(OrderPendingCancel<'a>),
    /// An order is cancelled.
    OrderCanceled(OrderCanceled<'a>),
    /// An order's time ran out.
    OrderExpired(OrderExpired<'a>),
    /// An order was filled.
    OrderFilled(OrderFilled<'a>),
    /// A fill, for charts; follows its order's event.
    ExecutionMarker(ExecutionMarkerLine<'a>),
    /// A position was opened; follows its fill.
    PositionOpened(PositionOpenedLine<'a>),
    /// A position was closed; follows its fill.
    PositionClosed(PositionClosedLine<'a>),
    /// A mark of the strategy.
    StrategySignal(StrategySignal<'a>),
}

/// A fill, with the numbers of its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExecutionMarkerLine<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// The venue's number of the order.
    pub venue_order_id: Text<'a>,
    /// The fill's number, unique together with the venue's number of the order.
    pub trade_id: Text<'a>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub order_side: OrderSide,
    /// Shares of this fill, a whole number.
    pub quantity: ShareCount,
    /// Price of this fill in yen per share, exact to 1/10,000.
    pub price: Decimal,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// A position went from nothing to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionOpenedLine<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// The order whose fill did it.
    pub client_order_id: Text<'a>,
    /// Bought first (long), or sold first (short).
    pub entry_side: OrderSide,
    /// Shares held after it, below zero when sold first.
    #[serde(with = "crate::decimal::whole_text")]
    #[schemars(with = "String", extend("pattern" = "^-?[0-9]+$"))]
    pub quantity: i64,
    /// Yen per share of the fill.
    pub price: Decimal,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// A position went back to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionClosedLine<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// The order whose fill did it.
    pub client_order_id: Text<'a>,
    /// Bought first (long), or sold first (short).
    pub entry_side: OrderSide,
    /// Yen per share of the fill.
    pub price: Decimal,
    /// Profit or loss of the whole position in yen, fees taken off.
    pub realised_pnl: Option<Decimal>,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}
