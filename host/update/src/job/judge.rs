//! Holds days against the rules, and says what readers may see.

use domain::JstDate;
use pricestore::{DatasetStatus, IncompleteDay};

use super::report::{DayOutcome, ShortDayReport};
use super::rules::DueDays;
use super::slots::Slots;
use super::{Job, UpdateError, own_folder};
use crate::fetch_state::FetchState;
use crate::row::DailyRow;

impl Job<'_> {
    /// The rules of due days, as far as is known by now.
    pub(super) fn due_days(&self) -> DueDays<'_> {
        let (last, now) = (self.options.to, self.options.now);
        DueDays { last, now, calendar: &self.calendar, covered: self.covered }
    }

    /// The subscription covers other dates than was thought; told once.
    pub(super) fn cover(&mut self, first: JstDate, last: JstDate) {
        if self.covered != Some((first, last)) {
            self.covered = Some((first, last));
            self.note(format!(
                "the vendor's subscription covers {first} to {last}; other days are not due"
            ));
        }
    }

    /// Whether a day that came in one piece is complete with these rows alone.
    pub(super) fn is_complete(
        &mut self,
        slots: Option<&mut Slots>,
        date: JstDate,
        rows: &[DailyRow],
    ) -> bool {
        if self.state.complete.contains(&date) {
            if let Some(slots) = slots.filter(|_| self.options.refetch) {
                self.ask_for_list(slots, date);
            }
            return true;
        }
        let standard = self.standard(slots, date);
        let is_met = standard.is_met(rows.iter().map(|row| row.code), true);
        self.day(date).expected = standard.expected();
        if is_met {
            self.complete_rows.insert(date, rows.len() as u64);
        }
        is_met
    }

    /// Holds the other days that were looked at against the rules, by all rows that are stored.
    pub(super) fn judge_stored(
        &mut self,
        mut slots: Option<&mut Slots>,
    ) -> Result<(), UpdateError> {
        // What was fetched for named issues never makes a new day (rule C4).
        if !self.options.codes.is_empty() || self.cancel.is_cancelled() {
            return Ok(());
        }
        let dates = self.days.keys().chain(self.state.incomplete.keys()).copied();
        let mut dates: Vec<JstDate> =
            dates.filter(|date| !self.state.complete.contains(date)).collect();
        dates.sort_unstable();
        dates.dedup();
        let before = self.state.complete.len();
        for date in dates {
            let codes = self.store.codes_of(date)?;
            if codes.is_empty() {
                continue;
            }
            let standard = self.standard(slots.as_deref_mut(), date);
            if let Some(day) = self.days.get_mut(&date) {
                day.expected = standard.expected();
            }
            if standard.is_met(codes.iter().copied(), false) {
                self.complete_rows.insert(date, codes.len() as u64);
                self.state.complete.insert(date);
                self.release(date);
            }
        }
        if self.state.complete.len() > before { self.save_state() } else { Ok(()) }
    }

    /// Readers may see the rows of a day from now on.
    pub(super) fn release(&mut self, date: JstDate) {
        for first in [&mut self.changed_from, &mut self.state.unpublished_from] {
            *first = Some(first.map_or(date, |first| first.min(date)));
        }
    }

    /// Says of each day that was looked at what it is now, and notes which are not complete.
    pub(super) fn settle(&mut self) -> Result<(), UpdateError> {
        let stored = self.store.known()?.dates;
        let before = self.state.clone();
        let last_complete = self.state.complete.last().copied();
        for (date, day) in &mut self.days {
            let is_complete = self.state.complete.contains(date);
            let has_rows = stored.contains_key(date);
            day.complete = is_complete;
            day.outcome = match day.outcome {
                Some(DayOutcome::Fetched | DayOutcome::FetchedByIssue) if !is_complete => {
                    Some(DayOutcome::Incomplete)
                }
                Some(DayOutcome::NoData) if has_rows && !is_complete => {
                    Some(DayOutcome::Incomplete)
                }
                other => other,
            };
            let need_not_be = !has_rows
                && match day.outcome {
                    Some(DayOutcome::NoData | DayOutcome::NotDue) => true,
                    // A run that ended before is gone on with after the last complete day.
                    None => last_complete.is_none_or(|last| last < *date),
                    Some(_) => false,
                };
            let known = self.state.incomplete.remove(date);
            if !is_complete && !need_not_be {
                let expected = day.expected.or(known).unwrap_or(0);
                self.state.incomplete.insert(*date, expected);
            }
        }
        let (state, calendar) = (&mut self.state, &self.calendar);
        state.incomplete.retain(|date, _| {
            let is_closed = calendar.get(date) == Some(&false) && !stored.contains_key(date);
            !state.complete.contains(date) && !is_closed
        });
        if self.options.publish_incomplete {
            for date in stored.keys().filter(|date| !before.is_publishable(**date)) {
                if !self.state.complete.contains(date) {
                    self.state.forced.insert(*date);
                    self.state.incomplete.entry(*date).or_insert(0);
                    self.release(*date);
                }
            }
        }
        let FetchState { complete, forced, .. } = &mut self.state;
        forced.retain(|date| !complete.contains(date));
        self.report.gaps = self.gaps();
        let short = self.state.incomplete.iter().map(|(date, expected)| ShortDayReport {
            date: *date,
            rows: stored.get(date).copied().unwrap_or(0),
            expected: (*expected > 0).then_some(*expected),
            published: self.state.forced.contains(date),
        });
        self.report.incomplete = short.collect();
        if self.state == before { Ok(()) } else { self.save_state() }
    }

    /// First and last day that readers may see.
    pub(super) fn published_range(&self) -> Option<(JstDate, JstDate)> {
        let days = [&self.state.complete, &self.state.forced];
        let first = days.iter().filter_map(|days| days.first()).min()?;
        let last = days.iter().filter_map(|days| days.last()).max()?;
        Some((*first, *last))
    }

    /// Business days between published ones that are not published: those of the calendar, and those
    /// that are known to be missing.
    pub(super) fn gaps(&self) -> Vec<JstDate> {
        let Some((first, last)) = self.published_range() else { return Vec::new() };
        let open = self.calendar.range(first..=last).filter(|(_, is_open)| **is_open);
        let missing = self.state.incomplete.range(first..=last).map(|(date, _)| *date);
        let mut gaps: Vec<JstDate> = open.map(|(date, _)| *date).chain(missing).collect();
        gaps.retain(|date| !self.state.is_publishable(*date));
        gaps.sort_unstable();
        gaps.dedup();
        gaps
    }

    /// Tells those who read the data how complete it is.
    pub(super) fn tell_readers(&mut self) -> Result<(), UpdateError> {
        let text = |date: &JstDate| date.to_string();
        let incomplete = self.report.incomplete.iter().map(|day| IncompleteDay {
            date: text(&day.date),
            rows: day.rows,
            expected: day.expected,
            published: day.published,
        });
        let status = DatasetStatus {
            last_complete: self.state.complete.last().map(text),
            incomplete: incomplete.collect(),
            gaps: self.report.gaps.iter().map(text).collect(),
            sources: self.store.sources()?,
            ..DatasetStatus::default()
        };
        let data = &self.options.data;
        status.store(data).map_err(|source| UpdateError::Io { path: own_folder(data), source })
    }
}
