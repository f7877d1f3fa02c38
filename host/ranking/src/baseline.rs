//! Baselines for benches: what the engine is measured against. Nothing else uses them.

use std::path::Path;

use duckdb::{Config, Connection};

use crate::error::RankError;
use crate::formula::{Column, Formula, Node, column_alias, value_sql};
use crate::grid::Grid;
use crate::query::RankOrder;
use crate::store::DataDir;
use crate::store::sql::quoted_path;

/// The text-book query over the combined database: `LAG` for each code and `row_number` for each
/// date, with text keys. It counts rows instead of business days, so with gaps in the data it is
/// wrong on many days; it is here for its speed only.
#[derive(Debug)]
pub struct NaiveSql {
    connection: Connection,
}

impl NaiveSql {
    /// Opens the combined database of a data directory read-only.
    ///
    /// # Errors
    ///
    /// Returns what DuckDB says.
    pub fn open(data_dir: &Path, threads: usize) -> duckdb::Result<Self> {
        let config = Config::default().threads(i64::try_from(threads).unwrap_or(1))?;
        let connection = Connection::open_in_memory_with_flags(config)?;
        let path = DataDir::new(data_dir).mother();
        connection.execute_batch(&format!(
            "ATTACH {} AS mother (READ_ONLY); USE mother;",
            quoted_path(&path)
        ))?;
        Ok(Self { connection })
    }

    /// Runs the query for the days `from` to `to` (texts as 2025-01-06) and counts its rows. It
    /// reads from `history` on, the day that the largest lag reaches.
    ///
    /// # Errors
    ///
    /// Returns what DuckDB says.
    pub fn rows(
        &self,
        formula: &Formula,
        order: RankOrder,
        limit: u32,
        [history, from, to]: [&str; 3],
    ) -> duckdb::Result<usize> {
        let sql = statement(formula.root(), order, limit);
        let mut prepared = self.connection.prepare(&sql)?;
        let mut rows = prepared.query([history, to, from])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get::<_, Option<f64>>(3)?);
            count += 1;
        }
        Ok(count)
    }
}

fn statement(root: &Node, order: RankOrder, limit: u32) -> String {
    let lagged: String = root
        .values()
        .into_iter()
        .filter(|(_, lag)| *lag > 0)
        .map(|(column, lag)| {
            let name = column_alias(column, 0);
            let alias = column_alias(column, lag);
            format!(", lag({name}, {lag}) OVER (PARTITION BY code ORDER BY date) {alias}")
        })
        .collect();
    format!(
        "WITH s AS (SELECT date, code, nullif(open, 0) o, nullif(high, 0) h, nullif(low, 0) l,
             nullif(close, 0) c, nullif(volume, 0) v, volume FROM daily
             WHERE date BETWEEN ?::DATE AND ?::DATE),
           x AS (SELECT *{lagged} FROM s),
           y AS (SELECT date, code, c AS close, volume, {} AS value FROM x
             WHERE c IS NOT NULL AND date >= ?::DATE),
           z AS (SELECT *, row_number() OVER (PARTITION BY date
             ORDER BY value {order} NULLS LAST, code) rk FROM y)
         SELECT date::VARCHAR, rk, code, value, close, volume FROM z WHERE rk <= {limit}
         ORDER BY date, rk",
        value_sql(root)
    )
}

/// Every column as one matrix in memory, day by day: the least that any engine must read.
#[derive(Debug)]
pub struct Matrices {
    /// Business days.
    pub days: usize,
    /// Issues; a column's value of code `c` on day `d` is at `d * codes + c`.
    pub codes: usize,
    /// Open, High, Low, Close and Volume; "not a number" for null and 0.
    pub columns: [Vec<f64>; Column::ALL.len()],
}

impl Matrices {
    /// Copies the current snapshot of a data directory into memory.
    ///
    /// # Errors
    ///
    /// Returns why there is no snapshot.
    pub fn open(data_dir: &Path) -> Result<Self, RankError> {
        let data = DataDir::new(data_dir);
        let internal = |error: Box<dyn std::error::Error + Send + Sync>| {
            RankError::internal("reading the grid for a bench", error)
        };
        let number = data.current().map_err(|error| internal(error.into()))?.unwrap_or(0);
        let grid = Grid::open(&data.rank_grid(number), number);
        let grid = grid.map_err(|fault| internal(fault.into()))?;
        let days = grid.days().len();
        let matrix = |column| (0..days).flat_map(|day| grid.stripe(day, column)).copied().collect();
        Ok(Self { days, codes: grid.codes().len(), columns: Column::ALL.map(matrix) })
    }
}
