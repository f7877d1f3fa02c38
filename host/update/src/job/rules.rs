//! Which days must be there, and when one is complete. Nothing else decides that.

use std::collections::BTreeSet;

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, TsNanos, holidays};

use crate::limits::{COMPLETE_PERCENT, LIST_SHRINK_PERCENT_MAX};
use crate::price_store::OpenDays;
use crate::row::IssueCode;

/// When the vendor has the day, in nanoseconds after midnight in Japan: 16:30.
const DAY_IS_THERE: u64 = (16 * 60 + 30) * NANOS_PER_MINUTE;

/// Days of a month, for rules C6 and L2.
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

/// Whether the exchange was open on a date, and nothing was traded on it: its system failed on 2020-10-01.
pub(super) fn is_day_without_trading(date: JstDate) -> bool {
    JstDate::from_ymd_opt(2020, 10, 1) == Some(date)
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

/// The issues of another day or list, so many days away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) codes: BTreeSet<IssueCode>,
    pub(super) days: u64,
}

impl Beside {
    /// Whether enough of its issues are among these.
    fn is_met(&self, codes: &BTreeSet<IssueCode>) -> bool {
        is_enough(common(codes, &self.codes), self.codes.len() as u64, self.days)
    }
}

/// What a day is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standard {
    /// C1: the issues that were listed on its date.
    Listed(BTreeSet<IssueCode>),
    /// C2: the issues of the last complete day before it that does not stand out alone, and those of the nearest
    /// list.
    Before { day: Beside, list: Option<Beside> },
    /// C6: rows or issues of what is nearest to it where nothing is before it, so many days away.
    Near { rows: u64, days: u64 },
    /// C3: there is neither.
    Nothing,
    /// C7: there is no complete day beside it, and its list could not be had.
    Unknown,
}

impl Standard {
    /// The rows that there should be; none where that is not known.
    pub(super) fn expected(&self) -> Option<u64> {
        match self {
            Self::Listed(codes) => Some(codes.len() as u64),
            Self::Before { day, list } => {
                let of_list = list.as_ref().map_or(0, |list| list.codes.len());
                Some(day.codes.len().max(of_list) as u64)
            }
            Self::Near { rows, days } => Some(rows * (101 - missing_percent(*days)) / 100),
            Self::Nothing | Self::Unknown => None,
        }
    }

    /// Whether rows of these issues make a day complete (rules C1 to C3, C6 and C7).
    pub(super) fn is_met(&self, codes: &BTreeSet<IssueCode>, came_in_one_piece: bool) -> bool {
        let found = codes.len() as u64;
        match self {
            Self::Listed(listed) => is_enough(common(codes, listed), listed.len() as u64, 0),
            Self::Before { day, list } => {
                is_enough(found, day.codes.len() as u64, 0)
                    && day.is_met(codes)
                    && list.as_ref().is_none_or(|list| list.is_met(codes))
            }
            Self::Near { rows, days } => is_enough(found, *rows, *days),
            Self::Nothing => came_in_one_piece && found > 0,
            Self::Unknown => false,
        }
    }

    /// Whether so many rows would be enough if they were of the right issues, where only other days tell which these
    /// are.
    pub(super) fn is_met_by_count(&self, found: usize) -> bool {
        match self {
            Self::Before { day, .. } => is_enough(found as u64, day.codes.len() as u64, 0),
            Self::Listed(_) | Self::Near { .. } | Self::Nothing | Self::Unknown => false,
        }
    }

