//! The rows of the combined database as a dense grid: one cell for every issue on every business
//! day, whatever rows the source lacks and in whatever order it has them.

use std::borrow::Borrow;
use std::ops::Range;

use domain::JstDate;
use duckdb::Connection;
use duckdb::arrow::array::{Array, AsArray, RecordBatch};
use duckdb::arrow::datatypes::{Date32Type, Float64Type};

use super::error::PublishError;
use crate::grid::{COLUMNS, cell};
use crate::sql::{batches, column};

/// The two sides of a grid, both ascending: the distinct dates and codes of the source.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) days: Vec<JstDate>,
    pub(super) codes: Vec<Box<str>>,
}

impl Sides {
    /// Reads them from the tables `cal` and `issue`.
    pub(super) fn read(connection: &Connection) -> Result<Self, PublishError> {
        let days: Vec<String> =
            column(connection, "SELECT date::VARCHAR FROM cal ORDER BY day_no")?;
        let codes: Vec<String> = column(connection, "SELECT code FROM issue ORDER BY code_id")?;
        Ok(Self {
            days: days.iter().map(|day| date(day)).collect::<Result<_, _>>()?,
            codes: codes.into_iter().map(String::into_boxed_str).collect(),
        })
    }

    /// Ranges of days from one on, that have about so many cells each.
    pub(super) fn blocks(&self, from: usize, cells: usize) -> impl Iterator<Item = Range<usize>> {
        let length = (cells / self.codes.len().max(1)).max(1);
        let days = self.days.len();
        (from..days).step_by(length).map(move |start| start..(start + length).min(days))
    }
}

fn date(text: &str) -> Result<JstDate, PublishError> {
    text.parse().map_err(|_| PublishError::Source(format!("`{text}` is no date of the calendar")))
}

/// Some days of the grid, in memory.
pub(super) struct Block {
    days: Range<usize>,
    codes: usize,
    /// For each day, for each column, one cell for each code.
    cells: Vec<f64>,
}

impl Block {
    /// Reads these days from `mother.daily`; of two rows for one cell the second is refused.
    pub(super) fn read(
        connection: &Connection,
        sides: &Sides,
        days: Range<usize>,
    ) -> Result<Self, PublishError> {
        let codes = sides.codes.len();
        let cells = vec![cell(None); days.len() * COLUMNS * codes];
        let mut block = Self { cells, codes, days: days.clone() };
        let part = sides.days.get(days).unwrap_or_default();
        let is_whole = part.len() == sides.days.len();
        let span = match (part.first(), part.last()) {
            (Some(first), Some(last)) if !is_whole => {
                format!("WHERE date BETWEEN DATE '{first}' AND DATE '{last}'")
            }
            _ => String::new(),
        };
        let rows =
            format!("SELECT date, code, open, high, low, close, volume FROM mother.daily {span}");
        let mut positions = Positions::new(part, &sides.codes);
        let mut of_batch = Vec::new();
        let mut statement = connection.prepare(&rows)?;
        let misplaced = 'rows: {
            for batch in batches(&mut statement)? {
                let batch = batch?;
                match positions.of(&batch, &mut of_batch) {
                    Ok(()) => block.put(&batch, &of_batch),
                    Err(misplaced) => break 'rows misplaced,
                }
            }
            return Ok(block);
        };
        drop(statement);
        Err(match misplaced {
            // The source is opened read-only, so what the first reading has found is here.
            Misplaced::Moved => PublishError::Source("it changed while it was read".to_owned()),
            Misplaced::Twice => twice(connection),
        })
    }

    /// Puts the values of a batch where they belong; `positions` are those of the first column.
    fn put(&mut self, batch: &RecordBatch, positions: &[usize]) {
        for (index, values) in batch.columns().iter().skip(2).enumerate() {
            let values = values.as_primitive::<Float64Type>();
            for (row, place) in positions.iter().enumerate() {
                let value = values.is_valid(row).then(|| values.value(row));
                self.cells[place + index * self.codes] = cell(value);
            }
        }
    }

    /// The days with their numbers; for each column, the cells of all codes.
    pub(super) fn days(&self) -> impl Iterator<Item = (usize, [&[f64]; COLUMNS])> {
        self.days.clone().zip(self.cells.chunks_exact(COLUMNS * self.codes)).map(|(day, cells)| {
            (day, std::array::from_fn(|column| &cells[column * self.codes..][..self.codes]))
        })
    }
}

