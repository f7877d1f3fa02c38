//! Shared helpers of the end-to-end tests, and the rules that `tests/invariants.rs` applies.

pub mod browser;
pub mod built;
pub mod code;
pub mod daily_rows;
pub mod events;
pub mod files;
pub mod http;
pub mod market;
pub mod native;
pub mod proxy;
pub mod rules;
pub mod runs;
pub mod sample;
pub mod schema;
pub mod serving;
pub mod signals;
pub mod update_runs;
pub mod user_folder;
pub mod wat;

pub use files::{File, workspace_root};
