//! Files that are there as a whole or not at all: written under another name in the same folder,
//! brought to the disk, renamed, and the folder brought to the disk.
//!
//! [`write()`] is for bytes in memory, [`AtomicFile`] for what is written piece by piece,
//! [`AtomicFolder`] for many files together, and [`replace`] for a file that another program (as a
//! database engine) has written under a name of its own. Readers that have the old file open keep it.

mod folder;
mod whole_folder;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

pub use folder::{
    folder_of, must_be_a_name, must_be_file, must_be_own, open_own, open_to_read, patiently,
    remove_if_there, rename, sync_file, sync_folder,
};
pub use whole_folder::{AtomicFolder, remove_all_leftovers};

/// Start of the names under which files are written; one that is left was written by a process that
/// was killed, and nobody reads it.
pub const UNFINISHED_PREFIX: &str = ".kumiki-";

/// Writes a file of these bytes, and the folder for it where there is none.
///
/// # Errors
/// What the system says. The old file, if there is one, is there as it was then.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_as(path, bytes, AtomicFile::create_in)
}

/// The same for a file that only its user may read and write, where the system has such.
///
/// # Errors
/// See [`write()`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_as(path, bytes, AtomicFile::create_private_in)
}

fn write_as(
    path: &Path,
    bytes: &[u8],
    create_in: fn(&Path) -> io::Result<AtomicFile>,
) -> io::Result<()> {
    must_be_a_name(path)?;
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut file = create_in(folder)?;
    file.write_all(bytes)?;
    file.commit(path)
}

/// Gives a finished file its name: brings it to the disk and renames it over `path`, which must be
/// on the same file system. The folder still has to be brought to the disk by [`sync_folder`], once
/// for all files that are replaced together.
///
/// # Errors
/// What the system says; `path` is as it was then.
pub fn replace(finished: &Path, path: &Path) -> io::Result<()> {
    sync_file(finished)?;
    rename(finished, path)
}

/// A file that is being written under another name. It gets its own by one of the commits; dropped
/// before that, it is removed.
pub struct AtomicFile(NamedTempFile);

/// Why a file did not get the name of another one.
#[derive(Debug)]
pub enum CommitNewError {
    /// There is a file of this name; the one that was written is given back to compare them.
    Exists(AtomicFile),
    /// What the system says.
    Io(io::Error),
}

impl AtomicFile {
    /// A new file in `folder`, with the permissions of any other file that the user makes. (A usual
    /// temporary file could be read by nobody else, ever after.)
    ///
    /// # Errors
    /// What the system says when the file cannot be made.
    pub fn create_in(folder: &Path) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(UNFINISHED_PREFIX).make_in(folder, |path| File::create_new(path)).map(Self)
    }

    /// The same for a file that only its user may read and write. On Windows the folder decides who may, as that of
    /// the user's settings does.
    ///
    /// # Errors
    /// What the system says when the file cannot be made.
    pub fn create_private_in(folder: &Path) -> io::Result<Self> {
        if cfg!(windows) {
            // A usual temporary file would be marked as one, by a call that refuses long paths.
            return Self::create_in(folder);
        }
        Builder::new().prefix(UNFINISHED_PREFIX).tempfile_in(folder).map(Self)
    }

    /// Where the file is before it has its name.
    #[must_use]
    pub fn unfinished_path(&self) -> &Path {
        self.0.path()
    }

    /// Another handle for the same file, for writers that take it whole.
    ///
    /// # Errors
    /// What the system says.
    pub fn reopen(&self) -> io::Result<File> {
        self.0.reopen()
    }

    /// Closes it, for those who write it by name: DuckDB opens no file on Windows that somebody has open.
    #[must_use]
    pub fn close(self) -> AtomicPath {
        AtomicPath(self.0.into_temp_path())
    }

    /// See [`AtomicPath::commit`].
    ///
    /// # Errors
    /// What the system says; `path` is as it was then.
    pub fn commit(self, path: &Path) -> io::Result<()> {
        self.close().commit(path)
    }

    /// The same without bringing anything to the disk: readers see all or nothing, but after a
    /// power cut the file may be old, missing or damaged. For caches whose files are checked when
    /// they are read.
    ///
    /// # Errors
    /// What the system says; `path` is as it was then.
    pub fn commit_unsynced(self, path: &Path) -> io::Result<()> {
        self.close().give_name(path)
    }

    /// As [`Self::commit`], but where there is a file of this name nothing is replaced.
    ///
    /// # Errors
    /// That there is such a file, or what the system says.
    pub fn commit_new(self, path: &Path) -> Result<(), CommitNewError> {
        must_be_a_name(path).map_err(CommitNewError::Io)?;
        sync_file(self.unfinished_path()).map_err(CommitNewError::Io)?;
        match self.give_new_name(path) {
            Ok(()) => sync_folder(folder_of(path)).map_err(CommitNewError::Io),
            Err((error, file)) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(CommitNewError::Exists(file))
            }
            Err((error, _)) => Err(CommitNewError::Io(error)),
        }
    }

    #[cfg(not(windows))]
    fn give_new_name(self, path: &Path) -> Result<(), (io::Error, Self)> {
        match self.0.persist_noclobber(path) {
            Ok(_) => Ok(()),
            Err(failed) => Err((failed.error, Self(failed.file))),
        }
    }

    /// By a second name, as no rename of Rust's library leaves what is there. The first name is removed at the end.
    #[cfg(windows)]
    fn give_new_name(self, path: &Path) -> Result<(), (io::Error, Self)> {
        match patiently(|| fs::hard_link(self.unfinished_path(), path)) {
            Ok(()) => Ok(()),
            Err(error) => Err((error, self)),
        }
    }
}

/// An [`AtomicFile`] that is closed.
#[derive(Debug)]
pub struct AtomicPath(TempPath);

impl AtomicPath {
    /// Where the file is before it has its name.
    #[must_use]
    pub fn unfinished_path(&self) -> &Path {
        &self.0
    }

    /// Ends the file: brings it to the disk, gives it the name `path` in the folder in which it was
    /// made, and brings the folder to the disk.
    ///
    /// # Errors
    /// What the system says; `path` is as it was then.
    pub fn commit(self, path: &Path) -> io::Result<()> {
        // Opened anew: what was written by name may be in another file.
        sync_file(&self.0)?;
        self.give_name(path)?;
        sync_folder(folder_of(path))
    }

    fn give_name(mut self, path: &Path) -> io::Result<()> {
        must_be_a_name(path)?;
        rename(&self.0, path)?;
        self.0.disable_cleanup(true);
        Ok(())
    }
}

impl fmt::Debug for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtomicFile").field(&self.unfinished_path()).finish()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[cfg(test)]
mod tests;
