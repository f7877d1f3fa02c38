//! Files under a temporary name that get their own name when they are complete.

use std::fs::File;
use std::io;
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
