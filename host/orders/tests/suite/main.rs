//! The order desk from outside: commands in, events and requests out, a broker made of a few lines.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broker;
mod cancel_all;
mod dialect;
mod flows;
mod interleavings;
mod money;
mod pins;
mod reconciliation;
mod venue;
mod world;
