//! A table of a run's folder as the page gets it: the first rows as columns, and how many there are.

use std::io::{self, Write};
use std::path::Path;

use super::columns::{Amounts, Exact, JsonArray, Words};
use super::{ROWS_MAX, TEXT_BYTES_MAX, written};
use crate::output::read::{CellValue, Row, TableReader};
use crate::output::{Column, Kind, ReadError, Table};

/// A table as columns of equal length; `total` counts the rows that the run has, of which the page
/// may hold fewer.
pub(super) struct PageTable {
    table: &'static Table,
    total: u64,
    rows: usize,
    text_bytes: usize,
    columns: Vec<PageColumn>,
}

/// A column by its kind.
enum PageColumn {
    /// Microseconds since 1970, each as the difference from the one before; or null.
    Timestamps { last: i64, values: JsonArray },
    /// Whole numbers.
    Wholes(JsonArray),
    /// Exact amounts.
    Amounts(Vec<Option<i64>>),
    /// Texts that differ from row to row.
    Texts(JsonArray),
    /// Texts that repeat.
    Words(Words),
}

impl PageTable {
    /// Reads a table.
    pub(super) fn read(folder: &Path, table: &'static Table) -> Result<Self, ReadError> {
        let columns = table.columns.iter().map(PageColumn::new).collect();
        let mut page = Self { table, total: 0, rows: 0, text_bytes: 0, columns };
        let mut reader = TableReader::open(folder, table)?;
        while let Some(row) = reader.next_row()? {
            page.total += 1;
            page.add(&row)?;
        }
        Ok(page)
    }

    /// Adds a row while there is room: the first rows, and none after one that did not fit.
    fn add(&mut self, row: &Row<'_>) -> Result<(), ReadError> {
        if self.rows == ROWS_MAX || self.text_bytes > TEXT_BYTES_MAX {
            return Ok(());
        }
        let cells = row.cells()?;
        let text_of = |cell: &CellValue<'_>| match cell {
            CellValue::Text(text) => text.len(),
            _ => 0,
        };
        self.text_bytes += cells.iter().map(text_of).sum::<usize>();
        if self.text_bytes > TEXT_BYTES_MAX {
            return Ok(());
        }
        self.rows += 1;
        for (cell, page) in cells.into_iter().zip(&mut self.columns) {
            page.push(cell).map_err(|source| row.unreadable(source))?;
        }
        Ok(())
    }

    /// Writes it as a JSON object.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{{\"total\":{},\"count\":{}", self.total, self.rows)?;
        for (column, page) in self.table.columns.iter().zip(&self.columns) {
            write!(out, ",\"{}\":", column.name)?;
            match page {
                PageColumn::Timestamps { values, .. } => values.write(out)?,
                PageColumn::Wholes(values) | PageColumn::Texts(values) => values.write(out)?,
                PageColumn::Amounts(units) => written(out, &Amounts::new(units))?,
                PageColumn::Words(words) => written(out, words)?,
            }
        }
        out.write_all(b"}")
    }
}

impl PageColumn {
    fn new(column: &Column) -> Self {
        match column.kind {
            Kind::Timestamp => Self::Timestamps { last: 0, values: JsonArray::default() },
            Kind::Whole => Self::Wholes(JsonArray::default()),
            Kind::Yen => Self::Amounts(Vec::new()),
            Kind::Date => Self::Texts(JsonArray::default()),
            // Ids differ from row to row; all other texts come from short lists, or are few.
            Kind::Text if column.name.ends_with("_id") && column.name != "instrument_id" => {
                Self::Texts(JsonArray::default())
            }
            Kind::Text => Self::Words(Words::default()),
        }
    }

    fn push(&mut self, cell: CellValue<'_>) -> io::Result<()> {
        match self {
            Self::Timestamps { last, values } => values.push(&cell.whole().map(|nanos| {
                // Nanoseconds of 64 bits without their last three digits fit.
                let micros = (nanos / 1_000) as i64;
                micros - std::mem::replace(last, micros)
            })),
            Self::Wholes(values) => values.push(&cell.whole().map(Exact)),
            Self::Amounts(units) => {
                units.push(cell.integer());
                Ok(())
            }
            Self::Texts(values) => values.push(&cell.text()),
            Self::Words(words) => {
                words.push(cell.text());
                Ok(())
            }
        }
    }
}
