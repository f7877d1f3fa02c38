//! Money and positions: what is asked for and what is told (specification 2, "Replay and strategy
//! data"; pins P57, P74, P76, P77). Amounts are yen.

use domain::OrderSide;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decimal, RequestId, ShareCount, Text};

/// Asks for the buying power; a replay answers with [`ReplayBuyingPower`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetBuyingPower {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
}

/// Asks for the positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetPositions {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
}

/// The buying power at a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BuyingPowerUpdated<'a> {
    /// The command's id; null without a command.
    pub request_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// Yen that cash orders may spend (specification 4, P57); null where the broker sends null.
    pub cash_available: Option<Decimal>,
    /// Yen that are missing to settle; null where the broker sends null.
    pub cash_shortfall: Option<Decimal>,
    /// Yen that margin orders may spend (specification 4, P57); null where the broker sends null.
    pub credit_available: Option<Decimal>,
    /// Time of the message in milliseconds since 1970 UTC.
    pub ts_ms: u64,
}

/// The account of a replay: settled cash, of which open orders take nothing away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayBuyingPower<'a> {
    /// The command's id; missing without a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// `replay`.
    pub venue: Text<'a>,
    /// Cash in yen, exact to 1/10,000; money reserved for open orders is part of it.
    pub cash: Decimal,
    /// The same: only cash is modelled.
    pub buying_power: Decimal,
    /// Cash and the positions at their last trade, in yen, exact to 1/10,000.
    pub equity: Decimal,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// All positions at a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionsUpdated<'a> {
    /// The command's id; null without a command.
    pub request_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The positions.
    pub positions: Vec<PositionRow<'a>>,
    /// Time of the message in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_ms: u64,
}

/// One position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionRow<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Shares held, a whole number.
    pub qty: ShareCount,
    /// Average price of the shares held, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_open_price: Option<Decimal>,
    /// Value of the shares in yen at the last price.
    pub market_value: Option<Decimal>,
    /// Profit or loss in yen at the last price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrealized_pnl: Option<Decimal>,
    /// Side that the position is held on: `BUY` for shares held (specification 4, P74).
    pub side: OrderSide,
    /// `cash`, `margin_credit`, `margin_general`, or `derivative` of futures and options.
    pub position_type: Text<'a>,
    /// The broker's number of a margin position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tategyoku_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
}

/// A position went from nothing to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionOpened<'a> {
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// `<instrument_id>-<n>`.
    pub position_id: Text<'a>,
    /// Side that the position is held on: `BUY` for shares held (specification 4, P74).
    pub side: OrderSide,
    /// Shares of the fill that opened it.
    pub opened_qty: ShareCount,
    /// Average price in yen per share, rounded half to even at 4 decimals.
    pub avg_open_price: Decimal,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// A position went back to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionClosed<'a> {
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// `<instrument_id>-<n>`.
    pub position_id: Text<'a>,
    /// Side that the position was held on: `BUY` for shares held (specification 4, P74).
    pub side: OrderSide,
    /// Shares bought over its life.
    pub opened_qty: ShareCount,
    /// Average price of what was bought in yen per share.
    pub avg_open_price: Decimal,
    /// Average price of what was sold in yen per share.
    pub avg_close_price: Decimal,
    /// Profit or loss in yen, commission taken off.
    pub realized_pnl: Decimal,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}
