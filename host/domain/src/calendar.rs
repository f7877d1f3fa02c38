//! Business days and the pauses of a day, as market data shows them.

use crate::session::{AFTERNOON_OPEN, AUCTION_SLACK, close_of};
use crate::time::{JST_OFFSET_NANOS, JstDate, NANOS_PER_DAY, TsNanos};

/// Business days, derived from data: a date without any trade is none. No list of holidays is kept,
/// because the data knows them all, extraordinary closures included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TradingCalendar {
    days: Vec<JstDate>,
}

impl TradingCalendar {
    /// The calendar of the dates on which something traded, in any order and as often as they come.
    #[must_use]
    pub fn from_dates(dates: impl IntoIterator<Item = JstDate>) -> Self {
        let mut days: Vec<JstDate> = dates.into_iter().collect();
        days.sort_unstable();
        days.dedup();
        Self { days }
    }

    /// The business days, in order.
    #[must_use]
    pub fn days(&self) -> &[JstDate] {
        &self.days
    }

    /// Whether `date` is a business day.
    #[must_use]
    pub fn is_business_day(&self, date: JstDate) -> bool {
        self.days.binary_search(&date).is_ok()
    }

    /// The `count`-th business day after `date`, from 1; none where the data ends before.
    #[must_use]
    pub fn business_day_after(&self, date: JstDate, count: usize) -> Option<JstDate> {
        let first_after = self.days.partition_point(|day| *day <= date);
        self.days.get(first_after + count.checked_sub(1)?).copied()
    }

    /// Business days after `from` up to and including `to`.
    #[must_use]
    pub fn business_days_between(&self, from: JstDate, to: JstDate) -> usize {
        let up_to = |date| self.days.partition_point(|day| *day <= date);
        up_to(to).saturating_sub(up_to(from))
    }
}

/// The first timestamp that lies behind the next pause of the market after `timestamp`: the opening of the
/// afternoon for a timestamp before it; just after the last timestamp of the closing auction (15:35, and
/// 15:05 before 2024-11-05) for a timestamp of the afternoon; the next timestamp after the close. Two
/// timestamps are separated by a pause when the later one is not before this of the earlier one.
#[must_use]
pub fn next_pause_end(timestamp: TsNanos) -> TsNanos {
    let of_day = timestamp.jst_nanos_of_day();
    let midnight = (timestamp.jst_day() * NANOS_PER_DAY).saturating_sub(JST_OFFSET_NANOS);
    if of_day < AFTERNOON_OPEN {
        return TsNanos::from_nanos(midnight).plus_nanos(AFTERNOON_OPEN);
    }
    let last_of_day = close_of(timestamp.jst_date()) + AUCTION_SLACK;
    if of_day <= last_of_day {
        return TsNanos::from_nanos(midnight).plus_nanos(last_of_day + 1);
    }
    timestamp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::NANOS_PER_MINUTE;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    #[test]
    fn business_days_are_counted() {
        let days = ["2025-01-10", "2025-01-06", "2025-01-07", "2025-01-14", "2025-01-07"];
        let calendar = TradingCalendar::from_dates(days.map(date));
        assert_eq!(calendar.days().len(), 4);
        assert!(calendar.is_business_day(date("2025-01-10")));
        assert!(!calendar.is_business_day(date("2025-01-13")), "a holiday");
        let after = |from, count| calendar.business_day_after(date(from), count);
        assert_eq!(after("2025-01-06", 1), Some(date("2025-01-07")));
        assert_eq!(after("2025-01-08", 2), Some(date("2025-01-14")));
        assert_eq!(after("2025-01-08", 0), None);
        assert_eq!(after("2025-01-10", 2), None, "the data ends before");
        let between = |from, to| calendar.business_days_between(date(from), date(to));
        assert_eq!(between("2025-01-06", "2025-01-14"), 3);
        assert_eq!(between("2025-01-14", "2025-01-06"), 0);
    }

    #[test]
    fn pauses_are_lunch_the_evening_and_nothing_else() {
        let at = |day, hour: u64, minute: u64| {
            TsNanos::from_jst(date(day), (hour * 60 + minute) * NANOS_PER_MINUTE).unwrap()
        };
        let paused = |from, to| next_pause_end(from) <= to;
        let day = "2025-01-06";
        assert!(!paused(at(day, 9, 0), at(day, 11, 30)));
        assert!(paused(at(day, 11, 30), at(day, 12, 30)));
        assert!(!paused(at(day, 12, 30), at(day, 15, 30)), "the closing call is no pause");
        assert!(!paused(at(day, 15, 30), at(day, 15, 31)), "bars of the close end at 15:31");
        assert!(paused(at(day, 15, 30), at(day, 15, 36)));
        assert!(paused(at(day, 15, 36), at(day, 15, 36)), "after the close nothing waits");
        assert!(paused(at(day, 15, 30), at("2025-01-07", 9, 0)));
        assert!(paused(at(day, 9, 0), at("2025-01-07", 9, 0)));
        let before = "2024-11-01";
        assert!(!paused(at(before, 14, 59), at(before, 15, 5)));
        assert!(paused(at(before, 15, 0), at(before, 15, 6)));
    }
}
