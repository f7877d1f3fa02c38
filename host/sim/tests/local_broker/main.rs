//! The simulated gateway over real sockets, asked by a plain client.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

mod calls;
mod client;
mod faults;
mod feed;
mod push;
mod registrations;
mod shapes;
