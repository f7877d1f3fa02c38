//! Adds a module to the registry: its file into the folder, its SHA-256 into the list.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::list::{self, ENTRIES_MAX, LIST_FILE, ListedFormula};
use super::{FormulaListing, FormulaRegistry, details, read};
use crate::error::RankError;

/// Held while the list changes.
const LOCK_FILE: &str = ".formulas.lock";

/// Why a module was not added. For the operator: it names files.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or folder that was used.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not there, or too large.
    #[error("{path} {what}", path = path.display())]
    Unreadable {
        /// The file that was to be added.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It is no formula module.
    #[error(transparent)]
    NoFormula(#[from] sandbox::SandboxError),
    /// Another process is changing the list.
    #[error("another process is changing {LIST_FILE} in {}; try again", .0.display())]
    Locked(PathBuf),
    /// The list is full.
    #[error("{LIST_FILE} lists {ENTRIES_MAX} formulas already; take one out first")]
    Full,
    /// The list or the module is wrong.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl FormulaRegistry {
    /// Copies a module's file into the folder and lists it under the name that it gives itself. What
    /// was listed under that name is replaced.
    ///
    /// # Errors
    ///
    /// Returns why the file is no formula module, or what could not be written.
    pub fn add(&self, path: &Path) -> Result<FormulaListing, RegistryError> {
        let bytes = read(path).map_err(|_| missing(path))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = self.sandbox.formula_from_bytes(&stem, bytes.clone())?;
        let name = module.description().name.clone();
        let sha256 = module.artefact().sha256().to_owned();
        let details = details(&name, &module.into())?;
        fs::create_dir_all(&self.folder).map_err(file("make the folder", &self.folder))?;
        let _lock = self.lock()?;
        let mut entries = list::read(&self.folder)?;
        entries.retain(|entry| entry.name != name);
        if entries.len() >= ENTRIES_MAX {
            return Err(RegistryError::Full);
        }
        let listed = ListedFormula { file: format!("{name}.wasm"), name, sha256 };
        let index = entries.partition_point(|entry| entry.name < listed.name);
        entries.insert(index, listed.clone());
        let text = list::text(entries)?;
        let target = self.folder.join(&listed.file);
        atomic_file::write(&target, &bytes).map_err(file("write", &target))?;
        let target = self.folder.join(LIST_FILE);
        atomic_file::write(&target, text.as_bytes()).map_err(file("write", &target))?;
        Ok(FormulaListing { listed, details: Ok(details) })
    }

    fn lock(&self) -> Result<File, RegistryError> {
        let path = self.folder.join(LOCK_FILE);
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = opened.map_err(file("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(fs::TryLockError::WouldBlock) => Err(RegistryError::Locked(self.folder.clone())),
            Err(fs::TryLockError::Error(source)) => Err(file("lock", &path)(source)),
        }
    }
}

fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RegistryError {
    let path = path.to_owned();
    move |source| RegistryError::File { doing, path, source }
}

/// Why the file that was named cannot be read.
fn missing(path: &Path) -> RegistryError {
    let what = match fs::metadata(path) {
        Ok(about) if about.is_file() => "cannot be read, or is too large for a module".to_owned(),
        Ok(_) => "is not a file".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
    };
    RegistryError::Unreadable { path: path.to_owned(), what }
}
