//! Ranks single days: the formula or the module over all codes, then the first rows.

use std::sync::Arc;

use pricestore::grid::{Grid, GridFault, stored_value};

use crate::formula::Column;
use crate::query::{RankOrder, RankRow};
use crate::registry::BoundFormula;

use super::adjust::AdjustedLeaves;
use super::modules::{InstanceCache, ModuleFault};
use super::program::{CHUNK, Program};
use super::top::Top;

/// What every day of a query has in common.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What gives the values.
    pub(crate) values: Values,
    /// Which end comes first.
    pub(crate) order: RankOrder,
    /// Rows of each day.
    pub(crate) limit: usize,
    /// Indices of the codes that take part, ascending; all when `None`.
    pub(crate) codes: Option<Vec<u32>>,
    /// Whether values of earlier days are scaled by the splits since then, of a grid that has them.
    pub(crate) adjusted: bool,
}

/// What gives the values of a day.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// A formula, compiled.
    Formula(Program),
    /// A sandboxed module.
    Module(Arc<BoundFormula>),
}

impl Values {
    /// The columns that are read, with their lags.
    fn leaves(&self) -> &[(Column, u32)] {
        match self {
            Self::Formula(program) => program.leaves(),
            Self::Module(bound) => bound.leaves(),
        }
    }
}

/// Why a day could not be ranked.
#[derive(Debug)]
pub(crate) enum DayFault {
    /// The grid is damaged.
    Grid(GridFault),
    /// The module failed.
    Module(ModuleFault),
}

impl From<GridFault> for DayFault {
    fn from(fault: GridFault) -> Self {
        Self::Grid(fault)
    }
}

/// Ranks days; keeps its memory between them.
#[derive(Debug, Default)]
pub(crate) struct DayRanker {
    registers: Vec<Vec<f64>>,
    keys: Vec<f64>,
    chosen: Vec<f64>,
    nulls: Vec<f64>,
    adjusted: AdjustedLeaves,
    modules: InstanceCache,
    top: Top,
}

impl DayRanker {
    /// Appends the rows of one business day of the grid to `rows`, as day `shown_day` of the
    /// answer.
    pub(crate) fn rank(
        &mut self,
        grid: &Grid,
        plan: &Plan,
        day: usize,
        shown_day: u32,
        rows: &mut Vec<RankRow>,
    ) -> Result<(), DayFault> {
        check(grid, plan.values.leaves(), day)?;
        match grid.splits().filter(|_| plan.adjusted) {
            Some(splits) => self.adjusted.fill(grid, splits, plan.values.leaves(), day),
            None => self.adjusted.clear(),
        }
        match &plan.values {
            Values::Formula(program) => self.keys(grid, program, plan.order, day),
            Values::Module(bound) => self.module_keys(grid, bound, plan.order, day)?,
        }
        let closes = grid.stripe(day, Column::Close);
        let volumes = grid.stripe(day, Column::Volume);
        let row = |code: u32, sort_value: Option<f64>, rank: usize| RankRow {
            day: shown_day,
            code,
            close: closes.get(code as usize).copied().unwrap_or(f64::NAN),
            volume: volumes.get(code as usize).and_then(|cell| stored_value(*cell)),
            sort_value,
            rank: rank as u32 + 1,
        };
        let chosen = plan.codes.as_deref();
        let keys = match chosen {
            None => &self.keys,
            Some(codes) => {
                let key = |code: &u32| self.keys.get(*code as usize).copied().unwrap_or(f64::NAN);
                self.chosen.clear();
                self.chosen.extend(codes.iter().map(key));
                &self.chosen
            }
        };
        let code_at =
            |index: usize| chosen.map_or(Some(index as u32), |codes| codes.get(index).copied());
        let found = self.top.of(keys, plan.limit);
        for (rank, (key, index)) in found.iter().enumerate() {
            let value = if plan.order == RankOrder::Asc { -key } else { *key };
            // Adding 0 makes a negative zero a plain one.
            rows.extend(code_at(*index as usize).map(|code| row(code, Some(value + 0.0), rank)));
        }
        // Rows with a close but without a value come last, by code.
        let mut rank = found.len();
        for (index, key) in keys.iter().enumerate() {
            if rank >= plan.limit {
                break;
            }
            let has_close =
                |code: &u32| closes.get(*code as usize).is_some_and(|close| !close.is_nan());
            if key.is_nan()
                && let Some(code) = code_at(index).filter(has_close)
            {
                rows.push(row(code, None, rank));
                rank += 1;
            }
        }
        Ok(())
    }

