//! The folder of a sweep: table, manifest and page beside its journal.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use marketdata::parquet::ParquetError;
use results::output::json;
use thiserror::Error;

use crate::finished::Results;
use crate::journal::JOURNAL_FILE;
use crate::manifest::SweepManifest;
use crate::plan::Plan;
use crate::score::Statistic;
use crate::{page, table};

/// The names of the tables and the page of a sweep that is complete, without their endings.
const COMPLETE: &str = "sweep";
/// The same of a sweep that is not.
const PARTIAL: &str = "sweep.partial";

/// The names that its manifest has.
pub(crate) const MANIFEST_FILES: [&str; 2] = ["sweep.json", "sweep.partial.json"];

/// Why a sweep's folder cannot be written.
#[derive(Debug, Error)]
pub enum SweepFolderError {
    /// There is something else.
    #[error("{0} is not empty and holds no sweep (no {JOURNAL_FILE}); choose another folder")]
    Occupied(PathBuf),
    /// The disk says no.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The failure beneath.
        source: io::Error,
    },
    /// The Parquet file cannot be written.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The failure beneath.
        source: ParquetError,
    },
}

/// Where a sweep writes.
#[derive(Debug, Clone)]
pub struct SweepFolder {
    path: PathBuf,
}

impl SweepFolder {
    /// The folder at `path`, made when it is missing.
    ///
    /// # Errors
    /// [`SweepFolderError`] when it holds something else than a sweep, or cannot be made.
    pub fn prepare(path: impl Into<PathBuf>) -> Result<Self, SweepFolderError> {
        let path = path.into();
        let occupied = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !path.join(JOURNAL_FILE).is_file() {
            return Err(SweepFolderError::Occupied(path));
        }
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(SweepFolderError::Write { path, source }),
        }
    }

    /// Whether a sweep was ended or interrupted there.
    #[must_use]
    pub fn has_manifest(path: &Path) -> bool {
        MANIFEST_FILES.iter().any(|name| path.join(name).is_file())
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes table, manifest and page; each file is complete or not there. The names of a sweep
    /// that is not complete say so, and those of one that is replace them.
    ///
    /// # Errors
    /// [`SweepFolderError`].
    pub fn write(
        &self,
        plan: &Plan,
        results: &Results,
        rank_by: Statistic,
        manifest: &SweepManifest,
    ) -> Result<Vec<PathBuf>, SweepFolderError> {
        let (name, other) =
            if results.is_complete() { (COMPLETE, PARTIAL) } else { (PARTIAL, COMPLETE) };
        let mut written = Vec::new();
        let csv = self.path.join(format!("{name}.csv"));
        self.file(&csv, |file| table::write_csv(plan, results, file))?;
        let parquet = self.path.join(format!("{name}.parquet"));
        let failed = |source| SweepFolderError::Parquet { path: parquet.clone(), source };
        let bytes = table::write_parquet(plan, results, Vec::new()).map_err(failed)?;
        self.file(&parquet, |file| file.write_all(&bytes))?;
        let json_file = self.path.join(format!("{name}.json"));
        self.file(&json_file, |file| json::write(file, manifest))?;
        let html = self.path.join(format!("{name}.html"));
        let text = page::render(plan, results, rank_by, manifest);
        self.file(&html, |file| file.write_all(text.as_bytes()))?;
        written.extend([csv, parquet, json_file, html]);
        for ending in ["csv", "parquet", "json", "html"] {
            let old = self.path.join(format!("{other}.{ending}"));
            match fs::remove_file(&old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(SweepFolderError::Write { path: old, source: error });
                }
                _ => {}
            }
        }
        Ok(written)
    }

    fn file(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut io::BufWriter<AtomicFile>) -> io::Result<()>,
    ) -> Result<(), SweepFolderError> {
        let failed = |source| SweepFolderError::Write { path: path.to_owned(), source };
        let write = || -> io::Result<()> {
            let mut file = io::BufWriter::new(AtomicFile::create_in(&self.path)?);
            fill(&mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.commit(path)
        };
        write().map_err(failed)
    }
}
