//! What a run leaves behind, in replay and live: rows, statistics, tables, files and pages.
//!
//! Nothing here runs anything or reads a clock: rows come in while a run goes on, and the same rows
//! give the same bytes.
//!
//! - [`rows`]: one fill, one round trip, the account at the end of a minute; [`sink`]: where they go.
//! - [`recorder`]: makes rows from order events and market prices.
//! - [`statistics`]: what a run is worth; [`totals`]: what stays in memory of it; [`summary`]: both in
//!   named numbers.
//! - [`output`]: the files of a run's folder; [`report`]: the page made from them; [`run_folder`]:
//!   both, written while a run goes on.

pub mod output;
pub mod recorder;
pub mod report;
pub mod rows;
pub mod run_folder;
pub mod sink;
pub mod statistics;
pub mod summary;
pub mod totals;

pub use run_folder::{RunFolder, WallClock};
pub use summary::Summary;
pub use totals::{RunResult, RunStatus, RunTotals};
