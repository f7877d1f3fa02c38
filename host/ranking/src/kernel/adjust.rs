//! Columns of earlier days, made comparable with the ranked day. The rules are a table at
//! [`crate::RankQuery::adjusted`]; the reference statement does the same.

use pricestore::grid::{Grid, Split, Splits};

use crate::formula::Column;

/// The adjusted columns of one day; keeps its memory while adjusted rankings follow each other.
#[derive(Debug, Default)]
pub(super) struct AdjustedLeaves {
    /// One for each leaf; empty where its day and the ranked one compare as they are, for all issues.
    stripes: Vec<Vec<f64>>,
    /// One for each code, 1 between two leaves.
    factors: Vec<f64>,
}

impl AdjustedLeaves {
    /// Adjusts nothing, and keeps nothing.
    pub(super) fn clear(&mut self) {
        if !self.stripes.is_empty() {
            *self = Self::default();
        }
    }

    /// Adjusts the leaves of a day. Most lags span nothing; those columns are used as they are.
    pub(super) fn fill(
        &mut self,
        grid: &Grid,
        splits: &Splits,
        leaves: &[(Column, u32)],
        day: usize,
    ) {
        self.stripes.resize_with(leaves.len(), Vec::new);
        self.factors.resize(grid.codes().len(), 1.0);
        for (stripe, (column, lag)) in self.stripes.iter_mut().zip(leaves) {
            stripe.clear();
            let Some(row_day) = day.checked_sub(*lag as usize) else { continue };
            let (first, last) = (row_day as u32 + 1, day as u32);
            let (between, has_gap) = (splits.between(first, last), splits.has_gap(first, last));
            let mut unknown = splits.unknown_codes(first, last).peekable();
            if between.is_empty() && unknown.peek().is_none() && !has_gap {
                continue;
            }
            stripe.extend_from_slice(grid.stripe(row_day, *column));
            if has_gap {
                stripe.fill(f64::NAN);
                continue;
            }
            scale(stripe, &mut self.factors, between, *column);
            for code in unknown {
                if let Some(cell) = stripe.get_mut(code as usize) {
                    *cell = f64::NAN;
                }
            }
        }
    }

    /// A leaf's adjusted column; none where it is as the grid has it.
    pub(super) fn stripe(&self, leaf: usize) -> Option<&[f64]> {
        self.stripes.get(leaf).map(Vec::as_slice).filter(|stripe| !stripe.is_empty())
    }
}

/// Scales the cells of the issues with a split; `factors` are 1 before and after.
fn scale(stripe: &mut [f64], factors: &mut [f64], between: &[Split], column: Column) {
    for split in between {
        if let Some(product) = factors.get_mut(split.code as usize) {
            *product *= split.factor.unwrap_or(f64::NAN);
        }
    }
    for Split { code, .. } in between {
        let place = *code as usize;
        let (Some(cell), Some(factor)) = (stripe.get_mut(place), factors.get_mut(place)) else {
            continue;
        };
        // An issue's second split finds 1 here and changes nothing.
        let factor = std::mem::replace(factor, 1.0);
        let scaled = match column {
            Column::Volume => *cell / factor,
            Column::Open | Column::High | Column::Low | Column::Close => *cell * factor,
        };
        // Columns hold no 0 and nothing infinite.
        let is_value = scaled != 0.0 && scaled.is_finite();
        *cell = if is_value { scaled } else { f64::NAN };
    }
}
