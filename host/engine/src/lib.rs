//! The engine process: a GUI or a script drives it over a WebSocket on this machine (specification 2,
//! "Endpoints", "Authentication", "Events"; specification 4, pins P61 to P80).
//!
//! - [`startup`]: the configuration of the process; [`session_file`]: where helpers find it.
//! - `server`: connections and their limits; `handshake`: who may connect; `outbox`: what waits for a
//!   client; `waits`: how long; `hub`: all of them.
//! - `session`: where the session stands, behind one lock; `command`: what clients want, decoded once; `dispatch`: the
//!   answer to each command.
//! - `live`: the venues of a live engine; [`credentials`]: what it logs in with; [`client`]: the other side
//!   of a connection, for programs on this machine.
//! - `load` and `start`: the threads that read data and run strategies; `run` sends clients what happens;
//!   `history`: what was traded before; `orders`: what people want with their orders; `ledger`: their orders and positions.
//! - `present`: the only place that makes events of the wire.

pub mod client;
mod command;
mod console;
pub mod credentials;
mod decode;
mod dispatch;
mod handshake;
mod history;
mod hub;
mod ledger;
pub mod limits;
mod live;
mod load;
mod orders;
mod outbox;
mod present;
mod run;
mod server;
mod session;
pub mod session_file;
mod start;
pub mod startup;
mod waits;

pub use ::orders::{AUDIT_FILE, DeskRules, OrderPhase, PasswordRules};
pub use live::{LocalBroker, WebBroker};
pub use present::market::{EXCHANGE, depth, live_trade};
pub use server::{Listening, serve};
pub use startup::{
    EngineConfig, OnPositionMismatch, OwnOrdersAtEnd, StartError, StartLine, StrategyRules,
    read_start_line,
};
pub use tokio_util::sync::CancellationToken;
pub use venues::local_broker::keys::{BadTicker, symbol_of};
pub use venues::local_broker::{ForcedLogout, KeepAlive, LocalBrokerConfig};
pub use venues::web_broker::{
    Addresses as WebBrokerAddresses, Environment, WebBrokerConfig, usual_dialect,
};

/// A token for an engine that no other program starts: 32 random bytes in hexadecimal digits.
#[must_use]
pub fn random_token() -> String {
    web_console::random_hex()
}

/// A time as ISO 8601 in UTC, to the second.
fn utc(time: domain::TsNanos) -> String {
    let since_1970 = std::time::Duration::from_nanos(time.nanos());
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since_1970).to_string()
}

/// The venue of a replay.
const VENUE: &str = "replay";
/// The account of a replay.
const ACCOUNT: &str = "REPLAY";

/// The symbol of an instrument, like `7203` of `7203.TSE`.
fn ticker(instrument_id: &str) -> &str {
    instrument_id.split('.').next().unwrap_or(instrument_id)
}

/// A speed as the replay knows it.
fn multiplier(wire: ipc::Multiplier) -> replay::Multiplier {
    match wire {
        ipc::Multiplier::Max => replay::Multiplier::UNPACED,
        ipc::Multiplier::Times(times) => {
            let thousandths = u64::from(times) * 1_000;
            replay::Multiplier::from_thousandths(thousandths).unwrap_or(replay::Multiplier::MAX)
        }
    }
}
