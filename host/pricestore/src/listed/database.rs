//! The lists as tables: in the update job's own database, and in the file `jp/listed_info.db`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use domain::JstDate;
use duckdb::arrow::array::{ArrayRef, Date32Array, StringArray, UInt64Array};
use duckdb::{Config, Connection, Row};
use serde_json::{Value, json};

use super::{IssueField, IssueInfo, ListedHistory, Span};
use crate::STORAGE_VERSION;
use crate::limits::LISTED_SPANS_MAX;
use crate::sql::{self, append, must_be_database, quoted_path, rows};

/// The table of spans.
const ISSUES: &str = "listed_issue";
/// The table of lists.
const LISTS: &str = "list_date";
/// Memory of DuckDB for so little.
const MEMORY: &str = "256MB";

/// Why there are no lists.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListedError {
    /// More than is ever needed.
    #[error("the lists of issues have more than {max} {what}")]
    TooMany {
        /// Issues or spans.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The tables are others, or hold what no list has.
    #[error("it is no database of listed issues: {0}")]
    Form(String),
    /// The file cannot be read or written.
    #[error("the file cannot be read or written")]
    Io(#[from] io::Error),
    /// The database engine refused something.
    #[error("the database engine failed: {0}")]
    Database(#[from] duckdb::Error),
}

impl ListedError {
    pub(super) fn too_many(what: &'static str, max: usize) -> Self {
        Self::TooMany { what, max }
    }
}

/// Names, types and meanings of the columns of the table of spans.
fn columns() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut columns = vec![
        ("code", "VARCHAR", "issue code, as in the combined database"),
        ("from_date", "DATE", "date of the first list that says so"),
        (
            "to_date",
            "DATE",
            "day before the first later list that says something else; null where there is none",
        ),
    ];
    columns.extend(IssueField::ALL.map(|field| (field.column(), "VARCHAR", field.meaning())));
    columns
}

/// The description of the file, for `schemas/`.
#[must_use]
pub fn schema() -> Value {
    let optional = |name: &str| name != "code" && name != "from_date";
    let column = |(name, kind, meaning): (&str, &str, &str)| json!({ "name": name, "type": kind, "optional": optional(name), "meaning": meaning });
    let issues: Vec<Value> = columns().into_iter().map(column).collect();
    json!({
        "title": "Listed issues",
        "file": "jp/listed_info.db, a DuckDB database",
        "meaning": "What was known of an issue on a date is in the row with from_date <= date and \
                    (to_date is null or date <= to_date). Where there is no such row nothing was known: \
                    the last list of the date or before does not have the issue, or there is none. A \
                    list never says anything of the days before it.",
        "tables": {
            ISSUES: {
                "row": "what all lists from one date to another say of an issue, by code and from_date",
                "columns": issues,
            },
            LISTS: {
                "row": "a list that is stored, by date",
                "columns": [
                    { "name": "date", "type": "DATE", "optional": false, "meaning": "its date" },
                    { "name": "issues", "type": "UBIGINT", "optional": false,
                      "meaning": "how many issues it has" },
                ],
            },
        },
    })
}

/// Makes the tables in a database that is attached under this name, where they are not there yet.
///
/// # Errors
/// What DuckDB says.
pub fn create(connection: &Connection, catalog: &str) -> duckdb::Result<()> {
    let columns = columns().into_iter().map(|(name, kind, _)| format!("{name} {kind}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    connection.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS {catalog}.{ISSUES} ({columns});
         CREATE TABLE IF NOT EXISTS {catalog}.{LISTS} (date DATE, issues UBIGINT);"
    ))
}

/// Puts lists in the place of those that are in the tables. A transaction must be open.
///
/// # Errors
/// What DuckDB says.
pub fn store(
    connection: &Connection,
    catalog: &str,
    history: &ListedHistory,
) -> duckdb::Result<()> {
    connection
        .execute_batch(&format!("DELETE FROM {catalog}.{ISSUES}; DELETE FROM {catalog}.{LISTS}"))?;
    let dates = |dates: &mut dyn Iterator<Item = Option<JstDate>>| -> ArrayRef {
        Arc::new(dates.map(|date| date.map(|date| date.to_epoch_days())).collect::<Date32Array>())
    };
    if !history.lists().is_empty() {
        let counts: UInt64Array = history.lists().values().copied().map(Some).collect();
        let days = dates(&mut history.lists().keys().copied().map(Some));
        append(
            connection,
            (catalog, LISTS),
            [rows([("date", days), ("issues", Arc::new(counts))])?],
        )?;
    }
    let spans: Vec<Span<'_>> = history.spans().collect();
    if spans.is_empty() {
        return Ok(());
    }
    let codes: StringArray = spans.iter().map(|span| Some(span.code)).collect();
    let mut values: Vec<(&str, ArrayRef)> = vec![
        ("code", Arc::new(codes)),
        ("from_date", dates(&mut spans.iter().map(|span| Some(span.from)))),
        ("to_date", dates(&mut spans.iter().map(|span| span.to))),
    ];
    for field in IssueField::ALL {
        let texts: StringArray = spans.iter().map(|span| span.info.text(field)).collect();
        values.push((field.column(), Arc::new(texts)));
    }
    append(connection, (catalog, ISSUES), [rows(values)?])
}

/// The lists in the tables of a database that is attached under this name. Texts that are not fit to be
/// shown are left out.
///
/// # Errors
/// Where the tables are others or hold what no list has.
pub fn load(connection: &Connection, catalog: &str) -> Result<ListedHistory, ListedError> {
    check_form(connection, catalog)?;
    let sql = format!(
        "SELECT (date - DATE '1970-01-01')::INTEGER, issues FROM {catalog}.{LISTS} ORDER BY 1"
    );
    let mut lists = connection.prepare(&sql)?;
    let lists = lists.query_map([], |row| Ok((day(row, 0)?, row.get(1)?)))?;
    let lists: BTreeMap<JstDate, u64> = lists.collect::<duckdb::Result<_>>()?;
    let texts: Vec<&str> = IssueField::ALL.iter().map(|field| field.column()).collect();
    let sql = format!(
        "SELECT code, (from_date - DATE '1970-01-01')::INTEGER, (to_date - DATE '1970-01-01')::INTEGER,
           {} FROM {catalog}.{ISSUES} ORDER BY code, from_date LIMIT {}",
        texts.join(", "),
        LISTED_SPANS_MAX + 1
    );
    let mut spans = connection.prepare(&sql)?;
    let spans = spans.query_map([], |row| {
        let to = match row.get::<_, Option<i32>>(2)? {
            Some(days) => Some(date(days)?),
            None => None,
        };
        let mut info = IssueInfo::default();
        for (place, field) in IssueField::ALL.into_iter().enumerate() {
            let text: Option<String> = row.get(3 + place)?;
            // What is not fit to be shown is as if it was not there (rule N5).
            let _ = info.set(field, text.as_deref().unwrap_or_default());
        }
        Ok((row.get::<_, String>(0)?, day(row, 1)?, to, Arc::new(info)))
    })?;
    let spans: Vec<_> = spans.collect::<duckdb::Result<_>>()?;
    let spans =
        spans.iter().map(|(code, from, to, info)| (code.as_str(), *from, *to, Arc::clone(info)));
    ListedHistory::from_spans(lists, spans)
}

fn check_form(connection: &Connection, catalog: &str) -> Result<(), ListedError> {
    let lists = [("date", "DATE"), ("issues", "UBIGINT")];
    let issues: Vec<(&str, &str)> =
        columns().into_iter().map(|(name, kind, _)| (name, kind)).collect();
    for (table, expected) in [(LISTS, &lists[..]), (ISSUES, &issues)] {
        let sql = "SELECT column_name, data_type FROM duckdb_columns()
            WHERE database_name = ? AND table_name = ? ORDER BY column_index";
        let mut found = connection.prepare(sql)?;
        let found = found.query_map([catalog, table], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found: Vec<(String, String)> = found.collect::<duckdb::Result<_>>()?;
        let found = found.iter().map(|(name, kind)| (name.as_str(), kind.as_str()));
        if !found.eq(expected.iter().copied()) {
            return Err(ListedError::Form(format!(
                "its table {table} has other columns, or is missing"
            )));
        }
    }
    Ok(())
}

fn day(row: &Row<'_>, place: usize) -> duckdb::Result<JstDate> {
    date(row.get(place)?)
}

fn date(days: i32) -> duckdb::Result<JstDate> {
    JstDate::from_epoch_days(days).ok_or(duckdb::Error::InvalidQuery)
}

fn connect() -> duckdb::Result<Connection> {
    let config = Config::default().max_memory(MEMORY)?.threads(1)?;
    let connection = sql::open(config)?;
    connection.execute_batch("SET temp_directory = ''; SET enable_progress_bar = false")?;
    Ok(connection)
}

/// Writes lists as a database of their own. The file must not be there yet; bringing it to the disk and
/// giving it its name is for the caller.
///
/// # Errors
/// What DuckDB says.
pub fn write_file(path: &Path, history: &ListedHistory) -> Result<(), ListedError> {
    let connection = connect()?;
    connection.execute_batch(&format!(
        "ATTACH {} AS aside (STORAGE_VERSION '{STORAGE_VERSION}', RECOVERY_MODE no_wal_writes)",
        quoted_path(path)
    ))?;
    create(&connection, "aside")?;
    let transaction = connection.unchecked_transaction()?;
    store(&transaction, "aside", history)?;
    transaction.commit()?;
    connection.execute_batch("CHECKPOINT aside; DETACH aside")?;
    Ok(())
}

/// The lists in a file; none where there is no file.
///
/// # Errors
/// Where it cannot be read, or is no such database.
pub fn read_file(path: &Path) -> Result<Option<ListedHistory>, ListedError> {
    if !path.try_exists()? {
        return Ok(None);
    }
    must_be_database(path)?;
    let connection = connect()?;
    connection.execute_batch(&format!("ATTACH {} AS listed (READ_ONLY)", quoted_path(path)))?;
    load(&connection, "listed").map(Some)
}
