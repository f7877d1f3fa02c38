//! Streams one trades file: inflate, split into lines, pick codes, parse, check, deliver.
//!
//! All memory is fixed in size except what the sink keeps and the transaction ids of the running
//! day. Everything happens on the calling thread.

mod cells;
mod fast;
mod fault;
mod gzip;
mod header;
mod ledger;
mod rows;
mod swar;
mod values;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;

use domain::VendorCode;

use crate::catalog::TradeFile;
use crate::error::{DataError, HeaderProblem, LineProblem};
use crate::limits::{
    CHUNK_BYTES, LINE_BYTES_MAX, PROGRESS_BYTES, SELECTED_CODES_MAX, TEXT_BYTES_MAX,
};

use fault::Fault;
use gzip::GzipText;
use header::Layout;
use rows::RowReader;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One row of a trades file: what was traded at one instant and one price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradeRow {
    /// Position of the code in the selection, or in order of first appearance when all are read.
    pub code_index: usize,
    /// The vendor's code.
    pub code: VendorCode,
    /// The moment, in nanoseconds since 1970 in UTC.
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
    read(file, selection, options, progress, sink, None)
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
    let mut told = |fault: Fault, line: u64, code| {
        bad_row(BadRow { error: fault.at(&file.path, line), code });
    };
    read(file, &Selection::All, options, progress, sink, Some(&mut told))
}

fn read<'f, S: TradeSink>(
    file: &TradeFile,
    selection: &'f Selection,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &'f mut S,
    bad_row: Option<&'f mut rows::FaultFn<'f>>,
) -> Result<ReadSummary, DataError> {
    let asked = selection.codes().len();
    if asked > SELECTED_CODES_MAX {
        return Err(DataError::TooManyCodes { asked });
    }
    let unreadable = |source| DataError::Unreadable { path: file.path.clone(), source };
    let source = File::open(&file.path).map_err(unreadable)?;
    let compressed_total = source.metadata().map_err(unreadable)?.len();
    let chunk_bytes = options.chunk_bytes.max(1);
    let mut text = Text {
        file,
        gzip: GzipText::new(&file.path, source, options.text_bytes_max),
        buffer: vec![0; chunk_bytes + LINE_BYTES_MAX + 1],
        filled: 0,
        chunk_bytes,
    };
    let layout = text.header()?;
    let mut rows = RowReader::new(layout, file.period, selection, sink, bad_row);
    let mut next_report = PROGRESS_BYTES;
    loop {
        let more = text.step(&mut rows)?;
        if text.gzip.compressed_bytes() >= next_report {
            next_report = text.gzip.compressed_bytes() + PROGRESS_BYTES;
            let rows_scanned = rows.line() - 1;
            let report = LoadProgress {
                compressed_bytes: text.gzip.compressed_bytes(),
                compressed_total,
                rows_scanned,
            };
            if progress(report).is_break() {
                return Err(DataError::Cancelled { path: file.path.clone(), rows: rows_scanned });
            }
        }
        if !more {
            break;
        }
    }
    if rows.line() == 1 {
        return Err(text.header_fault(HeaderProblem::NoRows));
    }
    Ok(ReadSummary {
        rows_scanned: rows.line() - 1,
        rows_delivered: rows.delivered(),
        codes: rows.code_count(),
        compressed_bytes: text.gzip.compressed_bytes(),
        text_bytes: text.gzip.text_bytes(),
        content_hash: text.gzip.content_hash(),
    })
}

/// The text of a file in a buffer that always starts with the start of a line.
struct Text<'a, R> {
    file: &'a TradeFile,
    gzip: GzipText<'a, R>,
    buffer: Vec<u8>,
    filled: usize,
    chunk_bytes: usize,
}

impl<R: Read> Text<'_, R> {
    /// Inflates at most one chunk more; `false` at the end.
    fn fill(&mut self) -> Result<bool, DataError> {
        let room = self.filled..self.filled + self.chunk_bytes;
        let produced = self.gzip.read(&mut self.buffer[room])?;
        self.filled += produced;
        Ok(produced > 0)
    }

    /// Takes the header line off the front.
    fn header(&mut self) -> Result<Layout, DataError> {
        let (line_end, next) = loop {
            let filled = &self.buffer[..self.filled];
            if let Some(end) = memchr::memchr(b'\n', filled) {
                break (end, end + 1);
            }
            if self.filled > LINE_BYTES_MAX {
                return Err(self.header_fault(HeaderProblem::Line(LineProblem::TooLong)));
            }
            if !self.fill()? {
                break (self.filled, self.filled);
            }
        };
        if next == 0 {
            return Err(self.header_fault(HeaderProblem::NoText));
        }
        if line_end > LINE_BYTES_MAX {
            return Err(self.header_fault(HeaderProblem::Line(LineProblem::TooLong)));
        }
        let line = &self.buffer[..line_end];
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let layout = Layout::parse(line).map_err(|problem| self.header_fault(problem))?;
        self.drop_front(next);
        Ok(layout)
    }

    /// Handles the whole lines in the buffer and inflates more; `false` when all is handled.
    fn step<S: TradeSink>(&mut self, rows: &mut RowReader<'_, S>) -> Result<bool, DataError> {
        if let Some(last) = memchr::memrchr(b'\n', &self.buffer[..self.filled]) {
            rows.lines(&self.buffer[..=last])
                .map_err(|fault| fault.at(&self.file.path, rows.line()))?;
            self.drop_front(last + 1);
        }
        if self.filled > LINE_BYTES_MAX {
            return Err(DataError::Line {
                path: self.file.path.clone(),
                line: rows.line() + 1,
                problem: LineProblem::TooLong,
            });
        }
        if self.fill()? {
            return Ok(true);
        }
        if self.filled > 0 {
            rows.last_line(&self.buffer[..self.filled])
                .map_err(|fault| fault.at(&self.file.path, rows.line()))?;
        }
        Ok(false)
    }

    fn drop_front(&mut self, length: usize) {
        self.buffer.copy_within(length..self.filled, 0);
        self.filled -= length;
    }

    fn header_fault(&self, problem: HeaderProblem) -> DataError {
        DataError::Header { path: self.file.path.clone(), problem }
    }
}
