//! From lines to checked rows: picks the codes asked for, parses, applies every rule, delivers.

use domain::{JstDate, TsNanos, VendorCode};
use memchr::memchr;

use crate::catalog::Period;
use crate::error::{CellProblem, LineProblem, shown};
use crate::limits::{LINE_BYTES_MAX, SHOWN_VALUE_CHARS};

use super::cells::Cells;
use super::fast::{self, Values};
use super::fault::{Fault, LineFault};
use super::header::{Column, Layout};
use super::ledger::{Broken, Ledger};
use super::values::{self, Session};
use super::{Selection, TradeRow, TradeSink};

/// The date read last, because a file names each date many thousand times in a row.
#[derive(Debug, Clone, Copy)]
struct KnownDate {
    bytes: [u8; 10],
    midnight: u64,
}

/// Is told about a fault, its line and, where it is known, its code.
pub(super) type FaultFn<'a> = dyn FnMut(Fault, u64, Option<VendorCode>) + 'a;

/// Turns lines into rows; lives as long as one file is read.
pub(super) struct RowReader<'a, S> {
    layout: Layout,
    period: Period,
    selection: &'a Selection,
    picks_codes: bool,
    /// The code seen last and its place; no code is all zeros.
    current: ([u8; 5], usize),
    ledger: Ledger,
    date: KnownDate,
    cells: Cells,
    sink: &'a mut S,
    /// Who is told about bad rows; without one the first ends the reading.
    bad_row: Option<&'a mut FaultFn<'a>>,
    line: u64,
    delivered: u64,
}

impl<'a, S: TradeSink> RowReader<'a, S> {
    pub(super) fn new(
        layout: Layout,
        period: Period,
        selection: &'a Selection,
        sink: &'a mut S,
        bad_row: Option<&'a mut FaultFn<'a>>,
    ) -> Self {
        let codes = selection.codes();
        Self {
            layout,
            period,
            selection,
            picks_codes: matches!(selection, Selection::Codes(_)),
            current: ([0; 5], 0),
            ledger: Ledger::new(codes),
            date: KnownDate { bytes: [0; 10], midnight: 0 },
            cells: Cells::default(),
            sink,
            bad_row,
            line: 1,
            delivered: 0,
        }
    }

    /// Number of the line handled last; the header is line 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Rows handed to the sink.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Codes asked for, or found when all were.
    pub(super) fn code_count(&self) -> usize {
        self.ledger.code_count()
    }

    /// Handles whole lines, each with its line feed.
    pub(super) fn lines(&mut self, block: &[u8]) -> Result<(), Fault> {
        let standard = self.layout.is_standard();
        let mut rest = block;
        while !rest.is_empty() {
            self.line += 1;
            let head = if standard { fast::date_and_code(rest) } else { None };
            let known = head.and_then(|(date, code)| Some((date, self.place_of(code)?)));
            if let Some((date, place)) = known
                && date == self.date.bytes
                && let Some((values, length)) = fast::values(rest)
            {
                let (line, after) = rest.split_at(length);
                let text = &line[..length - 1];
                rest = after;
                if let Err(broken) = self.deliver(place, &values, text) {
                    let fault = self.blame(text, broken);
                    self.report(fault)?;
                }
                continue;
            }
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or(&[]);
            if line.len() > LINE_BYTES_MAX {
                self.report(LineFault::line(LineProblem::TooLong))?;
                continue;
            }
            // Only a line that is long enough for its own date and code tells its code.
            let skipped = self.picks_codes && known.is_none() && end >= fast::DATE_AND_CODE;
            if !(skipped && head.is_some())
                && let Err(fault) = self.general_row(line)
            {
                self.report(fault)?;
            }
        }
        Ok(())
    }

