//! Login and life of a venue (specification 1, "Events"; pins P3, P45, P47).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RequestId, Text};

/// Asks for the login at a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestVenueLogin {
    /// The command's id; it may be missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
}

/// Asks for the state of a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetVenueState {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Only this venue, by its name; null for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue: Option<String>,
}

/// Declares a step of a login: which venue, and who asked.
macro_rules! login_step {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct $name<'a> {
            /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
            pub venue: Text<'a>,
            /// The command's id; missing without a command.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub request_id: Option<Text<'a>>,
        }
    };
}

login_step! {
    /// A login begins.
    VenueLoginStarted
}

login_step! {
    /// The user did not give what a login needs.
    VenueLoginCancelled
}

login_step! {
    /// The venue can be used.
    VenueReady
}

/// A venue cannot be used, or no longer. Sent once for each outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VenueError<'a> {
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// Why, as a code: `token_expired`, `local_app_down`, `login_failed`.
    pub code: Text<'a>,
    /// Why, in words; show them unchanged.
    pub message: Text<'a>,
}

/// The state of a venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VenueLifecycle {
    /// No login yet.
    Disconnected,
    /// A login is under way.
    LoggingIn,
    /// It can be used.
    Ready,
    /// The venue no longer takes the token; log in again.
    TokenExpired,
    /// The engine cannot reach its program.
    AppDown,
}

/// Whether the engine holds the second password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecondPasswordState {
    /// It does not.
    None,
    /// It does.
    Held,
    /// Wrong ones have locked it.
    Locked,
}

/// Answers a [`GetVenueState`]; also told to all when the second password's state changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VenueState<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9); none where no command asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// Its state.
    pub state: VenueLifecycle,
    /// State of its stream of market data; null when it has none.
    pub push: Option<Text<'a>>,
    /// Code of the fault. `forced_logout` is not a fault: the local broker's gateway logs all users
    /// out at that time and sends no boards.
    pub code: Option<Text<'a>>,
    /// Since when, in milliseconds UTC.
    pub since_ms: u64,
    /// Whether the engine holds the second password; of `web_broker` only (specification 4, P122).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_password: Option<SecondPasswordState>,
    /// Until when the second password is locked, in milliseconds UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_until_ms: Option<u64>,
}

/// A login at the web broker is done. It tells what changed and never an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VenueCredentialsRefreshed<'a> {
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// Number of the login in this process.
    pub session_epoch: u64,
    /// Names of what changed.
    pub changed: Vec<Text<'a>>,
    /// Time of the message in milliseconds since 1970 UTC.
    pub ts_ms: u64,
}
