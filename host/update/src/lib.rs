//! Daily prices: fetched from sources, stored in the combined and the per-issue databases.

mod row;
mod shelf;
pub mod store;

pub use row::{DailyRow, IssueCode, SourceKind};
pub use shelf::{Applied, Known, Shelf, Split, StoreProgress};
