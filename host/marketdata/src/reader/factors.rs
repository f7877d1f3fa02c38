//! The adjustment factors of daily bar files (`AdjFactor`): one row for each code and business day, with
//! a trade or without. Rows that change nothing are handed on too: they tell that there was no split.

use domain::adjustment::Adjustment;
use domain::session;

use crate::catalog::BarFile;
use crate::error::{CellProblem, DataError, LineProblem};
use crate::limits::LINE_BYTES_MAX;

use super::fault::{Fault, LineFault};
use super::header::{ColumnSet, Layout};
use super::line::Line;
use super::sequence_check::SequenceCheck;
use super::text::{self, Lines};
use super::{ProgressFn, ReadOptions, ReadSummary, Selection, refuse_too_many};

/// A day of which it is known how many shares of a code become how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactorRow {
    /// Position of the code in the selection.
    pub code_index: usize,
    /// The close of the day, in nanoseconds since 1970 in UTC.
    pub ts_event: u64,
    /// How many shares become how many.
    pub adjustment: Adjustment,
}

/// The columns in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Date,
    Code,
    Factor,
}

use Column::{Code, Date, Factor};

const COLUMNS: [Column; 3] = [Date, Code, Factor];

impl ColumnSet for Column {
    fn name(self) -> &'static str {
        match self {
            Date => "Date",
            Code => "Code",
            Factor => "AdjFactor",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// Reads a daily bar file once and hands the factors of the selected codes to `sink`.
///
/// # Errors
/// [`DataError`] for the first fault of the columns in use, or when `progress` asks to stop.
pub fn read_factors(
    file: &BarFile,
    selection: &Selection,
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    sink: &mut dyn FnMut(&FactorRow),
) -> Result<ReadSummary, DataError> {
    refuse_too_many(selection)?;
    text::scan(&file.path, &COLUMNS, options, progress, |layout| {
        FactorReader::new(layout, file, selection, sink)
    })
}

/// Turns lines into factors; lives as long as one file is read.
struct FactorReader<'a> {
    parts: Line<Column>,
    selection: &'a Selection,
    sequences: SequenceCheck,
    sink: &'a mut dyn FnMut(&FactorRow),
    line: u64,
    delivered: u64,
}

impl<'a> FactorReader<'a> {
    fn new(
        layout: Layout<Column>,
        file: &BarFile,
        selection: &'a Selection,
        sink: &'a mut dyn FnMut(&FactorRow),
    ) -> Self {
        Self {
            parts: Line::new(layout, file.period),
            selection,
            sequences: SequenceCheck::new(selection.codes()),
            sink,
            line: 1,
            delivered: 0,
        }
    }

    fn row(&mut self, text: &[u8]) -> Result<(), Fault> {
        if text.len() > LINE_BYTES_MAX {
            return Err(LineFault::line(LineProblem::TooLong));
        }
        let line = text.strip_suffix(b"\r").unwrap_or(text);
        if !self.parts.take(line, Code, self.selection)? {
            return Ok(());
        }
        self.parts.take_date(Date)?;
        let code_index = self.parts.take_code(Code, &mut self.sequences)?;
        let cell = self.parts.cell(Factor);
        // A day without a trade may have none.
        if cell.is_empty() {
            return Ok(());
        }
        let adjustment = std::str::from_utf8(cell).ok().and_then(Adjustment::of_price_factor);
        let Some(adjustment) = adjustment else {
            return Err(self.parts.fault(Factor, CellProblem::Factor));
        };
        let date = self.parts.date;
        let ts_event = date.midnight.wrapping_add(session::close_of(date.date));
        self.delivered += 1;
        (self.sink)(&FactorRow { code_index, ts_event, adjustment });
        Ok(())
    }
}

impl Lines for FactorReader<'_> {
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
        self.row(line)
    }
}