    /// Fills `keys`: larger is better, "not a number" for rows without a value or a close.
    fn keys(&mut self, grid: &Grid, program: &Program, order: RankOrder, day: usize) {
        let codes = grid.codes().len();
        self.keys.resize(codes, f64::NAN);
        self.nulls.resize(CHUNK.max(self.nulls.len()), f64::NAN);
        let registers = program.registers();
        self.registers.resize_with(registers.max(self.registers.len()), || vec![0.0; CHUNK]);
        let adjusted = &self.adjusted;
        let leaves = program.leaves().iter().enumerate();
        let stripes: Vec<Option<&[f64]>> = leaves
            .map(|(index, leaf)| adjusted.stripe(index).or_else(|| leaf_stripe(grid, day, *leaf)))
            .collect();
        let closes = (!program.needs_close()).then(|| grid.stripe(day, Column::Close));
        let negate = order == RankOrder::Asc;
        let mut leaves: Vec<&[f64]> = Vec::with_capacity(stripes.len());
        for (chunk, out) in self.keys.chunks_mut(CHUNK).enumerate() {
            let range = chunk * CHUNK..chunk * CHUNK + out.len();
            leaves.clear();
            leaves.extend(stripes.iter().map(|stripe| match stripe {
                Some(stripe) => stripe.get(range.clone()).unwrap_or_default(),
                None => self.nulls.get(..out.len()).unwrap_or_default(),
            }));
            program.run(&leaves, &mut self.registers, out);
            finish(out, closes.and_then(|closes| closes.get(range)), negate);
        }
    }

    /// Fills `keys` like [`DayRanker::keys`], from a module.
    fn module_keys(
        &mut self,
        grid: &Grid,
        bound: &BoundFormula,
        order: RankOrder,
        day: usize,
    ) -> Result<(), DayFault> {
        let codes = grid.codes().len();
        self.keys.resize(codes, f64::NAN);
        self.nulls.resize(codes.max(self.nulls.len()), f64::NAN);
        let nulls = self.nulls.get(..codes).unwrap_or_default();
        let adjusted = &self.adjusted;
        let stripe = |(index, leaf): (usize, &(Column, u32))| {
            adjusted.stripe(index).or_else(|| leaf_stripe(grid, day, *leaf)).unwrap_or(nulls)
        };
        let columns: Vec<&[f64]> = bound.leaves().iter().enumerate().map(stripe).collect();
        let outcome = self.modules.evaluate(bound, &columns, &mut self.keys);
        outcome.map_err(DayFault::Module)?;
        finish(&mut self.keys, Some(grid.stripe(day, Column::Close)), order == RankOrder::Asc);
        Ok(())
    }
}

/// A leaf's column on `day`; `None` before the calendar's first day.
fn leaf_stripe(grid: &Grid, day: usize, (column, lag): (Column, u32)) -> Option<&[f64]> {
    day.checked_sub(lag as usize).map(|day| grid.stripe(day, column))
}

/// Holds everything that the day reads against its digests.
fn check(grid: &Grid, leaves: &[(Column, u32)], day: usize) -> Result<(), GridFault> {
    grid.check(day, Column::Close)?;
    grid.check(day, Column::Volume)?;
    for (column, lag) in leaves {
        if let Some(day) = day.checked_sub(*lag as usize) {
            grid.check(day, *column)?;
        }
    }
    Ok(())
}

/// Makes keys of values: none without a close, none that is infinite, the other way round for
/// ascending order. All in one pass: a module's values and the closes are more than stays near.
fn finish(values: &mut [f64], closes: Option<&[f64]>, negate: bool) {
    let sign = if negate { -1.0 } else { 1.0 };
    let key = |value: f64, is_one: bool| {
        if is_one & (value.abs() < f64::INFINITY) { value * sign } else { f64::NAN }
    };
    match closes {
        Some(closes) => {
            for (value, close) in values.iter_mut().zip(closes) {
                *value = key(*value, !close.is_nan());
            }
        }
        None => values.iter_mut().for_each(|value| *value = key(*value, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_values_with_a_close_become_keys() {
        let given = [1.5, -2.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 7.0];
        let closes = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, f64::NAN];
        let shown = |closes: Option<&[f64]>, negate| {
            let mut values = given;
            finish(&mut values, closes, negate);
            values.map(|value| (!value.is_nan()).then_some(value))
        };
        let (none, all) = (None, [Some(1.5), Some(-2.0), Some(0.0), None, None, None, Some(7.0)]);
        assert_eq!(shown(None, false), all);
        assert_eq!(shown(None, true), all.map(|value| value.map(|value| -value)));
        let [first, second, third, ..] = all;
        assert_eq!(shown(Some(&closes), false), [first, second, third, none, none, none, none]);
    }
}
