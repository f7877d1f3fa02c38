//! A snapshot of the combined database: how it is made, and what can go wrong.

mod base;
mod dense;
mod error;
mod folder;
mod lock;
mod publish;
mod splits;
mod table;
#[cfg(test)]
mod tests;

use duckdb::Connection;

pub use error::PublishError;
pub use lock::PublicationLock;
pub use publish::{Published, publish, publish_in_blocks, remove_leftovers};

/// Whether a row's number in the grid's table is day times codes plus code, in the database that the
/// connection uses. Positional joins over the table stand on this rule.
///
/// # Errors
/// What DuckDB says.
pub fn rows_are_in_order(connection: &Connection) -> duckdb::Result<bool> {
    let sql = "SELECT count(*) = (SELECT count(*) FROM cal) * (SELECT count(*) FROM issue)
                 AND coalesce(bool_and(g.rowid = g.day_no::BIGINT
                       * (SELECT count(*) FROM issue) + g.code_id), true) FROM g";
    connection.query_row(sql, [], |row| row.get(0))
}
