//! Trading hours and business days of the Tokyo exchange, in Japan time.

use chrono::{Datelike, Weekday};

use crate::time::{JstDate, NANOS_PER_MINUTE, TsNanos};

/// The morning session opens.
pub const MORNING_OPEN: u64 = at(9, 0);
/// The morning session closes, with an auction.
pub const MORNING_CLOSE: u64 = at(11, 30);
/// The afternoon session opens.
pub const AFTERNOON_OPEN: u64 = at(12, 30);
/// Continuous trading ends and the closing auction is collected, since 2024-11-05.
pub const CONTINUOUS_END: u64 = at(15, 25);
/// The day closes with an auction, since 2024-11-05.
pub const CLOSE: u64 = at(15, 30);
/// The day closed with an auction, before 2024-11-05.
pub const CLOSE_BEFORE_2024_11_05: u64 = at(15, 0);
/// How long after a session's end a print of its closing auction may still be stamped.
pub const AUCTION_SLACK: u64 = 5 * NANOS_PER_MINUTE;

const fn at(hour: u64, minute: u64) -> u64 {
    (hour * 60 + minute) * NANOS_PER_MINUTE
}

/// Nanoseconds after midnight in Japan at which the day of `date` officially ends: 15:30, and
/// 15:00 before 2024-11-05.
#[must_use]
pub fn close_of(date: JstDate) -> u64 {
    let longer_hours = JstDate::from_ymd_opt(2024, 11, 5);
    if longer_hours.is_some_and(|first| date >= first) { CLOSE } else { CLOSE_BEFORE_2024_11_05 }
}

/// The official close of the Japanese day that `timestamp` falls on.
#[must_use]
pub fn close_after(timestamp: TsNanos) -> TsNanos {
    TsNanos::from_jst(timestamp.jst_date(), close_of(timestamp.jst_date())).unwrap_or(TsNanos::MAX)
}

/// Whether the exchange may be open on a date as far as the week tells. Public holidays are not
/// known here; a day without any trade is one.
#[must_use]
pub fn is_weekday(date: JstDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
}

/// The sessions of one trading day, as timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradingHours {
    /// The date in Japan.
    pub date: JstDate,
    /// Midnight in Japan at which the date begins.
    pub start: TsNanos,
    /// The morning session opens with an auction.
    pub morning_open: TsNanos,
    /// The morning session closes with an auction.
    pub morning_close: TsNanos,
    /// The afternoon session opens with an auction.
    pub afternoon_open: TsNanos,
    /// The day closes with an auction.
    pub close: TsNanos,
}

impl TradingHours {
    /// The official hours of a date.
    #[must_use]
    pub fn of(date: JstDate) -> Self {
        Self::closing_at(date, close_of(date))
    }

    /// The hours of a date in data that was moved there from later dates: it closes as today, whatever
    /// the official close of the date.
    #[must_use]
    pub fn longest_of(date: JstDate) -> Self {
        Self::closing_at(date, CLOSE)
    }

    /// Whether `trade` was made so long after the close that the day had longer hours than these.
    #[must_use]
    pub fn are_exceeded_by(&self, trade: TsNanos) -> bool {
        trade > self.close.plus_nanos(AUCTION_SLACK)
    }

    /// The same day seen as one session from its open to its close, for days that are known as one
    /// bar each: the lunch break and its auctions cannot be seen in them.
    #[must_use]
    pub const fn in_one_session(self) -> Self {
        Self { morning_close: self.close, afternoon_open: self.morning_open, ..self }
    }

    /// Whether the day is seen as one session.
    #[must_use]
    pub fn is_one_session(&self) -> bool {
        self.morning_close == self.close
    }

    fn closing_at(date: JstDate, close: u64) -> Self {
        let timestamp = |of_day| TsNanos::from_jst(date, of_day).unwrap_or(TsNanos::MAX);
        Self {
            date,
            start: timestamp(0),
            morning_open: timestamp(MORNING_OPEN),
            morning_close: timestamp(MORNING_CLOSE),
            afternoon_open: timestamp(AFTERNOON_OPEN),
            close: timestamp(close),
        }
    }

    /// The next opening auction that an order arriving at `timestamp` can still reach, if there is one
    /// on this day: the morning's before 09:00, the afternoon's before 12:30.
    #[must_use]
    pub fn next_open(&self, timestamp: TsNanos) -> Option<TsNanos> {
        [self.morning_open, self.afternoon_open].into_iter().find(|open| timestamp < *open)
    }

