//! Rows of the job's own database, as they came.

use domain::{JstDate, Money, Price};
use duckdb::{Connection, Row};
use pricestore::sql::{column, quoted};

use super::schema::names;
use crate::row::{DailyRow, SourceKind};

/// Units of a price or an amount in one yen, as a number of the database.
const UNITS: f64 = domain::price::UNITS_PER_YEN as f64;

/// The rows of the days from `first` to `last`, by code and day.
pub(super) fn between(
    connection: &Connection,
    first: JstDate,
    last: JstDate,
) -> duckdb::Result<Vec<DailyRow>> {
    let rows = format!(
        "SELECT * REPLACE (date::VARCHAR AS date) FROM (SELECT {} FROM work.daily
           WHERE date BETWEEN DATE '{first}' AND DATE '{last}') ORDER BY code, date",
        names()
    );
    connection.prepare(&rows)?.query_map([], row)?.collect()
}

/// The days on which at least so many of these issues have the four prices that are given, ascending. A row that
/// lacks one of them counts for no day.
pub(super) fn days_with(
    connection: &Connection,
    rows: &[DailyRow],
    count_min: u64,
) -> duckdb::Result<Vec<JstDate>> {
    let wanted: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let yen = |price: Option<Price>| price.map(|price| price.units() as f64 / UNITS);
            let [open, high, low, close] = row.prices().map(yen);
            Some(format!(
                "({}, {:?}, {:?}, {:?}, {:?})",
                quoted(row.code.as_str()),
                open?,
                high?,
                low?,
                close?
            ))
        })
        .collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let days = format!(
        "SELECT date::VARCHAR FROM work.daily JOIN (VALUES {}) wanted(code, open, high, low, close)
             USING (code, open, high, low, close)
           GROUP BY date HAVING count(*) >= {count_min} ORDER BY date",
        wanted.join(", ")
    );
    dates(connection, &days)
}

/// What a query for one column of dates, as texts, gives.
pub(super) fn dates<C: FromIterator<JstDate>>(
    connection: &Connection,
    sql: &str,
) -> duckdb::Result<C> {
    let dates: Vec<String> = column(connection, sql)?;
    dates.iter().map(|date| date.parse().map_err(|_| duckdb::Error::InvalidQuery)).collect()
}

/// A row, in the order of the table's columns. What does not tell its source is the vendor's.
fn row(row: &Row<'_>) -> duckdb::Result<DailyRow> {
    let text = |place| row.get::<_, Option<String>>(place).map(Option::unwrap_or_default);
    let wrong = |_| duckdb::Error::InvalidQuery;
    let number = |place| row.get::<_, Option<f64>>(place);
    // What was stored came from whole units, of which a double holds more than any row has.
    let units = |place| number(place).map(|value| value.map(|yen| (yen * UNITS).round() as i64));
    let date = text(0)?.parse().map_err(|_| duckdb::Error::InvalidQuery)?;
    let code = text(1)?.parse().map_err(wrong)?;
    let known = text(9)?;
    let source = SourceKind::ALL.into_iter().find(|kind| kind.as_str() == known);
    Ok(DailyRow {
        open: units(2)?.map(Price::from_units),
        high: units(3)?.map(Price::from_units),
        low: units(4)?.map(Price::from_units),
        close: units(5)?.map(Price::from_units),
        volume: number(6)?.map(|shares| shares as u64),
        turnover: units(7)?.map(Money::from_units),
        adjustment_factor: number(8)?,
        ..DailyRow::bare(date, code, source.unwrap_or(SourceKind::Vendor))
    })
}
