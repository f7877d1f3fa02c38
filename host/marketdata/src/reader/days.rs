//! The days of which a file has rows, of whatever code, by its dates alone.

use std::collections::BTreeSet;
use std::path::Path;

use domain::JstDate;
use memchr::memchr;

use crate::catalog::Period;
use crate::error::DataError;

use super::cells::Cells;
use super::fault::Fault;
use super::header::ColumnSet;
use super::line::parse_date;
use super::text::{self, Lines};
use super::{ProgressFn, ReadOptions};

/// The column in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date;

impl ColumnSet for Date {
    fn name(self) -> &'static str {
        "Date"
    }

    fn index(self) -> usize {
        0
    }
}

/// Reads a file once; gives the days of its period that rows name, and the hash of its bytes. Rows without such a
/// date belong to no day: whoever reads them tells what is wrong.
pub(crate) fn read_days(
    path: &Path,
    period: Period,
    progress: &mut ProgressFn<'_>,
) -> Result<(BTreeSet<JstDate>, u128), DataError> {
    let mut days = BTreeSet::new();
    let summary = text::scan(path, &[Date], &ReadOptions::default(), progress, |layout| {
        let position = layout.position(Date);
        let (last, cells) = (Vec::new(), Cells::default());
        DayReader { position, period, days: &mut days, last, cells, line: 1 }
    })?;
    Ok((days, summary.content_hash))
}

/// Collects days; lives as long as one file is read.
struct DayReader<'a> {
    position: usize,
    period: Period,
    days: &'a mut BTreeSet<JstDate>,
    /// The cell read last, because a file names each date many thousand times in a row.
    last: Vec<u8>,
    cells: Cells,
    line: u64,
}

impl Lines for DayReader<'_> {
    fn line(&self) -> u64 {
        self.line
    }

    fn delivered(&self) -> u64 {
        0
    }

    fn code_count(&self) -> usize {
        0
    }

    fn next_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.line += 1;
        let is_plain = self.position == 0 && !line.starts_with(b"\"");
        let cell = match memchr(b',', line).filter(|_| is_plain) {
            Some(end) => &line[..end],
            None => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if self.cells.split(line).is_err() {
                    return Ok(());
                }
                self.cells.get(self.position)
            }
        };
        if cell == self.last {
            return Ok(());
        }
        self.last.clear();
        self.last.extend_from_slice(cell);
        let date = parse_date(cell).map(|known| known.date);
        self.days.extend(date.filter(|date| self.period.contains(*date)));
        Ok(())
    }
}
