//! The tables of a snapshot in DuckDB: `cal`, `issue` and the grid `g`, whose rows are dense and
//! in the order of days and codes, which is what a positional join needs.

use std::sync::Arc;

use duckdb::arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, Int16Builder, RecordBatch,
};

use crate::grid::{COLUMNS, stored_value};
use crate::limits::{SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX};
use crate::sql;

/// The dates that have rows: the business days of a source without a calendar.
pub(super) const DATES: &str = "SELECT date FROM mother.daily";
/// Those of a source with one: a day on which the exchange was open counts in lags though no row of it
/// is there, and one with rows counts whatever the calendar says.
pub(super) const DATES_AND_CALENDAR: &str = "SELECT date FROM mother.daily
    UNION SELECT date FROM mother.calendar WHERE is_open
      AND date > (SELECT min(date) FROM mother.daily)
      AND date < (SELECT max(date) FROM mother.daily)";

/// The calendar of these dates and the issues, numbered in ascending order. What tells the rows of a
/// day from others stands beside it: how many they are, and a digest; see [`sql::digest_of_rows`].
pub(super) fn sides(dates: &str) -> String {
    format!(
        "
    CREATE TABLE cal AS SELECT (row_number() OVER (ORDER BY date) - 1)::INTEGER day_no, date,
        coalesce(rows, 0)::UBIGINT AS rows, coalesce(digest, 0)::UBIGINT AS digest
      FROM (SELECT DISTINCT date FROM ({dates}))
      LEFT JOIN (SELECT date, count(*) AS rows,
          {} AS digest
        FROM mother.daily GROUP BY date) USING (date) ORDER BY 1;
    CREATE TABLE issue AS SELECT (row_number() OVER (ORDER BY code) - 1)::INTEGER code_id, code
      FROM (SELECT DISTINCT code FROM mother.daily) ORDER BY 1;",
        sql::digest_of_rows("code, open, high, low, close, volume")
    )
}

/// The same tables in the snapshot, made of those in memory; what else a snapshot that is gone on from
/// has of its own is taken out.
pub(super) const SIDES_STORED: &str = "
    CREATE OR REPLACE TABLE snapshot.cal AS FROM memory.cal ORDER BY day_no;
    CREATE OR REPLACE TABLE snapshot.issue AS FROM memory.issue ORDER BY code_id;
    DROP TABLE IF EXISTS snapshot.made; DROP TABLE IF EXISTS snapshot.split;
    DROP TABLE IF EXISTS snapshot.unknown_days; DROP TABLE IF EXISTS snapshot.gap;";

/// The grid. Prices of 0 are null; a volume of 0 is kept, because an answer shows it. A row takes
/// part in rankings where it has a close.
pub(super) const GRID: &str = "
    CREATE TABLE IF NOT EXISTS snapshot.g (day_no SMALLINT, code_id SMALLINT, present BOOLEAN, o DOUBLE, h DOUBLE,
      l DOUBLE, c DOUBLE, volume DOUBLE);";

/// Rows that are inserted at a time: two of the engine's row groups.
const BATCH_ROWS: usize = 245_760;

/// Days of the grid as columns of its table.
pub(super) struct GridRows {
    code_ids: Vec<i16>,
    days: Int16Builder,
    codes: Int16Builder,
    present: BooleanBuilder,
    prices: [Float64Builder; 4],
    volumes: Float64Builder,
}

impl GridRows {
    /// Rows of so many codes.
    pub(super) fn new(codes: usize) -> Self {
        Self {
            code_ids: (0..codes).map(small).collect(),
            days: Int16Builder::new(),
            codes: Int16Builder::new(),
            present: BooleanBuilder::new(),
            prices: Default::default(),
            volumes: Float64Builder::new(),
        }
    }

    /// Takes a day: for each column, the cells of all codes. Gives the rows that there are, once
    /// they are many.
    pub(super) fn day(
        &mut self,
        day: usize,
        [open, high, low, close, volume]: [&[f64]; COLUMNS],
    ) -> duckdb::Result<Option<RecordBatch>> {
        self.days.append_value_n(small(day), self.code_ids.len());
        self.codes.append_slice(&self.code_ids);
        self.present.extend(close.iter().map(|cell| Some(!cell.is_nan())));
        for (column, cells) in self.prices.iter_mut().zip([open, high, low, close]) {
            column.extend(cells.iter().map(|cell| (!cell.is_nan()).then_some(*cell)));
        }
        self.volumes.extend(volume.iter().map(|cell| stored_value(*cell)));
        if self.days.len() < BATCH_ROWS { Ok(None) } else { self.rest().map(Some) }
    }

    /// The rows that there are.
    pub(super) fn rest(&mut self) -> duckdb::Result<RecordBatch> {
        let [open, high, low, close] = &mut self.prices;
        let values: [(&str, ArrayRef); 8] = [
            ("day_no", Arc::new(self.days.finish())),
            ("code_id", Arc::new(self.codes.finish())),
            ("present", Arc::new(self.present.finish())),
            ("o", Arc::new(open.finish())),
            ("h", Arc::new(high.finish())),
            ("l", Arc::new(low.finish())),
            ("c", Arc::new(close.finish())),
            ("volume", Arc::new(self.volumes.finish())),
        ];
        sql::rows(values)
    }
}

const _: () = assert!(SNAPSHOT_DAYS_MAX <= 32_767 && SNAPSHOT_CODES_MAX <= 32_767);

/// A number of a day or a code as the table has it.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "asserted above")]
const fn small(number: usize) -> i16 {
    number as i16
}

#[cfg(test)]
mod tests {
    use duckdb::arrow::array::{Array, AsArray};
    use duckdb::arrow::datatypes::{Float64Type, Int16Type};

    use super::*;
    use crate::grid::cell;

    #[test]
    fn rows_come_in_batches_of_whole_days() {
        let codes = SNAPSHOT_CODES_MAX;
        let mut rows = GridRows::new(codes);
        let closes: Vec<f64> = (0..codes).map(|code| cell((code != 7).then_some(1.5))).collect();
        let volumes = vec![cell(Some(0.0)); codes];
        let day = [&closes[..], &closes, &closes, &closes, &volumes];
        let full = BATCH_ROWS.div_ceil(codes);
        for number in 0..full - 1 {
            assert!(rows.day(number, day).unwrap().is_none());
        }
        let batch = rows.day(full - 1, day).unwrap().unwrap();
        assert_eq!(batch.num_rows(), full * codes);
        let last = batch.num_rows() - codes;
        assert_eq!(batch.column(0).as_primitive::<Int16Type>().value(last), small(full - 1));
        assert_eq!(batch.column(1).as_primitive::<Int16Type>().value(last + 9), 9);
        assert!(!batch.column(2).as_boolean().value(last + 7) && batch.column(6).is_null(last + 7));
        // A volume of 0 stays.
        assert_eq!(batch.column(7).as_primitive::<Float64Type>().value(last), 0.0);
        assert!(rows.day(full, day).unwrap().is_none());
        assert_eq!(rows.rest().unwrap().num_rows(), codes);
        assert_eq!(rows.rest().unwrap().num_rows(), 0);
    }
}
