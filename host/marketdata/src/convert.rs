//! Turns a trades or bar file into a Parquet table and back, row by row in fixed memory.
//!
//! The table of trades has typed columns for other programs. A price with more digits than it needs (`1690.0`)
//! also keeps how many it has after the point; a row in another spelling than the vendor's (quotes, a
//! carriage return), or whose id does not fit the column, keeps its text. So the way back gives the
//! same text, byte for byte.

mod bars;
mod rows;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use domain::{ShortText, TsNanos, VendorCode};
use thiserror::Error;

use crate::catalog::{BarFile, TradeFile};
use crate::error::{DataError, shown};
use crate::limits::{CONVERT_GROUP_ROWS, LINE_BYTES_MAX};
use crate::parquet::{Field, Kind, ParquetError, TableReader, TableWriter, Values};
use crate::reader::{
    LoadProgress, ProgressFn, ReadOptions, ReadSummary, Selection, TradeRow, TradeSink, read_trades,
};
use crate::sample::compressed;

pub use bars::bar_fields;
pub(crate) use rows::push_line;
use rows::{DIGITS_MAX, Rows, Spelling};

/// The header line of the vendor, with its line feed.
pub(crate) const HEADER: &str =
    "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n";
/// The index of the price among the cells of a line.
const PRICE_PLACE: usize = 4;
/// Characters shown of a line that is refused.
const SHOWN_CHARS: usize = 100;
const TABLE_END: &str = ".parquet";
const TEXT_END: &str = ".csv.gz";

/// What was converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertReport {
    /// Rows written to the new file.
    pub rows: u64,
    /// Rows that are not in the vendor's standard spelling and keep their text.
    pub rows_with_text: u64,
}

/// Why a file cannot be converted. Nothing is written then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// Neither of the two ways.
    #[error(
        "cannot convert {from} to {to}; one of the two ends in {TEXT_END}, the other in {TABLE_END}"
    )]
    Direction {
        /// The file asked for.
        from: PathBuf,
        /// The file to be made.
        to: PathBuf,
    },
    /// There is a file already.
    #[error("{0} exists; choose another name, or replace it with --force")]
    Exists(PathBuf),
    /// The last line has no line feed, which no table can tell.
    #[error(
        "{path}, line {line}: the last line has no line feed at its end, so the table could not \
         give back the same text; download the file again if it was cut, or add the line feed"
    )]
    NoLineFeed {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// A row that a table of texts cannot hold.
    #[error(
        "{path}, {place}: the row is no UTF-8 text, so a table cannot keep it; download the file again"
    )]
    NoText {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// The line, or the number of the row among those of one code.
        place: String,
    },
    /// A header that the way back would not give.
    #[error(
        "{path}, line 1: expected the vendor's header line, found `{found}`; give a file with the \
         vendor's own columns in their order"
    )]
    Header {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A table of something else.
    #[error("{path} is no table of trades; its columns have to be {}", field_names())]
    NotTrades {
        /// Path of the file, as it was asked for.
        path: PathBuf,
    },
    /// A header that cannot name the columns of a table.
    #[error(
        "{path}, line 1: the file starts with `{found}`; its names have to be letters, digits and underscores, each once, and none of {}",
        typed_names()
    )]
    ColumnNames {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A table of something else.
    #[error(
        "{path} is no table of such bars; its columns have to be {}, then those of the bar file",
        typed_names()
    )]
    NotBars {
        /// Path of the file, as it was asked for.
        path: PathBuf,
    },
    /// A row of a table that no file of the vendor can hold.
    #[error(
        "{path}, row {row}: {problem}; this program did not make the table, so convert the \
         vendor's file again"
    )]
    Row {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// The file asked for has no such rows.
    #[error("{path} has no rows{of_code}")]
    NoRows {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// The code asked for.
        of_code: String,
    },
    /// The trades or bar file cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The table cannot be read or written.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// The progress callback asked to stop.
    #[error("converting {0} was cancelled; nothing was written")]
    Cancelled(PathBuf),
}

/// Converts `from` into `to`, in the direction that their names tell, and only rows of `code` where
/// one is given. An existing file is replaced only with `force`; `to` is complete or not there.
///
/// # Errors
/// [`ConvertError`]; `to` is as it was before.
pub fn convert(
    from: &Path,
    to: &Path,
    code: Option<VendorCode>,
    force: bool,
    progress: &mut ProgressFn<'_>,
) -> Result<ConvertReport, ConvertError> {
    let ends = |path: &Path, end: &str| path.to_string_lossy().ends_with(end);
    let into_table = ends(from, TEXT_END) && ends(to, TABLE_END);
    let into_text = ends(from, TABLE_END) && ends(to, TEXT_END);
    if !into_table && !into_text {
        return Err(ConvertError::Direction { from: from.into(), to: to.into() });
    }
    if to.exists() && !force {
        return Err(ConvertError::Exists(to.into()));
    }
    let unwritable = |source| DataError::Unwritable { path: to.into(), source };
    let made = AtomicFile::create_in(atomic_file::folder_of(to)).map_err(unwritable)?;
    let bars = BarFile::from_path(if into_table { from } else { to });
    let (made, report) = match (bars, into_table) {
        (Ok(file), true) => bars::to_table(&file, code, made, progress)?,
        (Ok(file), false) => bars::to_text(from, &file, code, made, progress)?,
        (Err(_), true) => to_table(from, code, made, progress)?,
        (Err(_), false) => to_text(from, &TradeFile::from_path(to)?, code, made, progress)?,
    };
    if report.rows == 0 {
        let of_code = code.map_or(String::new(), |code| format!(" of code {code}"));
        return Err(ConvertError::NoRows { path: from.into(), of_code });
    }
    made.commit(to).map_err(unwritable)?;
    Ok(report)
}

