//! Rows of the job's own database, as they came.

use domain::{JstDate, Money, Price};
use duckdb::{Connection, Row};

use super::schema::names;
use crate::row::{DailyRow, SourceKind};

/// Units of a price or an amount in one yen, as a number of the database.
const UNITS: f64 = domain::price::UNITS_PER_YEN as f64;

/// The rows of a day, by code.
pub(super) fn of_day(connection: &Connection, date: JstDate) -> duckdb::Result<Vec<DailyRow>> {
    let rows = format!(
        "SELECT * REPLACE (date::VARCHAR AS date) FROM (SELECT {} FROM work.daily
           WHERE date = DATE '{date}') ORDER BY code",
        names()
    );
    connection.prepare(&rows)?.query_map([], row)?.collect()
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
