//! The combined database as snapshots are made of it: attached read-only under the name `mother`, with its
//! business days in the table `cal` and its issues in `issue`, both numbered in ascending order.

use duckdb::Connection;

use super::error::PublishError;
use super::splits;
use crate::calendar_table::has_calendar;
use crate::data_dir::DataDir;
use crate::limits::{SNAPSHOT_CELLS_MAX, SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX};
use crate::sql::{must_be_published, quoted_path, view_among};

/// The dates that have rows: the business days of a source without a calendar.
const DATES: &str = "SELECT date FROM mother.daily";
/// Those of a source with one: a day on which the exchange was open counts in lags though no row of it
/// is there, and one with rows counts whatever the calendar says.
const DATES_AND_CALENDAR: &str = "SELECT date FROM mother.daily
    UNION SELECT date FROM mother.calendar WHERE is_open
      AND date > (SELECT min(date) FROM mother.daily)
      AND date < (SELECT max(date) FROM mother.daily)";

/// Attaches the combined database of a data directory and makes the tables of its two sides.
pub(super) fn attach(connection: &Connection, data: &DataDir) -> Result<(), PublishError> {
    let mother = data.mother();
    must_be_published(&mother)
        .map_err(|source| PublishError::Io { path: mother.clone(), source })?;
    let attach = format!("ATTACH {} AS mother (READ_ONLY)", quoted_path(&mother));
    connection.execute_batch(&attach)?;
    if let Some(view) = view_among(connection, "mother")? {
        let what = format!("`{view}` is a view, which may read any file; put a table in its place");
        return Err(PublishError::Source(what));
    }
    let has_calendar = has_calendar(connection, "mother")?.map_err(PublishError::Source)?;
    check_source(connection)?;
    connection.execute_batch(&format!(
        "CREATE TABLE cal AS SELECT (row_number() OVER (ORDER BY date) - 1)::INTEGER AS day_no, date
           FROM (SELECT DISTINCT date FROM ({})) ORDER BY 1;
         CREATE TABLE issue AS SELECT (row_number() OVER (ORDER BY code) - 1)::INTEGER AS code_id, code
           FROM (SELECT DISTINCT code FROM mother.daily) ORDER BY 1",
        if has_calendar { DATES_AND_CALENDAR } else { DATES }
    ))?;
    check_sides(connection)
}

/// Makes the tables of statements in an engine's memory, from the combined database: beside `cal` and `issue`
/// the splits (`split`, `unknown_days` and `gap`, as snapshots have them), and `g`, which is dense. It has one
/// row for each issue on each of these business days, in the order of days and issues, which is what a
/// positional join needs. Prices of 0 are null; a volume of 0 is kept, because an answer shows it. A row takes
/// part in rankings where it has a close.
///
/// # Errors
/// What DuckDB says, and what is wrong with the combined database.
pub fn make_tables(
    connection: &Connection,
    data: &DataDir,
    (first_day, last_day): (usize, usize),
) -> Result<(), PublishError> {
    attach(connection, data)?;
    splits::make(connection)?;
    let price =
        |column| format!("CASE WHEN isfinite({column}) AND {column} <> 0 THEN {column} END");
    Ok(connection.execute_batch(&format!(
        "CREATE TABLE g AS
         WITH days AS (FROM cal WHERE day_no BETWEEN {first_day} AND {last_day}),
           priced AS (SELECT day_no, code_id, {} AS o, {} AS h, {} AS l, {} AS c,
               CASE WHEN isfinite(volume) THEN volume END AS volume
             FROM mother.daily JOIN days USING (date) JOIN issue USING (code))
         SELECT day_no::SMALLINT AS day_no, code_id::SMALLINT AS code_id, c IS NOT NULL AS present,
             o, h, l, c, volume
           FROM days CROSS JOIN issue LEFT JOIN priced USING (day_no, code_id)
           ORDER BY day_no, code_id;
         DETACH mother",
        price("open"),
        price("high"),
        price("low"),
        price("close"),
    ))?)
}

const _: () = assert!(SNAPSHOT_DAYS_MAX <= 32_767 && SNAPSHOT_CODES_MAX <= 32_767);

/// Refuses a table that is none of daily prices.
fn check_source(connection: &Connection) -> Result<(), PublishError> {
    let refuse = |text: String| Err(PublishError::Source(text));
    let columns = "SELECT count(*) FROM (DESCRIBE mother.daily) WHERE
        (column_name = 'date' AND column_type = 'DATE')
        OR (column_name = 'code' AND column_type = 'VARCHAR')
        OR (column_name IN ('open', 'high', 'low', 'close', 'volume') AND column_type = 'DOUBLE')";
    if connection.query_row(columns, [], |row| row.get::<_, i64>(0))? != 7 {
        return refuse(
            "table daily must have the columns date DATE, code VARCHAR and open, high, low, \
             close, volume DOUBLE"
                .to_owned(),
        );
    }
    let nameless = "SELECT count(*) FROM mother.daily WHERE date IS NULL OR code IS NULL";
    let nameless: i64 = connection.query_row(nameless, [], |row| row.get(0))?;
    if nameless > 0 {
        return refuse(format!("{nameless} rows have no date or no code"));
    }
    Ok(())
}

/// Refuses what the grid cannot hold.
fn check_sides(connection: &Connection) -> Result<(), PublishError> {
    let refuse = |text: String| Err(PublishError::Source(text));
    let counts = "SELECT (SELECT count(*) FROM cal), (SELECT count(*) FROM issue)";
    let (days, codes): (usize, usize) =
        connection.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if days == 0 {
        return refuse("table daily has no rows".to_owned());
    }
    let cells = days.saturating_mul(codes);
    if days > SNAPSHOT_DAYS_MAX || codes > SNAPSHOT_CODES_MAX || cells > SNAPSHOT_CELLS_MAX {
        return refuse(format!("{days} days of {codes} codes are more than a snapshot may hold"));
    }
    Ok(())
}