/// The columns of a table of trades.
#[must_use]
pub fn trade_fields() -> Vec<Field> {
    vec![
        Field::required("ts_event", Kind::Timestamp),
        Field::required("code", Kind::Text),
        Field::required("price", Kind::Yen),
        Field::required("quantity", Kind::Int),
        Field::optional("transaction_id", Kind::Int),
        Field::optional("price_digits", Kind::Int),
        Field::optional("text", Kind::Text),
    ]
}

fn field_names() -> String {
    let fields = trade_fields();
    let names: Vec<String> =
        fields.iter().map(|field| format!("{} ({})", field.name, field.kind)).collect();
    names.join(", ")
}

fn typed_names() -> String {
    let names: Vec<String> = bar_fields().into_iter().map(|field| field.name).collect();
    names.join(", ")
}

/// Rows on their way into a table.
struct Group<W: Write + Send> {
    writer: TableWriter<W>,
    ts_event: Vec<Option<i64>>,
    code: Vec<Option<ShortText>>,
    price: Vec<Option<i64>>,
    quantity: Vec<Option<i64>>,
    transaction_id: Vec<Option<i64>>,
    price_digits: Vec<Option<i64>>,
    text: Vec<Option<ShortText>>,
    standard: String,
    text_bytes: u64,
    report: ConvertReport,
    failed: Option<ParquetError>,
}

impl<W: Write + Send> Group<W> {
    fn new(sink: W) -> Result<Self, ParquetError> {
        Ok(Self {
            writer: TableWriter::new(sink, &trade_fields())?,
            ts_event: Vec::new(),
            code: Vec::new(),
            price: Vec::new(),
            quantity: Vec::new(),
            transaction_id: Vec::new(),
            price_digits: Vec::new(),
            text: Vec::new(),
            standard: String::new(),
            text_bytes: HEADER.len() as u64,
            report: ConvertReport { rows: 0, rows_with_text: 0 },
            failed: None,
        })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        self.writer.write(&[
            Values::Int(std::mem::take(&mut self.ts_event)),
            Values::Text(std::mem::take(&mut self.code)),
            Values::Int(std::mem::take(&mut self.price)),
            Values::Int(std::mem::take(&mut self.quantity)),
            Values::Int(std::mem::take(&mut self.transaction_id)),
            Values::Int(std::mem::take(&mut self.price_digits)),
            Values::Text(std::mem::take(&mut self.text)),
        ])
    }
}

impl<W: Write + Send> Group<W> {
    /// The digits after the point of the price where they are more than needed, if the row is in the
    /// vendor's spelling apart from that.
    fn spelling(&mut self, row: &TradeRow, text: &[u8]) -> Option<Option<i64>> {
        self.standard.clear();
        push_line(&mut self.standard, row, None);
        if self.standard.as_bytes() == text {
            return Some(None);
        }
        let price = text.split(|byte| *byte == b',').nth(PRICE_PLACE)?;
        let point = price.iter().position(|byte| *byte == b'.')?;
        let digits = price.len() - point - 1;
        self.standard.clear();
        push_line(&mut self.standard, row, Some(digits).filter(|digits| *digits <= DIGITS_MAX));
        (self.standard.as_bytes() == text).then_some(Some(digits as i64))
    }
}

impl<W: Write + Send> TradeSink for Group<W> {
    fn trade(&mut self, _row: &TradeRow) {}

    fn trade_with_text(&mut self, row: &TradeRow, text: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let transaction_id = i64::try_from(row.transaction_id).ok();
        let digits = self.spelling(row, text);
        let own = if digits.is_some() && transaction_id.is_some() {
            None
        } else if let Ok(text) = str::from_utf8(text) {
            Some(text.into())
        } else {
            // Never of a sound row: all seven cells are checked, and all of them are ASCII.
            self.failed = Some(ParquetError::Write("a row is no text".to_owned()));
            return;
        };
        // The reader's limits keep a timestamp and a quantity far below 63 bits.
        self.ts_event.push(Some(row.ts_event.cast_signed()));
        self.code.push(Some(row.code.as_str().into()));
        self.price.push(Some(row.price));
        self.quantity.push(Some(row.quantity.cast_signed()));
        self.transaction_id.push(transaction_id);
        self.price_digits.push(digits.flatten());
        self.report.rows_with_text += u64::from(own.is_some());
        self.text.push(own);
        self.text_bytes += text.len() as u64 + 1;
        self.report.rows += 1;
        if self.ts_event.len() == CONVERT_GROUP_ROWS {
            self.failed = self.flush().err();
        }
    }
}

