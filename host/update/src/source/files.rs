//! The vendor's files on disk: `equities_bars_daily_YYYYMM.csv.gz` and `_YYYYMMDD.csv.gz`. The strict
//! reader of market data checks every row; what it does not hand over, turnover and adjustment
//! factor, is taken from the row's own text.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use domain::{JstDate, Price, TsNanos};
use flate2::read::MultiGzDecoder;
use marketdata::{
    BarFile, BarRow, BarSink, NoTradeRow, ProgressFn, ReadOptions, Selection, read_bars,
};

use super::check::{money, row_problem, shares};
use crate::limits::{FILE_ROWS_MAX, HEADER_BYTES_MAX};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// The rows of one file, by date and code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileRows {
    /// The rows inside the dates that were asked for.
    pub rows: Vec<DailyRow>,
    /// Every date of the file inside the dates that were asked for.
    pub dates: Vec<JstDate>,
}

/// Reads one of the vendor's files of daily bars, from one date to another, both included.
///
/// # Errors
/// A text that says where the file is wrong; nothing of it is used then.
pub fn read_daily_file(
    file: &BarFile,
    from: JstDate,
    to: JstDate,
    progress: &mut ProgressFn<'_>,
) -> Result<FileRows, String> {
    let names = header(&file.path)?;
    let place = |name: &str| names.iter().position(|found| found == name);
    let mut sink = Rows {
        turnover: place("Va").ok_or("the header has no Va")?,
        volume: place("Vo").ok_or("the header has no Vo")?,
        factor: place("AdjFactor"),
        from,
        to,
        rows: Vec::new(),
        failed: None,
    };
    let options = ReadOptions::default();
    let read = read_bars(file, &Selection::All, &options, progress, &mut sink);
    read.map_err(|error| error.to_string())?;
    let Rows { mut rows, failed, .. } = sink;
    if let Some(what) = failed {
        return Err(format!("{}: {what}", file.path.display()));
    }
    rows.sort_unstable_by_key(|row| (row.date, row.code));
    let twice =
        rows.windows(2).find(|pair| (pair[0].date, pair[0].code) == (pair[1].date, pair[1].code));
    if let Some(pair) = twice {
        let (code, date) = (pair[0].code, pair[0].date);
        return Err(format!("{}: two rows of {code} on {date}", file.path.display()));
    }
    let mut dates: Vec<JstDate> = rows.iter().map(|row| row.date).collect();
    dates.dedup();
    Ok(FileRows { rows, dates })
}

/// The names of the columns.
fn header(path: &Path) -> Result<Vec<String>, String> {
    let told = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let file = File::open(path).map_err(told)?;
    let mut line = Vec::new();
    BufReader::new(MultiGzDecoder::new(file).take(HEADER_BYTES_MAX as u64))
        .read_until(b'\n', &mut line)
        .map_err(told)?;
    Ok(cells(&line))
}

/// The cells of a line; quotes around a cell do not belong to it.
fn cells(line: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']);
    text.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect()
}

/// Collects rows; the first that cannot be used is remembered.
struct Rows {
    turnover: usize,
    volume: usize,
    factor: Option<usize>,
    from: JstDate,
    to: JstDate,
    rows: Vec<DailyRow>,
    failed: Option<String>,
}

impl Rows {
    fn take(&mut self, row: DailyRow, text: &[u8]) {
        if self.failed.is_some() || !(self.from..=self.to).contains(&row.date) {
            return;
        }
        if let Err(what) = self.complete(row, text) {
            self.failed = Some(format!("row of {} on {}: {what}", row.code, row.date));
        }
    }

    fn complete(&mut self, mut row: DailyRow, text: &[u8]) -> Result<(), String> {
        if self.rows.len() >= FILE_ROWS_MAX {
            return Err(format!("more than {FILE_ROWS_MAX} rows"));
        }
        let cells = cells(text);
        let cell = |place: usize| cells.get(place).map_or("", String::as_str);
        if row.volume.is_none() && !cell(self.volume).is_empty() {
            row.volume = Some(shares(cell(self.volume))?);
        }
        if !cell(self.turnover).is_empty() {
            row.turnover = Some(money(cell(self.turnover)).map_err(|what| format!("Va: {what}"))?);
        }
        let factor = self.factor.map_or("", cell);
        if !factor.is_empty() {
            let number: Result<f64, _> = factor.parse();
            let number = number.map_err(|_| format!("AdjFactor: `{factor}` is no number"))?;
            row.adjustment_factor = Some(number);
        }
        if let Some(problem) = row_problem(&row) {
            return Err(problem);
        }
        self.rows.push(row);
        Ok(())
    }
}

fn bare(ts_event: u64, code: domain::VendorCode) -> DailyRow {
    let date = TsNanos::from_nanos(ts_event).jst_date();
    DailyRow::bare(date, IssueCode::from(code), SourceKind::Files)
}

impl BarSink for Rows {
    // Rows come with their text.
    fn bar(&mut self, row: &BarRow) {
        self.bar_with_text(row, b"");
    }

    fn bar_with_text(&mut self, row: &BarRow, text: &[u8]) {
        let price = |units| Some(Price::from_units(units));
        let daily = DailyRow {
            open: price(row.open),
            high: price(row.high),
            low: price(row.low),
            close: price(row.close),
            volume: Some(row.volume),
            ..bare(row.ts_event, row.code)
        };
        self.take(daily, text);
    }

    fn no_trade(&mut self, row: &NoTradeRow, text: &[u8]) {
        self.take(bare(row.ts_event, row.code), text);
    }
}
