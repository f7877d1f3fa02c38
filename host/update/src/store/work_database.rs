//! The one writer of a data directory.

use std::fmt;
use std::fs;

use domain::JstDate;
use duckdb::Connection;
use pricestore::sql::column;
use pricestore::{DataDir, Published};

use super::durable::remove_unfinished;
use super::error::StoreError;
use super::lock::JobLock;
use super::opening::{self, Opening};
use super::paths::StorePaths;
use super::split::Removals;
use super::{apply, fetch_tables, publish, split};
use crate::fetch_state::FetchState;
use crate::price_store::{Applied, Known, PriceStore, Split, StoreProgress};
use crate::row::{DailyRow, IssueCode};

/// The one writer of a data directory; others are refused as long as it lives.
pub struct WorkDatabase {
    // Closed before the lock is given back.
    connection: Connection,
    paths: StorePaths,
    opening: Opening,
    /// Why what an earlier version had fetched is not known, until it is told.
    note: Option<String>,
    removals: Removals,
    _lock: JobLock,
}

impl fmt::Debug for WorkDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkDatabase").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl WorkDatabase {
    /// Takes the data directory, removes what a killed job has left, and opens the job's own
    /// database: the one of the last job, else a copy of the published combined database, else an
    /// empty one. [`WorkDatabase::opening`] tells which.
    ///
    /// # Errors
    /// When another job runs, or the folder or a database in it cannot be used.
    pub fn open(data: &DataDir) -> Result<Self, StoreError> {
        let paths = StorePaths::new(data);
        let folders = [paths.work_folder(), paths.daily_folder()];
        for folder in &folders {
            fs::create_dir_all(folder).map_err(StoreError::io("make the folder", folder))?;
        }
        let lock = JobLock::take(&paths)?;
        for folder in &folders {
            remove_unfinished(folder)?;
        }
        pricestore::remove_leftovers(data)?;
        let (connection, opening) = opening::open(&paths)?;
        tracing::debug!(folder = %data.path().display(), "the data directory is taken");
        tracing::info!(%opening, "the data directory is open");
        let note = fetch_tables::prepare(&connection, &paths.old_state())?;
        Ok(Self { connection, paths, opening, note, removals: Removals::Few, _lock: lock })
    }

    /// How many files of issues that are gone may be removed; [`Removals::Few`] unless it is said.
    #[must_use]
    pub fn removing(mut self, removals: Removals) -> Self {
        self.removals = removals;
        self
    }

    /// Where the job's own database came from; for the job's report.
    #[must_use]
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Inserts or replaces rows in one transaction, and leaves what was fetched as it is noted.
    ///
    /// # Errors
    /// When a row cannot be stored; then none is.
    pub fn apply(&mut self, rows: &[DailyRow]) -> Result<Applied, StoreError> {
        let applied = apply::commit(&self.connection, &[rows], None)?;
        Ok(applied.into_iter().next().unwrap_or_default())
    }

    /// Whether everything that is stored was published. A job that was killed after it stored rows
    /// leaves them unpublished; [`PriceStore::publish`] does nothing where this is so.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_published(&self) -> Result<bool, StoreError> {
        publish::is_published(&self.connection, &self.paths)
    }
}

#[cfg(test)]
impl WorkDatabase {
    /// Changes what is stored behind the job's back.
    pub(super) fn execute(&mut self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }
}

impl PriceStore for WorkDatabase {
    fn known(&mut self) -> Result<Known, StoreError> {
        let failed = |error| StoreError::database("list what is stored")(error);
        let codes = "SELECT DISTINCT code FROM work.daily ORDER BY 1";
        let codes: Vec<String> = column(&self.connection, codes).map_err(failed)?;
        let dates = "SELECT DISTINCT date::VARCHAR FROM work.daily ORDER BY 1";
        let dates: Vec<String> = column(&self.connection, dates).map_err(failed)?;
        let foreign = |what: &str| StoreError::Unusable {
            path: self.paths.work_database(),
            what: format!("`{}` in it is no code or date", what.escape_debug()),
        };
        let codes = codes.iter().map(|code| code.parse::<IssueCode>().map_err(|_| foreign(code)));
        let dates = dates.iter().map(|date| date.parse::<JstDate>().map_err(|_| foreign(date)));
        Ok(Known {
            codes: codes.collect::<Result<_, _>>()?,
            dates: dates.collect::<Result<_, _>>()?,
        })
    }

    fn fetch_state(&mut self) -> Result<(FetchState, Option<String>), StoreError> {
        let state = fetch_tables::read(&self.connection)
            .map_err(StoreError::database("look up what was fetched"))?;
        Ok((state, self.note.take()))
    }

    fn commit(
        &mut self,
        parts: &[&[DailyRow]],
        state: &FetchState,
    ) -> Result<Vec<Applied>, StoreError> {
        apply::commit(&self.connection, parts, Some(state))
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        publish::publish(&self.connection, &self.paths, progress)
    }

    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        split::split(&self.connection, &self.paths, from, self.removals, progress)
    }
}
