//! The splits of the combined database, as tables and as a snapshot has them. Of which rows they are made, and
//! where nobody knows: the tables at [`make`].

use domain::adjustment::Adjustment;
use duckdb::Connection;

use super::error::PublishError;
use crate::grid::{Split, Splits, UnknownDays};
use crate::limits::{SNAPSHOT_SPLITS_MAX, SNAPSHOT_UNKNOWN_MAX};
use crate::sql::{column, fractions};

/// Rows that their source has adjusted itself, as of the day on which they were fetched, which they do
/// not tell.
const IS_ADJUSTED: &str = "coalesce(source = 'public', false)";
/// Rows of a source that has one for each listed issue and business day, traded or not.
const HAS_EVERY_DAY: &str = "coalesce(source IN ('vendor', 'files'), false)";

/// What rows of `daily` tell, as SQL over its columns. Nothing else here looks at them.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// The row was adjusted by its source.
    is_adjusted: &'static str,
    /// Its source has a row for each day.
    has_every_day: &'static str,
}

impl Told {
    /// Of a table with a column `source` or without.
    const fn new(has_source: bool) -> Self {
        match has_source {
            true => Self { is_adjusted: IS_ADJUSTED, has_every_day: HAS_EVERY_DAY },
            false => Self { is_adjusted: "false", has_every_day: "false" },
        }
    }

    /// The factor of what took effect on the row's day, 1 where nothing did; null where the row does not
    /// tell, which is never the same as 1.
    fn factor(self) -> String {
        format!("CASE WHEN NOT {} THEN adjustment_factor END", self.is_adjusted)
    }
}

/// Whether a column of this name and type is in `mother.daily`.
fn has_column(connection: &Connection, name: &str, kind: &str) -> duckdb::Result<bool> {
    let sql = "SELECT count(*) = 1 FROM (DESCRIBE mother.daily) WHERE column_name = ?
        AND column_type = ?";
    connection.query_row(sql, [name, kind], |row| row.get(0))
}

/// Makes the tables `split`, `unknown_days` and `gap`, where the calendar and the issues are there already, and
/// gives what they hold. Nothing where the source has no column `adjustment_factor`, or
/// one with more than [`SNAPSHOT_SPLITS_MAX`] splits, which must be something else, or with more than
/// [`SNAPSHOT_UNKNOWN_MAX`] spans of unknown days: rankings then refuse to adjust.
///
/// | Rule | row of `daily` | what it is |
/// |---|---|---|
/// | S1 | `adjustment_factor` is 1, or its fraction is ([`fractions`]) | no split |
/// | S2 | it is another number from 0.001 to 1,000 | a split of this fraction, in effect from the row's day on |
/// | S3 | it is any other number | a split of which nobody knows the factor |
/// | S4 | `source` is `public`, whatever the factor | tells nothing of splits; the source has adjusted the row itself |
/// | S5 | `adjustment_factor` is null | tells nothing of splits |
///
/// | Rule | a row of an issue and the next one | what took effect after the one, up to the other |
/// |---|---|---|
/// | U1 | one of them or both adjusted by their source (S4) | not known: the source does not say for which splits |
/// | U2 | between them a business day of the calendar without a row of any issue, which is a gap | not known |
/// | U3 | one of them or both of the vendor (`source` is `vendor` or `files`), which has a row for each listed issue and business day, and between them a day of which there are rows of other issues only: this one's was left out or lost | not known |
/// | U4 | any others | the split of the later row, as above; other sources leave out days without a trade |
/// | U5 | the later one tells nothing (S5); also of an issue's first row, on its own day | not known |
pub(super) fn make(connection: &Connection) -> Result<Option<Splits>, PublishError> {
    if !has_column(connection, "adjustment_factor", "DOUBLE")? {
        return Ok(None);
    }
    let told = Told::new(has_column(connection, "source", "VARCHAR")?);
    let splits = format!(
        "FROM (SELECT date, code, {} AS factor FROM mother.daily) WHERE factor <> 1",
        told.factor()
    );
    let count: usize =
        connection.query_row(&format!("SELECT count(*) {splits}"), [], |row| row.get(0))?;
    if count > SNAPSHOT_SPLITS_MAX {
        return Ok(None);
    }
    // Two rows of one issue and day are refused by who reads all rows.
    connection.execute_batch(&format!(
        "CREATE TABLE split AS SELECT cal.day_no, issue.code_id,
           max(shares_new) AS shares_new, max(shares_old) AS shares_old
         FROM (SELECT date, code, factor {splits}) found
         JOIN cal USING (date) JOIN issue USING (code)
         LEFT JOIN ({fractions}) fraction ON fraction.factor = found.factor
         WHERE coalesce(shares_new <> shares_old, true) GROUP BY 1, 2 ORDER BY 1, 2;
         CREATE TABLE gap AS SELECT day_no FROM cal ANTI JOIN mother.daily USING (date) ORDER BY 1;
         CREATE TABLE unknown_days (code_id INTEGER, first_day INTEGER, last_day INTEGER);",
        fractions =
            fractions(&format!("(SELECT {} AS told FROM mother.daily)", told.factor()), "told")
    ))?;
    connection.execute_batch(&unknown_days(told))?;
    read(connection)
}

