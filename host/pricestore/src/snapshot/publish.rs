//! Makes a snapshot from the combined database. Every step can be repeated: files are written
//! aside and renamed, and the file `CURRENT` is changed last.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use domain::JstDate;
use duckdb::arrow::array::RecordBatch;
use duckdb::{Config, Connection};

use super::base::{self, Base, Found, first_lines};
use super::dense::{Block, Sides};
use super::error::PublishError;
use super::folder::{SPILL, make_place, next_number, note_own, remove_old, sweep};
use super::lock::PublicationLock;
use super::table::{DATES, DATES_AND_CALENDAR, GRID, GridRows, SIDES_STORED, sides};
use super::{rows_are_in_order, splits};
use crate::calendar_table::has_calendar;
use crate::data_dir::DataDir;
use crate::generation::{GenerationFileName, PublishedFile};
use crate::grid::{GridWriter, Splits};
use crate::limits::{
    SNAPSHOT_BLOCK_CELLS, SNAPSHOT_CELLS_MAX, SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX,
};
use crate::sql::{self, append, log_of, must_be_published, quoted_path, view_among};

/// Batches of rows that wait for the table: those of a block, so that the next one is read while
/// they are appended.
const BATCHES_WAITING: usize = 16;
/// Memory of DuckDB, beside the cells of a block.
const MEMORY: &str = "2GB";

/// A snapshot that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The snapshot's number, from 1, as `CURRENT` names it.
    pub number: u64,
    /// Business days: those of the calendar where the source has one, else those that have a row.
    pub days: usize,
    /// Those of them that were read and stored; the others are as in the snapshot before.
    pub new_days: usize,
    /// Issues that have a row.
    pub codes: usize,
    /// First and last business day.
    pub range: (JstDate, JstDate),
    /// Why it was made whole though it should have gone on from the snapshot before: what is wrong with
    /// that one. None where nothing is.
    pub base_fault: Option<String>,
    /// Its files as they were written; none where nothing was written.
    pub files: Vec<PublishedFile>,
}

/// Publishes a new snapshot of the combined database and removes those before the last one. The
/// combined database is opened read-only; its writer must have closed it.
///
/// # Errors
///
/// Returns why nothing was published.
pub fn publish(data: &DataDir) -> Result<Published, PublishError> {
    publish_in_blocks(data, SNAPSHOT_BLOCK_CELLS)
}

/// The same with so many cells of the grid in memory at a time; each block of days is one reading of
/// the source.
///
/// # Errors
///
/// Returns why nothing was published.
pub fn publish_in_blocks(data: &DataDir, block_cells: usize) -> Result<Published, PublishError> {
    let mother = data.mother();
    if !mother.is_file() {
        return Err(PublishError::NoSource(mother));
    }
    let _lock = PublicationLock::take(data)?;
    publish_held(data, block_cells)
}

/// The same while the lock is held.
pub(super) fn publish_held(data: &DataDir, block_cells: usize) -> Result<Published, PublishError> {
    let mother = data.mother();
    if !mother.is_file() {
        return Err(PublishError::NoSource(mother));
    }
    sweep(data)?;
    let number = next_number(data)?;
    note_own(data, number)?;
    let mut published = build(data, number, block_cells)?;
    for name in [GenerationFileName::Tables(number), GenerationFileName::Grid(number)] {
        let path = name.on_disk(data);
        let file = PublishedFile::read(&path, &name);
        published.files.push(file.map_err(|source| PublishError::Io { path, source })?);
    }
    let (current, text) = (data.current_file(), format!("{number}\n"));
    atomic_file::write(&current, text.as_bytes())
        .map_err(|source| PublishError::Io { path: current, source })?;
    remove_old(data, number)?;
    Ok(published)
}

