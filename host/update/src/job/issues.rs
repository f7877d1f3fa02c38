//! Fetching issue by issue what did not come as a whole day: from the first source that succeeds.

use std::collections::BTreeSet;

use domain::JstDate;

use super::report::{DayOutcome, Reason};
use super::rules::NotDue;
use super::slots::{NoAnswer, Slots};
use super::{Job, Phase, UpdateError};
use crate::fetch_state::IssuePass;
use crate::limits::NEW_ISSUES_PERCENT_MAX;
use crate::row::IssueCode;
use crate::source::Answer;

/// How fetching an issue ended.
enum Issue {
    /// A source gave rows, or none has any.
    Done,
    /// No source gave rows and at least one failed.
    Failed(Vec<Reason>),
    /// Some of the dates are not covered by the subscription, which is known now.
    NotCovered,
    /// The user wants the run to end.
    Stopped,
}

impl Job<'_> {
    /// Fetches these days of every wanted issue, without the source at the place `without`.
    pub(super) fn fetch_issues(
        &mut self,
        slots: &mut Slots,
        dates: &BTreeSet<JstDate>,
        without: Option<usize>,
    ) -> Result<(), UpdateError> {
        self.fetch_codes(slots, dates, without, &self.codes())
    }

    fn fetch_codes(
        &mut self,
        slots: &mut Slots,
        dates: &BTreeSet<JstDate>,
        without: Option<usize>,
        codes: &BTreeSet<IssueCode>,
    ) -> Result<(), UpdateError> {
        let indices: Vec<usize> = slots.indices().filter(|place| Some(*place) != without).collect();
        if dates.is_empty() || self.cancel.is_cancelled() {
            return Ok(());
        }
        let out: Vec<Reason> = indices.iter().filter_map(|place| slots.out(*place)).collect();
        if codes.is_empty() || out.len() == indices.len() {
            if codes.is_empty() {
                self.note(
                    "no issue is known yet, so days cannot be fetched issue by issue; name some \
                     with --codes, or load history with --from-files"
                        .to_owned(),
                );
            }
            self.end_days(dates, DayOutcome::Failed, &out);
            return Ok(());
        }
        let done = self.open_pass(dates);
        let of = codes.len() as u64;
        let (mut failed, mut stopped) = (0_u64, false);
        let mut dates = dates.clone();
        for (index, code) in codes.iter().enumerate() {
            self.watch.progress(Phase::Issues, index as u64, of, code.as_str());
            if done.contains(code) {
                continue;
            }
            let mut fetched = self.fetch_issue(slots, &indices, *code, &dates);
            if let Issue::NotCovered = fetched {
                self.leave_out(&mut dates);
                fetched = self.fetch_issue(slots, &indices, *code, &dates);
            }
            match fetched {
                Issue::Done => self.batch.issues.push(*code),
                Issue::Failed(reasons) => {
                    failed += 1;
                    self.report.issue_failed(*code, reasons);
                }
                Issue::NotCovered => {
                    failed += 1;
                    self.report.issue_failed(*code, Vec::new());
                }
                Issue::Stopped => stopped = true,
            }
            self.flush_if_full()?;
            if stopped || self.cancel.is_cancelled() {
                self.flush()?;
                return Ok(());
            }
        }
        self.watch.progress(Phase::Issues, of, of, "");
        self.flush()?;
        self.release_held()?;
        self.close_pass(&dates, failed, &out)
    }

    /// Fetches the issues that the lists of these days have and nobody knew: new ones.
    pub(super) fn fetch_newly_listed(
        &mut self,
        slots: &mut Slots,
        dates: &BTreeSet<JstDate>,
    ) -> Result<(), UpdateError> {
        // A pass that has not come to its end is gone on with by the next run.
        if !self.options.codes.is_empty() || self.state.pass.is_some() {
            return Ok(());
        }
        let (known, mut new) = (self.codes(), BTreeSet::new());
        for date in dates {
            let rows = self.store.rows().codes_of(*date)?;
            if !rows.is_empty() {
                self.ask_for_list(slots, *date, &rows);
                new.extend(self.listed.get(date).into_iter().flatten().copied());
                new.extend(
                    self.doubted.get(date).into_iter().flat_map(|list| list.keys().copied()),
                );
            }
        }
        new.retain(|code| !known.contains(code));
        let are_few = new.len() * 100 <= known.len() * NEW_ISSUES_PERCENT_MAX;
        match are_few && !new.is_empty() {
            true => self.fetch_codes(slots, dates, None, &new),
            false => Ok(()),
        }
    }

    /// Takes the days away that the subscription does not cover.
    fn leave_out(&mut self, dates: &mut BTreeSet<JstDate>) {
        for date in dates.clone() {
            if self.due_days().check(date) == Err(NotDue::NotCovered) {
                dates.remove(&date);
                self.day(date).outcome = Some(DayOutcome::NotDue);
            }
        }
    }

    /// Remembers what is being fetched, and tells which issues an interrupted run of the same day
    /// has fetched already.
    fn open_pass(&mut self, dates: &BTreeSet<JstDate>) -> BTreeSet<IssueCode> {
        let made = self.today();
        let same = |pass: &IssuePass| pass.made == made && pass.dates.is_superset(dates);
        let earlier = self.state.pass.take().filter(|pass| same(pass) && !self.options.refetch);
        let stored: BTreeSet<IssueCode> = self.known.codes.iter().copied().collect();
        let mut pass = earlier.unwrap_or_else(|| IssuePass {
            made,
            dates: dates.clone(),
            codes: BTreeSet::new(),
        });
        // Without the store's rows the issue is not fetched, whatever was written down.
        pass.codes.retain(|code| stored.contains(code));
        let done = pass.codes.clone();
        self.state.pass = Some(pass);
        done
    }

    fn close_pass(
        &mut self,
        dates: &BTreeSet<JstDate>,
        failed: u64,
        out: &[Reason],
    ) -> Result<(), UpdateError> {
        if failed == 0 {
            self.state.pass = None;
        }
        for date in dates {
            let is_stored = self.known.dates.contains_key(date);
            let day = self.day(*date);
            let (rows, has_failed) = (day.rows, !day.reasons.is_empty());
            let outcome = match rows {
                _ if failed > 0 => DayOutcome::Failed,
                // What other sources do not have is no answer of the one that failed (rule D7).
                0 if !is_stored && has_failed => DayOutcome::Failed,
                0 if !is_stored => DayOutcome::NoData,
                _ => DayOutcome::FetchedByIssue,
            };
            let reasons = if failed > 0 { out } else { &[] };
            self.end_days(&BTreeSet::from([*date]), outcome, reasons);
        }
        self.save_state()
    }

    fn end_days(&mut self, dates: &BTreeSet<JstDate>, outcome: DayOutcome, reasons: &[Reason]) {
        for date in dates {
            let day = self.day(*date);
            day.outcome = Some(outcome);
            for reason in reasons {
                if !day.reasons.contains(reason) {
                    day.reasons.push(reason.clone());
                }
            }
        }
    }

    fn fetch_issue(
        &mut self,
        slots: &mut Slots,
        indices: &[usize],
        code: IssueCode,
        dates: &BTreeSet<JstDate>,
    ) -> Issue {
        let (Some(from), Some(to)) = (dates.first().copied(), dates.last().copied()) else {
            return Issue::Done;
        };
        let (mut reasons, mut answered, mut is_down) = (Vec::new(), false, false);
        for place in indices {
            match slots.issue(*place, code, from, to) {
                Ok(answer) => {
                    let Answer { mut rows, odd, .. } = answer;
                    let is_odd = !odd.is_empty();
                    if let Some(first) = odd.first().filter(|_| rows.is_empty()) {
                        reasons.push(Reason::new(slots.kind(*place), &first.to_string()));
                    }
                    self.report.left_out(slots.kind(*place), odd);
                    // Days in between came whole, from a source that goes before this one.
                    rows.retain(|row| dates.contains(&row.date));
                    if !rows.is_empty() {
                        self.collect(slots.kind(*place), rows);
                        return Issue::Done;
                    }
                    // A source that answers with nothing knows that there is nothing, as for an issue
                    // that is no longer listed; but not better than one before it that is down.
                    answered |= !is_down && !is_odd;
                }
                Err(NoAnswer::Stopped) => return Issue::Stopped,
                Err(NoAnswer::Failed { covered: Some((first, last)), .. })
                    if self.covered != Some((first, last)) =>
                {
                    self.cover(first, last);
                    return Issue::NotCovered;
                }
                Err(NoAnswer::Failed { reason, is_outage, .. }) => {
                    is_down |= is_outage;
                    reasons.push(reason);
                }
            }
        }
        match answered || reasons.is_empty() {
            true => Issue::Done,
            false => Issue::Failed(reasons),
        }
    }
}
