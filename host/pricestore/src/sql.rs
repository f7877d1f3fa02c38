//! What all statements need: quoting, single columns, and rows that come as columns.

use std::path::Path;

use duckdb::arrow::array::{ArrayRef, RecordBatch};
use duckdb::types::FromSql;
use duckdb::vtab::arrow::{ArrowBatchRegistration, ArrowVTab};
use duckdb::{Connection, Error, Result, params_from_iter};

/// The function with which the engine reads rows of ours.
const FUNCTION: &str = "arrow";

/// Quotes a text as an SQL string.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Quotes a path as an SQL string.
#[must_use]
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// The first column of what a statement finds.
///
/// # Errors
/// What DuckDB says.
pub fn column<T: FromSql>(connection: &Connection, sql: &str) -> Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// An expression for the digest of all rows with these columns: the same for the same rows in any order,
/// and within one version of the engine only. Each row's hash is hashed once more, because the engine
/// joins the hashes of columns by exclusive or: a value that many rows have, and another one later, would
/// be taken out by its like in another row.
#[must_use]
pub fn digest_of_rows(columns: &str) -> String {
    format!("bit_xor(hash(hash({columns})))")
}

/// Columns of one length as rows for [`insert`].
///
/// # Errors
/// When the lengths differ.
pub fn rows<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns)
        .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

/// Prepares an instance of the engine for [`insert`].
///
/// # Errors
/// What DuckDB says.
pub fn prepare_inserts(connection: &Connection) -> Result<()> {
    connection.register_table_function::<ArrowVTab>(FUNCTION)
}

/// Inserts all batches of rows into a table that has their columns in their order.
///
/// # Errors
/// What DuckDB says.
pub fn insert(connection: &Connection, table: &str, batches: &[RecordBatch]) -> Result<()> {
    let batches: Vec<_> = batches.iter().cloned().map(ArrowBatchRegistration::new).collect();
    let parts = vec![format!("FROM {FUNCTION}(?)"); batches.len()].join(" UNION ALL ");
    connection.execute(&format!("INSERT INTO {table} {parts}"), params_from_iter(&batches))?;
    Ok(())
}
