//! Rows into the job's own database.

use chrono::Datelike;
use domain::JstDate;
use domain::price::UNITS_PER_YEN;
use duckdb::types::Value;
use duckdb::{Connection, params};

use super::error::StoreError;
use super::limits::ROWS_AT_ONCE_MAX;
use super::schema::{definitions, names};
use crate::row::DailyRow;
use crate::shelf::Applied;

/// Days from 0001-01-01 to 1970-01-01.
const UNIX_EPOCH_DAY: i32 = 719_163;

/// Columns whose values are compared; where a row came from is none of them.
const COMPARED: [&str; 7] =
    ["open", "high", "low", "close", "volume", "turnover", "adjustment_factor"];

/// Inserts or replaces rows in one transaction. Rows with the values that are stored already are
/// left alone.
pub(super) fn apply(connection: &Connection, rows: &[DailyRow]) -> Result<Applied, StoreError> {
    if rows.len() > ROWS_AT_ONCE_MAX {
        return Err(StoreError::TooManyRows { asked: rows.len(), max: ROWS_AT_ONCE_MAX });
    }
    rows.iter().try_for_each(check)?;
    refuse_twice(rows)?;
    let Some((first, last)) = span(rows) else { return Ok(Applied::default()) };
    let failed = |error| StoreError::database("store rows")(error);
    bring_in(connection, rows).map_err(failed)?;
    let outcome = judge(connection, first, last).map_err(failed).and_then(|applied| {
        if applied.inserted + applied.changed > 0 {
            store(connection, &applied).map_err(failed)?;
        }
        Ok(applied)
    });
    // Memory only; the next call makes them anew.
    let dropped = "DROP TABLE IF EXISTS temp.incoming; DROP TABLE IF EXISTS temp.judged";
    let _ = connection.execute_batch(dropped);
    outcome
}

fn check(row: &DailyRow) -> Result<(), StoreError> {
    let wrong = |what: String| StoreError::Row { code: row.code, date: row.date, what };
    match row.adjustment_factor {
        Some(factor) if !(factor.is_finite() && factor > 0.0) => {
            Err(wrong(format!("its adjustment factor is {factor}")))
        }
        _ => Ok(()),
    }
}

fn refuse_twice(rows: &[DailyRow]) -> Result<(), StoreError> {
    let mut keys: Vec<_> = rows.iter().map(|row| (row.code, row.date)).collect();
    keys.sort_unstable();
    match keys.array_windows().find(|[one, next]| one == next) {
        Some(&[(code, date), _]) => {
            Err(StoreError::Row { code, date, what: "it was given twice".to_owned() })
        }
        None => Ok(()),
    }
}

fn span(rows: &[DailyRow]) -> Option<(JstDate, JstDate)> {
    let dates = || rows.iter().map(|row| row.date);
    Some((dates().min()?, dates().max()?))
}

/// Yen as the databases hold them.
#[expect(clippy::cast_precision_loss, reason = "the database's edge: columns are DOUBLE")]
fn yen(units: i64) -> f64 {
    units as f64 / UNITS_PER_YEN as f64
}

#[expect(clippy::cast_precision_loss, reason = "the database's edge: columns are DOUBLE")]
fn bring_in(connection: &Connection, rows: &[DailyRow]) -> duckdb::Result<()> {
    let create = format!("CREATE OR REPLACE TEMP TABLE incoming ({})", definitions());
    connection.execute_batch(&create)?;
    let mut appender = connection.appender_to_catalog_and_db("incoming", "temp", "main")?;
    for row in rows {
        let price = |price: Option<domain::Price>| price.map(|price| yen(price.units()));
        appender.append_row(params![
            Value::Date32(row.date.num_days_from_ce() - UNIX_EPOCH_DAY),
            row.code.as_str(),
            price(row.open),
            price(row.high),
            price(row.low),
            price(row.close),
            row.volume.map(|shares| shares as f64),
            row.turnover.map(|money| yen(money.units())),
            row.adjustment_factor,
            row.source.as_str(),
        ])?;
    }
    appender.flush()
}

/// Compares the rows with the stored ones; keeps those that are new or different.
fn judge(connection: &Connection, first: JstDate, last: JstDate) -> duckdb::Result<Applied> {
    let same: Vec<String> = COMPARED
        .iter()
        .map(|column| format!("old.{column} IS NOT DISTINCT FROM incoming.{column}"))
        .collect();
    connection.execute_batch(&format!(
        "CREATE OR REPLACE TEMP TABLE judged AS
           SELECT incoming.*, old.code IS NOT NULL AS known
             FROM temp.incoming LEFT JOIN (
               FROM work.daily WHERE date BETWEEN DATE '{first}' AND DATE '{last}') old
             ON old.date = incoming.date AND old.code = incoming.code
             WHERE old.code IS NULL OR NOT ({})",
        same.join(" AND ")
    ))?;
    connection.query_row(
        "SELECT count(*) FILTER (NOT known), count(*) FILTER (known), min(date)::VARCHAR,
             (SELECT count(*) FROM temp.incoming) FROM temp.judged",
        [],
        |row| {
            let (inserted, changed, all): (u64, u64, u64) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let first: Option<String> = row.get(2)?;
            let unchanged = all - inserted - changed;
            let first_changed = first.and_then(|first| first.parse().ok());
            Ok(Applied { inserted, changed, unchanged, first_changed })
        },
    )
}

fn store(connection: &Connection, applied: &Applied) -> duckdb::Result<()> {
    // Rolled back when it is dropped.
    let transaction = connection.unchecked_transaction()?;
    if applied.changed > 0 {
        transaction.execute_batch(
            "DELETE FROM work.daily USING temp.judged WHERE judged.known
               AND daily.date = judged.date AND daily.code = judged.code",
        )?;
    }
    transaction.execute_batch(&format!(
        "INSERT INTO work.daily SELECT {} FROM temp.judged;
         UPDATE work.state SET generation = generation + 1",
        names()
    ))?;
    transaction.commit()
}
