//! Makes the Parquet files of a journal.

use std::io::{BufWriter, Write};
use std::path::Path;

use atomic_file::AtomicFile;
use domain::JstDate;

use crate::limits::BOARD_GROUP_ROWS;
use crate::parquet::{Field, TableWriter, Values};

use super::ending::Looks;
use super::folder::DayFolder;
use super::journal::{JournalSummary, read_journal};
use super::row::BoardRow;
use super::table::{depth_columns, depth_fields, trade_columns, trade_print_fields};
use super::writer::RecorderError;

/// What became of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealReport {
    /// The day in Japan.
    pub date: JstDate,
    /// The segment's number on that day, from 1.
    pub segment: u32,
    /// Order books.
    pub depth: u64,
    /// Trades.
    pub trades: u64,
    /// What was read, and what could not be.
    pub journal: JournalSummary,
}

/// One of the two files of a segment; made with its first rows.
struct Table<T> {
    fields: Vec<Field>,
    columns: fn(&[T]) -> Vec<Values>,
    rows: Vec<T>,
    count: u64,
    writer: Option<TableWriter<BufWriter<AtomicFile>>>,
}

impl<T> Table<T> {
    fn new(fields: Vec<Field>, columns: fn(&[T]) -> Vec<Values>) -> Self {
        Self { fields, columns, rows: Vec::new(), count: 0, writer: None }
    }

    fn take(&mut self, row: T, folder: &Path) -> Result<(), RecorderError> {
        self.rows.push(row);
        self.count += 1;
        if self.rows.len() == BOARD_GROUP_ROWS { self.write(folder) } else { Ok(()) }
    }

    fn write(&mut self, folder: &Path) -> Result<(), RecorderError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.writer.is_none() {
            let file =
                AtomicFile::create_in(folder).map_err(RecorderError::io("write in", folder))?;
            self.writer = Some(TableWriter::new(BufWriter::new(file), &self.fields)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(&(self.columns)(&self.rows))?;
        }
        self.rows.clear();
        Ok(())
    }

    /// Gives the file its name, where there are rows.
    fn commit(mut self, folder: &Path, path: &Path) -> Result<(), RecorderError> {
        self.write(folder)?;
        let Some(writer) = self.writer else { return Ok(()) };
        let mut file = writer.finish()?;
        let failed = RecorderError::io("write", path);
        let flushed =
            file.flush().and_then(|()| file.into_inner().map_err(|error| error.into_error()));
        flushed.and_then(|file| file.commit(path)).map_err(failed)
    }
}

/// Makes the Parquet files of a segment and removes its journal then; one with damaged blocks is set aside
/// in place of that. Done again after a crash at any place it gives the same files.
///
/// # Errors
/// [`RecorderError`], also that it is given up; the journal is as it was then.
pub(super) fn seal(
    day: &DayFolder,
    segment: u32,
    is_given_up: &dyn Fn() -> bool,
) -> Result<SealReport, RecorderError> {
    let folder = day.path();
    let mut depth = Table::new(depth_fields(), depth_columns);
    let mut trades = Table::new(trade_print_fields(), trade_columns);
    let path = day.journal(segment);
    let mut looks = Looks::new(is_given_up);
    let journal = read_journal(&path, |row| {
        looks.row()?;
        match row {
            BoardRow::Depth(row) => depth.take(row, folder),
            BoardRow::Trade(row) => trades.take(row, folder),
        }
    })?;
    let report =
        SealReport { date: day.date(), segment, depth: depth.count, trades: trades.count, journal };
    depth.commit(folder, &day.depth(segment))?;
    trades.commit(folder, &day.trades(segment))?;
    // Both files are on the disk, also after a power cut.
    if journal.damaged_bytes > 0 {
        let aside = day.set_aside(segment).map_err(RecorderError::io("rename", &path))?;
        tracing::warn!(
            damaged = journal.damaged_bytes, aside = %aside.display(),
            "blocks of a recording are damaged and left out; its journal is kept under another name"
        );
        return Ok(report);
    }
    std::fs::remove_file(&path).map_err(RecorderError::io("remove", &path))?;
    atomic_file::sync_folder(folder).map_err(RecorderError::io("write in", folder))?;
    Ok(report)
}
