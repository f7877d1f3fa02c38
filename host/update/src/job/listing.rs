//! What the vendor lists besides prices: the exchange's calendar, and the issues of a date.

use std::collections::BTreeSet;

use chrono::Datelike;
use domain::{JstDate, holidays};
use marketdata::calendar_file::{CalendarRows, calendar_of};

use http_client::HttpError;

use super::report::{DoubtKind, DoubtReport};
use super::rules::{Beside, Doubt, Standard, are_alike, days_between, is_enough, is_open};
use super::slots::Slots;
use super::{Job, UpdateError};
use crate::limits::{COMPLETE_DAYS_COMPARED, DAYS_AFTER_COMPARED, NEAR_DAYS_MAX, REPORT_ROWS_MAX};
use crate::price_store::OpenDays;
use crate::row::IssueCode;
use crate::source::{Reach, SourceError, UNKNOWN_DIVISION};

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
            Ok(calendar) => {
                self.keep_calendar(calendar)?;
                self.unpublish_closed_days()
            }
            Err(problem) => {
                self.note(format!("the vendor's calendar is not used: {problem}"));
                Ok(())
            }
        }
    }

    /// Takes days away from readers that turned out to be closed, which only the user's word does (rule D8).
    /// Their rows are kept in `work/`.
    fn unpublish_closed_days(&mut self) -> Result<(), UpdateError> {
        let accepted = self.options.accept.clone();
        let closed = accepted.into_iter().filter(|date| !self.is_open(*date));
        let closed: Vec<JstDate> = closed.filter(|date| self.state.is_publishable(*date)).collect();
        for date in &closed {
            self.release(*date);
            let state = &mut self.state;
            for days in
                [&mut state.complete, &mut state.forced, &mut state.begins, &mut state.fetched]
            {
                days.remove(date);
            }
            self.complete_rows.remove(date);
            self.note(format!("{date} is closed by the vendor's calendar, and published no more"));
        }
        if closed.is_empty() { Ok(()) } else { self.save_state() }
    }

    /// Says that a calendar closes a day of which there are rows.
    fn tell_closed(&mut self, date: JstDate, rows: u64, is_used: bool) {
        let what = format!("the vendor's calendar says closed, and {rows} rows of it are stored");
        let calendar = if is_used { "it is used for all other days" } else { "it is not used" };
        self.note(format!("of {date} {what}; {calendar}"));
        let advice =
            "the day stays as it was; where it was closed, say so with --accept and the date";
        let (kind, advice) = (DoubtKind::Closed, advice.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what, advice });
    }

    /// Says that a calendar is not used as a whole (rule D13).
    fn tell_calendar(&mut self, problem: &str) {
        let date = self.options.to;
        if self.accept(date) {
            return;
        }
        let what = format!("the vendor's calendar is not used: {problem}");
        let advice = "which days are open is as it was known before, else by Japan's holidays; ask the vendor";
        let (kind, advice) = (DoubtKind::Closed, advice.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what, advice });
    }

    /// Closes a day of which nobody has anything, as the user says (rule D12).
    pub(super) fn close(&mut self, date: JstDate) -> Result<(), UpdateError> {
        self.keep_open_day(date, false)?;
        self.note(format!(
            "{date} is closed from now on, as accepted: nobody has a row of it; --accept {date} asks for it again"
        ));
        Ok(())
    }

    /// Opens a day that the vendor's calendar closes, of which it has all rows (rule D9).
    pub(super) fn open(&mut self, date: JstDate, rows: u64) -> Result<(), UpdateError> {
        self.keep_open_day(date, true)?;
        self.tell_closed(date, rows, true);
        Ok(())
    }

    /// Says that a calendar opens a day that was closed, of which there is nothing (rule D11).
    fn tell_opened(&mut self, date: JstDate) {
        let what =
            "the vendor's calendar says open, the law says closed, and no row of it is stored"
                .to_owned();
        self.note(format!("of {date} {what}; it stays closed"));
        if self.report.doubts.len() < REPORT_ROWS_MAX {
            let advice =
                "it counts as closed; where it was open, say so with --accept and the date";
            let (kind, advice) = (DoubtKind::Closed, advice.to_owned());
            self.report.doubts.push(DoubtReport { date, kind, what, advice });
        }
    }

    /// The same calendar, but for one day.
    fn keep_open_day(&mut self, date: JstDate, is_open: bool) -> Result<(), UpdateError> {
        let mut calendar = self.calendar.clone();
        calendar.insert(date, is_open);
        self.keep_calendar(calendar)
    }

    fn keep_calendar(&mut self, calendar: OpenDays) -> Result<(), UpdateError> {
        if calendar != self.calendar {
            self.store.rows().store_open_days(&calendar)?;
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

    /// The stored calendar with these rows; why it cannot be one, in words. A day that has rows is closed
    /// afterwards only where the user says so (rule D8).
    fn merged(&mut self, rows: &CalendarRows) -> Result<OpenDays, String> {
        // Rule Q6 of the sources.
        let mut rows = rows.clone();
        for (date, division) in &mut rows {
            if division == UNKNOWN_DIVISION {
                *division = if self.is_open(*date) { "1" } else { "0" }.to_owned();
            }
        }
        let exchange = calendar_of(&rows).inspect_err(|problem| self.tell_calendar(problem))?;
        let mut merged = self.calendar.clone();
        merged.extend(rows.keys().map(|date| (*date, exchange.is_business_day(*date))));
        let closed = self.known.dates.iter().map(|(date, rows)| (*date, *rows));
        let closed = closed.filter(|(date, _)| merged.get(date) == Some(&false));
        let closed = closed.filter(|(date, _)| self.is_open(*date));
        let mut closed: Vec<(JstDate, u64)> = closed.collect();
        closed.retain(|(date, _)| !self.accept(*date));
        if let Some((date, rows)) = closed.iter().find(|day| self.state.is_publishable(day.0)) {
            self.tell_closed(*date, *rows, false);
            return Err(format!("it says closed on {date}, of which there are rows"));
        }
        for (place, (date, rows)) in closed.into_iter().enumerate() {
            if place < REPORT_ROWS_MAX {
                self.tell_closed(date, rows, true);
            }
            merged.insert(date, true);
        }
        // Rule D12.
        let closed_by_user: Vec<JstDate> = self.state.accepted.iter().copied().collect();
        for date in closed_by_user {
            let is_closed = self.calendar.get(&date) == Some(&false);
            if is_closed && !self.known.dates.contains_key(&date) && !self.accept(date) {
                merged.insert(date, false);
            }
        }
        let last = self.published_range().map(|(_, last)| last);
        let opened = merged.iter().filter(|(date, is_open)| {
            let was_closed =
                self.calendar.get(date) == Some(&false) || self.state.closed.contains(date);
            let has_rows = self.known.dates.contains_key(date);
            **is_open
                && was_closed
                && !has_rows
                && holidays::is_closed(**date)
                && Some(**date) <= last
        });
        let opened: Vec<JstDate> = opened.map(|(date, _)| *date).collect();
        for date in opened {
            if !self.accept(date) {
                merged.insert(date, false);
                self.tell_opened(date);
            }
        }
        Ok(merged)
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

    /// What a day of which these issues have rows is held against.
    pub(super) fn standard(
        &mut self,
        slots: Option<&mut Slots>,
        date: JstDate,
        codes: &BTreeSet<IssueCode>,
    ) -> Result<Standard, UpdateError> {
        match slots {
            Some(slots) => self.ask_for_list(slots, date, codes),
            None => self.weigh_again(date, codes),
        }
        if let Some(codes) = self.listed.get(&date) {
            return Ok(Standard::Listed(codes.clone()));
        }
        if let Some(listed) = self.grown_list(date, codes)
            && !self.accept(date)
        {
            return Ok(Standard::Listed(listed));
        }
        if let Some(day) = self.day_before(date) {
            let (codes, days) = (self.issues_of(day)?, days_between(day, date));
            let list = self.nearest_list(date);
            return Ok(Standard::Before { day: Beside { codes, days }, list });
        }
        Ok(match self.nearest(date) {
            Some((rows, days)) => Standard::Near { rows, days },
            None if self.lists_failed => Standard::Unknown,
            None => Standard::Nothing,
        })
    }

    /// The issues of the list of a date that has grown and is not believed: what is listed and has no row is missing
    /// (rule L4). Nothing where the user has looked at it: an earlier day is complete with as many that were listed, or
    /// published with fewer (C10).
    fn grown_list(
        &self,
        date: JstDate,
        codes: &BTreeSet<IssueCode>,
    ) -> Option<BTreeSet<IssueCode>> {
        let list = self.doubted.get(&date)?;
        let (evidence, when) = self.evidence(date, list, codes);
        let has_grown = matches!(evidence.check(), Err(Doubt::Grown { .. }));
        let mut earlier = self.state.doubted.range(..date);
        let is_known = earlier.any(|(day, of)| {
            self.state.complete.contains(day) && are_alike(*of, list.len() as u64)
        });
        let is_settled = is_known || self.state.begins.contains(&when);
        (has_grown && !is_settled).then(|| list.keys().copied().collect())
    }

    /// The last complete day before a date (rule C2). Where no other of the last ones nearly has so many rows, the
    /// day before it: an evening with rows that do not belong there must not be a standard that no later day meets.
    /// A standard that sinks a little every day is told (rule S3).
    pub(super) fn day_before(&self, date: JstDate) -> Option<JstDate> {
        let mut days = self.complete_rows.range(..date).rev().take(COMPLETE_DAYS_COMPARED);
        let ((last, rows), before) = (days.next()?, days.next());
        let is_alone = !before.into_iter().chain(days).any(|(_, of)| is_enough(*of, *rows, 0));
        Some(before.filter(|_| is_alone).map_or(*last, |(day, _)| *day))
    }

    /// The issues that have a row of a day, also where they are still on their way to the store.
    pub(super) fn issues_of(&mut self, date: JstDate) -> Result<BTreeSet<IssueCode>, UpdateError> {
        if let Some((day, codes)) = &self.issues
            && *day == date
        {
            return Ok(codes.clone());
        }
        let codes: BTreeSet<IssueCode> = match self.is_on_its_way(date) {
            true => self.rows_of(date)?.iter().map(|row| row.code).collect(),
            false => self.store.rows().codes_of(date)?,
        };
        self.issues = Some((date, codes.clone()));
        Ok(codes)
    }

    /// The issues of the list that is nearest to a date and believed; nothing where the user has published its day,
    /// or one after it, with fewer (rule C10), or where it is too far away.
    pub(super) fn nearest_list(&self, date: JstDate) -> Option<Beside> {
        let begin = self.state.begins.range(..=date).next_back().copied();
        let lists = self.lists.lists().keys().copied();
        let lists = lists.filter(|day| !self.state.doubted.contains_key(day));
        let lists =
            lists.filter(|day| !self.is_forced(*day) && begin.is_none_or(|begin| *day > begin));
        let list = lists.min_by_key(|day| days_between(*day, date))?;
        let days = days_between(list, date);
        let issues = self.lists.issues().map(|(code, _)| code);
        let listed = issues.filter(|code| self.lists.at(code, list).is_some());
        let codes = listed.filter_map(|code| code.parse().ok()).collect();
        (days <= NEAR_DAYS_MAX).then_some(Beside { codes, days })
    }

    /// Rows of the nearest complete days after a date, else issues of the nearest list, and how many days
    /// away they are (rule C6); nothing where that is too far to say anything.
    pub(super) fn nearest(&self, date: JstDate) -> Option<(u64, u64)> {
        let after = self.complete_rows.range(date..).filter(|(day, _)| **day != date);
        let mut after = after.filter(|(day, _)| !self.is_forced(**day));
        let first = after.next().map(|(day, rows)| (*day, *rows));
        let found = first.map(|(day, rows)| {
            let others = after.take(DAYS_AFTER_COMPARED - 1).map(|(_, rows)| *rows);
            (others.fold(rows, u64::max), days_between(date, day))
        });
        let lists = self.lists.lists();
        let lists = lists.iter().filter(|(day, _)| !self.state.doubted.contains_key(day));
        let list = lists.map(|(day, issues)| (*issues, days_between(date, *day)));
        let found = found.or_else(|| list.min_by_key(|(_, days)| *days));
        found.filter(|(_, days)| *days <= NEAR_DAYS_MAX)
    }

    pub(super) fn ask_for_list(
        &mut self,
        slots: &mut Slots,
        date: JstDate,
        codes: &BTreeSet<IssueCode>,
    ) {
        let is_wanted = self.list_days.contains(&date) && !self.listed.contains_key(&date);
        if !is_wanted || self.cancel.is_cancelled() {
            self.weigh_again(date, codes);
            return;
        }
        // Each is asked for once, whatever comes.
        self.list_days.remove(&date);
        self.lists_asked.insert(date);
        match slots.issue_list(date) {
            None | Some(Err(SourceError::NoSuchCall(_))) => self.give_lists_up(),
            Some(Ok(Some(list))) if !list.is_empty() => self.weigh(date, list, codes),
            Some(Ok(_) | Err(SourceError::NotCovered { .. })) => {}
            // Another day's may be right.
            Some(Err(error @ SourceError::Odd(_))) => {
                self.lists_failed = true;
                self.note(format!(
                    "the list of issues of {date} is not used, so the day is held against others: {error}"
                ));
            }
            Some(Err(error)) => {
                self.give_lists_up();
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

    /// No list is asked for any more in this run.
    fn give_lists_up(&mut self) {
        self.list_days.clear();
        self.are_lists_out = true;
    }

    /// What a day that is not complete yet is held against. Where it would not be complete, its list is asked
    /// for, though a long run asks for some only.
    pub(super) fn standard_of_new(
        &mut self,
        mut slots: Option<&mut Slots>,
        date: JstDate,
        codes: &BTreeSet<IssueCode>,
        came_in_one_piece: bool,
    ) -> Result<Standard, UpdateError> {
        let standard = self.standard(slots.as_deref_mut(), date, codes)?;
        let is_wanted = !self.are_lists_out && !self.lists_asked.contains(&date);
        if !is_wanted || slots.is_none() || standard.is_met(codes, came_in_one_piece) {
            return Ok(standard);
        }
        self.list_days.insert(date);
        self.standard(slots, date, codes)
    }
}
