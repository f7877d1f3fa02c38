//! The one writer of a data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use domain::JstDate;
use duckdb::Connection;
use pricestore::generation::{self, GenerationFileName, Issues};
use pricestore::listed::ListedHistory;
use pricestore::sql::{column, quoted};
use pricestore::{DataDir, FolderLock, Published, SourceRows, grid};

use super::durable::remove_unfinished;
use super::error::StoreError;
use super::opening::{self, Opening};
use super::paths::StorePaths;
use super::split::Removals;
use super::{apply, calendar, fetch_tables, listed, lock, publish, rows, split, written};
use crate::fetch_state::FetchState;
use crate::price_store::{
    Applied, Known, OpenDays, Part, PriceStore, PublishedCheck, Split, StoreProgress,
};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// The one writer of a data directory; others are refused as long as it lives.
pub struct WorkDatabase {
    // Closed before the lock is given back.
    connection: Connection,
    paths: StorePaths,
    opening: Opening,
    /// Why what an earlier version had fetched, or another job had published, is not used, until it is told.
    note: Option<String>,
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
        calendar::prepare(&connection)?;
        written::prepare(&connection)?;
        let notes = [
            fetch_tables::prepare(&connection, data, &paths.old_state())?,
            listed::prepare(&connection, &paths)?,
        ];
        let note = notes.into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
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

    /// Inserts or replaces rows of days that are complete with them, in one transaction, and leaves
    /// what was fetched as it is noted.
    ///
    /// # Errors
    /// When a row cannot be stored; then none is.
    pub fn apply(&mut self, rows: &[DailyRow]) -> Result<Applied, StoreError> {
        let part = Part { rows, ..Part::default() };
        let applied = apply::commit(&self.connection, &[part], None)?;
        Ok(applied.into_iter().next().unwrap_or_default())
    }

    /// The issues of the rows that a condition of ours is true of.
    fn codes_where(&self, condition: &str) -> Result<BTreeSet<IssueCode>, StoreError> {
        let failed = |error| StoreError::database("list the issues of a day")(error);
        let codes = format!("SELECT code FROM work.daily WHERE {condition}");
        let codes: Vec<String> = column(&self.connection, &codes).map_err(failed)?;
        let codes = codes.iter().map(|code| {
            code.parse().map_err(|_| StoreError::Unusable {
                path: self.paths.work_database(),
                what: format!("`{}` in it is no code", code.escape_debug()),
            })
        });
        codes.collect()
    }

    /// The days from one on with a row that a condition of ours is true of.
    fn days_where(&self, from: JstDate, condition: &str) -> Result<BTreeSet<JstDate>, StoreError> {
        let failed = |error| StoreError::database("look for days that want better rows")(error);
        let days = format!(
            "SELECT DISTINCT date::VARCHAR FROM work.daily WHERE date >= DATE '{from}' AND {condition}"
        );
        rows::dates(&self.connection, &days).map_err(failed)
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
        let dates = "SELECT date::VARCHAR, count(*) FROM work.daily GROUP BY date";
        let mut dates = self.connection.prepare(dates).map_err(failed)?;
        let dates = dates.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        let dates: Vec<(String, u64)> = dates.collect::<Result<_, _>>().map_err(failed)?;
        let foreign = |what: &str| StoreError::Unusable {
            path: self.paths.work_database(),
            what: format!("`{}` in it is no code or date", what.escape_debug()),
        };
        let codes = codes.iter().map(|code| code.parse::<IssueCode>().map_err(|_| foreign(code)));
        let dates = dates.iter().map(|(date, rows)| {
            let day = date.parse::<JstDate>().map_err(|_| foreign(date))?;
            Ok::<_, StoreError>((day, *rows))
        });
        Ok(Known {
            codes: codes.collect::<Result<_, _>>()?,
            dates: dates.collect::<Result<_, _>>()?,
        })
    }

    fn codes_of(&mut self, date: JstDate) -> Result<BTreeSet<IssueCode>, StoreError> {
        self.codes_where(&format!("date = DATE '{date}'"))
    }

    fn vendor_codes_of(&mut self, date: JstDate) -> Result<BTreeSet<IssueCode>, StoreError> {
        let sources = apply::vendor_sources();
        self.codes_where(&format!("date = DATE '{date}' AND source IN ({sources})"))
    }

    fn losing(
        &mut self,
        rows: &[DailyRow],
    ) -> Result<BTreeMap<JstDate, BTreeSet<IssueCode>>, StoreError> {
        apply::losing(&self.connection, rows)
    }

    fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, StoreError> {
        rows::between(&self.connection, date, date)
            .map_err(StoreError::database("read the rows of a day"))
    }

    fn rows_between(
        &mut self,
        first: JstDate,
        last: JstDate,
    ) -> Result<BTreeMap<JstDate, Vec<DailyRow>>, StoreError> {
        let rows = rows::between(&self.connection, first, last);
        let mut days: BTreeMap<JstDate, Vec<DailyRow>> = BTreeMap::new();
        for row in rows.map_err(StoreError::database("read the rows of days"))? {
            days.entry(row.date).or_default().push(row);
        }
        Ok(days)
    }

    fn has_trades(&mut self, date: JstDate) -> Result<bool, StoreError> {
        let trades = format!(
            "SELECT count(*) > 0 FROM work.daily WHERE date = DATE '{date}' AND volume > 0"
        );
        let found = self.connection.query_row(&trades, [], |row| row.get(0));
        found.map_err(StoreError::database("look for trades of a day"))
    }