/// Removes what a publication that was killed has left. While another one runs, nothing is done:
/// it removes such files itself before it begins.
///
/// # Errors
///
/// Returns why files could not be removed.
pub fn remove_leftovers(data: &DataDir) -> Result<(), PublishError> {
    if !data.rank_folder().is_dir() {
        return Ok(());
    }
    match PublicationLock::take(data) {
        Err(PublishError::Locked { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_lock) => sweep(data),
    }
}

/// Makes the files of a snapshot. Nobody looks at them before `CURRENT` names it. Whatever fails while it
/// goes on from the snapshot before may be that one's fault, so then it is made whole, once.
fn build(data: &DataDir, number: u64, block_cells: usize) -> Result<Published, PublishError> {
    let connection = open_source(data)?;
    let fault = match Base::of(&connection, data, number) {
        Found::Other => return make(connection, data, number, block_cells, None),
        Found::Beginning(base) => match make(connection, data, number, block_cells, Some(&base)) {
            Ok(published) => return Ok(published),
            Err(error) => first_lines(&error),
        },
        Found::Damaged(why) => {
            drop(connection);
            why
        }
    };
    // In another instance of the engine: what it has read of a damaged file is not trusted.
    let published = make(open_source(data)?, data, number, block_cells, None)?;
    Ok(Published { base_fault: Some(fault), ..published })
}

/// The combined database in an instance of the engine, with the tables of its two sides.
fn open_source(data: &DataDir) -> Result<Connection, PublishError> {
    let mother = data.mother();
    must_be_published(&mother)
        .map_err(|source| PublishError::Io { path: mother.clone(), source })?;
    let connection = sql::open(Config::default().max_memory(MEMORY)?)?;
    connection.execute_batch(&format!(
        "SET temp_directory = {}; ATTACH {} AS mother (READ_ONLY);",
        quoted_path(&data.rank_folder().join(SPILL)),
        quoted_path(&mother),
    ))?;
    if let Some(view) = view_among(&connection, "mother")? {
        let what = format!("`{view}` must be a table; it is a view, which may read anything");
        return Err(PublishError::Source(what));
    }
    let dates = dates_of(&connection)?;
    check_source(&connection)?;
    connection.execute_batch(&sides(dates))?;
    check_sides(&connection)?;
    Ok(connection)
}

/// Makes the files of a snapshot: whole, or from what it begins with on.
fn make(
    connection: Connection,
    data: &DataDir,
    number: u64,
    block_cells: usize,
    base: Option<&Base>,
) -> Result<Published, PublishError> {
    let folder = data.rank_folder();
    let failed = |source| PublishError::Io { path: folder.clone(), source };
    let unfinished = folder.join(format!("rank-{number}.db.new"));
    make_place(&unfinished)?;
    make_place(&log_of(&unfinished))?;
    if let Some(base) = base {
        fs::copy(&base.tables, &unfinished).map_err(failed)?;
    }
    let attach = quoted_path(&unfinished);
    connection.execute_batch(&format!(
        "ATTACH {attach} AS snapshot (RECOVERY_MODE no_wal_writes); {SIDES_STORED}{GRID}
         USE snapshot;"
    ))?;
    let splits = splits::make(&connection)?;
    let published = write_grid(&connection, data, number, Work { block_cells, splits, base })?;
    if !rows_are_in_order(&connection)? {
        return Err(PublishError::Source("the grid's rows are not in order".to_owned()));
    }
    base::tie(&connection, &data.rank_grid(number), number, base)?;
    connection.execute_batch("USE memory; DETACH snapshot; DETACH mother")?;
    drop(connection);
    atomic_file::replace(&unfinished, &data.rank_db(number)).map_err(failed)?;
    Ok(published)
}

/// What a grid is made of, beside the source.
struct Work<'a> {
    /// Cells of a block.
    block_cells: usize,
    splits: Option<Splits>,
    /// What it begins with.
    base: Option<&'a Base>,
}

/// The statement for the source's business days; a table `calendar` of another form is refused.
fn dates_of(connection: &Connection) -> Result<&'static str, PublishError> {
    let has_calendar = has_calendar(connection, "mother")?.map_err(PublishError::Source)?;
    Ok(if has_calendar { DATES_AND_CALENDAR } else { DATES })
}

/// Refuses a table that is none of daily prices.
fn check_source(connection: &Connection) -> Result<(), PublishError> {
    let refuse = |text: String| Err(PublishError::Source(text));
    let columns = "SELECT count(*) FROM (DESCRIBE mother.daily) WHERE
        (column_name = 'date' AND column_type = 'DATE')
        OR (column_name = 'code' AND column_type = 'VARCHAR')
        OR (column_name IN ('open', 'high', 'low', 'close', 'volume') AND column_type = 'DOUBLE')";
    if connection.query_row(columns, [], |row| row.get::<_, i64>(0))? != 7 {
        return refuse(
            "table daily must have the columns date DATE, code VARCHAR and open, high, low, \
             close, volume DOUBLE"
                .to_owned(),
        );
    }
    let nameless = "SELECT count(*) FROM mother.daily WHERE date IS NULL OR code IS NULL";
    let nameless: i64 = connection.query_row(nameless, [], |row| row.get(0))?;
    if nameless > 0 {
        return refuse(format!("{nameless} rows have no date or no code"));
    }
    Ok(())
}

