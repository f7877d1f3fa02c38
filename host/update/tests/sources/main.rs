//! Every source against real HTTP servers on this machine.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod files;
mod listings;
mod public;
mod servers;
mod vendor;
mod vendor_failures;
mod web_broker;
