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
pub mod service;
pub mod web_broker;
mod websocket;

use std::time::Duration;

use domain::TsNanos;

pub use list_filter::OrderQuery;
pub use listed::{LEFT_OUT_LINES_MAX, LeftOut, Listed, ReportedOnce, left_out_lines};
pub use service::Busy;

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

/// The command that something is done for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// The client that sent it.
    pub client: u64,
    /// Its id.
    pub request_id: String,
}
