//! Whether a file that is written still has its name.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

/// Whether a file stands at a path, and not another one or none: somebody may remove, move or replace it
/// while it is open, and what is written to it then is found by nobody.
pub(super) fn stands_at(file: &File, path: &Path) -> io::Result<bool> {
    let found = match fs::metadata(path) {
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            return Ok(false);
        }
        other => other?,
    };
    Ok(identity(&found) == identity(&file.metadata()?))
}

#[cfg(unix)]
fn identity(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Where the system tells no number of a file, its time of birth and its size stand for it.
#[cfg(not(unix))]
fn identity(meta: &Metadata) -> (Option<std::time::SystemTime>, u64) {
    (meta.created().ok(), meta.len())
}
