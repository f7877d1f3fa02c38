//! Which days are due, wanted, and waiting.

use std::collections::BTreeSet;

use chrono::Datelike;
use domain::session::is_weekday;
use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, holidays};
use http_client::HttpError;
use marketdata::calendar_file::{CalendarRows, calendar_of};

use super::report::DayOutcome;
use super::slots::Slots;
use super::{Job, UpdateError};
use crate::limits::{AGAIN_DAYS_MAX, DAYS_DEFAULT};
use crate::price_store::OpenDays;
use crate::source::{Reach, SourceError, UNKNOWN_DIVISION};

/// When the vendor has the day, in nanoseconds after midnight in Japan: 16:30.
const DAY_IS_THERE: u64 = (16 * 60 + 30) * NANOS_PER_MINUTE;

/// The last `count` weekdays up to `last`, ascending.
#[must_use]
pub fn last_weekdays(last: JstDate, count: u32) -> Vec<JstDate> {
    let mut days = Vec::new();
    let mut date = Some(last);
    while let Some(day) = date.filter(|_| days.len() < count as usize) {
        if is_weekday(day) {
            days.push(day);
        }
        date = day.pred_opt();
    }
    days.reverse();
    days
}

/// The weekdays from one date to another, both included, ascending.
pub(super) fn weekdays(from: JstDate, to: JstDate) -> impl Iterator<Item = JstDate> {
    from.iter_days().take_while(move |day| *day <= to).filter(|day| is_weekday(*day))
}

/// Months that have begun between two dates, of 30 days each.
pub(super) fn months_between(one: JstDate, other: JstDate) -> u64 {
    (one - other).num_days().unsigned_abs() / 30
}

