//! The current snapshot as the beginning of the next one. After one more day nearly everything is as it
//! was, so only what is new is read from the source and stored. Whether the rest is as it was is not
//! believed but compared:
//!
//! | the current snapshot | the next one |
//! |---|---|
//! | its tables are of another form or of another version of the engine | is made whole |
//! | its tables are not those of its grid, or the grid is damaged | is made whole |
//! | another issue than in the source, or another business day before its last one | is made whole |
//! | another row than in the source on one of its days | is made whole |
//! | any; the next one's number is a multiple of [`SNAPSHOTS_IN_A_ROW_MAX`] | is made whole, so that what a disk has damaged does not stay |
//! | it is the beginning of what the source has | goes on from it |

use std::path::{Path, PathBuf};

use domain::formula::Column;
use duckdb::Connection;

use crate::data_dir::DataDir;
use crate::grid::{COLUMNS, Grid};
use crate::limits::{DIGEST_THREADS_MAX, SNAPSHOTS_IN_A_ROW_MAX};
use crate::sql::{quoted, quoted_path};

/// Form of the tables.
const FORM: &str = "1";

/// A snapshot with which the next one begins.
#[derive(Debug)]
pub(super) struct Base {
    grid: Grid,
    /// The file of its tables.
    pub(super) tables: PathBuf,
}

impl Base {
    /// The current snapshot, where the one with the number `next` goes on from it. The calendar and the issues of the
    /// source are the tables `cal` and `issue` that the connection uses.
    pub(super) fn of(connection: &Connection, data: &DataDir, next: u64) -> Option<Self> {
        let number = data.current().ok()??;
        if next.is_multiple_of(SNAPSHOTS_IN_A_ROW_MAX) {
            return None;
        }
        let grid = Grid::open(&data.rank_grid(number), number).ok()?;
        let base = Self { grid, tables: data.rank_db(number) };
        // A table that cannot be read is none to go on from.
        let is_beginning = base.is_beginning(connection).unwrap_or(false);
        (is_beginning && base.grid.check_all(DIGEST_THREADS_MAX).is_ok()).then_some(base)
    }

    /// Whether the tables are those of the grid, and the source begins with the same.
    fn is_beginning(&self, connection: &Connection) -> duckdb::Result<bool> {
        let attach = format!("ATTACH {} AS base (READ_ONLY)", quoted_path(&self.tables));
        connection.execute_batch(&attach)?;
        let equal = format!(
            "SELECT (SELECT count(*) = 1 AND bool_and(form = {} AND content = {}) FROM base.made)
               AND (SELECT count(*) = {days} FROM base.cal)
               AND (SELECT count(*) = {days} FROM base.cal JOIN cal USING (day_no, date, rows, digest))
               AND (SELECT count(*) = {codes} FROM base.issue)
               AND (SELECT count(*) = {codes} FROM issue)
               AND (SELECT count(*) = {codes} FROM base.issue JOIN issue USING (code_id, code))",
            form(connection)?,
            self.grid.content(),
            days = self.days(),
            codes = self.grid.codes().len(),
        );
        let is_beginning = connection.query_row(&equal, [], |row| row.get(0));
        connection.execute_batch("DETACH base")?;
        is_beginning
    }

    /// Its business days.
    pub(super) fn days(&self) -> usize {
        self.grid.days().len()
    }

    /// For each column, the cells of all codes on a day.
    pub(super) fn day(&self, day: usize) -> [&[f64]; COLUMNS] {
        Column::ALL.map(|column| self.grid.stripe(day, column))
    }
}

/// Ties the tables of a finished snapshot to its grid.
pub(super) fn tie(connection: &Connection, grid: &Path, number: u64) -> duckdb::Result<()> {
    let content = Grid::open(grid, number).map_or(0, |grid| grid.content());
    connection.execute_batch(&format!(
        "CREATE OR REPLACE TABLE made AS SELECT {} AS form, {content}::UBIGINT AS content",
        form(connection)?
    ))
}

/// The form of the tables as an SQL string. Digests of rows are the same within one version of the
/// engine only.
fn form(connection: &Connection) -> duckdb::Result<String> {
    Ok(quoted(&format!("{FORM}, DuckDB {}", connection.version()?)))
}
