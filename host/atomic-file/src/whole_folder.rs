//! Folders that are there as a whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::{Builder, TempDir};

use crate::UNFINISHED_PREFIX;
use crate::folder::{folder_of, sync_folder};

/// A folder that is being filled under another name, beside the one that it will be. Dropped before
/// [`Self::commit`], it is removed with everything in it.
#[derive(Debug)]
pub struct AtomicFolder(TempDir);

impl AtomicFolder {
    /// A new, empty folder beside `path`, for which the folder around it is made where it is missing.
    ///
    /// # Errors
    /// What the system says when the folder cannot be made.
    pub fn create_beside(path: &Path) -> io::Result<Self> {
        let around = folder_of(path);
        fs::create_dir_all(around)?;
        Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(around).map(Self)
    }

    /// Where the folder is before it has its name.
    #[must_use]
    pub fn unfinished_path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the folder the name `path`, beside which it was made, in the place of the folder that
    /// has it. That one is away for the instant between, as folders cannot be renamed over each
    /// other everywhere; what is in the folder is brought to the disk when the system likes.
    ///
    /// # Errors
    /// What the system says, with the name under which the complete folder is there; the folder that
    /// had the name keeps it then.
    pub fn commit(self, path: &Path) -> io::Result<()> {
        // What is complete is not removed, even where it cannot have its name.
        let complete = self.0.keep();
        replace_folder(&complete, path).map_err(|error| {
            let text = format!("{error}; what is complete is in {}", complete.display());
            io::Error::new(error.kind(), text)
        })?;
        sync_folder(folder_of(path))
    }
}

/// Renames a folder to `path`; one that has this name makes room first, and is removed at last.
fn replace_folder(complete: &Path, path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err() {
        return fs::rename(complete, path);
    }
    let aside = Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(folder_of(path))?;
    let old = aside.path().join("old");
    fs::rename(path, &old)?;
    if let Err(error) = fs::rename(complete, path) {
        fs::rename(&old, path)?;
        return Err(error);
    }
    // What cannot be removed of the old folder is no harm to the new one.
    let _ = aside.close();
    Ok(())
}
