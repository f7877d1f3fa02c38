//! Fetching whole days.

use std::collections::BTreeSet;

use chrono::Datelike;
use domain::JstDate;

use super::judge::Verdict;
use super::plan::{last_weekdays, weekdays};
use super::report::DayOutcome;
use super::rules::{DueDays, NotDue};
use super::slots::{NoAnswer, Slots};
use super::{Job, Phase, UpdateError};
use crate::limits::{
    BETTER_DAYS_MAX, BETTER_FAILURES_MAX, COMPLETE_PERCENT, DAYS_DEFAULT, MASTER_DAYS_MAX,
    ODD_PERCENT_MAX,
};
use crate::price_store::OpenDays;
use crate::row::{DailyRow, IssueCode, SourceKind};
use crate::source::{Answer, OddRow};

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

/// The days of a run whose list of issues is asked for: all, or of a long run the first of each week and
/// the last.
fn list_days(wanted: &[JstDate]) -> BTreeSet<JstDate> {
    let is_daily = wanted.len() <= MASTER_DAYS_MAX;
    let week = |date: &JstDate| date.iso_week();
    let firsts = wanted.chunk_by(|one, next| !is_daily && week(one) == week(next));
    firsts.filter_map(<[JstDate]>::first).chain(wanted.last()).copied().collect()
}

