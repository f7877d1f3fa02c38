//! Writes a run's folder while the run goes on, so that it is never half there and never in memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFolder;
use domain::InstrumentId;
use serde_json::Value;
use thiserror::Error;

use super::cells::{Cell, Names, STREAMED, position_cells, row_of};
use super::convert;
use super::events::{AuditLog, EventLog};
use super::manifest::Manifest;
use super::read::ReadError;
use super::tables::{POSITIONS, SUMMARY, TABLES, Table};
use crate::sink::{Record, RunSink};
use crate::summary::Summary;
use crate::totals::RunTotals;

/// The file that makes a folder a run's folder.
pub const MANIFEST_FILE: &str = "manifest.json";
/// What happened, one JSON object a line.
pub const EVENTS_FILE: &str = "events.jsonl";
/// The audit log of a replay (specification 2).
pub const AUDIT_FILE: &str = "web_broker_orders_replay.jsonl";
/// The page.
pub const REPORT_FILE: &str = "report.html";

/// Why a run's folder cannot be written.
#[derive(Debug, Error)]
pub enum FolderError {
    /// There is something else.
    #[error(
        "{0} is not empty and holds no earlier run (no {MANIFEST_FILE}); choose another folder"
    )]
    Occupied(PathBuf),
    /// The disk says no.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was just written cannot be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Writes the folder of one run. Rows are appended to files in a folder aside; once
/// complete it is put in place. Dropped before that, it leaves nothing behind.
pub(crate) struct FolderWriter {
    folder: PathBuf,
    aside: AtomicFolder,
    names: Names,
    tables: Vec<csv::Writer<File>>,
    events: EventLog<BufWriter<File>>,
    audit: AuditLog<BufWriter<File>>,
}

impl FolderWriter {
    /// Begins the folder of a run that trades `instruments`. A folder that holds an earlier run will
    /// be replaced; one that holds anything else is left alone.
    ///
    /// # Errors
    /// [`FolderError`]; nothing has changed then.
    pub(crate) fn create(folder: &Path, instruments: &[InstrumentId]) -> Result<Self, FolderError> {
        let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !folder.join(MANIFEST_FILE).is_file() {
            return Err(FolderError::Occupied(folder.to_owned()));
        }
        let failed = |source| FolderError::Write { path: folder.to_owned(), source };
        let aside = AtomicFolder::create_beside(folder).map_err(failed)?;
        let tables = STREAMED.iter().map(|table| begin_table(aside.unfinished_path(), table));
        Ok(Self {
            folder: folder.to_owned(),
            names: Names::new(instruments),
            tables: tables.collect::<Result<_, _>>()?,
            events: EventLog::new(begin_file(&aside.unfinished_path().join(EVENTS_FILE))?),
            audit: AuditLog::new(begin_file(&aside.unfinished_path().join(AUDIT_FILE))?),
            aside,
        })
    }

    /// Completes the files: summary, positions, manifest, and the tables in their other forms.
    ///
    /// # Errors
    /// [`FolderError`]; the folder is as it was before the run.
    pub(crate) fn complete(
        self,
        manifest: &Manifest,
        totals: &RunTotals,
    ) -> Result<CompleteFolder, FolderError> {
        let path = self.aside.unfinished_path();
        let failed = |path: PathBuf| move |source| FolderError::Write { path, source };
        for (mut table, of) in self.tables.into_iter().zip(STREAMED) {
            table.flush().map_err(failed(path.join(csv_name(&of))))?;
        }
        for (mut lines, name) in
            [(self.events.into_inner(), EVENTS_FILE), (self.audit.into_inner(), AUDIT_FILE)]
        {
            lines.flush().map_err(failed(path.join(name)))?;
        }
        write_positions(path, totals, &self.names)?;
        write_summary(path, &Summary::new(totals))?;
        write_json(&path.join(MANIFEST_FILE), manifest)?;
        for table in TABLES.iter().filter(|table| table.name != SUMMARY.name) {
            convert::other_forms(path, table)?;
        }
        Ok(CompleteFolder { aside: self.aside, folder: self.folder })
    }
}

