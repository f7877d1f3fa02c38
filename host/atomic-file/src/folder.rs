//! What files need of the folder they are in.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The folder of a file; the current one for a bare name.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Brings a file to the disk.
///
/// # Errors
/// What the system says.
pub fn sync_file(path: &Path) -> io::Result<()> {
    // Some systems only flush a file that was opened for writing.
    File::options().write(true).open(path)?.sync_all()
}

/// Makes what was renamed in a folder last through a power cut, where the system does not do so by
/// itself.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Opens a file to read it; never a pipe, which might take for ever.
///
/// # Errors
/// What the system says, or that it is no file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    must_be_file(path)?;
    File::open(path)
}

/// Whether a name is that of a file, or of nothing yet, before somebody opens it who would wait for a pipe.
///
/// # Errors
/// What the system says, or that it is no file.
pub fn must_be_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other(format!("{} is no file; move it away", path.display())))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The same of a file that is written: one of its folder, never what a link leads to.
///
/// # Errors
/// What the system says, or [`io::ErrorKind::AlreadyExists`] where the name is taken by something else.
pub fn must_be_own(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = "it is no file of its own but a link or something else; remove it";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file to be locked, which is made where there is none: a file of its folder, never what a link leads
/// to, nor a pipe, which might take for ever.
///
/// # Errors
/// What the system says, or [`io::ErrorKind::AlreadyExists`] where the name is taken by something else.
pub fn open_own(path: &Path) -> io::Result<File> {
    must_be_own(path)?;
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    // Nobody else's business; on Windows the folder decides.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes a file, which need not be there.
///
/// # Errors
/// What the system says.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
