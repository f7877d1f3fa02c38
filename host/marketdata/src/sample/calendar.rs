//! On which days samples trade.

use domain::{JstDate, holidays};

/// Trading days from `start` on, by the rules of Japan's holidays, without an end before the calendar's.
pub(super) fn trading_days(start: JstDate) -> impl Iterator<Item = JstDate> {
    start.iter_days().filter(|date| !holidays::is_closed(*date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekends_and_holidays_are_skipped() {
        let days = |start: &str| -> Vec<String> {
            trading_days(start.parse().unwrap()).take(4).map(|day| day.to_string()).collect()
        };
        assert_eq!(days("2024-12-27"), ["2024-12-27", "2024-12-30", "2025-01-06", "2025-01-07"]);
        // Coming of Age Day moves from year to year.
        assert_eq!(days("2025-01-10"), ["2025-01-10", "2025-01-14", "2025-01-15", "2025-01-16"]);
    }
}
