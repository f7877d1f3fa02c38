//! Files of the ranking and the one place that speaks to DuckDB about them.
//!
//! `jp/stocks_daily/mother.db` holds the truth: `daily(date, code, open, high, low, close,
//! volume)`. [`publish`] makes a private snapshot of it in `rank/`: `rank-<n>.db` for SQL and
//! `rank-<n>.grid` for the kernel; the file `CURRENT` names the snapshot to use.

mod dense;
mod error;
mod layout;
mod publish;
mod reference;
pub mod sql;
mod statement;
mod table;

#[cfg(test)]
mod tests;

pub use error::PublishError;
pub use layout::DataDir;
pub use publish::{Published, publish, remove_leftovers};
pub(crate) use reference::Reference;
pub(crate) use statement::Statement;
