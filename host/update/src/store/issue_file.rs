//! The file of one issue.
//!
//! It begins as a copy of an empty one, because making its table and views costs as much as filling
//! it, and is brought to the disk once, when it is finished. The rows of some issues that lie together
//! are read at once and handed on as columns: finding those of one costs as much as storing them.

use std::fs;
use std::path::Path;

use domain::JstDate;
use duckdb::arrow::array::{AsArray, RecordBatch};
use duckdb::{ArrowStream, Connection};
use pricestore::generation::{GenerationFileName, PublishedFile};
use pricestore::sql::{column, quoted, quoted_path};

use super::durable::{clear, sync_file};
use super::error::StoreError;
use super::opening::connect;
use super::packed;
use super::paths::{StorePaths, unfinished};
use super::schema::ADJUSTED_ISSUE;
use super::written;

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
    /// Before this day nobody knows what compares with the later rows.
    pub(super) unknown_before: Option<JstDate>,
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
        let sources =
            "SELECT DISTINCT source FROM published.daily WHERE source IS NOT NULL ORDER BY 1";
        let sources: Vec<String> = column(published, sources).map_err(failed)?;
        let make = format!(
            "SET threads = 1; {ONE_STEP} ATTACH {} AS empty ({OPTIONS}); USE empty;
             CREATE TABLE {} ({}); {}; {ADJUSTED_ISSUE}; USE memory; DETACH empty",
            quoted_path(&path),
            packed::TABLE,
            packed::definitions(&sources),
            packed::view()
        );
        published.execute_batch(&make).map_err(failed)?;
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        clear(&path)?;
        Ok(Self(bytes))
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
        let rows = format!(
            "SELECT {} FROM published.daily WHERE rowid BETWEEN {} AND {}",
            packed::values(&comparable(issues)),
            first.row_numbers.0,
            last.row_numbers.1
        );
        let mut statement = self.reader.prepare(&rows).map_err(failed)?;
        let stream = statement.stream_arrow([]).map_err(failed)?;
        let mut rows = Rows { stream, batch: None };
        for issue in issues {
            let file = self.write_one(issue, &mut rows)?;
            if !give(issue, file) {
                break;
            }
        }
        Ok(())
    }

    /// Writes the file of one issue, whose rows come next, and tells what it shall be.
    fn write_one(&self, issue: &Issue, rows: &mut Rows<'_>) -> Result<PublishedFile, StoreError> {
        let failed = |error| StoreError::database("write a per-issue database")(error);
        let Self { connection, name, empty, paths, .. } = self;
        let path = paths.issue(&issue.code);
        let aside = unfinished(&path);
        clear(&aside)?;
        fs::write(&aside, &empty.0).map_err(StoreError::io("write", &aside))?;
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
    fn fill(&self, issue: &Issue, rows: &mut Rows<'_>) -> duckdb::Result<u64> {
        let mut table =
            self.connection.appender_to_catalog_and_db(packed::TABLE, &self.name, "main")?;
        let mut done = 0;
        while done < issue.content.rows {
            let most = usize::try_from(issue.content.rows - done).unwrap_or(usize::MAX);
            let Some(batch) = rows.next(most)? else { break };
            let codes = batch.column(CODE).as_string::<i32>();
            if !codes.iter().all(|code| code == Some(&issue.code)) {
                break;
            }
            done += batch.num_rows() as u64;
            table.append_record_batch(batch)?;
        }
        table.flush()?;
        Ok(done)
    }
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

/// The place of the code among the columns.
const CODE: usize = 1;

/// Rows as they come.
struct Rows<'s> {
    stream: ArrowStream<'s>,
    /// What was read and not handed on.
    batch: Option<RecordBatch>,
}

impl Rows<'_> {
    /// The next rows, at most so many; none at the end.
    fn next(&mut self, most: usize) -> duckdb::Result<Option<RecordBatch>> {
        let batch = loop {
            match self.batch.take() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                _ => match self.stream.next().transpose()? {
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