fn to_table(
    from: &Path,
    code: Option<VendorCode>,
    sink: AtomicFile,
    progress: &mut ProgressFn<'_>,
) -> Result<(AtomicFile, ConvertReport), ConvertError> {
    let file = TradeFile::from_path(from)?;
    refuse_other_headers(from)?;
    let selection = code.map_or(Selection::All, |code| Selection::Codes(vec![code]));
    let unwritable = |source| DataError::Unwritable { path: sink.unfinished_path().into(), source };
    let handle = sink.reopen().map_err(unwritable)?;
    let mut group = Group::new(BufWriter::new(handle))?;
    let options = ReadOptions::default();
    let summary = read_trades(&file, &selection, &options, progress, &mut group);
    if let Some(error) = group.failed {
        return Err(error.into());
    }
    let summary = summary?;
    group.flush()?;
    let report = group.report;
    refuse_lost_bytes(from, code, group.text_bytes, &summary)?;
    let mut out = group.writer.finish()?;
    out.flush().map_err(unwritable)?;
    Ok((sink, report))
}

/// Refuses a file of whose text the way back would not give every byte: only of the last line feed that can be.
fn refuse_lost_bytes(
    from: &Path,
    code: Option<VendorCode>,
    text_bytes: u64,
    summary: &ReadSummary,
) -> Result<(), ConvertError> {
    match code.is_none() && text_bytes != summary.text_bytes {
        true => Err(ConvertError::NoLineFeed { path: from.into(), line: summary.rows_scanned + 1 }),
        false => Ok(()),
    }
}

/// Looks at the first line: the way back writes the vendor's own.
fn refuse_other_headers(path: &Path) -> Result<(), ConvertError> {
    let (start, is_sound) = text_start(path)?;
    // What is damaged is told better by the reader.
    if !is_sound || start.starts_with(HEADER.as_bytes()) {
        return Ok(());
    }
    Err(ConvertError::Header { path: path.into(), found: shown(first_line(&start), SHOWN_CHARS) })
}

/// The start of a file's text, and whether it could be inflated without a fault.
fn text_start(path: &Path) -> Result<(Vec<u8>, bool), DataError> {
    let unreadable = |source| DataError::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut text = flate2::read::MultiGzDecoder::new(file).take(LINE_BYTES_MAX as u64);
    let mut start = Vec::new();
    let is_sound = text.read_to_end(&mut start).is_ok();
    Ok((start, is_sound))
}

fn first_line(start: &[u8]) -> &[u8] {
    start.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// Tells how far a table is read, after the row group `index`.
fn tell_group(
    from: &Path,
    table: &TableReader,
    index: usize,
    rows_scanned: u64,
    progress: &mut ProgressFn<'_>,
) -> Result<(), ConvertError> {
    let compressed_total = from.metadata().map_or(0, |metadata| metadata.len());
    let compressed_bytes = (index as u64 + 1) * compressed_total / table.groups() as u64;
    match progress(LoadProgress { compressed_bytes, compressed_total, rows_scanned }) {
        ControlFlow::Break(()) => Err(ConvertError::Cancelled(from.into())),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn to_text(
    from: &Path,
    to: &TradeFile,
    code: Option<VendorCode>,
    sink: AtomicFile,
    progress: &mut ProgressFn<'_>,
) -> Result<(AtomicFile, ConvertReport), ConvertError> {
    let table = TableReader::open(from)?;
    if table.fields() != trade_fields() {
        return Err(ConvertError::NotTrades { path: from.into() });
    }
    let unwritable = |source| DataError::Unwritable { path: to.path.clone(), source };
    let mut out = compressed(sink);
    out.write_all(HEADER.as_bytes()).map_err(unwritable)?;
    let mut report = ConvertReport { rows: 0, rows_with_text: 0 };
    let (mut passed, mut lines) = (0, String::new());
    for index in 0..table.groups() {
        lines.clear();
        let wrong = |row, problem| ConvertError::Row { path: from.into(), row, problem };
        let rows = Rows::of(table.group(index)?)
            .ok_or_else(|| ConvertError::NotTrades { path: from.into() })?;
        for row in 0..rows.len() {
            let row = rows.at(row).map_err(|problem| wrong(passed, problem))?;
            passed += 1;
            if code.is_some_and(|code| code != row.0.code) {
                continue;
            }
            if !to.period.contains(TsNanos::from_nanos(row.0.ts_event).jst_date()) {
                return Err(wrong(
                    passed - 1,
                    "its date is not in the period of the new file's name",
                ));
            }
            report.rows += 1;
            match row.1 {
                Spelling::Own(text) => {
                    report.rows_with_text += 1;
                    lines.push_str(text);
                }
                Spelling::Digits(digits) => push_line(&mut lines, &row.0, digits),
            }
            lines.push('\n');
        }
        out.write_all(lines.as_bytes()).map_err(unwritable)?;
        tell_group(from, &table, index, passed, progress)?;
    }
    Ok((out.finish().map_err(unwritable)?, report))
}
