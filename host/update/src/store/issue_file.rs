//! The file of one issue.
//!
//! It begins as a copy of an empty one, because making its table and views costs as much as filling
//! it. The rows of some issues that lie together
//! are read at once and handed on as columns: finding those of one costs as much as storing them.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use domain::JstDate;
use duckdb::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use duckdb::arrow::datatypes::Int64Type;
use duckdb::{Appender, Connection};
use pricestore::STORAGE_VERSION;
use pricestore::generation::{GenerationFileName, PublishedFile};
use pricestore::sql::{batches, column, must_be_published, quoted, quoted_path, rows};

use super::durable::{clear, sync_file};
use super::error::StoreError;
use super::opening::connect;
use super::packed::{self, Sources};
use super::paths::{StorePaths, unfinished};
use super::schema::ADJUSTED_ISSUE;
use super::written;

/// Bytes of a block, the fewest that there may be: each file has about 30 KB of rows.
const BLOCK_BYTES: u32 = 16_384;

/// Settings with which what is committed goes into the file at once and nothing goes to a log.
const ONE_STEP: &str = "SET checkpoint_threshold = '0B';
    SET auto_checkpoint_skip_wal_threshold = 0;";

/// The rows of one issue in the published database.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) code: String,
    pub(super) content: Content,
    /// The numbers of its rows among those that are by issue and date.
    pub(super) in_order: Range<u64>,
    /// The numbers of its later rows in [`LATER`].
    pub(super) later: Range<u64>,
    pub(super) last: JstDate,
    /// Before this day nobody knows what compares with the later rows.
    pub(super) unknown_before: Option<JstDate>,
}

/// What a per-issue database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) rows: u64,
    pub(super) digest: u64,
}

/// The table in memory with the rows of a published database that came after those by issue and date; also by
/// issue and date.
pub(super) const LATER: &str = "memory.later";

/// The published combined database, in an instance of its own: what [`EmptyFile::make`] sets must
/// not hold for the job's own one.
pub(super) fn open_published(paths: &StorePaths, mother: &Path) -> Result<Connection, StoreError> {
    must_be_published(mother).map_err(StoreError::io("open", mother))?;
    let connection = connect(paths)?;
    let attach = format!("ATTACH {} AS published (READ_ONLY)", quoted_path(mother));
    connection.execute_batch(&attach).map_err(StoreError::database("open what was published"))?;
    Ok(connection)
}

/// A file without rows.
pub(super) struct EmptyFile {
    bytes: Vec<u8>,
    sources: Sources,
}

impl EmptyFile {
    /// Makes it, and sets the instance up for writing files, each with one thread.
    pub(super) fn make(published: &Connection, paths: &StorePaths) -> Result<Self, StoreError> {
        let failed = |error| StoreError::database("make an empty per-issue database")(error);
        let path = unfinished(&paths.work_folder().join("empty.db"));
        clear(&path)?;
        let sources =
            "SELECT DISTINCT source FROM published.daily WHERE source IS NOT NULL ORDER BY 1";
        let sources = Sources::new(column(published, sources).map_err(failed)?);
        let make = format!(
            "SET threads = 1; {ONE_STEP} ATTACH {} AS empty (BLOCK_SIZE {BLOCK_BYTES}, STORAGE_VERSION '{STORAGE_VERSION}'); USE empty;
             CREATE TABLE {} ({}); {}; {ADJUSTED_ISSUE}; USE memory; DETACH empty",
            quoted_path(&path),
            packed::TABLE,
            sources.definitions(),
            sources.view()
        );
        published.execute_batch(&make).map_err(failed)?;
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        clear(&path)?;
        Ok(Self { bytes, sources })
    }
}

/// Writes one file after the other.
pub(super) struct IssueWriter<'a> {
    /// What it reads with: rows that are handed on are still being read.
    reader: Connection,
    connection: Connection,
    /// What the file is called while it is open.
    name: String,
    empty: &'a EmptyFile,
    paths: &'a StorePaths,
}

impl<'a> IssueWriter<'a> {
    /// The writer with this number, of those that work at the same time.
    pub(super) fn new(
        published: &Connection,
        number: usize,
        empty: &'a EmptyFile,
        paths: &'a StorePaths,
    ) -> Result<Self, StoreError> {
        let clone = || published.try_clone().map_err(StoreError::database("start the threads"));
        let (reader, connection) = (clone()?, clone()?);
        // Its statements are as they have to be; making them better takes longer than what they do.
        let plain = connection.execute_batch("PRAGMA disable_optimizer");
        plain.map_err(StoreError::database("start the threads"))?;
        Ok(Self { reader, connection, name: format!("issue_{number}"), empty, paths })
    }

    /// Writes the files of issues whose rows follow each other in the published database, each aside, and
    /// gives them away, as long as they are taken.
    pub(super) fn write<'i>(
        &self,
        issues: &[&'i Issue],
        mut give: impl FnMut(&'i Issue, PublishedFile) -> bool,
    ) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (issues.first(), issues.last()) else { return Ok(()) };
        let failed = |error| StoreError::database("read the published database")(error);
        let select = |table: &str, numbers: Range<u64>| {
            format!(
                "SELECT rowid, {} FROM {table} WHERE rowid >= {} AND rowid < {}",
                self.empty.sources.values(&comparable(issues)),
                numbers.start,
                numbers.end
            )
        };
        // These are few, and a connection has one stream at a time.
        let later = first.later.start..last.later.end;
        let later: Vec<RecordBatch> = match later.is_empty() {
            true => Vec::new(),
            false => {
                let mut statement = self.reader.prepare(&select(LATER, later)).map_err(failed)?;
                let rows = batches(&mut statement).map_err(failed)?;
                rows.collect::<duckdb::Result<_>>().map_err(failed)?
            }
        };
        let in_order = select("published.daily", first.in_order.start..last.in_order.end);
        let mut statement = self.reader.prepare(&in_order).map_err(failed)?;
        let mut rows = [
            Rows::new(batches(&mut statement).map_err(failed)?),
            Rows::new(later.into_iter().map(Ok)),
        ];
        for issue in issues {
            let file = self.write_one(issue, &mut rows)?;
            if !give(issue, file) {
                break;
            }
        }
        Ok(())
    }

