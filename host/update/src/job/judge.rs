//! Holds a whole day against the rules: is it complete, may readers see it, does a person have to look.

use std::collections::BTreeSet;
use std::rc::Rc;

use chrono::Datelike;
use domain::JstDate;

use super::plan::months_between;
use super::report::FindingReport;
use super::slots::Slots;
use super::{Job, UpdateError};
use crate::checks::{self, Beside, Day, Finding, Severity};
use crate::limits::{
    COMPLETE_PERCENT, COMPLETE_PERCENT_MIN, DAILY_LISTS_MAX, FAR_TIMES, FINDING_ROWS_MAX,
    LOST_ISSUES_MIN, ODD_PERCENT_MAX, REPEATED_DAYS,
};
use crate::row::{DailyRow, IssueCode, SourceKind};
use crate::source::IssueList;

/// What an answer makes of its day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is complete, or the user accepts it as it is.
    Taken,
    /// Its rows are kept, and it waits.
    Waits,
    /// Nothing of the answer is taken.
    Refused,
}

/// The issues that a day must have.
struct Standard {
    issues: BTreeSet<IssueCode>,
    /// Percent of them that it must have.
    percent: u64,
    /// Whose issues they are.
    whose: String,
}

impl Standard {
    fn is_met(&self, codes: &BTreeSet<IssueCode>) -> bool {
        let found = codes.intersection(&self.issues).count() as u64;
        found > 0 && found * 100 >= self.issues.len() as u64 * self.percent
    }

    fn words(&self, codes: &BTreeSet<IssueCode>) -> String {
        let found = codes.intersection(&self.issues).count();
        let Self { issues, percent, whose } = self;
        format!("{found} of the {} {whose} have rows, and {percent} % are needed", issues.len())
    }
}

