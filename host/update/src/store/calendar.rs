//! The exchange's calendar in the job's own database. It goes into the combined database with the
//! rows, in a table of its own.

use std::sync::Arc;

use domain::JstDate;
use duckdb::Connection;
use duckdb::arrow::array::{ArrayRef, BooleanArray, Date32Array};
use pricestore::sql::{append, rows};

use super::error::StoreError;
use super::schema::CALENDAR;
use crate::price_store::OpenDays;

/// Makes the table where the database does not have it.
pub(super) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    let create = format!("CREATE TABLE IF NOT EXISTS work.{CALENDAR}");
    connection.execute_batch(&create).map_err(StoreError::database("prepare the calendar"))
}

/// Whether there is a calendar.
pub(super) fn is_known(connection: &Connection) -> duckdb::Result<bool> {
    connection.query_row("SELECT count(*) > 0 FROM work.calendar", [], |row| row.get(0))
}

/// What is stored.
pub(super) fn read(connection: &Connection) -> duckdb::Result<OpenDays> {
    let days = "SELECT date::VARCHAR, is_open FROM work.calendar";
    let mut days = connection.prepare(days)?;
    let days = days.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let days = days.map(|day| {
        let (date, is_open) = day?;
        Ok((date.parse().map_err(|_| duckdb::Error::InvalidQuery)?, is_open))
    });
    days.collect()
}

/// Puts a calendar in the place of the stored one. Where it says something else of the days that
/// readers see, that is a new state for them.
pub(super) fn write(connection: &Connection, days: &OpenDays) -> duckdb::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch("DELETE FROM work.calendar")?;
    let dates = days.keys().map(|date: &JstDate| Some(date.to_epoch_days()));
    let dates: ArrayRef = Arc::new(dates.collect::<Date32Array>());
    let open: ArrayRef = Arc::new(days.values().copied().map(Some).collect::<BooleanArray>());
    if !days.is_empty() {
        let rows = rows([("date", dates), ("is_open", open)])?;
        append(&transaction, ("work", "calendar"), [rows])?;
    }
    transaction.execute_batch("UPDATE work.state SET generation = generation + 1")?;
    transaction.commit()
}
