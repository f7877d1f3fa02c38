//! Whole days that no market ever had: they are not taken unless the user accepts them by their date (rules E1
//! to E5 of the job; E6 and E7 are about corrections). Strange ones are taken and told (rules Z1 and Z2).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use domain::JstDate;

use super::plan::last_weekdays;
use super::report::{DayOutcome, DoubtKind, DoubtReport};
use super::rules::{Standard, days_between};
use super::{Job, UpdateError};
use crate::limits::{
    BESIDE_DAYS_MAX, BETTER_DAYS_MAX, JUMP_PERCENT, JUMP_YEN_MIN, JUMPS_PERCENT_MAX,
    LOST_ISSUES_MIN, NAMED_ISSUES_MAX, ODD_DAY_ISSUES_MIN, PRICED_PERCENT_MIN, REPEATED_DAYS,
    REPEATED_PERCENT_MAX, REPORT_ROWS_MAX, SPLITS_PERCENT_MAX, UNLISTED_PERCENT_MAX,
    VOLUME_PERCENT_MIN,
};
use crate::row::{DailyRow, IssueCode};

/// What happens next to a day that is odd, and what the user can do.
pub(super) const ADVICE: &str = "the next run asks for it again; look at what the vendor says of it, and take it \
                                 as it is with --accept and the date";

/// Dates between the first and the last of days that are looked up together: those of ten business days and of long
/// holidays between them.
const TOGETHER_DAYS_MAX: usize = 45;

/// What the user can do about a day that is strange.
const STRANGE: &str = "it is published as it came; look at what the vendor says of it, and ask again with --days and \
                       --refetch";

/// What is odd about a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    /// E1.
    Unlisted { rows: u64, listed: u64 },
    /// E1, where there is no list.
    Foreign { rows: u64, known: u64 },
    /// E2.
    OneYen { issues: u64, of: u64 },
    /// E3.
    Repeated { issues: u64, of: u64, day: JstDate },
    /// E4.
    NoVolume { issues: u64, with: u64 },
    /// E5.
    Splits { issues: u64, of: u64 },
    /// E6.
    Impossible { issues: u64, of: u64 },
}

/// What is strange about a day that is published all the same: it may be so, and nobody should find out alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strangeness {
    /// Z1.
    Priceless { priced: u64, of: u64, day: JstDate, priced_then: u64, of_then: u64 },
    /// Z2.
    Jump { issues: u64, of: u64, day: JstDate },
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unlisted { rows, listed } => write!(
                f,
                "unlisted: it has {rows} rows of issues that are not among the {listed} which the vendor \
                 lists for this date, and {UNLISTED_PERCENT_MAX} % may be"
            ),
            Self::Foreign { rows, known } => write!(
                f,
                "unlisted: it has {rows} rows of issues that are not among the {known} of the days beside it, and \
                 {UNLISTED_PERCENT_MAX} % may be"
            ),
            Self::Impossible { issues, of } => write!(
                f,
                "impossible: it changes the prices of {issues} of {of} issues beyond the daily limits around those \
                 that are published and those of the day before"
            ),
            Self::OneYen { issues, of } => {
                write!(f, "one yen: {issues} of the {of} issues with a price cost 1 yen")
            }
            Self::Repeated { issues, of, day } => write!(
                f,
                "repeated: {issues} of the {of} issues with a volume have the prices and the volume of {day}"
            ),
            Self::NoVolume { issues, with } => {
                write!(f, "no volume: {issues} issues have a price, and {with} have a volume")
            }
            Self::Splits { issues, of } => write!(
                f,
                "splits: {issues} of {of} issues have an adjustment factor other than 1, and \
                 {SPLITS_PERCENT_MAX} % may have"
            ),
        }
    }
}

