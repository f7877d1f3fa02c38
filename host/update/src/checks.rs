//! What makes a whole day strange: a table of checks, each a count of issues with a limit.
//!
//! A check compares the rows of a day with the complete day beside it, with the ten complete days before it, and
//! with the list of issues of its date.

use std::collections::{BTreeMap, BTreeSet};

use domain::adjustment::Adjustment;
use domain::instrument::DailyLimits;
use domain::{JstDate, Price};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits::{CHECKED_DAYS_MAX, FAR_TIMES, FAR_YEN_MIN, FINDING_ROWS_MAX, JUMP_PERCENT};
use crate::row::{DailyRow, IssueCode};

/// What happens to a day of which a check finds too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It waits for a person, who takes it with `--accept`.
    Refuse,
    /// It is published, with one warning.
    Warn,
}

/// A check of a whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Its name, as reports and tests call it.
    pub name: &'static str,
    /// Which issues it counts, in words.
    pub metric: &'static str,
    /// Percent of the issues that may be so.
    pub percent: u64,
    /// Issues that may be so in any market, however small.
    pub few: u64,
    /// What happens to a day with more of them.
    pub severity: Severity,
}

/// Issues with the rows of another day.
const REPEATED: Check = Check {
    name: "repeated",
    metric: "issues with prices and volume of one of the ten complete days before, or of the one after",
    percent: 10,
    few: 29,
    severity: Severity::Refuse,
};
/// Prices that the exchange does not allow. After missing days the limits count twice.
const LIMITS: Check = Check {
    name: "limits",
    metric: "issues with a price beyond the daily limits around the last complete day's close, factors counted in",
    percent: 5,
    few: 29,
    severity: Severity::Refuse,
};
/// A day without trading.
const NO_VOLUME: Check = Check {
    name: "no_volume",
    metric: "issues without a volume that have a price or were traded on the last complete day",
    percent: 20,
    few: 29,
    severity: Severity::Refuse,
};
/// Rows of another market.
const UNLISTED: Check = Check {
    name: "unlisted",
    metric: "issues that are not in the list of the day",
    percent: 1,
    few: 2,
    severity: Severity::Refuse,
};
/// A market that moves as one.
const JUMP: Check = Check {
    name: "jump",
    metric: "issues with a close over 8 % from that of the business day before, all up or all down",
    percent: 50,
    few: 29,
    severity: Severity::Warn,
};
/// Placeholders in place of prices.
const ONE_YEN: Check = Check {
    name: "one_yen",
    metric: "issues with a close of 1 yen",
    percent: 50,
    few: 29,
    severity: Severity::Refuse,
};
/// Splits of everything.
const FACTORS: Check = Check {
    name: "factors",
    metric: "issues with an adjustment factor other than 1",
    percent: 10,
    few: 29,
    severity: Severity::Refuse,
};
/// A list that is not that of the market.
const LIST: Check = Check {
    name: "list",
    metric: "issues of the nearest complete day that the list lacks; 1 % more for each month between",
    percent: 1,
    few: 2,
    severity: Severity::Refuse,
};

/// All checks, in the order in which a report names them.
pub const CHECKS: [Check; 8] =
    [UNLISTED, LIST, REPEATED, LIMITS, NO_VOLUME, ONE_YEN, FACTORS, JUMP];

impl Check {
    /// How many issues are too many, in words.
    #[must_use]
    pub fn threshold_in_words(&self) -> String {
        format!("over {} % and over {}", self.percent, self.few)
    }
}

/// What a check, or another rule, has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) severity: Severity,
    /// Issues that are so.
    pub(crate) issues: u64,
    /// What was found, in words.
    pub(crate) what: String,
    /// The first rows that show it.
    pub(crate) rows: Vec<String>,
}

/// The rows of a day by issue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Day {
    pub(crate) date: JstDate,
    pub(crate) rows: BTreeMap<IssueCode, DailyRow>,
}

impl Day {
    pub(crate) fn new(date: JstDate, rows: &[DailyRow]) -> Self {
        Self { date, rows: rows.iter().map(|row| (row.code, *row)).collect() }
    }

    pub(crate) fn codes(&self) -> BTreeSet<IssueCode> {
        self.rows.keys().copied().collect()
    }
}

/// What a day is compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside<'a> {
    /// The nearest complete day, before it where there is one.
    pub(crate) nearest: Option<&'a Day>,
    /// Months that have begun between both.
    pub(crate) months: u64,
    /// Business days from that one to the day; none where it is not before it.
    pub(crate) business_days: Option<usize>,
    /// The ten complete days before it, the nearest first, and the one after it.
    pub(crate) others: Vec<&'a Day>,
    /// The issues that are listed on its date.
    pub(crate) listed: Option<&'a BTreeSet<IssueCode>>,
}

