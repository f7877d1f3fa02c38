//! Fetching whole days.

use std::collections::BTreeSet;

use chrono::Days;
use domain::JstDate;

use super::plan::weekdays;
use super::report::DayOutcome;
use super::slots::{NoAnswer, Slots};
use super::{Job, Phase, UpdateError};
use crate::limits::EMPTY_FINAL_DAYS;
use crate::row::{IssueCode, SourceKind};
use crate::source::Answer;

/// Issues that trade on every business day, by which a day without data is told from a holiday.
const SURE_CODES: [&str; 3] = ["7203", "9984", "1306"];

/// Days that did not come whole.
#[derive(Debug, Default)]
struct Left {
    /// The source had nothing for them.
    empty: BTreeSet<JstDate>,
    /// The source failed.
    failed: BTreeSet<JstDate>,
    /// The source has nothing for these dates, whatever it is asked.
    hopeless: BTreeSet<JstDate>,
}

impl Job<'_> {
    /// Fetches everything that is wanted.
    pub(super) fn fetch(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        let wanted = self.wanted();
        for date in &wanted {
            self.day(*date);
        }
        let mut left = self.fetch_days(slots, &wanted)?;
        if !self.cancel.is_cancelled() {
            let open = self.days_without_trading(slots, &left.empty);
            left.failed.extend(open);
            self.flush()?;
            // A source that has nothing for some dates is left out for these only.
            let with_days = slots.with_days();
            let hopeless = std::mem::take(&mut left.hopeless);
            self.fetch_issues(slots, &left.failed, None)?;
            self.fetch_issues(slots, &hopeless, with_days)?;
        }
        // The sources have told these already, when they happened.
        self.report.notes.extend(slots.take_notes());
        Ok(())
    }

    /// The days that earlier runs have not fetched, and today.
    fn wanted(&mut self) -> Vec<JstDate> {
        let today = self.today();
        let is_known = |date: &JstDate| {
            *date < today && (self.state.fetched.contains(date) || self.state.closed.contains(date))
        };
        let all: Vec<JstDate> = weekdays(self.options.from, self.options.to).collect();
        let count = all.len();
        let wanted: Vec<JstDate> =
            all.into_iter().filter(|date| self.options.refetch || !is_known(date)).collect();
        self.report.days_known = (count - wanted.len()) as u64;
        wanted
    }

    fn fetch_days(&mut self, slots: &mut Slots, wanted: &[JstDate]) -> Result<Left, UpdateError> {
        let mut left = Left::default();
        let Some(place) = slots.with_days() else {
            left.failed.extend(wanted);
            return Ok(left);
        };
        let kind = slots.kind(place);
        // A few issues over many days are quicker to get one by one.
        let by_issue = !self.options.codes.is_empty() && self.options.codes.len() < wanted.len();
        let of = wanted.len() as u64;
        for (done, date) in wanted.iter().enumerate() {
            if self.cancel.is_cancelled() {
                break;
            }
            self.watch.progress(Phase::Days, done as u64, of, &date.to_string());
            if by_issue {
                match slots.kept_day(place, *date) {
                    Some(answer) => self.take_day(kind, *date, answer),
                    None => _ = left.failed.insert(*date),
                }
                continue;
            }
            match slots.day(place, *date) {
                Ok(answer) if answer.rows.is_empty() => _ = left.empty.insert(*date),
                Ok(answer) => self.take_day(kind, *date, answer),
                Err(NoAnswer::Stopped) => break,
                Err(NoAnswer::Failed { reason, dates_are_hopeless, .. }) => {
                    self.day(*date).reasons.push(reason);
                    match dates_are_hopeless {
                        true => left.hopeless.insert(*date),
                        false => left.failed.insert(*date),
                    };
                }
            }
            self.flush_if_full()?;
        }
        self.watch.progress(Phase::Days, of, of, "");
        Ok(left)
    }

    /// Takes a day that came whole.
    fn take_day(&mut self, kind: SourceKind, date: JstDate, answer: Answer) {
        let Answer { mut rows, .. } = answer;
        let codes = &self.options.codes;
        if codes.is_empty() {
            if date < self.today() {
                self.batch.days.push(date);
            }
        } else {
            rows.retain(|row| codes.contains(&row.code));
        }
        self.collect(kind, rows);
        self.day(date).outcome = Some(DayOutcome::Fetched);
    }

    /// Finds out which of the days that came empty had trading after all, by asking every source for
    /// one issue that always trades. The other days are done.
    fn days_without_trading(
        &mut self,
        slots: &mut Slots,
        empty: &BTreeSet<JstDate>,
    ) -> BTreeSet<JstDate> {
        let (Some(from), Some(to)) = (empty.first().copied(), empty.last().copied()) else {
            return BTreeSet::new();
        };
        let (mut traded, mut answered) = (BTreeSet::new(), false);
        let mut outage = None;
        if let Some(code) = self.sure_code() {
            for place in slots.indices() {
                match slots.issue(place, code, from, to) {
                    Ok(answer) => {
                        // What a source does not have is no proof while a better one is down.
                        answered |= outage.is_none();
                        let dates = answer.rows.iter().filter(|row| row.close.is_some());
                        traded.extend(dates.map(|row| row.date));
                    }
                    Err(NoAnswer::Failed { reason, is_outage: true, .. }) => {
                        outage.get_or_insert(reason);
                    }
                    Err(_) => {}
                }
            }
        }
        if self.cancel.is_cancelled() {
            return BTreeSet::new();
        }
        // Prices of a young day may still come.
        let last_final = self.today().checked_sub_days(Days::new(EMPTY_FINAL_DAYS));
        for date in empty.difference(&traded).copied() {
            if let Some(reason) = outage.as_ref().filter(|_| !answered) {
                let day = self.day(date);
                day.outcome = Some(DayOutcome::Failed);
                day.reasons.push(reason.clone());
                continue;
            }
            self.day(date).outcome = Some(DayOutcome::NoData);
            if answered && last_final.is_some_and(|last| date <= last) {
                self.state.closed.insert(date);
            }
        }
        empty.intersection(&traded).copied().collect()
    }

    /// An issue that surely has a row on every business day, as far as one is known.
    fn sure_code(&self) -> Option<IssueCode> {
        let known: BTreeSet<IssueCode> =
            self.known.codes.iter().chain(&self.seen).copied().collect();
        let sure = SURE_CODES.iter().filter_map(|code| code.parse().ok());
        let sure = sure.into_iter().find(|code| known.contains(code));
        sure.or_else(|| known.first().copied()).or_else(|| self.codes().first().copied())
    }

    /// The issues that are wanted: those that were named, else all that are known.
    pub(super) fn codes(&self) -> BTreeSet<IssueCode> {
        if self.options.codes.is_empty() {
            self.known.codes.iter().chain(&self.seen).copied().collect()
        } else {
            self.options.codes.iter().copied().collect()
        }
    }
}
