//! Corrections of days that readers see: prices that no exchange allows are no correction (rule E6), and rows that
//! come issue by issue are held against the same rules as a whole answer (E2 to E6, E8 to E12 and E16 to E21), once all of them are there.

use std::collections::{BTreeMap, BTreeSet};

use domain::instrument::DailyLimits;
use domain::{JstDate, Price};

use super::oddity::{Oddity, are_many, foreign, is_beside};
use super::refusal::is_too_much;
use super::report::{DoubtKind, DoubtReport};
use super::seen::is_far_volume;
use super::{Batch, Job, UpdateError};
use crate::limits::{HELD_ROWS_MAX, REPORT_ROWS_MAX, REWRITTEN_PERCENT_MAX};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// Rows of published days that did not come in one piece, and wait for the others.
#[derive(Debug, Default)]
pub(super) struct Held {
    rows: BTreeMap<JstDate, Vec<DailyRow>>,
    count: usize,
    /// Issues that are done once these are stored.
    issues: Vec<IssueCode>,
}

impl Held {
    /// Whether no more should wait.
    pub(super) const fn is_full(&self) -> bool {
        self.count >= HELD_ROWS_MAX
    }
}

/// Whether prices cannot be those of a day with this published row, after this close of the day before: they are
/// others, and beyond the daily limits around both closes.
fn is_impossible(row: &DailyRow, known: Option<&DailyRow>, before: Option<Price>) -> bool {
    let (Some(low), Some(high)) = (row.low, row.high) else { return false };
    let known = known.filter(|known| !known.source.is_adjusted());
    if row.source.is_adjusted() {
        return false;
    }
    let scaled_by = |price: Price, factor: Option<f64>| {
        // Prices are at most millions of yen: a float holds them well enough for this.
        Price::from_units((price.units() as f64 * factor.unwrap_or(1.0)).round() as i64)
    };
    let fits = |base| {
        let limits = DailyLimits::around(base);
        limits.contains(low) && limits.contains(high)
    };
    if let Some(known) = known
        && known.prices() == row.prices()
    {
        // Another factor is as impossible where the prices fitted before, and do not with it.
        let (old, new) = (known.adjustment_factor, row.adjustment_factor);
        return new.is_some()
            && old.is_some()
            && new != old
            && before
                .is_some_and(|close| fits(scaled_by(close, old)) && !fits(scaled_by(close, new)));
    }
    // A factor that comes with the prices explains them only where none is known.
    let factor = known.and_then(|known| known.adjustment_factor).or(row.adjustment_factor);
    let scaled = |price: Price| scaled_by(price, factor);
    // On the day of a split nobody knows of which side a price is that it does not fit.
    let bases = [known.and_then(|known| known.close), before.map(scaled), before];
    let mut bases = bases.into_iter().flatten().peekable();
    bases.peek().is_some() && !bases.any(fits)
}

/// What a user can do about a day that was rewritten.
const REWRITTEN: &str = "look at what the vendor says of it; the report of the run that took them has the values before, \
                         while it is kept. The vendor is asked again by each run, and --accept with the date says that \
                         the values are right";

/// Whether a row has another price, volume or turnover than the published one of a source of the same rank.
fn is_rewritten(row: &DailyRow, known: &DailyRow) -> bool {
    fn differs<T: PartialEq>(known: Option<T>, new: Option<T>) -> bool {
        known.zip(new).is_some_and(|(known, new)| known != new)
    }
    let mut prices = known.prices().into_iter().zip(row.prices());
    SourceKind::rank(known.source) == SourceKind::rank(row.source)
        && (differs(known.volume, row.volume)
            || differs(known.turnover, row.turnover)
            || prices.any(|(known, new)| differs(known, new)))
}

