//! The first messages of a connection: both sides show that they have the token, and neither tells it
//! (specification 1, "Capabilities entry"; pins P44, P69).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ConsoleScope, SessionState, Text};

/// Whether the engine trades or replays; decided when the process starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineMode {
    /// It trades.
    Live,
    /// It replays past data.
    Replay,
}

impl EngineMode {
    /// The name in messages and proofs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Replay => "replay",
        }
    }
}

/// The first message of a connection, sent by the engine: what the proofs of both sides are made over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Challenge<'a> {
    /// 32 random bytes of the engine as lowercase hexadecimal digits, new for each connection.
    pub server_nonce: Text<'a>,
    /// Version of the engine's messages.
    pub schema_major: u32,
    /// See `schema_major`.
    pub schema_minor: u32,
}

/// The first message of a client, within 10 seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the client's messages.
    pub schema_major: u32,
    /// See `schema_major`.
    pub schema_minor: u32,
    /// Version of the client's program.
    pub client_version: String,
    /// The mode that the client expects, `live` or `replay`; the proof covers it.
    pub mode: String,
    /// 32 random bytes of the client as lowercase hexadecimal digits, new for each connection.
    pub client_nonce: String,
    /// Proof that the client has the token: HMAC-SHA256 over
    /// `client:<server_nonce>:<client_nonce>:<mode>` with the token as key, as lowercase
    /// hexadecimal digits.
    pub proof: String,
    /// The session of a page in the browser, whose key takes the token's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
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
    #[serde(default)]
    pub venue_capabilities: BTreeMap<String, VenueCapabilities>,
    /// The dialect of each broker, by the venue's name; in live mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dialects: BTreeMap<String, Dialect>,
    /// The address of each simulator in a broker's place, by the venue's name; in live mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub simulators: BTreeMap<String, String>,
    /// State of the session.
    pub session_state: SessionState,
    /// Proof that the engine has the token: HMAC-SHA256 over
    /// `server:<client_nonce>:<server_nonce>:<mode>` with the token as key, as lowercase
    /// hexadecimal digits.
    pub proof: Text<'a>,
    /// What a page may do; of a page in the browser only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ConsoleScope>,
    /// The value of an order in yen above which a page asks for its quantity again; of a page only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_above_jpy: Option<u64>,
}

/// A component that knows a broker's names and codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Dialect {
    /// Its name, like `web-broker-spec`.
    pub name: String,
    /// SHA-256 of the component, as lowercase hexadecimal digits.
    pub sha256: String,
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
    /// Largest number of symbols with market data at once.
    pub max_push_symbols: u32,
    /// Whether orders can be changed.
    pub supports_amend: bool,
    /// Whether a cancel needs the trade password.
    pub requires_trade_password_for_cancel: bool,
    /// Whether it is the real market.
    pub is_production: bool,
}
