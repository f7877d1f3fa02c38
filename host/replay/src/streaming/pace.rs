//! How long to sleep between two rows.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::TsNanos;
use domain::calendar::next_pause_end;

/// Time between two rows at least (specification 2, `MIN_TICK_DT_SEC` 0.001).
const MIN_TICK_NANOS: u64 = 1_000_000;
/// The longest sleep between two rows (specification 2, `SLEEP_CAP_SEC` 0.200).
pub const SLEEP_CAP: Duration = Duration::from_millis(200);
/// Sleeps below this are saved up until they reach it together. A system sleeps some 50 us too long
/// each time, so a sleep for each row of a dense stream would take many times what was asked for.
pub const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const THOUSANDTHS: u64 = 1_000;

/// How many times faster than the market a replay runs, from 0.001 to 1,000,000, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiplier(u64);

impl Multiplier {
    /// As fast as the market.
    pub const REAL_TIME: Self = Self(THOUSANDTHS);
    /// The fastest: one million times. Even then a row takes 1 ns of sleep.
    pub const MAX: Self = Self(1_000_000 * THOUSANDTHS);

    /// A multiplier from its thousandths, 1 to 1,000,000,000.
    #[must_use]
    pub fn from_thousandths(thousandths: u64) -> Option<Self> {
        (1..=Self::MAX.0).contains(&thousandths).then_some(Self(thousandths))
    }

    /// The multiplier in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u64 {
        self.0
    }
}

/// Reads `60`, `0.5` or `max`.
impl FromStr for Multiplier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "max" {
            return Ok(Self::MAX);
        }
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let decimals_fit = digits(decimals) && decimals.len() <= 3 && !text.ends_with('.');
        (digits(whole) && !whole.is_empty() && decimals_fit)
            .then(|| format!("{whole}{decimals:0<3}").parse().ok())
            .flatten()
            .and_then(Self::from_thousandths)
            .ok_or_else(|| {
                "write how many times faster than the market, from 0.001 to 1000000 with at most 3 \
                 decimals, like 60, or max"
                    .to_owned()
            })
    }
}

