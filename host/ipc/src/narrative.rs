//! Decisions of a strategy, as a run's `narrative.json` holds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// One decision.
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
