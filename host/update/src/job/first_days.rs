//! The first days of all wait for those after them: where nothing is before a day, what came may be short,
//! and only later days show it (rule C9).

use domain::JstDate;

use super::Job;
use super::rules::{days_between, is_enough};
use super::slots::Slots;
use crate::limits::{DAYS_AFTER_COMPARED, FIRST_DAYS_MAX};

impl Job<'_> {
    /// Notes that a day is one of the first: no day before it is complete, other than such.
    pub(super) fn note_first_day(&mut self, date: JstDate) {
        let mut before = self.complete_rows.range(..date);
        let is_first = before.all(|(day, _)| self.first_days.contains_key(day));
        if is_first && self.first_days.len() < FIRST_DAYS_MAX {
            self.first_days.insert(date, None);
        }
    }

    /// Whether enough is known to settle the first days while a run goes on. A job that is killed then
    /// leaves none of them behind days that are complete.
    pub(super) fn are_first_days_known(&self) -> bool {
        let has_others = self.complete_rows.keys().any(|day| !self.first_days.contains_key(day));
        !self.first_days.is_empty() && (self.first_days.len() >= FIRST_DAYS_MAX || has_others)
    }

    /// Lets the first days be complete that are no shorter than those after them.
    pub(super) fn settle_first_days(&mut self) {
        for (date, has_all) in std::mem::take(&mut self.first_days) {
            let Some(rows) = self.complete_rows.get(&date).copied() else { continue };
            let later = self.complete_rows.range(date..).filter(|(day, _)| **day != date);
            let later = later.filter(|(day, _)| !self.is_forced(**day));
            let later = later.take(DAYS_AFTER_COMPARED).map(|(day, of)| (*day, *of));
            let later = later.map(|(day, of)| (of, days_between(date, day)));
            // A list that came after the day was looked at counts as well.
            let longer = later
                .chain(self.nearest(date))
                .filter(|(of, days)| !is_enough(rows, *of, *days))
                .map(|(of, _)| of)
                .max();
            match (longer, has_all) {
                (Some(of), _) => self.is_short(date, rows, of),
                (None, Some(has_all)) => {
                    self.release(date);
                    self.state.complete.insert(date);
                    if has_all {
                        self.state.fetched.insert(date);
                    }
                }
                // Its rows are still on their way to the store.
                (None, None) => _ = self.first_days.insert(date, None),
            }
        }
    }

    fn is_short(&mut self, date: JstDate, rows: u64, of: u64) {
        self.complete_rows.remove(&date);
        self.short_first_days.push(date);
        let day = self.day(date);
        day.expected = Some(of);
        day.why = Some(format!("it has {rows} rows, and complete days after it have {of}"));
    }

    /// What was short is not kept on this machine, so that it is asked for again.
    pub(super) fn forget_short_first_days(&mut self, slots: Option<&mut Slots>) {
        let days = std::mem::take(&mut self.short_first_days);
        let Some(slots) = slots else { return };
        let Some(place) = slots.with_days() else { return };
        for date in days {
            if let Err(problem) = slots.forget_day(place, date) {
                self.note(problem);
            }
        }
    }
}