    /// Writes the file of one issue, whose rows come next, and tells what it shall be.
    fn write_one(
        &self,
        issue: &Issue,
        rows: &mut [Rows<'_>; 2],
    ) -> Result<PublishedFile, StoreError> {
        let failed = |error| StoreError::database("write a per-issue database")(error);
        let Self { connection, name, empty, paths, .. } = self;
        let path = paths.issue(&issue.code);
        let aside = unfinished(&path);
        clear(&aside)?;
        fs::write(&aside, &empty.bytes).map_err(StoreError::io("write", &aside))?;
        let attach = format!("ATTACH {} AS {name}", quoted_path(&aside));
        connection.execute_batch(&attach).map_err(failed)?;
        let outcome = self.fill(issue, rows);
        // This also brings the rows into the file. Where it fails, the name stays in use.
        let detached = connection.execute_batch(&format!("DETACH {name}"));
        let rows = outcome.and_then(|rows| detached.map(|()| rows)).map_err(failed)?;
        if rows != issue.content.rows {
            let what = format!("it got {rows} instead of {} rows", issue.content.rows);
            return Err(StoreError::Unusable { path: aside, what });
        }
        let Some(name) = GenerationFileName::issue(&issue.code) else {
            let what = "its name is no code of an issue".to_owned();
            return Err(StoreError::Unusable { path: aside, what });
        };
        let file = written::finished(&aside, &name)?;
        sync_file(&aside)?;
        Ok(file)
    }

    /// Fills the file, and tells how many rows of the issue there were. They come in the order that
    /// they have, which is by date.
    fn fill(&self, issue: &Issue, rows: &mut [Rows<'_>; 2]) -> duckdb::Result<u64> {
        let mut table =
            self.connection.appender_to_catalog_and_db(packed::TABLE, &self.name, "main")?;
        let code = packed::code_number(&issue.code);
        let mut done = 0;
        for (rows, numbers) in rows.iter_mut().zip([&issue.in_order, &issue.later]) {
            done += put(&mut table, rows, numbers.clone(), code)?;
        }
        table.flush()?;
        Ok(done)
    }
}

/// Puts the rows with these numbers into a table, as long as they are what comes next, and tells how many
/// they were.
fn put(
    table: &mut Appender<'_>,
    rows: &mut Rows<'_>,
    numbers: Range<u64>,
    code: i64,
) -> duckdb::Result<u64> {
    let mut next = numbers.start;
    while next < numbers.end {
        let most = usize::try_from(numbers.end - next).unwrap_or(usize::MAX);
        let Some(batch) = rows.next(most)? else { break };
        let found = batch.column(NUMBER).as_primitive::<Int64Type>().values();
        if found.iter().zip(next..).any(|(found, expected)| u64::try_from(*found) != Ok(expected)) {
            break;
        }
        next += batch.num_rows() as u64;
        table.append_record_batch(with_code(&batch, code)?)?;
    }
    Ok(next - numbers.start)
}

/// The columns of the table: those that were read, with the code in the place of the row's number.
fn with_code(batch: &RecordBatch, code: i64) -> duckdb::Result<RecordBatch> {
    let code: ArrayRef = Arc::new(Int64Array::from_value(code, batch.num_rows()));
    let names = batch.schema_ref().fields().iter().map(|field| field.name().as_str());
    let mut columns: Vec<_> = names.zip(batch.columns().iter().cloned()).collect();
    columns.remove(NUMBER);
    columns.insert(packed::CODE_PLACE, ("code", code));
    rows(columns)
}

/// Whether a row of these issues compares with the later ones, as SQL.
fn comparable(issues: &[&Issue]) -> String {
    let known = issues.iter().filter_map(|issue| {
        let date = issue.unknown_before?;
        Some(format!("WHEN {} THEN date >= DATE '{date}'", quoted(&issue.code)))
    });
    let cases: Vec<String> = known.collect();
    match cases.is_empty() {
        true => "true".to_owned(),
        false => format!("CASE code {} ELSE true END", cases.join(" ")),
    }
}

/// The place of the row's number among the columns that are read.
const NUMBER: usize = 0;

/// Rows as they come.
struct Rows<'s> {
    batches: Box<dyn Iterator<Item = duckdb::Result<RecordBatch>> + 's>,
    /// What was read and not handed on.
    batch: Option<RecordBatch>,
}

impl<'s> Rows<'s> {
    fn new(batches: impl Iterator<Item = duckdb::Result<RecordBatch>> + 's) -> Self {
        Self { batches: Box::new(batches), batch: None }
    }

    /// The next rows, at most so many; none at the end.
    fn next(&mut self, most: usize) -> duckdb::Result<Option<RecordBatch>> {
        let batch = loop {
            match self.batch.take() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                _ => match self.batches.next().transpose()? {
                    Some(batch) => self.batch = Some(batch),
                    None => return Ok(None),
                },
            }
        };
        let length = most.min(batch.num_rows());
        self.batch = Some(batch.slice(length, batch.num_rows() - length));
        Ok(Some(batch.slice(0, length)))
    }
}