impl Job<'_> {
    /// Holds the rows of a day against all rules, and says what becomes of it. `is_whole`: they came in one answer.
    pub(super) fn judge(
        &mut self,
        mut slots: Option<&mut Slots>,
        date: JstDate,
        rows: &[DailyRow],
        is_whole: bool,
    ) -> Result<Verdict, UpdateError> {
        let codes: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let stored = self.stored_rows(date)?;
        let is_published = is_whole && self.state.is_published(date);
        let was_complete = is_published && self.state.complete.contains(&date);
        let nearest = self.nearest_complete(date)?;
        let listed_before = self.listed(date);
        // Of a complete day only a list says that an issue is gone (rule `taken_back`).
        let lacks = stored.iter().any(|row| !codes.contains(&row.code));
        let is_asked = if was_complete { lacks } else { self.wants_list(date) };
        if is_asked {
            self.ask_for_list(slots.as_deref_mut(), date);
        }
        let mut standard = self.standard(date, &stored, nearest.as_deref(), was_complete);
        if !standard.as_ref().is_some_and(|known| known.is_met(&codes)) {
            self.ask_for_list(slots, date);
            standard = self.standard(date, &stored, nearest.as_deref(), was_complete);
        }
        let is_complete = match &standard {
            Some(standard) => standard.is_met(&codes),
            None => is_whole && !codes.is_empty(),
        };
        let listed = self.listed(date);
        let mut findings = self.findings(date, rows, nearest.as_deref(), listed.as_ref())?;
        if is_published {
            // What readers see already is not refused for what it was, by the list that it had.
            let listed = if was_complete { listed_before } else { listed };
            let known = self.findings(date, &stored, nearest.as_deref(), listed.as_ref())?;
            let is_new = |found: &Finding| {
                !known.iter().any(|one| one.check == found.check && found.issues <= one.issues)
            };
            findings.retain(is_new);
            let why = standard.as_ref().filter(|_| was_complete && !is_complete);
            let why = why.map(|known| known.words(&codes));
            findings.extend(why.map(|why| published_stays(why, Vec::new())));
            findings.extend(lost(rows, &stored));
        }
        self.day(date).expected = standard.as_ref().map(|known| known.issues.len() as u64);
        let is_accepted = self.is_named(date);
        if is_accepted {
            for finding in findings.drain(..) {
                self.note(format!("{date} is accepted as it is: {}", finding.what));
            }
        }
        let is_refused = findings.iter().any(|found| found.severity == Severity::Refuse);
        let is_accepted = is_accepted || (is_published && !was_complete);
        if !is_refused && !is_complete && !is_accepted {
            let why = standard.map_or_else(
                || {
                    "its rows came in several answers, and there is no list and no complete day to compare with"
                        .to_owned()
                },
                |standard| standard.words(&codes),
            );
            self.day(date).why = Some(why);
            return Ok(Verdict::Waits);
        }
        if standard.is_none() && is_complete && !is_accepted {
            let what = format!(
                "first_day: there is no list and no other complete day, so nothing proves that its {} rows are all",
                codes.len()
            );
            let (check, severity, rows) = ("first_day", Severity::Warn, Vec::new());
            findings.push(Finding { check, severity, issues: codes.len() as u64, what, rows });
        }
        self.tell(date, findings);
        if is_refused {
            return Ok(Verdict::Refused);
        }
        match is_complete {
            true => {
                self.state.complete.insert(date);
                self.state.accepted.remove(&date);
                self.remember(Day::new(date, rows));
                self.keep_list(date);
            }
            false if self.state.complete.contains(&date) => {}
            false => _ = self.state.accepted.insert(date),
        }
        self.state.closed.remove(&date);
        if !is_published {
            self.release(date);
        }
        Ok(Verdict::Taken)
    }

    /// What a day must have (rule `complete`): the issues of its list, or those that readers see already, or those
    /// of the nearest complete day.
    fn standard(
        &self,
        date: JstDate,
        stored: &[DailyRow],
        nearest: Option<&Day>,
        was_complete: bool,
    ) -> Option<Standard> {
        if let Some(listed) = self.listed(date) {
            let whose = "issues that are listed for it".to_owned();
            return Some(Standard { issues: listed, percent: COMPLETE_PERCENT, whose });
        }
        if was_complete {
            let issues = stored.iter().map(|row| row.code).collect();
            let whose = "issues that are published of it".to_owned();
            return Some(Standard { issues, percent: COMPLETE_PERCENT, whose });
        }
        let day = nearest?;
        let missing = (100 - COMPLETE_PERCENT) * (1 + months_between(day.date, date));
        let percent = 100_u64.saturating_sub(missing).max(COMPLETE_PERCENT_MIN);
        let whose = format!("issues of {}, the nearest complete day,", day.date);
        Some(Standard { issues: day.codes(), percent, whose })
    }

    fn findings(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        nearest: Option<&Day>,
        listed: Option<&BTreeSet<IssueCode>>,
    ) -> Result<Vec<Finding>, UpdateError> {
        let before = self.days_before(date)?;
        let after = self.complete_after(date).map(|day| self.complete_day(day)).transpose()?;
        let business_days = nearest.filter(|day| day.date < date).map(|day| {
            let later = day.date.iter_days().skip(1).take_while(|one| *one <= date);
            // A refused day between does not widen the limits: its fault may go on.
            let is_refused = |one: &JstDate| self.days.get(one).is_some_and(|day| day.is_refused);
            later.filter(|one| self.is_open(*one) && (*one == date || !is_refused(one))).count()
        });
        let beside = Beside {
            nearest,
            months: nearest.map_or(0, |day| months_between(day.date, date)),
            business_days,
            others: before.iter().chain(&after).map(AsRef::as_ref).collect(),
            listed,
        };
        let mut findings = checks::findings(date, rows, &beside);
        findings.extend(unusable(rows, &before));
        Ok(findings)
    }

    /// Judges the days that wait by all rows that are stored of them.
    pub(super) fn judge_stored(
        &mut self,
        mut slots: Option<&mut Slots>,
    ) -> Result<(), UpdateError> {
        // What was fetched for named issues never makes a day (rule `codes`).
        if !self.options.codes.is_empty() || self.cancel.is_cancelled() {
            return Ok(());
        }
        self.known = self.store.rows().known()?;
        for date in self.waiting() {
            let has_rows = self.known.dates.contains_key(&date);
            let is_judged = self.days.get(&date).is_some_and(|day| day.is_judged);
            if has_rows && !is_judged {
                let rows = self.stored_rows(date)?;
                if self.judge(slots.as_deref_mut(), date, &rows, false)? == Verdict::Refused {
                    self.day(date).is_refused = true;
                }
            }
        }
        self.flush()
    }

    /// The complete days before a day, the nearest first.
    fn complete_before(&self, date: JstDate) -> impl Iterator<Item = JstDate> {
        self.state.complete.range(..date).rev().copied()
    }

    /// The first complete day after a day.
    fn complete_after(&self, date: JstDate) -> Option<JstDate> {
        self.state.complete.range(date..).find(|day| **day != date).copied()
    }

    /// The nearest complete day: before a day, or after it where there is none before.
    fn nearest_complete(&mut self, date: JstDate) -> Result<Option<Rc<Day>>, UpdateError> {
        let day = self.complete_before(date).next().or_else(|| self.complete_after(date));
        day.map(|day| self.complete_day(day)).transpose()
    }

    /// The rows of a complete day; those of the last ones are kept in memory.
    fn complete_day(&mut self, date: JstDate) -> Result<Rc<Day>, UpdateError> {
        if let Some(day) = self.recent.get(&date) {
            return Ok(Rc::clone(day));
        }
        // Its rows may be on their way.
        if self.batch.count > 0 {
            self.flush()?;
        }
        let rows = self.store.rows().rows_of(date)?;
        Ok(self.remember(Day::new(date, &rows)))
    }

    fn remember(&mut self, day: Day) -> Rc<Day> {
        let (date, day) = (day.date, Rc::new(day));
        // Those before a day, the one after it, and the day itself.
        while self.recent.len() > REPEATED_DAYS + 2 {
            let ends = [self.recent.keys().next(), self.recent.keys().next_back()];
            let ends = ends.into_iter().flatten().copied();
            let Some(far) = ends.max_by_key(|end| (*end - date).num_days().abs()) else { break };
            self.recent.remove(&far);
        }
        self.recent.insert(date, Rc::clone(&day));
        day
    }

    /// The rows that are stored of a day, whoever may see them.
    pub(super) fn stored_rows(&mut self, date: JstDate) -> Result<Vec<DailyRow>, UpdateError> {
        match self.known.dates.contains_key(&date) {
            true => Ok(self.store.rows().rows_of(date)?),
            false => Ok(Vec::new()),
        }
    }

    /// The last complete days before a day, the nearest first.
    pub(super) fn days_before(&mut self, date: JstDate) -> Result<Vec<Rc<Day>>, UpdateError> {
        let days: Vec<JstDate> = self.complete_before(date).take(REPEATED_DAYS).collect();
        days.into_iter().map(|day| self.complete_day(day)).collect()
    }

    /// The issues that are listed on a date, by a list of this run or an earlier one.
    pub(super) fn listed(&self, date: JstDate) -> Option<BTreeSet<IssueCode>> {
        if let Some(list) = self.lists_of_run.get(&date) {
            return list.as_ref().map(|list| list.keys().copied().collect());
        }
        self.lists.lists().get(&date)?;
        let issues = self.lists.issues().map(|(code, _)| code);
        let listed = issues.filter(|code| self.lists.at(code, date).is_some());
        Some(listed.filter_map(|code| code.parse().ok()).collect())
    }

    /// Whether the list of a date is asked for whatever its rows say: of each day, in a long run of the first day of
    /// each week.
    fn wants_list(&self, date: JstDate) -> bool {
        let before = self.days.range(..date).next_back();
        self.days.len() <= DAILY_LISTS_MAX
            || before.is_none_or(|(day, _)| day.iso_week() != date.iso_week())
    }

    /// Asks for the list of a date, once a run.
    pub(super) fn ask_for_list(&mut self, slots: Option<&mut Slots>, date: JstDate) {
        let Some(slots) = slots else { return };
        if self.lists_of_run.contains_key(&date) || self.cancel.is_cancelled() {
            return;
        }
        let list: Option<IssueList> = match slots.issue_list(date) {
            None => return,
            Some(Ok(list)) => list.filter(|list| !list.is_empty()),
            Some(Err(error)) => {
                if let Some(problem) = Slots::list_problem(&error) {
                    self.note(format!(
                        "the list of issues of {date} did not come, so the job compares the day with other \
                         days: {problem}"
                    ));
                }
                None
            }
        };
        self.lists_of_run.insert(date, list);
    }

    /// Keeps the list of a day that is complete with it.
    fn keep_list(&mut self, date: JstDate) {
        let Some(list) = self.lists_of_run.remove(&date).flatten() else { return };
        let list = list.iter().map(|(code, info)| (code.as_str().into(), info.clone())).collect();
        match self.lists.insert(date, list) {
            Ok(is_new) => {
                self.lists_are_new |= is_new;
                self.report.listed.lists += 1;
            }
            Err(error) => {
                self.note(format!("the list of issues of {date} cannot be stored: {error}"))
            }
        }
    }

    /// Puts findings into the report, and says them at once.
    pub(super) fn tell(&mut self, date: JstDate, findings: Vec<Finding>) {
        for Finding { check, severity, issues, what, rows } in findings {
            let is_published = self.state.is_published(date);
            let advice = match severity {
                Severity::Warn => {
                    "this alone holds no day back; compare the day with the vendor's own page"
                }
                Severity::Refuse if is_published => {
                    "the published day stays unchanged; the next runs ask again, and --accept with the date \
                     takes the answer"
                }
                Severity::Refuse => {
                    "the day waits; the next run asks again, and --accept with the date takes it as it is"
                }
            };
            tracing::warn!(%date, check, what, "a day needs a check");
            let (check, advice) = (check.to_owned(), advice.to_owned());
            self.report.findings.push(FindingReport {
                date,
                check,
                severity,
                issues,
                what,
                rows,
                advice,
            });
        }
    }
}

