//! Which days must be there, and when one is complete. Nothing else decides that.

use std::collections::BTreeSet;

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, TsNanos, holidays};

use crate::limits::COMPLETE_PERCENT;
use crate::price_store::OpenDays;
use crate::row::IssueCode;

/// When the vendor has the day, in nanoseconds after midnight in Japan: 16:30.
const DAY_IS_THERE: u64 = (16 * 60 + 30) * NANOS_PER_MINUTE;

/// Days of a month, for rule C6.
const DAYS_OF_MONTH: u64 = 30;

/// Why a weekday need not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDue {
    /// D1.
    AfterLast,
    /// D2.
    Closed,
    /// D3.
    TooEarly,
    /// D4.
    NotCovered,
}

/// What says which days are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueDays<'a> {
    /// The last date that is wanted.
    pub(super) last: JstDate,
    pub(super) now: TsNanos,
    pub(super) calendar: &'a OpenDays,
    /// First and last date of the subscription, where it is known.
    pub(super) covered: Option<(JstDate, JstDate)>,
}

/// Whether the exchange is open on a date: as its calendar says, else as the law does (rule D2).
pub(super) fn is_open(calendar: &OpenDays, date: JstDate) -> bool {
    calendar.get(&date).copied().unwrap_or_else(|| !holidays::is_closed(date))
}

impl DueDays<'_> {
    /// Whether a weekday is due (rules D1 to D5).
    pub(super) fn check(&self, date: JstDate) -> Result<(), NotDue> {
        let today = self.now.jst_date();
        let is_early =
            date > today || (date == today && self.now.jst_nanos_of_day() < DAY_IS_THERE);
        if date > self.last {
            Err(NotDue::AfterLast)
        } else if !is_open(self.calendar, date) {
            Err(NotDue::Closed)
        } else if is_early {
            Err(NotDue::TooEarly)
        } else if self.covered.is_some_and(|(first, last)| !(first..=last).contains(&date)) {
            Err(NotDue::NotCovered)
        } else {
            Ok(())
        }
    }
}

/// What a day is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standard {
    /// C1: the issues that were listed on its date.
    Listed(BTreeSet<IssueCode>),
    /// C2: the most rows of the last complete days before it.
    Before(u64),
    /// C3: there is neither.
    Nothing,
    /// C7: there is no complete day before it, and its list could not be had.
    Unknown,
}

impl Standard {
    /// The rows that there should be; none where that is not known.
    pub(super) fn expected(&self) -> Option<u64> {
        match self {
            Self::Listed(codes) => Some(codes.len() as u64),
            Self::Before(rows) => Some(*rows),
            Self::Nothing | Self::Unknown => None,
        }
    }

    /// Whether rows of these issues make a day complete (rules C1 to C3 and C7).
    pub(super) fn is_met(
        &self,
        mut codes: impl Iterator<Item = IssueCode>,
        came_in_one_piece: bool,
    ) -> bool {
        let (found, expected) = match self {
            Self::Listed(listed) => {
                (codes.filter(|code| listed.contains(code)).count() as u64, listed.len() as u64)
            }
            Self::Before(rows) => (codes.count() as u64, *rows),
            Self::Nothing => return came_in_one_piece && codes.next().is_some(),
            Self::Unknown => return false,
        };
        found > 0 && found * 100 >= expected * COMPLETE_PERCENT
    }
}

/// Whether a list of so many issues is believed beside one of so many before it (rule C6): issues come
/// and go, but not more than one in a hundred at once, and another in a hundred for each month between.
pub(super) fn is_believed(issues: u64, before: u64, days_between: u64) -> bool {
    let missing_percent = (100 - COMPLETE_PERCENT) * (1 + days_between / DAYS_OF_MONTH);
    before.saturating_sub(issues) * 100 <= before * missing_percent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_is_due_by_five_rules() {
        let calendar = OpenDays::from([
            (date("2026-01-06"), false),
            (date("2026-01-07"), true),
            (date("2026-01-09"), true),
            // A holiday by law alone.
            (date("2026-01-12"), true),
        ]);
        let check = |of: &str, time: u64, covered: Option<(&str, &str)>| {
            let now = TsNanos::from_jst(date("2026-01-09"), time).unwrap();
            let covered = covered.map(|(first, last)| (date(first), date(last)));
            let last = date("2026-01-12");
            DueDays { last, now, calendar: &calendar, covered }.check(date(of))
        };
        let evening = DAY_IS_THERE;
        assert_eq!(check("2026-01-13", evening, None), Err(NotDue::AfterLast), "D1");
        assert_eq!(check("2026-01-06", evening, None), Err(NotDue::Closed), "D2");
        assert_eq!(check("2026-01-09", evening - 1, None), Err(NotDue::TooEarly), "D3");
        assert_eq!(check("2026-01-12", evening, None), Err(NotDue::TooEarly), "D3, tomorrow");
        assert_eq!(check("2026-01-09", evening, None), Ok(()), "D3, from 16:30 on");
        let window = Some(("2026-01-05", "2026-01-07"));
        assert_eq!(check("2026-01-08", evening, window), Err(NotDue::NotCovered), "D4");
        assert_eq!(check("2025-12-30", evening, window), Err(NotDue::NotCovered), "D4, before");
        assert_eq!(check("2026-01-07", evening, window), Ok(()), "D5");
        assert_eq!(check("2026-01-08", evening, None), Ok(()), "D5, not in the calendar");
        let new_year = check("2026-01-02", evening, None);
        assert_eq!(new_year, Err(NotDue::Closed), "D2, by the law alone");
    }

    #[test]
    fn a_list_that_shrinks_is_believed_by_its_age() {
        for (issues, days, is_so) in
            [(99, 1, true), (98, 1, false), (98, 30, true), (97, 59, false)]
        {
            assert_eq!(is_believed(issues, 100, days), is_so, "{issues} after {days} days");
        }
        assert!(is_believed(200, 100, 1) && !is_believed(1, 100, 1));
    }

    #[test]
    fn a_day_is_complete_by_three_rules() {
        let codes = |count: u32| (1_000..1_000 + count).map(|number| number.to_string());
        let codes = |count| codes(count).map(|code| code.parse::<IssueCode>().unwrap());
        let listed = Standard::Listed(codes(200).collect());
        for (count, is_met) in [(200, true), (198, true), (197, false), (0, false)] {
            assert_eq!(listed.is_met(codes(count), true), is_met, "C1, {count}");
            assert_eq!(Standard::Before(200).is_met(codes(count), false), is_met, "C2, {count}");
        }
        // Issues that are not listed do not stand in for those that are.
        let others = ["9999", "9998", "9997"].map(|code| code.parse().unwrap());
        assert!(!listed.is_met(codes(196).chain(others), true), "C1");
        assert!(Standard::Nothing.is_met(codes(3), true), "C3");
        assert!(!Standard::Nothing.is_met(codes(3), false), "C3, issue by issue");
        assert!(!Standard::Nothing.is_met(codes(0), true), "C3, nothing came");
        assert!(!Standard::Unknown.is_met(codes(200), true), "C7");
        let expected = [&listed, &Standard::Before(7), &Standard::Nothing].map(Standard::expected);
        assert_eq!(expected, [Some(200), Some(7), None]);
    }
}
