//! The tables of a data folder that decide with: which they are, and what is in them.

use std::io::{self, ErrorKind};
use std::path::Path;

use marketdata::TableError;
use marketdata::calendar_file::CALENDAR_FILE;
use marketdata::instruments::INSTRUMENTS_FILE;
use results::output::SettingsFile;
use sha2::{Digest, Sha256};

/// Those that are there.
///
/// # Errors
/// [`TableError::File`].
pub(crate) fn files(folder: &Path) -> Result<Vec<SettingsFile>, TableError> {
    let mut found = Vec::new();
    for name in [INSTRUMENTS_FILE, CALENDAR_FILE] {
        let path = folder.join(name);
        match ordinary(&path) {
            Ok(text) => found.push(SettingsFile {
                file: name.to_owned(),
                sha256: Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect(),
                bytes: text.len() as u64,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(TableError::File { path, source }),
        }
    }
    Ok(found)
}

/// What is in a file; a pipe could keep its reader waiting.
fn ordinary(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    std::fs::read(path)
}
