//! Makes data in the vendor's layout for trying things out: the same bytes for the same
//! specification on every machine, and sound by every rule of this crate.

mod bars;
mod calendar;
mod clock;
pub mod daily;
mod market;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use atomic_file::{AtomicFile, CommitNewError};
use chrono::Datelike;
use domain::price::UNITS_PER_YEN;
use domain::{JstDate, VendorCode};
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::catalog::{BarFile, TradeFile, month_bar_file_name, month_file_name};
use crate::error::DataError;
use crate::limits::{SAMPLE_CODES_MAX, SAMPLE_DAYS_MAX, SAMPLE_TRADES_MAX};

use bars::MonthBars;
use clock::{DayShape, MICROS_PER_MINUTE};
use domain::Random;
use market::{Market, Print};

const HEADER: &[u8] = b"Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n";
/// Trades a little smaller files for a lot of time compared with the usual level 6.
pub(crate) const COMPRESSION_LEVEL: u32 = 4;
const NOON_MICROS: u64 = 12 * 60 * MICROS_PER_MINUTE;
const MICROS_PER_SECOND: u64 = 1_000_000;
/// The first code that [`SampleCodes::Count`] gives.
const FIRST_SYMBOL: u32 = 1_301;

/// Which codes a sample has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleCodes {
    /// These; written in rising order, each once.
    These(Vec<VendorCode>),
    /// So many: `13010`, `13020` and so on.
    Count(usize),
}

/// What a sample shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleSpec {
    /// Another number gives another market.
    pub seed: u64,
    /// The first date; trading starts on the first trading day from here on.
    pub start: JstDate,
    /// Trading days, at least 1.
    pub days: u32,
    /// The codes, at least one.
    pub codes: SampleCodes,
    /// Average number of rows of one code on one day, at least 1.
    pub trades_per_code_day: u32,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleReport {
    /// The trades files, one for each month, in time order.
    pub files: Vec<TradeFile>,
    /// The bar files, one of minute and one of daily bars for each month, where asked for.
    pub bar_files: Vec<BarFile>,
    /// Rows in all trades files together.
    pub rows: u64,
}

/// Writes a sample into `folder`, which is made if it is missing. Files are written under another
/// name and renamed, so that nobody reads half of one. A file of the same name and content is kept;
/// one with other content is never overwritten.
///
/// # Errors
/// [`DataError::BadSample`] when the specification is empty or too large, or when a file of other
/// content stands in the way; [`DataError::Unwritable`] when the folder cannot be written.
pub fn write_sample(
    folder: impl AsRef<Path>,
    spec: &SampleSpec,
) -> Result<SampleReport, DataError> {
    write(folder.as_ref(), spec, false)
}

/// Like [`write_sample`], with the minute and daily bars of the same trades beside.
///
/// # Errors
/// The errors of [`write_sample`].
pub fn write_sample_with_bars(
    folder: impl AsRef<Path>,
    spec: &SampleSpec,
) -> Result<SampleReport, DataError> {
    write(folder.as_ref(), spec, true)
}

fn write(folder: &Path, spec: &SampleSpec, with_bars: bool) -> Result<SampleReport, DataError> {
    let codes = checked_codes(spec)?;
    let days = checked_days(spec)?;
    let unwritable = |path: &Path| {
        let path = path.to_path_buf();
        move |source| DataError::Unwritable { path, source }
    };
    std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
    let mut markets: Vec<(VendorCode, Market)> = codes
        .into_iter()
        .map(|code| (code, Market::new(&mut Random::new(&[spec.seed, number_of(code)]))))
        .collect();
    let mut report = SampleReport { files: Vec::new(), bar_files: Vec::new(), rows: 0 };
    for month in
        days.chunk_by(|left, right| (left.year(), left.month()) == (right.year(), right.month()))
    {
        let Some(first) = month.first() else { continue };
        let path = folder.join(month_file_name(first.year(), first.month()));
        let temporary = AtomicFile::create_in(folder).map_err(unwritable(folder))?;
        let mut bars = if with_bars {
            Some(MonthBars::start(folder).map_err(unwritable(folder))?)
        } else {
            None
        };
        let (temporary, rows) = write_month(temporary, spec, month, &mut markets, &mut bars)
            .map_err(unwritable(&path))?;
        settle(temporary, &path)?;
        report.rows += rows;
        report.files.push(TradeFile::from_path(path)?);
        for (granularity, finished) in bars.map(MonthBars::finish).into_iter().flatten() {
            let name = month_bar_file_name(granularity, first.year(), first.month());
            let path = folder.join(name);
            settle(finished.map_err(unwritable(&path))?, &path)?;
            report.bar_files.push(BarFile::from_path(path)?);
        }
    }
    Ok(report)
}

