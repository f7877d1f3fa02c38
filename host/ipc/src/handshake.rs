//! The first messages of a connection (specification 1, "Capabilities entry"; pins P44, P69).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Secret, SessionState, Text};

/// Whether the engine trades or replays; decided when the process starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineMode {
    /// It trades.
    Live,
    /// It replays past data.
    Replay,
}

/// The first message of a client. It can be read but not written: see [`Secret`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the client's messages.
    pub schema_major: u32,
    /// See `schema_major`.
    pub schema_minor: u32,
    /// Version of the client's program.
    pub client_version: String,
    /// What shows that the client may connect.
    pub token: Secret,
    /// The mode that the client expects.
    pub mode: EngineMode,
}

/// The answer to a [`Hello`] that is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ready<'a> {
    /// Version of the engine's messages.
    pub schema_major: u32,
    /// See `schema_major`.
    pub schema_minor: u32,
    /// Version of the engine.
    pub engine_version: Text<'a>,
    /// Name of this process, a UUID.
    pub engine_session_id: Text<'a>,
    /// What the engine can do.
    pub capabilities: Capabilities,
    /// What each venue can do, by its name; in live mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub venue_capabilities: BTreeMap<String, VenueCapabilities>,
    /// Where the session stands.
    pub session_state: SessionState,
}

/// What the engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Capabilities {
    /// Where strategies can run.
    pub strategy_engine: StrategyEngineCapabilities,
}

/// Where the engine runs strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyEngineCapabilities {
    /// Whether strategies can run in live trading.
    pub live: bool,
    /// Whether strategies can run in replays.
    pub replay: bool,
}

/// What a venue can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VenueCapabilities {
    /// Whether a program on this machine must run.
    pub requires_local_app: bool,
    /// Symbols of which it pushes market data at once.
    pub max_push_symbols: u32,
    /// Whether orders can be changed.
    pub supports_amend: bool,
    /// Whether a cancel needs the trade password.
    pub requires_trade_password_for_cancel: bool,
    /// Whether it is the real market.
    pub is_production: bool,
}