/// All files of a run but the page, still aside.
pub(crate) struct CompleteFolder {
    aside: AtomicFolder,
    folder: PathBuf,
}

impl CompleteFolder {
    /// Where the files are now.
    pub(crate) fn path(&self) -> &Path {
        self.aside.unfinished_path()
    }

    /// Puts them where they belong, in place of an earlier run.
    pub(crate) fn put_in_place(self) -> Result<(), FolderError> {
        let path = self.folder;
        self.aside.commit(&path).map_err(|source| FolderError::Write { path, source })
    }
}

impl RunSink for FolderWriter {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        self.events.take(record, &self.names)?;
        if let Record::OrderEvent { event, sent } = record {
            self.audit.take(event, sent, &self.names)?;
        }
        match row_of(record, &self.names) {
            Some((table, cells)) => write_row(&mut self.tables[table], &cells),
            None => Ok(()),
        }
    }
}

/// The name of a table's CSV file.
pub(crate) fn csv_name(table: &Table) -> String {
    format!("{}.csv", table.name)
}

fn begin_file(path: &Path) -> Result<BufWriter<File>, FolderError> {
    let file = File::create(path)
        .map_err(|source| FolderError::Write { path: path.to_owned(), source })?;
    Ok(BufWriter::new(file))
}

fn begin_table(folder: &Path, table: &Table) -> Result<csv::Writer<File>, FolderError> {
    let path = folder.join(csv_name(table));
    let begin = || -> io::Result<_> {
        let mut writer = csv::Writer::from_path(&path)?;
        writer.write_record(table.columns.iter().map(|column| column.name))?;
        Ok(writer)
    };
    begin().map_err(|source| FolderError::Write { path: path.clone(), source })
}

fn write_row(writer: &mut csv::Writer<File>, cells: &[Cell<'_>]) -> io::Result<()> {
    for cell in cells {
        match cell {
            Cell::Empty => writer.write_field("")?,
            Cell::Whole(number) => writer.write_field(number.to_string())?,
            Cell::Units(units) => {
                writer.write_field(domain::Money::from_units(*units).to_string())?;
            }
            Cell::Text(text) => writer.write_field(text)?,
            Cell::Date(date) => writer.write_field(date.to_string())?,
        }
    }
    Ok(writer.write_record(None::<&[u8]>)?)
}

fn write_positions(folder: &Path, totals: &RunTotals, names: &Names) -> Result<(), FolderError> {
    let mut writer = begin_table(folder, &POSITIONS)?;
    let path = folder.join(csv_name(&POSITIONS));
    let write = |writer: &mut csv::Writer<File>| -> io::Result<()> {
        for position in &totals.positions {
            write_row(writer, &position_cells(position, names))?;
        }
        writer.flush()
    };
    write(&mut writer).map_err(|source| FolderError::Write { path, source })
}

/// The summary: `name,value` as CSV, one object as JSON.
fn write_summary(folder: &Path, summary: &Summary) -> Result<(), FolderError> {
    let path = folder.join("summary.json");
    write_json(&path, summary)?;
    let value = serde_json::to_value(summary)
        .map_err(|error| FolderError::Write { path, source: error.into() })?;
    let mut writer = begin_table(folder, &SUMMARY)?;
    let path = folder.join(csv_name(&SUMMARY));
    let write = |writer: &mut csv::Writer<File>| -> io::Result<()> {
        for (name, value) in value.as_object().into_iter().flatten() {
            let text = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            writer.write_record([name, &text])?;
        }
        writer.flush()
    };
    write(&mut writer).map_err(|source| FolderError::Write { path, source })
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), FolderError> {
    let write = || -> io::Result<()> {
        let mut writer = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut writer, value)?;
        writer.write_all(b"\n")?;
        writer.flush()
    };
    write().map_err(|source| FolderError::Write { path: path.to_owned(), source })
}
