//! The tables of a data folder that decide with: which they are, and what is in them.

use std::path::Path;

use marketdata::TableError;
use marketdata::calendar_file::CALENDAR_FILE;
use marketdata::instruments::{INSTRUMENTS_FILE, read_text};
use results::output::SettingsFile;
use sha2::{Digest, Sha256};

/// Those that are there.
///
/// # Errors
/// [`TableError::File`], [`TableError::TooLarge`].
pub(crate) fn files(folder: &Path) -> Result<Vec<SettingsFile>, TableError> {
    let mut found = Vec::new();
    for name in [INSTRUMENTS_FILE, CALENDAR_FILE] {
        let path = folder.join(name);
        if let Some(text) = read_text(&path)? {
            found.push(SettingsFile {
                file: name.to_owned(),
                sha256: Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect(),
                bytes: text.len() as u64,
            });
        }
    }
    Ok(found)
}
