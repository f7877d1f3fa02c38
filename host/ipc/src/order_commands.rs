//! Commands about orders and the second password (specification 2, "Endpoints").

use domain::request_key::RequestShape;
use domain::{OrderSide, OrderType, Secret, TimeInForce};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RequestId;

/// Gives the engine the second password. It can be read but not written: see [`Secret`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSecondPassword {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The second password; the engine never writes or shows it.
    pub value: Secret,
}

/// Makes the engine forget the second password at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetSecondPassword {
    /// The command's id; it may be missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// Sends an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitOrder {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// `web_broker`, `local_broker` or `replay`.
    pub venue: String,
    /// The order to send.
    pub order: SubmitOrderRequest,
}

/// An order from a client. Numbers keep the texts that the client sent, because the request key
/// comes from these texts. The engine checks and rounds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitOrderRequest {
    /// Chosen by the caller: 1 to 36 printable ASCII characters, unique in one strategy instance.
    pub client_order_id: String,
    /// `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: String,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub order_side: OrderSide,
    /// `MARKET`, `LIMIT`, `STOP_MARKET` and so on (specification 2, "Order type mapping").
    pub order_type: OrderType,
    /// Shares: a positive whole number.
    pub quantity: String,
    /// Limit price in yen, for `LIMIT` and `STOP_LIMIT`.
    #[serde(default)]
    pub price: Option<String>,
    /// Trigger price in yen, for `STOP_MARKET` and `STOP_LIMIT`.
    #[serde(default)]
    pub trigger_price: Option<String>,
    /// Price that triggers a stop: `LAST`, or null (specification 2, "Resources and their fields"). The engine
    /// takes any text and refuses another one as not offered by the venue.
    #[serde(default)]
    pub trigger_type: Option<String>,
    /// `DAY`, `GTD`, `AT_THE_OPEN` and so on (specification 2, "Time in force mapping").
    pub time_in_force: TimeInForce,
    /// End of life in nanoseconds UTC, for `GTD`.
    #[serde(default)]
    pub expire_time_ns: Option<u64>,
    /// Reject it instead of taking liquidity.
    pub post_only: bool,
    /// Reject it instead of opening or turning a position.
    pub reduce_only: bool,
    /// `key=value` texts for the venue.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
}

impl SubmitOrderRequest {
    /// The key of what is asked for (specification 2, "request_key rules"), over the texts as sent.
    #[must_use]
    pub fn request_key(&self) -> u64 {
        let expire_time_ns = self.expire_time_ns.map(|nanos| nanos.to_string());
        RequestShape {
            instrument_id: &self.instrument_id,
            order_side: self.order_side.as_str(),
            order_type: self.order_type.as_str(),
            quantity: &self.quantity,
            price: self.price.as_deref(),
            trigger_price: self.trigger_price.as_deref(),
            trigger_type: self.trigger_type.as_deref(),
            time_in_force: self.time_in_force.as_str(),
            expire_time_ns: expire_time_ns.as_deref(),
            post_only: self.post_only,
            reduce_only: self.reduce_only,
            tags: self.tags.iter().flatten().map(String::as_str).collect(),
        }
        .key()
    }
}

/// Changes a working order. When both ids are given, `client_order_id` wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModifyOrder {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// The caller's id of the order.
    #[serde(default)]
    pub client_order_id: Option<String>,
    /// The venue's number, for an order placed elsewhere.
    #[serde(default)]
    pub venue_order_id: Option<String>,
    /// The fields that change; at least one (specification 4, P16).
    pub change: OrderModifyChange,
}

/// New values of an order; null means unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderModifyChange {
    /// New total quantity in shares.
    #[serde(default)]
    pub new_quantity: Option<String>,
    /// New limit price in yen.
    #[serde(default)]
    pub new_price: Option<String>,
    /// New trigger price in yen.
    #[serde(default)]
    pub new_trigger_price: Option<String>,
    /// New end of life in nanoseconds UTC.
    #[serde(default)]
    pub new_expire_time_ns: Option<u64>,
}

/// Cancels a working order. When both ids are given, `client_order_id` wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelOrder {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// The caller's id of the order.
    #[serde(default)]
    pub client_order_id: Option<String>,
    /// The venue's number, for an order placed elsewhere.
    #[serde(default)]
    pub venue_order_id: Option<String>,
}

/// Cancels every open order, or those of one instrument or side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelAllOrders {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// Only orders of this instrument (`7203.TSE`); null for all.
    #[serde(default)]
    pub instrument_id: Option<String>,
    /// Only orders of this side, `BUY` or `SELL`; null for both.
    #[serde(default)]
    pub order_side: Option<OrderSide>,
}

/// Asks for the orders of a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetOrderList {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// Which orders; missing means all.
    #[serde(default)]
    pub filter: OrderListFilter,
}

/// Which orders a list holds; null means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderListFilter {
    /// An order status, by its name.
    #[serde(default)]
    pub status: Option<String>,
    /// Only orders of this instrument (`7203.TSE`); null for all.
    #[serde(default)]
    pub instrument_id: Option<String>,
    /// A date in Japan, `YYYYMMDD`; null means the current day, in a replay the whole run.
    #[serde(default)]
    pub date: Option<String>,
}
