//! Fetching: whole days from the vendor, and issue by issue what it did not give.

use std::collections::BTreeSet;

use domain::JstDate;

use super::judge::{Verdict, published_stays};
use super::report::{DayOutcome, Reason};
use super::slots::{NoAnswer, Slots};
use super::{Job, Phase, UpdateError};
use crate::checks;
use crate::fetch_state::IssuePass;
use crate::limits::ODD_PERCENT_MAX;
use crate::row::{DailyRow, IssueCode, SourceKind};
use crate::source::{Answer, OddRow};

/// Issues that trade on every business day, by which a day without data is told from a holiday.
const SURE_CODES: [&str; 3] = ["7203", "9984", "1306"];

/// Days that did not come whole.
#[derive(Debug, Default)]
struct Left {
    /// The vendor had nothing for them.
    empty: BTreeSet<JstDate>,
    /// The vendor failed.
    failed: BTreeSet<JstDate>,
    /// The vendor refuses these dates, whatever it is asked.
    refused: BTreeSet<JstDate>,
}

/// How fetching an issue ended.
enum Issue {
    /// A source gave rows, or none has any.
    Done,
    /// No source gave rows and at least one failed.
    Failed(Vec<Reason>),
    /// The subscription does not cover some of the dates, which is known now.
    NotCovered,
    /// The user wants the run to end.
    Stopped,
}

/// Whether a row is the vendor's, or of its files.
fn is_vendors(row: &DailyRow) -> bool {
    row.source.rank() == SourceKind::Vendor.rank()
}

