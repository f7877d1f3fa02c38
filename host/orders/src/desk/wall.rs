//! What the desk takes from the wall clock, which may be set, or may stop while a machine sleeps.

use std::time::Duration;

use domain::JstDate;

use super::Now;
use crate::limits::{DAY_STANDS, ORDER_ANSWER_TIME};

/// The wall clock beside the monotonic one.
#[derive(Debug, Default)]
pub(crate) struct WallWatch {
    last: Option<Now>,
    /// The date in Japan, and since when the clock has shown it.
    day: Option<(JstDate, Duration)>,
}

impl WallWatch {
    /// Whether the wall clock has jumped ahead by the time limit of an answer since the last call, as after a
    /// sleep of the machine. Commands that were not sent before are too old then.
    pub(crate) fn has_slept(&mut self, now: Now) -> bool {
        let Some(last) = self.last.replace(now) else { return false };
        let wall = Duration::from_nanos(now.wall.nanos().saturating_sub(last.wall.nanos()));
        wall.saturating_sub(now.mono.saturating_sub(last.mono)) >= ORDER_ANSWER_TIME
    }

    /// The date in Japan, once the clock has shown it for a while. So a clock that is wrong for a moment ends
    /// no day.
    pub(crate) fn day(&mut self, now: Now) -> Option<JstDate> {
        let today = now.wall.jst_date();
        let since = match self.day {
            Some((day, since)) if day == today => since,
            _ => {
                self.day = Some((today, now.mono));
                now.mono
            }
        };
        (now.mono.saturating_sub(since) >= DAY_STANDS).then_some(today)
    }
}

#[cfg(test)]
mod tests {
    use domain::TsNanos;

    use super::*;

    fn at(mono_s: u64, wall_s: u64) -> Now {
        let wall = TsNanos::from_jst("2026-01-05".parse().unwrap(), 0).unwrap();
        Now { mono: Duration::from_secs(mono_s), wall: wall.plus_nanos(wall_s * 1_000_000_000) }
    }

    #[test]
    fn a_sleep_is_what_only_the_wall_clock_knows_of() {
        let mut watch = WallWatch::default();
        let slept = [(0, 0), (40, 40), (41, 70), (42, 101), (43, 80), (44, 112)]
            .map(|(mono, wall)| watch.has_slept(at(mono, wall)));
        assert_eq!(slept, [false, false, false, true, false, true]);
    }

    #[test]
    fn a_date_counts_when_it_has_stood() {
        let mut watch = WallWatch::default();
        let day = |day: &str| Some(day.parse().unwrap());
        const DAY: u64 = 86_400;
        assert_eq!(watch.day(at(0, 0)), None);
        assert_eq!(watch.day(at(60, 60)), day("2026-01-05"));
        // A day ahead for a moment.
        assert_eq!(watch.day(at(61, DAY)), None);
        assert_eq!(watch.day(at(62, 62)), None);
        assert_eq!(watch.day(at(122, 122)), day("2026-01-05"));
        assert_eq!(watch.day(at(123, DAY)), None);
        assert_eq!(watch.day(at(183, DAY + 60)), day("2026-01-06"));
    }
}
