//! Writes a run's folder while the run goes on, so that it is never half there and never in memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFolder;
use domain::InstrumentId;
use serde_json::Value;
use thiserror::Error;

use super::cells::{Names, TableFile};
use super::convert;
use super::events::{AuditLog, EventLog};
use super::manifest::Manifest;
use super::read::ReadError;
use super::removable::{self, NotOurs};
use super::tables::{Positions, StreamedTables, SummaryNumbers, TABLES, Table};
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
    /// There is something that is not ours to remove.
    #[error("{folder} {what}; choose another folder")]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        what: NotOurs,
    },
    /// The disk says no.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The failure of the disk.
        source: io::Error,
    },
    /// What was just written cannot be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl FolderError {
    /// What a failure of the disk at a file or folder is.
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }
}

/// Writes the folder of one run. Rows are appended to files in a folder aside; once
/// complete it is put in place. Dropped before that, it leaves nothing behind.
pub(crate) struct FolderWriter {
    folder: PathBuf,
    aside: AtomicFolder,
    names: Names,
    tables: StreamedTables,
    events: EventLog<BufWriter<File>>,
    audit: AuditLog<BufWriter<File>>,
}

impl FolderWriter {
    /// Begins the folder of a run that trades `instruments`. A folder that holds an earlier run will
    /// be replaced; one that holds anything else is left alone: see [`removable`].
    ///
    /// # Errors
    /// [`FolderError`]; nothing has changed then.
    pub(crate) fn create(folder: &Path, instruments: &[InstrumentId]) -> Result<Self, FolderError> {
        let seen = removable::check(folder).map_err(FolderError::at(folder))?;
        seen.map_err(|what| FolderError::Occupied { folder: folder.to_owned(), what })?;
        let aside = AtomicFolder::create_beside(folder).map_err(FolderError::at(folder))?;
        let path = aside.unfinished_path();
        Ok(Self {
            folder: folder.to_owned(),
            names: Names::new(instruments),
            tables: StreamedTables::create(path)?,
            events: EventLog::new(begin_file(&path.join(EVENTS_FILE))?),
            audit: AuditLog::new(begin_file(&path.join(AUDIT_FILE))?),
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
        self.tables.finish()?;
        for (mut lines, name) in
            [(self.events.into_inner(), EVENTS_FILE), (self.audit.into_inner(), AUDIT_FILE)]
        {
            lines.flush().map_err(FolderError::at(&path.join(name)))?;
        }
        TableFile::<Positions>::write_all(path, &totals.positions, &self.names)?;
        write_summary(path, &Summary::new(totals), &self.names)?;
        write_json(&path.join(MANIFEST_FILE), manifest)?;
        for table in TABLES.iter().filter(|table| table.name != SummaryNumbers::TABLE.name) {
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
        // What was put there while the run went on is not ours either.
        let may_remove = |old: &Path| {
            removable::check(old)?.map_err(|what| io::Error::other(format!("it {what}")))
        };
        self.aside.commit(may_remove).map_err(FolderError::at(&self.folder))
    }
}

impl RunSink for FolderWriter {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        self.events.take(record, &self.names)?;
        if let Record::OrderEvent { event, sent } = record {
            self.audit.take(event, sent, &self.names)?;
        }
        self.tables.take(record, &self.names)
    }
}

/// The name of a table's CSV file.
pub(crate) fn csv_name(table: &Table) -> String {
    format!("{}.csv", table.name)
}

fn begin_file(path: &Path) -> Result<BufWriter<File>, FolderError> {
    File::create(path).map(BufWriter::new).map_err(FolderError::at(path))
}

/// The summary: `name,value` as CSV, one object as JSON.
fn write_summary(folder: &Path, summary: &Summary, names: &Names) -> Result<(), FolderError> {
    let path = folder.join("summary.json");
    write_json(&path, summary)?;
    let value = serde_json::to_value(summary)
        .map_err(|error| FolderError::Write { path, source: error.into() })?;
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let numbers = value.as_object().into_iter().flatten();
    let rows = numbers.map(|(name, value)| (name.as_str(), text(value)));
    TableFile::<SummaryNumbers>::write_all(folder, rows, names)
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), FolderError> {
    let write = || -> io::Result<()> {
        let mut writer = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut writer, value)?;
        writer.write_all(b"\n")?;
        writer.flush()
    };
    write().map_err(FolderError::at(path))
}
