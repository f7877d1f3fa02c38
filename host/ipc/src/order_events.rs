//! Events about orders (specification 2, "Events"; pins P9 to P14, P71, P78). Their fields stand in
//! the specification's order; what only a message has, and a line of a log has not, comes after.

use domain::strategy::SignalKind;
use domain::{Discrepancy, OrderSide, ReasonCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decimal, OrderRecordWire, Origin, ShareCount, Text};

/// Which order and which command an event of an order belongs to; absent where a venue or a log does
/// not tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderContext<'a> {
    /// The command that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue: Option<Text<'a>>,
    /// Who sent the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The strategy that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
    /// The order's instrument as `<symbol>.<venue>`, like `7203.TSE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument_id: Option<Text<'a>>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_side: Option<OrderSide>,
}

/// Declares an event of an order: the caller's id in front, its own fields, time and context behind.
macro_rules! order_event {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct $name<'a> {
            /// The caller's id of the order; null for an order placed elsewhere.
            pub client_order_id: Option<Text<'a>>,
            $($(#[$field_meta])* pub $field: $type,)*
            /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
            pub ts_event_ms: u64,
            /// Which order and command it belongs to.
            #[serde(flatten)]
            pub context: OrderContext<'a>,
        }
    };
}

order_event! {
    /// Taken by the engine; told before the venue is asked.
    OrderSubmitted {}
}

order_event! {
    /// The venue gave it a number.
    OrderAccepted {
        /// The venue's number of the order, unique at the venue.
        venue_order_id: Option<Text<'a>>,
    }
}

order_event! {
    /// Rejected, by the engine or by the venue. Without a `client_order_id`: a command that
    /// names no order was refused.
    OrderRejected {
        /// Why, as a code of the closed list (specification 2, "Errors").
        reason_code: ReasonCode,
        /// Why, in one line of at most 512 characters (specification 2, "Errors").
        reason_text: Text<'a>,
    }
}

order_event! {
    /// A change was sent.
    OrderPendingUpdate {}
}

order_event! {
    /// A cancel was sent.
    OrderPendingCancel {}
}

order_event! {
    /// It ended by a cancel.
    OrderCanceled {
        /// The venue's number of the order, unique at the venue.
        venue_order_id: Option<Text<'a>>,
    }
}

order_event! {
    /// Its time ran out.
    OrderExpired {
        /// The venue's number of the order, unique at the venue.
        venue_order_id: Option<Text<'a>>,
    }
}

order_event! {
    /// Filled, wholly or, with `leaves_qty` above 0, partly.
    OrderFilled {
        /// The venue's number of the order, unique at the venue.
        venue_order_id: Option<Text<'a>>,
        /// The fill's number, unique together with the venue's.
        trade_id: Text<'a>,
        /// Shares of this fill.
        last_qty: ShareCount,
        /// Yen per share of this fill.
        last_price: Decimal,
        /// Shares filled so far, this fill included.
        cumulative_qty: ShareCount,
        /// Shares still open, a whole number.
        leaves_qty: ShareCount,
        /// The same time in nanoseconds since 1970 UTC; in a replay and on paper only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ts_event_ns: Option<u64>,
    }
}

order_event! {
    /// A change was taken; the order is now this.
    OrderUpdated {
        /// The venue's number of the order, unique at the venue.
        venue_order_id: Option<Text<'a>>,
        /// Shares of the order after the change, filled ones included.
        quantity: ShareCount,
        /// Limit price in yen.
        price: Option<Decimal>,
        /// Trigger price in yen.
        trigger_price: Option<Decimal>,
        /// End of life in nanoseconds UTC.
        expire_time_ns: Option<u64>,
    }
}

/// Whether an order's id is new among the orders of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SubmitOutcome {
    /// The id was new, and the order is accepted.
    Created,
    /// The same order had been sent before.
    IdempotentReplay,
}

/// Answers a [`crate::SubmitOrder`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SubmitOrderResult<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// Whether the order is a new one.
    pub outcome: SubmitOutcome,
    /// The order's status, by its name.
    pub status: domain::OrderStatus,
    /// The venue's number; null while it is unknown.
    pub venue_order_id: Option<Text<'a>>,
    /// A warning, like `order_status_unknown` or `unknown_tag`.
    pub warning_code: Option<Text<'a>>,
    /// The warning in words, for people.
    pub warning_text: Option<Text<'a>>,
}

/// Ends a [`crate::CancelAllOrders`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CancelAllResult<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// Orders that were cancelled.
    pub canceled_count: u64,
    /// Orders that were not.
    pub failed_count: u64,
}

/// Answers a [`crate::GetOrderList`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrderListUpdated<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The orders, as they came in.
    pub orders: Vec<OrderRecordWire<'a>>,
    /// Whether another frame of the same list follows; in a replay only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// Number of the first order of the next frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A command needs the second password, and none is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SecondPasswordRequired<'a> {
    /// The command that needs it.
    pub request_id: Text<'a>,
}

/// Answers a [`crate::SetSecondPassword`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SecondPasswordSet<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
}

/// Marks a fill in a chart; follows its [`OrderFilled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExecutionMarker<'a> {
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// Who sent the order.
    pub origin: Origin,
    /// The caller's id of the order.
    pub client_order_id: Text<'a>,
    /// The fill's number, unique together with the venue's number of the order.
    pub trade_id: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Side of the order, `BUY` or `SELL` (specification 2, "Side mapping").
    pub side: OrderSide,
    /// Price of this fill in yen per share, exact to 1/10,000.
    pub price: Decimal,
    /// Shares of this fill, a whole number.
    pub qty: ShareCount,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// A mark that a strategy sets in a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategySignal<'a> {
    /// The strategy; absent in a run's log, which has one strategy only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// What it says.
    pub signal_kind: SignalKind,
    /// Side that the strategy means, `BUY` or `SELL`; null where it gives none.
    pub side: Option<OrderSide>,
    /// A price in yen.
    pub price: Option<Decimal>,
    /// A short text.
    pub tag: Option<Text<'a>>,
    /// A longer text.
    pub note: Option<Text<'a>>,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// Tells a [`Discrepancy`], once for each order and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrderDiscrepancy<'a> {
    /// The venue: `web_broker` or `local_broker`.
    pub venue: Text<'a>,
    /// The caller's id of the order; null for an order placed elsewhere.
    pub client_order_id: Option<Text<'a>>,
    /// The venue's number of the order, where it is known.
    pub venue_order_id: Option<Text<'a>>,
    /// What does not fit.
    pub discrepancy: Discrepancy,
    /// The same in words, with the numbers.
    pub message: Text<'a>,
    /// Time of the message in milliseconds since 1970 UTC.
    pub ts_event_ms: u64,
}
