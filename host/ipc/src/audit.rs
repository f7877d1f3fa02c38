//! Lines of the audit log (specification 2, "Audit log"; pins P19, P22, P23, P79, P101, P125, P130): what was
//! submitted, accepted, rejected and filled, and what strategies hold by it. A log outlives the program that wrote it, so readers pass over fields that
//! they do not know.

use domain::{OrderSide, OrderStatus, OrderType, ReasonCode, TimeInForce};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decimal, Origin, ShareCount, Text};

/// One line; `phase` says its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum AuditLine<'a> {
    /// The engine is about to send an order.
    Submit(AuditSubmit<'a>),
    /// The venue gave an order its number.
    Accepted(AuditAccepted<'a>),
    /// An order that had been sent was rejected.
    Rejected(AuditRejected<'a>),
    /// The engine is about to report a fill; after a restart it does not report it again.
    Filled(AuditFilled<'a>),
    /// The session at the broker has expired.
    SessionExpired(AuditSessionExpired),
    /// An order of a strategy has ended; a restart does not take it for a working one.
    Ended(AuditEnded<'a>),
    /// A person has corrected what a strategy holds.
    Adjusted(AuditAdjusted<'a>),
}

/// Who sent the order: absent in lines about orders of people at a broker. And, in a replay session, the time
/// outside of the replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditContext<'a> {
    /// Who sent the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The strategy that sent it, at a broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
    /// When the line was written, in milliseconds UTC; `ts` is virtual there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

/// The engine is about to send an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditSubmit<'a> {
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts: u64,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// The key of the order's fields; see specification 2, "request_key rules".
    pub request_key: u64,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub order_side: OrderSide,
    /// `MARKET`, `LIMIT`, `STOP_MARKET` and so on (specification 2, "Order type mapping").
    pub order_type: OrderType,
    /// Shares of the order, a whole number.
    pub quantity: ShareCount,
    /// Limit price in yen; this and the next three find the order again in the broker's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Decimal>,
    /// Trigger price in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_price: Option<Decimal>,
    /// `DAY`, `GTD`, `AT_THE_OPEN` and so on (specification 2, "Time in force mapping").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_in_force: Option<TimeInForce>,
    /// End of life in nanoseconds UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_time_ns: Option<u64>,
    /// Version of the key; 1 when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key_version: Option<u32>,
    /// True in an order of a strategy that trades on margin; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub margin: bool,
    /// Who sent the order.
    #[serde(flatten)]
    pub context: AuditContext<'a>,
}

/// The venue gave an order its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditAccepted<'a> {
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts: u64,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// The venue's number of the order, unique at the venue.
    pub venue_order_id: Option<Text<'a>>,
    /// Number of the request that reported it.
    pub p_no: u64,
    /// The venue's business day of the order, without which its number is not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_day: Option<Text<'a>>,
    /// A warning of the venue.
    pub warning_code: Option<Text<'a>>,
    /// The warning in words, for people.
    pub warning_text: Option<Text<'a>>,
    /// Version of the key of the order's submit line; 1 when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key_version: Option<u32>,
    /// Who sent the order.
    #[serde(flatten)]
    pub context: AuditContext<'a>,
}

/// An order that had been sent was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditRejected<'a> {
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts: u64,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// Why, as a code of the closed list (specification 2, "Errors").
    pub reason_code: ReasonCode,
    /// Why, in one line of at most 512 characters (specification 2, "Errors").
    pub reason_text: Text<'a>,
    /// Version of the key of the order's submit line; 1 when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key_version: Option<u32>,
    /// Who sent the order.
    #[serde(flatten)]
    pub context: AuditContext<'a>,
}

/// A fill is about to be told. The order is known by its number and the time at which it was placed, because
/// numbers begin again on another day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditFilled<'a> {
    /// Time of the fill in milliseconds since 1970 UTC.
    pub ts: u64,
    /// The caller's id of the order; null for an order placed elsewhere.
    pub client_order_id: Option<Text<'a>>,
    /// The venue's number of the order.
    pub venue_order_id: Text<'a>,
    /// When the order was placed, in milliseconds since 1970 UTC.
    pub order_ts: u64,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Business day of the notice that told the fill, where it said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_day: Option<Text<'a>>,
    /// True where the broker's details of the order told the fill and no notice had; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_details: bool,
    /// The venue's number of the fill, unique together with that of the order and the business day; where
    /// details told it, a number of our own.
    pub trade_id: Text<'a>,
    /// Shares of this fill, a whole number.
    pub last_qty: ShareCount,
    /// Price of this fill in yen per share.
    pub last_price: Decimal,
    /// Side of the order, where a strategy sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_side: Option<OrderSide>,
    /// True where a strategy's order trades on margin; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub margin: bool,
    /// Shares that count for the strategy, where the broker told more than the order had left; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_qty: Option<ShareCount>,
    /// Who sent the order.
    #[serde(flatten)]
    pub context: AuditContext<'a>,
}

/// The session at the broker has expired; written once, before the orders that it rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditSessionExpired {
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts: u64,
}

/// An order of a strategy has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditEnded<'a> {
    /// Time of the event in milliseconds since 1970 UTC.
    pub ts: u64,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// `CANCELED`, `EXPIRED` or `FILLED`.
    pub status: OrderStatus,
    /// Who sent the order.
    #[serde(flatten)]
    pub context: AuditContext<'a>,
}

/// A person has corrected what a strategy holds of one instrument (pin P125).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditAdjusted<'a> {
    /// Time of the correction in milliseconds since 1970 UTC.
    pub ts: u64,
    /// The strategy.
    pub strategy_id: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Shares bought with cash that it holds from now on.
    pub quantity: ShareCount,
    /// What they cost in yen, fees not counted.
    pub cost: Decimal,
    /// Why, in words.
    pub why: Text<'a>,
}
