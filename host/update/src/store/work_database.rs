//! The one writer of a data directory.

use std::fmt;
use std::fs;

use domain::{JstDate, TsNanos};
use pricestore::generation::{self, GenerationFileName, Issues};
use pricestore::sql::column;
use pricestore::{DataDir, FolderLock, Published, grid};

use super::durable::remove_unfinished;
use super::error::StoreError;
use super::opening::{self, Opening};
use super::paths::StorePaths;
use super::split::Removals;
use super::work_rows::WorkRows;
use super::{apply, listed, lock, publish, split, written};
use crate::price_store::{
    Applied, Part, PriceRows, PriceStore, PublishedCheck, Split, StoreProgress,
};
use crate::row::DailyRow;

/// The one writer of a data directory; others are refused as long as it lives.
pub struct WorkDatabase {
    // Closed before the lock is given back.
    rows: WorkRows,
    paths: StorePaths,
    removals: Removals,
    _lock: FolderLock,
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
    /// When another job runs, the folder is a copy of another server's, or it or a database in it
    /// cannot be used.
    pub fn open(data: &DataDir) -> Result<Self, StoreError> {
        data.refuse_replica()?;
        let paths = StorePaths::new(data);
        let folders = [paths.work_folder(), paths.daily_folder()];
        for folder in &folders {
            fs::create_dir_all(folder).map_err(StoreError::io("make the folder", folder))?;
        }
        let lock = lock::take_job(&paths)?;
        for folder in &folders {
            remove_unfinished(folder)?;
        }
        pricestore::remove_leftovers(data).map_err(StoreError::Publication)?;
        let (connection, opening) = opening::open(&paths)?;
        tracing::debug!(folder = %data.path().display(), "the data directory is taken");
        tracing::info!(%opening, "the data directory is open");
        let rows = WorkRows::prepared(connection, opening, &paths)?;
        Ok(Self { rows, paths, removals: Removals::Few, _lock: lock })
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
        &self.rows.opening
    }

    /// Inserts or replaces rows of days that are complete with them, in one transaction, and leaves
    /// what was fetched as it is noted. Values that change are logged with the time 0, because no run gave them.
    ///
    /// # Errors
    /// When a row cannot be stored; then none is.
    pub fn apply(&mut self, rows: &[DailyRow]) -> Result<Applied, StoreError> {
        let part = Part { rows, ..Part::default() };
        let applied = apply::commit(&self.rows.connection, &[part], None, TsNanos::from_nanos(0))?;
        Ok(applied.into_iter().next().unwrap_or_default())
    }

    /// Whether everything that is stored was published. A job that was killed after it stored rows
    /// leaves them unpublished; [`PriceStore::publish`] does nothing where this is so.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_published(&self) -> Result<bool, StoreError> {
        publish::is_published(&self.rows.connection, &self.paths)
    }
}

#[cfg(test)]
impl WorkDatabase {
    /// Changes what is stored behind the job's back.
    pub(super) fn execute(&mut self, sql: &str) {
        self.rows.connection.execute_batch(sql).unwrap();
    }
}

impl PriceStore for WorkDatabase {
    fn rows(&mut self) -> &mut dyn PriceRows {
        &mut self.rows
    }

    fn has_published(&self) -> bool {
        self.paths.data().mother().is_file()
    }

    fn publish_listed(&mut self) -> Result<bool, StoreError> {
        listed::publish(&self.rows.connection, &self.paths)
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        publish::publish(&self.rows.connection, &self.paths, progress)
    }

    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        split::split(&self.rows.connection, &self.paths, from, self.removals, progress)
    }

    fn snapshot(&mut self) -> Result<Option<String>, StoreError> {
        if !publish::is_own(&self.rows.connection, &self.paths)? {
            return Ok(None);
        }
        let data = self.paths.data();
        let current = data.current().map_err(StoreError::io("look into", data.rank_folder()))?;
        let content = current.and_then(|number| grid::content_of(&data.rank_grid(number)).ok());
        Ok(content.map(grid::content_text))
    }

    fn check_published(&mut self) -> Result<PublishedCheck, StoreError> {
        written::check(&self.rows.connection, &self.paths)
    }

    fn is_whole(&mut self) -> Result<bool, StoreError> {
        Ok(publish::has_snapshot(&self.paths)?
            && !publish::is_damaged(&self.rows.connection)?
            && split::has_files(&self.rows.connection, &self.paths)?)
    }

    fn publish_generation(&mut self) -> Result<Option<String>, StoreError> {
        // What others put there is not tied.
        if !self.is_published()? {
            return Ok(None);
        }
        let codes = "SELECT code FROM work.issue_file ORDER BY code";
        let mut codes: Vec<String> = column(&self.rows.connection, codes)
            .map_err(StoreError::database("list the per-issue databases"))?;
        codes.retain(|code| self.paths.issue(code).is_file());
        let (data, listed) = (self.paths.data(), GenerationFileName::Listed);
        let mut known = written::noted(&self.rows.connection)?;
        // Lists of others, which the job leaves as they are.
        let of_others = generation::changed_by_owner(data, &listed);
        let of_others = of_others.map_err(StoreError::io("read", data.listed_info()))?;
        if !listed::is_own(&self.rows.connection, &self.paths)? {
            known.retain(|file| file.path != listed.path());
            known.extend(of_others);
        }
        let made = generation::publish_generation(data, Issues::Of(&codes), &known)?;
        Ok(Some(made.generation))
    }
}
