//! The venues: addresses, sessions, encodings, requests and answers of the brokers.
//!
//! The crates above decide what orders mean; a broker's dialect decides what its fields mean.
//!
//! **Invariants:**
//! - No request that changes an order is sent twice.
//! - No address, password or request number is in an error, an event or a `Debug` text.
//! - What a broker sends is read within limits, and nothing in it is trusted.

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

/// The recipient of an event.
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

/// The command behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// The client that sent it.
    pub client: u64,
    /// Its id.
    pub request_id: String,
}
