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
    /// own day at the latest: then something in its value is of before the split.
    #[must_use]
    pub fn spans(&self, row: &RankRow) -> bool {
        let day = self.first_day + row.day;
        let first = (day + 1).saturating_sub(self.lag);
        self.lag > 0 && self.splits.has(row.code, first, day)
    }
}

#[cfg(test)]
mod tests {
    use pricestore::grid::Split;

    use super::*;

    #[test]
    fn a_lag_spans_the_splits_after_its_day() {
        let splits = vec![Split { day: 10, code: 1, factor: None }];
        let splits = Arc::new(Splits::new(splits, Vec::new()).unwrap());
        let spans = |code: u32, lag: u32, day: u32| {
            let row = RankRow { day, code, close: 1.0, volume: None, sort_value: None, rank: 1 };
            SplitReach::new(Arc::clone(&splits), 5, lag).spans(&row)
        };
        let days = |code, lag| (0..15).filter(|day| spans(code, lag, *day)).collect::<Vec<_>>();
        // The answer's days 5 and 6 are business days 10 and 11.
        assert_eq!(days(1, 1), [5]);
        assert_eq!(days(1, 2), [5, 6]);
        assert_eq!(days(1, 100), (5..15).collect::<Vec<_>>());
        assert!(days(1, 0).is_empty() && days(0, 100).is_empty());
    }
}
