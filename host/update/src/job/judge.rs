//! Holds days against the rules, and says what readers may see.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Days;
use domain::{JstDate, holidays};
use pricestore::{DatasetStatus, DayDoubt, IncompleteDay};

use super::odd_days::ADVICE as ODD_ADVICE;
use super::oddity::Oddity;
use super::plan::last_weekdays;
use super::report::{DayOutcome, DoubtKind, DoubtReport, ShortDayReport};
use super::rules::{DueDays, NotDue, Standard, is_day_without_trading, is_enough, is_open};
use super::slots::Slots;
use super::{Job, UpdateError, own_folder};
use crate::fetch_state::FetchState;
use crate::limits::{
    BEGIN_PERCENT, BETTER_DAYS_MAX, DAYS_AFTER_COMPARED, EMPTY_FINAL_DAYS, REPORT_ROWS_MAX,
};
use crate::row::{DailyRow, IssueCode};

/// What an answer makes of its day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is complete with it.
    Complete,
    /// It is not.
    Short,
    /// It stays as it was, and why (rules C12, E1 to E12, E15 to E21 and R8).
    Refused(String),
    /// It is not taken (rules E1 to E5, E8 to E12 and E16 to E21).
    Odd(Oddity),
}

/// Why a day with enough rows is not complete (rule C8).
const NO_TRADE: &str = "no issue was traded, and the exchange was open; where that is right, --accept and the date say so";