/// Counts issues.
#[derive(Debug, Default)]
struct Tally {
    issues: u64,
    of: u64,
    rows: Vec<String>,
}

impl Tally {
    fn count(&mut self, is_so: bool, row: impl FnOnce() -> String) {
        self.of += 1;
        if is_so {
            self.issues += 1;
            if self.rows.len() < FINDING_ROWS_MAX {
                self.rows.push(row());
            }
        }
    }

    fn finding(self, check: Check, months: u64) -> Option<Finding> {
        let Self { issues, of, rows } = self;
        let Check { name, metric, few, severity, .. } = check;
        let percent = check.percent * (1 + months);
        let is_too_much = issues > few && issues * 100 > of * percent;
        is_too_much.then(|| {
            let what =
                format!("{name}: {issues} of {of} are {metric}; at most {percent} % is allowed");
            Finding { check: name, severity, issues, what, rows }
        })
    }
}

fn yen(price: Option<Price>) -> String {
    price.map_or("none".to_owned(), |price| price.to_string())
}

fn is_traded(row: &DailyRow) -> bool {
    row.volume.is_some_and(|volume| volume > 0)
}

/// What all checks find in the rows of a day.
pub(crate) fn findings(date: JstDate, rows: &[DailyRow], beside: &Beside<'_>) -> Vec<Finding> {
    let near = beside.nearest.filter(|_| beside.months <= CHECKED_DAYS_MAX / 30);
    let before = near.zip(beside.business_days);
    let mut all = Vec::new();
    if let Some(listed) = beside.listed {
        all.push(unlisted(rows, listed).finding(UNLISTED, 0));
        all.push(beside.nearest.and_then(|day| list(listed, day).finding(LIST, beside.months)));
    }
    let repeated = |day: &&Day| repeated(rows, day).finding(REPEATED, 0);
    all.push(beside.others.iter().find_map(repeated));
    all.push(before.and_then(|(day, days)| limits(rows, day, days).finding(LIMITS, 0)));
    if !has_no_trading(date) {
        all.push(no_volume(rows, near).finding(NO_VOLUME, 0));
    }
    all.push(one_yen(rows).finding(ONE_YEN, 0));
    all.push(factors(rows).finding(FACTORS, 0));
    let yesterday = before.filter(|(_, days)| *days == 1);
    all.push(yesterday.and_then(|(day, _)| jump(rows, day).finding(JUMP, 0)));
    all.into_iter().flatten().collect()
}

/// Whether the exchange was open and nothing was traded: its system failed on 2020-10-01.
fn has_no_trading(date: JstDate) -> bool {
    JstDate::from_ymd_opt(2020, 10, 1) == Some(date)
}

fn unlisted(rows: &[DailyRow], listed: &BTreeSet<IssueCode>) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        tally.count(!listed.contains(&row.code), || format!("{} is not listed", row.code));
    }
    Tally { of: listed.len() as u64, ..tally }
}

fn list(listed: &BTreeSet<IssueCode>, day: &Day) -> Tally {
    let mut tally = Tally::default();
    for code in day.rows.keys() {
        tally.count(!listed.contains(code), || format!("{code} has a row on {}", day.date));
    }
    tally
}

/// Prices alone tell where they moved: no issue has the same four of a whole day twice but by chance.
fn repeated(rows: &[DailyRow], day: &Day) -> Tally {
    let mut tally = Tally::default();
    for row in rows.iter().filter(|row| is_traded(row)) {
        let is_same = day.rows.get(&row.code).is_some_and(|other| {
            row.prices() == other.prices() && (row.volume == other.volume || row.high != row.low)
        });
        tally.count(is_same, || format!("{} as on {}", row.code, day.date));
    }
    tally
}

/// The factor of a row's day, read as everywhere: 1/3 of 0.33333. One that is no such fraction stays as it is: the row
/// is judged with it.
fn split_factor(row: &DailyRow) -> Option<f64> {
    let told = row.adjustment_factor?;
    Some(Adjustment::of_factor(told).map_or(told, Adjustment::factor))
}

/// The close of an earlier day as it compares with a row; none where nobody knows what compares.
fn base(row: &DailyRow, day: &Day) -> Option<Price> {
    let before = day.rows.get(&row.code)?;
    if row.source.is_adjusted() || before.source.is_adjusted() {
        return None;
    }
    // Prices are at most millions of yen: a float holds them well enough for this.
    let units = before.close?.units() as f64 * split_factor(row)?;
    Some(Price::from_units(units.round() as i64))
}

