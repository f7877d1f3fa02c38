//! The vendor's files on disk: `equities_bars_daily_YYYYMM.csv.gz` and `_YYYYMMDD.csv.gz`. The strict
//! reader of market data checks every row; what it does not hand over, turnover and adjustment
//! factor, is taken from the row's own text. Few odd rows of a day are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use domain::{JstDate, Price, TsNanos};
use flate2::read::MultiGzDecoder;
use marketdata::{
    BadRow, BarFile, BarRow, BarSink, DataError, NoTradeRow, Period, ProgressFn, ReadOptions,
    read_bars_past_bad_rows,
};

use super::OddRow;
use super::check::{TWICE, date, money, row_problem, shares, too_many_odd};
use crate::limits::{
    FILE_ODD_ROWS_MAX, FILE_ROWS_MAX, HEADER_BYTES_MAX, ODD_CELL_CHARS_MAX, ODD_ROW_BYTES_MAX,
};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// The rows of one file, by date and code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileRows {
    /// The rows inside the dates that were asked for.
    pub rows: Vec<DailyRow>,
    /// Every date of these rows.
    pub dates: Vec<JstDate>,
    /// Rows that cannot be used and were left out, and the date of each as far as it can be told (rule
    /// `unusable`).
    pub odd: Vec<(Option<JstDate>, OddRow)>,
    /// Days that are refused, and why (rule `unusable`).
    pub refused: BTreeMap<JstDate, String>,
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
    let needed = |name: &str| place(name).ok_or_else(|| format!("the header has no {name}"));
    let columns = Columns {
        date: needed("Date")?,
        code: needed("Code")?,
        turnover: needed("Va")?,
        volume: needed("Vo")?,
        factor: place("AdjFactor"),
    };
    let mut sink =
        Rows { columns, from, to, rows: Vec::new(), odd: Vec::new(), is_too_large: false };
    let mut bad = BTreeMap::new();
    let mut tell = |row: BadRow| {
        if let DataError::Line { line, .. } | DataError::Cell { line, .. } = row.error
            && bad.len() <= FILE_ODD_ROWS_MAX
        {
            bad.insert(line, row.error.to_string());
        }
    };
    let options = ReadOptions::default();
    let read = read_bars_past_bad_rows(file, &options, progress, &mut sink, &mut tell);
    read.map_err(|error| error.to_string())?;
    let Rows { rows, mut odd, is_too_large, .. } = sink;
    let named = |what: String| format!("{}: {what}", file.path.display());
    if is_too_large {
        return Err(named(format!("more than {FILE_ROWS_MAX} rows")));
    }
    if bad.len() > FILE_ODD_ROWS_MAX {
        return Err(named(format!("more than {FILE_ODD_ROWS_MAX} odd rows")));
    }
    let mut texts = lines(&file.path, bad.keys().copied().collect())?;
    let unread = bad.into_iter().map(|(line, reason)| {
        let text = texts.remove(&line).unwrap_or_default();
        Odd::unread(&columns, file.period, line, &text, reason)
    });
    odd.extend(unread.filter(|row| row.date.is_none_or(|date| (from..=to).contains(&date))));
    judge(rows, odd).map_err(named)
}

/// Leaves out what is odd, and refuses days that have too much of it.
fn judge(mut rows: Vec<DailyRow>, mut odd: Vec<Odd>) -> Result<FileRows, String> {
    rows.sort_unstable_by_key(|row| (row.date, row.code));
    let mut twice: BTreeSet<(JstDate, IssueCode)> =
        odd.iter().filter_map(|row| Some((row.date?, row.code?))).collect();
    let pairs = rows.windows(2).map(|pair| (&pair[0], &pair[1]));
    let same = pairs.filter(|(one, next)| (one.date, one.code) == (next.date, next.code));
    twice.extend(same.map(|(row, _)| (row.date, row.code)));
    let all = rows.len() + odd.len();
    // Of two rows for one issue nobody can tell which is right.
    rows.retain(|row| {
        let is_single = !twice.contains(&(row.date, row.code));
        if !is_single {
            odd.push(Odd::of(row, String::new(), TWICE.to_owned()));
        }
        is_single
    });
    let undated: Vec<&Odd> = odd.iter().filter(|row| row.date.is_none()).collect();
    if let Some(what) = too_many_odd(undated.len(), all, || undated[0].told.to_string()) {
        return Err(what);
    }
    let mut refused = BTreeMap::new();
    let dated: BTreeSet<JstDate> = odd.iter().filter_map(|row| row.date).collect();
    for date in dated {
        let of_day: Vec<&Odd> = odd.iter().filter(|row| row.date == Some(date)).collect();
        let good = rows.iter().filter(|row| row.date == date).count();
        let first = || of_day[0].told.to_string();
        if let Some(what) = too_many_odd(of_day.len(), good + of_day.len(), first) {
            refused.insert(date, what);
        }
    }
    rows.retain(|row| !refused.contains_key(&row.date));
    odd.retain(|row| row.date.is_none_or(|date| !refused.contains_key(&date)));
    let mut dates: Vec<JstDate> = rows.iter().map(|row| row.date).collect();
    dates.dedup();
    let odd = odd.into_iter().map(|row| (row.date, row.told)).collect();
    Ok(FileRows { rows, dates, odd, refused })
}

