//! Rows into the job's own database.

use std::collections::BTreeSet;

use domain::threads::in_parallel;
use domain::{JstDate, TsNanos};
use duckdb::arrow::array::RecordBatch;
use duckdb::{Connection, Row};
use pricestore::sql::{append, column, quoted};

use super::columns::columns;
use super::error::StoreError;
use super::fetch_tables;
use super::limits::{LOAD_ROWS_MIN, LOAD_THREADS, ROWS_AT_ONCE_MAX};
use super::schema::{definitions, names};
use crate::fetch_state::FetchState;
use crate::limits::{CORRECTIONS_KEPT, REPORT_CORRECTIONS_MAX};
use crate::price_store::{Applied, Correction, Part};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// Columns whose values are compared; where a row came from is none of them.
const COMPARED: [&str; 7] = ["open", "high", "low", "close", "volume", "turnover", FACTOR];
/// The column that a row may leave open (rule `factor`).
const FACTOR: &str = "adjustment_factor";

/// Inserts, replaces and removes rows and notes the state of fetching, all in one transaction. Which
/// stored rows are left alone is said by the rules `better`, `factor` and `taken_back`. Without a state the days of
/// the rows are complete.
pub(super) fn commit(
    connection: &Connection,
    parts: &[Part<'_>],
    state: Option<&FetchState>,
    at: TsNanos,
) -> Result<Vec<Applied>, StoreError> {
    let failed = |error| StoreError::database("store rows")(error);
    let is_outside_of_runs = state.is_none();
    // Rolled back when it is dropped.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let applied = parts.iter().map(|part| {
        let applied = apply(&transaction, part.rows, at)?;
        take_back(&transaction, part.gone, applied, at).map_err(failed)
    });
    let applied = applied.collect::<Result<Vec<_>, StoreError>>()?;
    let noting = |error| StoreError::database("note what was fetched")(error);
    let before = fetch_tables::read(&transaction).map_err(noting)?;
    let changed: BTreeSet<JstDate> = applied.iter().flat_map(|part| &part.dates).copied().collect();
    let mut state = state.unwrap_or(&before).clone();
    if is_outside_of_runs {
        state.complete.extend(&changed);
    }
    fetch_tables::write(&transaction, &state).map_err(noting)?;
    let same_days = (&state.complete, &state.accepted) == (&before.complete, &before.accepted);
    if !same_days || changed.iter().any(|date| state.is_published(*date)) {
        // A new state of what readers may see.
        let next = "UPDATE work.state SET generation = generation + 1";
        transaction.execute_batch(next).map_err(failed)?;
    }
    transaction.commit().map_err(failed)?;
    Ok(applied)
}

/// Inserts or replaces rows, inside of a transaction.
fn apply(connection: &Connection, rows: &[DailyRow], at: TsNanos) -> Result<Applied, StoreError> {
    if rows.len() > ROWS_AT_ONCE_MAX {
        return Err(StoreError::TooManyRows { asked: rows.len(), max: ROWS_AT_ONCE_MAX });
    }
    let Some(extent) = look_at(rows)? else { return Ok(Applied::default()) };
    let failed = |error| StoreError::database("store rows")(error);
    let received = receive(rows).map_err(failed)?;
    let old = stored_between(&extent);
    let is_new = format!("SELECT count(*) = 0 FROM ({old} LIMIT 1)");
    if connection.query_row(&is_new, [], |row| row.get(0)).map_err(failed)? {
        // New days or new issues: there is nothing to compare with.
        append(connection, ("work", "daily"), received).map_err(failed)?;
        let inserted = rows.len() as u64;
        let dates = rows.iter().map(|row| row.date).collect();
        return Ok(Applied { inserted, dates, ..Applied::default() });
    }
    let outcome = compare(connection, received, &old, at).and_then(|applied| {
        let replaced = applied.changed + applied.confirmed;
        if applied.inserted + replaced > 0 {
            put_in(connection, replaced > 0)?;
        }
        Ok(applied)
    });
    let dropped = "DROP TABLE IF EXISTS temp.incoming; DROP TABLE IF EXISTS temp.judged";
    let dropped = connection.execute_batch(dropped);
    outcome.and_then(|applied| dropped.map(|()| applied)).map_err(failed)
}