    /// Handles the text after the last line feed.
    pub(super) fn last_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.line += 1;
        self.general_row(line).or_else(|fault| self.report(fault))
    }

    /// Ends the reading with a fault, unless somebody wants to be told and go on.
    #[cold]
    fn report(&mut self, fault: Fault) -> Result<(), Fault> {
        let line = self.line;
        // The cells are those of this line only when a cell is at fault.
        let code = fault.is_of_a_cell().then(|| self.cell(Column::Code));
        let code = code.and_then(|code| VendorCode::new(std::str::from_utf8(code).ok()?).ok());
        match self.bad_row.as_deref_mut() {
            Some(tell) => {
                tell(fault, line, code);
                Ok(())
            }
            None => Err(fault),
        }
    }

    /// The place of a code that is selected or, when all are read, was seen before.
    #[inline]
    fn place_of(&mut self, code: [u8; 5]) -> Option<usize> {
        if code == self.current.0 {
            return Some(self.current.1);
        }
        let place = if self.picks_codes {
            let wanted = self.selection.codes();
            wanted.iter().position(|wanted| *wanted.as_bytes() == code)
        } else {
            self.ledger.find(code)
        };
        if let Some(place) = place {
            self.current = (code, place);
        }
        place
    }

    #[inline(always)]
    fn deliver(&mut self, place: usize, values: &Values, text: &[u8]) -> Result<(), Broken> {
        let midnight = self.date.midnight;
        // A midnight is at most 584 years after 1970, and the wrap would be later than any file.
        let moment = midnight.wrapping_add(values.nanos_of_day);
        self.ledger.accept(place, midnight, moment, values.transaction_id)?;
        self.delivered += 1;
        let row = TradeRow {
            code_index: place,
            code: self.ledger.code(place),
            ts_event: moment,
            price: values.price,
            quantity: values.quantity,
            transaction_id: values.transaction_id,
        };
        self.sink.trade_with_text(&row, text);
        Ok(())
    }

    /// Any legal spelling, and a precise fault for the others.
    #[cold]
    fn general_row(&mut self, text: &[u8]) -> Result<(), Fault> {
        let line = text.strip_suffix(b"\r").unwrap_or(text);
        if line.is_empty() {
            return Err(LineFault::line(LineProblem::Blank));
        }
        self.cells.split(line).map_err(LineFault::line)?;
        let code = self.cell(Column::Code);
        if let Selection::Codes(codes) = self.selection
            && self.cells.count() > self.layout.position(Column::Code)
            && !codes.iter().any(|wanted| wanted.as_bytes() == code)
        {
            return Ok(());
        }
        if self.cells.count() != self.layout.width() {
            return Err(LineFault::line(LineProblem::CellCount {
                expected: self.layout.width(),
                found: self.cells.count(),
                text: shown(line, SHOWN_VALUE_CHARS),
            }));
        }
        self.refuse_nul(line)?;
        self.take_date()?;
        let place = self.take_code()?;
        let values = self.take_values()?;
        match self.deliver(place, &values, text) {
            Ok(()) => Ok(()),
            Err(broken) => Err(self.blame(line, broken)),
        }
    }

    fn cell(&self, column: Column) -> &[u8] {
        self.cells.get(self.layout.position(column))
    }

    fn fault(&self, column: Column, problem: CellProblem) -> Fault {
        LineFault::cell(column.name(), self.cell(column), problem)
    }

    fn refuse_nul(&self, line: &[u8]) -> Result<(), Fault> {
        if memchr(0, line).is_none() {
            return Ok(());
        }
        let damaged = (0..self.cells.count()).find(|&index| self.cells.get(index).contains(&0));
        let index = damaged.unwrap_or(0);
        let name = self.layout.name_at(index);
        Err(LineFault::cell(name, self.cells.get(index), CellProblem::Nul))
    }

    fn take_date(&mut self) -> Result<(), Fault> {
        let cell = self.cell(Column::Date);
        if cell == self.date.bytes {
            return Ok(());
        }
        let known = parse_date(cell).ok_or_else(|| self.fault(Column::Date, CellProblem::Date))?;
        let (bytes, date, midnight) = known;
        if !self.period.contains(date) {
            let problem = CellProblem::Period(self.period.to_string());
            return Err(self.fault(Column::Date, problem));
        }
        self.date = KnownDate { bytes, midnight };
        Ok(())
    }

    fn take_code(&mut self) -> Result<usize, Fault> {
        let found = match <[u8; 5]>::try_from(self.cell(Column::Code)) {
            Ok(bytes) => self.ledger.find_or_add(bytes),
            Err(_) => Err(CellProblem::Code),
        };
        found.map_err(|problem| self.fault(Column::Code, problem))
    }

    fn take_values(&self) -> Result<Values, Fault> {
        let fault = |column, problem| move || self.fault(column, problem);
        let nanos_of_day = values::time_of_day(self.cell(Column::Time))
            .ok_or_else(fault(Column::Time, CellProblem::Time))?;
        let session = Session::parse(self.cell(Column::Session))
            .ok_or_else(fault(Column::Session, CellProblem::Session))?;
        if !session.contains(nanos_of_day) {
            return Err(self.fault(Column::Time, session.hours_problem()));
        }
        Ok(Values {
            nanos_of_day,
            price: values::price(self.cell(Column::Price))
                .ok_or_else(fault(Column::Price, CellProblem::Price))?,
            quantity: values::quantity(self.cell(Column::Quantity))
                .ok_or_else(fault(Column::Quantity, CellProblem::Quantity))?,
            transaction_id: values::whole(self.cell(Column::TransactionId))
                .ok_or_else(fault(Column::TransactionId, CellProblem::TransactionId))?,
        })
    }

    /// The fault of a row that contradicts the rows before it.
    #[cold]
    fn blame(&mut self, line: &[u8], broken: Broken) -> Fault {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.cells.split(line) {
            Ok(()) => self.fault(broken.column, broken.problem),
            Err(problem) => LineFault::line(problem),
        }
    }
}

/// A date's bytes, the date, and its midnight in Japan as nanoseconds of UTC.
fn parse_date(cell: &[u8]) -> Option<([u8; 10], JstDate, u64)> {
    let bytes = <[u8; 10]>::try_from(cell).ok()?;
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |part: &[u8]| values::whole(part).and_then(|value| u32::try_from(value).ok());
    let year = i32::try_from(number(&bytes[..4])?).ok()?;
    let date = JstDate::from_ymd_opt(year, number(&bytes[5..7])?, number(&bytes[8..])?)?;
    Some((bytes, date, TsNanos::from_jst(date, 0)?.nanos()))
}

impl Selection {
    pub(super) fn codes(&self) -> &[VendorCode] {
        match self {
            Self::All => &[],
            Self::Codes(codes) => codes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_checked_against_the_calendar() {
        let (bytes, date, midnight) = parse_date(b"2025-01-06").unwrap();
        assert_eq!(&bytes, b"2025-01-06");
        assert_eq!(date.to_string(), "2025-01-06");
        assert_eq!(midnight, 1_736_089_200_000_000_000);
        for refused in
            ["2025-02-30", "2025-1-6", "20250106", "2025/01/06", "+025-01-06", "1969-12-31", ""]
        {
            assert!(parse_date(refused.as_bytes()).is_none(), "{refused}");
        }
    }
}
