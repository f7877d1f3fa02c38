//! Time as integers: nanoseconds since 1970 in UTC. Japan Standard Time (UTC+9, no summer time)
//! appears only in these conversions and at the edges of the program.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// Nanoseconds in one second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Nanoseconds in one minute.
pub const NANOS_PER_MINUTE: u64 = 60 * NANOS_PER_SECOND;
/// Nanoseconds in one day.
pub const NANOS_PER_DAY: u64 = 86_400 * NANOS_PER_SECOND;
/// How far Japan Standard Time is ahead of UTC.
pub const JST_OFFSET_NANOS: u64 = 9 * 3_600 * NANOS_PER_SECOND;

/// A calendar date in Japan.
pub type JstDate = NaiveDate;

/// A point in time: nanoseconds since 1970-01-01T00:00:00 UTC, up to the year 2554.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TsNanos(u64);

impl TsNanos {
    /// The last point in time; "never" for deadlines.
    pub const MAX: Self = Self(u64::MAX);

    /// A point in time from its nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970 in UTC.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds since 1970 in UTC, cut off.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The same time without what is finer than a millisecond.
    #[must_use]
    pub const fn whole_millis(self) -> Self {
        Self(self.0 - self.0 % 1_000_000)
    }

    /// The point `nanos` later; the last point in time where that does not fit.
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The timestamp `nanos_of_day` after midnight in Japan on `date`, or `None` for dates before 1970
    /// or after 2553.
    #[must_use]
    pub fn from_jst(date: JstDate, nanos_of_day: u64) -> Option<Self> {
        let days = u64::try_from(date.to_epoch_days()).ok()?;
        let local = days.checked_mul(NANOS_PER_DAY)?.checked_add(nanos_of_day)?;
        local.checked_sub(JST_OFFSET_NANOS).map(Self)
    }

    /// The calendar date in Japan.
    #[must_use]
    pub fn jst_date(self) -> JstDate {
        DateTime::<Utc>::from_timestamp((self.jst_nanos() / NANOS_PER_SECOND).cast_signed(), 0)
            .map_or(NaiveDate::MAX, |timestamp| timestamp.date_naive())
    }

    /// Days since 1970-01-01 of the calendar date in Japan; cheap, for comparing days.
    #[must_use]
    pub const fn jst_day(self) -> u64 {
        self.jst_nanos() / NANOS_PER_DAY
    }

    /// Nanoseconds since midnight in Japan.
    #[must_use]
    pub const fn jst_nanos_of_day(self) -> u64 {
        self.jst_nanos() % NANOS_PER_DAY
    }

    const fn jst_nanos(self) -> u64 {
        self.0.saturating_add(JST_OFFSET_NANOS)
    }
}

/// Prints Japan time with microseconds: `2013-10-07 09:00:00.007835 JST`.
impl fmt::Display for TsNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = self.jst_nanos_of_day();
        let seconds = of_day / NANOS_PER_SECOND;
        write!(
            f,
            "{} {:02}:{:02}:{:02}.{:06} JST",
            self.jst_date(),
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            of_day % NANOS_PER_SECOND / 1_000,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn japan_time_converts_both_ways() {
        let date = NaiveDate::from_ymd_opt(2013, 10, 7).unwrap();
        let open = TsNanos::from_jst(date, 9 * 3_600 * NANOS_PER_SECOND + 7_835_000).unwrap();
        assert_eq!(open.nanos(), 1_381_104_000_007_835_000);
        assert_eq!(open.to_string(), "2013-10-07 09:00:00.007835 JST");
        assert_eq!(open.jst_date(), date);
        assert_eq!(open.jst_nanos_of_day(), 9 * 3_600 * NANOS_PER_SECOND + 7_835_000);
    }

    #[test]
    fn a_japanese_day_starts_before_the_utc_day() {
        let date = NaiveDate::from_ymd_opt(2025, 1, 6).unwrap();
        let midnight = TsNanos::from_jst(date, 0).unwrap();
        assert_eq!(midnight.jst_date(), date);
        assert_eq!(TsNanos::from_nanos(midnight.nanos() - 1).jst_day() + 1, midnight.jst_day());
    }

    #[test]
    fn dates_before_1970_have_no_time() {
        let date = NaiveDate::from_ymd_opt(1969, 12, 31).unwrap();
        assert_eq!(TsNanos::from_jst(date, 0), None);
    }
}
