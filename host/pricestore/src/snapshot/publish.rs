//! Makes a snapshot from the combined database. Every step can be repeated: the grid is written aside and
//! renamed, and the file `CURRENT` is changed last.

use std::io;

use domain::JstDate;
use duckdb::{Config, Connection};

use super::dense::{Block, Sides};
use super::error::PublishError;
use super::folder::{SPILL, next_number, note_own, remove_old, sweep};
use super::lock::PublicationLock;
use super::{source, splits};
use crate::data_dir::DataDir;
use crate::generation::{GenerationFileName, PublishedFile};
use crate::grid::GridWriter;
use crate::sql::{self, quoted_path};

/// Memory of DuckDB, beside the cells of a block.
const MEMORY: &str = "2GB";

/// A snapshot that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The snapshot's number, from 1, as `CURRENT` names it.
    pub number: u64,
    /// Business days: those of the calendar where the source has one, else those that have a row.
    pub days: usize,
    /// Issues that have a row.
    pub codes: usize,
    /// First and last business day.
    pub range: (JstDate, JstDate),
    /// Its file as it was written; none where nothing was written.
    pub file: Option<PublishedFile>,
}

/// Publishes a new snapshot of the combined database and removes those before the last one. The
/// combined database is opened read-only; its writer must have closed it.
///
/// # Errors
///
/// Returns why nothing was published.
pub fn publish(data: &DataDir) -> Result<Published, PublishError> {
    let mother = data.mother();
    if !mother.is_file() {
        return Err(PublishError::NoSource(mother));
    }
    PublicationLock::take(data)?.publish()
}

/// The same while the lock is held, with so many cells of the grid in memory at a time.
pub(super) fn publish_held(data: &DataDir, block_cells: usize) -> Result<Published, PublishError> {
    sweep(data)?;
    let number = next_number(data)?;
    note_own(data, number)?;
    let published = write_grid(data, number, block_cells)?;
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

/// Writes the file of a snapshot, a block of days after the other. Nobody looks at it before `CURRENT` names
/// it.
fn write_grid(data: &DataDir, number: u64, block_cells: usize) -> Result<Published, PublishError> {
    let path = data.rank_grid(number);
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::InvalidInput => PublishError::Source(source.to_string()),
        _ => PublishError::Io { path: path.clone(), source },
    };
    let connection = open_source(data)?;
    let splits = splits::make(&connection)?;
    let sides = Sides::read(&connection)?;
    let (Some(first), Some(last)) = (sides.days.first().copied(), sides.days.last().copied())
    else {
        return Err(PublishError::Source("table daily has no rows".to_owned()));
    };
    let (days, codes) = (sides.days.clone(), sides.codes.clone());
    let writer = GridWriter::new(&data.rank_folder(), number, days, codes).map_err(failed)?;
    let mut writer = writer.with_splits(splits);
    for days in sides.blocks(block_cells) {
        let block = Block::read(&connection, sides.codes.len(), days)?;
        block.days().try_for_each(|day| writer.day(day)).map_err(failed)?;
    }
    writer.finish(&path).map_err(failed)?;
    let file = PublishedFile::read(&path, &GenerationFileName::Grid(number)).map_err(failed)?;
    Ok(Published {
        number,
        days: sides.days.len(),
        codes: sides.codes.len(),
        range: (first, last),
        file: Some(file),
    })
}

/// The combined database in an instance of the engine.
fn open_source(data: &DataDir) -> Result<Connection, PublishError> {
    let connection = sql::open(Config::default().max_memory(MEMORY)?)?;
    let spill = quoted_path(&data.rank_folder().join(SPILL));
    connection.execute_batch(&format!("SET temp_directory = {spill}"))?;
    source::attach(&connection, data)?;
    Ok(connection)
}
