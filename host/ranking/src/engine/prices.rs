//! One issue's daily prices of a period, as a snapshot holds them.

use std::slice::from_ref;

use domain::JstDate;
use domain::formula::Column;
use pricestore::grid::stored_value;

use super::find_codes;
use super::snapshot::{Snapshot, snapshot_error};
use crate::error::RankError;
use crate::limits::{PRICE_DAYS_MAX, SLICE_DAYS};
use crate::query::CancelToken;

/// Which prices are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceQuery {
    /// The code, as listed.
    pub code: String,
    /// First day, included.
    pub from: JstDate,
    /// Last day, included; before `from` there is nothing.
    pub to: JstDate,
}

/// An issue on one business day. What is not stored is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DailyPrice {
    /// The day.
    pub date: JstDate,
    /// First price of the day, yen, as stored.
    pub open: Option<f64>,
    /// Highest price, yen.
    pub high: Option<f64>,
    /// Lowest price, yen.
    pub low: Option<f64>,
    /// Last price, yen.
    pub close: Option<f64>,
    /// Shares traded.
    pub volume: Option<f64>,
}

/// Reads the prices of one issue. Days on which it has nothing are left out.
pub(super) fn read(
    snapshot: &Snapshot,
    query: &PriceQuery,
    cancel: &CancelToken,
) -> Result<Vec<DailyPrice>, RankError> {
    let found = find_codes(snapshot, from_ref(&query.code))?;
    let code = found.first().map_or(usize::MAX, |code| *code as usize);
    let (grid, number) = (&snapshot.grid, snapshot.info.number);
    let calendar = grid.days();
    let first = calendar.partition_point(|day| *day < query.from);
    let end = calendar.partition_point(|day| *day <= query.to).max(first);
    check_days(query, end - first)?;
    let mut prices = Vec::with_capacity(end - first);
    for (day, date) in calendar.iter().copied().enumerate().take(end).skip(first) {
        if (day - first).is_multiple_of(SLICE_DAYS) && cancel.is_cancelled() {
            return Err(RankError::Cancelled);
        }
        let value = |column: Column| -> Result<Option<f64>, RankError> {
            grid.check(day, column).map_err(|fault| snapshot_error(number, fault))?;
            Ok(grid.stripe(day, column).get(code).copied().and_then(stored_value))
        };
        let price = DailyPrice {
            date,
            open: value(Column::Open)?,
            high: value(Column::High)?,
            low: value(Column::Low)?,
            close: value(Column::Close)?,
            volume: value(Column::Volume)?,
        };
        let values = [price.open, price.high, price.low, price.close, price.volume];
        if values.iter().any(Option::is_some) {
            prices.push(price);
        }
    }
    Ok(prices)
}

/// Holds a number of business days against the limit.
fn check_days(query: &PriceQuery, days: usize) -> Result<(), RankError> {
    if days <= PRICE_DAYS_MAX {
        return Ok(());
    }
    let PriceQuery { from, to, .. } = query;
    Err(RankError::Range(format!(
        "{from} to {to} has {days} business days and an answer may have {PRICE_DAYS_MAX}; ask for a \
         shorter period"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_has_a_limit() {
        let day = |text: &str| text.parse().unwrap();
        let query =
            PriceQuery { code: "1301".to_owned(), from: day("2000-01-04"), to: day("2024-01-04") };
        assert!(check_days(&query, PRICE_DAYS_MAX).is_ok());
        let error = check_days(&query, PRICE_DAYS_MAX + 1).unwrap_err();
        assert_eq!(error.code(), "RANGE_INVALID");
        let text = error.to_string();
        assert!(text.contains("2000-01-04 to 2024-01-04 has 2601 business days"), "{text}");
    }
}
