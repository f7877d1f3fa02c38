//! Brokers as they are reached: where they are, how a session begins and ends, how texts are encoded,
//! which request is in flight, and what comes back. What orders mean is decided above; what the
//! broker's fields mean by its dialect.
//!
//! **Invariants:** no request that changes an order is ever sent twice; no address, password or request number is in an
//! error, an event or a `Debug` text; what a broker sends is read within limits and trusted in nothing.

mod as_bytes;
mod list_filter;
mod listed;
pub mod local_broker;
pub mod web_broker;
mod websocket;

use std::time::Duration;

use domain::TsNanos;

pub use list_filter::ListFilter;
pub use listed::{LEFT_OUT_TOLD_MAX, LeftOut, Listed, ToldOnce, told};

/// Whom an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    /// Every client.
    All,
    /// One client, by its number.
    Client(u64),
}

/// An instant: of the monotonic clock since the start of the program, and of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Time since the program began.
    pub mono: Duration,
    /// UTC.
    pub wall: TsNanos,
}

/// Who asked for something, and by which command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The client.
    pub client: u64,
    /// The command's id.
    pub request_id: String,
}
