//! Replays through the public interface of the crate: one program, which links in one step.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;
mod cuts;
mod days;
mod driver;
mod driver_sessions;
mod failures;
mod market;
mod properties;
mod properties_bars;
mod results;
mod rules;
mod rules_auctions;
mod rules_bars;
mod rules_orders;
mod rules_peers;
mod rules_prices;
mod rules_retired;
mod rules_round_trips;
mod rules_sessions;
mod rules_splits;
mod stream;
mod stream_orders;