    /// The next closing auction that an order arriving at `timestamp` can still reach, if there is one
    /// on this day: the morning's before 11:30, the day's before the close.
    #[must_use]
    pub fn next_close(&self, timestamp: TsNanos) -> Option<TsNanos> {
        [self.morning_close, self.close].into_iter().find(|close| timestamp < *close)
    }

    /// The first auction of the day after `timestamp`, if there is one: of the opens and closes of both
    /// sessions.
    #[must_use]
    pub fn next_auction(&self, timestamp: TsNanos) -> Option<TsNanos> {
        let auctions = [self.morning_open, self.morning_close, self.afternoon_open, self.close];
        auctions.into_iter().find(|auction| timestamp < *auction)
    }

    /// When an order that arrives at `timestamp` can match first: at once, except that an order that
    /// comes after a session's close is too late for prints of its closing auction, which may be
    /// stamped up to [`AUCTION_SLACK`] later.
    #[must_use]
    pub fn not_before(&self, timestamp: TsNanos) -> TsNanos {
        let slack_end = self.morning_close.plus_nanos(AUCTION_SLACK);
        if (self.morning_close..slack_end).contains(&timestamp) { slack_end } else { timestamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i32, month: u32, day: u32) -> JstDate {
        JstDate::from_ymd_opt(year, month, day).unwrap()
    }

    fn timestamp(hour: u64, minute: u64) -> TsNanos {
        TsNanos::from_jst(date(2025, 1, 6), at(hour, minute)).unwrap()
    }

    #[test]
    fn the_day_got_longer_in_november_2024() {
        assert_eq!(close_of(date(2024, 11, 4)), CLOSE_BEFORE_2024_11_05);
        assert_eq!(close_of(date(2024, 11, 5)), CLOSE);
        assert_eq!(close_after(timestamp(12, 0)).to_string(), "2025-01-06 15:30:00.000000 JST");
    }

    #[test]
    fn auctions_are_found_by_the_clock() {
        let hours = TradingHours::of(date(2025, 1, 6));
        assert_eq!(hours.next_open(timestamp(8, 59)), Some(timestamp(9, 0)));
        assert_eq!(hours.next_open(timestamp(9, 0)), Some(timestamp(12, 30)));
        assert_eq!(hours.next_open(timestamp(12, 30)), None);
        assert_eq!(hours.next_close(timestamp(8, 0)), Some(timestamp(11, 30)));
        assert_eq!(hours.next_close(timestamp(11, 30)), Some(timestamp(15, 30)));
        assert_eq!(hours.next_close(timestamp(15, 30)), None);
        assert_eq!(hours.next_auction(timestamp(8, 59)), Some(timestamp(9, 0)));
        assert_eq!(hours.next_auction(timestamp(9, 0)), Some(timestamp(11, 30)));
        assert_eq!(hours.next_auction(timestamp(11, 30)), Some(timestamp(12, 30)));
        assert_eq!(hours.next_auction(timestamp(12, 30)), Some(timestamp(15, 30)));
        assert_eq!(hours.next_auction(timestamp(15, 30)), None);
        assert_eq!(hours.not_before(timestamp(11, 29)), timestamp(11, 29));
        assert_eq!(hours.not_before(timestamp(11, 31)), timestamp(11, 35));
        assert_eq!(hours.not_before(timestamp(11, 35)), timestamp(11, 35));
    }

    #[test]
    fn a_day_s_bar_has_one_opening_and_one_closing_auction() {
        let hours = TradingHours::of(date(2025, 1, 6)).in_one_session();
        assert!(hours.is_one_session() && !TradingHours::of(hours.date).is_one_session());
        assert_eq!(hours.next_open(timestamp(8, 59)), Some(timestamp(9, 0)));
        assert_eq!(hours.next_open(timestamp(9, 0)), None);
        assert_eq!(hours.next_close(timestamp(9, 0)), Some(timestamp(15, 30)));
        assert_eq!(hours.next_auction(timestamp(9, 0)), Some(timestamp(15, 30)));
        assert_eq!(hours.next_auction(timestamp(15, 30)), None);
        assert_eq!(hours.not_before(timestamp(11, 31)), timestamp(11, 31));
    }

    #[test]
    fn data_that_trades_after_the_official_close_had_longer_hours() {
        let old = |hour, minute| TsNanos::from_jst(date(2013, 10, 7), at(hour, minute)).unwrap();
        let official = TradingHours::of(date(2013, 10, 7));
        assert_eq!(official.close, old(15, 0));
        assert!(!official.are_exceeded_by(old(15, 5)), "a late closing print");
        assert!(official.are_exceeded_by(old(15, 30)));
        assert_eq!(TradingHours::longest_of(date(2013, 10, 7)).close, old(15, 30));
    }
}
