//! Whole days that no market ever had: they are not taken unless the user accepts them by their date (rules E1
//! to E5 of the job).

use std::collections::{BTreeMap, BTreeSet};

use domain::JstDate;

use super::report::{DayOutcome, DoubtKind, DoubtReport};
use super::rules::Standard;
use super::{Job, UpdateError};
use crate::limits::{
    LOST_ISSUES_MIN, NAMED_ISSUES_MAX, ODD_DAY_ISSUES_MIN, REPEATED_PERCENT_MAX,
    SPLITS_PERCENT_MAX, UNLISTED_PERCENT_MAX,
};
use crate::row::{DailyRow, IssueCode};

/// What happens next to a day that is odd, and what the user can do.
pub(super) const ADVICE: &str = "the next run asks for it again; look at what the vendor says of it, and take it \
                                 as it is with --accept and the date";

/// What is odd about a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    /// E1.
    Unlisted { rows: u64, listed: u64 },
    /// E2.
    OneYen { issues: u64, of: u64 },
    /// E3.
    Repeated { issues: u64, of: u64, day: JstDate },
    /// E4.
    NoVolume { issues: u64 },
    /// E5.
    Splits { issues: u64, of: u64 },
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unlisted { rows, listed } => write!(
                f,
                "unlisted: it has {rows} rows of issues that are not among the {listed} which the vendor \
                 lists for this date, and {UNLISTED_PERCENT_MAX} % may be"
            ),
            Self::OneYen { issues, of } => {
                write!(f, "one yen: {issues} of the {of} issues with a price cost 1 yen")
            }
            Self::Repeated { issues, of, day } => write!(
                f,
                "repeated: {issues} of the {of} issues with a volume have the prices and the volume of {day}"
            ),
            Self::NoVolume { issues } => {
                write!(f, "no volume: {issues} issues have a price, and none has a volume")
            }
            Self::Splits { issues, of } => write!(
                f,
                "splits: {issues} of {of} issues have an adjustment factor other than 1, and \
                 {SPLITS_PERCENT_MAX} % may have"
            ),
        }
    }
}

/// Prices in parts of a yen, and shares.
type Traded = ([Option<i64>; 4], u64);

/// What an issue traded; none without a volume.
fn traded(row: &DailyRow) -> Option<(IssueCode, Traded)> {
    let volume = row.volume.filter(|volume| *volume > 0)?;
    let prices = [row.open, row.high, row.low, row.close];
    Some((row.code, (prices.map(|price| price.map(domain::Price::units)), volume)))
}

/// The rows of issues that are not listed, where they are too many (rule E1).
pub(super) fn unlisted(rows: &BTreeSet<IssueCode>, listed: &BTreeSet<IssueCode>) -> Option<Oddity> {
    let count = rows.difference(listed).count() as u64;
    let of = listed.len() as u64;
    let is_odd = count >= LOST_ISSUES_MIN as u64 && count * 100 > of * UNLISTED_PERCENT_MAX;
    is_odd.then_some(Oddity::Unlisted { rows: count, listed: of })
}

/// What is odd about the rows of a day by themselves (rules E2, E4 and E5).
fn odd_rows(rows: &[DailyRow]) -> Option<Oddity> {
    let count =
        |is_so: &dyn Fn(&DailyRow) -> bool| rows.iter().filter(|row| is_so(row)).count() as u64;
    let is_many = |issues: u64| issues >= ODD_DAY_ISSUES_MIN;
    let priced = count(&|row| row.close.is_some());
    let one_yen = count(&|row| row.close == Some(domain::Price::from_yen(1)));
    if is_many(one_yen) && one_yen * 2 > priced {
        return Some(Oddity::OneYen { issues: one_yen, of: priced });
    }
    let with_volume = count(&|row| row.volume.is_some_and(|volume| volume > 0));
    if is_many(priced) && with_volume == 0 {
        return Some(Oddity::NoVolume { issues: priced });
    }
    let split = count(&|row| row.adjustment_factor.is_some_and(|factor| factor != 1.0));
    let of = rows.len() as u64;
    let is_odd = is_many(split) && split * 100 > of * SPLITS_PERCENT_MAX;
    is_odd.then_some(Oddity::Splits { issues: split, of })
}

/// Whether rows are those of another day (rule E3).
fn repeated(rows: &[DailyRow], of_day: (JstDate, &[DailyRow])) -> Option<Oddity> {
    let (day, others) = of_day;
    let others: BTreeMap<IssueCode, Traded> = others.iter().filter_map(traded).collect();
    let found: Vec<(IssueCode, Traded)> = rows.iter().filter_map(traded).collect();
    let same = found.iter().filter(|(code, values)| others.get(code) == Some(values));
    let (issues, of) = (same.count() as u64, found.len() as u64);
    let is_odd = issues >= ODD_DAY_ISSUES_MIN && issues * 100 > of * REPEATED_PERCENT_MAX;
    is_odd.then_some(Oddity::Repeated { issues, of, day })
}

