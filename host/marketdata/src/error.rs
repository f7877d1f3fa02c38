//! What can go wrong with a market data file: where it is, what was expected, what was found and
//! what to do about it.

use std::io;
use std::path::PathBuf;

use domain::{Price, TsNanos, VendorCode};
use thiserror::Error;

use crate::limits::{
    FILE_CODES_MAX, LINE_BYTES_MAX, PRICE_YEN_MAX, REMEMBERED_IDS_MAX, ROW_QUANTITY_MAX,
    SELECTED_CODES_MAX, TEXT_PER_COMPRESSED_BYTE_MAX,
};

/// Why market data cannot be used. A file with any of these faults is not used at all, because a
/// result on part of the data would look like a result on all of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The data folder cannot be listed.
    #[error(
        "cannot list the data folder {path}: {source}; name the folder that holds the vendor's files"
    )]
    FolderUnreadable {
        /// The folder asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds more files than are listed.
    #[error("{path} has more than {limit} files; name a folder with data files only")]
    FolderTooLarge {
        /// The folder asked for.
        path: PathBuf,
        /// Most files that are listed, `INVENTORY_FILES_MAX`.
        limit: usize,
    },
    /// The data folder holds no trades file.
    #[error(
        "no trades file in {path}; looked for equities_trades_YYYYMM.csv.gz and equities_trades_YYYYMMDD.csv.gz; name the folder that holds the vendor's files"
    )]
    NoTradeFiles {
        /// The folder asked for.
        path: PathBuf,
    },
    /// The name of a file tells no period.
    #[error(
        "{path} is not named like a trades file; use equities_trades_YYYYMM.csv.gz or equities_trades_YYYYMMDD.csv.gz"
    )]
    NotATradeFile {
        /// The file asked for.
        path: PathBuf,
    },
    /// The name of a file is not that of a bar file.
    #[error(
        "{path} is not named like a bar file; use equities_bars_minute_YYYYMM.csv.gz or equities_bars_daily_YYYYMM.csv.gz, or YYYYMMDD for one day"
    )]
    NotABarFile {
        /// The file asked for.
        path: PathBuf,
    },
    /// What has the name of a file of the vendor's is none: a folder, a pipe, or a link that leads nowhere.
    #[error(
        "{path} has the name of a vendor's file but is not a readable file; put the file there, or \
         move it away"
    )]
    NotAFile {
        /// What has the name.
        path: PathBuf,
    },
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}; check that the file is there and may be read")]
    Unreadable {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The compressed stream is damaged.
    #[error("{path}, compressed byte {offset}: {problem}; download the file again")]
    Gzip {
        /// The damaged file.
        path: PathBuf,
        /// Compressed bytes before the place where the damage was found.
        offset: u64,
        /// What is damaged.
        problem: GzipProblem,
    },
    /// Very little compressed data holds very much text.
    #[error(
        "{path}: {compressed} compressed bytes hold more than {text} bytes of text, above the limit of {} to 1; real files reach about 6 to 1, so download the file again",
        TEXT_PER_COMPRESSED_BYTE_MAX
    )]
    Bomb {
        /// The suspicious file.
        path: PathBuf,
        /// Compressed bytes read so far.
        compressed: u64,
        /// Bytes of text so far.
        text: u64,
    },
    /// The text is larger than the caller allows.
    #[error(
        "{path}: more than {limit} bytes of text, which no file of the vendor has; download the file again"
    )]
    TooMuchText {
        /// The large file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The header line is damaged or another one than the vendor's.
    #[error("{path}, line 1: {problem}; download the file again")]
    Header {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// What is wrong with the header.
        problem: HeaderProblem,
    },
    /// A whole line is damaged.
    #[error("{path}, line {line}: {problem}; correct the line, or download the file again")]
    Line {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Number of the line; the header is line 1.
        line: u64,
        /// What is wrong with the line.
        problem: LineProblem,
    },
    /// One cell is damaged or contradicts the rows before.
    #[error(
        "{path}, line {line}, column {column}: expected {problem}, found `{value}`; correct the line, or download the file again"
    )]
    Cell {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Number of the line; the header is line 1.
        line: u64,
        /// The column as the header names it.
        column: String,
        /// The cell, shortened and with unprintable bytes escaped.
        value: String,
        /// What was expected.
        problem: Box<CellProblem>,
    },
    /// More codes were asked for than one pass can pick out.
    #[error(
        "{asked} codes asked for at once, the limit is {}; ask for them in several passes",
        SELECTED_CODES_MAX
    )]
    TooManyCodes {
        /// Codes asked for.
        asked: usize,
    },
    /// The progress callback asked to stop.
    #[error("reading {path} was cancelled after {rows} rows; run it again to finish")]
    Cancelled {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Rows scanned before.
        rows: u64,
    },
    /// The file was replaced again and again while it was read.
    #[error("{path} changed while it was read; wait until its download is complete and run again")]
    SourceChanged {
        /// Path of the file, as it was asked for.
        path: PathBuf,
    },
    /// A sample cannot be made as asked.
    #[error("cannot make sample data: {what}")]
    BadSample {
        /// What was asked, what is possible.
        what: String,
    },
    /// A sample file cannot be written.
    #[error("cannot write {path}: {source}; name a folder that may be written")]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Damage of the compressed stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GzipProblem {
    /// The file has no bytes.
    #[error("expected gzip data, found an empty file")]
    Empty,
    /// The file does not start like gzip.
    #[error("expected gzip data, found `{0}`")]
    NotGzip(String),
    /// The file ends inside the stream.
    #[error("the gzip data ends too early, part of the file is missing")]
    Truncated,
    /// The stream contradicts itself.
    #[error("the gzip data is damaged ({0})")]
    Corrupt(&'static str),
    /// The text is not the text that was compressed.
    #[error("the checksum at the end of the gzip data does not match its text")]
    Checksum,
    /// Other bytes follow the stream.
    #[error("expected the end of the file or more gzip data, found `{0}`")]
    Trailing(String),
}

