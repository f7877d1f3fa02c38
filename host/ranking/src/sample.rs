//! A made-up combined database, so that everything can be tried without a vendor. It holds what
//! makes real data hard: issues that come and go, days without a trade, suspensions and lost rows,
//! prices on a grid under daily limits (so values tie), stray zeros, a day on which the exchange
//! stood still and one on which hardly any row arrived.

mod series;

use std::fs;
use std::io;
use std::path::PathBuf;

use domain::JstDate;
use domain::session::is_usually_closed;
use duckdb::{Connection, params};

use crate::limits::SNAPSHOT_DAYS_MAX;
use crate::store::sql::quoted_path;
use crate::store::{DataDir, PublishError, Published, publish};

use series::{Market, Series};

/// Codes of a sample: as many as four digits and a few letters give.
pub const SAMPLE_CODES_MAX: usize = 9_000;
/// Version of DuckDB's file format that older programs can open too.
pub const STORAGE_VERSION: &str = "v1.2.0";

/// What a sample looks like. The same one gives the same rows on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailySample {
    /// Issues, 1 to [`SAMPLE_CODES_MAX`].
    pub codes: usize,
    /// Business days, 1 to [`SNAPSHOT_DAYS_MAX`].
    pub days: usize,
    /// Start of the random numbers.
    pub seed: u64,
    /// First business day, or the next one where it is none.
    pub first: JstDate,
}

impl Default for DailySample {
    fn default() -> Self {
        let first = JstDate::from_ymd_opt(2016, 1, 4).unwrap_or_default();
        Self { codes: 4_000, days: 2_450, seed: 7, first }
    }
}

/// A sample that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMade {
    /// The combined database.
    pub path: PathBuf,
    /// Its rows.
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
        /// The folder.
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
}

/// Makes a combined database of sample rows, ordered by code and date, and publishes it.
///
/// # Errors
///
/// Returns why there is no sample; an existing database is never overwritten.
pub fn make_daily_sample(data: &DataDir, sample: &DailySample) -> Result<SampleMade, SampleError> {
    let sizes =
        [("codes", sample.codes, SAMPLE_CODES_MAX), ("days", sample.days, SNAPSHOT_DAYS_MAX)];
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
    if unfinished.exists() {
        fs::remove_file(&unfinished).map_err(failed)?;
    }
    let rows = write(&unfinished, sample)?;
    fs::rename(&unfinished, &path).map_err(failed)?;
    Ok(SampleMade { path, rows, published: publish(data)? })
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

/// One row of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRow<'a> {
    /// Business day.
    pub date: JstDate,
    /// The issue.
    pub code: &'a str,
    /// Open, high, low and close in yen, with one decimal at most.
    pub prices: [Option<f64>; 4],
    /// Shares traded.
    pub volume: Option<f64>,
}

/// Gives every row of a sample, by issue and date, until one is refused.
///
/// # Errors
///
/// Returns why a row was refused.
pub fn try_each_row<E>(
    sample: &DailySample,
    mut give: impl FnMut(SampleRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let days: Vec<JstDate> = trading_days(sample.first).take(sample.days).collect();
    let market = Market::new(sample.seed, sample.days, sample.codes);
    for (place, code) in codes(sample.codes).iter().enumerate() {
        for row in Series::new(&market, place) {
            let date = days.get(row.day).copied().unwrap_or_default();
            give(SampleRow { date, code, prices: row.prices, volume: row.volume })?;
        }
    }
    Ok(())
}

fn trading_days(first: JstDate) -> impl Iterator<Item = JstDate> {
    first.iter_days().filter(|date| !is_usually_closed(*date))
}

/// Codes in ascending order. One in 25 is of the newest kind, three digits and a letter.
fn codes(count: usize) -> Vec<String> {
    let newest = count / 25;
    let classic = count - newest;
    let spread = |place: usize| 1_301 + place * 8_696 / classic.max(1);
    let mut codes: Vec<String> = (0..classic).map(|place| spread(place).to_string()).collect();
    let letters = ['A', 'C', 'D', 'F'];
    codes.extend(
        (0..newest)
            .map(|place| format!("{}{}", 130 + place % 870, letters[place / 870 % letters.len()])),
    );
    codes.sort();
    codes
}

#[cfg(test)]
mod tests;
