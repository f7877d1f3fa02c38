//! What strategies hold by their orders at the broker, and what a person decides about it (specification 4, P124,
//! P125).

use domain::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Decimal, RequestId, ShareCount, Text};

/// Decides an order whose answer was lost; answered by an [`OrderSettled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["request_id", "client_order_id", "origin", "venue_order_id"]))]
pub struct SettleOrder {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The id of the order on the wire.
    pub client_order_id: String,
    /// Who sent the order.
    pub origin: Origin,
    /// The broker's number of the order; null says that the broker does not have it. It must be there, because
    /// null lets the order be sent again.
    #[serde(deserialize_with = "text_or_null")]
    pub venue_order_id: Option<String>,
}

/// A field that must be there, also where it is null.
fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

/// Asks what strategies hold; answered by [`StrategyPositions`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStrategyPositions {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Corrects what a strategy holds while it does not run; answered by a [`StrategyPositionAdjusted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdjustStrategyPosition {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Name of the strategy, 1 to 64 characters.
    pub strategy_id: String,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: String,
    /// Shares bought with cash that it holds from now on; `0` for none.
    pub quantity: ShareCount,
    /// What one of them cost in yen, fees not counted; without meaning for no shares.
    pub average_price: Decimal,
    /// Why, in words: one line of 1 to 200 characters.
    pub why: String,
}

/// Shares of one instrument that a strategy holds by the fills of its orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyPosition<'a> {
    /// Name of the strategy.
    pub strategy_id: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Shares bought with cash.
    pub quantity: ShareCount,
    /// What one of them cost in yen, fees not counted; null for no shares.
    pub average_price: Option<Decimal>,
    /// Shares of its orders with margin tags: bought less sold.
    #[serde(with = "crate::decimal::whole_text")]
    #[schemars(with = "String", extend("pattern" = "^-?[0-9]+$"))]
    pub margin_quantity: i64,
}

/// Answers a [`GetStrategyPositions`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyPositions<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// One row for each strategy and instrument of which it holds shares.
    pub positions: Vec<StrategyPosition<'a>>,
}

/// Answers an [`AdjustStrategyPosition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyPositionAdjusted<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// What the strategy holds now.
    pub position: StrategyPosition<'a>,
}

/// Answers a [`SettleOrder`]. What it means for the order is told by its own events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrderSettled<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The id of the order on the wire.
    pub client_order_id: Text<'a>,
}
