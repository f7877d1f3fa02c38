//! On which days samples trade.

use chrono::{Datelike, Weekday};
use domain::JstDate;

/// Holidays of the exchange that have the same date each year, as (month, day). Movable ones are
/// left out: a sample need not know them.
const HOLIDAYS: [(u32, u32); 13] = [
    (1, 1),
    (1, 2),
    (1, 3),
    (2, 11),
    (2, 23),
    (4, 29),
    (5, 3),
    (5, 4),
    (5, 5),
    (8, 11),
    (11, 3),
    (11, 23),
    (12, 31),
];

/// Trading days from `start` on, without an end before the calendar's.
pub(super) fn trading_days(start: JstDate) -> impl Iterator<Item = JstDate> {
    start.iter_days().filter(|date| is_trading_day(*date))
}

/// Whether samples trade on `date`.
pub(crate) fn is_trading_day(date: JstDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
        && !HOLIDAYS.contains(&(date.month(), date.day()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekends_and_holidays_are_skipped() {
        let start = "2024-12-27".parse().unwrap();
        let days: Vec<_> = trading_days(start).take(4).map(|day| day.to_string()).collect();
        assert_eq!(days, ["2024-12-27", "2024-12-30", "2025-01-06", "2025-01-07"]);
    }
}
