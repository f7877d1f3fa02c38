//! What earlier runs have fetched, in the job's own database, so that it changes with the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use domain::JstDate;
use duckdb::arrow::array::{ArrayRef, BooleanArray, Date32Array, StringArray, UInt64Array};
use duckdb::types::Value;
use duckdb::{Connection, params};
use pricestore::sql::{append, column, rows};
use pricestore::{DataDir, DatasetStatus};

use super::error::StoreError;
use super::old_state;
use crate::DoubtKind;
use crate::fetch_state::{FetchState, IssuePass, REFUSED_BEFORE};

/// `fetched_day` has a row for each day that is done, with trading or without; `pass_date` and
/// `pass_code` say what was fetched issue by issue; `fetch_state` has one row.
const TABLES: &str = "
    CREATE TABLE work.fetched_day (date DATE, has_trading BOOLEAN);
    CREATE TABLE work.pass_date (date DATE);
    CREATE TABLE work.pass_code (code VARCHAR);
    CREATE TABLE work.fetch_state (unpublished_from DATE, all_split BOOLEAN, pass_made DATE);
    INSERT INTO work.fetch_state VALUES (NULL, false, NULL);";

/// `published_day` has a row for each day that readers may see, `incomplete_day` for each that was due
/// and is not complete. What a database without them holds was published, so it stays so.
const DAYS: &str = "
    CREATE TABLE work.published_day (date DATE, is_complete BOOLEAN);
    INSERT INTO work.published_day SELECT DISTINCT date, true FROM work.daily;
    CREATE TABLE work.incomplete_day (date DATE, expected UBIGINT);";

/// A row for each day of which odd rows were left out.
const LEFT_OUT: &str = "CREATE TABLE IF NOT EXISTS work.left_out_day (date DATE);";

/// A row for each day where the standard of later ones begins anew.
const BEGINS: &str = "CREATE TABLE IF NOT EXISTS work.first_of_standard (date DATE);";

/// The days that the user has accepted as the vendor has them.
const SETTLED: &str = "CREATE TABLE IF NOT EXISTS work.settled_day (date DATE);";

/// The days of which an answer was refused.
const REFUSED: &str = "CREATE TABLE IF NOT EXISTS work.refused_day (date DATE);";

/// The days that were rewritten.
const REWRITTEN: &str = "CREATE TABLE IF NOT EXISTS work.rewritten_day (date DATE);";

/// How many issues of a day were rewritten.
const REWRITTEN_ISSUES: &str =
    "CREATE TABLE IF NOT EXISTS work.rewritten_issues (date DATE, issues UBIGINT);";

/// The days that were odd and that the user has accepted.
const ODD: &str = "CREATE TABLE IF NOT EXISTS work.accepted_odd_day (date DATE);";

/// The days that the user has accepted by their date.
const ACCEPTED: &str = "CREATE TABLE IF NOT EXISTS work.accepted_day (date DATE);";

/// The lists of issues that were not believed, and how many issues each had.
const DOUBTED: &str = "CREATE TABLE IF NOT EXISTS work.doubted_list (date DATE, issues UBIGINT);";

/// The days that have rows which readers must not see.
const HIDDEN: &str = "SELECT date::VARCHAR FROM (SELECT DISTINCT date FROM work.daily
    EXCEPT SELECT date FROM work.published_day) ORDER BY 1";

