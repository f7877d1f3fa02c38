//! The pages in a real browser: what they show, how they are used, and what they leave alone.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

mod common;
mod ranking;
mod replay;
mod sweep;
