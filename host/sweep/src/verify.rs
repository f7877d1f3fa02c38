//! Runs that people look at, once more with window 1.
//!
//! A sweep hands a strategy many trades at once, because that is several times faster. A strategy that
//! reads rows which it was not told to handle yet sees the future that way. With window 1 there is
//! nothing to read, and its event log is another one.

use crate::execute::{Job, Keeper, Sweep, SweepError};
use crate::finished::{Finished, Results};
use crate::plan::Phase;

/// What is known of a run's sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// With window 1 the same happened.
    Same,
    /// With window 1 something else happened.
    SawTheFuture,
}

impl Verdict {
    /// A few words for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "yes",
            Self::SawTheFuture => "saw the future",
        }
    }
}

impl Results {
    /// What a run gave that was made again with window 1; none when it was not.
    #[must_use]
    pub fn verdict(&self, row: usize) -> Option<Verdict> {
        let again = self.verified.get(&row)?;
        let digest = self.score(row).map(|score| &score.digest);
        Some(if digest == again.digest.as_ref() { Verdict::Same } else { Verdict::SawTheFuture })
    }

    /// Whether the run gave something else with window 1.
    #[must_use]
    pub fn saw_the_future(&self, row: usize) -> bool {
        self.verdict(row) == Some(Verdict::SawTheFuture)
    }

    /// The rows of the runs that saw the future.
    pub fn futures_seen(&self) -> impl Iterator<Item = usize> {
        self.verified.keys().copied().filter(|row| self.saw_the_future(*row))
    }
}

impl Sweep<'_> {
    /// Makes the runs again that `pick` names from what is known so far, until it names no other: one
    /// that saw the future leaves the ranking, and the next takes its place. Which runs that are does
    /// not depend on where a sweep was interrupted.
    pub(crate) fn verify(
        &self,
        pick: impl Fn(&Self, &Results) -> Vec<usize>,
        keeper: &mut Keeper<'_, '_>,
    ) -> Result<(), SweepError> {
        if self.verify == 0 {
            return Ok(());
        }
        loop {
            let mut rows = pick(self, &keeper.results);
            rows.retain(|row| keeper.results.verdict(*row).is_none());
            rows.sort_unstable();
            rows.dedup();
            keeper.results.is_unverified = !rows.is_empty();
            if rows.is_empty() || self.is_stopped() {
                return Ok(());
            }
            let jobs = rows.iter().filter_map(|row| self.job_again(&keeper.results, *row));
            self.make(jobs.collect(), keeper)?;
            keeper.find_best();
        }
    }

    fn job_again(&self, results: &Results, row: usize) -> Option<Job> {
        let Finished { combination, .. } = results.rows.get(row)?.as_ref()?;
        Some(Job { row, combination: (*combination)?, days: self.plan.run(row).days, again: true })
    }

    /// The best run of each fold.
    pub(crate) fn best_of_folds(&self, results: &Results) -> Vec<usize> {
        let folds = 0..self.plan.folds().len();
        let best = folds.map(|fold| results.best(self.plan.train_rows(fold), self.rank_by));
        best.flatten().collect()
    }

    /// The runs that the page and the printed table name: the best, those chosen in a walk forward,
    /// and those out of sample.
    pub(crate) fn named_runs(&self, results: &Results) -> Vec<usize> {
        let phase = |row: &usize| self.plan.run(*row).phase;
        let chosen = (0..self.plan.rows()).filter(|row| phase(row) != Phase::Test);
        let mut rows = results.ranked(chosen, self.rank_by);
        rows.truncate(self.verify);
        rows.extend(self.best_of_folds(results));
        let tests = (0..self.plan.folds().len()).map(|fold| self.plan.test_row(fold));
        rows.extend(tests.filter(|row| results.score(*row).is_some()));
        rows
    }
}
