//! A combined database of made-up daily prices ([`marketdata::sample::daily`]) and lists of its issues, so
//! that everything can be tried without a vendor.

mod names;

use std::fs;
use std::io;
use std::path::PathBuf;

use domain::JstDate;
use duckdb::{Config, params};
use marketdata::sample::daily::{DAILY_CODES_MAX, DailySample, try_each_row};

use crate::STORAGE_VERSION;
use crate::data_dir::{DataDir, IsReplica};
use crate::generation::{GenerationError, publish_generation_of};
use crate::limits::SNAPSHOT_DAYS_MAX;
use crate::listed::{ListedError, write_file};
use crate::snapshot::{PublishError, Published, publish};
use crate::sql::{self, quoted_path};

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
    /// There is a combined database or one of listed issues already; it may be a real one.
    #[error("{} is there already; choose another folder with --prices, or remove it", .0.display())]
    Exists(PathBuf),
    /// The data directory is a copy of another server's.
    #[error(transparent)]
    Replica(#[from] IsReplica),
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
    /// The lists of issues could not be written.
    #[error("the lists of the sample's issues could not be written")]
    Listed(#[from] ListedError),
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
    data.refuse_replica()?;
    let path = data.mother();
    for path in [&path, &data.listed_info()] {
        if path.exists() {
            return Err(SampleError::Exists(path.clone()));
        }
    }
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let failed = |source| SampleError::Io { path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let unfinished = path.with_extension("db.new");
    atomic_file::remove_if_there(&unfinished).map_err(failed)?;
    let mut lives = Lives::default();
    let rows = write(&unfinished, sample, &mut lives)?;
    write_lists(data, &lives)?;
    atomic_file::replace(&unfinished, &path).map_err(failed)?;
    atomic_file::sync_folder(&folder).map_err(failed)?;
    let published = publish(data)?;
    publish_generation_of(data, &published)?;
    Ok(SampleMade { path, rows, published })
}

/// The dates of a sample, and the first and last one of each issue, in the order of codes.
#[derive(Debug, Default)]
struct Lives {
    dates: Vec<JstDate>,
    issues: Vec<(String, JstDate, JstDate)>,
}

impl Lives {
    /// Takes the rows by issue and date. The first issue has one on every date.
    fn row(&mut self, code: &str, date: JstDate) {
        match self.issues.last_mut() {
            Some((known, _, last)) if known == code => *last = date,
            _ => self.issues.push((code.to_owned(), date, date)),
        }
        if self.issues.len() == 1 {
            self.dates.push(date);
        }
    }
}

/// Publishes a list of each date: an issue is on it from its first to its last row.
fn write_lists(data: &DataDir, lives: &Lives) -> Result<(), SampleError> {
    let lists = names::lists(&lives.dates, &lives.issues)?;
    let (path, folder) = (data.listed_info(), data.jp_folder());
    let failed = |source| SampleError::Io { path: folder.clone(), source };
    let unfinished = path.with_extension("db.new");
    atomic_file::remove_if_there(&unfinished).map_err(failed)?;
    write_file(&unfinished, &lists)?;
    atomic_file::replace(&unfinished, &path).map_err(failed)?;
    atomic_file::sync_folder(&folder).map_err(failed)
}

fn write(
    path: &std::path::Path,
    sample: &DailySample,
    lives: &mut Lives,
) -> Result<u64, SampleError> {
    let connection = sql::open(Config::default())?;
    connection.execute_batch(&format!(
        "ATTACH {} AS mother (STORAGE_VERSION '{STORAGE_VERSION}');
         CREATE TABLE mother.daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE,
           low DOUBLE, close DOUBLE, volume DOUBLE, adjustment_factor DOUBLE);",
        quoted_path(path)
    ))?;
    let mut rows = 0;
    let mut appender = connection.appender_to_catalog_and_db("daily", "mother", "main")?;
    try_each_row(sample, |row| {
        let date = duckdb::types::Value::Date32(row.date.to_epoch_days());
        let [open, high, low, close] = row.prices;
        rows += 1;
        lives.row(row.code, row.date);
        let (code, volume, factor) = (row.code, row.volume, row.adjustment_factor);
        appender.append_row(params![date, code, open, high, low, close, volume, factor])
    })?;
    appender.flush()?;
    drop(appender);
    connection.execute_batch("CHECKPOINT mother; DETACH mother")?;
    Ok(rows)
}

#[cfg(test)]
mod tests;
