//! Simulated venues, as real servers on this machine. They judge our own clients, so they share no code
//! with them: what a request means is decided here from the vendors' documents alone.
//!
//! - [`web_broker`]: the web broker: login, orders, lists, balances, masters and the stream of events,
//!   matched by the `exchange` crate, with faults that can be switched at any time.
//! - [`local_broker`]: the local gateway: token, registrations, boards, a read-only account and the push of
//!   boards, fed by trade files or a walk of prices, with faults likewise.
//! - [`market`]: both of them over one market: a trade on the gateway's board fills orders at the broker.

mod files;
mod http;
pub mod local_broker;
pub mod market;
pub mod web_broker;

use domain::{Price, TickTable};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// Shares that one share becomes at most by a split overnight.
pub const SPLIT_MAX: u64 = 1_000;

/// A price after a split overnight: one share has become `into`.
fn after_split(ticks: TickTable, price: Price, into: u64) -> Price {
    // At most SPLIT_MAX.
    let parts = i64::try_from(into.max(1)).unwrap_or(1);
    let lowest = ticks.tick_at(Price::from_units(1));
    ticks.floor(Price::from_units(price.units() / parts)).max(lowest)
}

/// Refuses a split that the simulators do not make.
fn check_split(symbol: &str, into: u64) -> Result<(), String> {
    if (2..=SPLIT_MAX).contains(&into) {
        return Ok(());
    }
    Err(format!("{symbol}: a split makes 2 to {SPLIT_MAX} shares of one, not {into}"))
}

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
