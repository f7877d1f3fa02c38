//! Bar files: minute bars (one row for each minute with a trade) and daily bars (one row for each
//! code and business day; without a trade its prices are empty). Columns are found by their names,
//! because the daily files have 10 to 29 of them.

use domain::market::BarGranularity;
use domain::time::NANOS_PER_MINUTE;
use domain::{Price, TsNanos, VendorCode, session};
use memchr::{memchr, memchr_iter};

use crate::catalog::BarFile;
use crate::error::{CellProblem, DataError, LineProblem};
use crate::limits::LINE_BYTES_MAX;

use super::fault::{Fault, LineFault};
use super::header::{ColumnSet, Layout};
use super::line::Line;
use super::rows::FaultFn;
use super::sequence_check::SequenceCheck;
use super::text::{self, Lines};
use super::values::{self, Session};
use super::{BadRow, BadRowFn, ProgressFn, ReadOptions, ReadSummary, Selection, refuse_too_many};

/// One row of a bar file that has a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarRow {
    /// Position of the code in the selection, or in order of first appearance when all are read.
    pub code_index: usize,
    /// The vendor's code.
    pub code: VendorCode,
    /// End of the bar, in nanoseconds since 1970 in UTC: the end of the minute, or the day's
    /// official close.
    pub ts_event: u64,
    /// First price in 1/10,000 yen; above 0, as all prices.
    pub open: i64,
    /// Highest price in 1/10,000 yen.
    pub high: i64,
    /// Lowest price in 1/10,000 yen.
    pub low: i64,
    /// Last price in 1/10,000 yen, from low to high.
    pub close: i64,
    /// Shares; above 0.
    pub volume: u64,
}

/// One row of a bar file that says that there was no trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTradeRow {
    /// As in [`BarRow`].
    pub code_index: usize,
    /// The vendor's code.
    pub code: VendorCode,
    /// End of the span, in nanoseconds since 1970 in UTC.
    pub ts_event: u64,
}

/// Takes the bars of a file in file order.
pub trait BarSink {
    /// Takes one bar.
    fn bar(&mut self, row: &BarRow);

    /// Takes one bar and its text as it stands in the file, without the line feed.
    fn bar_with_text(&mut self, row: &BarRow, _text: &[u8]) {
        self.bar(row);
    }

    /// Takes a row without a trade and its text.
    fn no_trade(&mut self, _row: &NoTradeRow, _text: &[u8]) {}
}

impl<F: FnMut(&BarRow)> BarSink for F {
    fn bar(&mut self, row: &BarRow) {
        self(row);
    }
}

/// The columns in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Date,
    Code,
    Open,
    High,
    Low,
    Close,
    Volume,
    Turnover,
    Time,
}

use Column::{Close, Code, Date, High, Low, Open, Time, Turnover, Volume};

const MINUTE_COLUMNS: [Column; 9] = [Date, Time, Code, Open, High, Low, Close, Volume, Turnover];
const DAY_COLUMNS: [Column; 8] = [Date, Code, Open, High, Low, Close, Volume, Turnover];

impl ColumnSet for Column {
    fn name(self) -> &'static str {
        match self {
            Date => "Date",
            Code => "Code",
            Open => "O",
            High => "H",
            Low => "L",
            Close => "C",
            Volume => "Vo",
            Turnover => "Va",
            Time => "Time",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// Reads a bar file once and hands the selected bars to `sink`, in file order. Rows without a trade
/// are checked and left out. Bars delivered before an error are to be thrown away.
///
/// # Errors
/// [`DataError`] for the first fault in the file, or when `progress` asks to stop.
pub fn read_bars<S: BarSink>(
    file: &BarFile,
    selection: &Selection,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &mut S,
) -> Result<ReadSummary, DataError> {
    refuse_too_many(selection)?;
    text::scan(&file.path, columns(file.granularity), options, progress, |layout| {
        BarReader::new(layout, file, selection, sink, None)
    })
}

/// Reads every row of a bar file once, as [`super::read_past_bad_rows`] does with trades.
///
/// # Errors
/// [`DataError`] where reading cannot go on: a damaged stream or header, an endless line, a cancel.
pub fn read_bars_past_bad_rows<S: BarSink>(
    file: &BarFile,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &mut S,
    bad_row: &mut BadRowFn<'_>,
) -> Result<ReadSummary, DataError> {
    let mut report = |fault: Fault, line: u64, code| {
        bad_row(BadRow { error: fault.at(&file.path, line), code });
    };
    text::scan(&file.path, columns(file.granularity), options, progress, |layout| {
        BarReader::new(layout, file, &Selection::All, sink, Some(&mut report))
    })
}

const fn columns(granularity: BarGranularity) -> &'static [Column] {
    match granularity {
        BarGranularity::Minute => &MINUTE_COLUMNS,
        BarGranularity::Day => &DAY_COLUMNS,
    }
}

/// Turns lines into bars; lives as long as one file is read.
struct BarReader<'a, S> {
    granularity: BarGranularity,
    parts: Line<Column>,
    code_position: usize,
    selection: &'a Selection,
    sequences: SequenceCheck,
    sink: &'a mut S,
    /// Who is told about bad rows; without one the first ends the reading.
    bad_row: Option<&'a mut FaultFn<'a>>,
    line: u64,
    delivered: u64,
}

