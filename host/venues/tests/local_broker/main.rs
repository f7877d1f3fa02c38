//! The local broker's venue against a gateway of the tests' own, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

mod endpoints;
mod limits;
mod server;
mod venue;

#[path = "../gateway_soak/dialect.rs"]
mod dialect;
