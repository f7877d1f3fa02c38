//! Daily prices: fetched from sources, stored in the combined and the per-issue databases.

mod row;

pub use row::{DailyRow, IssueCode, SourceKind};
