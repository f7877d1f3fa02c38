//! What a strategy says in words: its decisions and its log lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// One decision, as a run's `narrative.json` holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NarrativeRow<'a> {
    /// Virtual time of the decision in nanoseconds since 1970 UTC.
    pub ts_event_ns: u64,
    /// The order that it explains.
    pub client_order_id: Option<Text<'a>>,
    /// What was decided, in the strategy's own words.
    pub title: Text<'a>,
    /// Why, in the strategy's own words.
    pub body: Text<'a>,
}

/// A decision of a strategy, as clients get it while the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyNarrative<'a> {
    /// Name of the strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// Time of the decision in milliseconds UTC.
    pub ts_event_ms: u64,
    /// The order that it explains.
    pub client_order_id: Option<Text<'a>>,
    /// What was decided, in the strategy's own words; at most 256 characters of it.
    pub title: Text<'a>,
    /// Why, in the strategy's own words; at most 2,048 characters of it.
    pub body: Text<'a>,
}

/// How grave a line is, by its writer's own judgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StrategyLevel {
    /// For whoever looks for a fault.
    Debug,
    /// Of interest.
    Info,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
}

/// A line that a strategy wrote, or a warning about its orders. Clients get at most 100 lines a second; the folder of
/// the run has all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyLog<'a> {
    /// Name of the strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// Time of what the strategy was handling in milliseconds UTC, once there was something.
    pub ts_event_ms: Option<u64>,
    /// How grave it is.
    pub level: StrategyLevel,
    /// The line; at most 2,048 characters of it.
    pub message: Text<'a>,
    /// Lines before this one that clients did not get.
    pub left_out: u64,
}
