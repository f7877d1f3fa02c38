//! Commands of a replay session (pins P63 to P70): load, start, stop, speed.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::{Decimal, RequestId};

/// What the strategy sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Granularity {
    /// Single trades.
    Trade,
    /// Bars of a minute.
    Minute,
    /// Bars of a day.
    Daily,
}

/// Loads data. Loads add up, and the same instrument takes its own place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadReplayData {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The instrument; the first of several.
    pub instrument_id: String,
    /// All instruments, 1 to 4, like `7203.TSE`; only `instrument_id` when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument_ids: Option<Vec<String>>,
    /// First date in Japan, `YYYY-MM-DD`.
    pub start_date: String,
    /// Last date in Japan, `YYYY-MM-DD`.
    pub end_date: String,
    /// What to load: trades, minute bars or daily bars.
    pub granularity: Granularity,
}

/// Which engine is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EngineKind {
    /// The replay of past data.
    Backtest,
    /// Trading at a venue.
    Live,
}

/// Starts a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartEngine {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Which engine; it must be that of the process.
    pub engine: EngineKind,
    /// Name of the run's strategy, 1 to 64 characters.
    pub strategy_id: String,
    /// Settings of the run.
    pub config: EngineStartConfig,
}

/// Settings of a run. A replay needs dates, cash and granularity and takes no limits; live trading
/// needs the limits. The engine checks that the settings are complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineStartConfig {
    /// The instrument; the first of several.
    pub instrument_id: String,
    /// All instruments, 1 to 4, like `7203.TSE`; only `instrument_id` when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument_ids: Option<Vec<String>>,
    /// First date in Japan, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// Last date in Japan, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// What the strategy sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity: Option<Granularity>,
    /// Money at the start, in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cash: Option<Decimal>,
    /// Path of the strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_file: Option<String>,
    /// The strategy's parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_init_kwargs: Option<Map<String, Value>>,
    /// The same as that of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<String>,
    /// Times real time; 1 when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Multiplier>,
    /// How the simulated exchange fills orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionConfig>,
    /// Live: the most shares of one order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_qty: Option<u64>,
    /// Live: the most yen of one order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_notional_jpy: Option<u64>,
    /// Live: whether orders go to the simulated exchange and no broker (specification 4, P119).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<bool>,
    /// Live: the most orders that the strategy sends in 60 s; no limit when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_orders_per_minute: Option<u64>,
    /// Live: the most working orders of the strategy; no limit when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_open_orders: Option<u64>,
    /// Live: the loss of a day in yen from which on the strategy buys no more; no limit when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_daily_loss_jpy: Option<u64>,
    /// Live: the most shares of a position with the orders that build it up; no limit when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_position_qty: Option<u64>,
}

/// How the simulated exchange fills orders: a named model, and single values in place of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutionConfig {
    /// `strict`, `realistic` or `optimistic`.
    pub model: String,
    /// Nanoseconds from an order's sending to its arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// Ticks that an order pays when it takes liquidity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slippage_ticks: Option<u32>,
    /// Share of each print that orders may take, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participation_percent: Option<u32>,
    /// Shares that trade at a resting order's price before a touch fills it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ahead: Option<u64>,
    /// What the broker charges, as on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commission: Option<String>,
    /// Shares in a trading unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lot: Option<u64>,
    /// Price steps, as on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks: Option<String>,
    /// Whether shares may be bought and sold again on one day with the same money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_day_round_trips: Option<bool>,
}

/// Ends the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopEngine {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Name of the run's strategy, as it was started.
    pub strategy_id: String,
}

/// Changes the speed of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetReplaySpeed {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Speed in times real time, or `max`.
    pub multiplier: Multiplier,
}

/// Asks for the whole state of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetSession {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// How many times faster than real time: 1 to 1,000,000, or `"max"` for no waiting at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplier {
    /// So many times.
    Times(u32),
    /// As fast as it goes.
    Max,
}

impl Multiplier {
    /// The highest number.
    pub const TIMES_MAX: u32 = 1_000_000;
    const MAX_WORD: &'static str = "max";
}

impl Serialize for Multiplier {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Times(times) => to.serialize_u32(*times),
            Self::Max => to.serialize_str(Self::MAX_WORD),
        }
    }
}

impl<'de> Deserialize<'de> for Multiplier {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(MultiplierVisitor)
    }
}

struct MultiplierVisitor;

impl de::Visitor<'_> for MultiplierVisitor {
    type Value = Multiplier;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {} or \"max\"", Multiplier::TIMES_MAX)
    }

    fn visit_u64<E: de::Error>(self, times: u64) -> Result<Self::Value, E> {
        u32::try_from(times)
            .ok()
            .filter(|times| (1..=Multiplier::TIMES_MAX).contains(times))
            .map(Multiplier::Times)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(times), &self))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        if word == Multiplier::MAX_WORD {
            Ok(Multiplier::Max)
        } else {
            Err(E::invalid_value(de::Unexpected::Str(word), &self))
        }
    }
}

impl JsonSchema for Multiplier {
    fn schema_name() -> Cow<'static, str> {
        "Multiplier".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many times faster than real time.",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": Self::TIMES_MAX },
                { "const": Self::MAX_WORD },
            ],
        })
    }
}
