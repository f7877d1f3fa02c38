//! The simulated web broker over real sockets, asked by a plain client.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

mod client;
mod data;
mod events;
mod faults;
mod late;
mod masters;
mod orders;
mod session;
