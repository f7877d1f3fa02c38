//! Answers queries: snapshots, a fair pool of workers, a cache of results.

mod cache;
mod empty_days;
mod explain;
mod follow;
mod job;
mod listed;
mod options;
mod pinned;
mod pool;
mod prices;
mod snapshot;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use domain::JstDate;
use domain::clock::Stopwatch;
use pricestore::{DataDir, DatasetStatus};

use crate::error::RankError;
use crate::kernel::{Plan, Program, Values};
use crate::limits::{CODES_MAX, LIMIT_MAX, RANGE_YEARS_MAX};
use crate::listed::ListedInfo;
use crate::query::{CancelToken, RankQuery, Ranking, SortBy};
use crate::split_reach::SplitReach;
use crate::store::Statement;
use crate::text::excerpt;

use cache::{Key, ResultCache};
use follow::SnapshotFollower;
use job::Job;
use pool::WorkerPool;
use snapshot::Snapshot;

pub use explain::Explanation;
pub(crate) use follow::no_snapshot;
pub use options::{EngineOptions, Verification};
pub use pinned::PinnedEngine;
pub use prices::{DailyPrice, PriceQuery};
pub use snapshot::SnapshotInfo;

/// Ranks from the newest snapshot of a data directory. Share it between threads by reference; all
/// queries run on its own workers, and a new snapshot is taken up while old queries end on theirs.
#[derive(Debug)]
pub struct RankEngine {
    options: EngineOptions,
    follower: SnapshotFollower,
    pool: WorkerPool,
    cache: ResultCache,
}

/// A query whose dates and codes are indices of one snapshot.
#[derive(Debug)]
struct ResolvedQuery {
    snapshot: Arc<Snapshot>,
    /// Days of the calendar, the last one not included.
    days: std::ops::Range<usize>,
    codes: Option<Vec<u32>>,
    /// The largest lag, in business days.
    reach: u32,
}

impl RankEngine {
    /// Opens the current snapshot of a data directory.
    ///
    /// # Errors
    ///
    /// Returns [`RankError::NoData`] where nothing was published, and what is wrong with the snapshot where
    /// it cannot be used; neither where the engine is to wait for data.
    pub fn open(data_dir: &Path, options: EngineOptions) -> Result<Self, RankError> {
        let options = options.within_limits();
        let follower = SnapshotFollower::start(DataDir::new(data_dir), &options)?;
        let pool = WorkerPool::start(&options)?;
        Ok(Self { cache: ResultCache::new(options.cache_bytes), options, follower, pool })
    }

