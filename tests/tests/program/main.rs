//! The program itself, as its users start it: one test program, which links in one step.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod command_line;
mod data_tools;
mod determinism;
mod golden_runs;
mod languages;
mod markets;
mod output_limits;
mod parameters;
mod ranking_program;
mod splits;
mod sweep;
mod update_crash;
mod update_program;
mod verify;
