//! A snapshot opened by DuckDB: the statement behind `--explain`, and the answer that the kernel
//! is held against.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duckdb::{Config, Connection};
use pricestore::rows_are_in_order;
use pricestore::sql::{self, must_be_database, quoted_path};

use super::statement::Statement;
use crate::error::RankError;
use crate::limits::REFERENCE_MEMORY;
use crate::query::{CancelToken, RankRow};

/// How often a running statement looks whether it was cancelled.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// One snapshot in a DuckDB instance of its own; it goes when this goes.
pub(crate) struct Reference {
    connection: Connection,
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reference")
    }
}

impl Reference {
    /// Attaches the snapshot's file read-only and checks the rule that a row's number is day times
    /// codes plus code, on which the positional join stands.
    pub(crate) fn open(path: &Path, number: u64, threads: usize) -> Result<Self, RankError> {
        let internal = |error| RankError::internal("opening the snapshot", error);
        let config = Config::default()
            .threads(i64::try_from(threads.max(1)).unwrap_or(1))
            .and_then(|config| config.max_memory(REFERENCE_MEMORY))
            .map_err(internal)?;
        let connection = sql::open(config).map_err(internal)?;
        must_be_database(path)
            .map_err(|error| RankError::internal("opening the snapshot", error))?;
        let path = quoted_path(path);
        // Once the file is attached, nothing else can be opened and no setting can be changed.
        let prepare = format!(
            "SET temp_directory = ''; ATTACH {path} AS snapshot (READ_ONLY); USE snapshot;
             SET enable_external_access = false; SET lock_configuration = true;"
        );
        connection.execute_batch(&prepare).map_err(internal)?;
        if !rows_are_in_order(&connection).map_err(internal)? {
            let what = "the rows of its grid table are not in order".to_owned();
            return Err(RankError::Damaged { number, what });
        }
        Ok(Self { connection })
    }

    /// Runs the statement; rows count days from its first one.
    pub(crate) fn rows(
        &self,
        statement: &Statement<'_>,
        cancel: &CancelToken,
        timeout: Duration,
    ) -> Result<Vec<RankRow>, RankError> {
        self.watched(cancel, timeout, |connection| {
            let mut prepared = connection.prepare(&statement.sql())?;
            let mut rows = prepared.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let day: u32 = row.get(0)?;
                let value: Option<f64> = row.get(3)?;
                found.push(RankRow {
                    day: day.saturating_sub(statement.first_day as u32),
                    rank: row.get(1)?,
                    code: row.get(2)?,
                    // Adding 0 makes a negative zero a plain one.
                    sort_value: value.map(|value| value + 0.0),
                    close: row.get(4)?,
                    volume: row.get(5)?,
                });
            }
            Ok(found)
        })
    }

    /// DuckDB's plan of the statement, as text.
    pub(crate) fn plan(&self, statement: &Statement<'_>) -> Result<String, RankError> {
        let sql = format!("EXPLAIN {}", statement.sql());
        let plan = self.connection.query_row(&sql, [], |row| row.get::<_, String>(1));
        plan.map_err(|error| RankError::internal("planning the query", error))
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs `work` while another thread watches for cancellation and the time limit.
    fn watched<T>(
        &self,
        cancel: &CancelToken,
        timeout: Duration,
        work: impl FnOnce(&Connection) -> duckdb::Result<T>,
    ) -> Result<T, RankError> {
        // A statement that did not start yet cannot be interrupted.
        if cancel.is_cancelled() {
            return Err(RankError::Cancelled);
        }
        let watch = domain::clock::Stopwatch::start();
        let done = AtomicBool::new(false);
        let interrupt = self.connection.interrupt_handle();
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
            let outcome = work(&self.connection);
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
}
