//! The file of one issue: its rows of the combined database, and what the view `adjusted` needs beside them.
//! It begins as a copy of an empty one, because making its tables and the view costs as much as filling it.

use std::fs;
use std::path::Path;

use domain::JstDate;
use duckdb::Connection;
use pricestore::STORAGE_VERSION;
use pricestore::generation::{GenerationFileName, PublishedFile};
use pricestore::sql::{must_be_published, quoted, quoted_path};

use super::durable::{clear, sync_file};
use super::error::StoreError;
use super::opening::connect;
use super::paths::{StorePaths, unfinished};
use super::schema::{ADJUSTED_MARK, UNKNOWN_BEFORE, adjusted, names, published_definitions};
use super::written;

/// Bytes of a block, the fewest that there may be: in larger ones each file would be several times as large.
const BLOCK_BYTES: u32 = 16_384;

/// Settings with which what is committed goes into the file at once and nothing goes to a log.
const ONE_STEP: &str = "SET checkpoint_threshold = '0B';
    SET auto_checkpoint_skip_wal_threshold = 0;";

/// The rows of one issue in the published database.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) code: String,
    pub(super) content: Content,
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

/// The published combined database, in an instance of its own: what [`empty_file`] sets must not hold for the
/// job's own one.
pub(super) fn open_published(paths: &StorePaths, mother: &Path) -> Result<Connection, StoreError> {
    must_be_published(mother).map_err(StoreError::io("open", mother))?;
    let connection = connect(paths)?;
    let attach = format!("ATTACH {} AS published (READ_ONLY)", quoted_path(mother));
    connection.execute_batch(&attach).map_err(StoreError::database("open what was published"))?;
    Ok(connection)
}

/// The bytes of a file without rows; and sets the instance up for writing files, each with one thread.
pub(super) fn empty_file(
    published: &Connection,
    paths: &StorePaths,
) -> Result<Vec<u8>, StoreError> {
    let path = unfinished(&paths.work_folder().join("empty.db"));
    clear(&path)?;
    let make = format!(
        "SET threads = 1; {ONE_STEP}
         ATTACH {} AS empty (BLOCK_SIZE {BLOCK_BYTES}, STORAGE_VERSION '{STORAGE_VERSION}'); USE empty;
         CREATE TABLE daily ({}); CREATE TABLE {UNKNOWN_BEFORE}; {view}; USE memory; DETACH empty",
        quoted_path(&path),
        published_definitions(),
        view = adjusted(),
    );
    let made = published.execute_batch(&make);
    made.map_err(StoreError::database("make an empty per-issue database"))?;
    let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
    clear(&path)?;
    Ok(bytes)
}

/// Writes one file after the other.
pub(super) struct IssueWriter<'a> {
    connection: Connection,
    /// What the file is called while it is open.
    name: String,
    empty: &'a [u8],
    paths: &'a StorePaths,
}

impl<'a> IssueWriter<'a> {
    /// The writer with this number, of those that work at the same time.
    pub(super) fn new(
        published: &Connection,
        number: usize,
        empty: &'a [u8],
        paths: &'a StorePaths,
    ) -> Result<Self, StoreError> {
        let connection = published.try_clone();
        let connection = connection.map_err(StoreError::database("start the threads"))?;
        Ok(Self { connection, name: format!("issue_{number}"), empty, paths })
    }

    /// Writes the file of an issue aside, and tells what it shall be.
    pub(super) fn write(&self, issue: &Issue) -> Result<PublishedFile, StoreError> {
        let failed = |error| StoreError::database("write a per-issue database")(error);
        let Self { connection, name, empty, paths } = self;
        let path = paths.issue(&issue.code);
        let aside = unfinished(&path);
        clear(&aside)?;
        fs::write(&aside, empty).map_err(StoreError::io("write", &aside))?;
        let attach = format!("ATTACH {} AS {name}", quoted_path(&aside));
        connection.execute_batch(&attach).map_err(failed)?;
        let outcome = self.fill(issue);
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

    /// Fills the file, and tells how many rows of the issue there were.
    fn fill(&self, issue: &Issue) -> duckdb::Result<u64> {
        let Self { connection, name, .. } = self;
        let (code, names) = (quoted(&issue.code), names());
        let transaction = connection.unchecked_transaction()?;
        let rows = transaction.execute(
            &format!(
                "INSERT INTO {name}.daily SELECT {names}, {ADJUSTED_MARK} FROM published.daily
                   WHERE code = {code} ORDER BY date"
            ),
            [],
        )?;
        if let Some(date) = issue.unknown_before {
            let insert =
                format!("INSERT INTO {name}.unknown_before VALUES ({code}, DATE '{date}')");
            transaction.execute_batch(&insert)?;
        }
        transaction.commit()?;
        Ok(rows as u64)
    }
}