impl Job<'_> {
    /// Whether the exchange is open, as far as it is known without rows (rule `business_day`).
    pub(super) fn is_open(&self, date: JstDate) -> bool {
        let by_calendar = self.calendar.get(&date).copied();
        // The law tells of the years since then.
        let knows_law = date.year() >= holidays::FIRST_YEAR || by_calendar.is_none();
        let is_open = by_calendar == Some(true) || (knows_law && !holidays::is_closed(date));
        is_weekday(date) && is_open && !self.state.closed.contains(&date)
    }

    /// The same, and whether it has rows.
    pub(super) fn is_business_day(&self, date: JstDate) -> bool {
        self.state.is_published(date) || self.is_open(date)
    }

    /// Whether a day is over, and the subscription covers it (rule `due`).
    pub(super) fn is_over(&self, date: JstDate) -> bool {
        let now = self.options.now;
        let today = now.jst_date();
        let is_early = date > today || (date == today && now.jst_nanos_of_day() < DAY_IS_THERE);
        date <= self.options.to && !is_early && self.is_covered(date)
    }

    pub(super) fn is_covered(&self, date: JstDate) -> bool {
        self.covered.is_none_or(|(first, last)| (first..=last).contains(&date))
    }

    /// Whether a day must be there by now (rule `due`).
    pub(super) fn is_due(&self, date: JstDate) -> bool {
        self.is_open(date) && self.is_over(date)
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

    /// Business days between published ones that are not published (rule `gap`).
    pub(super) fn gaps(&self) -> Vec<JstDate> {
        let Some((first, last)) = self.state.published_range() else { return Vec::new() };
        let days = first.iter_days().take_while(|date| *date <= last);
        days.filter(|date| self.is_open(*date) && !self.state.is_published(*date)).collect()
    }

    /// The days that wait: gaps, and days with rows that are not published (rule `wait`).
    pub(super) fn waiting(&self) -> BTreeSet<JstDate> {
        let stored = self.known.dates.keys().copied();
        let stored = stored.filter(|date| !self.state.is_published(*date) && self.is_open(*date));
        stored.chain(self.gaps()).collect()
    }

    /// The days that are asked for (rule `asked`).
    pub(super) fn wanted(&mut self) -> Vec<JstDate> {
        let (to, from) = (self.options.to, self.options.from);
        let after = self.state.complete.last().and_then(JstDate::succ_opt);
        let since = [from, after].into_iter().flatten().min();
        let since =
            since.or_else(|| last_weekdays(to, DAYS_DEFAULT).first().copied()).unwrap_or(to);
        let accepted = self.options.accept.iter().copied();
        let begins: BTreeSet<JstDate> = self.waiting().into_iter().chain(accepted).collect();
        let first = begins.first().copied().map_or(since, |first| first.min(since));
        self.report.from = Some(first);
        let mut wanted = Vec::new();
        for date in weekdays(first, to) {
            let is_named = self.is_named(date);
            let is_asked = is_named || self.is_open(date);
            let is_published = self.state.is_published(date);
            let is_there = is_published && self.state.fetched.contains(&date);
            let is_inside = from.is_some_and(|from| date >= from);
            if !is_asked {
                self.report.days_closed += 1;
            } else if !self.is_over(date) {
                self.day(date).outcome = Some(DayOutcome::NotDue);
            } else if is_named
                || !is_published && (date >= since || begins.contains(&date))
                || is_inside && (self.options.refetch || !is_there)
            {
                wanted.push(date);
            } else {
                self.report.days_known += 1;
            }
        }
        wanted
    }

    /// The published days that are asked for again (rule `again`), those that lack something first.
    pub(super) fn again(&self) -> Vec<JstDate> {
        let is_left = |date: &JstDate| self.is_over(*date) && !self.days.contains_key(date);
        let back = last_weekdays(self.options.to, AGAIN_DAYS_MAX).first().copied();
        let back = back.unwrap_or(self.options.to);
        let published = self.state.complete.union(&self.state.accepted).copied();
        let lacking = published.filter(|date| *date >= back && !self.state.fetched.contains(date));
        let mut days: Vec<JstDate> = lacking.filter(is_left).collect();
        let complete = self.state.complete.iter().rev().copied().filter(is_left);
        for date in complete.take(self.options.recheck) {
            if !days.contains(&date) {
                days.push(date);
            }
        }
        days
    }

    /// Asks the vendor for the calendar of the years of all days that are stored or wanted.
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
        match answer {
            None | Some(Err(SourceError::NoSuchCall(_))) => Ok(()),
            Some(Ok(rows)) => self.take_calendar(&rows),
            // A key that is refused is told with the days.
            Some(Err(SourceError::Http(HttpError::Key { .. }))) => Ok(()),
            Some(Err(error)) if error.reach() == Reach::Run => Ok(()),
            Some(Err(error)) => {
                self.note(format!(
                    "the vendor's calendar did not come, so the previous one applies, or Japan's holidays: {error}"
                ));
                Ok(())
            }
        }
    }

    /// Keeps which days a calendar opens.
    pub(super) fn take_calendar(&mut self, rows: &CalendarRows) -> Result<(), UpdateError> {
        let known = rows.iter().filter(|(_, division)| *division != UNKNOWN_DIVISION);
        let known: CalendarRows = known.map(|(date, division)| (*date, division.clone())).collect();
        match calendar_of(&known) {
            _ if known.is_empty() => {}
            Ok(exchange) => {
                let days = known.keys().map(|date| (*date, exchange.is_business_day(*date)));
                self.calendar.extend(days);
            }
            Err(problem) => self.note(format!("the vendor's calendar is not used: {problem}")),
        }
        self.keep_calendar()
    }

    /// Gives readers the business days that the job counts.
    pub(super) fn keep_calendar(&mut self) -> Result<(), UpdateError> {
        let mut calendar = self.calendar.clone();
        if let Some((first, last)) = self.state.published_range() {
            calendar.extend(
                first.iter_days().take_while(|date| *date <= last).map(|date| (date, false)),
            );
        }
        for (date, is_open) in &mut calendar {
            *is_open = self.is_business_day(*date);
        }
        if calendar != self.stored_calendar {
            let range = self.state.published_range();
            let seen = |days: &OpenDays| -> Vec<JstDate> {
                let open = range.into_iter().flat_map(|(first, last)| days.range(first..=last));
                open.filter(|(_, is_open)| **is_open).map(|(date, _)| *date).collect()
            };
            self.calendar_is_new |= seen(&calendar) != seen(&self.stored_calendar);
            self.store.rows().store_open_days(&calendar)?;
            self.stored_calendar = calendar;
        }
        Ok(())
    }
}
