//! The database of one issue: whose a file is, and how one is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::JstDate;
use duckdb::{Connection, params};
use marketdata::board::{FinishedSegment, depth_fields, trade_print_fields};
use marketdata::parquet::Field;
use pricestore::STORAGE_VERSION;
use pricestore::generation::{PublishedFile, digest_of};
use pricestore::sql::{column, must_be_database, quoted, quoted_path};

use super::segments::Dated;
use crate::store::durable::clear;
use crate::store::error::StoreError;
use crate::store::paths::{StorePaths, unfinished};

/// Whether a file is there with these bytes.
pub(super) fn has_bytes(path: &Path, file: &PublishedFile) -> Result<bool, StoreError> {
    match digest_of(path) {
        Ok((bytes, xxh128)) => Ok((bytes, &xxh128) == (file.bytes, &file.xxh128)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Whether a file that has other bytes than the job wrote is the job's nevertheless, as far as can be told:
/// a database with the job's tables, one that cannot be opened, or a file that was cut or emptied.
pub(super) fn is_of_the_job(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    /// Bytes in which the database engine's mark is, and where it begins.
    const HEAD: (usize, usize) = (12, 8);
    if !fs::symlink_metadata(path).map_err(StoreError::io("look at", path))?.is_file() {
        return Ok(false);
    }
    let mut head = Vec::with_capacity(HEAD.0);
    let file = atomic_file::open_to_read(path).map_err(StoreError::io("read", path))?;
    file.take(HEAD.0 as u64).read_to_end(&mut head).map_err(StoreError::io("read", path))?;
    if head.iter().all(|byte| *byte == 0) {
        return Ok(true);
    }
    if head.get(HEAD.1..) != Some(b"DUCK") {
        return Ok(false);
    }
    must_be_database(path).map_err(StoreError::io("open", path))?;
    let attach = format!("ATTACH {} AS found (READ_ONLY)", quoted_path(path));
    if connection.execute_batch(&attach).is_err() {
        return Ok(true);
    }
    let tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'found'";
    let tables = column::<String>(connection, tables);
    connection.execute_batch("DETACH found").map_err(StoreError::database("close a database"))?;
    let is_ours = |tables: Vec<String>| tables.iter().any(|table| table == "recorded_segment");
    // What is so damaged that its tables cannot be listed was one of the job's.
    Ok(tables.map_or(true, is_ours))
}

/// One of the two tables.
struct Table {
    name: &'static str,
    fields: fn() -> Vec<Field>,
    file: fn(&FinishedSegment) -> Option<&PathBuf>,
}

const TABLES: [Table; 2] = [
    Table { name: "depth", fields: depth_fields, file: |segment| segment.depth.as_ref() },
    Table { name: "trades", fields: trade_print_fields, file: |segment| segment.trades.as_ref() },
];

/// A folder that is called like `column=value` is no column.
pub(super) const PLAIN: &str = "hive_partitioning = false";

impl Table {
    /// Its columns as they are selected from a recording.
    fn columns(&self) -> String {
        let name = |field: &Field| match field.name.as_str() {
            "symbol" => "symbol AS code".to_owned(),
            name => name.to_owned(),
        };
        (self.fields)().iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The call that reads its files of some segments, in their order; none where there are none.
    fn reader<'a>(&self, segments: impl Iterator<Item = &'a Dated>) -> Option<String> {
        let files = segments.filter_map(|one| (self.file)(&one.segment));
        let files: Vec<String> = files.map(|path| quoted_path(path)).collect();
        (!files.is_empty())
            .then(|| format!("read_parquet([{}], filename = true, {PLAIN})", files.join(", ")))
    }
}

/// Writes the file of a code aside, with the rows that it has and those of the segments that it does not
/// have; gives how many order books and trades it got. Nothing where it has them all.
pub(super) fn write_one(
    connection: &Connection,
    paths: &StorePaths,
    code: &str,
    segments: &[Dated],
    is_again: bool,
) -> Result<Option<(u64, u64)>, StoreError> {
    let path = paths.board(code);
    let aside = unfinished(&path);
    clear(&aside)?;
    let is_new = is_again || !path.try_exists().map_err(StoreError::io("look for", &path))?;
    if !is_new {
        fs::copy(&path, &aside).map_err(StoreError::io("copy", &path))?;
    }
    let failed = |error| StoreError::database("write the database of a board")(error);
    let attach =
        format!("ATTACH {} AS issue (STORAGE_VERSION '{STORAGE_VERSION}')", quoted_path(&aside));
    connection.execute_batch(&attach).map_err(failed)?;
    let filled = fill(connection, code, segments, is_new);
    let detached = connection.execute_batch("CHECKPOINT issue; DETACH issue");
    let added = filled.and_then(|added| detached.map(|()| added)).map_err(failed)?;
    if added.is_none() {
        clear(&aside)?;
    }
    Ok(added)
}

fn fill(
    connection: &Connection,
    code: &str,
    segments: &[Dated],
    is_new: bool,
) -> duckdb::Result<Option<(u64, u64)>> {
    if is_new {
        connection.execute_batch(&create())?;
    }
    let has = "SELECT date || ' ' || segment FROM issue.recorded_segment";
    let has: BTreeSet<String> = column::<String>(connection, has)?.into_iter().collect();
    let name = |one: &Dated| format!("{} {}", one.date, one.segment.number);
    let mut rows: BTreeMap<(JstDate, u32), [u64; 2]> = BTreeMap::new();
    let transaction = connection.unchecked_transaction()?;
    for (at, table) in TABLES.iter().enumerate() {
        let missing = || segments.iter().filter(|one| !has.contains(&name(one)));
        let Some(reader) = table.reader(missing()) else { continue };
        let counts = format!("SELECT filename, count(*) FROM {reader} WHERE symbol = ? GROUP BY 1");
        let mut counts = transaction.prepare(&counts)?;
        let counts = counts.query_map([code], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let counts: BTreeMap<String, u64> = counts.collect::<duckdb::Result<_>>()?;
        let with_rows: Vec<&Dated> = missing()
            .filter(|one| {
                let file = (table.file)(&one.segment).map(|path| path.to_string_lossy());
                let count = file.and_then(|file| counts.get(&*file).copied());
                if let Some(count) = count {
                    rows.entry((one.date, one.segment.number)).or_default()[at] = count;
                }
                count.is_some()
            })
            .collect();
        let Some(reader) = table.reader(with_rows.into_iter()) else { continue };
        let insert = format!(
            "INSERT INTO issue.{} SELECT {} FROM {reader} WHERE symbol = {}",
            table.name,
            table.columns(),
            quoted(code)
        );
        let inserted = transaction.execute(&insert, [])? as u64;
        // What was counted and what was stored is the same, or nothing is.
        if inserted != counts.values().sum::<u64>() {
            return Err(duckdb::Error::StatementChangedRows(
                usize::try_from(inserted).unwrap_or(0),
            ));
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let (mut depth, mut trades) = (0, 0);
    let note = "INSERT INTO issue.recorded_segment VALUES (CAST(? AS DATE), ?, ?, ?)";
    for ((date, segment), [of_depth, of_trades]) in rows {
        transaction.execute(note, params![date.to_string(), segment, of_depth, of_trades])?;
        (depth, trades) = (depth + of_depth, trades + of_trades);
    }
    transaction.commit()?;
    Ok(Some((depth, trades)))
}

/// The tables of a new file.
fn create() -> String {
    use marketdata::parquet::Kind;
    let kind = |kind| match kind {
        Kind::Timestamp => "TIMESTAMP_NS",
        Kind::Yen => "DECIMAL(18, 4)",
        Kind::Int => "BIGINT",
        Kind::Double => "DOUBLE",
        Kind::Text => "VARCHAR",
        Kind::Bool => "BOOLEAN",
        Kind::Date => "DATE",
    };
    let table = |table: &Table| {
        let fields = (table.fields)();
        let columns = fields.iter().map(|field| {
            let name = if field.name == "symbol" { "code" } else { field.name.as_str() };
            let must = if field.optional { "" } else { " NOT NULL" };
            format!("{name} {}{must}", kind(field.kind))
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        format!("CREATE TABLE issue.{} ({columns});", table.name)
    };
    let tables: String = TABLES.iter().map(table).collect();
    format!(
        "{tables} CREATE TABLE issue.recorded_segment
           (date DATE NOT NULL, segment INTEGER NOT NULL, depth BIGINT NOT NULL, trades BIGINT NOT NULL)"
    )
}