fn checked_codes(spec: &SampleSpec) -> Result<BTreeSet<VendorCode>, DataError> {
    let codes: BTreeSet<VendorCode> = match &spec.codes {
        SampleCodes::These(codes) => codes.iter().copied().collect(),
        SampleCodes::Count(count) => (FIRST_SYMBOL..)
            .take((*count).min(SAMPLE_CODES_MAX + 1))
            .filter_map(|symbol| VendorCode::new(&format!("{symbol}0")).ok())
            .collect(),
    };
    if codes.is_empty() || codes.len() > SAMPLE_CODES_MAX {
        return Err(bad(format!(
            "{} codes asked for; ask for 1 to {SAMPLE_CODES_MAX}",
            codes.len()
        )));
    }
    if !(1..=SAMPLE_TRADES_MAX).contains(&spec.trades_per_code_day) {
        return Err(bad(format!(
            "{} trades per code and day asked for; ask for 1 to {SAMPLE_TRADES_MAX}",
            spec.trades_per_code_day
        )));
    }
    Ok(codes)
}

fn checked_days(spec: &SampleSpec) -> Result<Vec<JstDate>, DataError> {
    if !(1..=SAMPLE_DAYS_MAX).contains(&spec.days) {
        return Err(bad(format!(
            "{} trading days asked for; ask for 1 to {SAMPLE_DAYS_MAX}",
            spec.days
        )));
    }
    // Names of files have four digits of year, and time starts in 1970.
    const YEARS: std::ops::RangeInclusive<i32> = 1971..=2500;
    if !YEARS.contains(&spec.start.year()) {
        return Err(bad(format!(
            "start {} asked for; ask for a date from {} to {}",
            spec.start,
            YEARS.start(),
            YEARS.end()
        )));
    }
    Ok(calendar::trading_days(spec.start).take(spec.days as usize).collect())
}

fn bad(what: String) -> DataError {
    DataError::BadSample { what }
}

