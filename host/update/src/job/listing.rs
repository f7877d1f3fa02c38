//! What the vendor lists besides prices: the exchange's calendar, and the issues of a date.

use chrono::Datelike;
use domain::JstDate;
use marketdata::calendar_file::{CalendarRows, calendar_of};

use http_client::HttpError;

use super::rules::{Standard, is_believed, is_open};
use super::slots::Slots;
use super::{Job, UpdateError};
use crate::limits::COMPLETE_DAYS_COMPARED;
use crate::price_store::OpenDays;
use crate::source::{IssueList, Reach, SourceError};

impl Job<'_> {
    /// Asks for the calendar of the whole years from the first day that is stored or wanted to the
    /// last one, and stores it where it says something new.
    pub(super) fn renew_calendar(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        let stored = self.known.dates.keys().next().copied();
        let to = self.options.to;
        let from = [stored, self.options.from].into_iter().flatten().min().unwrap_or(to).min(to);
        let first = JstDate::from_ymd_opt(from.year(), 1, 1).unwrap_or(from);
        let last = JstDate::from_ymd_opt(to.year(), 12, 31).unwrap_or(to);
        let mut answer = slots.exchange_calendar(first, last);
        if let Some(Err(SourceError::NotCovered { first: begin, last: end })) = answer {
            // Whole years reach out of most subscriptions.
            let (first, last) = (first.max(begin), last.min(end));
            answer = if first <= last { slots.exchange_calendar(first, last) } else { None };
        }
        let rows = match answer {
            None | Some(Err(SourceError::NoSuchCall(_))) => return Ok(()),
            Some(Ok(rows)) => rows,
            Some(Err(error)) => {
                if error.reach() != Reach::Run {
                    self.note(format!(
                        "the vendor's calendar could not be had, so days that it has not told before \
                         are open or closed by law: {error}"
                    ));
                }
                return Ok(());
            }
        };
        self.take_calendar(&rows)
    }

    /// Stores what a calendar says that is new.
    pub(super) fn take_calendar(&mut self, rows: &CalendarRows) -> Result<(), UpdateError> {
        if rows.is_empty() {
            return Ok(());
        }
        match self.merged(rows) {
            Ok(calendar) => self.keep_calendar(calendar),
            Err(problem) => {
                self.note(format!("the vendor's calendar is not used: {problem}"));
                Ok(())
            }
        }
    }

    fn keep_calendar(&mut self, calendar: OpenDays) -> Result<(), UpdateError> {
        if calendar != self.calendar {
            self.store.store_open_days(&calendar)?;
            self.calendar_is_new |= self.changes_gaps(&calendar);
            self.calendar = calendar;
        }
        Ok(())
    }

    /// Gives the published days a calendar without holes (rule D2), so that readers who count business
    /// days count the same ones as the job does.
    pub(super) fn complete_calendar(&mut self) -> Result<(), UpdateError> {
        let Some((first, last)) = self.published_range() else { return Ok(()) };
        let mut calendar = self.calendar.clone();
        for date in first.iter_days().take_while(|date| *date <= last) {
            let has_rows = self.state.is_publishable(date);
            calendar.entry(date).or_insert_with(|| has_rows || is_open(&self.calendar, date));
        }
        self.keep_calendar(calendar)
    }

    /// Whether the exchange is open on a date (rule D2).
    pub(super) fn is_open(&self, date: JstDate) -> bool {
        is_open(&self.calendar, date)
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
        // One day alone would let the standard sink a little every day.
        let before = self.complete_rows.range(..date).rev().take(COMPLETE_DAYS_COMPARED);
        match before.map(|(_, rows)| *rows).max() {
            Some(rows) => Standard::Before(rows),
            None if self.lists_failed => Standard::Unknown,
            None => Standard::Nothing,
        }
    }

    /// Whether a list has all issues of a date, as far as those before it tell (rule C6).
    fn is_whole(&mut self, date: JstDate, list: &IssueList) -> bool {
        let last_list = self.lists.lists().range(..date).next_back();
        let last_day = || self.complete_rows.range(..date).next_back();
        let Some((when, before)) = last_list.or_else(last_day).map(|(when, of)| (*when, *of))
        else {
            return true;
        };
        let days = u64::try_from((date - when).num_days()).unwrap_or_default();
        let is_whole = is_believed(list.len() as u64, before, days);
        if !is_whole {
            self.note(format!(
                "the list of issues of {date} has {} issues where there were {before} on {when}; it is \
                 not used, and the day is held against the days before",
                list.len()
            ));
        }
        is_whole
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
                if self.is_whole(date, &list) {
                    self.keep_list(date, &list);
                    self.listed.insert(date, list.into_keys().collect());
                }
            }
            Some(Ok(_) | Err(SourceError::NotCovered { .. })) => {}
            Some(Err(error)) => {
                self.list_days.clear();
                // A subscription without lists has none tomorrow either.
                let has_none = matches!(
                    error,
                    SourceError::Http(HttpError::Key { .. } | HttpError::Refused { .. })
                );
                self.lists_failed |= !has_none;
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
