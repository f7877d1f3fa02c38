//! Runs a plan on several threads and keeps what finishes.
//!
//! Each thread takes the next run that nobody has taken, so two threads are busy to the end whatever
//! the single runs take. One more thread, the caller's, writes the journal and tells the progress.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use domain::limits::SWEEP_JOBS_MAX;
use thiserror::Error;

use crate::finished::{Finished, Results};
use crate::journal::{Journal, JournalError};
use crate::plan::Plan;
use crate::runner::{Outcome, Runner};
use crate::score::Statistic;

/// Finished runs that may wait for the journal, for each thread.
const WAITING_PER_JOB: usize = 4;
/// How often progress is told while no run finishes.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Why a sweep ends early. What had finished is in the journal.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The number of threads.
    #[error("{0} jobs asked for; ask for 1 to {SWEEP_JOBS_MAX}")]
    Jobs(usize),
    /// The host failed.
    #[error(
        "run {row} could not be made: {reason}; the finished runs are kept, run the same again"
    )]
    Host {
        /// The run.
        row: usize,
        /// The failure beneath.
        reason: String,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal names a run that the plan does not have.
    #[error("the journal has a run {0}, the sweep has fewer; delete the folder and sweep again")]
    UnknownRow(usize),
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy)]
pub struct SweepProgress {
    /// Runs that are done, kept ones included.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// Runs that were kept from before.
    pub kept: usize,
    /// Runs that failed.
    pub failed: usize,
    /// The best run so far, not out of sample: its row and its number.
    pub best: Option<(usize, f64)>,
}

/// A sweep under way.
pub struct Sweep<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// By what the best run of a fold is chosen.
    pub rank_by: Statistic,
    /// Who runs it.
    pub runner: &'a dyn Runner,
    /// Runs at the same time.
    pub jobs: usize,
    /// Set from outside to end early.
    pub stop: &'a AtomicBool,
}

/// A run to be made.
struct Job {
    row: usize,
    combination: u64,
    days: Range<usize>,
}

type Told = Result<Finished, (usize, String)>;

impl Sweep<'_> {
    /// Makes all runs that `kept` does not have, and adds each to the journal.
    ///
    /// # Errors
    /// [`SweepError`]; what had finished is in the journal.
    pub fn run(
        &self,
        journal: &mut Journal,
        kept: Vec<Finished>,
        tell: &mut dyn FnMut(SweepProgress),
    ) -> Result<Results, SweepError> {
        if !(1..=SWEEP_JOBS_MAX).contains(&self.jobs) {
            return Err(SweepError::Jobs(self.jobs));
        }
        let mut rows = vec![None; self.plan.rows()];
        for run in kept {
            let row = run.row;
            *rows.get_mut(row).ok_or(SweepError::UnknownRow(row))? = Some(run);
        }
        let kept = rows.iter().flatten().count();
        let mut keeper = Keeper {
            sweep: self,
            results: Results { rows, kept },
            journal,
            tell,
            best: None,
            failed: 0,
            done: 0,
        };
        keeper.count_kept();
        let chosen = |run: usize| self.plan.run(run).combination.is_some();
        self.make(
            self.jobs_for((0..self.plan.rows()).filter(|row| chosen(*row)), &keeper),
            &mut keeper,
        )?;
        if !self.plan.folds().is_empty() && !self.is_stopped() {
            let tests = keeper.choose()?;
            self.make(self.jobs_for(tests.into_iter(), &keeper), &mut keeper)?;
        }
        keeper.journal.sync()?;
        Ok(keeper.results)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The runs of these rows that are not done. A test run takes the best of its fold.
    fn jobs_for(&self, rows: impl Iterator<Item = usize>, keeper: &Keeper<'_, '_>) -> Vec<Job> {
        let missing = rows.filter(|row| keeper.results.rows[*row].is_none());
        missing
            .filter_map(|row| {
                let run = self.plan.run(row);
                let combination = run.combination.or_else(|| keeper.best_of_fold(run.fold?))?;
                Some(Job { row, combination, days: run.days })
            })
            .collect()
    }

    fn make(&self, jobs: Vec<Job>, keeper: &mut Keeper<'_, '_>) -> Result<(), SweepError> {
        let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
        let threads = self.jobs.min(jobs.len());
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Told>(WAITING_PER_JOB * self.jobs);
            for _ in 0..threads {
                let (sender, jobs, next, broken) = (sender.clone(), &jobs, &next, &broken);
                scope.spawn(move || self.work(jobs, next, broken, &sender));
            }
            drop(sender);
            let mut ended = Ok(());
            loop {
                let told = match receiver.recv_timeout(TELL_EVERY) {
                    Ok(told) => told,
                    Err(RecvTimeoutError::Timeout) => {
                        keeper.tell();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if ended.is_err() {
                    // The threads finish what they have; nothing waits for room in the channel.
                    continue;
                }
                ended = match told {
                    Ok(run) => keeper.keep(run),
                    Err((row, reason)) => Err(SweepError::Host { row, reason }),
                };
                if ended.is_err() {
                    broken.store(true, Ordering::Relaxed);
                }
            }
            keeper.tell();
            ended
        })
    }

    fn work(&self, jobs: &[Job], next: &AtomicUsize, broken: &AtomicBool, to: &SyncSender<Told>) {
        while !self.is_stopped() && !broken.load(Ordering::Relaxed) {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let config = self.plan.grid().config_json(job.combination);
            let finished = |score, error| Finished {
                row: job.row,
                combination: Some(job.combination),
                score,
                error,
            };
            let told = match self.runner.run(&config, job.days.clone(), self.stop) {
                Ok(Outcome::Scored(score)) => Ok(finished(Some(score), None)),
                Ok(Outcome::Failed(error)) => Ok(finished(None, Some(error))),
                Ok(Outcome::Stopped) => return,
                Err(reason) => Err((job.row, reason)),
            };
            if to.send(told).is_err() {
                return;
            }
        }
    }
}

