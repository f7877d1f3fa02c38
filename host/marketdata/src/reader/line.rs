//! One line as cells, and the rules that lines of every kind of file share.

use domain::{JstDate, TsNanos, VendorCode};
use memchr::memchr;

use crate::catalog::Period;
use crate::error::{CellProblem, LineProblem, shown};
use crate::limits::SHOWN_VALUE_CHARS;

use super::cells::Cells;
use super::fault::{Fault, LineFault};
use super::header::{ColumnSet, Layout};
use super::sequence_check::SequenceCheck;
use super::{Selection, values};

/// The date read last, because a file names each date many thousand times in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownDate {
    pub(super) bytes: [u8; 10],
    pub(super) date: JstDate,
    /// Midnight in Japan as nanoseconds of UTC.
    pub(super) midnight: u64,
}

/// The present line of a file.
pub(super) struct Line<C> {
    pub(super) layout: Layout<C>,
    period: Period,
    pub(super) date: KnownDate,
    cells: Cells,
}

impl<C: ColumnSet> Line<C> {
    pub(super) fn new(layout: Layout<C>, period: Period) -> Self {
        let date = KnownDate { bytes: [0; 10], date: JstDate::MIN, midnight: 0 };
        Self { layout, period, date, cells: Cells::default() }
    }

    /// Takes a line without its line end; `false` for a line of another code than the selected.
    pub(super) fn take(
        &mut self,
        line: &[u8],
        code: C,
        selection: &Selection,
    ) -> Result<bool, Fault> {
        if line.is_empty() {
            return Err(LineFault::line(LineProblem::Blank));
        }
        self.cells.split(line).map_err(LineFault::line)?;
        if let Selection::Codes(codes) = selection
            && self.cells.count() > self.layout.position(code)
            && !codes.iter().any(|wanted| wanted.as_bytes() == self.cell(code))
        {
            return Ok(false);
        }
        if self.cells.count() != self.layout.width() {
            return Err(LineFault::line(LineProblem::CellCount {
                expected: self.layout.width(),
                found: self.cells.count(),
                text: shown(line, SHOWN_VALUE_CHARS),
            }));
        }
        self.refuse_nul(line)?;
        Ok(true)
    }

    /// The text of a column.
    pub(super) fn cell(&self, column: C) -> &[u8] {
        self.cells.get(self.layout.position(column))
    }

    /// A fault of a column of this line.
    pub(super) fn fault(&self, column: C, problem: CellProblem) -> Fault {
        LineFault::cell(column.name(), self.cell(column), problem)
    }

    /// The code of this line, where its cells were split and it has one.
    pub(super) fn code(&self, column: C) -> Option<VendorCode> {
        VendorCode::new(std::str::from_utf8(self.cell(column)).ok()?).ok()
    }

    /// The fault of a line that contradicts the lines before it.
    #[cold]
    pub(super) fn blame(&mut self, line: &[u8], column: C, problem: CellProblem) -> Fault {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.cells.split(line) {
            Ok(()) => self.fault(column, problem),
            Err(problem) => LineFault::line(problem),
        }
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

    /// Reads the date, which has to lie in the file's period.
    pub(super) fn take_date(&mut self, column: C) -> Result<(), Fault> {
        let cell = self.cell(column);
        if cell == self.date.bytes {
            return Ok(());
        }
        let known = parse_date(cell).ok_or_else(|| self.fault(column, CellProblem::Date))?;
        if !self.period.contains(known.date) {
            let problem = CellProblem::Period(self.period.to_string());
            return Err(self.fault(column, problem));
        }
        self.date = known;
        Ok(())
    }

    /// The index of the line's code in `sequences`.
    pub(super) fn take_code(
        &self,
        column: C,
        sequences: &mut SequenceCheck,
    ) -> Result<usize, Fault> {
        let found = match <[u8; 5]>::try_from(self.cell(column)) {
            Ok(bytes) => sequences.find_or_add(bytes),
            Err(_) => Err(CellProblem::Code),
        };
        found.map_err(|problem| self.fault(column, problem))
    }
}

/// A date that the calendar and our time have.
pub(super) fn parse_date(cell: &[u8]) -> Option<KnownDate> {
    let bytes = <[u8; 10]>::try_from(cell).ok()?;
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |part: &[u8]| values::whole(part).and_then(|value| u32::try_from(value).ok());
    let year = i32::try_from(number(&bytes[..4])?).ok()?;
    let date = JstDate::from_ymd_opt(year, number(&bytes[5..7])?, number(&bytes[8..])?)?;
    Some(KnownDate { bytes, date, midnight: TsNanos::from_jst(date, 0)?.nanos() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_checked_against_the_calendar() {
        let known = parse_date(b"2025-01-06").unwrap();
        assert_eq!(&known.bytes, b"2025-01-06");
        assert_eq!(known.date.to_string(), "2025-01-06");
        assert_eq!(known.midnight, 1_736_089_200_000_000_000);
        for refused in
            ["2025-02-30", "2025-1-6", "20250106", "2025/01/06", "+025-01-06", "1969-12-31", ""]
        {
            assert!(parse_date(refused.as_bytes()).is_none(), "{refused}");
        }
    }
}