/// A row that cannot be used.
struct Odd {
    /// Its date, or the file's own where it tells none.
    date: Option<JstDate>,
    code: Option<IssueCode>,
    told: OddRow,
}

impl Odd {
    fn of(row: &DailyRow, text: String, reason: String) -> Self {
        let told = OddRow { row: format!("{} on {}", row.code, row.date), text, reason };
        Self { date: Some(row.date), code: Some(row.code), told }
    }

    /// A row that the reader of market data does not take.
    fn unread(columns: &Columns, period: Period, line: u64, text: &[u8], reason: String) -> Self {
        let cells = cells(text);
        let cell = |place: usize| cells.get(place).map_or("?", String::as_str);
        let (day, code) = (cell(columns.date), cell(columns.code));
        // A file may hold anything, and this is shown on terminals.
        let shown = |cell: &str| -> String {
            cell.chars().take(ODD_CELL_CHARS_MAX).flat_map(char::escape_debug).collect()
        };
        let row = format!("{} on {} (line {line})", shown(code), shown(day));
        let of_file = match period {
            Period::Day(date) => Some(date),
            Period::Month { .. } => None,
        };
        let date = date(day).filter(|date| (period.first()..=period.last()).contains(date));
        let text = String::from_utf8_lossy(text).trim_end().to_owned();
        Self { date: date.or(of_file), code: code.parse().ok(), told: OddRow { row, text, reason } }
    }
}

/// The beginnings of some lines of a file, by their numbers; the header is line 1.
fn lines(path: &Path, wanted: BTreeSet<u64>) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    let Some(last) = wanted.last().copied() else { return Ok(found) };
    let told = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut text = BufReader::new(MultiGzDecoder::new(File::open(path).map_err(told)?));
    let (mut number, mut is_begun) = (1, false);
    while number <= last {
        let mut part = Vec::new();
        let mut limited = text.by_ref().take(ODD_ROW_BYTES_MAX as u64);
        if limited.read_until(b'\n', &mut part).map_err(told)? == 0 {
            break;
        }
        let is_whole = part.ends_with(b"\n");
        if !is_begun && wanted.contains(&number) {
            found.insert(number, part);
        }
        is_begun = !is_whole;
        number += u64::from(is_whole);
    }
    Ok(found)
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

/// Where a row has which cell.
#[derive(Debug, Clone, Copy)]
struct Columns {
    date: usize,
    code: usize,
    turnover: usize,
    volume: usize,
    factor: Option<usize>,
}

/// Collects rows, and those that cannot be used.
struct Rows {
    columns: Columns,
    from: JstDate,
    to: JstDate,
    rows: Vec<DailyRow>,
    odd: Vec<Odd>,
    is_too_large: bool,
}

impl Rows {
    fn take(&mut self, row: DailyRow, text: &[u8]) {
        self.is_too_large |= self.rows.len() + self.odd.len() >= FILE_ROWS_MAX;
        if self.is_too_large || !(self.from..=self.to).contains(&row.date) {
            return;
        }
        match self.complete(row, text) {
            Ok(row) => self.rows.push(row),
            Err(what) => {
                let text = String::from_utf8_lossy(text).into_owned();
                self.odd.push(Odd::of(&row, text, what));
            }
        }
    }

    fn complete(&self, mut row: DailyRow, text: &[u8]) -> Result<DailyRow, String> {
        let cells = cells(text);
        let cell = |place: usize| cells.get(place).map_or("", String::as_str);
        let Columns { volume, turnover, factor, .. } = self.columns;
        if row.volume.is_none() && !cell(volume).is_empty() {
            row.volume = Some(shares(cell(volume))?);
        }
        if !cell(turnover).is_empty() {
            row.turnover = Some(money(cell(turnover)).map_err(|what| format!("Va: {what}"))?);
        }
        let factor = factor.map_or("", cell);
        if !factor.is_empty() {
            let number: Result<f64, _> = factor.parse();
            let number = number.map_err(|_| format!("AdjFactor: `{factor}` is no number"))?;
            row.adjustment_factor = Some(number);
        }
        row_problem(&row).map_or(Ok(row), Err)
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
