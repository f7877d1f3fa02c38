//! Which runs a sweep has, in which order, and over which days.

use std::ops::Range;

use domain::JstDate;
use domain::limits::SWEEP_RUNS_MAX;
use serde_json::{Value, json};

use crate::grid::{Grid, GridError};
use crate::points;
use crate::rows::RowRange;
use crate::sample::distinct_below;
use crate::windows::{Fold, WalkForward};

/// Which combinations of a grid are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// All of them.
    All,
    /// So many of them, drawn with this seed.
    Random {
        /// How many.
        runs: u64,
        /// The seed.
        seed: u64,
    },
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A run over all days, of a sweep without walk-forward.
    Whole,
    /// A run on the days to choose on.
    Train,
    /// The best of its fold, on the days after: out of sample.
    Test,
}

impl Phase {
    /// One word for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// A run of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its row in the table, from 0.
    pub row: usize,
    /// Its fold, from 0; none without walk-forward.
    pub fold: Option<usize>,
    /// What it is for.
    pub phase: Phase,
    /// The combination of the grid; none for a test run, which takes the best of its fold.
    pub combination: Option<u64>,
    /// The trading days, as indexes in the list of days.
    pub days: Range<usize>,
}

/// All runs of a sweep.
#[derive(Debug, Clone)]
pub struct Plan {
    grid: Grid,
    choice: Choice,
    walk_forward: Option<WalkForward>,
    combinations: Vec<u64>,
    folds: Vec<Fold>,
    days: Vec<JstDate>,
}

impl Plan {
    /// A plan over these trading days. `folds` are those of `walk_forward`; empty without it.
    ///
    /// # Errors
    /// [`GridError`] when there is no run, or when there are too many.
    pub fn new(
        grid: Grid,
        choice: Choice,
        walk_forward: Option<(WalkForward, Vec<Fold>)>,
        days: Vec<JstDate>,
    ) -> Result<Self, GridError> {
        let (walk_forward, folds) = match walk_forward {
            Some((walk_forward, folds)) => (Some(walk_forward), folds),
            None => (None, Vec::new()),
        };
        let chosen = match choice {
            Choice::All => grid.combinations(),
            Choice::Random { runs: 0, .. } => return Err(GridError::NoRuns),
            Choice::Random { runs, .. } => runs.min(grid.combinations()),
        };
        let runs = match folds.len() as u64 {
            0 => chosen,
            folds => chosen.saturating_add(1).saturating_mul(folds),
        };
        if runs > SWEEP_RUNS_MAX {
            return Err(GridError::TooManyRuns(runs));
        }
        let combinations = match choice {
            Choice::All => (0..chosen).collect(),
            Choice::Random { runs, seed } => distinct_below(grid.combinations(), runs, seed),
        };
        Ok(Self { grid, choice, walk_forward, combinations, folds, days })
    }

    /// The grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The folds of the walk forward; empty without it.
    #[must_use]
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// How long the walk-forward windows are.
    #[must_use]
    pub fn walk_forward(&self) -> Option<WalkForward> {
        self.walk_forward
    }

    /// The trading days of the data.
    #[must_use]
    pub fn days(&self) -> &[JstDate] {
        &self.days
    }

    /// Rows of the table: one for each run.
    #[must_use]
    pub fn rows(&self) -> usize {
        let chosen = self.combinations.len();
        if self.folds.is_empty() { chosen } else { self.folds.len() * (chosen + 1) }
    }

    /// The rows that a part was asked for; all of them where it was not.
    ///
    /// # Errors
    /// [`GridError::NoSuchRows`] when the sweep has fewer.
    pub fn rows_of(&self, part: Option<RowRange>) -> Result<Range<usize>, GridError> {
        let Some(part) = part else { return Ok(0..self.rows()) };
        if part.end() > self.rows() {
            return Err(GridError::NoSuchRows(part, self.rows()));
        }
        Ok(part.range())
    }

    /// First and last date of the trading days at these indexes, `YYYY-MM-DD`.
    #[must_use]
    pub fn period(&self, days: &Range<usize>) -> Option<(String, String)> {
        let first = self.days.get(days.start)?;
        let last = self.days.get(days.end.checked_sub(1)?)?;
        Some((first.to_string(), last.to_string()))
    }

    /// The run of a row. Rows are in the order of the grid; with walk-forward, fold by fold, and in
    /// each fold the test run stands last.
    #[must_use]
    pub fn run(&self, row: usize) -> PlannedRun {
        let chosen = self.combinations.len();
        let block = chosen + usize::from(!self.folds.is_empty());
        let (fold, index) = (row / block, row % block);
        let combination = self.combinations.get(index).copied();
        let (phase, days) = match self.folds.get(fold) {
            None => (Phase::Whole, 0..self.days.len()),
            Some(fold) if index < chosen => (Phase::Train, fold.train.clone()),
            Some(fold) => (Phase::Test, fold.test.clone()),
        };
        let fold = (phase != Phase::Whole).then_some(fold);
        PlannedRun { row, fold, phase, combination, days }
    }

