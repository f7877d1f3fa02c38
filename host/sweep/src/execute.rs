//! Runs a plan on several threads and keeps what finishes.
//!
//! Each thread takes the next run that nobody has taken, so two threads are busy to the end whatever
//! the single runs take. One more thread, the caller's, writes the journal and tells the progress.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use domain::limits::SWEEP_JOBS_MAX;
use thiserror::Error;

use crate::finished::{Finished, Results, Verified};
use crate::journal::{Journal, JournalError, Kept};
use crate::luck;
use crate::plan::{Plan, PlannedRun};
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
        "run {row} could not be made: {reason}; the finished runs are kept, so run the same \
         command again"
    )]
    Host {
        /// The run.
        row: usize,
        /// The failure beneath.
        reason: String,
    },
    /// The system has no thread left, not even one.
    #[error(
        "cannot start a thread for the runs: {0}; the finished runs are kept, so run the same \
         command again"
    )]
    Thread(io::Error),
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
    /// Runs in all, of those that are asked for; so is `done`.
    pub total: usize,
    /// Runs that were kept from before.
    pub kept: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that were made again with window 1.
    pub verified: usize,
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
    /// The rows that are made: all of them, or a part.
    pub rows: Range<usize>,
    /// How many of the best runs are made again with window 1; none at all for 0.
    pub verify: usize,
    /// Whether that, and the test runs whose choice depends on it, is left for later: to whoever goes
    /// on with the parts once they are merged.
    pub leaves_verifying: bool,
    /// Runs at the same time.
    pub jobs: usize,
    /// Set from outside to end early.
    pub stop: &'a AtomicBool,
}

/// A run to be made.
pub(crate) struct Job {
    pub(crate) row: usize,
    pub(crate) combination: u64,
    pub(crate) days: Range<usize>,
    /// Whether it was made before and is made again with window 1.
    pub(crate) again: bool,
}

/// What a thread has done.
enum Done {
    Finished(Box<Finished>),
    Verified(Verified),
}

type Told = Result<Done, (usize, String)>;

impl Sweep<'_> {
    /// Makes all runs that `kept` does not have, and adds each to the journal.
    ///
    /// # Errors
    /// [`SweepError`]; what had finished is in the journal.
    pub fn run(
        &self,
        journal: &mut Journal,
        kept: Kept,
        tell: &mut dyn FnMut(SweepProgress),
    ) -> Result<Results, SweepError> {
        if !(1..=SWEEP_JOBS_MAX).contains(&self.jobs) {
            return Err(SweepError::Jobs(self.jobs));
        }
        let results = self.results_of(kept)?;
        let mut keeper =
            Keeper { sweep: self, results, journal, tell, best: None, failed: 0, done: 0 };
        keeper.count_kept();
        let chosen = |run: usize| self.plan.run(run).combination.is_some();
        self.make(
            self.jobs_for(self.rows.clone().filter(|row| chosen(*row)), &keeper),
            &mut keeper,
        )?;
        if !self.plan.folds().is_empty() && !self.is_stopped() {
            // A run that saw the future must not be chosen.
            self.verify(Self::best_of_folds, &mut keeper)?;
            if !self.is_stopped() && !keeper.results.is_unverified {
                let tests = keeper.choose()?;
                self.make(self.jobs_for(tests.into_iter(), &keeper), &mut keeper)?;
            }
        }
        self.verify(Self::named_runs, &mut keeper)?;
        keeper.journal.sync()?;
        let mut results = keeper.results;
        if results.rows.iter().all(Option::is_some) {
            // What parts, or a run that asked for more, have made again besides is not told: the same command gives
            // the same files, whatever was there before.
            let known = std::mem::take(&mut results.verified);
            results.settle(self.plan, self.asked(), &known);
        }
        Ok(results)
    }

    fn results_of(&self, kept: Kept) -> Result<Results, SweepError> {
        let mut results = Results { rows: vec![None; self.plan.rows()], ..Results::default() };
        for run in kept.runs {
            let row = run.row;
            *results.rows.get_mut(row).ok_or(SweepError::UnknownRow(row))? = Some(Box::new(run));
        }
        for run in kept.verified {
            if run.verified_row >= results.rows.len() {
                return Err(SweepError::UnknownRow(run.verified_row));
            }
            results.verified.insert(run.verified_row, run);
        }
        results.kept = results.done();
        Ok(results)
    }

    /// Whether all is done that was asked for. A part has no test run of a fold whose runs to choose
    /// from are not all there.
    #[must_use]
    pub fn is_done(&self, results: &Results) -> bool {
        let waits = |row: usize| match self.plan.run(row) {
            PlannedRun { combination: None, fold: Some(fold), .. } => {
                self.leaves_verifying && self.verify > 0 || !results.is_fold_whole(self.plan, fold)
            }
            _ => false,
        };
        let is_made = |row: usize| results.rows[row].is_some() || waits(row);
        let is_part = self.leaves_verifying || self.rows != (0..self.plan.rows());
        self.rows.clone().all(is_made)
            && (self.leaves_verifying || !results.is_unverified)
            && (is_part || results.is_complete())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The runs of these rows that are not done. A test run takes the best of its fold.
    fn jobs_for(&self, rows: impl Iterator<Item = usize>, keeper: &Keeper<'_, '_>) -> Vec<Job> {
        let missing = rows.filter(|row| keeper.results.rows[*row].is_none());
        missing
            .filter_map(|row| {
                let run = self.plan.run(row);
                let combination = run.combination.or_else(|| keeper.best_of_fold(run.fold?))?;
                Some(Job { row, combination, days: run.days, again: false })
            })
            .collect()
    }

    pub(crate) fn make(
        &self,
        jobs: Vec<Job>,
        keeper: &mut Keeper<'_, '_>,
    ) -> Result<(), SweepError> {
        let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
        let sampled = luck::sampled_rows(self.plan);
        let threads = self.jobs.min(jobs.len());
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Told>(WAITING_PER_JOB * self.jobs);
            let mut started = 0;
            for _ in 0..threads {
                let (sender, next, broken) = (sender.clone(), &next, &broken);
                let todo = Todo { jobs: &jobs, sampled: &sampled, next, broken };
                let thread = std::thread::Builder::new();
                match thread.spawn_scoped(scope, move || self.work(&todo, &sender)) {
                    Ok(_) => started += 1,
                    // Those that run make all, only later.
                    Err(_) if started > 0 => break,
                    Err(error) => return Err(SweepError::Thread(error)),
                }
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
                    Ok(Done::Finished(run)) => keeper.keep(*run),
                    Ok(Done::Verified(run)) => keeper.keep_verified(run),
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

    fn work(&self, todo: &Todo<'_>, to: &SyncSender<Told>) {
        while !self.is_stopped() && !todo.broken.load(Ordering::Relaxed) {
            let next = todo.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = todo.jobs.get(next) else { return };
            let (row, days) = (job.row, job.days.clone());
            let config = self.plan.grid().config_json(job.combination);
            let outcome = match job.again {
                false => self.runner.run(&config, days, self.stop),
                true => self.runner.run_strictly(&config, days, self.stop),
            };
            let told = match outcome {
                Ok(Outcome::Stopped) => return,
                Ok(outcome) if job.again => Ok(Done::Verified(Verified {
                    verified_row: row,
                    digest: outcome.score().map(|score| score.digest),
                })),
                Ok(outcome) => Ok(Done::Finished(Box::new(todo.finished(job, outcome)))),
                Err(reason) => Err((row, reason)),
            };
            if to.send(told).is_err() {
                return;
            }
        }
    }
}

/// What threads share.
struct Todo<'a> {
    jobs: &'a [Job],
    /// Rows whose daily returns are kept.
    sampled: &'a [u64],
    next: &'a AtomicUsize,
    broken: &'a AtomicBool,
}

impl Todo<'_> {
    fn finished(&self, job: &Job, outcome: Outcome) -> Finished {
        let error = match &outcome {
            Outcome::Failed(error) => Some(error.clone()),
            Outcome::Scored(_) | Outcome::Stopped => None,
        };
        let mut score = outcome.score();
        if let Some(score) = &mut score
            && self.sampled.binary_search(&(job.row as u64)).is_err()
        {
            score.return_blocks = None;
        }
        Finished { row: job.row, combination: Some(job.combination), score, error }
    }
}

