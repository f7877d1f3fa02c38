//! The splits of the combined database: in tables of a snapshot, and in its grid. Of which rows they
//! are made:
//!
//! | row of `daily` | what it is |
//! |---|---|
//! | `adjustment_factor` is null or 1 | no split |
//! | it is another finite number above 0 | a split of this factor, in effect from the row's day on |
//! | it is anything else | a split of which nobody knows the factor |
//! | `source` is `public`, whatever the factor | no split; the source has adjusted the row itself |

use duckdb::Connection;

use super::error::PublishError;
use crate::grid::{AdjustedRows, Split, Splits};
use crate::limits::SNAPSHOT_SPLITS_MAX;

/// Whether a column of this name and type is in `mother.daily`.
fn has_column(connection: &Connection, name: &str, kind: &str) -> duckdb::Result<bool> {
    let sql = "SELECT count(*) = 1 FROM (DESCRIBE mother.daily) WHERE column_name = ?
        AND column_type = ?";
    connection.query_row(sql, [name, kind], |row| row.get(0))
}

/// Makes the tables `split` and `adjusted_rows` of a snapshot, whose calendar and issues are there
/// already, and gives what they hold. Nothing where the source has no column `adjustment_factor`, or
/// one with more than [`SNAPSHOT_SPLITS_MAX`] splits, which must be something else: rankings then
/// refuse to adjust.
pub(super) fn make(connection: &Connection) -> Result<Option<Splits>, PublishError> {
    if !has_column(connection, "adjustment_factor", "DOUBLE")? {
        return Ok(None);
    }
    let is_adjusted = match has_column(connection, "source", "VARCHAR")? {
        true => "coalesce(source = 'public', false)",
        false => "false",
    };
    let splits = format!("FROM mother.daily WHERE adjustment_factor <> 1 AND NOT {is_adjusted}");
    let count: usize =
        connection.query_row(&format!("SELECT count(*) {splits}"), [], |row| row.get(0))?;
    if count > SNAPSHOT_SPLITS_MAX {
        return Ok(None);
    }
    // Two rows of one issue and day are refused by who reads all rows.
    connection.execute_batch(&format!(
        "CREATE TABLE split AS SELECT cal.day_no, issue.code_id,
           max(CASE WHEN isfinite(factor) AND factor > 0 THEN factor END) AS factor
         FROM (SELECT date, code, adjustment_factor AS factor {splits}) found
         JOIN cal USING (date) JOIN issue USING (code) GROUP BY 1, 2 ORDER BY 1, 2;
         CREATE TABLE adjusted_rows AS
         SELECT code_id, min(day_no)::INTEGER AS first_day, max(day_no)::INTEGER AS last_day
         FROM (SELECT issue.code_id, cal.day_no,
                 cal.day_no - row_number() OVER (PARTITION BY issue.code_id ORDER BY cal.day_no) run
               FROM (SELECT DISTINCT date, code FROM mother.daily WHERE {is_adjusted}) found
               JOIN cal USING (date) JOIN issue USING (code)
               WHERE issue.code_id IN (SELECT code_id FROM split))
         GROUP BY code_id, run ORDER BY 1, 2;"
    ))?;
    read(connection)
}

/// What the tables hold.
fn read(connection: &Connection) -> Result<Option<Splits>, PublishError> {
    let mut statement =
        connection.prepare("SELECT day_no, code_id, factor FROM split ORDER BY 1, 2")?;
    let split = |row: &duckdb::Row<'_>| {
        Ok(Split { day: row.get(0)?, code: row.get(1)?, factor: row.get(2)? })
    };
    let splits = statement.query_map([], split)?.collect::<duckdb::Result<Vec<_>>>()?;
    let mut statement = connection
        .prepare("SELECT code_id, first_day, last_day FROM adjusted_rows ORDER BY 1, 2")?;
    let span = |row: &duckdb::Row<'_>| {
        Ok(AdjustedRows { code: row.get(0)?, first_day: row.get(1)?, last_day: row.get(2)? })
    };
    let spans = statement.query_map([], span)?.collect::<duckdb::Result<Vec<_>>>()?;
    if spans.len() > SNAPSHOT_SPLITS_MAX {
        return Ok(None);
    }
    Splits::new(splits, spans).map(Some).map_err(PublishError::Source)
}