/// Damage of the header line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// There is no text at all.
    #[error("expected the header line, found no text")]
    NoText,
    /// The first line holds data.
    #[error("expected the header {expected}, found `{found}`")]
    NoHeader {
        /// The columns in use, in the vendor's order.
        expected: String,
        /// The line as found.
        found: String,
    },
    /// A column is missing.
    #[error("expected a column {column}, found the header `{found}`")]
    ColumnMissing {
        /// The missing column.
        column: &'static str,
        /// The header as found.
        found: String,
    },
    /// A column appears more than once.
    #[error("expected one column {column}, found the header `{found}`")]
    ColumnTwice {
        /// The repeated column.
        column: &'static str,
        /// The header as found.
        found: String,
    },
    /// The header's quotes are not closed.
    #[error("{0}")]
    Line(LineProblem),
    /// No row follows the header.
    #[error("expected rows after the header, found none")]
    NoRows,
}

/// Damage of a whole line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// The line is empty.
    #[error("expected a row, found an empty line")]
    Blank,
    /// The line has more or fewer cells than the header.
    #[error("expected {expected} cells as in the header, found {found}: `{text}`")]
    CellCount {
        /// Cells of the header.
        expected: usize,
        /// Cells of this line.
        found: usize,
        /// The line, shortened.
        text: String,
    },
    /// A cell starts with a quote that the line does not close.
    #[error("expected a closing quote, found the end of the line: `{0}`")]
    OpenQuote(String),
    /// A quote stands inside a cell that does not start with one, or text follows a closing one.
    #[error("expected quotes around a whole cell, found one inside it: `{0}`")]
    StrayQuote(String),
    /// The line is too long.
    #[error("expected a line of at most {} bytes, found a longer one", LINE_BYTES_MAX)]
    TooLong,
}

