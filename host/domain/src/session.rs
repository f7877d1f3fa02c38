//! Trading hours of the Tokyo exchange, in Japan time.

use crate::time::{JstDate, NANOS_PER_MINUTE, TsNanos};

/// The morning session opens.
pub const MORNING_OPEN: u64 = at(9, 0);
/// The morning session closes.
pub const MORNING_CLOSE: u64 = at(11, 30);
/// The afternoon session opens.
pub const AFTERNOON_OPEN: u64 = at(12, 30);
/// The day closes, since 2024-11-05.
pub const CLOSE: u64 = at(15, 30);
/// The day closed, before 2024-11-05.
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

/// The official close of the Japanese day that `moment` falls on.
#[must_use]
pub fn close_after(moment: TsNanos) -> TsNanos {
    TsNanos::from_jst(moment.jst_date(), close_of(moment.jst_date())).unwrap_or(TsNanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_got_longer_in_november_2024() {
        let day = |year, month, day| JstDate::from_ymd_opt(year, month, day).unwrap();
        assert_eq!(close_of(day(2024, 11, 4)), CLOSE_BEFORE_2024_11_05);
        assert_eq!(close_of(day(2024, 11, 5)), CLOSE);
        let noon = TsNanos::from_jst(day(2025, 1, 6), at(12, 0)).unwrap();
        assert_eq!(close_after(noon).to_string(), "2025-01-06 15:30:00.000000 JST");
    }
}