/// Where rows belong in a block.
struct Positions<'a> {
    dates: Vec<i32>,
    day: usize,
    codes: &'a [Box<str>],
    code: usize,
    taken: Vec<bool>,
}

/// Why a row has no place.
enum Misplaced {
    /// The calendar or the list of codes does not have it.
    Moved,
    /// Another row has it.
    Twice,
}

impl<'a> Positions<'a> {
    fn new(days: &[JstDate], codes: &'a [Box<str>]) -> Self {
        let dates = days.iter().map(|day| day.to_epoch_days()).collect();
        Self { dates, day: 0, codes, code: 0, taken: vec![false; days.len() * codes.len()] }
    }

    /// Writes the positions of the first column of a batch's rows.
    fn of(&mut self, batch: &RecordBatch, positions: &mut Vec<usize>) -> Result<(), Misplaced> {
        let dates = batch.column(0).as_primitive::<Date32Type>();
        let codes = batch.column(1).as_string::<i32>();
        positions.clear();
        for row in 0..batch.num_rows() {
            self.day = near(&self.dates, self.day, &dates.value(row)).ok_or(Misplaced::Moved)?;
            self.code = near(self.codes, self.code, codes.value(row)).ok_or(Misplaced::Moved)?;
            let taken = self.taken.get_mut(self.day * self.codes.len() + self.code);
            if taken.is_none_or(|taken| std::mem::replace(taken, true)) {
                return Err(Misplaced::Twice);
            }
            positions.push(self.day * COLUMNS * self.codes.len() + self.code);
        }
        Ok(())
    }
}

/// Finds a value in a sorted list. In a source that is sorted too, by date or by code, nearly every
/// value is the one at `last` or the next.
fn near<T: Borrow<V>, V: Ord + ?Sized>(sorted: &[T], last: usize, value: &V) -> Option<usize> {
    let is_at = |place: &usize| sorted.get(*place).is_some_and(|one| one.borrow() == value);
    let search = || sorted.binary_search_by(|one| one.borrow().cmp(value)).ok();
    [last, last + 1].into_iter().find(is_at).or_else(search)
}

/// The error for two rows of one issue on one day, with the first example.
fn twice(connection: &Connection) -> PublishError {
    let first = "SELECT date::VARCHAR, code, count(*) FROM mother.daily GROUP BY date, code
                 HAVING count(*) > 1 ORDER BY 1, 2 LIMIT 1";
    let found = connection.query_row(first, [], |row| {
        let (date, code, count): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let code = crate::excerpt(&code);
        Ok(format!("code {code} has {count} rows on {date} instead of one"))
    });
    found.map_or_else(PublishError::Database, PublishError::Source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_any_order() {
        let sorted = [2, 3, 5, 8, 13];
        for value in 0..15 {
            let right = sorted.iter().position(|one| *one == value);
            for last in 0..6 {
                assert_eq!(near(&sorted, last, &value), right, "{value} from {last}");
            }
        }
    }

    #[test]
    fn blocks_have_every_day_once() {
        let days: Vec<JstDate> =
            "2025-01-06".parse::<JstDate>().unwrap().iter_days().take(10).collect();
        let sides = Sides { days, codes: vec!["1301".into(), "1302".into()] };
        let blocks = |cells| sides.blocks(0, cells).collect::<Vec<_>>();
        assert_eq!(blocks(6), [0..3, 3..6, 6..9, 9..10]);
        assert_eq!(blocks(1_000), std::slice::from_ref(&(0..10)));
        assert_eq!(blocks(0).len(), 10);
        assert_eq!(sides.blocks(5, 6).collect::<Vec<_>>(), [5..8, 8..10]);
        assert_eq!(sides.blocks(10, 6).count(), 0);
    }
}