/// What happens next to a day that is not complete, and what the user can do.
fn advice(rows: u64, published: bool) -> &'static str {
    match (rows, published) {
        (0, _) => "the next run asks for it again",
        (_, true) => {
            "it is published as you said with --publish-incomplete; later days without a list of issues \
             are held against it only if it has 90 % of what it should have, and \
             it is asked for again until it is complete or five complete days after it have no more rows"
        }
        (_, false) => {
            "the next run asks for it again; only if the vendor has no more rows of it, as when many \
             issues were delisted at once, publish it as it is with --publish-incomplete: later days \
             without a list of issues are held against it then, if it has 90 % of what it should have"
        }
    }
}

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
    pub(super) fn judge(
        &mut self,
        mut slots: Option<&mut Slots>,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<Verdict, UpdateError> {
        self.whole_days.insert(date);
        if let Some(why) = self.refusal(slots.as_deref_mut(), date, rows)? {
            return Ok(Verdict::Refused(why));
        }
        if self.state.complete.contains(&date) {
            self.tell_strange(date, rows, &BTreeMap::new())?;
            return Ok(Verdict::Complete);
        }
        let codes: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let standard = self.standard_of_new(slots, date, &codes, true)?;
        if let Some(odd) = self.oddity(date, rows, Some(&standard))? {
            self.day(date).expected = standard.expected();
            return Ok(Verdict::Odd(odd));
        }
        self.day(date).expected = standard.expected();
        // The user has looked at the issues of the day, where no list tells which they are.
        let is_enough = standard.is_met(&codes, true)
            || (standard.is_met_by_count(codes.len()) && self.accept(date));
        let has_trades = rows.iter().any(|row| row.volume.is_some_and(|volume| volume > 0));
        let is_met = is_enough && self.has_traded(date, has_trades);
        if is_met {
            if !matches!(standard, Standard::Listed(_)) {
                self.note_first_day(date);
            }
            self.complete_rows.insert(date, codes.len() as u64);
            self.tell_strange(date, rows, &BTreeMap::new())?;
            self.judged = Some((date, rows.to_vec()));
            self.tell_unlisted(date, &codes);
            self.issues = Some((date, codes));
        } else {
            let why = if is_enough { NO_TRADE.to_owned() } else { standard.words(&codes) };
            self.day(date).why = Some(why);
        }
        Ok(if is_met { Verdict::Complete } else { Verdict::Short })
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
        let before = self.state.complete.len();
        self.settle_first_days();
        self.forget_short_first_days(slots.as_deref_mut());
        let dates = self.days.keys().chain(self.state.incomplete.keys()).copied();
        let mut dates: Vec<JstDate> =
            dates.filter(|date| !self.state.complete.contains(date)).collect();
        dates.retain(|date| self.is_open(*date));
        dates.sort_unstable();
        dates.dedup();
        for date in dates {
            let codes = self.store.rows().codes_of(date)?;
            if codes.is_empty() {
                continue;
            }
            let standard = self.standard_of_new(slots.as_deref_mut(), date, &codes, false)?;
            let is_like_later =
                self.is_forced(date) && self.is_like_later_days(date, codes.len() as u64);
            let is_enough = standard.is_met(&codes, false) || is_like_later;
            // A whole answer that would have been enough says it better than its rows.
            let known = self.days.get(&date).and_then(|day| day.why.as_deref());
            let is_tradeless = is_enough || known == Some(NO_TRADE);
            let why = if is_tradeless { NO_TRADE.to_owned() } else { standard.words(&codes) };
            self.whys.insert(date, why);
            if let Some(day) = self.days.get_mut(&date) {
                day.expected = standard.expected();
            }
            if is_enough && let Some(odd) = self.oddity_of_stored(date, &standard)? {
                self.leave_odd_day(date, odd);
                self.whys.insert(date, format!("it is odd, {odd}"));
                continue;
            }
            let has_trades = self.store.rows().has_trades(date)?;
            if is_enough && (is_like_later || self.has_traded(date, has_trades)) {
                let rows = self.store.rows().rows_of(date)?;
                self.tell_strange(date, &rows, &BTreeMap::new())?;
                self.tell_unlisted(date, &codes);
                self.complete_rows.insert(date, codes.len() as u64);
                self.state.complete.insert(date);
                self.release(date);
            }
        }
        if self.state.complete.len() > before { self.save_state() } else { Ok(()) }
    }

    /// Whether a day is published though it is not complete.
    pub(super) fn is_forced(&self, date: JstDate) -> bool {
        self.state.forced.contains(&date) && !self.state.complete.contains(&date)
    }

    /// Whether the standard of later days begins anew with a day that the user publishes, which has so many
    /// rows of those that it should have (rule C10).
    fn begins_anew(&self, date: JstDate, rows: u64, expected: u64) -> bool {
        let is_near = expected > 0 && rows * 100 >= expected * BEGIN_PERCENT;
        let has_list =
            self.lists.lists().contains_key(&date) && !self.state.doubted.contains_key(&date);
        is_near && (!has_list || self.has_no_complete_day_before(date))
    }

    /// Whether nothing tells what a date should have but what the user published.
    pub(super) fn has_no_complete_day_before(&self, date: JstDate) -> bool {
        self.state.complete.range(..date).all(|day| self.state.begins.contains(day))
    }

    /// Whether the complete days after a day have no more rows than it, and are as many as it takes to
    /// say so (rule C11).
    fn is_like_later_days(&self, date: JstDate, rows: u64) -> bool {
        let later = self.complete_rows.range(date..).filter(|(day, _)| **day != date);
        let later = later.filter(|(day, _)| !self.is_forced(**day)).take(DAYS_AFTER_COMPARED);
        let alike = later.take_while(|(_, of)| is_enough(rows, **of, 0));
        alike.count() == DAYS_AFTER_COMPARED
    }

    /// Whether a day that has rows is over: one on which nothing was traded was none of an open exchange, unless
    /// the user or history says so (rule C8); told.
    fn has_traded(&mut self, date: JstDate, has_trades: bool) -> bool {
        let day = self.days.entry(date).or_default();
        if !has_trades && !std::mem::replace(&mut day.is_tradeless, true) {
            self.note(format!("no issue was traded on {date}"));
        }
        has_trades || is_day_without_trading(date) || self.accept(date)
    }

    /// Whether rows of a day may still come.
    pub(super) fn is_young(&self, date: JstDate) -> bool {
        let last_final = self.today().checked_sub_days(Days::new(EMPTY_FINAL_DAYS));
        last_final.is_none_or(|last| date > last)
    }

    /// Readers may see the rows of a day from now on.
    pub(super) fn release(&mut self, date: JstDate) {
        for first in [&mut self.changed_from, &mut self.state.unpublished_from] {
            *first = Some(first.map_or(date, |first| first.min(date)));
        }
    }

    /// Says of each day that was looked at what it is now, and notes which are not complete.
    pub(super) fn settle(&mut self) -> Result<(), UpdateError> {
        let stored = self.store.rows().known()?.dates;
        let before = self.state.clone();
        self.close_accepted_days(&stored)?;
        let last_complete = self.state.complete.last().copied();
        let first_published = self.published_range().map(|(first, _)| first);
        let young: BTreeSet<JstDate> =
            self.days.keys().copied().filter(|date| self.is_young(*date)).collect();
        // Only a run that the user has ended leaves some of these.
        let unsettled: BTreeSet<JstDate> = self.first_days.keys().copied().collect();
        for date in &unsettled {
            let why = "it is one of the first of all, and the run ended before those after it came";
            self.whys.insert(*date, why.to_owned());
        }
        let calendar = &self.calendar;
        for (date, day) in &mut self.days {
            // Rule D6.
            let may_have_none = !calendar.contains_key(date)
                && !young.contains(date)
                && first_published.is_none_or(|first| *date < first);
            let is_complete = self.state.complete.contains(date);
            let has_rows = stored.contains_key(date);
            day.complete = is_complete;
            day.outcome = match day.outcome {
                Some(DayOutcome::Fetched) if unsettled.contains(date) => day.outcome,
                Some(DayOutcome::Fetched | DayOutcome::FetchedByIssue) if !is_complete => {
                    Some(DayOutcome::Incomplete)
                }
                Some(DayOutcome::NoData) if (has_rows || !may_have_none) && !is_complete => {
                    Some(DayOutcome::Incomplete)
                }
                other => other,
            };
            let need_not_be = match day.outcome {
                Some(DayOutcome::NoData | DayOutcome::NotDue) => true,
                // A run that ended before is gone on with after the last complete day.
                None => !has_rows && last_complete.is_none_or(|last| last < *date),
                Some(_) => false,
            };
            let known = self.state.incomplete.remove(date);
            if !is_complete && !need_not_be {
                let expected = day.expected.or(known).unwrap_or(0);
                self.state.incomplete.insert(*date, expected);
            }
        }
        let today = self.today();
        let (state, calendar) = (&mut self.state, &self.calendar);
        // What is stored of a closed day is kept in `work/`, and is no day.
        state.incomplete.retain(|date, _| {
            // A clock that was wrong may have named days that are not over.
            !state.complete.contains(date) && is_open(calendar, *date) && *date <= today
        });
        if let Some(named) = &self.options.publish_incomplete {
            let is_named = |date: &JstDate| named.is_empty() || named.contains(date);
            let waiting = stored.keys().filter(|date| !before.is_publishable(**date));
            for date in waiting.filter(|date| is_named(date)) {
                if !self.state.complete.contains(date) && self.is_open(*date) {
                    self.state.forced.insert(*date);
                    let expected = *self.state.incomplete.entry(*date).or_insert(0);
                    if self.begins_anew(*date, stored[date], expected) {
                        self.state.begins.insert(*date);
                    }
                    self.release(*date);
                }
            }
        }
        self.tell_not_waiting(&stored);
        let FetchState { complete, forced, .. } = &mut self.state;
        forced.retain(|date| !complete.contains(date));
        self.complete_calendar()?;
        self.report.gaps = self.gaps();
        self.state.left_out.retain(|date| stored.contains_key(date));
        self.report.left_out_days = self.state.left_out.iter().copied().collect();
        self.report.incomplete = self.short_days(&stored);
        self.tell_short_days(&stored);
        self.tell_days_closed_by_the_vendor();
        self.tell_days_not_covered();
        self.tell_strange_days()?;
        self.tell_refused_days();
        self.tell_rewritten_days();
        self.tell_left_out_days();
        self.tell_days_of_an_outage()?;
        self.tell_accepted_in_vain();
        self.tell_unknown_issues();
        if self.state == before { Ok(()) } else { self.save_state() }
    }

    /// The first of the last weekdays that are told again by each run.
    pub(super) fn last_weeks_begin(&self) -> JstDate {
        let to = self.options.to;
        last_weekdays(to, BETTER_DAYS_MAX).first().copied().unwrap_or(to)
    }

    /// Closes the days that the user accepts and of which nobody has anything (rule D12).
    fn close_accepted_days(&mut self, stored: &BTreeMap<JstDate, u64>) -> Result<(), UpdateError> {
        let empty = self.days.iter().filter(|(date, day)| {
            // Of a day that the law closes the user's word is that it was open (D11).
            let may_be_closed = self.is_due(**date) && !holidays::is_closed(**date);
            day.outcome == Some(DayOutcome::NoData) && !stored.contains_key(date) && may_be_closed
        });
        let empty: Vec<JstDate> = empty.map(|(date, _)| *date).collect();
        for date in empty {
            if self.accept_for_good(date) {
                self.close(date)?;
                self.day(date).outcome = Some(DayOutcome::NotDue);
            }
        }
        Ok(())
    }

    /// Notes the days of the last weeks of which odd rows were left out (rule Z5).
    fn tell_left_out_days(&mut self) {
        let back = self.last_weeks_begin();
        for date in self.state.left_out.clone() {
            if self.report.doubts.len() >= REPORT_ROWS_MAX || date < back {
                continue;
            }
            let what = "rows of it are odd and were left out".to_owned();
            let advice = "their issues lack this day; the report of the run that asked for it names them. The vendor \
                          is asked again until it has the day without such rows";
            let (kind, advice) = (DoubtKind::LeftOut, advice.to_owned());
            self.report.doubts.push(DoubtReport { date, kind, what, advice });
        }
    }

    /// Notes the days of the last weeks that are complete by lesser sources, where the better one has not answered
    /// for all issues (rule D7).
    fn tell_days_of_an_outage(&mut self) -> Result<(), UpdateError> {
        let Some(pass) = &self.state.pass else { return Ok(()) };
        let back = self.last_weeks_begin();
        let mut days = self.store.rows().days_of_lesser_sources(back)?;
        days.retain(|date| {
            let is_open = pass.dates.contains(date) && !self.state.fetched.contains(date);
            is_open && self.state.complete.contains(date) && self.is_due(*date)
        });
        for date in &days {
            self.note(format!(
                "{date} is complete without some issues, for which the better source has not answered; it is asked \
                 again by the next run"
            ));
        }
        self.has_open_outage = !days.is_empty();
        Ok(())
    }

    /// Says which days the user wants to be published though nothing of them waits.
    fn tell_not_waiting(&mut self, stored: &BTreeMap<JstDate, u64>) {
        for date in self.options.publish_incomplete.clone().unwrap_or_default() {
            let why = match stored.get(&date) {
                _ if self.state.forced.contains(&date) => continue,
                None => "no row of it is stored",
                Some(_) if self.state.complete.contains(&date) => "it is complete",
                Some(_) => "the exchange was closed",
            };
            self.note(format!("--publish-incomplete {date} changes nothing: {why}"));
        }
    }

    /// Says which days the user accepts though nothing speaks against them.
    fn tell_accepted_in_vain(&mut self) {
        for date in self.options.accept.clone() {
            if self.accepted.contains(&date) {
                continue;
            }
            let why = match self.due_days().check(date) {
                _ if self.days.contains_key(&date) => "nothing that came of it was in doubt",
                Err(NotDue::AfterLast) => "it is after the last day that is wanted",
                Err(NotDue::Closed) => "the exchange was closed, and nobody doubts it",
                Err(NotDue::TooEarly) => "it is not over",
                Err(NotDue::NotCovered) => "the subscription does not cover it",
                Ok(()) => "nothing of it was asked for",
            };
            self.note(format!("--accept {date} changes nothing: {why}"));
        }
    }

    /// Says of which issues that the user names there is nothing, stored or fetched.
    fn tell_unknown_issues(&mut self) {
        let is_unknown =
            |code: &&IssueCode| !self.known.codes.contains(code) && !self.seen.contains(code);
        let unknown: Vec<&str> =
            self.options.codes.iter().filter(is_unknown).map(IssueCode::as_str).collect();
        if !unknown.is_empty() && !self.cancel.is_cancelled() {
            let named = unknown.join(", ");
            self.note(format!(
                "nothing is known of {named}, and no source gave anything: look at what --codes names"
            ));
        }
    }

    /// The days that are not complete, with what there is to say of each.
    fn short_days(&self, stored: &BTreeMap<JstDate, u64>) -> Vec<ShortDayReport> {
        let short = self.state.incomplete.iter().map(|(date, expected)| {
            let rows = stored.get(date).copied().unwrap_or(0);
            let expected = (*expected > 0).then_some(*expected);
            let published = self.state.forced.contains(date);
            let known = self.days.get(date).and_then(|day| day.why.as_ref());
            let why = self.whys.get(date).or(known).cloned();
            let why = why.unwrap_or_else(|| self.not_judged(rows, expected));
            let advice = match self.odd_days.contains_key(date) {
                true => ODD_ADVICE,
                false => advice(rows, published),
            };
            let advice = advice.to_owned();
            ShortDayReport { date: *date, rows, expected, published, why, advice }
        });
        short.collect()
    }

    /// Why a day is not complete that was not held against anything in this run.
    fn not_judged(&self, rows: u64, expected: Option<u64>) -> String {
        match expected {
            _ if rows == 0 => "no source has given any row of it".to_owned(),
            _ if !self.options.codes.is_empty() => format!(
                "it has {rows} rows, and --codes asks for named issues only, which makes no day complete"
            ),
            Some(expected) => {
                format!("it has {rows} rows of {expected}, as a run before has found")
            }
            None => format!("it has {rows} rows, and was not held against anything"),
        }
    }

    /// First and last day that readers may see.
    pub(super) fn published_range(&self) -> Option<(JstDate, JstDate)> {
        let days = [&self.state.complete, &self.state.forced];
        let first = days.iter().filter_map(|days| days.first()).min()?;
        let last = days.iter().filter_map(|days| days.last()).max()?;
        Some((*first, *last))
    }

    /// Business days between published ones that are not published (rule G1).
    pub(super) fn gaps(&self) -> Vec<JstDate> {
        let Some((first, last)) = self.published_range() else { return Vec::new() };
        let days = first.iter_days().take_while(|date| *date <= last);
        days.filter(|date| self.is_open(*date) && !self.state.is_publishable(*date)).collect()
    }

    /// Whether a day must be there by now, as far as this run knows (rules D1 to D5).
    pub(super) fn is_due(&self, date: JstDate) -> bool {
        self.due_days().check(date).is_ok()
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
        // What lies further ahead, a calendar may yet say otherwise.
        let last = self.published_range().map(|(_, last)| last);
        let after = self.calendar.iter().filter(|(date, _)| Some(**date) > last);
        let other_days = after
            .filter(|(date, is_open)| holidays::is_closed(**date) == **is_open)
            .map(|(date, is_open)| (text(date), *is_open));
        let doubts = self.report.doubts.iter().map(|doubt| DayDoubt {
            date: text(&doubt.date),
            kind: doubt.kind.as_str().to_owned(),
            what: doubt.what.clone(),
        });
        let snapshot = match self.store.snapshot()? {
            // What this job published last is not there: its words are still of that.
            None => DatasetStatus::load(&self.options.data).ok().flatten().and_then(|s| s.snapshot),
            known => known,
        };
        let status = DatasetStatus {
            snapshot,
            last_complete: self.state.complete.last().map(text),
            incomplete: incomplete.collect(),
            gaps: self.report.gaps.iter().map(text).collect(),
            doubts: doubts.collect(),
            other_days: other_days.collect(),
            sources: self.store.rows().sources()?,
            ..DatasetStatus::default()
        };
        let data = &self.options.data;
        status.store(data).map_err(|source| UpdateError::Io { path: own_folder(data), source })
    }
}