/// Refuses what the grid cannot hold.
fn check_sides(connection: &Connection) -> Result<(), PublishError> {
    let refuse = |text: String| Err(PublishError::Source(text));
    let counts = "SELECT (SELECT count(*) FROM cal), (SELECT count(*) FROM issue)";
    let (days, codes): (usize, usize) =
        connection.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if days == 0 {
        return refuse("table daily has no rows".to_owned());
    }
    let cells = days.saturating_mul(codes);
    if days > SNAPSHOT_DAYS_MAX || codes > SNAPSHOT_CODES_MAX || cells > SNAPSHOT_CELLS_MAX {
        return refuse(format!("{days} days of {codes} codes are more than a snapshot may hold"));
    }
    Ok(())
}

/// What the grid's file is written from.
struct GridFile<'a> {
    writer: GridWriter,
    /// Its place, once it is whole.
    path: &'a Path,
    source: Connection,
    sides: Sides,
    block_cells: usize,
    /// What it begins with.
    base: Option<&'a Base>,
}

impl GridFile<'_> {
    /// Reads and writes all days; of those that are new, rows of the table are given to `put` once they are
    /// many. Ends early when that says that it takes no more: the table has failed, which is told in its place.
    fn write(mut self, mut put: impl FnMut(RecordBatch) -> bool) -> Result<(), PublishError> {
        let path = self.path;
        let failed = |error| failed(path, error);
        let mut rows = GridRows::new(self.sides.codes.len());
        let known = self.base.map_or(0, Base::days);
        if let Some(base) = self.base {
            (0..known).try_for_each(|day| self.writer.day(base.day(day))).map_err(failed)?;
        }
        for days in self.sides.blocks(known, self.block_cells) {
            let block = Block::read(&self.source, &self.sides, days)?;
            for (number, day) in block.days() {
                self.writer.day(day).map_err(failed)?;
                if rows.day(number, day)?.is_some_and(|rows| !put(rows)) {
                    return Ok(());
                }
            }
        }
        // Nobody waits for what the table has failed to take.
        let _ = put(rows.rest()?);
        // The table may end while the file does.
        drop(put);
        self.writer.finish(path).map_err(failed)
    }
}

fn failed(path: &Path, source: io::Error) -> PublishError {
    match source.kind() {
        io::ErrorKind::InvalidInput => PublishError::Source(source.to_string()),
        _ => PublishError::Io { path: path.to_owned(), source },
    }
}

/// Fills the grid's file and its table, a block of days after the other. A thread reads and writes
/// the file while the engine packs the table's rows; where the system has no thread, one comes after the
/// other.
fn write_grid(
    connection: &Connection,
    data: &DataDir,
    number: u64,
    work: Work<'_>,
) -> Result<Published, PublishError> {
    let Work { block_cells, splits, base } = work;
    let sides = Sides::read(connection)?;
    let (Some(first), Some(last)) = (sides.days.first().copied(), sides.days.last().copied())
    else {
        return Err(PublishError::Source("table daily has no rows".to_owned()));
    };
    let (days, codes) = (sides.days.len(), sides.codes.len());
    let path = &data.rank_grid(number);
    let folder = data.rank_folder();
    let writer = GridWriter::new(&folder, number, sides.days.clone(), sides.codes.clone());
    let writer = writer.map_err(|error| failed(path, error))?.with_splits(splits);
    let known = base.map_or(0, Base::days);
    let source = connection.try_clone()?;
    let file = Mutex::new(Some(GridFile { writer, path, source, sides, block_cells, base }));
    // Whoever comes first writes it.
    let take = || file.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Rolled back when it is dropped.
    let transaction = connection.unchecked_transaction()?;
    let append = |rows: RecordBatch| append(connection, ("snapshot", "g"), [rows]);
    let store = |appended: duckdb::Result<()>| {
        let stored = appended.and_then(|()| transaction.commit());
        stored.and_then(|()| connection.execute_batch("CHECKPOINT snapshot"))
    };
    let stored = std::thread::scope(|scope| {
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        let write = move || {
            let put = move |rows: RecordBatch| sender.send(rows).is_ok();
            take().map_or(Ok(()), |file| file.write(put))
        };
        match std::thread::Builder::new().spawn_scoped(scope, write) {
            Ok(file) => {
                let stored = store(batches.into_iter().try_for_each(append));
                file.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                Ok(stored)
            }
            // The system has no thread left.
            Err(_) => {
                let mut appended = Ok(());
                let put = |rows: RecordBatch| {
                    appended = append(rows);
                    appended.is_ok()
                };
                take().map_or(Ok(()), |file| file.write(put))?;
                Ok::<_, PublishError>(store(appended))
            }
        }
    })?;
    stored?;
    let range = (first, last);
    let (new_days, files) = (days - known, Vec::new());
    Ok(Published { number, days, new_days, codes, range, base_fault: None, files })
}
