//! How components of all shapes are made and called: each test on every way there is.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

mod agreement;
mod birth;
mod common;
mod languages;
mod mutations;
mod parameters;
mod shapes;
mod shapes_run;
