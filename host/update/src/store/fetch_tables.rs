//! What earlier runs have fetched, in the job's own database, so that it changes with the rows.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use domain::JstDate;
use duckdb::arrow::array::{ArrayRef, BooleanArray, Date32Array, StringArray};
use duckdb::types::Value;
use duckdb::{Connection, params};
use pricestore::sql::{column, insert, rows};

use super::error::StoreError;
use super::old_state;
use crate::fetch_state::{FetchState, IssuePass};

/// `fetched_day` has a row for each day that is done, with trading or without; `pass_date` and
/// `pass_code` say what was fetched issue by issue; `fetch_state` has one row.
const TABLES: &str = "
    CREATE TABLE work.fetched_day (date DATE, has_trading BOOLEAN);
    CREATE TABLE work.pass_date (date DATE);
    CREATE TABLE work.pass_code (code VARCHAR);
    CREATE TABLE work.fetch_state (unpublished_from DATE, all_split BOOLEAN, pass_made DATE);
    INSERT INTO work.fetch_state VALUES (NULL, false, NULL);";

/// Makes the tables where the database does not have them, with what the file of an earlier version
/// says; tells why that could not be used. The file goes once it is taken over.
pub(super) fn prepare(
    connection: &Connection,
    old_file: &Path,
) -> Result<Option<String>, StoreError> {
    let failed = |error| StoreError::database("prepare for what is fetched")(error);
    let exists = "SELECT count(*) FROM duckdb_tables()
        WHERE database_name = 'work' AND table_name = 'fetch_state'";
    let exists: i64 = connection.query_row(exists, [], |row| row.get(0)).map_err(failed)?;
    let mut note = None;
    if exists == 0 {
        let state = old_state::read(old_file).unwrap_or_else(|what| {
            let file = old_file.display();
            note = Some(format!("{file} is not used: {what}; days are fetched anew"));
            // It may have said that rows are not published.
            Some(FetchState { unpublished_from: Some(JstDate::MIN), ..FetchState::default() })
        });
        // Rolled back when it is dropped.
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        transaction.execute_batch(TABLES).map_err(failed)?;
        write(&transaction, &state.unwrap_or_default()).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    } else if old_file.exists() {
        // An earlier version ran meanwhile and may have left rows that are not published.
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        let state = read(&transaction).map_err(failed)?;
        let state = FetchState { unpublished_from: Some(JstDate::MIN), ..state };
        write(&transaction, &state).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    atomic_file::remove_if_there(old_file).map_err(StoreError::io("remove", old_file))?;
    Ok(note)
}

/// What is noted.
pub(super) fn read(connection: &Connection) -> duckdb::Result<FetchState> {
    let days = |has_trading: bool| {
        let days = "SELECT date FROM work.fetched_day WHERE has_trading = ";
        dates(connection, &format!("{days}{has_trading}"))
    };
    let state = "SELECT unpublished_from, all_split, pass_made FROM work.fetch_state";
    let (unpublished_from, split, made): (Value, bool, Value) =
        connection.query_row(state, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let pass = date(&made)?.map(|made| -> duckdb::Result<IssuePass> {
        let codes: Vec<String> = column(connection, "SELECT code FROM work.pass_code")?;
        let codes = codes.iter().map(|code| code.parse().map_err(|_| duckdb::Error::InvalidQuery));
        let dates = dates(connection, "SELECT date FROM work.pass_date")?;
        Ok(IssuePass { made, dates, codes: codes.collect::<Result<_, _>>()? })
    });
    Ok(FetchState {
        fetched: days(true)?,
        closed: days(false)?,
        unpublished_from: date(&unpublished_from)?,
        split,
        pass: pass.transpose()?,
    })
}

fn dates(connection: &Connection, sql: &str) -> duckdb::Result<BTreeSet<JstDate>> {
    let found: Vec<Value> = column(connection, sql)?;
    found.iter().filter_map(|value| date(value).transpose()).collect()
}

fn date(value: &Value) -> duckdb::Result<Option<JstDate>> {
    match value {
        Value::Null => Ok(None),
        Value::Date32(days) => {
            let date = JstDate::from_epoch_days(*days);
            date.map(Some).ok_or(duckdb::Error::InvalidQuery)
        }
        _ => Err(duckdb::Error::InvalidQuery),
    }
}

/// Notes all of it, inside of the transaction that the connection is in.
pub(super) fn write(connection: &Connection, state: &FetchState) -> duckdb::Result<()> {
    connection.execute_batch(
        "DELETE FROM work.fetched_day; DELETE FROM work.pass_date; DELETE FROM work.pass_code",
    )?;
    let days = [(&state.fetched, true), (&state.closed, false)];
    let days =
        days.into_iter().flat_map(|(days, traded)| days.iter().map(move |day| (day, traded)));
    let (days, traded): (Vec<&JstDate>, Vec<bool>) = days.unzip();
    let traded: ArrayRef = Arc::new(BooleanArray::from(traded));
    put(connection, "work.fetched_day", vec![("date", column_of(days)), ("has_trading", traded)])?;
    if let Some(pass) = &state.pass {
        put(connection, "work.pass_date", vec![("date", column_of(&pass.dates))])?;
        let codes = pass.codes.iter().map(|code| Some(code.as_str()));
        let codes: ArrayRef = Arc::new(codes.collect::<StringArray>());
        put(connection, "work.pass_code", vec![("code", codes)])?;
    }
    let value = |date: Option<JstDate>| {
        date.map_or(Value::Null, |date| Value::Date32(date.to_epoch_days()))
    };
    let made = state.pass.as_ref().map(|pass| pass.made);
    let update = "UPDATE work.fetch_state SET unpublished_from = ?, all_split = ?, pass_made = ?";
    let values = params![value(state.unpublished_from), state.split, value(made)];
    connection.execute(update, values).map(drop)
}

fn column_of<'a>(dates: impl IntoIterator<Item = &'a JstDate>) -> ArrayRef {
    let days = dates.into_iter().map(|date| Some(date.to_epoch_days()));
    Arc::new(days.collect::<Date32Array>())
}

fn put(connection: &Connection, table: &str, columns: Vec<(&str, ArrayRef)>) -> duckdb::Result<()> {
    let batch = rows(columns)?;
    if batch.num_rows() == 0 { Ok(()) } else { insert(connection, table, &[batch]) }
}
