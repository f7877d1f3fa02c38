//! How many times faster than the market a replay runs.

use std::fmt;
use std::str::FromStr;

const THOUSANDTHS: u64 = 1_000;

/// How many times faster than the market a replay runs, from 0.001 to 1,000,000, in thousandths, or without
/// pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiplier(u64);

impl Multiplier {
    /// As fast as the market.
    pub const REAL_TIME: Self = Self(THOUSANDTHS);
    /// The fastest pace: one million times. Even then a row takes 1 ns of sleep, and a minute 60 us.
    pub const MAX: Self = Self(1_000_000 * THOUSANDTHS);
    /// `max`: without pace, no sleep at all.
    pub const UNPACED: Self = Self(u64::MAX);

    /// A multiplier from its thousandths, 1 to 1,000,000,000.
    #[must_use]
    pub fn from_thousandths(thousandths: u64) -> Option<Self> {
        (1..=Self::MAX.0).contains(&thousandths).then_some(Self(thousandths))
    }

    /// A time divided by it, cut off; the largest time where the product would not fit; without pace nothing.
    #[must_use]
    pub(super) const fn divide(self, nanos: u64) -> u64 {
        if self.0 == Self::UNPACED.0 {
            return 0;
        }
        // Inside one session times are below 10^14, so the product fits.
        nanos.saturating_mul(THOUSANDTHS) / self.0
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
            return Ok(Self::UNPACED);
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
        if *self == Self::UNPACED {
            return f.pad("max");
        }
        let (whole, rest) = (self.0 / THOUSANDTHS, self.0 % THOUSANDTHS);
        let text = format!("{whole}.{rest:03}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Multiplier {
        text.parse().unwrap()
    }

    #[test]
    fn multipliers_are_exact_numbers() {
        for (text, thousandths) in [("1", 1_000), ("60", 60_000), ("0.5", 500), ("2.125", 2_125)] {
            assert_eq!(times(text).thousandths(), thousandths);
            assert_eq!(times(text).to_string(), text);
        }
        assert_eq!((times("max"), times("max").to_string().as_str()), (Multiplier::UNPACED, "max"));
        assert_eq!(times("1000000"), Multiplier::MAX);
        for refused in ["", "0", "-1", "1e3", "1.", ".5", "1000000.001", "0.0005", "fast", "NaN"] {
            assert!(refused.parse::<Multiplier>().is_err(), "{refused}");
        }
    }
}
