//! What all statements need: quoting, single columns, and rows that come as columns.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use duckdb::arrow::array::{ArrayRef, RecordBatch};
use duckdb::types::FromSql;
use duckdb::vtab::arrow::{ArrowBatchRegistration, ArrowVTab};
use duckdb::{Connection, Error, Result, params_from_iter};

/// The function with which the engine reads rows of ours.
const FUNCTION: &str = "arrow";

/// The statement of [`objects`].
const OBJECTS: &str = "
    SELECT DISTINCT lower(concat(kind, ' ', schema_name, '.', name)) FROM (
      SELECT 'schema' AS kind, schema_name, '' AS name
        FROM duckdb_schemas() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'table', schema_name, table_name
        FROM duckdb_tables() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'view', schema_name, view_name
        FROM duckdb_views() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'macro', schema_name, function_name
        FROM duckdb_functions() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'sequence', schema_name, sequence_name
        FROM duckdb_sequences() WHERE database_name = $1
      UNION ALL SELECT 'type', schema_name, type_name
        FROM duckdb_types() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'index', schema_name, index_name
        FROM duckdb_indexes() WHERE database_name = $1
      UNION ALL SELECT 'trigger', schema_name, trigger_name
        FROM duckdb_triggers() WHERE database_name = $1
      UNION ALL SELECT 'comment', schema_name, table_name
        FROM duckdb_tables() WHERE database_name = $1 AND comment IS NOT NULL
      UNION ALL SELECT 'comment', schema_name, view_name
        FROM duckdb_views() WHERE database_name = $1 AND comment IS NOT NULL
      UNION ALL SELECT 'comment', schema_name, concat(table_name, '.', column_name)
        FROM duckdb_columns() WHERE database_name = $1 AND comment IS NOT NULL)";

/// Quotes a text as an SQL string.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a database can be opened without waiting for a pipe in the place of its file or of its log.
///
/// # Errors
/// What the system says, or that one of them is no file.
pub fn must_be_database(path: &Path) -> io::Result<()> {
    atomic_file::must_be_file(path)?;
    atomic_file::must_be_file(&log_of(path))
}

/// Whether a database that this program has published is as it was published: without a log beside it, in which
/// somebody has changed it, and which the engine would take up each time that it is opened, with whatever file has
/// the name then.
///
/// # Errors
/// As [`must_be_database`], or that there is such a log.
pub fn must_be_published(path: &Path) -> io::Result<()> {
    must_be_database(path)?;
    let log = log_of(path);
    match log.try_exists()? {
        false => Ok(()),
        true => Err(io::Error::other(format!(
            "{} is there: another program has changed the database and not ended well; what it has changed is none of \
             the job's prices. Move this file away",
            log.display()
        ))),
    }
}

/// DuckDB's log of what is not in a database's file yet.
#[must_use]
pub fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push(".wal");
    PathBuf::from(log)
}

/// Quotes a path as an SQL string. DuckDB would take `~` at the beginning of one for the user's home, and
/// a word before a colon for a kind of database or server, in a whole path neither.
#[must_use]
pub fn quoted_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = !matches!(path.components().next(), Some(Component::Normal(_)))
        || !(text.starts_with('~') || text.contains(':'));
    match std::path::absolute(path) {
        Ok(whole) if !is_plain => quoted(&whole.to_string_lossy()),
        _ => quoted(&text),
    }
}

/// A view in place of the tables `daily` and `calendar` of an attached database, where there is one; views in
/// schemas of somebody's own are read by nobody. A view of somebody else's may read any file of this machine.
///
/// # Errors
/// What DuckDB says.
pub fn view_among(connection: &Connection, database: &str) -> Result<Option<String>> {
    let views = "SELECT view_name FROM duckdb_views() WHERE database_name = ? AND NOT internal
        AND schema_name = 'main' AND lower(view_name) IN ('daily', 'calendar') ORDER BY 1 LIMIT 1";
    let mut views = connection.prepare(views)?;
    views.query_map([database], |row| row.get(0))?.next().transpose()
}

/// What somebody has made in an attached database, like `table main.daily`: each schema but the engine's own,
/// each table, view, macro, sequence, type, index and trigger, and each comment. In lower case, because the engine
/// does not tell names by their case.
///
/// # Errors
/// What DuckDB says.
pub fn objects(connection: &Connection, database: &str) -> Result<BTreeSet<String>> {
    let mut objects = connection.prepare(OBJECTS)?;
    objects.query_map([database], |row| row.get(0))?.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_somebody_has_made_is_listed() {
        let connection = Connection::open_in_memory().unwrap();
        assert_eq!(objects(&connection, "memory").unwrap(), BTreeSet::new());
        connection
            .execute_batch(
                "CREATE TABLE Daily (code VARCHAR PRIMARY KEY, close DOUBLE); CREATE SCHEMA mine;
                 CREATE TABLE mine.daily AS SELECT 1 AS one; CREATE VIEW mine.tops AS FROM mine.daily;
                 CREATE MACRO twice(x) AS x * 2; CREATE MACRO ones() AS TABLE SELECT 1 AS one;
                 CREATE SEQUENCE mine.numbers; CREATE TYPE mood AS ENUM ('a'); CREATE INDEX by_close ON daily (close);
                 COMMENT ON TABLE mine.daily IS 'notes'; COMMENT ON COLUMN mine.daily.one IS 'notes';
                 COMMENT ON VIEW mine.tops IS 'notes'",
            )
            .unwrap();
        let expected = [
            "comment mine.daily",
            "comment mine.daily.one",
            "comment mine.tops",
            "index main.by_close",
            "macro main.ones",
            "macro main.twice",
            "schema mine.",
            "sequence mine.numbers",
            "table main.daily",
            "table mine.daily",
            "type main.mood",
            "view mine.tops",
        ];
        let found = objects(&connection, "memory").unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(objects(&connection, "temp").unwrap(), BTreeSet::new());
    }

    #[test]
    fn paths_mean_files_below_this_folder() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_string_lossy();
        for (path, expected) in [
            ("data/x.db", "'data/x.db'".to_owned()),
            ("it's/x.db", "'it''s/x.db'".to_owned()),
            ("a/~/x.db", "'a/~/x.db'".to_owned()),
            ("/~/a:b/x.db", "'/~/a:b/x.db'".to_owned()),
            ("~/x.db", format!("'{here}/~/x.db'")),
            ("~me", format!("'{here}/~me'")),
            ("http:/a/x.db", format!("'{here}/http:/a/x.db'")),
        ] {
            assert_eq!(quoted_path(Path::new(path)), expected);
        }
    }
}
