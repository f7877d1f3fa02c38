//! Runs that people look at, once more with window 1.
//!
//! A sweep hands a strategy many trades at once, because that is several times faster. A strategy that
//! reads rows which it was not told to handle yet sees the future that way. With window 1 there is
//! nothing to read, and its event log is another one.

use std::collections::BTreeMap;

use crate::execute::{Job, Keeper, Sweep, SweepError};
use crate::finished::{Finished, Results, Verified};
use crate::manifest::Asked;
use crate::plan::{Phase, Plan};

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
            let rows = keeper.results.unverified(pick(self, &keeper.results));
            keeper.results.is_unverified = !rows.is_empty();
            if rows.is_empty() || self.is_stopped() || self.leaves_verifying {
                return Ok(());
            }
            let jobs = rows.iter().filter_map(|row| self.job_again(&keeper.results, *row));
            self.make(jobs.collect(), keeper)?;
            keeper.find_best();
        }
    }

    fn job_again(&self, results: &Results, row: usize) -> Option<Job> {
        let Finished { combination, .. } = results.rows.get(row)?.as_deref()?;
        Some(Job { row, combination: (*combination)?, days: self.plan.run(row).days, again: true })
    }

    pub(crate) fn asked(&self) -> Asked {
        Asked { rank_by: self.rank_by, verify: self.verify }
    }

    pub(crate) fn best_of_folds(&self, results: &Results) -> Vec<usize> {
        best_of_folds(self.plan, self.asked(), results)
    }

    pub(crate) fn named_runs(&self, results: &Results) -> Vec<usize> {
        named_runs(self.plan, self.asked(), results)
    }
}

/// The best run of each fold, of which all runs to choose from are done.
fn best_of_folds(plan: &Plan, asked: Asked, results: &Results) -> Vec<usize> {
    let folds = (0..plan.folds().len()).filter(|fold| results.is_fold_whole(plan, *fold));
    folds.filter_map(|fold| results.best(plan.train_rows(fold), asked.rank_by)).collect()
}

/// The runs that the page and the printed table name: the best, those chosen in a walk forward,
/// and those out of sample.
fn named_runs(plan: &Plan, asked: Asked, results: &Results) -> Vec<usize> {
    let phase = |row: &usize| plan.run(*row).phase;
    let chosen = (0..plan.rows()).filter(|row| phase(row) != Phase::Test);
    let mut rows = results.ranked(chosen, asked.rank_by);
    rows.truncate(asked.verify);
    rows.extend(best_of_folds(plan, asked, results));
    let tests = (0..plan.folds().len()).map(|fold| plan.test_row(fold));
    rows.extend(tests.filter(|row| results.score(*row).is_some()));
    rows
}

impl Results {
    /// Those of these rows that were not made again, in rising order.
    fn unverified(&self, mut rows: Vec<usize>) -> Vec<usize> {
        rows.retain(|row| self.verdict(*row).is_none());
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Takes of `known` what one machine would have made again, in the same turns, and says whether
    /// something is missing. Each part has made its own best again, and every one of the best of all
    /// is among the best of its part: so parts that did this miss nothing.
    pub(crate) fn settle(&mut self, plan: &Plan, asked: Asked, known: &BTreeMap<usize, Verified>) {
        self.verified.clear();
        self.is_unverified = false;
        if asked.verify == 0 {
            return;
        }
        for pick in [best_of_folds, named_runs] {
            loop {
                let rows = self.unverified(pick(plan, asked, self));
                let found: Vec<&Verified> = rows.iter().filter_map(|row| known.get(row)).collect();
                self.is_unverified |= found.len() < rows.len();
                if found.is_empty() {
                    break;
                }
                self.verified.extend(found.into_iter().map(|one| (one.verified_row, one.clone())));
            }
        }
    }
}
