//! Writes a run's folder so that it is never half there.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::output::manifest::Manifest;
use crate::output::tables::{self, Table};
use crate::record::RunResult;
use crate::report;

/// The file that makes a folder a run's folder.
const MANIFEST_FILE: &str = "manifest.json";

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
}

/// Writes a run's folder: tables, manifest and page. A folder that holds an earlier run is replaced;
/// one that holds anything else is left alone.
///
/// # Errors
/// [`FolderError`]; the folder is as it was before.
pub fn write_run(
    folder: &Path,
    manifest: &Manifest,
    result: &RunResult,
) -> Result<(), FolderError> {
    let failed = |source| FolderError::Write { path: folder.to_owned(), source };
    let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if occupied && !folder.join(MANIFEST_FILE).is_file() {
        return Err(FolderError::Occupied(folder.to_owned()));
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(failed)?;
    let aside =
        tempfile::Builder::new().prefix(".kumiki-run-").tempdir_in(parent).map_err(failed)?;
    write_files(aside.path(), manifest, result)?;
    if folder.exists() {
        // Renaming over a folder is not possible everywhere, so the old run makes room first.
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    let complete = aside.keep();
    fs::rename(&complete, folder).map_err(failed)
}

fn write_files(folder: &Path, manifest: &Manifest, result: &RunResult) -> Result<(), FolderError> {
    for (table, rows) in tables::rows(result, &manifest.instrument_id) {
        write_csv(&folder.join(format!("{}.csv", table.name)), &table, &rows)?;
        let json = tables::as_json(&table, &rows);
        write_json(&folder.join(format!("{}.json", table.name)), &json)?;
    }
    let page = folder.join("report.html");
    fs::write(&page, report::render(manifest, result))
        .map_err(|source| FolderError::Write { path: page, source })?;
    write_json(&folder.join(MANIFEST_FILE), manifest)
}

fn write_csv(path: &Path, table: &Table, rows: &[Vec<Value>]) -> Result<(), FolderError> {
    let write = || -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().from_path(path)?;
        writer.write_record(table.columns.iter().map(|column| column.name))?;
        for row in rows {
            writer.write_record(row.iter().map(cell))?;
        }
        writer.flush()
    };
    write().map_err(|source| FolderError::Write { path: path.to_owned(), source })
}

/// A value as CSV text: empty for none, text without quotes, numbers as they are.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), FolderError> {
    let write = || -> io::Result<()> {
        let mut writer = BufWriter::new(fs::File::create(path)?);
        serde_json::to_writer_pretty(&mut writer, value)?;
        writer.write_all(b"\n")?;
        writer.flush()
    };
    write().map_err(|source| FolderError::Write { path: path.to_owned(), source })
}