impl Job<'_> {
    /// Fetches everything that is wanted.
    pub(super) fn fetch(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        self.renew_calendar(slots)?;
        let wanted = self.wanted();
        for date in &wanted {
            self.day(*date);
        }
        self.list_days = list_days(&wanted);
        let mut left = self.fetch_days(slots, &wanted)?;
        self.fetch_better_rows(slots)?;
        self.fetch_closed_days(slots)?;
        if !self.cancel.is_cancelled() {
            let open = self.days_without_trading(slots, &left.empty);
            left.failed.extend(open);
            self.flush()?;
            // A source that has nothing for some dates is left out for these only.
            let with_days = slots.with_days();
            let hopeless = std::mem::take(&mut left.hopeless);
            self.fetch_issues(slots, &left.failed, None)?;
            self.fetch_newly_listed(slots, &left.failed)?;
            self.fetch_issues(slots, &hopeless, with_days)?;
        }
        Ok(())
    }

    /// The days that are due and that earlier runs have not fetched.
    fn wanted(&mut self) -> Vec<JstDate> {
        let from = self.first_wanted();
        self.report.from = Some(from);
        let (mut wanted, mut others) = (Vec::new(), Vec::new());
        let (mut known, mut closed) = (0, 0);
        for date in weekdays(from, self.options.to) {
            let is_done = self.state.fetched.contains(&date) || self.is_known_empty(date);
            match self.due_days().check(date) {
                _ if is_done && !self.options.refetch => known += 1,
                Ok(()) => wanted.push(date),
                Err(NotDue::Closed) => closed += 1,
                Err(NotDue::AfterLast | NotDue::TooEarly | NotDue::NotCovered) => others.push(date),
            }
        }
        for date in others {
            self.day(date).outcome = Some(DayOutcome::NotDue);
        }
        (self.report.days_known, self.report.days_closed) = (known, closed);
        wanted
    }

    /// Whether earlier runs have found out that nobody has anything of a day (rule D6).
    fn is_known_empty(&self, date: JstDate) -> bool {
        let first = self.published_range().map(|(first, _)| first);
        self.state.closed.contains(&date)
            && !self.calendar.contains_key(&date)
            && first.is_none_or(|first| date < first)
    }

    /// Where the run begins: after the last complete day, earlier where a day before is not complete,
    /// and not later than the user wants.
    fn first_wanted(&self) -> JstDate {
        let to = self.options.to;
        let after = self.state.complete.last().and_then(JstDate::succ_opt);
        let short = self.state.incomplete.keys().next().copied();
        let gap = self.gaps().first().copied();
        // What was never had needs no word of the user's.
        let first = self.published_range().map(|(first, _)| first);
        let accepted = self.options.accept.iter().filter(|date| {
            self.known.dates.contains_key(*date) || first.is_some_and(|first| **date >= first)
        });
        let accepted = accepted.min().copied();
        let begins = [self.options.from, after, short, gap, accepted].into_iter().flatten().min();
        let default = || last_weekdays(to, DAYS_DEFAULT).first().copied();
        match begins {
            // Nothing is complete yet and nobody has said how far back to look.
            Some(begins) if self.options.from.is_some() || after.is_some() => begins,
            _ => [begins, default()].into_iter().flatten().min().unwrap_or(to),
        }
    }

    /// Asks again for the complete days of the last weeks that a lesser source gave while the vendor was
    /// down (rule B1), whose splits and raw prices are the vendor's only, for those of which it gave an odd
    /// row (B2), for those of which it told no factor (B3), for the last ones whatever is known of them
    /// (B4), and for those of which an answer was refused or that were rewritten (B5). While it is down, they stay as they are.
    fn fetch_better_rows(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        let back = last_weekdays(self.options.to, BETTER_DAYS_MAX);
        let (Some(place), Some(from)) = (slots.with_days(), back.first().copied()) else {
            return Ok(());
        };
        if !self.options.codes.is_empty() || slots.out(place).is_some() {
            return Ok(());
        }
        let mut dates = self.store.rows().days_of_lesser_sources(from)?;
        dates.extend(self.state.left_out.range(from..));
        dates.retain(|date| !self.state.fetched.contains(date));
        let silent = self.store.rows().silent_days(from)?;
        dates.extend(&silent);
        let again: BTreeSet<JstDate> = self.last_complete_days().collect();
        // What these say is told as before, unless it is taken.
        let refused: BTreeSet<JstDate> = self
            .state
            .refused
            .range(from..)
            .filter(|date| !again.contains(date))
            .copied()
            .collect();
        let doubted: BTreeSet<JstDate> = &refused | &self.state.rewritten;
        dates.extend(&doubted);
        let lacking = dates.clone();
        dates.extend(&again);
        dates.retain(|date| {
            let is_complete = self.state.complete.contains(date);
            is_complete && self.is_due(*date) && !self.days.contains_key(date)
        });
        // Days that lack something come before those that are looked at whatever is known.
        let (first, then): (Vec<JstDate>, Vec<JstDate>) =
            dates.into_iter().partition(|date| lacking.contains(date));
        let mut failures: u32 = 0;
        for date in first.into_iter().chain(then) {
            if self.cancel.is_cancelled() {
                break;
            }
            // What the subscription covers may be known only now.
            if !self.is_due(date) {
                continue;
            }
            if failures == BETTER_FAILURES_MAX {
                self.note(format!(
                    "{date} and what else was to be asked for again stays as it is: the vendor failed for \
                     {failures} days one after the other"
                ));
                break;
            }
            // What was kept of it on this machine tells no more than what is stored.
            if (silent.contains(&date) || again.contains(&date) || doubted.contains(&date))
                && let Err(problem) = slots.forget_day(place, date)
            {
                self.note(problem);
            }
            let mut is_out = false;
            match self.whole_day(slots, place, date)? {
                Ok((answer, _)) if answer.rows.is_empty() => {
                    if let Some(why) = self.withdrawal(date)?
                        && !refused.contains(&date)
                    {
                        self.refuse_withdrawal(date, &why);
                    }
                }
                Ok((_, Verdict::Refused(why))) if refused.contains(&date) => {
                    self.note(format!("an answer for {date} was refused again: {why}"));
                    self.days.remove(&date);
                }
                Ok((_, Verdict::Refused(why))) => self.refuse(date, &why),
                Ok((_, Verdict::Odd(odd))) => self.leave_odd_day(date, odd),
                Ok((answer, _)) => {
                    let stored = self.known.dates.get(&date).copied().unwrap_or(0);
                    let is_all = answer.rows.len() as u64 * 100 >= stored * COMPLETE_PERCENT;
                    if !is_all && let Err(problem) = slots.forget_day(place, date) {
                        self.note(problem);
                    }
                    self.take_whole_day(slots, place, date, answer, is_all)?;
                }
                Err(NoAnswer::Failed { covered: Some((first, last)), .. }) => {
                    self.cover(first, last)
                }
                Err(NoAnswer::Failed { reason, is_odd, .. }) => {
                    let how = match self.state.left_out.contains(&date) {
                        true => "without the rows that were left out",
                        false if silent.contains(&date) => "without the factors that were not told",
                        false
                            if again.contains(&date)
                                || doubted.contains(&date)
                                || self.state.fetched.contains(&date) =>
                        {
                            "as it was"
                        }
                        false => "as a lesser source gave it",
                    };
                    self.note(format!("{date} stays {how}: {}", reason.reason));
                    is_out = !is_odd;
                }
                Err(NoAnswer::Stopped) => break,
            }
            failures = if is_out { failures + 1 } else { 0 };
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Asks for the days of the last weeks that the vendor's calendar alone closes: rows say better what was open
    /// (rule D9).
    fn fetch_closed_days(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        let Some(place) = slots.with_days().filter(|_| self.options.codes.is_empty()) else {
            return Ok(());
        };
        let back = last_weekdays(self.options.to, BETTER_DAYS_MAX);
        for date in self.days_closed_by_the_vendor() {
            let is_asked = slots.out(place).is_none() && !self.cancel.is_cancelled();
            let is_known =
                self.state.settled.contains(&date) || self.options.accept.contains(&date);
            if !is_asked || is_known || !back.contains(&date) {
                continue;
            }
            let due = DueDays { calendar: &OpenDays::new(), ..self.due_days() };
            if due.check(date).is_err() {
                continue;
            }
            match self.whole_day(slots, place, date)? {
                Ok((answer, Verdict::Complete)) => {
                    self.open(date, answer.rows.len() as u64)?;
                    self.take_whole_day(slots, place, date, answer, true)?;
                }
                // Nothing is known of it but what the calendar says.
                Ok(_) => _ = self.days.remove(&date),
                Err(NoAnswer::Failed { .. }) => {}
                Err(NoAnswer::Stopped) => break,
            }
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// The last complete days that this run has not asked for otherwise (rule B4).
    fn last_complete_days(&self) -> impl Iterator<Item = JstDate> {
        let complete = self.state.complete.range(..=self.options.to).rev().copied();
        let complete = complete.filter(|date| !self.days.contains_key(date) && self.is_due(*date));
        complete.take(self.options.recheck)
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
            if self.due_days().check(*date) == Err(NotDue::NotCovered) {
                self.day(*date).outcome = Some(DayOutcome::NotDue);
                continue;
            }
            if by_issue {
                match slots.kept_day(place, *date) {
                    Some(answer) => self.take_day(kind, *date, answer, false),
                    None => _ = left.failed.insert(*date),
                }
                continue;
            }
            match self.whole_day(slots, place, *date)? {
                Ok((answer, _)) if answer.rows.is_empty() => match self.withdrawal(*date)? {
                    Some(why) => self.refuse_withdrawal(*date, &why),
                    None => _ = left.empty.insert(*date),
                },
                Ok((_, Verdict::Refused(why))) => self.refuse(*date, &why),
                Ok((_, Verdict::Odd(odd))) => self.leave_odd_day(*date, odd),
                Ok((answer, verdict)) => {
                    let is_complete = verdict == Verdict::Complete;
                    self.take_whole_day(slots, place, *date, answer, is_complete)?;
                }
                Err(NoAnswer::Stopped) => break,
                Err(NoAnswer::Failed { covered: Some((first, last)), .. })
                    if !(first..=last).contains(date) =>
                {
                    self.cover(first, last);
                    self.day(*date).outcome = Some(DayOutcome::NotDue);
                }
                Err(NoAnswer::Failed { reason, is_odd: true, .. }) => {
                    let day = self.day(*date);
                    day.outcome = Some(DayOutcome::Failed);
                    day.reasons.push(reason);
                }
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

    /// Asks for a whole day, and tells whether it is complete. One that is not is not kept on this
    /// machine, so that it is asked for again.
    fn whole_day(
        &mut self,
        slots: &mut Slots,
        place: usize,
        date: JstDate,
    ) -> Result<Result<(Answer, Verdict), NoAnswer>, UpdateError> {
        loop {
            let mut answer = match slots.day(place, date) {
                Ok(answer) => answer,
                Err(none) => return Ok(Err(none)),
            };
            if answer.rows.is_empty() || !self.options.codes.is_empty() {
                return Ok(Ok((answer, Verdict::Short)));
            }
            self.leave_far_rows_out(date, &mut answer)?;
            let verdict = self.judge(Some(&mut *slots), date, &answer.rows)?;
            if verdict == Verdict::Complete {
                return Ok(Ok((answer, verdict)));
            }
            // What was kept by an earlier run may have been short then.
            let forgotten = slots.forget_day(place, date);
            let asks_again = answer.cached && forgotten.is_ok();
            if let Err(problem) = forgotten {
                self.note(problem);
            }
            if !asks_again {
                return Ok(Ok((answer, verdict)));
            }
        }
    }

    /// Takes out of an answer the few rows whose prices are too far from the last closes (rule Q5 of
    /// [`SourceKind`]); where they are more, the day is odd (E11).
    fn leave_far_rows_out(
        &mut self,
        date: JstDate,
        answer: &mut Answer,
    ) -> Result<(), UpdateError> {
        let far = self.far_rows(date, &answer.rows)?;
        let are_few = far.len() * 100 <= answer.rows.len() * ODD_PERCENT_MAX;
        if far.is_empty() || !are_few || self.accept(date) {
            return Ok(());
        }
        // What is stored has been accepted.
        let stored = self.store.rows().rows_of(date)?;
        for row in far {
            let is_it = |one: &DailyRow| one.code == row.code;
            let Some(place) = answer.rows.iter().position(is_it) else { continue };
            let known = stored.iter().find(|one| is_it(one));
            if known.is_some_and(|known| known.prices() == answer.rows[place].prices()) {
                continue;
            }
            let told = answer.rows.remove(place);
            let reason = format!("{row}; where that is right, take it with --accept and the date");
            let (row, text) = (format!("{} on {date}", row.code), told.words());
            answer.odd.push(OddRow { row, text, reason });
        }
        Ok(())
    }

    /// Takes a day of the source that has whole ones, and what it takes back of it.
    fn take_whole_day(
        &mut self,
        slots: &mut Slots,
        place: usize,
        date: JstDate,
        answer: Answer,
        is_complete: bool,
    ) -> Result<(), UpdateError> {
        if is_complete {
            let gone = self.taken_back(slots, date, &answer)?;
            self.batch.gone.extend(gone);
        }
        self.take_day(slots.kind(place), date, answer, is_complete);
        Ok(())
    }

    /// Takes a day that came in one piece.
    fn take_day(&mut self, kind: SourceKind, date: JstDate, answer: Answer, is_complete: bool) {
        let Answer { mut rows, odd, .. } = answer;
        self.seen_days.forget(date);
        // The vendor has it after all.
        self.state.settled.remove(&date);
        if is_complete {
            self.batch.days.push((date, odd.is_empty()));
        }
        let codes = &self.options.codes;
        if codes.is_empty() {
            self.state.refused.remove(&date);
        }
        if codes.is_empty() && !odd.is_empty() {
            self.state.left_out.insert(date);
            self.state.fetched.remove(&date);
        }
        self.report.left_out(kind, odd);
        if !codes.is_empty() {
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
        for date in empty.difference(&traded).copied() {
            if let Some(reason) = outage.as_ref().filter(|_| !answered) {
                let day = self.day(date);
                day.outcome = Some(DayOutcome::Failed);
                day.reasons.push(reason.clone());
                continue;
            }
            self.day(date).outcome = Some(DayOutcome::NoData);
            // Prices of a young day may still come.
            if answered && !self.is_young(date) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_asked_for_each_day_or_each_week() {
        let last = "2026-01-09".parse().unwrap();
        let of = |count: usize| {
            let days = last_weekdays(last, u32::try_from(count).unwrap());
            (list_days(&days), days)
        };
        let (lists, days) = of(MASTER_DAYS_MAX);
        assert!(lists.iter().eq(&days));
        let (lists, _) = of(MASTER_DAYS_MAX + 1);
        let lists: Vec<String> = lists.iter().map(ToString::to_string).collect();
        let ends = (lists[..3].join(" "), lists[lists.len() - 2..].join(" "));
        let expected = ("2025-10-17 2025-10-20 2025-10-27", "2026-01-05 2026-01-09");
        assert_eq!((ends.0.as_str(), ends.1.as_str()), expected);
        assert_eq!((lists.len(), of(1_000).0.len()), (14, 201));
        assert!(list_days(&[]).is_empty());
    }
}
