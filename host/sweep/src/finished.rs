//! Finished runs: one, and all that a sweep has, row by row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// What a sweep has, row by row.
#[derive(Debug)]
pub struct Results {
    /// The runs in the order of the table; none where one was not run.
    pub rows: Vec<Option<Finished>>,
    /// Runs that were kept from before.
    pub kept: usize,
}

impl Results {
    /// Whether every run is done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(Option::is_some)
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

    /// The rows of these that have numbers, the best first; of equal ones the earlier.
    #[must_use]
    pub fn ranked(&self, rows: impl Iterator<Item = usize>, by: Statistic) -> Vec<usize> {
        let score = |row: usize| self.rows.get(row)?.as_ref()?.score.as_ref();
        let mut ranked: Vec<usize> = rows.filter(|row| score(*row).is_some()).collect();
        ranked.sort_by(|left, right| {
            by.compare(score(*left), score(*right)).then_with(|| left.cmp(right))
        });
        ranked
    }

    /// The best of these rows; none when none has numbers.
    #[must_use]
    pub fn best(&self, rows: impl Iterator<Item = usize>, by: Statistic) -> Option<usize> {
        self.ranked(rows, by).first().copied()
    }
}
