//! Walk-forward windows: choose on one stretch of days, look at the next.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use chrono::Months;
use domain::JstDate;
use thiserror::Error;

/// Months or trading days of one window that can be asked for.
const LENGTH_MAX: u32 = 1_200;

/// How long the windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkForward {
    /// Length of a window to choose on.
    pub train: u32,
    /// Length of the window after it.
    pub test: u32,
    /// What lengths count.
    pub unit: Unit,
}

/// What the lengths of windows count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Calendar months from the first date of the data on.
    Months,
    /// Trading days that the data has.
    Days,
}

impl Unit {
    const fn letter(self) -> &'static str {
        match self {
            Self::Months => "m",
            Self::Days => "d",
        }
    }
}

/// Why walk-forward windows cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowsError {
    /// Not `3m/1m`.
    #[error(
        "`{0}` is not a pair of windows; write the length to choose on and to test on, both in \
         months or both in trading days, like 3m/1m or 20d/5d (1 to {LENGTH_MAX})"
    )]
    Form(String),
    /// The data is too short.
    #[error(
        "walk-forward {asked} needs at least one day after its first window; the data has {days} \
         trading days from {first} to {last}"
    )]
    TooShort {
        /// What was asked.
        asked: WalkForward,
        /// Trading days of the data.
        days: usize,
        /// The first.
        first: JstDate,
        /// The last.
        last: JstDate,
    },
}

/// `3m/1m` or `20d/5d`.
impl FromStr for WalkForward {
    type Err = WindowsError;

    fn from_str(text: &str) -> Result<Self, WindowsError> {
        let wrong = || WindowsError::Form(text.to_owned());
        let (train, test) = text.split_once('/').ok_or_else(wrong)?;
        let unit = if train.ends_with('m') { Unit::Months } else { Unit::Days };
        let length = |part: &str| -> Option<u32> {
            let number = part.strip_suffix(unit.letter())?;
            let digits = number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse().ok().filter(|length| digits && (1..=LENGTH_MAX).contains(length))
        };
        match (length(train), length(test)) {
            (Some(train), Some(test)) => Ok(Self { train, test, unit }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for WalkForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit.letter();
        write!(f, "{}{unit}/{}{unit}", self.train, self.test)
    }
}

/// One step of a walk forward, as indexes in the list of trading days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The days to choose on.
    pub train: Range<usize>,
    /// The days after them; the last fold's may be fewer than asked for.
    pub test: Range<usize>,
}

impl WalkForward {
    /// The folds over these trading days, which are in rising order. Each test window starts where
    /// the one before ended. A window without a trading day is left out.
    ///
    /// # Errors
    /// [`WindowsError::TooShort`] when not even one fold has a day to test on.
    pub fn folds(self, days: &[JstDate]) -> Result<Vec<Fold>, WindowsError> {
        let mut folds = Vec::new();
        // One more start than there are days is past the end in either unit.
        for step in 0..=u32::try_from(days.len()).unwrap_or(u32::MAX) {
            let start = step.saturating_mul(self.test);
            let train_end = start.saturating_add(self.train);
            let index = |length: u32| self.index_after(days, length);
            let (from, middle) = (index(start), index(train_end));
            let to = index(train_end.saturating_add(self.test));
            if from < middle && middle < to {
                folds.push(Fold { train: from..middle, test: middle..to });
            }
            if to >= days.len() && middle >= days.len() {
                break;
            }
        }
        match (folds.is_empty(), days.first(), days.last()) {
            (true, first, last) => Err(WindowsError::TooShort {
                asked: self,
                days: days.len(),
                first: first.copied().unwrap_or_default(),
                last: last.copied().unwrap_or_default(),
            }),
            (false, ..) => Ok(folds),
        }
    }

    /// The index of the first day that is `length` months or days after the start.
    fn index_after(self, days: &[JstDate], length: u32) -> usize {
        match self.unit {
            Unit::Days => days.len().min(length as usize),
            Unit::Months => {
                let end =
                    days.first().and_then(|first| first.checked_add_months(Months::new(length)));
                end.map_or(days.len(), |end| days.partition_point(|day| *day < end))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(from: &str, count: usize) -> Vec<JstDate> {
        let first: JstDate = from.parse().unwrap();
        first.iter_days().take(count).collect()
    }

    fn asked(text: &str) -> WalkForward {
        text.parse().unwrap()
    }

    #[test]
    fn lengths_are_read_and_written() {
        assert_eq!(asked("3m/1m"), WalkForward { train: 3, test: 1, unit: Unit::Months });
        assert_eq!(asked("20d/5d").to_string(), "20d/5d");
        for wrong in ["3m", "3m/1d", "3/1", "0m/1m", "3m/-1m", "3m/+1m", "m/m", "9999d/1d", ""] {
            let error = wrong.parse::<WalkForward>().unwrap_err().to_string();
            assert!(error.contains("like 3m/1m or 20d/5d"), "{wrong}: {error}");
        }
    }

    #[test]
    fn days_are_counted_and_the_last_window_may_be_short() {
        let folds = asked("4d/2d").folds(&days("2025-01-06", 9)).unwrap();
        let expected =
            [(0..4, 4..6), (2..6, 6..8), (4..8, 8..9)].map(|(train, test)| Fold { train, test });
        assert_eq!(folds, expected);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        // From 31 January on: a month later is the last of February, two months later 31 March.
        let days = days("2025-01-31", 120);
        let folds = asked("1m/1m").folds(&days).unwrap();
        let dates = |range: &Range<usize>| (days[range.start], days[range.end - 1]);
        let date = |text: &str| text.parse::<JstDate>().unwrap();
        assert_eq!(dates(&folds[0].train), (date("2025-01-31"), date("2025-02-27")));
        assert_eq!(dates(&folds[0].test), (date("2025-02-28"), date("2025-03-30")));
        assert_eq!(dates(&folds[1].train), dates(&folds[0].test));
        assert_eq!(folds.len(), 3);
        assert_eq!(folds[2].test.end, days.len());
    }

    #[test]
    fn test_days_never_lie_in_a_window_to_choose_on_and_come_once() {
        for text in ["1d/1d", "5d/3d", "7d/1d", "2m/1m", "1m/2m"] {
            let days = days("2025-01-06", 200);
            let folds = asked(text).folds(&days).unwrap();
            for pair in folds.windows(2) {
                assert_eq!(pair[0].test.end, pair[1].test.start, "{text}");
            }
            assert!(folds.iter().all(|fold| fold.train.end == fold.test.start), "{text}");
            assert_eq!(folds.last().unwrap().test.end, days.len(), "{text}");
        }
    }

    #[test]
    fn too_little_data_is_refused() {
        let error = asked("3m/1m").folds(&days("2025-01-06", 20)).unwrap_err().to_string();
        assert_eq!(
            error,
            "walk-forward 3m/1m needs at least one day after its first window; the data has 20 \
             trading days from 2025-01-06 to 2025-01-25"
        );
        assert!(asked("20d/1d").folds(&days("2025-01-06", 20)).is_err());
        assert!(asked("1d/1d").folds(&[]).is_err());
    }
}
