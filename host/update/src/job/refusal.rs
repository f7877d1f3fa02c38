//! What a published day must not lose: an answer that would take too much of it away is refused, and the
//! day stays as it was (rules C12 of the job and R8 of [`SourceKind`](crate::SourceKind)).

use std::collections::BTreeSet;

use domain::JstDate;

use super::report::{DayOutcome, DoubtKind, DoubtReport};
use super::rules::{Standard, common, is_enough};
use super::slots::Slots;
use super::{Batch, Job, UpdateError};
use crate::fetch_state::REFUSED_BEFORE;
use crate::limits::{LOST_ISSUES_MIN, REPORT_ROWS_MAX, TAKEN_BACK_PERCENT_MAX};
use crate::row::{DailyRow, IssueCode};

const ADVICE: &str = "the day stays as it was; look at what the vendor says of it, and ask again with \
                      --refetch, or take what it says with --accept and the date";

const WITHDRAWN_ADVICE: &str = "the day stays as it was; look at what the vendor says of it. It is told while \
                                the day is one of the last that are asked for again, until --accept names it: \
                                then it stays, and is told no more until the vendor has it again";

/// Whether so many of a day's issues lose values at once (rule R8).
pub(super) fn is_too_much(lost: usize, of: u64) -> bool {
    lost >= LOST_ISSUES_MIN && lost as u64 * 100 > of * TAKEN_BACK_PERCENT_MAX as u64
}

fn words(lost: usize, of: u64) -> String {
    format!("it would take prices, volumes or turnovers of {lost} of {of} issues away")
}