/// What is found in an answer for a published day that would take too much away.
pub(super) fn published_stays(why: String, rows: Vec<String>) -> Finding {
    let (check, severity) = ("published_stays", Severity::Refuse);
    let what = format!("published_stays: an answer was refused, because {why}");
    Finding { check, severity, issues: rows.len() as u64, what, rows }
}

/// What is found where more rows than a few have prices that cannot be right (rule `unusable`).
fn unusable(rows: &[DailyRow], before: &[Rc<Day>]) -> Option<Finding> {
    let far = rows.iter().filter_map(|row| {
        let why = checks::far(row, before.iter().map(AsRef::as_ref))?;
        Some(format!("{}: {why}", row.code))
    });
    let far: Vec<String> = far.collect();
    let issues = far.len() as u64;
    let is_too_much = far.len() * 100 > rows.len() * ODD_PERCENT_MAX;
    is_too_much.then(|| {
        let what = format!(
            "unusable: {issues} of {} rows have a price over {FAR_TIMES} times away from the last close; at \
             most {ODD_PERCENT_MAX} % is allowed",
            rows.len()
        );
        let rows = far.into_iter().take(FINDING_ROWS_MAX).collect();
        Finding { check: "unusable", severity: Severity::Refuse, issues, what, rows }
    })
}

