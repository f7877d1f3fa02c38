//! One order in a list of orders (specification 2, `OrderRecordWire`).

use domain::Origin;
use domain::{OrderSide, OrderStatus, OrderType, TimeInForce, TriggerType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Decimal, ShareCount, Text};

/// An order without a number of the venue: it is on its way, or ended on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SubmittedOrder<'a> {
    /// The sender's id.
    pub client_order_id: Text<'a>,
    /// Who sent it.
    pub origin: Origin,
    /// The instrument, `<symbol>.TSE`.
    pub instrument_id: Text<'a>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub order_side: OrderSide,
    /// `MARKET`, `LIMIT`, `STOP_MARKET` and so on (specification 2, "Order type mapping").
    pub order_type: OrderType,
    /// Shares of the order, a whole number.
    pub quantity: ShareCount,
    /// Limit price in yen.
    pub price: Option<Decimal>,
    /// Trigger price in yen.
    pub trigger_price: Option<Decimal>,
    /// `DAY`, `GTD`, `AT_THE_OPEN` and so on (specification 2, "Time in force mapping").
    pub time_in_force: TimeInForce,
    /// End of life in nanoseconds UTC.
    pub expire_time_ns: Option<u64>,
    /// Name of its status (specification 2, "Order status mapping").
    pub status: OrderStatus,
    /// When it was sent, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// An order as a venue knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrderRecordWire<'a> {
    /// The caller's id; null for an order placed elsewhere.
    pub client_order_id: Option<Text<'a>>,
    /// The venue's number of the order, unique at the venue.
    pub venue_order_id: Text<'a>,
    /// The instrument, `<symbol>.TSE`.
    pub instrument_id: Text<'a>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub order_side: OrderSide,
    /// `MARKET`, `LIMIT`, `STOP_MARKET` and so on (specification 2, "Order type mapping").
    pub order_type: OrderType,
    /// Shares of the order, filled ones included; a whole number.
    pub quantity: ShareCount,
    /// Shares filled so far, a whole number.
    pub filled_qty: ShareCount,
    /// Shares still open, a whole number.
    pub leaves_qty: ShareCount,
    /// Limit price in yen.
    pub price: Option<Decimal>,
    /// Trigger price in yen.
    pub trigger_price: Option<Decimal>,
    /// `DAY`, `GTD`, `AT_THE_OPEN` and so on (specification 2, "Time in force mapping").
    pub time_in_force: TimeInForce,
    /// End of life in nanoseconds UTC.
    pub expire_time_ns: Option<u64>,
    /// Name of its status (specification 2, "Order status mapping").
    pub status: OrderStatus,
    /// The venue's time of the order in milliseconds UTC.
    pub ts_event_ms: u64,
    /// `LAST` where the order has a stop; rows of `web_broker` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<TriggerType>,
    /// Tags of the broker's row (specification 2, "Venue tag registry"), where it has any; rows of `web_broker`
    /// only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Text<'a>>,
    /// Official fields that have no field of their own; rows of `local_broker` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
    /// Who sent it; only in rows of a run and in rows of strategies' orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The strategy that sent it, at a broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
}
