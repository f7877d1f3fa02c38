//! What earlier runs have fetched, in the job's own database, so that it changes with the rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::JstDate;
use duckdb::arrow::array::{ArrayRef, BooleanArray, Date32Array, StringArray};
use duckdb::types::Value;
use duckdb::{Connection, params};
use pricestore::sql::{append, column, rows};

use crate::fetch_state::{FetchState, IssuePass};

/// `day` has a row for each day of which something is known; `pass_date` and `pass_code` say what was fetched issue by
/// issue; `fetch_state` has one row; `correction` has a row for each value that was changed or removed.
pub(super) const TABLES: &str = "
    CREATE TABLE work.day (date DATE, is_fetched BOOLEAN, is_complete BOOLEAN, is_accepted BOOLEAN,
      is_closed BOOLEAN);
    CREATE TABLE work.pass_date (date DATE);
    CREATE TABLE work.pass_code (code VARCHAR);
    CREATE TABLE work.fetch_state (unpublished_from DATE, all_split BOOLEAN, pass_made DATE);
    INSERT INTO work.fetch_state VALUES (NULL, false, NULL);
    CREATE TABLE work.correction (logged_at TIMESTAMP_NS, date DATE, code VARCHAR, column_name VARCHAR,
      old_value DOUBLE, new_value DOUBLE, old_source VARCHAR, new_source VARCHAR);";

/// Notes that all rows are of complete days.
pub(super) const ALL_COMPLETE: &str =
    "INSERT INTO work.day SELECT DISTINCT date, false, true, false, false FROM work.daily";

/// The days that have rows which readers must not see.
const HIDDEN: &str = "SELECT date::VARCHAR FROM (SELECT DISTINCT date FROM work.daily
    EXCEPT SELECT date FROM work.day WHERE is_complete OR is_accepted) ORDER BY 1";

/// Whether the job's own database has a table.
pub(super) fn has_table(connection: &Connection, name: &str) -> duckdb::Result<bool> {
    let exists = "SELECT count(*) > 0 FROM duckdb_tables()
        WHERE database_name = 'work' AND table_name = ?";
    connection.query_row(exists, [name], |row| row.get(0))
}

/// The rows that readers may see, as what follows FROM.
pub(super) fn visible(connection: &Connection) -> duckdb::Result<String> {
    let hidden: Vec<String> = column(connection, HIDDEN)?;
    let hidden: Vec<String> = hidden.iter().map(|date| format!("DATE '{date}'")).collect();
    Ok(match hidden.is_empty() {
        true => "work.daily".to_owned(),
        false => format!("(FROM work.daily WHERE date NOT IN ({}))", hidden.join(", ")),
    })
}

/// What is noted.
pub(super) fn read(connection: &Connection) -> duckdb::Result<FetchState> {
    let days = |what: &str| dates(connection, &format!("SELECT date FROM work.day WHERE {what}"));
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
        fetched: days("is_fetched")?,
        complete: days("is_complete")?,
        accepted: days("is_accepted")?,
        closed: days("is_closed")?,
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
        "DELETE FROM work.day; DELETE FROM work.pass_date; DELETE FROM work.pass_code",
    )?;
    let FetchState { fetched, complete, accepted, closed, .. } = state;
    let kinds = [fetched, complete, accepted, closed];
    let all: BTreeSet<JstDate> = kinds.into_iter().flatten().copied().collect();
    let names = ["is_fetched", "is_complete", "is_accepted", "is_closed"];
    let is_of = |days: &BTreeSet<JstDate>| -> ArrayRef {
        let said: Vec<bool> = all.iter().map(|date| days.contains(date)).collect();
        Arc::new(BooleanArray::from(said))
    };
    let kinds = names.into_iter().zip(kinds.map(is_of));
    put(connection, "day", [("date", column_of(&all))].into_iter().chain(kinds).collect())?;
    if let Some(pass) = &state.pass {
        put(connection, "pass_date", vec![("date", column_of(&pass.dates))])?;
        let codes = pass.codes.iter().map(|code| Some(code.as_str()));
        let codes: ArrayRef = Arc::new(codes.collect::<StringArray>());
        put(connection, "pass_code", vec![("code", codes)])?;
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
    if batch.num_rows() == 0 { Ok(()) } else { append(connection, ("work", table), [batch]) }
}
