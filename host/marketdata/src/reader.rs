//! Streams one file of trades or bars: inflate, split into lines, pick codes, parse, check, deliver.
//!
//! All memory is fixed in size except what the sink keeps and the transaction ids of the running
//! day. Everything happens on the calling thread.

mod bars;
mod cells;
mod days;
mod factors;
mod fast;
mod fault;
mod gzip;
mod header;
mod line;
mod rows;
mod sequence_check;
mod swar;
mod text;
mod values;

use std::ops::ControlFlow;

use domain::VendorCode;

use crate::catalog::TradeFile;
use crate::error::DataError;
use crate::limits::{CHUNK_BYTES, SELECTED_CODES_MAX, TEXT_BYTES_MAX};

use fault::Fault;
use header::Column;
use rows::RowReader;

pub use bars::{BarRow, BarSink, NoTradeRow, read_bars, read_bars_past_bad_rows};
pub(crate) use days::read_days;
pub use factors::{FactorRow, read_factors};

/// One row of a trades file: what was traded at one instant and one price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradeRow {
    /// Position of the code in the selection, or in order of first appearance when all are read.
    pub code_index: usize,
    /// The vendor's code.
    pub code: VendorCode,
    /// When the exchange executed it, in nanoseconds since 1970 in UTC.
    pub ts_event: u64,
    /// The price in 1/10,000 yen; above 0.
    pub price: i64,
    /// Shares; above 0.
    pub quantity: u64,
    /// The vendor's id, unique within code and date.
    pub transaction_id: u64,
}

/// Takes the rows of a file in file order.
pub trait TradeSink {
    /// Takes one row.
    fn trade(&mut self, row: &TradeRow);

    /// Takes one row and its text as it stands in the file, without the line feed.
    #[inline(always)]
    fn trade_with_text(&mut self, row: &TradeRow, _text: &[u8]) {
        self.trade(row);
    }
}

/// A row that breaks a rule, in a reading that goes on.
#[derive(Debug)]
pub struct BadRow {
    /// Which rule, where.
    pub error: DataError,
    /// The row's code, where it has one.
    pub code: Option<VendorCode>,
}

/// Is told about every row that breaks a rule.
pub type BadRowFn<'a> = dyn FnMut(BadRow) + 'a;

impl<F: FnMut(&TradeRow)> TradeSink for F {
    fn trade(&mut self, row: &TradeRow) {
        self(row);
    }
}

/// Which rows of a file are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Every row; every rule is applied to every row.
    All,
    /// Rows of these codes. Other rows are skipped by their code alone, so faults in them are not
    /// seen, except damage of the compressed stream, overlong lines, empty lines and lines that
    /// show no code.
    Codes(Vec<VendorCode>),
}

/// Sizes that a caller may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bytes of text handled at a time; at least 1. Never changes what is read.
    pub chunk_bytes: usize,
    /// Bytes of text after which a file is refused.
    pub text_bytes_max: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { chunk_bytes: CHUNK_BYTES, text_bytes_max: TEXT_BYTES_MAX }
    }
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of the file that are used up.
    pub compressed_bytes: u64,
    /// Bytes of the file.
    pub compressed_total: u64,
    /// Rows passed, skipped ones included.
    pub rows_scanned: u64,
}

/// Is told about progress every few megabytes; [`ControlFlow::Break`] cancels.
pub type ProgressFn<'a> = dyn FnMut(LoadProgress) -> ControlFlow<()> + 'a;

/// What one pass over a file saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSummary {
    /// Rows passed, skipped ones included.
    pub rows_scanned: u64,
    /// Rows handed to the sink.
    pub rows_delivered: u64,
    /// Codes found when all were read, else the codes asked for.
    pub codes: usize,
    /// Bytes of the file.
    pub compressed_bytes: u64,
    /// Bytes of text in it.
    pub text_bytes: u64,
    /// xxh3-128 of the file's bytes as they were read.
    pub content_hash: u128,
}

/// Reads a trades file once and hands the selected rows to `sink`, in file order. Rows delivered
/// before an error are to be thrown away.
///
/// # Errors
/// [`DataError`] for the first fault in the file, or when `progress` asks to stop.
pub fn read_trades<S: TradeSink>(
    file: &TradeFile,
    selection: &Selection,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &mut S,
) -> Result<ReadSummary, DataError> {
    refuse_too_many(selection)?;
    text::scan(&file.path, &Column::ALL, options, progress, |layout| {
        RowReader::new(layout, file.period, selection, sink, None)
    })
}

/// Reads every row of a trades file once, for finding out what is wrong with it: a row that breaks a
/// rule is told to `bad_row` and left out, and rules between rows look at the sound rows only.
///
/// # Errors
/// [`DataError`] where reading cannot go on: a damaged stream or header, an endless line, a cancel.
pub fn read_past_bad_rows<S: TradeSink>(
    file: &TradeFile,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &mut S,
    bad_row: &mut BadRowFn<'_>,
) -> Result<ReadSummary, DataError> {
    let mut report = |fault: Fault, line: u64, code| {
        bad_row(BadRow { error: fault.at(&file.path, line), code });
    };
    text::scan(&file.path, &Column::ALL, options, progress, |layout| {
        RowReader::new(layout, file.period, &Selection::All, sink, Some(&mut report))
    })
}

fn refuse_too_many(selection: &Selection) -> Result<(), DataError> {
    let asked = selection.codes().len();
    if asked > SELECTED_CODES_MAX {
        return Err(DataError::TooManyCodes { asked });
    }
    Ok(())
}
