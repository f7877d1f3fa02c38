//! The reference statement over the combined database: what `--explain` shows, and the answer that the kernel
//! is held against. Its tables are made in memory for each query, of the days that it reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::clock::Stopwatch;
use duckdb::{Config, Connection};
use pricestore::sql;
use pricestore::{DataDir, PublishError, make_tables};

use super::statement::Statement;
use crate::error::RankError;
use crate::limits::REFERENCE_MEMORY;
use crate::query::{CancelToken, RankRow};

/// How often a running statement looks whether it was cancelled.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// What the statement gives.
#[derive(Debug, Default)]
pub(crate) struct ReferenceAnswer {
    /// Rows count days from the statement's first one.
    pub(crate) rows: Vec<RankRow>,
    /// DuckDB's plan, as text.
    pub(crate) plan: String,
    /// Time of the statement, without that of its tables.
    pub(crate) elapsed: Duration,
}

/// Runs the statement in an instance of DuckDB of its own, with so many threads, until it ends, is cancelled
/// or has taken so long.
pub(crate) fn answer(
    statement: &Statement<'_>,
    data: &DataDir,
    threads: usize,
    cancel: &CancelToken,
    timeout: Duration,
) -> Result<ReferenceAnswer, RankError> {
    let internal = |error| RankError::internal("starting the database engine", error);
    let connection = open(threads).map_err(internal)?;
    watched(&connection, cancel, timeout, || {
        prepare(&connection, data, statement.days_read())?;
        let (sql, watch) = (statement.sql(), Stopwatch::start());
        let rows = rows(&connection, &sql, statement.first_day as u32)?;
        let elapsed = watch.elapsed();
        let plan = connection.query_row(&format!("EXPLAIN {sql}"), [], |row| row.get(1))?;
        Ok(ReferenceAnswer { rows, plan, elapsed })
    })
}

pub(super) fn open(threads: usize) -> duckdb::Result<Connection> {
    let threads = i64::try_from(threads.max(1)).unwrap_or(1);
    let connection = sql::open(Config::default().threads(threads)?.max_memory(REFERENCE_MEMORY)?)?;
    connection.execute_batch("SET temp_directory = ''")?;
    Ok(connection)
}

/// Makes the tables. Then no file can be opened and no setting can be changed.
pub(super) fn prepare(
    connection: &Connection,
    data: &DataDir,
    days: (usize, usize),
) -> Result<(), PublishError> {
    make_tables(connection, data, days)?;
    let lock = "SET enable_external_access = false; SET lock_configuration = true";
    Ok(connection.execute_batch(lock)?)
}

fn rows(connection: &Connection, sql: &str, first_day: u32) -> duckdb::Result<Vec<RankRow>> {
    let mut prepared = connection.prepare(sql)?;
    let rows = prepared.query_map([], |row| {
        let day: u32 = row.get(0)?;
        let value: Option<f64> = row.get(3)?;
        Ok(RankRow {
            day: day.saturating_sub(first_day),
            rank: row.get(1)?,
            code: row.get(2)?,
            // Adding 0 makes a negative zero a plain one.
            sort_value: value.map(|value| value + 0.0),
            close: row.get(4)?,
            volume: row.get(5)?,
        })
    })?;
    rows.collect()
}

/// Does `work` while another thread watches for cancellation and the time limit.
fn watched<T>(
    connection: &Connection,
    cancel: &CancelToken,
    timeout: Duration,
    work: impl FnOnce() -> Result<T, PublishError>,
) -> Result<T, RankError> {
    // A statement that did not start yet cannot be interrupted.
    if cancel.is_cancelled() {
        return Err(RankError::Cancelled);
    }
    let watch = Stopwatch::start();
    let done = AtomicBool::new(false);
    let interrupt = connection.interrupt_handle();
    let outcome = std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new().spawn_scoped(scope, || {
            while !done.load(Ordering::Acquire) {
                if cancel.is_cancelled() || watch.elapsed() >= timeout {
                    interrupt.interrupt();
                }
                std::thread::park_timeout(WATCH_INTERVAL);
            }
        });
        let starting = |error| RankError::internal("starting to watch the statement", error);
        let watcher = watcher.map_err(starting)?;
        let outcome = work();
        done.store(true, Ordering::Release);
        watcher.thread().unpark();
        Ok::<_, RankError>(outcome)
    })?;
    outcome.map_err(|error| {
        if cancel.is_cancelled() {
            RankError::Cancelled
        } else if watch.elapsed() >= timeout {
            RankError::Timeout { limit: timeout }
        } else {
            RankError::internal("running the reference statement", error)
        }
    })
}