fn limits(rows: &[DailyRow], day: &Day, business_days: usize) -> Tally {
    let mut tally = Tally::default();
    let times = if business_days > 1 { 2 } else { 1 };
    for row in rows {
        let Some(base) = base(row, day).filter(|_| row.close.is_some()) else { continue };
        let limits = DailyLimits::around_by(base, times);
        let is_beyond = row.prices().into_iter().flatten().any(|price| !limits.contains(price));
        tally.count(is_beyond, || {
            let (low, high) = (yen(row.low), yen(row.high));
            format!("{}: {low} to {high} yen after a close of {base}", row.code)
        });
    }
    tally
}

fn no_volume(rows: &[DailyRow], day: Option<&Day>) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        // Without another day every issue counts: nearly all are traded on any day.
        let other = |day: &Day| day.rows.get(&row.code).is_some_and(is_traded);
        if row.close.is_some() || day.is_none_or(other) {
            tally.count(!is_traded(row), || {
                format!("{}: close {}, no volume", row.code, yen(row.close))
            });
        }
    }
    tally
}

fn one_yen(rows: &[DailyRow]) -> Tally {
    let mut tally = Tally::default();
    for row in rows.iter().filter(|row| row.close.is_some()) {
        tally.count(row.close == Some(Price::from_yen(1)), || format!("{}: close 1", row.code));
    }
    tally
}

fn factors(rows: &[DailyRow]) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        let factor = row.adjustment_factor.unwrap_or(1.0);
        tally.count(split_factor(row).unwrap_or(1.0) != 1.0, || {
            format!("{}: factor {factor}", row.code)
        });
    }
    tally
}

fn jump(rows: &[DailyRow], day: &Day) -> Tally {
    let (mut up, mut down) = (Tally::default(), Tally::default());
    for row in rows {
        let Some((base, close)) = base(row, day).zip(row.close) else { continue };
        let (base, close) = (base.units(), close.units());
        let shown =
            || format!("{}: {} after {}", row.code, yen(row.close), Price::from_units(base));
        up.count((close - base) * 100 > base * JUMP_PERCENT, shown);
        down.count((base - close) * 100 > base * JUMP_PERCENT, shown);
    }
    if up.issues > down.issues { up } else { down }
}

