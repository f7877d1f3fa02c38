//! Daily prices: fetched from sources, stored in the combined and the per-issue databases.
//!
//! [`update_from_sources`] and [`update_from_files`] are the update job of specification 3. What it
//! fetches comes through [`source::DailySource`] and goes into a [`Shelf`], which is
//! [`store::Workshop`] outside of tests. Keys are found by [`Key`] and never shown.

mod cache;
mod job;
mod key;
pub mod limits;
mod row;
mod shelf;
pub mod source;
mod stop;
pub mod store;

pub use cache::{Cached, DayCache};
pub use job::{
    DayOutcome, DayReport, Ending, FailureReason, IssueReport, JobOptions, JobWatch, Phase,
    PublishedReport, Report, SourceReport, SourceSlot, SourceState, SplitReport, UpdateError,
    last_weekdays, report_schema, update_from_files, update_from_sources,
};
pub use key::{KEY_SERVICE, Key};
pub use row::{DailyRow, IssueCode, SourceKind};
pub use shelf::{Applied, Known, Shelf, Split, StoreProgress};
pub use stop::Stop;