/// A number for a code, to give each its own stream of random numbers.
fn number_of(code: VendorCode) -> u64 {
    let bytes = code.as_bytes().iter();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn write_month(
    file: AtomicFile,
    spec: &SampleSpec,
    days: &[JstDate],
    markets: &mut [(VendorCode, Market)],
    bars: &mut Option<MonthBars>,
) -> io::Result<(AtomicFile, u64)> {
    let mut out = compressed(file);
    out.write_all(HEADER)?;
    let mut text = Vec::new();
    let mut rows = 0;
    for &date in days {
        let shape = DayShape::of(date);
        let day_number = u64::from(date.num_days_from_ce().unsigned_abs());
        for (code, market) in markets.iter_mut() {
            let mut random = Random::new(&[spec.seed, number_of(*code), day_number]);
            let prints = market.day(&mut random, &shape, spec.trades_per_code_day);
            rows += prints.len() as u64;
            text.clear();
            let start = format!("{date},{code},");
            for print in &prints {
                text.extend_from_slice(start.as_bytes());
                write_print(&mut text, print);
            }
            out.write_all(&text)?;
            if let Some(bars) = bars {
                bars.take(date, *code, &prints)?;
            }
        }
    }
    Ok((out.finish()?, rows))
}

/// A gzip file with nothing in its header that differs from machine to machine.
pub(crate) fn compressed(file: AtomicFile) -> GzEncoder<AtomicFile> {
    GzBuilder::new().mtime(0).write(file, Compression::new(COMPRESSION_LEVEL))
}

/// The cells after date and code.
fn write_print(text: &mut Vec<u8>, print: &Print) {
    let seconds = print.micros / MICROS_PER_SECOND;
    push_number(text, seconds / 3_600, 2);
    text.push(b':');
    push_number(text, seconds / 60 % 60, 2);
    text.push(b':');
    push_number(text, seconds % 60, 2);
    text.push(b'.');
    push_number(text, print.micros % MICROS_PER_SECOND, 6);
    let session: &[u8] = if print.micros < NOON_MICROS { b",01," } else { b",02," };
    text.extend_from_slice(session);
    // Ordinary shares trade at whole yen.
    let yen = (print.price.units() / UNITS_PER_YEN).unsigned_abs();
    push_number(text, yen, 1);
    text.push(b',');
    push_number(text, print.quantity, 1);
    text.push(b',');
    push_number(text, print.transaction_id, 12);
    text.push(b'\n');
}

/// A number with at least `width` digits, at most 20.
fn push_number(text: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 || start > digits.len() - width {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.extend_from_slice(&digits[start..]);
}

/// Gives a finished file its name.
fn settle(file: AtomicFile, path: &Path) -> Result<(), DataError> {
    let unwritable = |source| DataError::Unwritable { path: path.to_path_buf(), source };
    match file.commit_new(path) {
        Ok(()) => Ok(()),
        Err(CommitNewError::Exists(made)) => {
            if same_content(made.unfinished_path(), path).map_err(unwritable)? {
                return Ok(());
            }
            Err(bad(format!(
                "{} exists and holds other data; name another folder or move the file away",
                path.display()
            )))
        }
        Err(CommitNewError::Io(error)) => Err(unwritable(error)),
    }
}

fn same_content(left: &Path, right: &Path) -> io::Result<bool> {
    let (left, right) = (File::open(left)?, File::open(right)?);
    if left.metadata()?.len() != right.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) =
        (io::BufReader::new(left).bytes(), io::BufReader::new(right).bytes());
    loop {
        match (left.next().transpose()?, right.next().transpose()?) {
            (None, None) => return Ok(true),
            (one, other) if one != other => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SampleSpec {
        SampleSpec {
            seed: 1,
            start: "2024-10-31".parse().unwrap(),
            days: 4,
            codes: SampleCodes::Count(3),
            trades_per_code_day: 200,
        }
    }

    fn message(spec: &SampleSpec) -> String {
        let folder = tempfile::tempdir().unwrap();
        write_sample(folder.path(), spec).unwrap_err().to_string()
    }

    #[test]
    fn empty_and_oversized_samples_are_refused() {
        let base = spec();
        for (spec, expected) in [
            (SampleSpec { codes: SampleCodes::Count(0), ..base.clone() }, "0 codes"),
            (SampleSpec { codes: SampleCodes::Count(usize::MAX), ..base.clone() }, "4001 codes"),
            (SampleSpec { days: 0, ..base.clone() }, "0 trading days"),
            (SampleSpec { days: SAMPLE_DAYS_MAX + 1, ..base.clone() }, "2501 trading days"),
            (SampleSpec { trades_per_code_day: 0, ..base.clone() }, "0 trades"),
            (
                SampleSpec { trades_per_code_day: SAMPLE_TRADES_MAX + 1, ..base.clone() },
                "1000001 trades",
            ),
            (SampleSpec { start: "1969-01-06".parse().unwrap(), ..base.clone() }, "start 1969"),
        ] {
            let message = message(&spec);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn numbers_are_padded() {
        let text = |number, width| {
            let mut text = Vec::new();
            push_number(&mut text, number, width);
            String::from_utf8(text).unwrap()
        };
        assert_eq!((text(0, 1), text(7, 2), text(123, 2)), ("0".into(), "07".into(), "123".into()));
        assert_eq!(text(u64::MAX, 1), u64::MAX.to_string());
    }
}
