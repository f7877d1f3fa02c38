//! Databases written as the engine does it by itself.

use std::fs;
use std::path::Path;

use duckdb::Connection;
use pricestore::sql::{quoted, quoted_path};

/// Writes the databases of these issues as a first attempt would: each opened as a database of its
/// own with the engine's defaults, and filled from the combined database. Tells the bytes.
pub(crate) fn plain_split(
    mother: &Path,
    folder: &Path,
    codes: &[&str],
) -> Result<u64, Box<dyn std::error::Error>> {
    let mut bytes = 0;
    for code in codes {
        let path = folder.join(format!("{code}.db"));
        let connection = Connection::open(&path)?;
        connection.execute_batch(&format!(
            "ATTACH {} AS mother (READ_ONLY);
             CREATE TABLE daily AS SELECT * FROM mother.daily WHERE code = {} ORDER BY date",
            quoted_path(mother),
            quoted(code)
        ))?;
        connection.close().map_err(|(_, error)| error)?;
        bytes += fs::metadata(path)?.len();
    }
    Ok(bytes)
}

/// Copies the combined database as the engine itself does it, in the order it has.
pub(crate) fn plain_copy(mother: &Path, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!(
        "ATTACH {} AS mother (READ_ONLY); ATTACH {} AS copy;
         COPY FROM DATABASE mother TO copy; CHECKPOINT copy; DETACH copy",
        quoted_path(mother),
        quoted_path(path)
    ))?;
    Ok(())
}
