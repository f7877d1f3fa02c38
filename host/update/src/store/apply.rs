//! Rows into the job's own database.

use domain::JstDate;
use duckdb::Connection;

use super::columns::columns;
use super::error::StoreError;
use super::limits::{APPEND_ROWS_MIN, APPEND_THREADS, ROWS_AT_ONCE_MAX};
use super::schema::{definitions, names, quoted};
use crate::row::DailyRow;
use crate::shelf::Applied;

/// Rows that are given to the database engine at a time.
const BATCH_ROWS: usize = 16_384;

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
    let outcome = judge(connection, rows, (first, last)).map_err(failed).and_then(|judged| {
        if judged.applied.inserted + judged.applied.changed > 0 {
            store(connection, &judged).map_err(failed)?;
        }
        Ok(judged.applied)
    });
    // Memory only; the next call makes them anew.
    let dropped = "DROP TABLE IF EXISTS memory.incoming; DROP TABLE IF EXISTS temp.judged";
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
    let key = |row: &DailyRow| (row.code, row.date);
    if rows.is_sorted_by(|one, next| key(one) < key(next)) {
        return Ok(());
    }
    let mut keys: Vec<_> = rows.iter().map(key).collect();
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

/// Brings the rows into a table in memory, with a thread for each part of many rows.
fn bring_in(connection: &Connection, rows: &[DailyRow]) -> duckdb::Result<()> {
    let create = format!("CREATE OR REPLACE TABLE memory.incoming ({})", definitions());
    connection.execute_batch(&create)?;
    let part = rows.len().div_ceil(APPEND_THREADS).max(APPEND_ROWS_MIN);
    let mut parts = Vec::new();
    for rows in rows.chunks(part) {
        parts.push((connection.try_clone()?, rows));
    }
    std::thread::scope(|scope| {
        let started: Vec<_> = parts
            .into_iter()
            .map(|(connection, rows)| scope.spawn(move || append(&connection, rows)))
            .collect();
        // All have ended before the first failure is told.
        let ended: Vec<_> = started.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().try_for_each(|end| match end {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn append(connection: &Connection, rows: &[DailyRow]) -> duckdb::Result<()> {
    let mut appender = connection.appender_to_catalog_and_db("incoming", "memory", "main")?;
    for rows in rows.chunks(BATCH_ROWS) {
        appender.append_record_batch(columns(rows)?)?;
    }
    appender.flush()
}

/// What is to be done with the rows.
struct Judged {
    applied: Applied,
    /// The table with the rows to insert.
    table: &'static str,
}

/// Compares the rows with the stored ones; keeps those that are new or different.
fn judge(
    connection: &Connection,
    rows: &[DailyRow],
    (first, last): (JstDate, JstDate),
) -> duckdb::Result<Judged> {
    let codes = || rows.iter().map(|row| row.code.as_str());
    let (low, high) = (codes().min().unwrap_or_default(), codes().max().unwrap_or_default());
    let old = format!(
        "FROM work.daily WHERE date BETWEEN DATE '{first}' AND DATE '{last}'
           AND code BETWEEN {} AND {}",
        quoted(low),
        quoted(high)
    );
    // New days or new issues: there is nothing to compare with.
    let is_empty = format!("SELECT count(*) = 0 FROM ({old} LIMIT 1)");
    let is_new = format!(
        "SELECT count(*) = 0 FROM (FROM memory.incoming SEMI JOIN ({old}) old
           ON old.date = incoming.date AND old.code = incoming.code LIMIT 1)"
    );
    let holds = |question: &str| connection.query_row(question, [], |row| row.get::<_, bool>(0));
    if holds(&is_empty)? || holds(&is_new)? {
        let inserted = rows.len() as u64;
        let applied = Applied { inserted, first_changed: Some(first), ..Applied::default() };
        return Ok(Judged { applied, table: "memory.incoming" });
    }
    compare(connection, &old).map(|applied| Judged { applied, table: "temp.judged" })
}

fn compare(connection: &Connection, old: &str) -> duckdb::Result<Applied> {
    let same: Vec<String> = COMPARED
        .iter()
        .map(|column| format!("old.{column} IS NOT DISTINCT FROM incoming.{column}"))
        .collect();
    connection.execute_batch(&format!(
        "CREATE OR REPLACE TEMP TABLE judged AS
           SELECT incoming.*, old.code IS NOT NULL AS known
             FROM memory.incoming LEFT JOIN ({old}) old
             ON old.date = incoming.date AND old.code = incoming.code
             WHERE old.code IS NULL OR NOT ({})",
        same.join(" AND ")
    ))?;
    connection.query_row(
        "SELECT count(*) FILTER (NOT known), count(*) FILTER (known), min(date)::VARCHAR,
             (SELECT count(*) FROM memory.incoming) FROM temp.judged",
        [],
        |row| {
            let (inserted, changed, all): (u64, u64, u64) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let first: Option<String> = row.get(2)?;
            let first = first.map(|first| first.parse()).transpose();
            let first_changed = first.map_err(|_| duckdb::Error::InvalidQuery)?;
            let unchanged = all - inserted - changed;
            Ok(Applied { inserted, changed, unchanged, first_changed })
        },
    )
}

fn store(connection: &Connection, judged: &Judged) -> duckdb::Result<()> {
    // Rolled back when it is dropped.
    let transaction = connection.unchecked_transaction()?;
    if judged.applied.changed > 0 {
        transaction.execute_batch(
            "DELETE FROM work.daily USING temp.judged WHERE judged.known
               AND daily.date = judged.date AND daily.code = judged.code",
        )?;
    }
    transaction.execute_batch(&format!(
        "INSERT INTO work.daily SELECT {} FROM {};
         UPDATE work.state SET generation = generation + 1",
        names(),
        judged.table
    ))?;
    transaction.commit()
}