impl Job<'_> {
    /// What is odd about a day with these rows; nothing where the user accepts it.
    pub(super) fn oddity(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Option<Oddity>, UpdateError> {
        if self.options.accept.contains(&date) {
            return Ok(None);
        }
        if let Some(Standard::Listed(listed)) = standard {
            let codes = rows.iter().map(|row| row.code).collect();
            if let Some(odd) = unlisted(&codes, listed) {
                return Ok(Some(odd));
            }
        }
        if let Some(odd) = odd_rows(rows) {
            return Ok(Some(odd));
        }
        let before = self.complete_rows.range(..date).next_back();
        let after = self.complete_rows.range(date..).find(|(day, _)| **day != date);
        let beside: Vec<JstDate> = before.into_iter().chain(after).map(|(day, _)| *day).collect();
        for day in beside {
            let others = self.rows_of(day)?;
            if let Some(odd) = repeated(rows, (day, &others)) {
                return Ok(Some(odd));
            }
        }
        Ok(None)
    }

    /// The same of a day that did not come in one piece.
    pub(super) fn oddity_of_stored(
        &mut self,
        date: JstDate,
        standard: &Standard,
    ) -> Result<Option<Oddity>, UpdateError> {
        let rows = self.rows_of(date)?;
        self.oddity(date, &rows, Some(standard))
    }

    /// The rows of a day, also where they are still on their way to the store.
    fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, UpdateError> {
        if let Some((judged, rows)) = &self.judged
            && *judged == date
        {
            return Ok(rows.clone());
        }
        let waiting = self.batch.rows.values().flatten().filter(|row| row.date == date);
        let waiting: Vec<DailyRow> = waiting.copied().collect();
        match waiting.is_empty() {
            true => Ok(self.store.rows_of(date)?),
            false => Ok(waiting),
        }
    }

    /// Leaves an odd day out and says so.
    pub(super) fn leave_odd_day(&mut self, date: JstDate, odd: Oddity) {
        self.note(format!("{date} is odd and is not published: {odd}"));
        let (kind, advice) = (DoubtKind::Odd, ADVICE.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what: odd.to_string(), advice });
        self.odd_days.insert(date, odd);
        let day = self.day(date);
        day.outcome = Some(DayOutcome::Refused);
        day.why = Some(format!("it is odd, {odd}"));
    }

    /// Names rows of a day that is taken whose issues are not listed (rule E1).
    pub(super) fn tell_unlisted(&mut self, date: JstDate, codes: &BTreeSet<IssueCode>) {
        let Some(listed) = self.listed.get(&date) else { return };
        let unlisted: Vec<IssueCode> = codes.difference(listed).copied().collect();
        if unlisted.is_empty() {
            return;
        }
        let named: Vec<&str> =
            unlisted.iter().take(NAMED_ISSUES_MAX).map(IssueCode::as_str).collect();
        let more = if unlisted.len() > NAMED_ISSUES_MAX { ", ..." } else { "" };
        let what = format!(
            "{} of its rows are of issues that the vendor does not list for this date: {}{more}",
            unlisted.len(),
            named.join(", ")
        );
        self.note(format!("{date} is published, and {what}"));
        let advice = "they go once the vendor gives the day without them; ask for it again with --days \
                      and --refetch";
        let (kind, advice) = (DoubtKind::Unlisted, advice.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what, advice });
    }
}

#[cfg(test)]
mod tests {
    use domain::{Money, Price};

    use super::*;
    use crate::row::SourceKind;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    fn rows(count: u32, change: impl Fn(&mut DailyRow, u32)) -> Vec<DailyRow> {
        let row = |number: u32| {
            let code = (1_300 + number).to_string().parse().unwrap();
            let mut row = DailyRow::bare(date("2026-01-09"), code, SourceKind::Vendor);
            let price = Some(Price::from_yen(100 + i64::from(number)));
            (row.open, row.high, row.low, row.close) = (price, price, price, price);
            (row.volume, row.turnover) = (Some(100), Some(Money::from_yen(1)));
            row.adjustment_factor = Some(1.0);
            change(&mut row, number);
            row
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn rows_by_themselves_are_odd_by_three_rules() {
        let one_yen = |first: u32| {
            rows(100, |row, number| {
                if number < first {
                    row.close = Some(Price::from_yen(1));
                }
            })
        };
        let odd = Oddity::OneYen { issues: 51, of: 100 };
        assert_eq!((odd_rows(&one_yen(50)), odd_rows(&one_yen(51))), (None, Some(odd)), "E2");
        let no_volume = rows(100, |row, _| row.volume = Some(0));
        assert_eq!(odd_rows(&no_volume), Some(Oddity::NoVolume { issues: 100 }), "E4");
        assert_eq!(odd_rows(&rows(100, |row, _| (row.volume, row.close) = (None, None))), None);
        let split = |of: u32, first: u32| {
            let row = |row: &mut DailyRow, number: u32| {
                row.adjustment_factor = Some(if number < first { 0.5 } else { 1.0 });
            };
            odd_rows(&rows(of, row))
        };
        let odd = Oddity::Splits { issues: 41, of: 200 };
        assert_eq!((split(200, 40), split(200, 41), split(29, 29)), (None, Some(odd), None), "E5");
        assert_eq!(odd_rows(&rows(29, |row, _| row.volume = Some(0))), None, "no market");
    }

    #[test]
    fn a_day_repeats_another_where_over_half_is_the_same() {
        let (first, second) = (date("2026-01-08"), rows(100, |_, _| {}));
        let check = |same: u32| {
            let others = rows(100, |row, number| {
                if number >= same {
                    row.volume = Some(101);
                }
            });
            repeated(&second, (first, &others))
        };
        let odd = Oddity::Repeated { issues: 51, of: 100, day: first };
        assert_eq!((check(50), check(51)), (None, Some(odd)), "E3");
        // What was not traded is the same by itself.
        let quiet = rows(100, |row, _| row.volume = Some(0));
        assert_eq!(repeated(&quiet, (first, &quiet)), None);
    }

    #[test]
    fn few_rows_of_issues_that_are_not_listed_are_let_pass() {
        let codes = |count| rows(count, |_, _| {}).iter().map(|row| row.code).collect();
        let check = |rows, listed| unlisted(&codes(rows), &codes(listed));
        assert_eq!((check(22, 20), check(202, 200)), (None, None));
        assert_eq!(check(203, 200), Some(Oddity::Unlisted { rows: 3, listed: 200 }), "E1");
        assert_eq!(check(100, 200), None);
    }
}