/// Takes in finished runs.
struct Keeper<'a, 's> {
    sweep: &'s Sweep<'s>,
    results: Results,
    journal: &'a mut Journal,
    tell: &'a mut dyn FnMut(SweepProgress),
    best: Option<usize>,
    failed: usize,
    done: usize,
}

impl Keeper<'_, '_> {
    fn count_kept(&mut self) {
        self.failed = self.results.failed();
        self.done = self.results.kept;
        let plan = self.sweep.plan;
        let chosen = (0..plan.rows()).filter(|row| plan.run(*row).combination.is_some());
        self.best = self.results.best(chosen, self.sweep.rank_by);
    }

    fn keep(&mut self, run: Finished) -> Result<(), SweepError> {
        self.journal.add(&run)?;
        let row = run.row;
        self.failed += usize::from(run.score.is_none());
        self.done += 1;
        self.results.rows[row] = Some(run);
        if self.sweep.plan.run(row).combination.is_some() {
            self.best = self.results.best(self.best.into_iter().chain([row]), self.sweep.rank_by);
        }
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        let number = |row: usize| {
            let score = self.results.rows[row].as_ref()?.score.as_ref()?;
            Some((row, self.sweep.rank_by.of(score)?))
        };
        let progress = SweepProgress {
            done: self.done,
            total: self.results.rows.len(),
            kept: self.results.kept,
            failed: self.failed,
            best: self.best.and_then(number),
        };
        (self.tell)(progress);
    }

    /// The combination of the best run of a fold.
    fn best_of_fold(&self, fold: usize) -> Option<u64> {
        let best = self.results.best(self.sweep.plan.train_rows(fold), self.sweep.rank_by)?;
        self.results.rows[best].as_ref()?.combination
    }

    /// The rows of the test runs. A fold without a run to choose gets its row with the reason.
    fn choose(&mut self) -> Result<Vec<usize>, SweepError> {
        let plan = self.sweep.plan;
        let folds = 0..plan.folds().len();
        let rows: Vec<usize> = folds.clone().map(|fold| plan.test_row(fold)).collect();
        for (fold, row) in folds.zip(rows.iter().copied()) {
            if self.results.rows[row].is_none() && self.best_of_fold(fold).is_none() {
                let error = "every run to choose from failed".to_owned();
                self.keep(Finished { row, combination: None, score: None, error: Some(error) })?;
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests;
