//! A table of a run's folder as the page gets it: the first rows as columns, and how many there are.

use std::io::{self, Write};
use std::path::Path;

use super::columns::{Amounts, Exact, JsonArray, Words};
use super::{ROWS_MAX, TEXT_BYTES_MAX, written};
use crate::output::cells::CellValue;
use crate::output::read::TableReader;
use crate::output::tables::{Fills, Log, Narrative, Orders, RoundTrips, Signals};
use crate::output::{Column, Kind, ReadError, Table};

/// The tables of the page.
const PAGE_TABLES: [&Table; 6] = [
    &Orders::TABLE,
    &Fills::TABLE,
    &RoundTrips::TABLE,
    &Signals::TABLE,
    &Narrative::TABLE,
    &Log::TABLE,
];

/// A table as columns of equal length; `total` counts the rows that the run has, of which the page
/// may hold fewer.
pub(crate) struct PageTable {
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
    /// The table without rows, if the page has it.
    pub(crate) fn of(table: &'static Table) -> Option<Self> {
        let is_shown = PAGE_TABLES.iter().any(|shown| shown.name == table.name);
        let columns = || table.columns.iter().map(PageColumn::new).collect();
        is_shown.then(|| Self { table, total: 0, rows: 0, text_bytes: 0, columns: columns() })
    }

    /// Reads all tables of the page from a run's folder.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>, ReadError> {
        let mut pages: Vec<Self> = PAGE_TABLES.into_iter().filter_map(Self::of).collect();
        for page in &mut pages {
            let mut reader = TableReader::open(folder, page.table)?;
            while let Some(row) = reader.next_row()? {
                page.push(&row.cells()?).map_err(|source| row.unreadable(source))?;
            }
        }
        Ok(pages)
    }

    /// Adds a row while there is room: the first rows, and none after one that did not fit.
    pub(crate) fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        self.total += 1;
        if self.rows == ROWS_MAX || self.text_bytes > TEXT_BYTES_MAX {
            return Ok(());
        }
        self.text_bytes += cells.iter().filter_map(|cell| cell.text()).map(str::len).sum::<usize>();
        if self.text_bytes > TEXT_BYTES_MAX {
            return Ok(());
        }
        self.rows += 1;
        cells.iter().zip(&mut self.columns).try_for_each(|(cell, page)| page.push(*cell))
    }

    /// Writes it as a member of a JSON object, with its name.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { table, total, rows, .. } = self;
        write!(out, "\"{}\":{{\"total\":{total},\"count\":{rows}", table.name)?;
        for (column, page) in table.columns.iter().zip(&self.columns) {
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