impl Job<'_> {
    /// Fetches everything that is wanted.
    pub(super) fn fetch(&mut self, slots: &mut Slots) -> Result<(), UpdateError> {
        self.renew_calendar(slots)?;
        let wanted = self.wanted();
        for date in &wanted {
            self.day(*date);
        }
        let left = self.fetch_days(slots, &wanted)?;
        self.flush()?;
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        let with_trades = self.days_with_trades(slots, &left.empty);
        let failed = &left.failed | &with_trades;
        let vendor = slots.with_days();
        self.fetch_issues(slots, &failed, None)?;
        self.fetch_issues(slots, &left.refused, vendor)?;
        self.judge_stored(Some(slots))
    }

    /// Asks for whole days: those that are wanted, then those that are asked for again.
    fn fetch_days(&mut self, slots: &mut Slots, wanted: &[JstDate]) -> Result<Left, UpdateError> {
        let mut left = Left::default();
        let Some(place) = slots.with_days() else {
            left.failed.extend(wanted);
            return Ok(left);
        };
        let codes = self.options.codes.len();
        if codes > 0 && codes < wanted.len() {
            // A few issues over many days are quicker to get one by one.
            left.failed.extend(wanted);
            return Ok(left);
        }
        let mut again = if codes == 0 { self.again() } else { Vec::new() };
        if slots.out(place).is_some() {
            again.clear();
        }
        let all: Vec<(JstDate, bool)> = wanted.iter().map(|date| (*date, false)).collect();
        let all = [all, again.into_iter().map(|date| (date, true)).collect()].concat();
        let of = all.len() as u64;
        for ((date, is_again), done) in all.into_iter().zip(0..) {
            if self.cancel.is_cancelled() {
                break;
            }
            self.watch.progress(Phase::Days, done, of, &date.to_string());
            if !self.is_covered(date) {
                self.day(date).outcome = Some(DayOutcome::NotDue);
                continue;
            }
            // What was kept on this machine tells no more than what is stored.
            if is_again && let Err(problem) = slots.forget_day(place, date) {
                self.note(problem);
            }
            match self.whole_day(slots, place, date)? {
                Ok(()) => {}
                Err(NoAnswer::Stopped) => break,
                Err(NoAnswer::Empty) => _ = left.empty.insert(date),
                Err(NoAnswer::Failed { covered: Some((first, last)), .. }) => {
                    self.cover(first, last);
                    self.day(date).outcome = Some(DayOutcome::NotDue);
                }
                Err(NoAnswer::Failed { reason, is_outage, .. }) if is_again => {
                    self.note(format!("{date} stays as it is: {}", reason.reason));
                    if is_outage {
                        let day = self.day(date);
                        (day.outcome, day.reasons) = (Some(DayOutcome::Failed), vec![reason]);
                        break;
                    }
                }
                Err(NoAnswer::Failed { reason, is_odd, is_outage, .. }) => {
                    let day = self.day(date);
                    day.reasons.push(reason);
                    match is_odd {
                        true => day.outcome = Some(DayOutcome::Failed),
                        false if is_outage => _ = left.failed.insert(date),
                        false => _ = left.refused.insert(date),
                    }
                }
            }
            self.flush_if_full()?;
        }
        self.watch.progress(Phase::Days, of, of, "");
        Ok(left)
    }

    /// Asks for a whole day and takes it, if the rules let it be taken.
    fn whole_day(
        &mut self,
        slots: &mut Slots,
        place: usize,
        date: JstDate,
    ) -> Result<Result<(), NoAnswer>, UpdateError> {
        loop {
            let mut answer = match slots.day(place, date) {
                Ok(answer) => answer,
                Err(none) => return Ok(Err(none)),
            };
            let kind = slots.kind(place);
            if !self.options.codes.is_empty() {
                answer.rows.retain(|row| self.options.codes.contains(&row.code));
                self.collect_named(kind, date, &answer.rows)?;
                return Ok(Ok(()));
            }
            if answer.rows.is_empty() {
                return self.empty_day(date);
            }
            self.leave_far_rows_out(date, &mut answer)?;
            let verdict = self.judge(Some(&mut *slots), date, &answer.rows, true)?;
            if verdict != Verdict::Taken {
                // What was kept by an earlier run may have been short then.
                let forgotten = slots.forget_day(place, date);
                let is_forgotten = forgotten.is_ok();
                if let Err(problem) = forgotten {
                    self.note(problem);
                }
                if answer.cached && is_forgotten {
                    self.report.findings.retain(|finding| finding.date != date);
                    continue;
                }
            }
            self.take_day(kind, date, answer, verdict)?;
            return Ok(Ok(()));
        }
    }

    /// A day of which the vendor has nothing. Published rows of the vendor's do not go by that.
    fn empty_day(&mut self, date: JstDate) -> Result<Result<(), NoAnswer>, UpdateError> {
        if !self.state.is_published(date) {
            return Ok(Err(NoAnswer::Empty));
        }
        let own = self.stored_rows(date)?.into_iter().filter(is_vendors).count();
        if own > 0 {
            let why = format!("it lacks all {own} published rows of the vendor");
            self.tell(date, vec![published_stays(why, Vec::new())]);
            if let Some(found) = self.report.findings.last_mut() {
                // Whatever a person says, no answer without rows takes a published day away (rule `accept`).
                found.advice =
                    "the published day stays unchanged, also with --accept; the next runs ask again"
                        .to_owned();
            }
            self.refuse(date);
        } else if let Some(day) = self.days.get_mut(&date) {
            day.outcome = Some(DayOutcome::NoData);
        }
        Ok(Ok(()))
    }

    /// A day stays as it is, and is asked for again by the next runs.
    pub(super) fn refuse(&mut self, date: JstDate) {
        self.state.fetched.remove(&date);
        let day = self.day(date);
        (day.is_refused, day.outcome) = (true, Some(DayOutcome::Refused));
    }

    /// Takes the rows of a whole day, as it was judged.
    pub(super) fn take_day(
        &mut self,
        kind: SourceKind,
        date: JstDate,
        answer: Answer,
        verdict: Verdict,
    ) -> Result<(), UpdateError> {
        self.day(date).is_judged = true;
        if verdict == Verdict::Refused {
            self.refuse(date);
            return Ok(());
        }
        self.day(date).outcome = Some(DayOutcome::Fetched);
        let Answer { rows, odd, cached } = answer;
        let tells_all = odd.is_empty() && rows.iter().all(|row| row.adjustment_factor.is_some());
        // What was kept or lies in files may be older than what is stored, unless a person says otherwise.
        let is_new = !cached || self.is_named(date);
        if verdict == Verdict::Taken && odd.is_empty() && is_new {
            self.take_back(date, &rows)?;
        }
        match verdict == Verdict::Taken && self.state.complete.contains(&date) && tells_all {
            true => self.state.fetched.insert(date),
            false => self.state.fetched.remove(&date),
        };
        self.report.left_out(kind, odd);
        self.collect(kind, rows);
        Ok(())
    }

    /// Removes the rows of a day that the vendor takes back (rule `taken_back`).
    fn take_back(&mut self, date: JstDate, rows: &[DailyRow]) -> Result<(), UpdateError> {
        let given: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let stored = self.stored_rows(date)?;
        let missing = stored.iter().filter(|row| is_vendors(row) && !given.contains(&row.code));
        let missing: Vec<IssueCode> = missing.map(|row| row.code).collect();
        let listed = self.listed(date);
        let all = missing.len();
        let is_gone = |code: &IssueCode| {
            self.is_named(date) || listed.as_ref().is_some_and(|listed| !listed.contains(code))
        };
        let gone: Vec<IssueCode> = missing.into_iter().filter(is_gone).collect();
        if gone.len() < all {
            let stay = all - gone.len();
            self.note(format!(
                "the vendor no longer has {stay} rows of {date}; they stay, because no list says that their issues \
                 are gone"
            ));
        }
        self.batch.gone.extend(gone.into_iter().map(|code| (date, code)));
        Ok(())
    }

    /// Takes the few rows out of an answer whose prices are too far from the last closes (rule `unusable`).
    pub(super) fn leave_far_rows_out(
        &mut self,
        date: JstDate,
        answer: &mut Answer,
    ) -> Result<(), UpdateError> {
        let (rows, odd) = self.near_rows(date, &answer.rows)?;
        // Where there are more of them, the whole answer is refused.
        if odd.len() * 100 <= answer.rows.len() * ODD_PERCENT_MAX {
            answer.rows = rows;
            answer.odd.extend(odd);
        }
        Ok(())
    }

    /// Takes rows of the issues that the user has named, without those that cannot be right.
    pub(super) fn collect_named(
        &mut self,
        kind: SourceKind,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<(), UpdateError> {
        let (rows, odd) = self.near_rows(date, rows)?;
        self.report.left_out(kind, odd);
        self.day(date).outcome = Some(DayOutcome::Fetched);
        self.collect(kind, rows);
        Ok(())
    }

    /// The rows that may be right, and the others with the reason. All of a day that `--accept` names may be.
    fn near_rows(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<(Vec<DailyRow>, Vec<OddRow>), UpdateError> {
        if self.is_named(date) {
            return Ok((rows.to_vec(), Vec::new()));
        }
        let before = self.days_before(date)?;
        let (mut near, mut odd) = (Vec::new(), Vec::new());
        for row in rows {
            match checks::far(row, before.iter().map(AsRef::as_ref)) {
                None => near.push(*row),
                Some(reason) => odd.push(OddRow {
                    row: format!("{} on {date}", row.code),
                    text: row.words(),
                    reason: format!("{reason}; if it is right, take it with --accept and the date"),
                }),
            }
        }
        Ok((near, odd))
    }

    /// Which of the days that came empty had trades, as one issue that always trades says at any source. The
    /// others have no data.
    fn days_with_trades(
        &mut self,
        slots: &mut Slots,
        empty: &BTreeSet<JstDate>,
    ) -> BTreeSet<JstDate> {
        let ends = empty.first().copied().zip(empty.last().copied());
        let Some(((from, to), code)) = ends.zip(self.sure_code()) else {
            self.without_data(empty, &[]);
            return BTreeSet::new();
        };
        let (mut traded, mut reasons) = (BTreeSet::new(), Vec::new());
        for place in slots.indices() {
            match slots.issue(place, code, from, to) {
                Ok(answer) => {
                    let rows = answer.rows.iter().filter(|row| row.close.is_some());
                    traded.extend(rows.map(|row| row.date));
                }
                Err(NoAnswer::Failed { reason, is_outage: true, .. }) => reasons.push(reason),
                Err(_) => {}
            }
        }
        if self.cancel.is_cancelled() {
            return BTreeSet::new();
        }
        self.without_data(&(empty - &traded), &reasons);
        empty & &traded
    }

    /// Says of days that no source has anything, or that some did not answer.
    fn without_data(&mut self, days: &BTreeSet<JstDate>, reasons: &[Reason]) {
        for date in days {
            let day = self.day(*date);
            day.reasons.extend_from_slice(reasons);
            day.outcome = Some(DayOutcome::NoData);
        }
    }

    /// An issue that surely has a row on every business day, as far as one is known.
    fn sure_code(&self) -> Option<IssueCode> {
        let known = self.codes();
        let sure = SURE_CODES.iter().filter_map(|code| code.parse().ok());
        sure.into_iter().find(|code| known.contains(code)).or_else(|| known.first().copied())
    }

    /// The issues that are wanted: those that were named, else all that are known.
    fn codes(&self) -> BTreeSet<IssueCode> {
        match self.options.codes.is_empty() {
            true => self.known.codes.iter().chain(&self.seen).copied().collect(),
            false => self.options.codes.iter().copied().collect(),
        }
    }

    /// Fetches days issue by issue, without the source at the place `without` (rule `order`).
    fn fetch_issues(
        &mut self,
        slots: &mut Slots,
        dates: &BTreeSet<JstDate>,
        without: Option<usize>,
    ) -> Result<(), UpdateError> {
        let has_codes = !self.options.codes.is_empty();
        // What readers see stays as it is, unless the user names issues.
        let (dates, others): (BTreeSet<JstDate>, BTreeSet<JstDate>) =
            dates.iter().partition(|date| has_codes || !self.state.is_published(**date));
        for date in others {
            self.day(date).outcome = Some(DayOutcome::Failed);
        }
        if dates.is_empty() || self.cancel.is_cancelled() {
            return Ok(());
        }
        let places: Vec<usize> = slots.indices().filter(|place| Some(*place) != without).collect();
        let out: Vec<Reason> = places.iter().filter_map(|place| slots.out(*place)).collect();
        let codes = self.codes();
        if codes.is_empty() || out.len() == places.len() {
            if codes.is_empty() {
                self.note(
                    "no issue is known yet, so days cannot be fetched issue by issue; name some \
                     with --codes, or load history with --from-files"
                        .to_owned(),
                );
            }
            self.end_days(&dates, DayOutcome::Failed, &out);
            return Ok(());
        }
        let done = self.open_pass(&dates);
        let of = codes.len() as u64;
        let (mut failed, mut dates) = (0_u64, dates);
        for (code, index) in codes.iter().zip(0..) {
            self.watch.progress(Phase::Issues, index, of, code.as_str());
            if done.contains(code) {
                continue;
            }
            let mut fetched = self.fetch_issue(slots, &places, *code, &dates)?;
            if let Issue::NotCovered = fetched {
                for date in dates.extract_if(.., |date| !self.is_covered(*date)).collect::<Vec<_>>()
                {
                    self.day(date).outcome = Some(DayOutcome::NotDue);
                }
                fetched = self.fetch_issue(slots, &places, *code, &dates)?;
            }
            match fetched {
                Issue::Done => self.batch.issues.push(*code),
                Issue::Failed(reasons) => {
                    failed += 1;
                    self.report.issue_failed(*code, reasons);
                }
                Issue::NotCovered => failed += 1,
                Issue::Stopped => return self.flush(),
            }
            self.flush_if_full()?;
            if self.cancel.is_cancelled() {
                return self.flush();
            }
        }
        self.watch.progress(Phase::Issues, of, of, "");
        self.close_pass(&dates, failed, &out)
    }

    /// Remembers what is being fetched, and tells which issues an interrupted run of the same day
    /// has fetched already.
    fn open_pass(&mut self, dates: &BTreeSet<JstDate>) -> BTreeSet<IssueCode> {
        let made = self.options.now.jst_date();
        let same = |pass: &IssuePass| pass.made == made && pass.dates.is_superset(dates);
        let earlier = self.state.pass.take().filter(|pass| same(pass) && !self.options.refetch);
        let dates = dates.clone();
        let pass = earlier.unwrap_or_else(|| IssuePass { made, dates, codes: BTreeSet::new() });
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
            let has_rows = self.day(*date).rows > 0 || self.known.dates.contains_key(date);
            let outcome = match has_rows {
                _ if failed > 0 => DayOutcome::Failed,
                true => DayOutcome::FetchedByIssue,
                false => DayOutcome::NoData,
            };
            let reasons = if failed > 0 { out } else { &[] };
            self.end_days(&BTreeSet::from([*date]), outcome, reasons);
        }
        self.flush()
    }

    fn end_days(&mut self, dates: &BTreeSet<JstDate>, outcome: DayOutcome, reasons: &[Reason]) {
        for date in dates {
            let day = self.day(*date);
            day.outcome = Some(outcome);
            let new = reasons.iter().filter(|reason| !day.reasons.contains(reason)).cloned();
            let new: Vec<Reason> = new.collect();
            day.reasons.extend(new);
        }
    }

    fn fetch_issue(
        &mut self,
        slots: &mut Slots,
        places: &[usize],
        code: IssueCode,
        dates: &BTreeSet<JstDate>,
    ) -> Result<Issue, UpdateError> {
        let (Some(from), Some(to)) = (dates.first().copied(), dates.last().copied()) else {
            return Ok(Issue::Done);
        };
        let (mut reasons, mut answered, mut is_down) = (Vec::new(), false, false);
        for place in places {
            let kind = slots.kind(*place);
            match slots.issue(*place, code, from, to) {
                Ok(Answer { rows, mut odd, .. }) => {
                    let mut near = Vec::new();
                    // Days in between came whole.
                    for row in rows.into_iter().filter(|row| dates.contains(&row.date)) {
                        let (right, far) = self.near_rows(row.date, &[row])?;
                        near.extend(right);
                        odd.extend(far);
                    }
                    let is_odd = !odd.is_empty();
                    if let Some(first) = odd.first().filter(|_| near.is_empty()) {
                        reasons.push(Reason::new(kind, &first.to_string()));
                    }
                    self.report.left_out(kind, odd);
                    if !near.is_empty() {
                        self.collect(kind, near);
                        return Ok(Issue::Done);
                    }
                    // A source that answers with nothing knows that there is nothing, as for an issue
                    // that is no longer listed; but not better than one before it that is down.
                    answered |= !is_down && !is_odd;
                }
                Err(NoAnswer::Stopped) => return Ok(Issue::Stopped),
                Err(NoAnswer::Empty) => answered |= !is_down,
                Err(NoAnswer::Failed { covered: Some((first, last)), .. })
                    if self.covered != Some((first, last)) =>
                {
                    self.cover(first, last);
                    return Ok(Issue::NotCovered);
                }
                Err(NoAnswer::Failed { reason, is_outage, .. }) => {
                    is_down |= is_outage;
                    reasons.push(reason);
                }
            }
        }
        Ok(match answered || reasons.is_empty() {
            true => Issue::Done,
            false => Issue::Failed(reasons),
        })
    }
}
