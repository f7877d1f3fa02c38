//! The job's own rows, in a database that nobody else opens.

use std::fmt;
use std::path::PathBuf;

use domain::{JstDate, TsNanos};
use duckdb::Connection;
use pricestore::listed::ListedHistory;
use pricestore::sql::column;
use pricestore::{DataDir, SourceRows};

use super::error::StoreError;
use super::opening::{self, Opening};
use super::paths::StorePaths;
use super::{apply, calendar, fetch_tables, listed, rows, written};
use crate::fetch_state::FetchState;
use crate::price_store::{Applied, Known, OpenDays, Part, PriceRows};
use crate::row::{DailyRow, IssueCode};

/// The job's own rows, and what it notes of them.
pub struct WorkRows {
    pub(super) connection: Connection,
    pub(super) opening: Opening,
    /// Where they are stored, for errors.
    path: PathBuf,
    /// Why what another job had published is not used, until it is told.
    note: Option<String>,
}

impl fmt::Debug for WorkRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkRows").field("path", &self.path).finish_non_exhaustive()
    }
}

impl WorkRows {
    /// Rows in memory only: they are gone with this value. What the data directory tells of earlier jobs is taken over.
    ///
    /// # Errors
    /// When the database engine cannot be started, or the data directory cannot be read.
    pub fn in_memory(data: &DataDir) -> Result<Self, StoreError> {
        let paths = StorePaths::new(data);
        Self::prepared(opening::open_in_memory(&paths)?, Opening::Empty, &paths)
    }

    /// The rows of an open database, with all tables that this version needs.
    pub(super) fn prepared(
        connection: Connection,
        opening: Opening,
        paths: &StorePaths,
    ) -> Result<Self, StoreError> {
        calendar::prepare(&connection)?;
        written::prepare(&connection)?;
        let note = listed::prepare(&connection, paths)?;
        Ok(Self { connection, opening, path: paths.work_database(), note })
    }
}

impl PriceRows for WorkRows {
    fn known(&mut self) -> Result<Known, StoreError> {
        let failed = |error| StoreError::database("list what is stored")(error);
        let codes = "SELECT DISTINCT code FROM work.daily ORDER BY 1";
        let codes: Vec<String> = column(&self.connection, codes).map_err(failed)?;
        let dates = "SELECT date::VARCHAR, count(*) FROM work.daily GROUP BY date";
        let mut dates = self.connection.prepare(dates).map_err(failed)?;
        let dates = dates.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        let dates: Vec<(String, u64)> = dates.collect::<Result<_, _>>().map_err(failed)?;
        let foreign = |what: &str| StoreError::Unusable {
            path: self.path.clone(),
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

    fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, StoreError> {
        rows::of_day(&self.connection, date).map_err(StoreError::database("read the rows of a day"))
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

    fn store_listed(&mut self, lists: &ListedHistory) -> Result<(), StoreError> {
        listed::store(&self.connection, lists)
    }

    fn fetch_state(&mut self) -> Result<(FetchState, Option<String>), StoreError> {
        let state = fetch_tables::read(&self.connection)
            .map_err(StoreError::database("look up what was fetched"))?;
        let opened = match &self.opening {
            Opening::Rebuilt { .. } => Some(format!(
                "the data directory was opened with {}; the run asks again for its unpublished days",
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
        at: TsNanos,
    ) -> Result<Vec<Applied>, StoreError> {
        apply::commit(&self.connection, parts, Some(state), at)
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
}
