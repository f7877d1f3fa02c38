//! The price store: where its files are, what all statements about them need, and the snapshots that
//! rankings read.
//!
//! `jp/stocks_daily/mother.db` of a [`DataDir`] is the combined database and holds the truth:
//! `daily(date, code, open, high, low, close, volume)`. [`publish`] makes a private snapshot of it for the
//! ranking's kernel, `rank/rank-<n>.grid`; the file `CURRENT` names the snapshot to use. The update job writes
//! here, rankings read; [`generation`] ties what belongs together.

mod calendar_table;
mod data_dir;
mod dataset;
pub mod folder_lock;
pub mod generation;
pub mod grid;
pub mod limits;
pub mod listed;
pub mod sample;
mod snapshot;
pub mod sql;
mod text;

pub use calendar_table::has_calendar;
pub use data_dir::{DataDir, IsReplica};
pub use dataset::{DatasetStatus, DayDoubt, IncompleteDay, SourceRows};
pub use folder_lock::{FolderLock, LockFault, LockHolder, holder_text};
pub use snapshot::{
    PublicationLock, PublishError, Published, make_tables, publish, remove_leftovers,
};
pub use text::excerpt;

/// Version of DuckDB's file format in which the combined database is written; older programs can
/// open it too.
pub const STORAGE_VERSION: &str = "v1.2.0";
