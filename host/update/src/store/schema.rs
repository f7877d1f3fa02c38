//! Tables, views and statements. All text in a statement is ours; codes, dates and paths get in
//! quoted or as parameters.

use domain::adjustment::Adjustment;
use pricestore::sql::{adjusted_price, adjusted_volume, digest_of_rows, fractions, quoted};

use super::apply::vendor_sources;
use crate::row::{IssueCode, SourceKind};

/// Columns of `daily`, with their types. The ranking's publication needs the first seven.
pub(super) const COLUMNS: [(&str, &str); 10] = [
    ("date", "DATE"),
    ("code", "VARCHAR"),
    ("open", "DOUBLE"),
    ("high", "DOUBLE"),
    ("low", "DOUBLE"),
    ("close", "DOUBLE"),
    ("volume", "DOUBLE"),
    ("turnover", "DOUBLE"),
    ("adjustment_factor", "DOUBLE"),
    ("source", "VARCHAR"),
];

/// Columns of `daily` that every combined database has.
pub(super) const COLUMNS_NEEDED: usize = 7;

/// The mark of rows whose prices their source has adjusted for splits (rule `adjusted`). Published databases
/// have it after the other columns; the job's own one derives it from the source.
pub(super) const ADJUSTED_MARK: &str = "adjusted";

/// The definitions of the columns.
pub(super) fn definitions() -> String {
    let columns: Vec<String> =
        COLUMNS.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    columns.join(", ")
}

/// The definitions of the columns of a published database.
pub(super) fn published_definitions() -> String {
    format!("{}, {ADJUSTED_MARK} BOOLEAN", definitions())
}

/// The names of the columns.
pub(super) fn names() -> String {
    COLUMNS.map(|(name, _)| name).join(", ")
}

/// The columns of a published database, from rows of the job's own one.
pub(super) fn published_values() -> String {
    let adjusted = SourceKind::ALL.into_iter().filter(|kind| kind.is_adjusted());
    let adjusted: Vec<String> = adjusted.map(|kind| quoted(kind.as_str())).collect();
    format!("{}, coalesce(source IN ({}), false) AS {ADJUSTED_MARK}", names(), adjusted.join(", "))
}

/// The digest of the content of rows; see [`digest_of_rows`].
pub(super) fn digest() -> String {
    digest_of_rows(&names())
}

/// Prices as if every split had always been: those of earlier days as the shares of all later splits make them.
/// Between two splits these stay the same, so they are computed once for each split and joined by the span of days. A
/// factor is read as the nearest fraction ([`fractions`]), as replay reads it.
///
/// Rows that are marked `adjusted` were adjusted by their source, as of the day on which they were
/// fetched: they give no factor, and between them and the rows beside them nobody knows what compares (rule
/// `adjusted`). Nor does anybody of days before a row that does not tell its factor (rule `adjusted`). Factor, prices and
/// volume are null there, as the adjusted values of rankings are: of an issue `known` has the last day of such
/// a row, and its last day. So they are before a row that was lost or a day that is missing (rule `adjusted`), of which
/// `unknown_before` tells. The combined database and that of an issue have the same view.
pub(super) fn adjusted() -> String {
    let price = |name: &str| {
        let scaled = adjusted_price(name, "shares_new", "shares_old");
        format!("CASE WHEN shares_new = shares_old THEN {name} ELSE {scaled} END AS {name}")
    };
    let [open, high, low, close] = ["open", "high", "low", "close"].map(price);
    let most = Adjustment::TERM_MAX;
    format!(
        "CREATE VIEW adjusted AS
    WITH fraction AS ({fractions}),
    told AS (
      SELECT code, max(date) AS last,
          max(date) FILTER (adjustment_factor IS NULL
            OR adjustment_factor NOT BETWEEN 0.001 AND {most} OR daily.adjusted) AS silent
        FROM daily GROUP BY code),
    known AS (
      SELECT told.code, last, greatest(silent, unknown_before.date) AS since
        FROM told LEFT JOIN unknown_before ON unknown_before.code = told.code),
    split AS (
      SELECT code, date, shares_new, shares_old
        FROM daily JOIN fraction ON fraction.factor = daily.adjustment_factor
        WHERE shares_new <> shares_old AND NOT daily.adjusted),
    span AS (
      SELECT code, date AS before,
          coalesce(lag(date) OVER (PARTITION BY code ORDER BY date), '-infinity'::DATE) AS since,
          list_aggregate(list(shares_new) OVER (PARTITION BY code ORDER BY date DESC
            ROWS UNBOUNDED PRECEDING), 'product') AS shares_new,
          list_aggregate(list(shares_old) OVER (PARTITION BY code ORDER BY date DESC
            ROWS UNBOUNDED PRECEDING), 'product') AS shares_old
        FROM split),
    shared AS (
      SELECT daily.*,
          CASE WHEN daily.date < known.since OR daily.adjusted AND daily.date < last THEN NULL
            ELSE coalesce(span.shares_new, 1.0::DOUBLE) END AS shares_new,
          coalesce(span.shares_old, 1.0::DOUBLE) AS shares_old
        FROM daily JOIN known ON known.code = daily.code
          LEFT JOIN span ON span.code = daily.code AND daily.date >= span.since
          AND daily.date < span.before)
    SELECT date, code, {open}, {high}, {low}, {close},
        CASE WHEN shares_new = shares_old THEN volume ELSE {volume} END AS volume,
        turnover, shares_old / shares_new AS factor, source, shared.adjusted
      FROM shared",
        fractions = fractions("daily", "adjustment_factor"),
        volume = adjusted_volume("volume", "shares_new", "shares_old"),
    )
}