/// What is wrong with a row whose price is over ten times from the last close of its issue on earlier days, the
/// nearest first: no day of the exchange ever took one so far. Cheap issues have wide limits.
pub(crate) fn far<'a>(row: &DailyRow, before: impl Iterator<Item = &'a Day>) -> Option<String> {
    if row.source.is_adjusted() {
        return None;
    }
    let mut factor = split_factor(row)?;
    for known in before.filter_map(|day| day.rows.get(&row.code)) {
        if known.source.is_adjusted() {
            return None;
        }
        let Some(close) = known.close else {
            factor *= split_factor(known)?;
            continue;
        };
        let base = close.units() as f64 * factor;
        let is_far = |price: &Price| {
            let price = price.units() as f64;
            let is_cheap = (price - base).abs() <= Price::from_yen(FAR_YEN_MIN).units() as f64;
            !is_cheap && !(base / FAR_TIMES..=base * FAR_TIMES).contains(&price)
        };
        let price = row.prices().into_iter().flatten().find(is_far)?;
        let base = Price::from_units(base.round() as i64);
        return Some(format!(
            "a price of {price} yen, over {FAR_TIMES} times away from the last close of {base} yen, splits included"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use domain::Money;

    use super::*;
    use crate::row::SourceKind;

    const DATE: &str = "2026-01-09";

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    /// Rows of so many issues from 1300 on, closing at 1,000 yen.
    fn market(issues: u32) -> Vec<DailyRow> {
        let row = |issue: u32| {
            let code = (1_300 + issue).to_string().parse().unwrap();
            let mut row = DailyRow::bare(date(DATE), code, SourceKind::Vendor);
            set(&mut row, 1_000 + i64::from(issue));
            row.volume = Some(u64::from(issue) + 100);
            row.turnover = Some(Money::from_yen(1_000));
            row.adjustment_factor = Some(1.0);
            row
        };
        (0..issues).map(row).collect()
    }

    fn set(row: &mut DailyRow, close: i64) {
        [row.open, row.high, row.low, row.close] =
            [close, close + 2, close - 1, close].map(|yen| Some(Price::from_yen(yen)));
    }

    /// The names of what is found on a day of 100 issues after a day that is like it, but for a yen.
    fn found(change: impl FnOnce(&mut Vec<DailyRow>)) -> Vec<(&'static str, u64)> {
        let mut rows = market(100);
        let day = Day::new(date("2026-01-08"), &rows);
        for row in &mut rows {
            let close = row.close.unwrap().units() / 10_000;
            set(row, close + 1);
        }
        change(&mut rows);
        let listed = market(100).iter().map(|row| row.code).collect();
        let beside = Beside {
            nearest: Some(&day),
            months: 0,
            business_days: Some(1),
            others: vec![&day],
            listed: Some(&listed),
        };
        let found = findings(date(DATE), &rows, &beside);
        assert!(found.iter().all(|found| found.rows.len() == FINDING_ROWS_MAX));
        found.iter().map(|finding| (finding.check, finding.issues)).collect()
    }

    fn first(rows: &mut [DailyRow], count: usize, change: impl FnMut(&mut DailyRow)) {
        rows.iter_mut().take(count).for_each(change);
    }

    #[test]
    fn each_check_finds_its_own_from_its_limit_on() {
        assert_eq!(found(|_| {}), []);
        let as_before = |row: &mut DailyRow| {
            let close = row.close.unwrap().units() / 10_000;
            set(row, close - 1);
        };
        assert_eq!(found(|rows| first(rows, 29, as_before)), []);
        assert_eq!(found(|rows| first(rows, 30, as_before)), [("repeated", 30)]);
        assert_eq!(found(|rows| first(rows, 30, |row| set(row, 1_400))), [("limits", 30)]);
        assert_eq!(found(|rows| first(rows, 30, |row| row.volume = Some(0))), [("no_volume", 30)]);
        let nothing = |row: &mut DailyRow| {
            [row.open, row.high, row.low, row.close] = [None; 4];
            (row.volume, row.turnover) = (Some(0), None);
        };
        assert_eq!(found(|rows| first(rows, 100, nothing)), [("no_volume", 100)]);
        let split = |row: &mut DailyRow| {
            row.adjustment_factor = Some(0.5);
            set(row, 505);
        };
        assert_eq!(found(|rows| first(rows, 30, split)), [("factors", 30)]);
        let a_yen = |row: &mut DailyRow| {
            [row.open, row.high, row.low, row.close] = [Some(Price::from_yen(1)); 4];
        };
        let all = found(|rows| first(rows, 51, a_yen));
        assert_eq!(all, [("limits", 51), ("one_yen", 51), ("jump", 51)]);
        let up = |row: &mut DailyRow| set(row, row.close.unwrap().units() * 109 / 1_000_000);
        assert_eq!(found(|rows| first(rows, 50, up)), []);
        assert_eq!(found(|rows| first(rows, 51, up)), [("jump", 51)]);
        let foreign = |rows: &mut Vec<DailyRow>, count: usize| {
            let more = market(103).split_off(100);
            rows.extend(&more[..count]);
        };
        assert_eq!(found(|rows| foreign(rows, 2)), []);
        assert_eq!(found(|rows| foreign(rows, 3)), [("unlisted", 3)]);
    }

    #[test]
    fn a_list_may_lack_one_percent_a_month() {
        let day = Day::new(date("2026-01-08"), &market(300));
        let listed = market(294).iter().map(|row| row.code).collect();
        let found = |months| {
            let beside =
                Beside { nearest: Some(&day), months, listed: Some(&listed), ..Beside::default() };
            findings(date(DATE), &[], &beside).len()
        };
        assert_eq!((found(0), found(1)), (1, 0));
    }

    #[test]
    fn a_price_is_far_over_ten_times_and_sixty_yen() {
        let row = |close| {
            let mut row = market(1)[0];
            set(&mut row, close);
            row
        };
        let check = |close, before: i64| {
            far(&row(close), [Day::new(date("2026-01-08"), &[row(before)])].iter()).is_some()
        };
        assert!(check(10_000, 1_000) && !check(9_990, 1_000));
        assert!(check(99, 1_002) && !check(102, 1_000));
        assert!(!check(55, 2), "limits of cheap issues are wide");
        let mut quiet = row(1_000);
        [quiet.open, quiet.high, quiet.low, quiet.close] = [None; 4];
        quiet.adjustment_factor = Some(0.05);
        let days = [quiet, row(1_000)].map(|row| Day::new(date("2026-01-08"), &[row]));
        assert!(far(&row(501), days.iter()).is_some() && far(&row(450), days.iter()).is_none());
    }
}