    /// What was found and what it is held against, in words.
    pub(super) fn words(&self, codes: &BTreeSet<IssueCode>) -> String {
        let found = codes.len();
        match self {
            Self::Listed(listed) => format!(
                "{} of the {} issues that the vendor lists for this date have rows, and \
                 {COMPLETE_PERCENT} % are needed",
                common(codes, listed),
                listed.len()
            ),
            Self::Before { day, list } => match list.as_ref().filter(|list| !list.is_met(codes)) {
                Some(list) if day.is_met(codes) => format!(
                    "{} of the {} issues of the nearest list, {} days away, have rows, and {} % are needed",
                    common(codes, &list.codes),
                    list.codes.len(),
                    list.days,
                    100 - missing_percent(list.days)
                ),
                _ => {
                    let (shared, rows) = (common(codes, &day.codes), day.codes.len());
                    let of_it = match shared == found as u64 {
                        true => String::new(),
                        false => format!(", {shared} of them of its issues"),
                    };
                    format!(
                        "it has {found} rows, and {COMPLETE_PERCENT} % of {rows} are needed, which the last \
                         complete day before it has{of_it}"
                    )
                }
            },
            Self::Near { rows, days } => format!(
                "it has {found} rows, and {} % of {rows} are needed, which the nearest complete days or \
                 list have ({days} days away; there are no complete days before it)",
                100 - missing_percent(*days)
            ),
            Self::Nothing => format!(
                "its {found} rows did not come in one piece, and there is no list and no complete day to \
                 hold them against"
            ),
            Self::Unknown => format!(
                "it has {found} rows, its list of issues could not be had, and there is no complete day \
                 to hold them against"
            ),
        }
    }
}

/// Days between two dates, whichever is the first.
pub(super) fn days_between(one: JstDate, other: JstDate) -> u64 {
    (one - other).num_days().unsigned_abs()
}

/// Percent of rows or issues that may be missing beside what is so many days away.
fn missing_percent(days: u64) -> u64 {
    ((100 - COMPLETE_PERCENT) * (1 + days / DAYS_OF_MONTH)).min(100)
}

/// Whether so many rows are enough beside so many others, so many days away.
pub(super) fn is_enough(found: u64, of: u64, days: u64) -> bool {
    found > 0 && found * 100 >= of * (100 - missing_percent(days))
}

/// How many issues two sets share.
pub(super) fn common(one: &BTreeSet<IssueCode>, other: &BTreeSet<IssueCode>) -> u64 {
    one.intersection(other).count() as u64
}

/// What tells whether a list of issues is believed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListEvidence {
    /// Issues of the list.
    pub(super) issues: u64,
    /// Issues before it, where anything is known of that.
    pub(super) before: Option<u64>,
    /// Days between both.
    pub(super) days_between: u64,
    /// The rows of its own date meet it both ways; see [`meet`].
    pub(super) is_met: bool,
    /// A list of another date has as many.
    pub(super) is_confirmed: bool,
}

/// Why a list of issues is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// L3, by more than the user's word is needed for or by less.
    Shrunk { by_much: bool },
    /// L4, or L5 where the list of another date has as many.
    Grown { keeps_names: bool },
}

impl ListEvidence {
    /// Whether the list is believed (rules L1 to L5).
    pub(super) fn check(self) -> Result<(), Doubt> {
        let Some(before) = self.before else { return Ok(()) };
        let missing = missing_percent(self.days_between).min(LIST_SHRINK_PERCENT_MAX);
        if self.issues * 100 < before * (100 - missing) {
            let by_much = self.issues * 100 < before * (100 - LIST_SHRINK_PERCENT_MAX);
            return match !by_much && (self.is_confirmed || self.is_met) {
                true => Ok(()),
                false => Err(Doubt::Shrunk { by_much }),
            };
        }
        if self.issues * 100 > before * (200 - COMPLETE_PERCENT) && !self.is_met {
            return Err(Doubt::Grown { keeps_names: self.is_confirmed });
        }
        Ok(())
    }
}

/// Whether rows and a list are of the same issues, to 99 % both ways.
pub(super) fn meet(rows: &BTreeSet<IssueCode>, list: &BTreeSet<IssueCode>) -> bool {
    let common = common(rows, list);
    is_enough(common, list.len() as u64, 0) && is_enough(common, rows.len() as u64, 0)
}

