//! Columns of earlier days, made comparable with the ranked day. The rules are a table at
//! [`crate::RankQuery::adjusted`]; the reference statement does the same.

use pricestore::grid::{Grid, Split, Splits};

use crate::formula::Column;

/// Units of a price in one yen.
const PRICE_UNITS: f64 = 1e4;

/// The adjusted columns of one day; keeps its memory while adjusted rankings follow each other.
#[derive(Debug, Default)]
pub(super) struct AdjustedLeaves {
    /// One for each leaf; empty where its day and the ranked one compare as they are, for all issues.
    stripes: Vec<Vec<f64>>,
    /// New and old shares of each code, 1 between two leaves.
    terms: Vec<(f64, f64)>,
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
        self.terms.resize(grid.codes().len(), (1.0, 1.0));
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
            scale(stripe, &mut self.terms, between, *column);
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

/// Scales the cells of the issues with a split; `terms` are 1 before and after. Prices are whole 1/10,000 yen until
/// they are divided, so that one that did not move is the same number; volumes stay whole shares.
fn scale(stripe: &mut [f64], terms: &mut [(f64, f64)], between: &[Split], column: Column) {
    for split in between {
        if let Some((new, old)) = terms.get_mut(split.code as usize) {
            let (of_new, of_old) = split.adjustment.map_or((f64::NAN, f64::NAN), |adjustment| {
                let (new, old) = adjustment.terms();
                (f64::from(new), f64::from(old))
            });
            (*new, *old) = (*new * of_new, *old * of_old);
        }
    }
    for Split { code, .. } in between {
        let place = *code as usize;
        let (Some(cell), Some(terms)) = (stripe.get_mut(place), terms.get_mut(place)) else {
            continue;
        };
        // An issue's second split finds 1 here and changes nothing.
        let (new, old) = std::mem::replace(terms, (1.0, 1.0));
        if new == old {
            continue;
        }
        let scaled = match column {
            Column::Volume => (*cell * new / old).round(),
            Column::Open | Column::High | Column::Low | Column::Close => {
                (*cell * PRICE_UNITS).round() * old / new / PRICE_UNITS
            }
        };
        // Columns hold no 0 and nothing infinite.
        let is_value = scaled != 0.0 && scaled.is_finite();
        *cell = if is_value { scaled } else { f64::NAN };
    }
}
