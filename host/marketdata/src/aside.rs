//! Files that are whole or not there: written under a temporary name, brought to the disk, renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// A new file in `folder`, removed unless it is persisted. It has the permissions of any other file
/// that the user makes; the usual temporary file could be read by nobody else, ever after.
///
/// # Errors
/// What the system says when the file cannot be made.
pub(crate) fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    Builder::new().prefix(".kumiki-").make_in(folder, |path| File::create_new(path))
}

/// Writes a file, and the folder for it, so that a reader sees the old one or the new one, whatever
/// happens.
///
/// # Errors
/// What the system says. The old file is there as it was then.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = temporary_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Brings a finished file to the disk.
///
/// # Errors
/// What the system says.
pub fn flush(path: &Path) -> io::Result<()> {
    // Some systems only flush a file that was opened for writing.
    File::options().write(true).open(path)?.sync_all()
}

/// Makes renames in a folder last through a power cut, where the system does not do so by itself.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
