//! What the vendor lists besides prices: the exchange's calendar, and the issues of a date.

use chrono::Datelike;
use domain::JstDate;
use marketdata::calendar_file::{CalendarRows, calendar_of};

use super::rules::Standard;
use super::slots::Slots;
use super::{Job, UpdateError};
use crate::price_store::OpenDays;
use crate::source::{Reach, SourceError};

impl Job<'_> {
    /// Asks for the calendar of the whole years from the first day that is stored or wanted to the
    /// last one, and stores it where it says something new.
    pub(super) fn renew_calendar(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        let stored = self.known.dates.keys().next().copied();
        let to = self.options.to;
        let from = [stored, self.options.from].into_iter().flatten().min().unwrap_or(to).min(to);
        let first = JstDate::from_ymd_opt(from.year(), 1, 1).unwrap_or(from);
        let last = JstDate::from_ymd_opt(to.year(), 12, 31).unwrap_or(to);
        let rows = match slots.exchange_calendar(first, last) {
            None | Some(Err(SourceError::NoSuchCall(_))) => return Ok(()),
            Some(Ok(rows)) => rows,
            Some(Err(error)) => {
                if error.reach() != Reach::Run {
                    self.note(format!("the vendor's calendar could not be had: {error}"));
                }
                return Ok(());
            }
        };
        if rows.is_empty() {
            return Ok(());
        }
        match self.merged(&rows) {
            Err(problem) => self.note(format!("the vendor's calendar is not used: {problem}")),
            Ok(calendar) if calendar != self.calendar => {
                self.store.store_open_days(&calendar)?;
                self.calendar_is_new = self.changes_gaps(&calendar);
                self.calendar = calendar;
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// The stored calendar with these rows; why it cannot be one, in words.
    fn merged(&self, rows: &CalendarRows) -> Result<OpenDays, String> {
        let exchange = calendar_of(rows)?;
        let mut merged = self.calendar.clone();
        merged.extend(rows.keys().map(|date| (*date, exchange.is_business_day(*date))));
        let published = self.state.complete.iter().chain(&self.state.forced);
        let mut traded = published.filter(|date| self.known.dates.contains_key(date));
        match traded.find(|date| merged.get(date) == Some(&false)) {
            Some(date) => Err(format!("it says closed on {date}, of which there are rows")),
            None => Ok(merged),
        }
    }

    /// Whether a calendar has other business days than the present one between published days.
    fn changes_gaps(&self, calendar: &OpenDays) -> bool {
        let Some((first, last)) = self.published_range() else { return false };
        let open = |days: &OpenDays| -> Vec<JstDate> {
            let days = days
                .range(first..=last)
                .filter(|(date, is_open)| **is_open && !self.state.is_publishable(**date));
            days.map(|(date, _)| *date).collect()
        };
        open(calendar) != open(&self.calendar)
    }

    /// What a day is held against.
    pub(super) fn standard(&mut self, slots: Option<&mut Slots>, date: JstDate) -> Standard {
        if let Some(slots) = slots {
            self.ask_for_list(slots, date);
        }
        if let Some(codes) = self.listed.get(&date) {
            return Standard::Listed(codes.clone());
        }
        match self.complete_rows.range(..date).next_back() {
            Some((_, rows)) => Standard::Before(*rows),
            None => Standard::Nothing,
        }
    }

    pub(super) fn ask_for_list(&mut self, slots: &mut Slots, date: JstDate) {
        let is_wanted = self.list_days.contains(&date) && !self.listed.contains_key(&date);
        if !is_wanted || self.cancel.is_cancelled() {
            return;
        }
        // Each is asked for once, whatever comes.
        self.list_days.remove(&date);
        match slots.issue_list(date) {
            None | Some(Err(SourceError::NoSuchCall(_))) => self.list_days.clear(),
            Some(Ok(Some(list))) if !list.is_empty() => {
                self.keep_list(date, &list);
                self.listed.insert(date, list.into_keys().collect());
            }
            Some(Ok(_) | Err(SourceError::NotCovered { .. })) => {}
            Some(Err(error)) => {
                self.list_days.clear();
                if error.reach() != Reach::Run {
                    self.note(format!(
                        "the list of issues of {date} could not be had, so days are held against \
                         the day before: {error}"
                    ));
                }
            }
        }
    }
}
