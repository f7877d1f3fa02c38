//! The rows of the combined database as a dense grid: one cell for every issue on every business
//! day, whatever rows the source lacks and in whatever order it has them.

use std::ops::Range;

use domain::JstDate;
use duckdb::Connection;
use duckdb::arrow::array::{Array, AsArray, RecordBatch};
use duckdb::arrow::datatypes::{Float64Type, Int32Type};

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

    /// Ranges of days that have about so many cells each.
    pub(super) fn blocks(&self, cells: usize) -> impl Iterator<Item = Range<usize>> {
        let length = (cells / self.codes.len().max(1)).max(1);
        let days = self.days.len();
        (0..days).step_by(length).map(move |start| start..(start + length).min(days))
    }
}

fn date(text: &str) -> Result<JstDate, PublishError> {
    text.parse().map_err(|_| PublishError::Source(format!("`{text}` is no date of the calendar")))
}

/// Some days of the grid, in memory.
pub(super) struct Block {
    codes: usize,
    /// For each day, for each column, one cell for each code.
    cells: Vec<f64>,
    /// For each day, whether a code has a row.
    taken: Vec<bool>,
}

impl Block {
    /// Reads these days from `mother.daily`; of two rows for one cell the second is refused.
    pub(super) fn read(
        connection: &Connection,
        codes: usize,
        days: Range<usize>,
    ) -> Result<Self, PublishError> {
        let cells = vec![cell(None); days.len() * COLUMNS * codes];
        let mut block = Self { codes, cells, taken: vec![false; days.len() * codes] };
        let mut statement = connection.prepare(&format!(
            "SELECT day_no - {first}, code_id, open, high, low, close, volume
               FROM mother.daily JOIN cal USING (date) JOIN issue USING (code)
               WHERE day_no >= {first} AND day_no < {end}",
            first = days.start,
            end = days.end
        ))?;
        let fits = batches(&mut statement)?
            .try_fold(true, |fits, rows| rows.map(|rows| fits & block.put(&rows)))?;
        drop(statement);
        if fits { Ok(block) } else { Err(twice(connection)) }
    }

    /// Puts the values of rows where they belong; false where another row is there.
    fn put(&mut self, rows: &RecordBatch) -> bool {
        let [days, codes] = [0, 1].map(|side| rows.column(side).as_primitive::<Int32Type>());
        let places = days.values().iter().zip(codes.values());
        let places: Vec<[usize; 2]> =
            places.map(|(day, code)| [*day, *code].map(|side| side as usize)).collect();
        for (index, values) in rows.columns().iter().skip(2).enumerate() {
            let values = values.as_primitive::<Float64Type>();
            for (row, [day, code]) in places.iter().enumerate() {
                let value = values.is_valid(row).then(|| values.value(row));
                self.cells[(day * COLUMNS + index) * self.codes + code] = cell(value);
            }
        }
        places
            .iter()
            .all(|[day, code]| !std::mem::replace(&mut self.taken[day * self.codes + code], true))
    }

    /// Of each day, for each column, the cells of all codes.
    pub(super) fn days(&self) -> impl Iterator<Item = [&[f64]; COLUMNS]> {
        self.cells
            .chunks_exact(COLUMNS * self.codes)
            .map(|cells| std::array::from_fn(|column| &cells[column * self.codes..][..self.codes]))
    }
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
    fn blocks_have_every_day_once() {
        let days: Vec<JstDate> =
            "2025-01-06".parse::<JstDate>().unwrap().iter_days().take(10).collect();
        let sides = Sides { days, codes: vec!["1301".into(), "1302".into()] };
        let blocks = |cells| sides.blocks(cells).collect::<Vec<_>>();
        assert_eq!(blocks(6), [0..3, 3..6, 6..9, 9..10]);
        assert_eq!(blocks(1_000), std::slice::from_ref(&(0..10)));
        assert_eq!(blocks(0).len(), 10);
    }
}
