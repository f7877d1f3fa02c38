//! A query as a job: cut into slices of days that any worker can execute.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;

use super::ResolvedQuery;
use super::options::EngineOptions;
use super::snapshot::snapshot_error;
use crate::error::RankError;
use crate::kernel::{DayFault, DayRanker, ModuleFault, Plan, Values};
use crate::limits::SLICE_DAYS;
use crate::query::{CancelToken, RankRow, Ranking};

/// How often a waiting caller polls its cancel token. The workers do so for running queries, after
/// every slice.
const WAIT_INTERVAL: Duration = Duration::from_millis(25);

/// A query that is executed.
#[derive(Debug)]
pub(super) struct Job {
    plan: Plan,
    resolved: ResolvedQuery,
    cancel: CancelToken,
    watch: Stopwatch,
    timeout: Duration,
    /// Bytes that its rows may take.
    pub(super) bytes: u64,
    progress: Mutex<Progress>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    slices: Vec<Vec<RankRow>>,
    /// The first slice so far in which a module failed. Earlier slices are still ranked, so that the
    /// day that is named does not depend on the order of execution.
    fault: Option<(usize, RankError)>,
    outcome: Option<Result<Vec<RankRow>, RankError>>,
}

impl Job {
    /// A job for a resolved query; its time runs from now on.
    pub(super) fn new(
        plan: Plan,
        resolved: ResolvedQuery,
        cancel: &CancelToken,
        options: &EngineOptions,
    ) -> Result<Self, RankError> {
        let codes = plan.codes.as_ref().map_or(resolved.snapshot.info.codes, Vec::len);
        let rows = resolved.days.len() as u64 * plan.limit.min(codes) as u64;
        // Slices are put together at the end, so each row is in memory twice for a while.
        let row_bytes = 2 * size_of::<RankRow>() as u64;
        let rows_max = options.memory_bytes / row_bytes;
        if rows > rows_max {
            return Err(RankError::TooLarge { rows, rows_max });
        }
        Ok(Self {
            plan,
            resolved,
            cancel: cancel.clone(),
            watch: Stopwatch::start(),
            timeout: options.timeout,
            bytes: rows * row_bytes,
            progress: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Slices of the job, each of up to [`SLICE_DAYS`] days.
    pub(super) fn slices(&self) -> usize {
        self.resolved.days.len().div_ceil(SLICE_DAYS)
    }

    /// Why the job should stop now, if it should.
    pub(super) fn interruption(&self) -> Option<RankError> {
        if self.cancel.is_cancelled() {
            Some(RankError::Cancelled)
        } else if self.watch.elapsed() >= self.timeout {
            Some(RankError::Timeout { limit: self.timeout })
        } else {
            None
        }
    }

    /// Ranks the days of one slice and keeps the rows; an error ends the job.
    pub(super) fn execute_slice(&self, slice: usize, ranker: &mut DayRanker) {
        if let Some(interruption) = self.interruption() {
            self.end(Err(interruption));
        }
        if self.has_ended() || self.has_failed_before(slice) {
            return;
        }
        match self.rank(slice, ranker) {
            Ok(rows) => {
                let mut progress = self.lock();
                if progress.slices.len() <= slice {
                    progress.slices.resize_with(slice + 1, Vec::new);
                }
                if let Some(kept) = progress.slices.get_mut(slice) {
                    *kept = rows;
                }
            }
            Err(error @ RankError::FormulaFault { .. }) => {
                let mut progress = self.lock();
                if progress.fault.as_ref().is_none_or(|(known, _)| slice < *known) {
                    progress.fault = Some((slice, error));
                }
            }
            Err(error) => self.end(Err(error)),
        }
    }

    fn has_failed_before(&self, slice: usize) -> bool {
        self.lock().fault.as_ref().is_some_and(|(failed, _)| *failed < slice)
    }

    fn rank(&self, slice: usize, ranker: &mut DayRanker) -> Result<Vec<RankRow>, RankError> {
        let first = slice * SLICE_DAYS;
        let end = (first + SLICE_DAYS).min(self.resolved.days.len());
        let snapshot = &self.resolved.snapshot;
        let mut rows = Vec::with_capacity((end - first) * self.plan.limit);
        for shown_day in first..end {
            let day = self.resolved.days.start + shown_day;
            let shown_day = shown_day as u32;
            // A day of a module may take as long as its fuel lasts.
            if matches!(self.plan.values, Values::Module(_))
                && let Some(interruption) = self.interruption()
            {
                return Err(interruption);
            }
            ranker
                .rank(&snapshot.grid, &self.plan, day, shown_day, &mut rows)
                .map_err(|fault| self.day_error(day, fault))?;
        }
        Ok(rows)
    }

    /// The error for a business day that could not be ranked.
    fn day_error(&self, day: usize, fault: DayFault) -> RankError {
        let snapshot = &self.resolved.snapshot;
        let name = match &self.plan.values {
            Values::Formula(_) => String::new(),
            Values::Module(bound) => bound.name().to_owned(),
        };
        match fault {
            DayFault::Grid(fault) => snapshot_error(snapshot.info.number, fault),
            DayFault::Module(ModuleFault::Fault(source)) => {
                let date = snapshot.grid.days().get(day).copied();
                RankError::FormulaFault { name, date, source }
            }
            DayFault::Module(ModuleFault::Sandbox(error)) => {
                RankError::internal("making a formula module", error)
            }
        }
    }

    /// All slices are done: puts the answer together.
    pub(super) fn complete(&self) {
        let mut progress = self.lock();
        if progress.outcome.is_none() {
            let slices = std::mem::take(&mut progress.slices);
            progress.outcome = Some(match progress.fault.take() {
                Some((_, error)) => Err(error),
                None => Ok(slices.concat()),
            });
            self.ended.notify_all();
        }
    }

    /// Ends the job; only the first end counts.
    pub(super) fn end(&self, outcome: Result<Vec<RankRow>, RankError>) {
        let mut progress = self.lock();
        if progress.outcome.is_none() {
            progress.slices = Vec::new();
            progress.outcome = Some(outcome);
            self.ended.notify_all();
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// Waits for the end and takes the answer.
    pub(super) fn wait(&self) -> Result<Ranking, RankError> {
        let mut progress = self.lock();
        loop {
            if let Some(outcome) = progress.outcome.take() {
                // Whoever looks later still sees that it ended.
                progress.outcome = Some(Err(RankError::Cancelled));
                return outcome.map(|rows| self.resolved.ranking(rows));
            }
            if let Some(interruption) = self.interruption() {
                progress.slices = Vec::new();
                progress.outcome = Some(Err(interruption));
                continue;
            }
            let waited = self.ended.wait_timeout(progress, WAIT_INTERVAL);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