/// The days before which nobody knows what compares, one at most of an issue.
pub(super) const UNKNOWN_BEFORE: &str = "unknown_before (code VARCHAR, date DATE)";

/// Makes `aside.unknown_before`: of each issue the day before which nobody knows what compares with the later
/// rows, because between two of them a business day is missing, or a row of its own was lost (rule `adjusted`). The
/// same is so in rankings. The rows have so many days.
///
/// Most issues have a row on each day, which is seen by counting. Of the others those that have rows of sources
/// with one for each day only lost a row where none is, the last time before the last run of rows: seen in a
/// bit for each day. The rest is looked at row by row.
pub(super) fn unknown_before(days: u64) -> String {
    format!(
        "CREATE TABLE aside.unknown_before AS
         WITH day AS (
             SELECT date, (row_number() OVER (ORDER BY date))::INTEGER AS seen
               FROM (SELECT DISTINCT date FROM aside.daily)),
           after_gap AS (
             SELECT min(day.date) AS date FROM (
               SELECT date FROM work.calendar WHERE is_open
                   AND date BETWEEN (SELECT min(date) FROM day) AND (SELECT max(date) FROM day)
                   AND date NOT IN (SELECT date FROM day)) gap
               JOIN day ON day.date > gap.date GROUP BY gap.date),
           counted AS (
             SELECT code, count(*) AS found, min(date) AS begins, max(date) AS ends,
                 max(seen) - min(seen) + 1 AS days, bitstring_agg(seen, 1, {days}) AS bits,
                 count(*) FILTER (source IN ({sources})) AS every_day
               FROM aside.daily JOIN day USING (date) GROUP BY code),
           uneven AS MATERIALIZED (FROM counted WHERE found < days AND every_day > 0),
           steady AS (
             SELECT code, rtrim(bits::VARCHAR, '0') AS bits FROM uneven WHERE every_day = found),
           row_by_row AS (
             SELECT code, date, seen, coalesce(source IN ({sources}), false) AS every_day
               FROM aside.daily JOIN day USING (date)
               WHERE code IN (SELECT code FROM uneven WHERE every_day < found)),
           pairs AS (
             SELECT code, date, seen > lag(seen) OVER one + 1
                 AND (every_day OR lag(every_day) OVER one) AS is_lost
               FROM row_by_row WINDOW one AS (PARTITION BY code ORDER BY date))
         SELECT code, max(date) AS date FROM (
             SELECT code, day.date FROM steady
               JOIN day ON seen = length(bits) - instr(reverse(bits), '0') + 2
             UNION ALL
             SELECT code, date FROM pairs WHERE is_lost
             UNION ALL
             SELECT code, after_gap.date FROM counted JOIN after_gap
               ON begins < after_gap.date AND after_gap.date <= ends)
           GROUP BY code ORDER BY code;",
        sources = vendor_sources()
    )
}

/// What the job knows beside the rows: `state` has one row. A generation is a state of the rows;
/// the one that was published last is noted with the file that holds it. `issue_file` says what
/// was written into each per-issue database.
pub(super) const NOTES: &str = "
    CREATE TABLE state (generation UBIGINT, published UBIGINT, published_file VARCHAR,
      split_form VARCHAR);
    INSERT INTO state VALUES (1, NULL, NULL, NULL);
    CREATE TABLE issue_file (code VARCHAR, rows UBIGINT, digest UBIGINT, bytes UBIGINT);";

/// The exchange's calendar, in a table of its own beside the rows; a combined database without it has
/// the business days that its rows have.
pub(super) const CALENDAR: &str = "calendar (date DATE, is_open BOOLEAN)";

/// Whether a text is a code as it is stored, in the one spelling.
pub(super) fn is_stored_code(text: &str) -> bool {
    text.parse::<IssueCode>().is_ok_and(|code| code.as_str() == text)
}