    fn days_of_lesser_sources(&mut self, from: JstDate) -> Result<BTreeSet<JstDate>, StoreError> {
        let lesser =
            SourceKind::ALL.into_iter().filter(|kind| kind.rank() < SourceKind::Vendor.rank());
        let lesser: Vec<String> = lesser.map(|kind| quoted(kind.as_str())).collect();
        self.days_where(from, &format!("source IN ({})", lesser.join(", ")))
    }

    fn silent_days(&mut self, from: JstDate) -> Result<BTreeSet<JstDate>, StoreError> {
        let sources = apply::vendor_sources();
        self.days_where(from, &format!("adjustment_factor IS NULL AND source IN ({sources})"))
    }

    fn open_days(&mut self) -> Result<OpenDays, StoreError> {
        calendar::read(&self.connection).map_err(StoreError::database("look up the calendar"))
    }

    fn store_open_days(&mut self, days: &OpenDays) -> Result<(), StoreError> {
        calendar::write(&self.connection, days).map_err(StoreError::database("store the calendar"))
    }

    fn listed(&mut self) -> Result<ListedHistory, StoreError> {
        listed::load(&self.connection)
    }

    fn days_with(&mut self, rows: &[DailyRow], count_min: u64) -> Result<Vec<JstDate>, StoreError> {
        let failed = |error| StoreError::database("look for the prices of a day")(error);
        rows::days_with(&self.connection, rows, count_min).map_err(failed)
    }

    fn store_listed(&mut self, lists: &ListedHistory) -> Result<(), StoreError> {
        listed::store(&self.connection, lists)
    }

    fn publish_listed(&mut self) -> Result<bool, StoreError> {
        listed::publish(&self.connection, &self.paths)
    }

    fn fetch_state(&mut self) -> Result<(FetchState, Option<String>), StoreError> {
        let state = fetch_tables::read(&self.connection)
            .map_err(StoreError::database("look up what was fetched"))?;
        let opened = match &self.opening {
            Opening::Rebuilt { .. } => Some(format!(
                "the data directory was opened with {}; what waited there unpublished is asked for again",
                self.opening
            )),
            _ => None,
        };
        let notes: Vec<String> = opened.into_iter().chain(self.note.take()).collect();
        Ok((state, (!notes.is_empty()).then(|| notes.join("; "))))
    }

    fn commit(
        &mut self,
        parts: &[Part<'_>],
        state: &FetchState,
    ) -> Result<Vec<Applied>, StoreError> {
        apply::commit(&self.connection, parts, Some(state))
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        publish::publish(&self.connection, &self.paths, progress)
    }

    fn sources(&mut self) -> Result<Vec<SourceRows>, StoreError> {
        let failed = |error| StoreError::database("list the sources")(error);
        let visible = fetch_tables::visible(&self.connection).map_err(failed)?;
        let rows = format!(
            "SELECT coalesce(source, ''), count(*), min(date)::VARCHAR, max(date)::VARCHAR
               FROM {visible} GROUP BY 1 ORDER BY 1"
        );
        let mut rows = self.connection.prepare(&rows).map_err(failed)?;
        let rows = rows.query_map([], |row| {
            let (name, rows) = (row.get(0)?, row.get(1)?);
            Ok(SourceRows { name, rows, first: row.get(2)?, last: row.get(3)? })
        });
        rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
    }

    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        split::split(&self.connection, &self.paths, from, self.removals, progress)
    }

    fn snapshot(&mut self) -> Result<Option<String>, StoreError> {
        if !publish::is_own(&self.connection, &self.paths)? {
            return Ok(None);
        }
        let data = self.paths.data();
        let current = data.current().map_err(StoreError::io("look into", data.rank_folder()))?;
        let content = current.and_then(|number| grid::content_of(&data.rank_grid(number)).ok());
        Ok(content.map(grid::content_text))
    }

    fn check_published(&mut self) -> Result<PublishedCheck, StoreError> {
        written::check(&self.connection, &self.paths)
    }

    fn is_whole(&mut self) -> Result<bool, StoreError> {
        Ok(publish::has_snapshot(&self.paths)?
            && !publish::is_damaged(&self.connection)?
            && split::has_files(&self.connection, &self.paths)?)
    }

    fn publish_generation(&mut self) -> Result<Option<String>, StoreError> {
        // What others put there is not tied.
        if !self.is_published()? {
            return Ok(None);
        }
        let codes = "SELECT code FROM work.issue_file ORDER BY code";
        let mut codes: Vec<String> = column(&self.connection, codes)
            .map_err(StoreError::database("list the per-issue databases"))?;
        codes.retain(|code| self.paths.issue(code).is_file());
        let (data, listed) = (self.paths.data(), GenerationFileName::Listed);
        let mut known = written::noted(&self.connection)?;
        // Lists of others, which the job leaves as they are.
        let of_others = generation::changed_by_owner(data, &listed);
        let of_others = of_others.map_err(StoreError::io("read", data.listed_info()))?;
        if !listed::is_own(&self.connection, &self.paths)? {
            known.retain(|file| file.path != listed.path());
            known.extend(of_others);
        }
        let made = generation::publish_generation(data, Issues::Of(&codes), &known)?;
        Ok(Some(made.generation))
    }
}
