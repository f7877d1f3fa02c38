//! The ranking service over real sockets, with engines that do what a test needs.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod answers;
mod audit;
mod clients;
mod common;
mod failures;
mod file_conditions;
mod file_paths;
mod files;
mod hostile;
mod memory;
mod names;
mod over_http;