/// What an answer would take away from a published day.
fn lost(rows: &[DailyRow], stored: &[DailyRow]) -> Option<Finding> {
    let given = Day::new(stored.first()?.date, rows);
    let loses = |known: &&DailyRow| {
        let Some(row) = given.rows.get(&known.code) else { return false };
        fn goes<T: Default + PartialEq>(known: Option<T>, new: Option<T>) -> bool {
            let has = |value: Option<T>| value.is_some_and(|value| value != T::default());
            has(known) && !has(new)
        }
        row.source.rank() >= SourceKind::rank(known.source)
            && (goes(known.close, row.close)
                || goes(known.volume, row.volume)
                || goes(known.turnover, row.turnover))
    };
    let lost: Vec<String> =
        stored.iter().filter(loses).map(|row| format!("{}: {}", row.code, row.words())).collect();
    let is_too_much = lost.len() >= LOST_ISSUES_MIN && lost.len() * 100 > stored.len();
    is_too_much.then(|| {
        let why = format!(
            "it would remove a price, the volume or the turnover of {} of {} issues",
            lost.len(),
            stored.len()
        );
        let issues = lost.len() as u64;
        let rows = lost.into_iter().take(FINDING_ROWS_MAX).collect();
        Finding { issues, ..published_stays(why, rows) }
    })
}