    /// Ranks. Blocks until the answer is there, the token is cancelled or the time limit passes.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the query, or why it did not end.
    pub fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        self.rank_on(self.current()?, query, cancel)
    }

    /// The daily prices of one issue, of at most [`crate::limits::PRICE_DAYS_MAX`] business days.
    ///
    /// # Errors
    ///
    /// Returns [`RankError::Codes`] for a code that the data does not have, [`RankError::Range`] for a
    /// period that is too long, and what is wrong with the snapshot.
    pub fn prices(
        &self,
        query: &PriceQuery,
        cancel: &CancelToken,
    ) -> Result<Vec<DailyPrice>, RankError> {
        prices::read(&*self.current()?, query, cancel)
    }

    /// The snapshot for the next query.
    fn current(&self) -> Result<Arc<Snapshot>, RankError> {
        let why = || no_snapshot(self.follower.refused().as_deref(), self.options.is_replica);
        self.follower.current().ok_or_else(why)
    }

    /// The same on a snapshot.
    fn rank_on(
        &self,
        snapshot: Arc<Snapshot>,
        query: &RankQuery,
        cancel: &CancelToken,
    ) -> Result<Ranking, RankError> {
        let resolved = resolve(snapshot, query)?;
        let key = Key::new(query, &resolved);
        if let Some(ranking) = self.cache.get(&key) {
            return Ok(Ranking::clone(&ranking));
        }
        let job = Job::new(self.plan(query, &resolved), resolved, cancel, &self.options)?;
        let ranking = self.pool.run(Arc::new(job))?;
        self.cache.put(key, &ranking);
        Ok(ranking)
    }

    /// Ranks with the reference statement in DuckDB over the combined database instead: slower, and the same
    /// answer. It runs on the caller's thread, outside of the pool.
    ///
    /// # Errors
    ///
    /// As [`RankEngine::rank`], and [`RankError::Replaced`] where the combined database is another one by now.
    pub fn rank_by_sql(
        &self,
        query: &RankQuery,
        cancel: &CancelToken,
    ) -> Result<Ranking, RankError> {
        let resolved = self.resolve(query)?;
        let rows = match self.statement(query, &resolved)? {
            Some(statement) => resolved.snapshot.by_sql(&statement, &self.options, cancel)?.rows,
            None => Vec::new(),
        };
        Ok(resolved.ranking(rows))
    }

    /// How a query is answered: tree, statement, plan, and the time of both ways.
    ///
    /// # Errors
    ///
    /// As [`RankEngine::rank_by_sql`].
    pub fn explain(
        &self,
        query: &RankQuery,
        cancel: &CancelToken,
    ) -> Result<Explanation, RankError> {
        explain::explain(self, query, cancel)
    }

    /// The snapshot that the next query will use; without any days where there is none yet.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotInfo {
        let current = self.follower.current();
        let info = current.map(|snapshot| snapshot.info.clone()).unwrap_or_default();
        SnapshotInfo { refused: self.follower.refused(), ..info }
    }

    /// How complete the data is, as the update job has told; none where none has run or what it told
    /// cannot be read.
    #[must_use]
    pub fn dataset(&self) -> Option<DatasetStatus> {
        self.follower.dataset_of(self.follower.current().as_deref())
    }

    /// Why what [`Self::dataset`] gives is old, where what the update job has told is gone or cannot be read.
    #[must_use]
    pub fn lost_dataset(&self) -> Option<String> {
        self.follower.lost_dataset(self.follower.current().as_deref())
    }

    /// Whether the update job tells how complete data are, but not those of the present snapshot.
    #[must_use]
    pub fn is_dataset_of_another(&self) -> bool {
        let current = self.follower.current();
        current.is_some_and(|snapshot| self.follower.is_dataset_of_another(&snapshot))
    }

    /// The business days from `first` to `last`, both included, without any price: of those there are no
    /// rows. None where there is no snapshot.
    #[must_use]
    pub fn empty_days(&self, first: JstDate, last: JstDate) -> Vec<JstDate> {
        let Some(snapshot) = self.follower.current() else { return Vec::new() };
        empty_days::find(&snapshot, self.dataset().as_ref(), (first, last))
    }

    /// The first day that a query reads: that of its largest lag before its first day.
    #[must_use]
    pub fn first_day_read(&self, query: &RankQuery) -> JstDate {
        let Some(snapshot) = self.follower.current() else { return query.from };
        let days = snapshot.grid.days();
        let first = days.partition_point(|day| *day < query.from);
        let read = first.saturating_sub(query.sort_by.reach() as usize);
        days.get(read).map_or(query.from, |day| query.from.min(*day))
    }

    /// What is known of the issues: names, markets and sectors by date.
    #[must_use]
    pub fn listed(&self) -> Arc<ListedInfo> {
        self.follower.listed()
    }

    /// The generation that the present snapshot belongs to; none while its publication has not ended.
    #[must_use]
    pub fn generation(&self) -> Option<String> {
        self.follower.generation_of(self.follower.current()?.as_ref())
    }

    /// Queries that run and queries that wait, now.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        self.pool.load()
    }

    /// A query on the current snapshot.
    fn resolve(&self, query: &RankQuery) -> Result<ResolvedQuery, RankError> {
        resolve(self.current()?, query)
    }

    fn plan(&self, query: &RankQuery, resolved: &ResolvedQuery) -> Plan {
        Plan {
            values: match &query.sort_by {
                SortBy::Formula(formula) => Values::Formula(Program::new(formula.root())),
                SortBy::Module(bound) => Values::Module(Arc::clone(bound)),
            },
            order: query.order,
            limit: query.limit as usize,
            codes: resolved.codes.clone(),
            adjusted: query.adjusted,
        }
    }

    /// The reference statement of a formula; `None` where the range has no days.
    fn statement<'a>(
        &self,
        query: &'a RankQuery,
        resolved: &'a ResolvedQuery,
    ) -> Result<Option<Statement<'a>>, RankError> {
        let formula = query.sort_by.statement_formula()?;
        let days = &resolved.days;
        let last_day = days.end.checked_sub(1).filter(|last| *last >= days.start);
        Ok(last_day.map(|last_day| Statement {
            root: formula.root(),
            first_day: days.start,
            last_day,
            order: query.order,
            limit: query.limit,
            codes: resolved.codes.as_deref(),
            adjusted: query.adjusted,
            parts: self.options.threads,
        }))
    }

    /// Ranks past the cache, and measures how long that took.
    ///
    /// # Errors
    ///
    /// As [`RankEngine::rank`].
    pub fn timed(
        &self,
        query: &RankQuery,
        cancel: &CancelToken,
    ) -> Result<(Ranking, std::time::Duration), RankError> {
        self.timed_on(self.current()?, query, cancel)
    }

    /// The same on a snapshot.
    fn timed_on(
        &self,
        snapshot: Arc<Snapshot>,
        query: &RankQuery,
        cancel: &CancelToken,
    ) -> Result<(Ranking, std::time::Duration), RankError> {
        let watch = Stopwatch::start();
        let resolved = resolve(snapshot, query)?;
        let job = Job::new(self.plan(query, &resolved), resolved, cancel, &self.options)?;
        Ok((self.pool.run(Arc::new(job))?, watch.elapsed()))
    }
}

