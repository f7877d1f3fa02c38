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
