//! The order desk from outside: commands in, events and requests out, with a small broker in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod account;
mod any_order;
mod broker;
mod cancel_all;
mod claims;
mod clocks;
#[expect(dead_code, reason = "what is not for the order desk")]
#[path = "../../../engine/src/command.rs"]
mod command;
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
#[expect(dead_code, reason = "what is not for the order desk")]
#[path = "../../../engine/src/present/orders.rs"]
mod present;
mod queue;
mod reconciliation;
mod resent;
mod settle;
mod strategy_fills;
mod strategy_orders;
mod take_over;
mod truth;
mod venue;
mod watch;
mod world;

use ipc::Text;

/// As in the module above the engine's.
fn text(text: &str) -> Text<'_> {
    Text::Borrowed(text)
}

fn optional<T: AsRef<str>>(of: &Option<T>) -> Option<Text<'_>> {
    of.as_ref().map(|of| Text::Borrowed(of.as_ref()))
}
