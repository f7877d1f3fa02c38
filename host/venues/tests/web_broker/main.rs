//! The web broker over real sockets on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

mod calls;
mod events;
mod logins;
mod masters;
mod numbers;
mod samples;
mod server;