    /// The rows of a fold's runs to choose from.
    #[must_use]
    pub fn train_rows(&self, fold: usize) -> Range<usize> {
        let chosen = self.combinations.len();
        let start = fold * (chosen + 1);
        start..start + chosen
    }

    /// The row of a fold's test run.
    #[must_use]
    pub fn test_row(&self, fold: usize) -> usize {
        self.train_rows(fold).end
    }

    /// What the plan was asked to be, for the journal's header and the manifest.
    #[must_use]
    pub fn described(&self) -> Value {
        let choice = match self.choice {
            Choice::All => self.grid.points().map_or_else(|| json!("all"), points::described),
            Choice::Random { runs, seed } => json!({ "random": runs, "seed": seed }),
        };
        // Points can be many, and are pinned by their digest: their names are enough.
        let names = || self.grid.axes().iter().map(|axis| &axis.name).collect::<Vec<_>>();
        json!({
            "grid": match self.grid.points() {
                None => json!(self.grid.axes()),
                Some(_) => json!(names()),
            },
            "parameters": self.grid.fixed(),
            "combinations": choice,
            "walk_forward": self.walk_forward.map(|asked| asked.to_string()),
            "days": self.days.len(),
            "first_day": self.days.first().map(ToString::to_string),
            "last_day": self.days.last().map(ToString::to_string),
            "runs": self.rows(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn days(count: usize) -> Vec<JstDate> {
        JstDate::from_ymd_opt(2025, 1, 6).unwrap().iter_days().take(count).collect()
    }

    fn grid(axes: &[&str]) -> Grid {
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        Grid::new(axes, BTreeMap::new()).unwrap()
    }

    #[test]
    fn a_plain_plan_is_the_grid() {
        let plan = Plan::new(grid(&["a=1,2", "b=1,2,3"]), Choice::All, None, days(5)).unwrap();
        assert_eq!(plan.rows(), 6);
        let run = plan.run(4);
        assert_eq!((run.phase, run.fold, run.combination), (Phase::Whole, None, Some(4)));
        assert_eq!(run.days, 0..5);
    }

    #[test]
    fn a_random_plan_is_in_the_order_of_the_grid() {
        let random = Choice::Random { runs: 3, seed: 7 };
        let plan = Plan::new(grid(&["a=1:100:1"]), random, None, days(1)).unwrap();
        let drawn: Vec<_> = (0..plan.rows()).map(|row| plan.run(row).combination).collect();
        assert!(drawn.len() == 3 && drawn.is_sorted());
        assert_eq!(plan.described()["combinations"], json!({ "random": 3, "seed": 7 }));
    }

    #[test]
    fn a_walk_forward_plan_has_a_test_run_for_each_fold() {
        let asked: WalkForward = "2d/1d".parse().unwrap();
        let days = days(5);
        let folds = asked.folds(&days).unwrap();
        let plan = Plan::new(grid(&["a=1,2"]), Choice::All, Some((asked, folds)), days).unwrap();
        assert_eq!(plan.rows(), 9);
        let seen: Vec<_> = (0..9)
            .map(|row| {
                let run = plan.run(row);
                (run.fold.unwrap(), run.phase.as_str(), run.combination, run.days)
            })
            .collect();
        assert_eq!(
            seen[..3],
            [(0, "train", Some(0), 0..2), (0, "train", Some(1), 0..2), (0, "test", None, 2..3)]
        );
        assert_eq!(seen[8], (2, "test", None, 4..5));
        assert_eq!((plan.train_rows(1), plan.test_row(1)), (3..5, 5));
    }

    #[test]
    fn the_number_of_runs_is_limited() {
        let new = |axes: &[&str], choice| Plan::new(grid(axes), choice, None, days(1));
        assert_eq!(new(&["a=1:1000000:1"], Choice::All).unwrap().rows(), 1_000_000);
        let large = ["a=1:1000000:1", "b=1,2"];
        assert_eq!(new(&large, Choice::All).unwrap_err(), GridError::TooManyRuns(2_000_000));
        let some = Choice::Random { runs: 10, seed: 1 };
        assert_eq!(new(&large, some).unwrap().rows(), 10);
        let none = Choice::Random { runs: 0, seed: 1 };
        assert_eq!(new(&large, none).unwrap_err(), GridError::NoRuns);
    }
}