impl<'a, S: BarSink> BarReader<'a, S> {
    fn new(
        layout: Layout<Column>,
        file: &BarFile,
        selection: &'a Selection,
        sink: &'a mut S,
        bad_row: Option<&'a mut FaultFn<'a>>,
    ) -> Self {
        Self {
            granularity: file.granularity,
            code_position: layout.position(Code),
            parts: Line::new(layout, file.period),
            selection,
            sequences: SequenceCheck::new(selection.codes()),
            sink,
            bad_row,
            line: 1,
            delivered: 0,
        }
    }

    /// Ends the reading with a fault, unless somebody wants to be told and go on.
    fn row_or_report(&mut self, line: &[u8]) -> Result<(), Fault> {
        let read = match line.len() > LINE_BYTES_MAX {
            true => Err(LineFault::line(LineProblem::TooLong)),
            false => self.row(line),
        };
        let Err(fault) = read else { return Ok(()) };
        // The cells are those of this line only when a cell is at fault.
        let code = fault.is_of_a_cell().then(|| self.parts.code(Code)).flatten();
        match self.bad_row.as_deref_mut() {
            Some(tell) => {
                tell(fault, self.line, code);
                Ok(())
            }
            None => Err(fault),
        }
    }

    fn row(&mut self, text: &[u8]) -> Result<(), Fault> {
        let line = text.strip_suffix(b"\r").unwrap_or(text);
        if self.is_other_code(line) || !self.parts.take(line, Code, self.selection)? {
            return Ok(());
        }
        self.parts.take_date(Date)?;
        let index = self.parts.take_code(Code, &mut self.sequences)?;
        let ts_event = self.end_of_bar()?;
        let code = self.sequences.code(index);
        let Some([open, high, low, close]) = self.take_prices()? else {
            self.sink.no_trade(&NoTradeRow { code_index: index, code, ts_event }, text);
            return Ok(());
        };
        let cell = |column| self.parts.cell(column);
        let volume = values::volume(cell(Volume))
            .ok_or_else(|| self.parts.fault(Volume, CellProblem::Quantity))?;
        if !values::is_amount(cell(Turnover)) {
            return Err(self.parts.fault(Turnover, CellProblem::Turnover));
        }
        if let Err(problem) = self.sequences.accept_bar(index, ts_event) {
            let column = match self.granularity {
                BarGranularity::Minute => Time,
                BarGranularity::Day => Date,
            };
            return Err(self.parts.fault(column, problem));
        }
        self.delivered += 1;
        let code_index = index;
        let row = BarRow { code_index, code, ts_event, open, high, low, close, volume };
        self.sink.bar_with_text(&row, text);
        Ok(())
    }

    /// Tells by the code's cell alone that a line is not wanted, which is most lines of a file of
    /// the whole market.
    fn is_other_code(&self, line: &[u8]) -> bool {
        let Selection::Codes(codes) = self.selection else { return false };
        if memchr(b'"', line).is_some() {
            return false;
        }
        let mut start = 0;
        for (position, comma) in memchr_iter(b',', line).enumerate() {
            if position == self.code_position {
                let cell = &line[start..comma];
                return cell.len() == 5 && !codes.iter().any(|code| code.as_bytes() == cell);
            }
            start = comma + 1;
        }
        false
    }

    fn end_of_bar(&self) -> Result<u64, Fault> {
        let date = self.parts.date;
        match self.granularity {
            BarGranularity::Day => Ok(date.midnight.wrapping_add(session::close_of(date.date))),
            BarGranularity::Minute => {
                let start = values::minute_of_day(self.parts.cell(Time))
                    .ok_or_else(|| self.parts.fault(Time, CellProblem::Minute))?;
                if !Session::Morning.contains(start) && !Session::Afternoon.contains(start) {
                    return Err(self.parts.fault(Time, CellProblem::MinuteHours));
                }
                Ok(date.midnight.wrapping_add(start + NANOS_PER_MINUTE))
            }
        }
    }

    /// Open, high, low and close, each inside the range of high and low; none without a trade.
    fn take_prices(&self) -> Result<Option<[i64; 4]>, Fault> {
        let fault = |column, problem| Err(self.parts.fault(column, problem));
        const PRICES: [Column; 4] = [Open, High, Low, Close];
        let is_empty = |column: Column| self.parts.cell(column).is_empty();
        if PRICES.into_iter().all(is_empty) {
            let without_value = |column| matches!(self.parts.cell(column), b"" | b"0" | b"0.0");
            return match [Volume, Turnover].into_iter().find(|column| !without_value(*column)) {
                Some(column) => fault(column, CellProblem::NoTrade),
                None => Ok(None),
            };
        }
        let mut prices = [0; 4];
        for (price, column) in prices.iter_mut().zip(PRICES) {
            match values::price(self.parts.cell(column)) {
                Some(units) => *price = units,
                None => return fault(column, CellProblem::Price),
            }
        }
        let [open, high, low, close] = prices;
        for (column, price) in [(Low, low), (Open, open), (Close, close)] {
            if price > high || price < low {
                let (low, high) = (Price::from_units(low), Price::from_units(high));
                return fault(column, CellProblem::BarRange { low, high });
            }
        }
        Ok(Some(prices))
    }
}

impl<S: BarSink> Lines for BarReader<'_, S> {
    fn line(&self) -> u64 {
        self.line
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn code_count(&self) -> usize {
        self.sequences.code_count()
    }

    fn next_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.line += 1;
        self.row_or_report(line)
    }
}

impl BarRow {
    /// The end of the bar.
    #[must_use]
    pub fn end(&self) -> TsNanos {
        TsNanos::from_nanos(self.ts_event)
    }
}