/// First and last of the dates and codes of rows.
struct Extent {
    dates: (JstDate, JstDate),
    codes: (IssueCode, IssueCode),
}

/// Checks the rows, in one pass over what may be much memory; none have no extent.
fn look_at(rows: &[DailyRow]) -> Result<Option<Extent>, StoreError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let (mut dates, mut codes) = ((first.date, first.date), (first.code, first.code));
    let (mut by_code, mut by_date) = (true, true);
    let mut before: Option<&DailyRow> = None;
    for row in rows {
        check(row)?;
        dates = (dates.0.min(row.date), dates.1.max(row.date));
        codes = (codes.0.min(row.code), codes.1.max(row.code));
        if let Some(before) = before {
            by_code &= (before.code, before.date) < (row.code, row.date);
            by_date &= (before.date, before.code) < (row.date, row.code);
        }
        before = Some(row);
    }
    // Rows in order have no two for one issue and day.
    if !by_code && !by_date {
        check_once(rows)?;
    }
    Ok(Some(Extent { dates, codes }))
}

fn check(row: &DailyRow) -> Result<(), StoreError> {
    match row.adjustment_factor {
        Some(factor) if !(factor.is_finite() && factor > 0.0) => {
            let what = format!("its adjustment factor is {factor}");
            Err(StoreError::Row { code: row.code, date: row.date, what })
        }
        _ => Ok(()),
    }
}

fn check_once(rows: &[DailyRow]) -> Result<(), StoreError> {
    let mut keys: Vec<_> = rows.iter().map(|row| (row.code, row.date)).collect();
    keys.sort_unstable();
    match keys.array_windows().find(|[one, next]| one == next) {
        Some(&[(code, date), _]) => {
            Err(StoreError::Row { code, date, what: "it was given twice".to_owned() })
        }
        None => Ok(()),
    }
}

