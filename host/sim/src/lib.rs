//! Simulated venues, as real servers on this machine. They judge our own clients, so they share no code
//! with them: what a request means is decided here from the vendors' documents alone.
//!
//! - [`web_broker`]: the web broker: login, orders, lists, balances, masters and the stream of events,
//!   matched by the `exchange` crate, with faults that can be switched at any time.
//! - [`local_broker`]: the local gateway: token, registrations, boards, a read-only account and the push of
//!   boards, fed by trade files or a walk of prices, with faults likewise.

mod http;
pub mod local_broker;
pub mod web_broker;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// The value of a fault in a command of `/control`.
fn fault_value<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let found = Option::<Value>::deserialize(from)?;
    let Some(found) = found else { return Ok(None) };
    found.as_i64().map(Some).ok_or_else(|| {
        Error::custom(format!(
            "value {found} is not a whole number; write a delay in milliseconds, as in 20000 for 20 s"
        ))
    })
}
