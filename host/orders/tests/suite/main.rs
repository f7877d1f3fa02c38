//! The order desk from outside: commands in, events and requests out, with a small broker in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod account;
mod any_order;
mod broker;
mod cancel_all;
mod claims;
mod clocks;
mod crossings;
mod days;
#[path = "../../../engine/src/live/desk_command.rs"]
mod desk_command;
mod details;
mod dialect;
mod floods;
mod flows;
mod hosts;
mod interleavings;
mod left_out;
mod log;
mod money;
mod numbers;
mod origins;
mod pins;
#[path = "../../../engine/src/present/orders.rs"]
mod present;
mod queue;
mod reconciliation;
mod resent;
mod truth;
mod venue;
mod watch;
mod world;