/// Whether two lists have as many issues, to 1 %.
pub(super) fn are_alike(one: u64, other: u64) -> bool {
    is_enough(one.min(other), one.max(other), 0)
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
    fn lists_are_believed_by_five_rules() {
        let evidence = |issues: u64, days_between: u64| ListEvidence {
            issues,
            before: Some(200),
            days_between,
            is_met: false,
            is_confirmed: false,
        };
        for (issues, days, expected) in [
            (198, 1, Ok(())),
            (197, 1, Err(Doubt::Shrunk { by_much: false })),
            (196, 30, Ok(())),
            (195, 59, Err(Doubt::Shrunk { by_much: false })),
            (190, 300, Ok(())),
            // Nobody looks away for years and loses the market.
            (189, 300, Err(Doubt::Shrunk { by_much: true })),
            (202, 1, Ok(())),
            (203, 1, Err(Doubt::Grown { keeps_names: false })),
            // A list that grows is not believed by its age: nobody would ever doubt it.
            (203, 90, Err(Doubt::Grown { keeps_names: false })),
        ] {
            assert_eq!(evidence(issues, days).check(), expected, "{issues} after {days} days");
        }
        let met = |issues| ListEvidence { is_met: true, ..evidence(issues, 1) }.check();
        let confirmed = |issues| ListEvidence { is_confirmed: true, ..evidence(issues, 1) }.check();
        let shrunk = Err(Doubt::Shrunk { by_much: true });
        assert_eq!((met(190), met(189), met(300)), (Ok(()), shrunk, Ok(())), "L3");
        assert_eq!((confirmed(190), confirmed(189), confirmed(1)), (Ok(()), shrunk, shrunk), "L3");
        assert_eq!(confirmed(300), Err(Doubt::Grown { keeps_names: true }), "L5");
        assert_eq!(ListEvidence { before: None, ..evidence(1, 1) }.check(), Ok(()), "L1");
        assert!(are_alike(200, 198) && are_alike(198, 200) && !are_alike(197, 200));
        let codes = |count: usize| codes(count).collect::<BTreeSet<_>>();
        assert!(meet(&codes(198), &codes(200)) && meet(&codes(200), &codes(198)));
        assert!(!meet(&codes(197), &codes(200)) && !meet(&codes(200), &codes(197)));
        assert!(!meet(&codes(0), &codes(0)));
    }

    fn codes(count: usize) -> impl Iterator<Item = IssueCode> {
        (1_000..1_000 + count).map(|number| number.to_string().parse().unwrap())
    }

    #[test]
    fn a_day_is_complete_by_its_standard() {
        let codes = |count| codes(count).collect::<BTreeSet<_>>();
        let listed = Standard::Listed(codes(200));
        let near = |days| Standard::Near { rows: 200, days };
        let beside = |count, days| Beside { codes: codes(count), days };
        let before = Standard::Before { day: beside(200, 1), list: None };
        for (count, is_met) in [(200, true), (198, true), (197, false), (0, false)] {
            assert_eq!(listed.is_met(&codes(count), true), is_met, "C1, {count}");
            assert_eq!(before.is_met(&codes(count), false), is_met, "C2, {count}");
            assert_eq!(near(29).is_met(&codes(count), false), is_met, "C6, {count}");
        }
        assert!(near(30).is_met(&codes(196), false) && !near(59).is_met(&codes(195), false), "C6");
        assert!(near(9_000).is_met(&codes(1), false) && !near(9_000).is_met(&codes(0), false));
        // Issues that are not listed do not stand in for those that are.
        let mut others = codes(196);
        others.extend(["9999", "9998", "9997"].map(|code| code.parse::<IssueCode>().unwrap()));
        assert!(!listed.is_met(&others, true), "C1");
        assert!(!before.is_met(&others, true), "C2");
        let words = before.words(&others);
        assert!(
            words.contains("it has 199 rows") && words.ends_with(", 196 of them of its issues")
        );
        // The list that is nearest, and slowly less by what came and went.
        let sunk = |days| Standard::Before { day: beside(196, 1), list: Some(beside(200, days)) };
        assert!(!sunk(29).is_met(&codes(196), true) && sunk(30).is_met(&codes(196), true), "C2");
        let words = sunk(7).words(&codes(196));
        assert!(
            words.starts_with("196 of the 200 issues of the nearest list, 7 days away"),
            "{words}"
        );
        assert!(Standard::Nothing.is_met(&codes(3), true), "C3");
        assert!(!Standard::Nothing.is_met(&codes(3), false), "C3, issue by issue");
        assert!(!Standard::Nothing.is_met(&codes(0), true), "C3, nothing came");
        assert!(!Standard::Unknown.is_met(&codes(200), true), "C7");
        let expected = [&listed, &sunk(7), &near(29), &near(59), &Standard::Nothing];
        let expected = expected.map(Standard::expected);
        assert_eq!(expected, [Some(200), Some(200), Some(200), Some(198), None]);
        let words = listed.words(&others);
        assert!(words.starts_with("196 of the 200 issues that the vendor lists"), "{words}");
    }
}
