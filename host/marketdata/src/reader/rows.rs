//! From lines to checked rows: picks the codes asked for, parses, applies every rule, delivers.

use domain::VendorCode;
use memchr::memchr;

use crate::catalog::Period;
use crate::error::{CellProblem, LineProblem};
use crate::limits::LINE_BYTES_MAX;

use super::fast::{self, Values};
use super::fault::{Fault, LineFault};
use super::header::{Column, Layout};
use super::line::Line;
use super::sequence_check::{SequenceCheck, SequenceError};
use super::text::Lines;
use super::values::{self, Session};
use super::{Selection, TradeRow, TradeSink};

/// Is told about a fault, its line and, where it is known, its code.
pub(super) type FaultFn<'a> = dyn FnMut(Fault, u64, Option<VendorCode>) + 'a;

/// Turns lines into rows; lives as long as one file is read.
pub(super) struct RowReader<'a, S> {
    parts: Line<Column>,
    selection: &'a Selection,
    picks_codes: bool,
    /// The code seen last and its index; no code is all zeros.
    current: ([u8; 5], usize),
    sequences: SequenceCheck,
    sink: &'a mut S,
    /// Who is told about bad rows; without one the first ends the reading.
    bad_row: Option<&'a mut FaultFn<'a>>,
    line: u64,
    delivered: u64,
}

impl<'a, S: TradeSink> RowReader<'a, S> {
    pub(super) fn new(
        layout: Layout<Column>,
        period: Period,
        selection: &'a Selection,
        sink: &'a mut S,
        bad_row: Option<&'a mut FaultFn<'a>>,
    ) -> Self {
        let codes = selection.codes();
        Self {
            parts: Line::new(layout, period),
            selection,
            picks_codes: matches!(selection, Selection::Codes(_)),
            current: ([0; 5], 0),
            sequences: SequenceCheck::new(codes),
            sink,
            bad_row,
            line: 1,
            delivered: 0,
        }
    }

    /// The index of a code that is selected or, when all are read, was seen before.
    #[inline]
    fn index_of(&mut self, code: [u8; 5]) -> Option<usize> {
        if code == self.current.0 {
            return Some(self.current.1);
        }
        let index = if self.picks_codes {
            let wanted = self.selection.codes();
            wanted.iter().position(|wanted| *wanted.as_bytes() == code)
        } else {
            self.sequences.find(code)
        };
        if let Some(index) = index {
            self.current = (code, index);
        }
        index
    }

    #[inline(always)]
    fn deliver(&mut self, index: usize, values: &Values, text: &[u8]) -> Result<(), SequenceError> {
        let midnight = self.parts.date.midnight;
        // A midnight is at most 584 years after 1970, and the wrap would be later than any file.
        let timestamp = midnight.wrapping_add(values.nanos_of_day);
        self.sequences.accept(index, midnight, timestamp, values.transaction_id)?;
        self.delivered += 1;
        let row = TradeRow {
            code_index: index,
            code: self.sequences.code(index),
            ts_event: timestamp,
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
        if !self.parts.take(line, Column::Code, self.selection)? {
            return Ok(());
        }
        self.parts.take_date(Column::Date)?;
        let index = self.parts.take_code(Column::Code, &mut self.sequences)?;
        let values = self.take_values()?;
        match self.deliver(index, &values, text) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.blame(line, error)),
        }
    }

    fn take_values(&self) -> Result<Values, Fault> {
        let fault = |column, problem| move || self.parts.fault(column, problem);
        let nanos_of_day = values::time_of_day(self.parts.cell(Column::Time))
            .ok_or_else(fault(Column::Time, CellProblem::Time))?;
        let session = Session::parse(self.parts.cell(Column::Session))
            .ok_or_else(fault(Column::Session, CellProblem::Session))?;
        if !session.contains(nanos_of_day) {
            return Err(self.parts.fault(Column::Time, session.hours_problem()));
        }
        Ok(Values {
            nanos_of_day,
            price: values::price(self.parts.cell(Column::Price))
                .ok_or_else(fault(Column::Price, CellProblem::Price))?,
            quantity: values::quantity(self.parts.cell(Column::Quantity))
                .ok_or_else(fault(Column::Quantity, CellProblem::Quantity))?,
            transaction_id: values::whole(self.parts.cell(Column::TransactionId))
                .ok_or_else(fault(Column::TransactionId, CellProblem::TransactionId))?,
        })
    }

    /// Ends the reading with a fault, unless somebody wants to be told and go on.
    #[cold]
    fn report(&mut self, fault: Fault) -> Result<(), Fault> {
        let line = self.line;
        // The cells are those of this line only when a cell is at fault.
        let code = fault.is_of_a_cell().then(|| self.parts.code(Column::Code)).flatten();
        match self.bad_row.as_deref_mut() {
            Some(tell) => {
                tell(fault, line, code);
                Ok(())
            }
            None => Err(fault),
        }
    }

    #[cold]
    fn blame(&mut self, line: &[u8], error: SequenceError) -> Fault {
        self.parts.blame(line, error.column, error.problem)
    }
}

impl<S: TradeSink> Lines for RowReader<'_, S> {
    fn line(&self) -> u64 {
        self.line
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn code_count(&self) -> usize {
        self.sequences.code_count()
    }

    fn lines(&mut self, block: &[u8]) -> Result<(), Fault> {
        let standard = self.parts.layout.is_standard();
        let mut rest = block;
        while !rest.is_empty() {
            self.line += 1;
            let head = if standard { fast::date_and_code(rest) } else { None };
            let known = head.and_then(|(date, code)| Some((date, self.index_of(code)?)));
            if let Some((date, index)) = known
                && date == self.parts.date.bytes
                && let Some((values, length)) = fast::values(rest)
            {
                let (line, after) = rest.split_at(length);
                let text = &line[..length - 1];
                rest = after;
                if let Err(error) = self.deliver(index, &values, text) {
                    let fault = self.blame(text, error);
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

    fn next_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.line += 1;
        self.general_row(line).or_else(|fault| self.report(fault))
    }
}

impl Selection {
    pub(super) fn codes(&self) -> &[VendorCode] {
        match self {
            Self::All => &[],
            Self::Codes(codes) => codes,
        }
    }
}