/// What a cell should have been.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// Not a date, or one that the calendar does not have.
    #[error("a date that exists, as YYYY-MM-DD")]
    Date,
    /// A date outside the period in the file's name.
    #[error("a date in {0}, the period in the file's name")]
    Period(String),
    /// Not a vendor code.
    #[error("a code of 5 digits and capital letters that starts with a digit")]
    Code,
    /// More codes than Tokyo can have.
    #[error("at most {} different codes in one file", FILE_CODES_MAX)]
    TooManyCodes,
    /// Not a time of day.
    #[error("a time that exists, as HH:MM:SS with up to 9 digits of fraction")]
    Time,
    /// A time outside its session.
    #[error("a time from {from} to {to} in session {session}")]
    Hours {
        /// First second of the session.
        from: &'static str,
        /// Last second of the session.
        to: &'static str,
        /// The row's session.
        session: &'static str,
    },
    /// Not a session.
    #[error("01 (morning) or 02 (afternoon)")]
    Session,
    /// Not a price.
    #[error(
        "a price above 0 and up to {} yen with at most 4 digits after the point",
        PRICE_YEN_MAX
    )]
    Price,
    /// Not a number of shares.
    #[error("a whole number of shares from 1 to {}", ROW_QUANTITY_MAX)]
    Quantity,
    /// Not an identifier.
    #[error("a whole number of at most 19 digits")]
    TransactionId,
    /// A date before that of an earlier row of the same code.
    #[error("a date from {previous} on, the date of the previous row of code {code}")]
    DateOrder {
        /// The vendor's code of the row.
        code: VendorCode,
        /// The timestamp of its row before.
        previous: TsNanos,
    },
    /// A time before that of an earlier row of the same code on the same date.
    #[error("a time from {previous} on, the time of the previous row of code {code}")]
    TimeOrder {
        /// The vendor's code of the row.
        code: VendorCode,
        /// The timestamp of its row before.
        previous: TsNanos,
    },
    /// A transaction id that was used before.
    #[error("an id that code {code} has not used before on this date")]
    DuplicateId {
        /// The vendor's code of the row.
        code: VendorCode,
    },
    /// A falling id in a file with too many ids to remember.
    #[error(
        "an id above {highest} (code {code}), because a day has more than {} rows that are not \
         grouped by code",
        REMEMBERED_IDS_MAX
    )]
    FallingId {
        /// The vendor's code of the row.
        code: VendorCode,
        /// Its highest id so far on this date.
        highest: u64,
    },
    /// Not the start of a minute.
    #[error("a minute that exists, as HH:MM")]
    Minute,
    /// A minute in which nothing can trade.
    #[error("a minute from 09:00 to 11:35 or from 12:30 to 15:35")]
    MinuteHours,
    /// A price of a bar outside the bar's own range.
    #[error("a price from {low} to {high} yen, the bar's own range")]
    BarRange {
        /// The bar's lowest price.
        low: Price,
        /// The bar's highest price.
        high: Price,
    },
    /// A value in a bar that has no prices.
    #[error("no value, because the row lacks prices and so has no trade")]
    NoTrade,
    /// An amount of money.
    #[error("an amount of money from 0 in digits, with or without decimals")]
    Turnover,
    /// A factor of prices.
    #[error("a factor of prices from 0.001 to 1000 in digits, with or without decimals")]
    Factor,
    /// A bar that does not follow the one before.
    #[error("a bar later than {previous}, the end of the previous bar of code {code}")]
    BarOrder {
        /// The vendor's code of the row.
        code: VendorCode,
        /// The end of its bar before.
        previous: TsNanos,
    },
    /// A second bar of the same span.
    #[error("a bar later than {previous}, the end of the previous bar of code {code}")]
    BarTwice {
        /// The vendor's code of the row.
        code: VendorCode,
        /// The end of its bar before.
        previous: TsNanos,
    },
    /// A NUL byte.
    #[error("text without NUL bytes")]
    Nul,
}

/// Bytes as text for a message: at most `characters_max` characters, unprintable bytes escaped.
pub(crate) fn shown(bytes: &[u8], characters_max: usize) -> String {
    let mut text = String::new();
    for &byte in bytes {
        // The quotes of CSV would only look odd when escaped.
        let next = match byte {
            b'"' | b'\'' | b'\\' => char::from(byte).to_string(),
            _ => byte.escape_ascii().to_string(),
        };
        if text.len() + next.len() > characters_max {
            text.push_str("...");
            break;
        }
        text.push_str(&next);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shortened_and_escaped() {
        assert_eq!(shown(b"12\x0034", 40), "12\\x0034");
        assert_eq!(shown(b"\"a\"\t\xff", 40), "\"a\"\\t\\xff");
        assert_eq!(shown(&[b'9'; 50], 10), "9999999999...");
        assert_eq!(shown(b"12345678\x00", 10), "12345678...");
        assert_eq!(shown(b"", 10), "");
    }
}
