//! Finished runs: one, one that was verified, and all that a sweep has, row by row.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::score::{Score, Statistic};

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// Its row in the table.
    pub row: usize,
    /// The combination of the grid that ran; none when a fold had no run to choose.
    pub combination: Option<u64>,
    /// Its numbers; none when it failed.
    pub score: Option<Score>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A run that was made again with window 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Its row in the table.
    pub verified_row: usize,
    /// xxh3-128 of the event log with window 1; none when the run failed there.
    pub digest: Option<String>,
}

/// What a sweep has, row by row.
#[derive(Debug, Default)]
pub struct Results {
    /// The runs in the order of the table; none where one was not run. A part of a large sweep has few.
    pub rows: Vec<Option<Box<Finished>>>,
    /// Runs that were kept from before.
    pub kept: usize,
    /// What runs gave that were made again with window 1, by their rows.
    pub verified: BTreeMap<usize, Verified>,
    /// Whether runs that should have been made again were not.
    pub is_unverified: bool,
}

impl Results {
    /// Whether every run is done, and those are verified that should be.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.is_unverified && self.rows.iter().all(Option::is_some)
    }

    /// Whether all runs of a fold are done from which one is chosen.
    #[must_use]
    pub fn is_fold_whole(&self, plan: &Plan, fold: usize) -> bool {
        self.rows[plan.train_rows(fold)].iter().all(Option::is_some)
    }

    /// The numbers of the runs that have some.
    pub(crate) fn scores(&self) -> impl Iterator<Item = &Score> {
        self.rows.iter().flatten().filter_map(|run| run.score.as_ref())
    }

    /// Runs that are done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// Runs that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.rows.iter().flatten().filter(|run| run.score.is_none()).count()
    }

    /// The rows of these that have numbers and did not see the future, the best first; of equal ones
    /// the earlier.
    #[must_use]
    pub fn ranked(&self, rows: impl Iterator<Item = usize>, by: Statistic) -> Vec<usize> {
        let mut ranked: Vec<usize> = rows.filter(|row| self.is_ranked(*row)).collect();
        ranked.sort_by(|left, right| self.compare(*left, *right, by));
        ranked
    }

    /// The best of these rows; none when none is ranked.
    #[must_use]
    pub fn best(&self, rows: impl Iterator<Item = usize>, by: Statistic) -> Option<usize> {
        rows.filter(|row| self.is_ranked(*row))
            .min_by(|left, right| self.compare(*left, *right, by))
    }

    pub(crate) fn score(&self, row: usize) -> Option<&Score> {
        self.rows.get(row)?.as_ref()?.score.as_ref()
    }

    fn is_ranked(&self, row: usize) -> bool {
        self.score(row).is_some() && !self.saw_the_future(row)
    }

    fn compare(&self, left: usize, right: usize, by: Statistic) -> std::cmp::Ordering {
        by.compare(self.score(left), self.score(right)).then_with(|| left.cmp(&right))
    }
}
