//! Brokers as they are reached: where they are, how a session begins and ends, how texts are encoded,
//! which request is in flight, and what comes back. What orders mean is decided above; what the
//! broker's fields mean by its dialect.
//!
//! **Invariants:** no request is ever sent twice; no address, password or request number is in an
//! error, an event or a `Debug` text; what a broker sends is read within limits and trusted in nothing.

pub mod local_broker;
pub mod web_broker;

/// Whom an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    /// Every client.
    All,
    /// One client, by its number.
    Client(u64),
}