impl Job<'_> {
    /// Why the answer of a whole day is refused; none where it is taken.
    pub(super) fn refusal(
        &mut self,
        slots: Option<&mut Slots>,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<Option<String>, UpdateError> {
        let Some(stored) = self.published_before(date) else { return Ok(None) };
        let known = self.store.rows().rows_of(date)?;
        let why = self.fault(slots, date, rows, (stored, &known))?;
        let why = if why.is_some() && self.accept(date) { None } else { why };
        if why.is_none() {
            self.note_rewritten(date, rows, &known);
        }
        Ok(why)
    }

    /// What speaks against an answer for a published day with so many rows, which are these.
    fn fault(
        &mut self,
        slots: Option<&mut Slots>,
        date: JstDate,
        rows: &[DailyRow],
        (stored, known_rows): (u64, &[DailyRow]),
    ) -> Result<Option<String>, UpdateError> {
        let lost = self.store.rows().losing(rows)?.remove(&date).unwrap_or_default();
        if is_too_much(lost.len(), stored) {
            return Ok(Some(words(lost.len(), stored)));
        }
        if let Some(odd) = self.impossible(date, rows, known_rows)? {
            return Ok(Some(format!("it is odd, {odd}")));
        }
        if !self.state.complete.contains(&date) {
            return Ok(None);
        }
        let codes: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let known: BTreeSet<IssueCode> = known_rows.iter().map(|row| row.code).collect();
        // What is new there may not belong there, which only the list tells.
        let has_news = is_too_much(codes.difference(&known).count(), known.len() as u64);
        if has_news && !self.listed.contains_key(&date) && !self.are_lists_out {
            self.list_days.insert(date);
        }
        let slots = slots.filter(|_| self.options.refetch || has_news);
        let standard = match self.standard(slots, date, &codes)? {
            Standard::Nothing | Standard::Unknown => None,
            known => Some(known),
        };
        if let Some(odd) = self.oddity_beside_known(date, rows, known_rows, standard.as_ref())? {
            return Ok(Some(format!("it is odd, {odd}")));
        }
        if has_news && let Some(odd) = self.foreign(date, &codes, &known)? {
            return Ok(Some(format!("it is odd, {odd}")));
        }
        let (news, missing) = (codes.difference(&known).count(), known.difference(&codes).count());
        if has_news && is_too_much(missing, known.len() as u64) {
            return Ok(Some(format!(
                "it has {news} rows of issues that are not stored, and none of {missing} that are: their codes \
                 may have changed"
            )));
        }
        if standard.as_ref().is_some_and(|known| known.is_met(&codes, true)) {
            return Ok(None);
        }
        let again = common(&codes, &known);
        let why = standard.map_or(String::new(), |known| format!(", and {}", known.words(&codes)));
        let why = format!("it has {again} of the {} issues that are stored{why}", known.len());
        Ok((!is_enough(again, known.len() as u64, 0)).then_some(why))
    }

    /// What is wrong with an answer that has no rows of a day; nothing where the vendor had none, one or two beside
    /// those of lesser sources, or where the user has accepted it, now or before.
    pub(super) fn withdrawal(&mut self, date: JstDate) -> Result<Option<String>, UpdateError> {
        let stored = self.published_before(date).unwrap_or(0);
        if !self.state.complete.contains(&date) || self.state.settled.contains(&date) {
            return Ok(None);
        }
        let own = self.store.rows().vendor_codes_of(date)?.len();
        if own == 0 || (own as u64 != stored && !is_too_much(own, stored)) {
            return Ok(None);
        }
        if self.accept(date) {
            self.state.settled.insert(date);
            self.save_state()?;
            return Ok(None);
        }
        Ok(Some(format!("it has none of the {own} issues that are stored")))
    }

    /// Rows of a day that readers saw before this run.
    pub(super) fn published_before(&self, date: JstDate) -> Option<u64> {
        let stored = self.known.dates.get(&date).copied();
        stored.filter(|_| self.state.is_publishable(date))
    }

    /// Tells that an answer was refused, and notes it for the report.
    pub(super) fn refuse(&mut self, date: JstDate, why: &str) {
        self.refuse_with(date, why, ADVICE);
    }

    /// The same of an answer without rows, of which there is nothing to accept.
    pub(super) fn refuse_withdrawal(&mut self, date: JstDate, why: &str) {
        self.refuse_with(date, why, WITHDRAWN_ADVICE);
    }

    fn refuse_with(&mut self, date: JstDate, why: &str, advice: &str) {
        self.note(format!("an answer for {date}, which is published, was refused: {why}"));
        let what = format!("an answer was refused: {why}");
        let advice = advice.to_owned();
        let doubt = DoubtReport { date, kind: DoubtKind::Refused, what, advice };
        self.report.doubts.push(doubt);
        self.day(date).outcome = Some(DayOutcome::Refused);
    }

    /// Notes the days of the last weeks of which an answer was refused, and tells of those of earlier runs: readers see
    /// what a source has taken back since (rule Z4).
    pub(super) fn tell_refused_days(&mut self) {
        let refused = self.report.doubts.iter().filter(|doubt| doubt.kind == DoubtKind::Refused);
        let told: BTreeSet<JstDate> = refused.map(|doubt| doubt.date).collect();
        let back = self.last_weeks_begin();
        self.state.refused.extend(&told);
        let state = &mut self.state;
        state.refused.retain(|date| {
            *date >= back && state.complete.contains(date) && !state.settled.contains(date)
        });
        for date in self.state.refused.clone() {
            if told.contains(&date) || self.report.doubts.len() >= REPORT_ROWS_MAX {
                continue;
            }
            if self.accept_for_good(date) {
                continue;
            }
            self.note(format!("{date} is published, and {REFUSED_BEFORE}"));
            let (what, advice) = (REFUSED_BEFORE.to_owned(), ADVICE.to_owned());
            self.report.doubts.push(DoubtReport { date, kind: DoubtKind::Strange, what, advice });
        }
    }

    /// Takes the rows out that would take too much of a published day away, however they came.
    pub(super) fn refuse_losses(&mut self, batch: &mut Batch) -> Result<(), UpdateError> {
        for rows in batch.rows.values_mut() {
            let is_published = |date| self.published_before(date).is_some();
            let may_lose = |row: &&DailyRow| !row.is_full() && is_published(row.date);
            let some: Vec<DailyRow> = rows.iter().filter(may_lose).copied().collect();
            let losing = self.store.rows().losing(&some)?;
            let mut refused = BTreeSet::new();
            for (date, codes) in losing {
                let of = self.published_before(date).unwrap_or(0);
                let lost = self.lost.entry(date).or_default();
                let was_too_much = is_too_much(lost.len(), of);
                lost.extend(&codes);
                let lost = lost.len();
                if !is_too_much(lost, of) || self.accept(date) {
                    continue;
                }
                refused.extend(codes.into_iter().map(|code| (date, code)));
                if !was_too_much {
                    self.refuse(date, &words(lost, of));
                }
            }
            rows.retain(|row| !refused.contains(&(row.date, row.code)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_may_lose_one_in_a_hundred_or_two() {
        for (lost, of, expected) in [
            (2, 2, false),
            (3, 3, true),
            (3, 299, true),
            (3, 300, false),
            (44, 4_400, false),
            (45, 4_400, true),
        ] {
            assert_eq!(is_too_much(lost, of), expected, "{lost} of {of}");
        }
    }
}
