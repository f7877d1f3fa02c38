//! The whole job: what it asks for, what it keeps, how it ends.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod events;
mod fall_back;
mod fixture;
mod interrupted;
mod killed;
mod local_files;
mod over_http;
mod real_store;
mod runs;