/// Makes the tables where the database does not have them, with what the file of an earlier version
/// says; tells why that could not be used. The file goes once it is taken over.
pub(super) fn prepare(
    connection: &Connection,
    data: &DataDir,
    old_file: &Path,
) -> Result<Option<String>, StoreError> {
    let failed = |error| StoreError::database("prepare for what is fetched")(error);
    let mut note = None;
    for table in
        [LEFT_OUT, DOUBTED, SETTLED, REFUSED, REWRITTEN, ODD, REWRITTEN_ISSUES, ACCEPTED, BEGINS]
    {
        connection.execute_batch(table).map_err(failed)?;
    }
    if !has_table(connection, "published_day").map_err(failed)? {
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        transaction.execute_batch(DAYS).map_err(failed)?;
        match DatasetStatus::load(data) {
            Ok(told) => take_over(&transaction, &told.unwrap_or_default()).map_err(failed)?,
            Err(error) => {
                note = Some(format!(
                    "which days were not complete, refused or rewritten is not known: {error}"
                ));
            }
        }
        transaction.commit().map_err(failed)?;
    }
    if !has_table(connection, "fetch_state").map_err(failed)? {
        let state = old_state::read(old_file).unwrap_or_else(|what| {
            let file = old_file.display();
            let why = format!("{file} is not used: {what}; days are fetched anew");
            note = Some(note.take().map_or(why.clone(), |note| format!("{note}; {why}")));
            // It may have said that rows are not published.
            Some(FetchState { unpublished_from: Some(JstDate::MIN), ..FetchState::default() })
        });
        // Rolled back when it is dropped.
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        transaction.execute_batch(TABLES).map_err(failed)?;
        let days = read(&transaction).map_err(failed)?;
        let FetchState { complete, forced, incomplete, refused, rewritten, left_out, .. } = days;
        let old = state.unwrap_or_default();
        let state =
            FetchState { complete, forced, incomplete, refused, rewritten, left_out, ..old };
        write(&transaction, &state).map_err(failed)?;
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

/// Takes over what readers were told: days that are not complete, those of which an answer was refused or
/// an odd row left out, and those that were rewritten.
fn take_over(connection: &Connection, told: &DatasetStatus) -> duckdb::Result<()> {
    for doubt in &told.doubts {
        let Ok(date) = doubt.date.parse::<JstDate>() else { continue };
        let table = match doubt.kind.as_str() {
            kind if kind == DoubtKind::Refused.as_str() => "refused_day",
            kind if kind == DoubtKind::Rewritten.as_str() => "rewritten_day",
            kind if kind == DoubtKind::LeftOut.as_str() => "left_out_day",
            _ if doubt.what == REFUSED_BEFORE => "refused_day",
            _ => continue,
        };
        let known = format!("INSERT INTO work.{table} VALUES (?)");
        connection.execute(&known, params![Value::Date32(date.to_epoch_days())])?;
    }
    for day in &told.incomplete {
        let Ok(date) = day.date.parse::<JstDate>() else { continue };
        let date = Value::Date32(date.to_epoch_days());
        let unfinished = "UPDATE work.published_day SET is_complete = false WHERE date = ?";
        connection.execute(unfinished, params![date])?;
        let known = "INSERT INTO work.incomplete_day VALUES (?, ?)";
        connection.execute(known, params![date, day.expected.unwrap_or(0)])?;
    }
    Ok(())
}

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

/// Lets readers see days, which are complete, inside of the transaction that the connection is in.
pub(super) fn publish_days(
    connection: &Connection,
    dates: &BTreeSet<JstDate>,
) -> duckdb::Result<()> {
    let mut state = read(connection)?;
    state.complete.extend(dates);
    write(connection, &state)
}

/// What is noted.
pub(super) fn read(connection: &Connection) -> duckdb::Result<FetchState> {
    let days = |has_trading: bool| {
        let days = "SELECT date FROM work.fetched_day WHERE has_trading = ";
        dates(connection, &format!("{days}{has_trading}"))
    };
    let published = |is_complete: bool| {
        let days = "SELECT date FROM work.published_day WHERE is_complete = ";
        dates(connection, &format!("{days}{is_complete}"))
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
        left_out: dates(connection, "SELECT date FROM work.left_out_day")?,
        closed: days(false)?,
        complete: published(true)?,
        forced: published(false)?,
        settled: dates(connection, "SELECT date FROM work.settled_day")?,
        accepted: dates(connection, "SELECT date FROM work.accepted_day")?,
        refused: dates(connection, "SELECT date FROM work.refused_day")?,
        odd: dates(connection, "SELECT date FROM work.accepted_odd_day")?,
        rewritten: dates(connection, "SELECT date FROM work.rewritten_day")?,
        rewritten_issues: counted(connection, "SELECT date, issues FROM work.rewritten_issues")?,
        begins: dates(connection, "SELECT date FROM work.first_of_standard")?,
        incomplete: counted(connection, "SELECT date, expected FROM work.incomplete_day")?,
        doubted: counted(connection, "SELECT date, issues FROM work.doubted_list")?,
        unpublished_from: date(&unpublished_from)?,
        split,
        pass: pass.transpose()?,
    })
}

/// Dates, each with a count.
fn counted(connection: &Connection, sql: &str) -> duckdb::Result<BTreeMap<JstDate, u64>> {
    let mut days = connection.prepare(sql)?;
    let days = days.query_map([], |row| Ok((row.get::<_, Value>(0)?, row.get(1)?)))?;
    let days = days.map(|day| {
        let (found, count) = day?;
        Ok((date(&found)?.ok_or(duckdb::Error::InvalidQuery)?, count))
    });
    days.collect()
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
        "DELETE FROM work.fetched_day; DELETE FROM work.published_day; DELETE FROM work.left_out_day;
         DELETE FROM work.incomplete_day; DELETE FROM work.doubted_list;
         DELETE FROM work.first_of_standard; DELETE FROM work.settled_day; DELETE FROM work.refused_day; DELETE FROM work.accepted_day;
         DELETE FROM work.rewritten_day; DELETE FROM work.rewritten_issues;
         DELETE FROM work.accepted_odd_day;
         DELETE FROM work.pass_date; DELETE FROM work.pass_code",
    )?;
    let days = told_apart(&state.fetched, &state.closed, "has_trading");
    put(connection, "fetched_day", days)?;
    put(connection, "left_out_day", vec![("date", column_of(&state.left_out))])?;
    let days = told_apart(&state.complete, &state.forced, "is_complete");
    put(connection, "published_day", days)?;
    put(connection, "first_of_standard", vec![("date", column_of(&state.begins))])?;
    put(connection, "settled_day", vec![("date", column_of(&state.settled))])?;
    put(connection, "accepted_day", vec![("date", column_of(&state.accepted))])?;
    put(connection, "refused_day", vec![("date", column_of(&state.refused))])?;
    put(connection, "rewritten_day", vec![("date", column_of(&state.rewritten))])?;
    put(connection, "accepted_odd_day", vec![("date", column_of(&state.odd))])?;
    put(connection, "rewritten_issues", with_counts(&state.rewritten_issues, "issues"))?;
    put(connection, "incomplete_day", with_counts(&state.incomplete, "expected"))?;
    put(connection, "doubted_list", with_counts(&state.doubted, "issues"))?;
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

/// The columns of two sets of dates in one table.
fn told_apart<'a>(
    yes: &BTreeSet<JstDate>,
    no: &BTreeSet<JstDate>,
    name: &'a str,
) -> Vec<(&'a str, ArrayRef)> {
    let days = [(yes, true), (no, false)];
    let days = days.into_iter().flat_map(|(days, said)| days.iter().map(move |day| (day, said)));
    let (days, said): (Vec<&JstDate>, Vec<bool>) = days.unzip();
    vec![("date", column_of(days)), (name, Arc::new(BooleanArray::from(said)))]
}

/// The columns of dates with a count each.
fn with_counts<'a>(days: &BTreeMap<JstDate, u64>, name: &'a str) -> Vec<(&'a str, ArrayRef)> {
    let counts: ArrayRef = Arc::new(days.values().copied().collect::<UInt64Array>());
    vec![("date", column_of(days.keys())), (name, counts)]
}

fn column_of<'a>(dates: impl IntoIterator<Item = &'a JstDate>) -> ArrayRef {
    let days = dates.into_iter().map(|date| Some(date.to_epoch_days()));
    Arc::new(days.collect::<Date32Array>())
}

fn put(connection: &Connection, table: &str, columns: Vec<(&str, ArrayRef)>) -> duckdb::Result<()> {
    let batch = rows(columns)?;
    if batch.num_rows() == 0 { Ok(()) } else { append(connection, ("work", table), [batch]) }
}