impl ResolvedQuery {
    fn ranking(&self, rows: Vec<crate::query::RankRow>) -> Ranking {
        let grid = &self.snapshot.grid;
        let first_day = self.days.start as u32;
        let splits =
            grid.splits().map(|splits| SplitReach::new(Arc::clone(splits), first_day, self.reach));
        Ranking {
            days: grid.days().get(self.days.clone()).unwrap_or_default().to_vec(),
            codes: Arc::clone(grid.codes()),
            rows,
            snapshot: self.snapshot.info.number,
            splits,
        }
    }
}

/// Checks a query and finds its days and codes in a snapshot.
fn resolve(snapshot: Arc<Snapshot>, query: &RankQuery) -> Result<ResolvedQuery, RankError> {
    if !(1..=LIMIT_MAX).contains(&query.limit) {
        return Err(RankError::Limit { asked: query.limit.into(), max: LIMIT_MAX });
    }
    check_range(query.from, query.to)?;
    let calendar = snapshot.grid.days();
    let first = calendar.partition_point(|day| *day < query.from);
    let end = calendar.partition_point(|day| *day <= query.to).max(first);
    let codes = query.codes.as_deref().map(|codes| find_codes(&snapshot, codes)).transpose()?;
    if query.adjusted && snapshot.grid.splits().is_none() {
        return Err(RankError::SplitsUnknown);
    }
    let reach = query.sort_by.reach();
    Ok(ResolvedQuery { snapshot, days: first..end, codes, reach })
}

fn check_range(from: JstDate, to: JstDate) -> Result<(), RankError> {
    let months = chrono::Months::new(RANGE_YEARS_MAX * 12);
    if from.checked_add_months(months).is_some_and(|end| to > end) {
        return Err(RankError::Range(format!(
            "the range from {from} to {to} is longer than {RANGE_YEARS_MAX} years; ask for a shorter range"
        )));
    }
    Ok(())
}

/// Indices of the codes in the snapshot, ascending.
fn find_codes(snapshot: &Snapshot, codes: &[String]) -> Result<Vec<u32>, RankError> {
    if codes.len() > CODES_MAX {
        let text = format!("{} codes were given; give at most {CODES_MAX}", codes.len());
        return Err(RankError::Codes(text));
    }
    let known = snapshot.grid.codes();
    let index = |code: &String| match known.binary_search_by(|one| one.as_ref().cmp(code)) {
        Ok(index) => Ok(index as u32),
        Err(_) => Err(RankError::Codes(format!(
            "code `{}` is not in the data; write codes as in the data, like {}",
            excerpt(code),
            known.first().map_or("1301", AsRef::as_ref)
        ))),
    };
    let mut indices = codes.iter().map(index).collect::<Result<Vec<u32>, RankError>>()?;
    indices.sort_unstable();
    indices.dedup();
    Ok(indices)
}
