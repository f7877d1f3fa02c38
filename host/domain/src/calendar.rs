//! Business days of the exchange and of market data, and the pauses of a day.

use std::sync::Arc;

use thiserror::Error;

use crate::holidays;
use crate::session::{AFTERNOON_OPEN, AUCTION_SLACK, close_of, is_weekday};
use crate::time::{JST_OFFSET_NANOS, JstDate, NANOS_PER_DAY, TsNanos};

/// Dates that are looked at for the next business day, or the one before: those of a year.
const DAYS_LOOKED_AT_MAX: usize = 366;

/// The exchange's business days, known ahead of time: from its own calendar where one was given, and
/// outside of its dates by the rules of [`holidays`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeCalendar {
    listed: Option<Arc<Listed>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    first: JstDate,
    last: JstDate,
    open: TradingCalendar,
}

/// Why dates are no calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// It has no dates.
    #[error("the calendar has no dates")]
    Empty,
    /// A date is missing between the first and the last.
    #[error("the calendar has no row of {0}, which lies between its first and its last date")]
    Missing(JstDate),
    /// A date comes twice.
    #[error("the calendar has two rows of {0}")]
    Twice(JstDate),
    /// Open on a weekend.
    #[error("the calendar says that the exchange is open on {0}, a weekend day")]
    Weekend(JstDate),
}

impl ExchangeCalendar {
    /// The calendar of dates that say whether the exchange is open, in any order, none missing between
    /// the first and the last.
    ///
    /// # Errors
    /// [`CalendarError`]: the dates are no calendar.
    pub fn listed(rows: impl IntoIterator<Item = (JstDate, bool)>) -> Result<Self, CalendarError> {
        let mut rows: Vec<(JstDate, bool)> = rows.into_iter().collect();
        rows.sort_unstable();
        let (Some((first, _)), Some((last, _))) = (rows.first().copied(), rows.last().copied())
        else {
            return Err(CalendarError::Empty);
        };
        for (expected, (date, is_open)) in first.iter_days().zip(&rows) {
            if *date < expected {
                return Err(CalendarError::Twice(*date));
            }
            if *date > expected {
                return Err(CalendarError::Missing(expected));
            }
            if *is_open && !is_weekday(*date) {
                return Err(CalendarError::Weekend(*date));
            }
        }
        let open = rows.into_iter().filter(|(_, is_open)| *is_open).map(|(date, _)| date);
        let open = TradingCalendar::from_dates(open);
        Ok(Self { listed: Some(Arc::new(Listed { first, last, open })) })
    }

    /// First and last date of the exchange's own calendar; none where all days come from the rules.
    #[must_use]
    pub fn listed_range(&self) -> Option<(JstDate, JstDate)> {
        self.listed.as_ref().map(|listed| (listed.first, listed.last))
    }

    /// Whether the exchange is open on `date`.
    #[must_use]
    pub fn is_business_day(&self, date: JstDate) -> bool {
        match &self.listed {
            Some(listed) if (listed.first..=listed.last).contains(&date) => {
                listed.open.is_business_day(date)
            }
            _ => !holidays::is_closed(date),
        }
    }

    /// The first business day that is `date` or after it; none within a year.
    #[must_use]
    pub fn business_day_from(&self, date: JstDate) -> Option<JstDate> {
        let mut days = date.iter_days().take(DAYS_LOOKED_AT_MAX);
        days.find(|date| self.is_business_day(*date))
    }

    /// The last business day that is `date` or before it; none within a year.
    #[must_use]
    pub fn business_day_until(&self, date: JstDate) -> Option<JstDate> {
        let days = std::iter::successors(Some(date), JstDate::pred_opt);
        days.take(DAYS_LOOKED_AT_MAX).find(|date| self.is_business_day(*date))
    }

    /// The first business day after `date`; none within a year.
    #[must_use]
    pub fn business_day_after(&self, date: JstDate) -> Option<JstDate> {
        self.business_day_from(date.succ_opt()?)
    }

    /// The last business day before `date`; none within a year.
    #[must_use]
    pub fn business_day_before(&self, date: JstDate) -> Option<JstDate> {
        self.business_day_until(date.pred_opt()?)
    }

    /// Business days after `from` up to and including `to`, counted up to one more than `most`.
    #[must_use]
    pub fn business_days_between(&self, from: JstDate, to: JstDate, most: u32) -> u32 {
        let dates = from.iter_days().skip(1).take_while(|date| *date <= to);
        let open = dates.filter(|date| self.is_business_day(*date));
        open.take(most as usize + 1).fold(0, |count, _| count + 1)
    }
}

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
    fn the_exchange_s_own_calendar_goes_before_the_rules() {
        let by_rule = ExchangeCalendar::default();
        assert!(!by_rule.is_business_day(date("2025-01-13")), "Coming of Age Day");
        assert_eq!(by_rule.business_days_between(date("2025-01-10"), date("2025-01-14"), 10), 1);
        assert_eq!(by_rule.business_day_after(date("2025-01-10")), Some(date("2025-01-14")));
        assert_eq!(by_rule.business_day_before(date("2025-01-14")), Some(date("2025-01-10")));
        assert_eq!(by_rule.business_day_before(date("2025-01-06")), Some(date("2024-12-30")));
        assert_eq!(by_rule.business_day_from(date("2025-01-11")), Some(date("2025-01-14")));
        assert_eq!(by_rule.business_day_until(date("2025-01-10")), Some(date("2025-01-10")));
        assert_eq!(by_rule.business_day_before(JstDate::MIN), None);
        assert_eq!(by_rule.business_day_after(JstDate::MAX), None);
        assert_eq!(by_rule.business_days_between(date("2025-01-06"), date("2026-01-06"), 10), 11);
        assert_eq!(by_rule.business_days_between(date("2025-01-06"), date("2024-01-06"), 10), 0);
        let rows = [("2025-01-12", false), ("2025-01-14", false), ("2025-01-13", true)];
        let calendar = |rows: &[(&str, bool)]| {
            ExchangeCalendar::listed(rows.iter().map(|(day, is_open)| (date(day), *is_open)))
        };
        let listed = calendar(&rows).unwrap();
        assert_eq!(listed.listed_range(), Some((date("2025-01-12"), date("2025-01-14"))));
        let closed = date("2025-01-07").iter_days().take(DAYS_LOOKED_AT_MAX + 1);
        let long = ExchangeCalendar::listed(closed.map(|day| (day, false))).unwrap();
        assert_eq!(long.business_day_from(date("2025-01-07")), None);
        assert_eq!(long.business_day_from(date("2025-01-08")), None, "a year and no more");
        assert!(long.business_day_from(date("2025-01-09")).is_some());
        assert!(listed.is_business_day(date("2025-01-13")));
        assert!(!listed.is_business_day(date("2025-01-14")));
        assert!(listed.is_business_day(date("2025-01-15")), "after its end, by rule");
        assert_eq!(calendar(&[]), Err(CalendarError::Empty));
        assert_eq!(calendar(&rows[..2]), Err(CalendarError::Missing(date("2025-01-13"))));
        let twice = calendar(&[rows[0], rows[0]]);
        assert_eq!(twice, Err(CalendarError::Twice(date("2025-01-12"))));
        let weekend = calendar(&[("2025-01-12", true)]);
        assert_eq!(weekend, Err(CalendarError::Weekend(date("2025-01-12"))));
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