/// The rows as columns; a thread makes each part of many rows.
fn receive(rows: &[DailyRow]) -> duckdb::Result<Vec<RecordBatch>> {
    let part = rows.len().div_ceil(LOAD_THREADS).max(LOAD_ROWS_MIN);
    let made = in_parallel(rows.chunks(part).map(|rows| move || columns(rows)));
    let made = made.into_iter().map(|part| match part {
        Ok(columns) => columns,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    made.collect()
}

/// The stored rows that may have the same dates and codes. Stored codes have the order of codes.
fn stored_between(Extent { dates, codes }: &Extent) -> String {
    format!(
        "FROM work.daily WHERE date BETWEEN DATE '{}' AND DATE '{}' AND code BETWEEN {} AND {}",
        dates.0,
        dates.1,
        quoted(codes.0.as_str()),
        quoted(codes.1.as_str())
    )
}

/// What was received, in `temp.incoming`.
fn take_in(connection: &Connection, received: Vec<RecordBatch>) -> duckdb::Result<()> {
    // A transaction may change one database and temporary tables.
    let create = format!("CREATE OR REPLACE TEMP TABLE incoming ({})", definitions());
    connection.execute_batch(&create)?;
    append(connection, ("temp", "incoming"), received)
}

/// Compares what was received with stored rows; keeps those that are put in, and what each is, in
/// `temp.judged`.
fn compare(
    connection: &Connection,
    received: Vec<RecordBatch>,
    old: &str,
    at: TsNanos,
) -> duckdb::Result<Applied> {
    take_in(connection, received)?;
    let same = COMPARED.map(|name| match name {
        // Who tells no factor says nothing against one (rule `factor`).
        FACTOR => format!("coalesce(incoming.{name} = old.{name}, incoming.{name} IS NULL)"),
        name => format!("old.{name} IS NOT DISTINCT FROM incoming.{name}"),
    });
    let known = format!("coalesce(incoming.{FACTOR}, old.{FACTOR}) AS {FACTOR}");
    let old_values = COMPARED.map(|name| format!("old.{name} AS old_{name}")).join(", ");
    connection.execute_batch(&format!(
        "CREATE OR REPLACE TEMP TABLE judged AS
           SELECT *, CASE WHEN NOT known THEN 'inserted' WHEN new_rank < old_rank THEN 'kept'
               WHEN is_same THEN 'confirmed' ELSE 'changed' END AS verdict
             FROM (SELECT incoming.* REPLACE ({known}), old.code IS NOT NULL AS known,
                 old.source AS old_source,
                 {} AS new_rank, {} AS old_rank, {} AS is_same, {old_values}
               FROM temp.incoming LEFT JOIN ({old}) old
                 ON old.date = incoming.date AND old.code = incoming.code)
             WHERE NOT (known AND is_same AND new_rank <= old_rank)",
        rank_of("incoming.source"),
        rank_of("old.source"),
        same.join(" AND ")
    ))?;
    // What a better source gave stays as a whole, whatever a lesser one has more (rule `better`).
    let kept = "DELETE FROM temp.judged WHERE verdict = 'kept'";
    let kept = connection.execute(kept, [])? as u64;
    let dates: Vec<String> = column(connection, "SELECT DISTINCT date::VARCHAR FROM temp.judged")?;
    let dates = dates.iter().map(|date| date.parse().map_err(|_| duckdb::Error::InvalidQuery));
    let dates = dates.collect::<duckdb::Result<BTreeSet<JstDate>>>()?;
    let corrections = corrections(connection)?;
    let changed = "FROM temp.judged WHERE verdict = 'changed'";
    log(connection, at, changed, ["old_source", "source"], |name| {
        [format!("old_{name}"), name.to_owned()]
    })?;
    let counts = ["inserted", "changed", "confirmed"]
        .map(|verdict| format!("count(*) FILTER (verdict = '{verdict}')"));
    let counts = format!(
        "SELECT {}, (SELECT count(*) FROM temp.incoming) FROM temp.judged",
        counts.join(", ")
    );
    connection.query_row(&counts, [], |row| {
        let (inserted, changed, confirmed): (u64, u64, u64) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let unchanged = row.get::<_, u64>(3)? - inserted - changed - confirmed - kept;
        let removed = 0;
        Ok(Applied { inserted, changed, confirmed, unchanged, kept, removed, corrections, dates })
    })
}

/// The rank of a source by its stored word. What does not tell where it came from counts as the
/// vendor's.
fn rank_of(source: &str) -> String {
    let cases: Vec<String> = SourceKind::ALL
        .iter()
        .map(|kind| format!("WHEN {} THEN {}", quoted(kind.as_str()), kind.rank()))
        .collect();
    format!("CASE {source} {} ELSE {} END", cases.join(" "), SourceKind::Vendor.rank())
}

/// The first of the rows that get other values.
fn corrections(connection: &Connection) -> duckdb::Result<Vec<Correction>> {
    let values = COMPARED.map(|column| format!("old_{column}, {column}")).join(", ");
    let rows = format!(
        "SELECT date::VARCHAR, code, old_source, {values} FROM temp.judged WHERE verdict = 'changed'
           ORDER BY date, code LIMIT {REPORT_CORRECTIONS_MAX}"
    );
    connection.prepare(&rows)?.query_map([], |row| correction(row, false))?.collect()
}

/// Logs each value of these rows that changes, with the old one and the new one and the sources of both, given as SQL
/// (rule `corrections`). The oldest entries go.
fn log(
    connection: &Connection,
    at: TsNanos,
    rows: &str,
    [old_source, new_source]: [&str; 2],
    values: impl Fn(&str) -> [String; 2],
) -> duckdb::Result<()> {
    let changes = COMPARED.map(|name| {
        let [old, new] = values(name);
        format!("{{name: '{name}', old: {old}, new: {new}}}")
    });
    connection.execute_batch(&format!(
        "INSERT INTO work.correction
           SELECT make_timestamp_ns({}), date, code, change.name, change.old, change.new, old_source, new_source
             FROM (SELECT date, code, {old_source} AS old_source, {new_source} AS new_source,
                 unnest([{}]) AS change {rows})
             WHERE change.old IS DISTINCT FROM change.new ORDER BY date, code, change.name",
        at.nanos(),
        changes.join(", ")
    ))?;
    let count = "SELECT count(*) FROM work.correction";
    let count: u64 = connection.query_row(count, [], |row| row.get(0))?;
    let Some(too_many) = count.checked_sub(CORRECTIONS_KEPT).filter(|more| *more > 0) else {
        return Ok(());
    };
    // Rows of this transaction have numbers far above the others: only their order tells the oldest.
    connection.execute_batch(&format!(
        "DELETE FROM work.correction WHERE rowid IN
           (SELECT rowid FROM work.correction ORDER BY rowid LIMIT {too_many})"
    ))
}

/// A row that gets other values, or none: date, code, source and each value, old and new.
fn correction(row: &Row<'_>, taken_back: bool) -> duckdb::Result<Correction> {
    let (date, code): (String, String) = (row.get(0)?, row.get(1)?);
    let mut values = Vec::new();
    for (place, column) in COMPARED.into_iter().enumerate() {
        let (old, new): (Option<f64>, Option<f64>) =
            (row.get(3 + 2 * place)?, row.get(4 + 2 * place)?);
        if old != new {
            values.push((column, old, new));
        }
    }
    Ok(Correction {
        date: date.parse().map_err(|_| duckdb::Error::InvalidQuery)?,
        code: code.parse().map_err(|_| duckdb::Error::InvalidQuery)?,
        before: row.get(2)?,
        taken_back,
        values,
    })
}

/// Removes rows of the vendor or its files that it took back (rule `taken_back`); those of others stay.
fn take_back(
    connection: &Connection,
    gone: &[(JstDate, IssueCode)],
    applied: Applied,
    at: TsNanos,
) -> duckdb::Result<Applied> {
    if gone.is_empty() {
        return Ok(applied);
    }
    let rows: Vec<String> = gone
        .iter()
        .map(|(date, code)| format!("(DATE '{date}', {})", quoted(code.as_str())))
        .collect();
    let taken = format!(
        "FROM work.daily WHERE (date, code) IN ({}) AND source IN ({})",
        rows.join(", "),
        vendor_sources()
    );
    let values = COMPARED.map(|column| format!("{column}, NULL::DOUBLE")).join(", ");
    let told = format!(
        "SELECT date::VARCHAR, code, source, {values} {taken} ORDER BY date, code
           LIMIT {REPORT_CORRECTIONS_MAX}"
    );
    let mut told = connection.prepare(&told)?;
    let told = told.query_map([], |row| correction(row, true))?;
    let told = told.collect::<duckdb::Result<Vec<Correction>>>()?;
    log(connection, at, &taken, ["source", "'vendor'"], |name| {
        [name.to_owned(), "NULL::DOUBLE".to_owned()]
    })?;
    let removed = connection.execute(&format!("DELETE {taken}"), [])? as u64;
    let Applied { mut corrections, mut dates, .. } = applied;
    corrections.extend(told);
    dates.extend(gone.iter().map(|(date, _)| *date).filter(|_| removed > 0));
    Ok(Applied { removed, corrections, dates, ..applied })
}

/// The words of sources whose rows are the vendor's.
pub(super) fn vendor_sources() -> String {
    let rank = SourceKind::Vendor.rank();
    let sources = SourceKind::ALL.into_iter().filter(|kind| kind.rank() == rank);
    sources.map(|kind| quoted(kind.as_str())).collect::<Vec<_>>().join(", ")
}

/// Puts the judged rows in, where some are there already in the place of those.
fn put_in(connection: &Connection, replaces: bool) -> duckdb::Result<()> {
    if replaces {
        connection.execute_batch(
            "DELETE FROM work.daily USING temp.judged WHERE judged.known
               AND daily.date = judged.date AND daily.code = judged.code",
        )?;
    }
    connection.execute_batch(&format!("INSERT INTO work.daily SELECT {} FROM temp.judged", names()))
}
