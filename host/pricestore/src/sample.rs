//! A combined database of made-up daily prices ([`marketdata::sample::daily`]), so that everything
//! can be tried without a vendor.

use std::fs;
use std::io;
use std::path::PathBuf;

use duckdb::{Connection, params};
use marketdata::sample::daily::{DAILY_CODES_MAX, DailySample, try_each_row};

use crate::STORAGE_VERSION;
use crate::data_dir::DataDir;
use crate::generation::{GenerationError, Issues, publish_generation};
use crate::limits::SNAPSHOT_DAYS_MAX;
use crate::snapshot::{PublishError, Published, publish};
use crate::sql::quoted_path;

/// A sample that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMade {
    /// The combined database.
    pub path: PathBuf,
    /// Rows in the combined database.
    pub rows: u64,
    /// The snapshot that was published from it.
    pub published: Published,
}

/// Why no sample was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A number is out of its range.
    #[error("{what} must be from 1 to {max}, not {asked}")]
    Size {
        /// Codes or days.
        what: &'static str,
        /// What was asked for.
        asked: usize,
        /// The largest that is allowed.
        max: usize,
    },
    /// There is a combined database already; it may hold real prices.
    #[error("{} is there already; choose another data directory or remove it", .0.display())]
    Exists(PathBuf),
    /// A file could not be written.
    #[error("cannot write below {}", path.display())]
    Io {
        /// The folder of the combined database.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// DuckDB refused something.
    #[error("the database engine failed while the sample was written")]
    Database(#[from] duckdb::Error),
    /// The sample is there, but no snapshot of it.
    #[error("the sample was written, but not published")]
    Publish(#[from] PublishError),
    /// The sample and its snapshot are there, but nothing ties them.
    #[error("the sample was published, but not as a generation")]
    Generation(#[from] GenerationError),
}

/// Makes a combined database of up to [`DAILY_CODES_MAX`] issues on up to [`SNAPSHOT_DAYS_MAX`]
/// business days, ordered by code and date, and publishes it.
///
/// # Errors
///
/// Returns why there is no sample; an existing database is never overwritten.
pub fn make_daily_sample(data: &DataDir, sample: &DailySample) -> Result<SampleMade, SampleError> {
    let sizes =
        [("codes", sample.codes, DAILY_CODES_MAX), ("days", sample.days, SNAPSHOT_DAYS_MAX)];
    for (what, asked, max) in sizes {
        if !(1..=max).contains(&asked) {
            return Err(SampleError::Size { what, asked, max });
        }
    }
    let path = data.mother();
    if path.exists() {
        return Err(SampleError::Exists(path));
    }
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let failed = |source| SampleError::Io { path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let unfinished = path.with_extension("db.new");
    atomic_file::remove_if_there(&unfinished).map_err(failed)?;
    let rows = write(&unfinished, sample)?;
    atomic_file::replace(&unfinished, &path).map_err(failed)?;
    atomic_file::sync_folder(&folder).map_err(failed)?;
    let published = publish(data)?;
    publish_generation(data, Issues::AsBefore)?;
    Ok(SampleMade { path, rows, published })
}

fn write(path: &std::path::Path, sample: &DailySample) -> Result<u64, SampleError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!(
        "ATTACH {} AS mother (STORAGE_VERSION '{STORAGE_VERSION}');
         CREATE TABLE mother.daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE,
           low DOUBLE, close DOUBLE, volume DOUBLE);",
        quoted_path(path)
    ))?;
    let mut rows = 0;
    let mut appender = connection.appender_to_catalog_and_db("daily", "mother", "main")?;
    try_each_row(sample, |row| {
        let date = duckdb::types::Value::Date32(row.date.to_epoch_days());
        let [open, high, low, close] = row.prices;
        rows += 1;
        appender.append_row(params![date, row.code, open, high, low, close, row.volume])
    })?;
    appender.flush()?;
    drop(appender);
    connection.execute_batch("CHECKPOINT mother; DETACH mother")?;
    Ok(rows)
}

#[cfg(test)]
mod tests;
