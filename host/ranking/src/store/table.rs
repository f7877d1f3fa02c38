//! The tables of a snapshot in DuckDB: `cal`, `issue` and the grid `g`, whose rows are dense and
//! in the order of days and codes, which is what a positional join needs.

use std::sync::Arc;

use duckdb::arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int16Array, RecordBatch};
use duckdb::{Appender, Connection};

use crate::formula::Column;
use crate::grid::{COLUMNS, stored_value};
use crate::limits::{SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX};

/// The calendar and the issues, numbered in ascending order.
pub(super) const SIDES: &str = "
    CREATE TABLE cal AS SELECT (row_number() OVER (ORDER BY date) - 1)::INTEGER day_no, date
      FROM (SELECT DISTINCT date FROM mother.daily) ORDER BY 1;
    CREATE TABLE issue AS SELECT (row_number() OVER (ORDER BY code) - 1)::INTEGER code_id, code
      FROM (SELECT DISTINCT code FROM mother.daily) ORDER BY 1;";

/// The grid. Prices of 0 are null; a volume of 0 is kept, because an answer shows it. A row takes
/// part in rankings where it has a close.
pub(super) const GRID: &str = "
    CREATE TABLE g (day_no SMALLINT, code_id SMALLINT, present BOOLEAN, o DOUBLE, h DOUBLE,
      l DOUBLE, c DOUBLE, volume DOUBLE);";

/// Appends days to the grid's table.
pub(super) struct GridTable<'a> {
    appender: Appender<'a>,
    codes: ArrayRef,
}

impl<'a> GridTable<'a> {
    /// Starts appending days of so many codes.
    pub(super) fn new(connection: &'a Connection, codes: usize) -> duckdb::Result<Self> {
        let appender = connection.appender_to_catalog_and_db("g", "snapshot", "main")?;
        let codes = Int16Array::from_iter_values((0..codes).map(small));
        Ok(Self { appender, codes: Arc::new(codes) })
    }

    /// Appends a day: for each column, the cells of all codes.
    pub(super) fn day(&mut self, day: usize, columns: [&[f64]; COLUMNS]) -> duckdb::Result<()> {
        let closes = columns[Column::Close.index()];
        let price = |column: Column| -> ArrayRef {
            let cells = columns[column.index()].iter();
            Arc::new(cells.map(|cell| (!cell.is_nan()).then_some(*cell)).collect::<Float64Array>())
        };
        let present = closes.iter().map(|close| Some(!close.is_nan()));
        let volumes = columns[Column::Volume.index()].iter().map(|cell| stored_value(*cell));
        let values: [(&str, ArrayRef); 8] = [
            ("day_no", Arc::new(Int16Array::from_value(small(day), self.codes.len()))),
            ("code_id", Arc::clone(&self.codes)),
            ("present", Arc::new(present.collect::<BooleanArray>())),
            ("o", price(Column::Open)),
            ("h", price(Column::High)),
            ("l", price(Column::Low)),
            ("c", price(Column::Close)),
            ("volume", Arc::new(volumes.collect::<Float64Array>())),
        ];
        let batch = RecordBatch::try_from_iter(values)
            .map_err(|error| duckdb::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.appender.append_record_batch(batch)
    }

    /// Brings what was appended into the table.
    pub(super) fn finish(mut self) -> duckdb::Result<()> {
        self.appender.flush()
    }
}

const _: () = assert!(SNAPSHOT_DAYS_MAX <= 32_767 && SNAPSHOT_CODES_MAX <= 32_767);

/// A number of a day or a code as the table has it.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "asserted above")]
const fn small(number: usize) -> i16 {
    number as i16
}