impl Job<'_> {
    /// Notes a published day that is taken with other prices, volumes or turnovers of many of its issues (rule Z7).
    pub(super) fn note_rewritten(&mut self, date: JstDate, rows: &[DailyRow], known: &[DailyRow]) {
        let by_code: BTreeMap<IssueCode, &DailyRow> =
            known.iter().map(|row| (row.code, row)).collect();
        let is_other =
            |row: &&DailyRow| by_code.get(&row.code).is_some_and(|known| is_rewritten(row, known));
        let (issues, of) = (rows.iter().filter(is_other).count() as u64, known.len() as u64);
        if issues == 0 {
            return;
        }
        // What earlier runs took counts too: a day is not rewritten piece by piece without a word.
        let all = self.state.rewritten_issues.entry(date).or_default();
        *all += issues;
        if are_many(*all, of, REWRITTEN_PERCENT_MAX) {
            self.rewritten.insert(date, (issues, of));
            self.state.rewritten.insert(date);
        }
    }

    /// Tells of the days that this run has rewritten, and of those of the last weeks that earlier ones have.
    pub(super) fn tell_rewritten_days(&mut self) {
        let back = self.last_weeks_begin();
        let mut days = std::mem::take(&mut self.state.rewritten);
        days.retain(|date| {
            let is_told = self.state.complete.contains(date) && !self.accept_for_good(*date);
            if !is_told {
                self.state.rewritten_issues.remove(date);
            }
            is_told
        });
        self.state.rewritten_issues.retain(|date, _| *date >= back);
        for date in &days {
            let what = match self.rewritten.get(date) {
                Some((issues, of)) => {
                    format!(
                        "other prices, volumes or turnovers were taken for {issues} of its {of} issues"
                    )
                }
                None => format!(
                    "an earlier run took other prices, volumes or turnovers for over {REWRITTEN_PERCENT_MAX} % of its \
                     issues"
                ),
            };
            self.note(format!("{date} is published, and {what}"));
            if self.report.doubts.len() < REPORT_ROWS_MAX {
                let (kind, advice) = (DoubtKind::Rewritten, REWRITTEN.to_owned());
                self.report.doubts.push(DoubtReport { date: *date, kind, what, advice });
            }
        }
        days.retain(|date| *date >= back);
        self.state.rewritten = days;
    }

    /// What is odd about the prices that rows give a published day with these rows (rule E6).
    pub(super) fn impossible(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        known: &[DailyRow],
    ) -> Result<Option<Oddity>, UpdateError> {
        let by_code: BTreeMap<IssueCode, &DailyRow> =
            known.iter().map(|row| (row.code, row)).collect();
        let is_far = |row: &DailyRow| {
            let raw = by_code.get(&row.code).filter(|known| !known.source.is_adjusted());
            let volumes = raw.and_then(|known| known.volume).zip(row.volume);
            volumes.is_some_and(|(known, new)| is_far_volume(known, new))
        };
        let is_other = |row: &&DailyRow| {
            let differs = |known: &&DailyRow| {
                let values = |row: &DailyRow| (row.prices(), row.adjustment_factor);
                values(known) != values(row)
            };
            is_far(row) || by_code.get(&row.code).is_none_or(differs)
        };
        let others: Vec<&DailyRow> = rows.iter().filter(is_other).collect();
        let of = known.len() as u64;
        if !is_too_much(others.len(), of) {
            return Ok(None);
        }
        let day = self.complete_rows.range(..date).next_back().map(|(day, _)| *day);
        let day = day.filter(|day| is_beside(*day, date));
        let before = day.map_or(Ok(Vec::new()), |day| self.rows_of(day))?;
        let is_next = day.is_some_and(|day| self.is_next_business_day(day, date));
        let raw = before.iter().filter(|row| !row.source.is_adjusted());
        let closes: BTreeMap<IssueCode, Price> = raw
            .clone()
            .filter_map(|row| Some((row.code, row.close.filter(|_| is_next)?)))
            .collect();
        let volumes: BTreeMap<IssueCode, u64> =
            raw.filter_map(|row| Some((row.code, row.volume?))).collect();
        // What was published may be wrong: the day before tells.
        let is_far_from_both = |row: &DailyRow| {
            let known = volumes.get(&row.code).copied().filter(|known| *known > 0);
            is_far(row)
                && known.zip(row.volume).is_none_or(|(known, new)| is_far_volume(known, new))
        };
        let is_impossible = |row: &&&DailyRow| {
            is_far_from_both(row)
                || is_impossible(
                    row,
                    by_code.get(&row.code).copied(),
                    closes.get(&row.code).copied(),
                )
        };
        let count = others.iter().filter(is_impossible).count();
        let odd = Oddity::Impossible { issues: count as u64, of };
        Ok(is_too_much(count, of).then_some(odd))
    }

    /// What is odd about the issues of an answer for a published day without a list (rule E1): they are none of its
    /// own, nor of the days beside it or the nearest list.
    pub(super) fn foreign(
        &mut self,
        date: JstDate,
        codes: &BTreeSet<IssueCode>,
        known: &BTreeSet<IssueCode>,
    ) -> Result<Option<Oddity>, UpdateError> {
        if self.listed.contains_key(&date) {
            return Ok(None);
        }
        let after = self.complete_rows.range(date..).map(|(day, _)| *day).find(|day| *day != date);
        let days = [self.day_before(date), after];
        let list = self.nearest_list(date).map(|list| list.codes);
        if list.is_none() && days == [None, None] {
            return Ok(None);
        }
        let mut all = known.clone();
        all.extend(list.into_iter().flatten());
        for day in days.into_iter().flatten() {
            all.extend(self.issues_of(day)?);
        }
        Ok(foreign(codes, &all))
    }

    /// Keeps rows of published days that were not judged in one piece, and with them the issues that are done once
    /// they are stored.
    pub(super) fn hold_back(&mut self, batch: &mut Batch) {
        for rows in batch.rows.values_mut() {
            let waits = |row: &DailyRow| {
                !self.whole_days.contains(&row.date) && self.published_before(row.date).is_some()
            };
            let held: Vec<DailyRow> = rows.iter().filter(|row| waits(row)).copied().collect();
            if !held.is_empty() {
                rows.retain(|row| !waits(row));
            }
            self.held.count += held.len();
            for row in held {
                self.held.rows.entry(row.date).or_default().push(row);
            }
        }
        if self.held.count > 0 {
            self.held.issues.append(&mut batch.issues);
        }
    }

    /// Stores the rows that were held back, but those of days that would be odd with them. What a run that is ended
    /// early has of them is asked for again.
    pub(super) fn release_held(&mut self) -> Result<(), UpdateError> {
        let Held { rows, issues, .. } = std::mem::take(&mut self.held);
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        let mut batch = Batch { issues, ..Batch::default() };
        for (date, rows) in rows {
            // A few are nothing odd.
            if is_too_much(rows.len(), self.published_before(date).unwrap_or(0)) {
                let known = self.store.rows().rows_of(date)?;
                if let Some(odd) = self.odd_correction(date, &rows, &known)? {
                    self.refuse(date, &format!("it is odd, {odd}"));
                    continue;
                }
                self.note_rewritten(date, &rows, &known);
            }
            self.seen_days.forget(date);
            batch.count += rows.len();
            for row in rows {
                batch.rows.entry(row.source).or_default().push(row);
            }
        }
        if batch.count > 0 || !batch.issues.is_empty() { self.store_batch(batch) } else { Ok(()) }
    }

    /// What would be odd about a published day with these rows instead of the known ones, which came issue by issue;
    /// nothing where the user takes them.
    fn odd_correction(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        known: &[DailyRow],
    ) -> Result<Option<Oddity>, UpdateError> {
        let mut merged: BTreeMap<IssueCode, DailyRow> =
            known.iter().map(|row| (row.code, *row)).collect();
        let mut given = Vec::new();
        for row in rows {
            let rank = |row: &DailyRow| SourceKind::rank(row.source);
            // Rules R2 and R4.
            if merged.get(&row.code).is_none_or(|known| rank(known) <= rank(row)) {
                merged.insert(row.code, *row);
                given.push(*row);
            }
        }
        let impossible = self.impossible(date, &given, known)?;
        if impossible.is_some() {
            return Ok(if self.accept(date) { None } else { impossible });
        }
        let merged: Vec<DailyRow> = merged.into_values().collect();
        match merged == known {
            true => Ok(None),
            false => self.oddity_beside_known(date, &merged, known, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(low: i64, high: i64, factor: Option<f64>) -> DailyRow {
        let (date, code) = ("2026-01-09".parse().unwrap(), "7203".parse().unwrap());
        let mut row = DailyRow::bare(date, code, SourceKind::Vendor);
        (row.open, row.low) = (Some(Price::from_yen(low)), Some(Price::from_yen(low)));
        (row.high, row.close) = (Some(Price::from_yen(high)), Some(Price::from_yen(high)));
        row.adjustment_factor = factor;
        row
    }

    #[test]
    fn a_price_is_possible_beside_the_published_one_or_that_of_the_day_before() {
        let plain = |low, high| row(low, high, Some(1.0));
        let check = |row: &DailyRow, known: Option<i64>, before: Option<i64>| {
            let known = known.map(|known| plain(known, known));
            is_impossible(row, known.as_ref(), before.map(Price::from_yen))
        };
        // 50 yen at 115, 300 at 1,000.
        assert!(
            !check(&plain(65, 165), Some(115), None) && check(&plain(64, 165), Some(115), None)
        );
        assert!(check(&plain(2, 2), Some(115), Some(116)));
        assert!(check(&plain(2, 2), None, Some(116)) && !check(&plain(2, 2), None, None));
        // What was published is wrong.
        assert!(!check(&plain(1_000, 1_300), Some(2), Some(1_000)));
        // A factor explains a price where none was known, and no other one.
        let split = row(500, 510, Some(0.5));
        assert!(check(&split, Some(1_000), Some(1_000)) && !check(&split, None, Some(1_000)));
        let mut known = row(1_000, 1_000, None);
        assert!(!is_impossible(&split, Some(&known), Some(Price::from_yen(1_000))));
        // The prices fit without the split, and not with it.
        assert!(is_impossible(
            &row(1_000, 1_000, Some(0.5)),
            Some(&row(1_000, 1_000, Some(1.0))),
            Some(Price::from_yen(1_000))
        ));
        assert!(!is_impossible(
            &row(500, 500, Some(0.5)),
            Some(&row(500, 500, Some(1.0))),
            Some(Price::from_yen(1_000))
        ));
        known.source = SourceKind::Public;
        assert!(!is_impossible(&plain(2, 2), Some(&known), None), "adjusted prices do not compare");
        assert!(!check(&DailyRow { low: None, high: None, ..split }, Some(1), Some(1)));
    }
}
