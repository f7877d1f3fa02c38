//! One order in a list of orders (specification 2, `OrderRecordWire`).

use domain::Origin;
use domain::{OrderSide, OrderStatus, OrderType, TimeInForce};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Decimal, ShareCount, Text};

/// An order as a venue knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrderRecordWire<'a> {
    /// The caller's id; null for an order placed elsewhere.
    pub client_order_id: Option<Text<'a>>,
    /// The venue's number.
    pub venue_order_id: Text<'a>,
    /// `<symbol>.TSE`.
    pub instrument_id: Text<'a>,
    /// Which way.
    pub order_side: OrderSide,
    /// How it finds its price.
    pub order_type: OrderType,
    /// Shares asked for.
    pub quantity: ShareCount,
    /// Shares done.
    pub filled_qty: ShareCount,
    /// Shares still open.
    pub leaves_qty: ShareCount,
    /// Limit price in yen.
    pub price: Option<Decimal>,
    /// Trigger price in yen.
    pub trigger_price: Option<Decimal>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// End of life in nanoseconds UTC.
    pub expire_time_ns: Option<u64>,
    /// Where it stands.
    pub status: OrderStatus,
    /// The venue's time of the order in milliseconds UTC.
    pub ts_event_ms: u64,
    /// Official fields that have no place of their own; rows of `local_broker` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
    /// Who sent it; rows of a replay only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}
