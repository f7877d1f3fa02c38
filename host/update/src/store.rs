//! The databases of daily prices: the job's own one, the published ones, and the way from one to
//! the others (specification 3, "Data layout" and "Update job").
//!
//! A [`WorkDatabase`] is the one writer of a data directory. What it fetches goes into
//! `work/mother.db`, which nobody else opens; readers see files that were written aside, brought to
//! the disk and renamed, so each of them is the old state or the new one.

mod apply;
mod board;
mod calendar;
mod columns;
mod combined;
mod durable;
mod error;
mod fetch_tables;
mod issue_file;
pub mod limits;
mod listed;
mod lock;
mod opening;
mod paths;
mod publish;
mod rows;
mod schema;
mod split;
mod work_database;
mod work_rows;
mod written;

#[cfg(test)]
mod tests;

pub use board::{BoardReport, DamagedSegment, board_report_schema, publish_board};
pub use error::StoreError;
pub use opening::Opening;
pub use split::Removals;
pub use work_database::WorkDatabase;
pub use work_rows::WorkRows;
