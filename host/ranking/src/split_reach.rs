//! Which rows of an answer look back across a split. It is found out for the rows that are written,
//! and only where somebody asks for it.

use std::sync::Arc;

use pricestore::grid::Splits;

use crate::query::RankRow;

/// The splits that the lags of an answer may reach across.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitReach {
    splits: Arc<Splits>,
    /// The answer's first day in the calendar.
    first_day: u32,
    /// The largest lag, in business days.
    lag: u32,
}

impl SplitReach {
    /// Of an answer that begins on business day `first_day` and looks back `lag` business days.
    #[must_use]
    pub fn new(splits: Arc<Splits>, first_day: u32, lag: u32) -> Self {
        Self { splits, first_day, lag }
    }

    /// Whether a split of the row's issue takes effect after the day of its largest lag, and on its
    /// own day at the latest: then something in its value is of before the split. None where no split is
    /// known, but nobody knows whether there was one.
    #[must_use]
    pub fn spans(&self, row: &RankRow) -> Option<bool> {
        let day = self.first_day + row.day;
        let first = (day + 1).saturating_sub(self.lag);
        let has_split = self.lag > 0 && self.splits.has(row.code, first, day);
        let is_unknown = self.lag > 0 && !has_split && self.splits.is_unknown(row.code, first, day);
        (!is_unknown).then_some(has_split)
    }
}

#[cfg(test)]
mod tests {
    use pricestore::grid::{Split, UnknownDays};

    use super::*;

    #[test]
    fn a_lag_spans_the_splits_after_its_day() {
        let splits = vec![Split { day: 10, code: 1, adjustment: None }];
        let unknown = [1, 2].map(|code| UnknownDays { code, first_day: 9, last_day: 9 }).to_vec();
        let splits = Arc::new(Splits::new(splits, unknown, vec![19]).unwrap());
        let spans = |code: u32, lag: u32, day: u32| {
            let row = RankRow { day, code, close: 1.0, volume: None, sort_value: None, rank: 1 };
            SplitReach::new(Arc::clone(&splits), 5, lag).spans(&row)
        };
        let days = |code, lag, is: Option<bool>| {
            (0..15).filter(|day| spans(code, lag, *day) == is).collect::<Vec<_>>()
        };
        // The answer's days 5 and 6 are business days 10 and 11.
        assert_eq!(days(1, 1, Some(true)), [5]);
        assert_eq!(days(1, 2, Some(true)), [5, 6]);
        assert_eq!(days(1, 100, Some(true)), (5..15).collect::<Vec<_>>());
        assert!(days(1, 0, Some(true)).is_empty() && days(0, 100, Some(true)).is_empty());
        // A split that is known says more than a day of which nothing is.
        assert_eq!((days(1, 2, None), days(2, 2, None)), (vec![4, 14], vec![4, 5, 14]));
        assert_eq!((days(0, 1, None), days(0, 0, None)), (vec![14], vec![]));
    }
}