impl std::fmt::Display for Strangeness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Priceless { priced, of, day, priced_then, of_then } => write!(
                f,
                "priceless: {priced} of its {of} rows have a price, and on {day} {priced_then} of {of_then} have"
            ),
            Self::Jump { issues, of, day } => write!(
                f,
                "jump: the closes of {issues} of {of} issues are further from those of {day} than any price \
                 limit allows"
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

/// Rows of issues that are not among the known ones, where they are too many, and how many are known (rule E1).
fn too_many_others(rows: &BTreeSet<IssueCode>, known: &BTreeSet<IssueCode>) -> Option<(u64, u64)> {
    let count = rows.difference(known).count() as u64;
    let of = known.len() as u64;
    let is_odd = count >= LOST_ISSUES_MIN as u64 && count * 100 > of * UNLISTED_PERCENT_MAX;
    is_odd.then_some((count, of))
}

/// The same beside a list.
fn unlisted(rows: &BTreeSet<IssueCode>, listed: &BTreeSet<IssueCode>) -> Option<Oddity> {
    too_many_others(rows, listed).map(|(rows, listed)| Oddity::Unlisted { rows, listed })
}

/// The same beside the issues of other days.
pub(super) fn foreign(rows: &BTreeSet<IssueCode>, known: &BTreeSet<IssueCode>) -> Option<Oddity> {
    too_many_others(rows, known).map(|(rows, known)| Oddity::Foreign { rows, known })
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
    if is_many(priced) && with_volume * 100 < priced * VOLUME_PERCENT_MIN {
        return Some(Oddity::NoVolume { issues: priced, with: with_volume });
    }
    let split = count(&|row| row.adjustment_factor.is_some_and(|factor| factor != 1.0));
    let of = rows.len() as u64;
    let is_odd = is_many(split) && split * 100 > of * SPLITS_PERCENT_MAX;
    is_odd.then_some(Oddity::Splits { issues: split, of })
}

/// What a day traded, by issue.
type DayTraded = BTreeMap<IssueCode, Traded>;

fn traded_of(rows: &[DailyRow]) -> DayTraded {
    rows.iter().filter_map(traded).collect()
}

/// What days traded that others are held against: those of the last weeks, so that each is read once.
#[derive(Debug, Default)]
pub(super) struct TradedDays(BTreeMap<JstDate, DayTraded>);

impl TradedDays {
    /// Days that are kept: those before a day and one after it.
    const KEPT: usize = REPEATED_DAYS + 2;

    /// A day gets other rows.
    pub(super) fn forget(&mut self, date: JstDate) {
        self.0.remove(&date);
    }

    fn keep(&mut self, date: JstDate, day: DayTraded) {
        while self.0.len() >= Self::KEPT {
            // The one that is furthest away.
            let ends = [self.0.keys().next(), self.0.keys().next_back()].into_iter().flatten();
            let Some(far) = ends.copied().max_by_key(|end| days_between(*end, date)) else { break };
            self.0.remove(&far);
        }
        self.0.insert(date, day);
    }
}

/// Whether what was traded is that of another day (rule E3).
fn repeated(found: &DayTraded, (day, others): (JstDate, &DayTraded)) -> Option<Oddity> {
    let of = found.len() as u64;
    // So many that are not alike tell already that days are not.
    let most = of * (100 - REPEATED_PERCENT_MAX) / 100;
    let (mut issues, mut unlike) = (0, 0);
    for (code, values) in found {
        match others.get(code) == Some(values) {
            true => issues += 1,
            false if unlike >= most => return None,
            false => unlike += 1,
        }
    }
    let is_odd = issues >= ODD_DAY_ISSUES_MIN && issues * 100 > of * REPEATED_PERCENT_MAX;
    is_odd.then_some(Oddity::Repeated { issues, of, day })
}

/// Rows with a price, and all rows.
fn priced(rows: &[DailyRow]) -> (u64, u64) {
    let count = rows.iter().filter(|row| row.close.is_some()).count();
    (count as u64, rows.len() as u64)
}

/// Whether far fewer rows have a price than on another day (rule Z1).
fn priceless(rows: &[DailyRow], (day, others): (JstDate, &[DailyRow])) -> Option<Strangeness> {
    let ((priced, of), (priced_then, of_then)) = (priced(rows), priced(others));
    // With the share of the other day so many rows have a price.
    let expected = priced_then * of / of_then.max(1);
    let lost = expected.saturating_sub(priced);
    let is_strange = lost >= ODD_DAY_ISSUES_MIN && priced * 100 < expected * PRICED_PERCENT_MIN;
    is_strange.then_some(Strangeness::Priceless { priced, of, day, priced_then, of_then })
}

/// Issues whose close no price limit allows after that of an earlier day, and all that have both (rule Z2).
fn jumps(earlier: &[DailyRow], later: &[DailyRow]) -> (u64, u64) {
    let close = |row: &DailyRow| Some((row.code, row.close.filter(|_| !row.source.is_adjusted())?));
    let earlier: BTreeMap<IssueCode, domain::Price> = earlier.iter().filter_map(close).collect();
    let (mut far, mut all) = (0, 0);
    for row in later {
        // Without a factor nobody knows what compares: hundreds of issues have been merged on one day.
        let (Some((code, price)), Some(factor)) = (close(row), row.adjustment_factor) else {
            continue;
        };
        let Some(before) = earlier.get(&code) else { continue };
        // Prices are at most millions of yen: a float holds them well enough for this.
        let base = before.units() as f64 * factor;
        all += 1;
        let [low, high] = JUMP_PERCENT.map(|percent| base * percent as f64 / 100.0);
        let least = domain::Price::from_yen(JUMP_YEN_MIN).units() as f64;
        let allowed = low.min(base - least)..=high.max(base + least);
        far += u64::from(!allowed.contains(&(price.units() as f64)));
    }
    (far, all)
}

/// Whether closes are too far from those of an earlier day (rule Z2).
fn jump(rows: &[DailyRow], (day, others): (JstDate, &[DailyRow])) -> Option<Strangeness> {
    let (issues, of) = jumps(others, rows);
    let is_strange = issues >= ODD_DAY_ISSUES_MIN && issues * 100 > of * JUMPS_PERCENT_MAX;
    is_strange.then_some(Strangeness::Jump { issues, of, day })
}

impl Job<'_> {
    /// What is odd about a day with these rows; nothing where the user accepts it.
    pub(super) fn oddity(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Option<Oddity>, UpdateError> {
        let odd = self.odd_answer(date, rows, standard)?;
        Ok(if odd.is_some() && self.accept(date) { None } else { odd })
    }

    /// The same, whatever the user accepts.
    pub(super) fn odd_answer(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Option<Oddity>, UpdateError> {
        let codes: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let odd = match standard {
            Some(Standard::Listed(listed)) => unlisted(&codes, listed),
            // Without a list those of the day before, where too few of them are there besides.
            Some(known @ Standard::Before { day, .. }) if !known.is_met(&codes, true) => {
                foreign(&codes, &day.codes)
            }
            _ => None,
        };
        if odd.is_some() {
            return Ok(odd);
        }
        if let Some(odd) = odd_rows(rows) {
            return Ok(Some(odd));
        }
        let before = self.complete_rows.range(..date).rev().take(REPEATED_DAYS);
        let after = self.complete_rows.range(date..).find(|(day, _)| **day != date);
        let before: Vec<JstDate> = before.map(|(day, _)| *day).collect();
        let after = after.map(|(day, _)| *day);
        self.look_up_traded(&before)?;
        let found = traded_of(rows);
        for day in before.iter().copied().chain(after) {
            if !self.traded_days.0.contains_key(&day) {
                let others = traded_of(&self.rows_of(day)?);
                self.traded_days.keep(day, others);
            }
            let others = self.traded_days.0.get(&day);
            if let Some(odd) = others.and_then(|others| repeated(&found, (day, others))) {
                return Ok(Some(odd));
            }
        }
        Ok(None)
    }

    /// Looks several of these days up together, where several are not known yet and all are in the store.
    fn look_up_traded(&mut self, days: &[JstDate]) -> Result<(), UpdateError> {
        let is_wanted =
            |day: &&JstDate| !self.traded_days.0.contains_key(*day) && !self.is_on_its_way(**day);
        let wanted: Vec<JstDate> = days.iter().filter(is_wanted).copied().collect();
        let (Some(first), Some(last)) = (wanted.iter().min(), wanted.iter().max()) else {
            return Ok(());
        };
        // A few days that are far apart are looked up one by one.
        let span = usize::try_from(days_between(*first, *last)).unwrap_or(usize::MAX);
        if wanted.len() < 2 || span > TOGETHER_DAYS_MAX {
            return Ok(());
        }
        let stored = self.store.rows_between(*first, *last)?;
        for day in wanted {
            let rows = stored.get(&day).map(Vec::as_slice).unwrap_or_default();
            self.traded_days.keep(day, traded_of(rows));
        }
        Ok(())
    }

    /// Tells what is strange about a day with these rows that is complete (rules Z1 and Z2), beside the complete
    /// business day before it. `stored` has rows of days that were looked up together.
    pub(super) fn tell_strange(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        stored: &BTreeMap<JstDate, Vec<DailyRow>>,
    ) -> Result<(), UpdateError> {
        let before = self.complete_rows.range(..date).next_back().map(|(day, _)| *day);
        let Some(day) = before.filter(|day| self.is_next_business_day(*day, date)) else {
            return Ok(());
        };
        let is_told = |doubt: &DoubtReport| doubt.date == date && doubt.kind == DoubtKind::Strange;
        let is_out =
            self.report.doubts.len() >= REPORT_ROWS_MAX || self.report.doubts.iter().any(is_told);
        if is_out {
            return Ok(());
        }
        let others = match stored.get(&day) {
            Some(rows) if !self.is_on_its_way(day) => Cow::Borrowed(rows),
            _ => Cow::Owned(self.rows_of(day)?),
        };
        let beside = (day, &others[..]);
        let Some(strange) = priceless(rows, beside).or_else(|| jump(rows, beside)) else {
            return Ok(());
        };
        if self.accept(date) {
            return Ok(());
        }
        self.note(format!("{date} is published and looks strange: {strange}"));
        let (kind, advice) = (DoubtKind::Strange, STRANGE.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what: strange.to_string(), advice });
        Ok(())
    }

    /// The same of all complete days of the last weeks, so that each run tells of them.
    pub(super) fn tell_strange_days(&mut self) -> Result<(), UpdateError> {
        let mut days = last_weekdays(self.options.to, BETTER_DAYS_MAX);
        days.retain(|date| self.state.complete.contains(date));
        let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else {
            return Ok(());
        };
        let before = self.complete_rows.range(..*first).next_back().map(|(day, _)| *day);
        let before = before.filter(|day| days_between(*day, *first) <= BESIDE_DAYS_MAX);
        let stored = self.store.rows_between(before.unwrap_or(*first), *last)?;
        for date in days {
            let rows = stored.get(&date).map(Vec::as_slice).unwrap_or_default();
            self.tell_strange(date, rows, &stored)?;
        }
        Ok(())
    }

    /// Whether rows of a day may not be in the store yet.
    pub(super) fn is_on_its_way(&self, date: JstDate) -> bool {
        self.judged.as_ref().is_some_and(|(judged, _)| *judged == date)
            || self.batch.rows.values().flatten().any(|row| row.date == date)
    }

    /// Whether no business day lies between two dates.
    pub(super) fn is_next_business_day(&self, day: JstDate, date: JstDate) -> bool {
        let mut between = day.iter_days().skip(1).take_while(|one| *one < date);
        days_between(day, date) <= BESIDE_DAYS_MAX && !between.any(|one| self.is_open(one))
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
    pub(super) fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, UpdateError> {
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
        assert_eq!(odd_rows(&no_volume), Some(Oddity::NoVolume { issues: 100, with: 0 }), "E4");
        let volume_of = |first: u32| {
            odd_rows(&rows(100, |row, number| row.volume = Some(u64::from(number < first))))
        };
        let odd = Oddity::NoVolume { issues: 100, with: 9 };
        assert_eq!((volume_of(10), volume_of(9)), (None, Some(odd)), "E4");
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
            repeated(&traded_of(&second), (first, &traded_of(&others)))
        };
        let odd = Oddity::Repeated { issues: 51, of: 100, day: first };
        assert_eq!((check(50), check(51)), (None, Some(odd)), "E3");
        // Wherever they are: a vendor that is half-way through loading a day has the first ones anew.
        let others = rows(1_000, |row, number| {
            if number < 400 {
                row.volume = Some(101);
            }
        });
        let half_way = repeated(&traded_of(&rows(1_000, |_, _| {})), (first, &traded_of(&others)));
        assert_eq!(half_way, Some(Oddity::Repeated { issues: 600, of: 1_000, day: first }), "E3");
        // What was not traded is the same by itself.
        let quiet = rows(100, |row, _| row.volume = Some(0));
        let quiet = traded_of(&quiet);
        assert_eq!(repeated(&quiet, (first, &quiet)), None);
    }

    #[test]
    fn a_day_has_as_many_prices_as_the_day_beside() {
        let (first, all) = (date("2026-01-08"), rows(400, |_, _| {}));
        let with = |prices: u32| {
            rows(400, |row, number| row.close = row.close.filter(|_| number < prices))
        };
        let check = |prices: u32| priceless(&with(prices), (first, &all));
        let strange = |priced| {
            let (of, day, priced_then, of_then) = (400, first, 400, 400);
            Some(Strangeness::Priceless { priced, of, day, priced_then, of_then })
        };
        assert_eq!((check(360), check(359), check(0)), (None, strange(359), strange(0)), "Z1");
        // A short answer is not complete, which is another rule, and thirty prices are no market.
        assert_eq!(priceless(&rows(40, |_, _| {}), (first, &all)), None);
        let few = |prices: u32| {
            rows(100, |row, number| row.close = row.close.filter(|_| number < prices))
        };
        let found = [71, 70].map(|prices| priceless(&few(prices), (first, &few(100))).is_some());
        assert_eq!(found, [false, true]);
        assert_eq!(priceless(&with(60), (first, &with(60))), None);
    }

    #[test]
    fn closes_stay_within_price_limits_of_the_day_beside() {
        let earlier = date("2026-01-08");
        let before = rows(100, |row, _| row.close = Some(Price::from_yen(1_000)));
        let after = |first: u32, close: i64, factor: f64| {
            let close = Some(Price::from_yen(close));
            rows(100, |row, number| {
                row.close = if number < first { close } else { Some(Price::from_yen(1_100)) };
                row.adjustment_factor = Some(if number < first { factor } else { 1.0 });
            })
        };
        let check = |first, close, factor| jump(&after(first, close, factor), (earlier, &before));
        let strange = Some(Strangeness::Jump { issues: 30, of: 100, day: earlier });
        assert_eq!((check(29, 100_000, 1.0), check(30, 100_000, 1.0)), (None, strange), "Z2");
        assert_eq!((check(30, 1_600, 1.0), check(30, 1_601, 1.0)), (None, strange));
        assert_eq!((check(30, 400, 1.0), check(30, 399, 1.0)), (None, strange));
        assert_eq!((check(30, 100, 0.1), check(30, 1_000, 0.1)), (None, strange), "splits count");
        // Below 100 yen a price limit is more than that.
        let cheap = rows(100, |row, number| {
            row.close = Some(Price::from_yen(if number < 30 { 10 } else { 1_000 }));
        });
        let check = |close| jump(&after(30, close, 1.0), (earlier, &cheap));
        assert_eq!((check(1), check(70), check(71)), (None, None, strange));
        // Where no factor is told, or a source has adjusted its prices, nobody knows what compares.
        let untold = rows(100, |row, _| {
            (row.close, row.adjustment_factor) = (Some(Price::from_yen(9)), None);
        });
        assert_eq!(jump(&untold, (earlier, &before)), None);
        let public = rows(100, |row, _| {
            (row.close, row.source) = (Some(Price::from_yen(9)), SourceKind::Public);
        });
        assert_eq!(jump(&public, (earlier, &before)), None);
    }

    #[test]
    fn days_that_are_held_against_are_read_once_and_few_are_kept() {
        let mut days = TradedDays::default();
        let first = date("2026-01-05");
        for day in first.iter_days().take(60) {
            days.keep(day, DayTraded::new());
        }
        assert_eq!(days.0.len(), TradedDays::KEPT);
        assert!(days.0.keys().all(|day| days_between(*day, first) > 30), "the last ones");
        days.forget(*days.0.keys().next().unwrap());
        assert_eq!(days.0.len(), TradedDays::KEPT - 1);
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
