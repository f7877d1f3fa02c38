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
    /// The command's id.
    pub request_id: RequestId,
    /// Where.
    pub venue: String,
}

/// Asks for the positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetPositions {
    /// The command's id.
    pub request_id: RequestId,
    /// Where.
    pub venue: String,
}

/// The buying power at a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BuyingPowerUpdated<'a> {
    /// The command's id; null when nobody asked.
    pub request_id: Option<Text<'a>>,
    /// Where.
    pub venue: Text<'a>,
    /// What cash orders may spend.
    pub cash_available: Option<Decimal>,
    /// What is missing to settle.
    pub cash_shortfall: Option<Decimal>,
    /// What margin orders may spend.
    pub credit_available: Option<Decimal>,
    /// When, in milliseconds UTC.
    pub ts_ms: u64,
}

/// The account of a replay: settled cash, of which open orders take nothing away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayBuyingPower<'a> {
    /// The command's id, when somebody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// The strategy that runs.
    pub strategy_id: Text<'a>,
    /// `replay`.
    pub venue: Text<'a>,
    /// Cash.
    pub cash: Decimal,
    /// The same: only cash is modelled.
    pub buying_power: Decimal,
    /// Cash and the positions at their last trade.
    pub equity: Decimal,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// All positions at a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionsUpdated<'a> {
    /// The command's id; null when nobody asked.
    pub request_id: Option<Text<'a>>,
    /// Where.
    pub venue: Text<'a>,
    /// The positions.
    pub positions: Vec<PositionRow<'a>>,
    /// When, in milliseconds UTC.
    pub ts_ms: u64,
}

/// One position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionRow<'a> {
    /// The instrument.
    pub instrument_id: Text<'a>,
    /// Shares.
    pub qty: ShareCount,
    /// Average price of the shares that are held; told by a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_open_price: Option<Decimal>,
    /// Value at the last price.
    pub market_value: Option<Decimal>,
    /// Profit or loss at the last price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrealized_pnl: Option<Decimal>,
    /// Which way it goes.
    pub side: OrderSide,
    /// `cash`, `margin_credit` or `margin_general`.
    pub position_type: Text<'a>,
    /// The broker's number of a margin position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tategyoku_id: Option<Text<'a>>,
    /// Where.
    pub venue: Text<'a>,
}

/// A position went from nothing to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionOpened<'a> {
    /// The strategy that runs.
    pub strategy_id: Text<'a>,
    /// Where.
    pub venue: Text<'a>,
    /// The instrument.
    pub instrument_id: Text<'a>,
    /// `<instrument_id>-<n>`.
    pub position_id: Text<'a>,
    /// Which way it goes.
    pub side: OrderSide,
    /// Shares of the fill that opened it.
    pub opened_qty: ShareCount,
    /// Average price, rounded half to even at 4 decimals.
    pub avg_open_price: Decimal,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// A position went back to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PositionClosed<'a> {
    /// The strategy that runs.
    pub strategy_id: Text<'a>,
    /// Where.
    pub venue: Text<'a>,
    /// The instrument.
    pub instrument_id: Text<'a>,
    /// `<instrument_id>-<n>`.
    pub position_id: Text<'a>,
    /// Which way it went.
    pub side: OrderSide,
    /// Shares bought over its life.
    pub opened_qty: ShareCount,
    /// Average price of what was bought.
    pub avg_open_price: Decimal,
    /// Average price of what was sold.
    pub avg_close_price: Decimal,
    /// Profit or loss, commission taken off.
    pub realized_pnl: Decimal,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}
