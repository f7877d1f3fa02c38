//! The order desk from outside: commands in, events and requests out, a broker made of a few lines.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broker;
mod dialect;
mod floods;
mod flows;
mod interleavings;
mod reconciliation;
mod resent;
mod world;