impl fmt::Display for Multiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / THOUSANDTHS, self.0 % THOUSANDTHS);
        let text = format!("{whole}.{rest:03}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The speed of a running replay; clones turn the same dial (specification 2, `SetReplaySpeed`).
#[derive(Debug, Clone)]
pub struct SpeedDial(Arc<AtomicU64>);

impl SpeedDial {
    /// A dial that stands at `multiplier`.
    #[must_use]
    pub fn new(multiplier: Multiplier) -> Self {
        Self(Arc::new(AtomicU64::new(multiplier.0)))
    }

    /// Turns it; holds from the next row on.
    pub fn set(&self, multiplier: Multiplier) {
        self.0.store(multiplier.0, Ordering::Relaxed);
    }

    /// Where it stands.
    #[must_use]
    pub fn get(&self) -> Multiplier {
        Multiplier(self.0.load(Ordering::Relaxed))
    }
}

/// Sleep that is owed before the next row.
#[derive(Debug)]
pub(super) struct Pace {
    dial: SpeedDial,
    /// The row before; 0 before the first.
    before: u64,
    /// From this moment on a pause of the market lies between the row before and the next.
    pause_end: u64,
    owed_nanos: u64,
}

impl Pace {
    pub(super) fn new(dial: SpeedDial) -> Self {
        Self { dial, before: 0, pause_end: 0, owed_nanos: 0 }
    }

    /// How long to sleep now, before the row at `moment`; zero while little is owed.
    #[inline]
    pub(super) fn before(&mut self, moment: u64) -> Duration {
        let dt = moment.saturating_sub(self.before);
        self.before = moment;
        if moment >= self.pause_end {
            self.pause_end = next_pause_end(TsNanos::from_nanos(moment)).nanos();
        } else {
            self.owed_nanos += sleep_nanos(dt, self.dial.get());
        }
        if self.owed_nanos < SHORTEST_SLEEP.as_nanos() as u64 {
            return Duration::ZERO;
        }
        Duration::from_nanos(std::mem::take(&mut self.owed_nanos))
    }
}

/// `min(max(dt, 1 ms) / multiplier, 200 ms)`.
#[inline]
fn sleep_nanos(dt: u64, multiplier: Multiplier) -> u64 {
    // Inside one session dt is below 10^14, so the product fits.
    let scaled = dt.max(MIN_TICK_NANOS).saturating_mul(THOUSANDTHS) / multiplier.0;
    scaled.min(SLEEP_CAP.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::time::{NANOS_PER_MINUTE, NANOS_PER_SECOND};

    fn times(text: &str) -> Multiplier {
        text.parse().unwrap()
    }

    #[test]
    fn sleeps_follow_the_specification() {
        let sleep = |dt, multiplier| sleep_nanos(dt, times(multiplier));
        assert_eq!(sleep(NANOS_PER_SECOND / 10, "1"), 100_000_000);
        assert_eq!(sleep(NANOS_PER_SECOND / 10, "60"), 1_666_666);
        assert_eq!(sleep(0, "1"), 1_000_000, "rows of one instant are 1 ms apart");
        assert_eq!(sleep(999_999, "10"), 100_000);
        assert_eq!(sleep(NANOS_PER_SECOND, "1"), 200_000_000, "the cap");
        assert_eq!(sleep(NANOS_PER_SECOND, "4.999"), 200_000_000);
        assert_eq!(sleep(NANOS_PER_SECOND, "5.001"), 199_960_007);
        assert_eq!(sleep(0, "0.001"), 200_000_000);
        assert_eq!(sleep(0, "max"), 1);
        assert_eq!(sleep(u64::MAX, "0.001"), 200_000_000);
    }

    #[test]
    fn multipliers_are_exact_numbers() {
        for (text, thousandths) in [("1", 1_000), ("60", 60_000), ("0.5", 500), ("2.125", 2_125)] {
            assert_eq!(times(text).thousandths(), thousandths);
            assert_eq!(times(text).to_string(), text);
        }
        assert_eq!(times("max"), times("1000000"));
        for refused in ["", "0", "-1", "1e3", "1.", ".5", "1000000.001", "0.0005", "fast", "NaN"] {
            assert!(refused.parse::<Multiplier>().is_err(), "{refused}");
        }
    }

    fn at(day: u64, hour: u64, minute: u64, nanos: u64) -> u64 {
        let monday = TsNanos::from_jst("2025-01-06".parse().unwrap(), 0).unwrap().nanos();
        monday + (day * 1_440 + hour * 60 + minute) * NANOS_PER_MINUTE + nanos
    }

    #[test]
    fn breaks_are_jumped_over() {
        let mut pace = Pace::new(SpeedDial::new(Multiplier::REAL_TIME));
        let mut sleep = |moment| pace.before(moment).as_millis();
        assert_eq!(sleep(at(0, 9, 0, 0)), 0, "nothing comes before the first row");
        assert_eq!(sleep(at(0, 9, 0, 50_000_000)), 50);
        assert_eq!(sleep(at(0, 11, 30, 0)), 200);
        assert_eq!(sleep(at(0, 12, 30, 0)), 0, "lunch");
        assert_eq!(sleep(at(0, 15, 24, 0)), 200);
        assert_eq!(sleep(at(0, 15, 30, 0)), 200, "the closing call is no break");
        assert_eq!(sleep(at(0, 15, 35, 1)), 0, "after the close");
        assert_eq!(sleep(at(0, 15, 36, 0)), 0);
        assert_eq!(sleep(at(1, 9, 0, 0)), 0, "the next business day");
        assert_eq!(sleep(at(1, 9, 0, 3_000_000)), 3);
        assert_eq!(sleep(at(4, 9, 0, 0)), 0, "a weekend");
    }

    #[test]
    fn short_sleeps_are_saved_up_and_none_is_lost() {
        let mut pace = Pace::new(SpeedDial::new(times("10")));
        let rows = 100_000_u64;
        let sleeps: Vec<Duration> =
            (0..=rows).map(|row| pace.before(at(0, 9, 0, 0) + row * 10_000)).collect();
        let total: Duration = sleeps.iter().sum();
        // 10 us between rows count as 1 ms, a tenth of it is slept.
        assert_eq!(total, Duration::from_micros(100) * u32::try_from(rows).unwrap());
        assert!(sleeps.iter().all(|sleep| sleep.is_zero() || *sleep >= SHORTEST_SLEEP));
    }

    #[test]
    fn the_dial_may_be_turned_while_it_runs() {
        let dial = SpeedDial::new(Multiplier::REAL_TIME);
        let mut pace = Pace::new(dial.clone());
        pace.before(at(0, 9, 0, 0));
        assert_eq!(pace.before(at(0, 9, 0, 100_000_000)).as_millis(), 100);
        dial.set(times("20"));
        assert_eq!(pace.before(at(0, 9, 0, 200_000_000)).as_millis(), 5);
        assert_eq!(dial.get().to_string(), "20");
    }
}
