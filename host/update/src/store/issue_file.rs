//! The file of one issue.
//!
//! It begins as a copy of an empty one, because making its table and view costs as much as filling
//! it, and is brought to the disk once, when it is finished.

use std::fs;
use std::path::Path;

use domain::JstDate;
use duckdb::Connection;
use pricestore::sql::{quoted, quoted_path};

use super::durable::{clear, put_in_place};
use super::error::StoreError;
use super::opening::connect;
use super::paths::{StorePaths, unfinished};
use super::schema::{ADJUSTED, published_definitions, published_names};

/// What the files are written with: the smallest blocks, because each file has about 30 KB of
/// rows, and a version that older programs can open too. Versions before 1.5 need twice the room.
const OPTIONS: &str = "BLOCK_SIZE 16384, STORAGE_VERSION 'v1.5.0'";

/// Settings with which what is committed goes into the file at once and nothing goes to a log, and
/// nothing is brought to the disk: a file is, as a whole, when it is finished.
const ONE_STEP: &str = "SET checkpoint_threshold = '0B';
    SET auto_checkpoint_skip_wal_threshold = 0; SET fsync_mode = 'none';";

/// The rows of one issue in the published database.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) code: String,
    pub(super) content: Content,
    /// Between these row numbers are all its rows.
    pub(super) row_numbers: (u64, u64),
    pub(super) last: JstDate,
}

/// What a per-issue database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) rows: u64,
    pub(super) digest: u64,
}

/// The published combined database, in an instance of its own: what [`EmptyFile::make`] sets must
/// not hold for the job's own one.
pub(super) fn open_published(paths: &StorePaths, mother: &Path) -> Result<Connection, StoreError> {
    let connection = connect(paths)?;
    let attach = format!("ATTACH {} AS published (READ_ONLY)", quoted_path(mother));
    connection.execute_batch(&attach).map_err(StoreError::database("open what was published"))?;
    Ok(connection)
}

/// The bytes of a file without rows.
pub(super) struct EmptyFile(Vec<u8>);

impl EmptyFile {
    /// Makes it, and sets the instance up for writing files, each with one thread.
    pub(super) fn make(published: &Connection, paths: &StorePaths) -> Result<Self, StoreError> {
        let failed = |error| StoreError::database("make an empty per-issue database")(error);
        let path = unfinished(&paths.work_folder().join("empty.db"));
        clear(&path)?;
        let make = format!(
            "SET threads = 1; {ONE_STEP} ATTACH {} AS empty ({OPTIONS}); USE empty;
             CREATE TABLE daily ({}); {ADJUSTED}; USE memory; DETACH empty",
            quoted_path(&path),
            published_definitions()
        );
        published.execute_batch(&make).map_err(failed)?;
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        clear(&path)?;
        Ok(Self(bytes))
    }
}

/// Writes one file after the other.
pub(super) struct IssueWriter<'a> {
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
        let connection = published.try_clone();
        let connection = connection.map_err(StoreError::database("start the threads"))?;
        Ok(Self { connection, name: format!("issue_{number}"), empty, paths })
    }

    /// Writes the file of one issue and tells its size.
    pub(super) fn write(&self, issue: &Issue) -> Result<u64, StoreError> {
        let failed = |error| StoreError::database("write a per-issue database")(error);
        let Self { connection, name, empty, paths } = self;
        let path = paths.issue(&issue.code);
        let aside = unfinished(&path);
        clear(&aside)?;
        fs::write(&aside, &empty.0).map_err(StoreError::io("write", &aside))?;
        let attach = format!("ATTACH {} AS {name}", quoted_path(&aside));
        connection.execute_batch(&attach).map_err(failed)?;
        let outcome = connection.execute(&fill(name, issue), []);
        // This also brings the rows into the file. Where it fails, the name stays in use.
        let detached = connection.execute_batch(&format!("DETACH {name}"));
        let rows = outcome.and_then(|rows| detached.map(|()| rows)).map_err(failed)?;
        if rows as u64 != issue.content.rows {
            let what = format!("it got {rows} instead of {} rows", issue.content.rows);
            return Err(StoreError::Unusable { path: aside, what });
        }
        let bytes = fs::metadata(&aside).map_err(StoreError::io("look at", &aside))?.len();
        put_in_place(&aside, &path)?;
        Ok(bytes)
    }
}

/// The statement that fills the file. Rows come in the order that they have, which is by date.
fn fill(name: &str, issue: &Issue) -> String {
    let (first, last) = issue.row_numbers;
    format!(
        "INSERT INTO {name}.daily SELECT {} FROM published.daily
           WHERE rowid BETWEEN {first} AND {last} AND code = {}",
        published_names(),
        quoted(&issue.code)
    )
}
