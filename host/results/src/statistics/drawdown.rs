//! The deepest drawdown of the equity: how far it is below its highest value so far.

use domain::{Money, TsNanos};

/// A drawdown: the values below the highest one so far, up to the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawdown {
    /// The highest value.
    pub peak: Money,
    /// End of the minute in which it was reached; none when it was the money at the start.
    pub start: Option<TsNanos>,
    /// The lowest value after it.
    pub low: Money,
    /// End of the minute in which that was reached.
    pub trough: TsNanos,
    /// End of the minute in which the value was back at the peak; none while it is below.
    pub recovery: Option<TsNanos>,
}

impl Drawdown {
    /// The drawdown in yen; not negative.
    #[must_use]
    pub fn depth(&self) -> Money {
        self.peak - self.low
    }

    /// The drawdown per peak, 0.01 for one percent; 0 where the peak is not above zero.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.peak > Money::ZERO {
            self.depth().approximate_yen() / self.peak.approximate_yen()
        } else {
            0.0
        }
    }

    /// Whether it is deeper than another, per peak; exact.
    fn is_deeper_than(&self, other: &Self) -> bool {
        let product = |drawdown: &Self, peak: Money| {
            i128::from(drawdown.depth().units()) * i128::from(peak.units())
        };
        product(self, other.peak) > product(other, self.peak)
    }
}

/// Finds the deepest drawdown (per peak) of values that come one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawdownTracker {
    peak: Money,
    peak_at: Option<TsNanos>,
    /// The drawdown since the last peak, while below it.
    present: Option<Drawdown>,
    deepest: Option<Drawdown>,
}

impl DrawdownTracker {
    /// Starts at a value.
    #[must_use]
    pub const fn new(start: Money) -> Self {
        Self { peak: start, peak_at: None, present: None, deepest: None }
    }

    /// Takes in the next value.
    pub fn take(&mut self, timestamp: TsNanos, value: Money) {
        if value >= self.peak {
            if let Some(over) = self.present.take() {
                self.keep(Drawdown { recovery: Some(timestamp), ..over });
            }
            self.peak = value;
            self.peak_at = Some(timestamp);
            return;
        }
        let drawdown = self.present.get_or_insert(Drawdown {
            peak: self.peak,
            start: self.peak_at,
            low: value,
            trough: timestamp,
            recovery: None,
        });
        if value < drawdown.low {
            (drawdown.low, drawdown.trough) = (value, timestamp);
        }
    }

    fn keep(&mut self, drawdown: Drawdown) {
        if self.deepest.is_none_or(|deepest| drawdown.is_deeper_than(&deepest)) {
            self.deepest = Some(drawdown);
        }
    }

    /// The deepest drawdown so far; the earlier of two that are equally deep.
    #[must_use]
    pub fn deepest(&self) -> Option<Drawdown> {
        match (self.deepest, self.present) {
            (Some(deepest), Some(present)) if present.is_deeper_than(&deepest) => Some(present),
            (None, present) => present,
            (deepest, _) => deepest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(start: i64, values: &[i64]) -> Option<Drawdown> {
        let mut finder = DrawdownTracker::new(Money::from_yen(start));
        for (minute, value) in values.iter().enumerate() {
            finder.take(TsNanos::from_nanos(minute as u64 + 1), Money::from_yen(*value));
        }
        finder.deepest()
    }

    #[test]
    fn a_drawdown_by_hand() {
        // 110 -> 90 is 18.2 %, 120 -> 100 is 16.7 %.
        let drawdown = find(100, &[110, 95, 90, 111, 120, 100]).unwrap();
        assert_eq!(drawdown.depth(), Money::from_yen(20));
        assert!((drawdown.ratio() - 20.0 / 110.0).abs() < 1e-12);
        let nanos = |timestamp: Option<TsNanos>| timestamp.map(TsNanos::nanos);
        assert_eq!((nanos(drawdown.start), drawdown.trough.nanos()), (Some(1), 3));
        assert_eq!(nanos(drawdown.recovery), Some(4));
    }

    #[test]
    fn a_drawdown_that_goes_on_has_no_end() {
        let drawdown = find(100, &[90, 110, 55, 60]).unwrap();
        assert_eq!((drawdown.start.map(TsNanos::nanos), drawdown.recovery), (Some(2), None));
        assert!((drawdown.ratio() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_drawdown_from_the_start_has_no_first_timestamp() {
        assert_eq!(find(100, &[90, 100]).unwrap().start, None);
        assert_eq!(find(100, &[100, 101]), None);
        assert_eq!(find(0, &[-5]).unwrap().ratio(), 0.0);
    }

    proptest! {
        #[test]
        fn no_pair_of_values_has_a_deeper_drawdown(
            values in prop::collection::vec(1_i64..1_000, 1..60),
        ) {
            let found = find(500, &values).map_or(0.0, |drawdown| drawdown.ratio());
            let all: Vec<i64> = std::iter::once(500).chain(values).collect();
            let mut deepest = 0.0_f64;
            for (index, high) in all.iter().enumerate() {
                for low in &all[index..] {
                    deepest = deepest.max((high - low) as f64 / *high as f64);
                }
            }
            prop_assert!((found - deepest).abs() < 1e-12, "{found} {deepest}");
        }
    }
}