/// Fills `unknown_days` by U1, U3 and U5. Most issues have a row of one source on each day, which is seen
/// by counting; only the others are looked at row by row. Days are counted by `seen`, without gaps. A span
/// is a run of unknown rows, whose places stay as far from their number among the unknown ones; counting the
/// others before each row would take the square of an issue's rows.
fn unknown_days(told: Told) -> String {
    let Told { is_adjusted, has_every_day } = told;
    let factor = told.factor();
    format!(
        "CREATE TEMP TABLE seen_day AS SELECT date, day_no,
             (row_number() OVER (ORDER BY day_no))::INTEGER AS seen
           FROM cal ANTI JOIN gap USING (day_no);
         INSERT INTO unknown_days
         WITH counted AS (SELECT code, count(*) AS found, min(date) AS begins, max(date) AS ends,
               count({factor}) AS telling
             FROM mother.daily GROUP BY code),
           uneven AS (SELECT code FROM counted JOIN seen_day f ON f.date = begins
               JOIN seen_day l ON l.date = ends
             WHERE telling < found OR found < l.seen - f.seen + 1),
           row_by_row AS (SELECT issue.code_id, day_no, seen, {is_adjusted} AS adjusted,
               {has_every_day} AS every_day, {factor} IS NULL AS silent
             FROM mother.daily JOIN issue USING (code) JOIN seen_day USING (date)
             WHERE code IN (FROM uneven)),
           pairs AS (SELECT code_id, day_no, coalesce(lag(day_no) OVER one + 1, day_no) AS first_day,
               (silent AND NOT adjusted)
                 OR (lag(day_no) OVER one IS NOT NULL
                   AND (adjusted OR lag(adjusted) OVER one
                     OR (seen > lag(seen) OVER one + 1 AND (every_day OR lag(every_day) OVER one))))
                 AS unknown, row_number() OVER one AS place
             FROM row_by_row WINDOW one AS (PARTITION BY code_id ORDER BY day_no))
         SELECT code_id, min(first_day), max(day_no)
           FROM (SELECT *, place - row_number() OVER (PARTITION BY code_id ORDER BY day_no) AS run
             FROM pairs WHERE unknown)
           GROUP BY code_id, run ORDER BY 1, 2;
         DROP TABLE temp.seen_day;"
    )
}

/// What the tables hold.
fn read(connection: &Connection) -> Result<Option<Splits>, PublishError> {
    let spans = "SELECT count(*) FROM unknown_days";
    if connection.query_row(spans, [], |row| row.get::<_, usize>(0))? > SNAPSHOT_UNKNOWN_MAX {
        return Ok(None);
    }
    let mut statement = connection
        .prepare("SELECT day_no, code_id, shares_new, shares_old FROM split ORDER BY 1, 2")?;
    let split = |row: &duckdb::Row<'_>| {
        let terms = row.get::<_, Option<u32>>(2)?.zip(row.get(3)?);
        let adjustment = terms.and_then(|(new, old)| Adjustment::from_terms(new, old));
        Ok(Split { day: row.get(0)?, code: row.get(1)?, adjustment })
    };
    let splits = statement.query_map([], split)?.collect::<duckdb::Result<Vec<_>>>()?;
    let mut statement = connection
        .prepare("SELECT code_id, first_day, last_day FROM unknown_days ORDER BY 1, 2")?;
    let span = |row: &duckdb::Row<'_>| {
        Ok(UnknownDays { code: row.get(0)?, first_day: row.get(1)?, last_day: row.get(2)? })
    };
    let spans = statement.query_map([], span)?.collect::<duckdb::Result<Vec<_>>>()?;
    let gaps = column(connection, "SELECT day_no FROM gap ORDER BY 1")?;
    Splits::new(splits, spans, gaps).map(Some).map_err(PublishError::Source)
}
