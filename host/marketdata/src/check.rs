//! Checks a whole file against every rule, without keeping its rows.

use std::ops::ControlFlow;

use domain::TsNanos;

use crate::catalog::TradeFile;
use crate::error::DataError;
use crate::reader::{ReadOptions, Selection, TradeRow, read_trades};

/// What a sound file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileReport {
    /// Rows of the file, all of them sound.
    pub rows: u64,
    /// Different codes in them.
    pub codes: usize,
    /// Timestamp of the earliest row; [`TsNanos::MAX`] without rows.
    pub first: TsNanos,
    /// Timestamp of the latest row; 0 without rows.
    pub last: TsNanos,
}

/// Reads every row of a file and applies every rule.
///
/// # Errors
/// [`DataError`] for the first fault.
pub fn check_file(file: &TradeFile) -> Result<FileReport, DataError> {
    let (mut first, mut last) = (u64::MAX, 0);
    let summary = read_trades(
        file,
        &Selection::All,
        &ReadOptions::default(),
        &mut |_| ControlFlow::Continue(()),
        &mut |row: &TradeRow| {
            first = first.min(row.ts_event);
            last = last.max(row.ts_event);
        },
    )?;
    Ok(FileReport {
        rows: summary.rows_scanned,
        codes: summary.codes,
        first: TsNanos::from_nanos(first),
        last: TsNanos::from_nanos(last),
    })
}