/// Takes in finished runs.
pub(crate) struct Keeper<'a, 's> {
    sweep: &'s Sweep<'s>,
    pub(crate) results: Results,
    journal: &'a mut Journal,
    tell: &'a mut dyn FnMut(SweepProgress),
    best: Option<usize>,
    failed: usize,
    done: usize,
}

impl Keeper<'_, '_> {
    fn count_kept(&mut self) {
        self.failed = self.results.failed();
        self.done = self.results.rows[self.sweep.rows.clone()].iter().flatten().count();
        self.find_best();
    }

    /// The best run so far, when runs were added or taken out of the ranking.
    pub(crate) fn find_best(&mut self) {
        let plan = self.sweep.plan;
        let chosen = (0..plan.rows()).filter(|row| plan.run(*row).combination.is_some());
        self.best = self.results.best(chosen, self.sweep.rank_by);
    }

    fn keep(&mut self, run: Finished) -> Result<(), SweepError> {
        self.journal.add(&run)?;
        let row = run.row;
        self.failed += usize::from(run.score.is_none());
        self.done += 1;
        self.results.rows[row] = Some(Box::new(run));
        if self.sweep.plan.run(row).combination.is_some() {
            self.best = self.results.best(self.best.into_iter().chain([row]), self.sweep.rank_by);
        }
        self.tell();
        Ok(())
    }

    fn keep_verified(&mut self, run: Verified) -> Result<(), SweepError> {
        self.journal.add_verified(&run)?;
        self.results.verified.insert(run.verified_row, run);
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        let number = |row: usize| Some((row, self.sweep.rank_by.of(self.results.score(row)?)?));
        let progress = SweepProgress {
            done: self.done,
            total: self.sweep.rows.len(),
            kept: self.results.kept,
            failed: self.failed,
            verified: self.results.verified.len(),
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
        let is_asked_for = |fold: &usize| {
            self.sweep.rows.contains(&plan.test_row(*fold))
                && self.results.is_fold_whole(plan, *fold)
        };
        let folds: Vec<usize> = (0..plan.folds().len()).filter(is_asked_for).collect();
        let rows: Vec<usize> = folds.iter().map(|fold| plan.test_row(*fold)).collect();
        for (fold, row) in folds.into_iter().zip(rows.iter().copied()) {
            if self.results.rows[row].is_none() && self.best_of_fold(fold).is_none() {
                let mut trained = plan.train_rows(fold);
                let error = match trained.any(|row| self.results.saw_the_future(row)) {
                    false => "every run to choose from failed",
                    true => "every run to choose from failed or saw the future",
                };
                let error = Some(error.to_owned());
                self.keep(Finished { row, combination: None, score: None, error })?;
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests;
