//! On which days samples trade.

use domain::JstDate;
use domain::session::is_usually_closed;

/// Trading days from `start` on, without an end before the calendar's.
pub(super) fn trading_days(start: JstDate) -> impl Iterator<Item = JstDate> {
    start.iter_days().filter(|date| is_trading_day(*date))
}

/// Whether samples trade on `date`. They need not know movable holidays.
fn is_trading_day(date: JstDate) -> bool {
    !is_usually_closed(date)
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
