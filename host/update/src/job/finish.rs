//! The end of a run: publish, split, and say how it ended.

use std::ops::ControlFlow;

use domain::{JstDate, holidays};
use pricestore::{DatasetStatus, DayDoubt, IncompleteDay};

use super::report::{DayOutcome, Ending, PublishedReport, SplitReport, WaitingDayReport};
use super::slots::KeyTrouble;
use super::{DayState, Job, Phase, UpdateError};
use crate::checks::Severity;
use crate::limits::REPORT_FILES_MAX;
use crate::price_store::PublishedCheck;
use crate::row::SourceKind;
use crate::store::StoreError;

impl Job<'_> {
    /// Publishes what changed, unless the user wants the run to end.
    pub(super) fn finish(&mut self) -> Result<(), UpdateError> {
        self.settle()?;
        self.check_published()?;
        // Prices are published also where the lists cannot be.
        let lists = self.publish_lists();
        let is_due = self.is_publication_due()?;
        let mut published = Ok(());
        if is_due && !self.cancel.is_cancelled() {
            published = match self.publish_and_split() {
                Err(UpdateError::Store(StoreError::Cancelled)) => Ok(()),
                other => other,
            };
        } else if self.changed_from.is_none() && self.state.unpublished_from.is_some() {
            // All rows were there with the same values.
            self.state.unpublished_from = None;
            self.flush()?;
        }
        let ending = self.ending(is_due);
        self.report.error = self.key_error(ending);
        self.report.ending = if self.report.error.is_some() { Ending::Failed } else { ending };
        // Whatever became of the files: what is missing from the days is known.
        self.tell_readers()?;
        published?;
        self.publish_generation(is_due)?;
        lists
    }

    /// Sees to it that published files which are not as they were written are made again (rule
    /// `own_files`), and tells which; so are those that are gone.
    fn check_published(&mut self) -> Result<(), UpdateError> {
        let PublishedCheck { damaged, gone } = self.store.check_published()?;
        let troubles = [
            (damaged, "damaged or changed", "check the disk, and which other program writes there"),
            (gone, "gone", "check which program removes files there"),
        ];
        for (files, what, advice) in troubles {
            if files.is_empty() {
                continue;
            }
            let mut named = files[..files.len().min(REPORT_FILES_MAX)].join(", ");
            if files.len() > REPORT_FILES_MAX {
                named.push_str(&format!(" and {} more", files.len() - REPORT_FILES_MAX));
            }
            self.note(format!(
                "published files are {what}; the job makes them again: {named}; {advice}"
            ));
        }
        Ok(())
    }

    /// Ties the published files together, where every one of them is of the same publication.
    fn publish_generation(&mut self, is_due: bool) -> Result<(), UpdateError> {
        if self.report.split.is_some() || (!is_due && self.store.has_published()) {
            match self.store.publish_generation() {
                Ok(generation) => {
                    tracing::info!(generation, "the published files form a generation")
                }
                Err(error) if is_due => return Err(error.into()),
                // Nothing is new, and what is there is not this run's.
                Err(error) => self.note(format!("the generation stays the previous one: {error}")),
            }
        }
        Ok(())
    }

    /// Whether readers have something else than the store.
    fn is_publication_due(&mut self) -> Result<bool, UpdateError> {
        if self.state.published_range().is_none() {
            return Ok(false);
        }
        let has_news = self.changed_from.is_some() || self.calendar_is_new;
        let is_published = self.store.has_published();
        // What was removed or damaged since is made again.
        Ok(has_news || !is_published || !self.store.is_whole()?)
    }

    fn publish_and_split(&mut self) -> Result<(), UpdateError> {
        let first_split = !self.state.split || !self.store.has_published();
        let from = self.changed_from.filter(|_| !first_split);
        let cancel = self.cancel;
        let go_on = || {
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let span = tracing::info_span!("publish");
        let entered = span.enter();
        let watch = &mut *self.watch;
        watch.progress(Phase::Publish, 0, 1, "");
        let published = self.store.publish(&mut |done, of, what| {
            watch.progress(Phase::Publish, done, of, what);
            go_on()
        })?;
        self.report.published = Some(PublishedReport {
            snapshot: published.number,
            days: published.days as u64,
            codes: published.codes as u64,
            first: published.range.0,
            last: published.range.1,
        });
        let (snapshot, days, codes) = (published.number, published.days, published.codes);
        tracing::info!(snapshot, days, codes, "the combined database is published");
        drop(entered);
        // The files of the issues take their time; who ranks has the new days already.
        self.tell_readers()?;
        let span = tracing::info_span!("split", from = from.map(tracing::field::display));
        let _entered = span.enter();
        let watch = &mut *self.watch;
        watch.progress(Phase::Split, 0, published.codes as u64, "");
        let split = self.store.split_to_individual(from, &mut |done, of, what| {
            watch.progress(Phase::Split, done, of, what);
            go_on()
        })?;
        let (written, unchanged, removed) = (split.written, split.unchanged, split.removed);
        tracing::info!(written, unchanged, removed, "the per-issue databases are written");
        self.report.split = Some(SplitReport { from, written, unchanged, removed });
        (self.state.split, self.state.unpublished_from) = (true, None);
        self.flush()
    }

    /// What the user has to do for the vendor's key, where the run ends so (rule `key`).
    fn key_error(&self, ending: Ending) -> Option<String> {
        match self.key_trouble.as_ref().filter(|_| ending != Ending::Interrupted)? {
            KeyTrouble::Refused(why) => Some(format!(
                "the vendor refuses the requests, so its days are missing or come from a lesser source: {why}"
            )),
            KeyTrouble::Missing(why) => (ending != Ending::Done)
                .then(|| format!("days are missing, and the vendor cannot be asked: {why}")),
        }
    }

    fn ending(&self, publication_was_due: bool) -> Ending {
        let is_open = |day: &DayState| day.outcome.is_none();
        let is_bad = |day: &DayState| {
            let is_failed =
                matches!(day.outcome, Some(DayOutcome::Failed | DayOutcome::Incomplete));
            is_open(day) || is_failed || day.is_refused || !day.reasons.is_empty()
        };
        let is_short = self.report.issues_failed > 0
            || self.report.waiting.iter().any(|day| self.is_over(day.date))
            || self.report.findings.iter().any(|found| found.severity == Severity::Refuse);
        let has_gap = self.report.gaps.iter().any(|date| self.is_over(*date));
        let is_published = self.report.split.is_some() || !publication_was_due;
        let is_undone = self.cut_short || !is_published || self.days.values().any(is_open);
        if self.cancel.is_cancelled() && is_undone {
            Ending::Interrupted
        } else if has_gap {
            Ending::Gap
        } else if is_short || self.days.values().any(is_bad) {
            Ending::Incomplete
        } else {
            Ending::Done
        }
    }

    /// Says of each day that was looked at what it is now, and which days wait.
    fn settle(&mut self) -> Result<(), UpdateError> {
        self.known = self.store.rows().known()?;
        self.close_accepted_days();
        let dates: Vec<JstDate> = self.days.keys().copied().collect();
        for date in dates {
            let is_published = self.state.is_published(date);
            let has_rows = self.known.dates.contains_key(&date);
            let (is_due, is_closed) = (self.is_due(date), !self.is_open(date));
            let day = self.day(date);
            day.outcome = match day.outcome {
                Some(DayOutcome::Fetched | DayOutcome::FetchedByIssue) if !is_published => {
                    Some(DayOutcome::Incomplete)
                }
                Some(DayOutcome::NoData) if is_closed => Some(DayOutcome::NotDue),
                Some(DayOutcome::NoData) if !is_published && (is_due || has_rows) => {
                    Some(DayOutcome::Incomplete)
                }
                other => other,
            };
        }
        self.tell_changed_nothing();
        if self.silent > 0 {
            let rows = self.silent;
            self.note(format!(
                "{rows} rows have no adjustment factor: a known factor stays, and no price is adjusted across \
                 the other rows"
            ));
        }
        self.report.gaps = self.gaps();
        self.report.waiting = self.waiting_days();
        self.flush()?;
        self.keep_calendar()
    }

    /// Closes the days that the user accepts and of which no source has anything (rule `accept`).
    fn close_accepted_days(&mut self) {
        // A file that cannot be read may have rows of any day.
        let is_known = !self
            .report
            .sources
            .iter()
            .any(|part| part.source == SourceKind::Files && part.failed > 0);
        if !is_known {
            return;
        }
        for date in self.options.accept.clone() {
            let has_rows = self.known.dates.contains_key(&date);
            let is_empty = self.days.get(&date).is_some_and(|day| {
                day.outcome == Some(DayOutcome::NoData) && day.reasons.is_empty()
            });
            if is_empty && !has_rows {
                self.state.closed.insert(date);
                self.note(format!("--accept {date} closes the day: no source has a row of it"));
            }
        }
    }

    /// Says what the user asks for in vain.
    fn tell_changed_nothing(&mut self) {
        for date in self.options.accept.clone() {
            let outcome = self.days.get(&date).and_then(|day| day.outcome);
            let is_idle = match outcome {
                None => !self.cancel.is_cancelled(),
                Some(outcome) => outcome == DayOutcome::NotDue,
            };
            if is_idle && self.is_open(date) {
                self.note(format!(
                    "--accept {date} changes nothing: the day is not over, or the vendor's subscription does \
                     not cover it"
                ));
            }
        }
        let codes = &self.options.codes;
        let is_known = |code| self.known.codes.contains(code) || self.seen.contains(code);
        let unknown: Vec<&str> =
            codes.iter().filter(|code| !is_known(code)).map(|code| code.as_str()).collect();
        // Where all fail, nobody knows whether there is such an issue.
        let is_answered = self.report.sources.iter().any(|part| part.asked > part.failed);
        if !unknown.is_empty() && is_answered && !self.cancel.is_cancelled() {
            let unknown = unknown.join(", ");
            self.note(format!("no source has data of {unknown}: check --codes"));
        }
        let is_idle = self.days.values().all(|day| day.outcome == Some(DayOutcome::NotDue));
        if !codes.is_empty() && is_idle {
            self.note(
                "the run did not ask for the issues of --codes: every day is there or not due; --days with \
                 --refetch asks again"
                    .to_owned(),
            );
        }
    }

    /// The days that wait.
    fn waiting_days(&self) -> Vec<WaitingDayReport> {
        let asked = self.days.iter().filter(|(date, day)| {
            self.is_due(**date) && !self.state.is_published(**date) && day.outcome.is_some()
        });
        let mut dates = self.waiting();
        dates.extend(asked.map(|(date, _)| *date));
        let day = |date: JstDate| {
            let rows = self.known.dates.get(&date).copied().unwrap_or(0);
            let day = self.days.get(&date);
            let expected = day.and_then(|day| day.expected);
            let refused = self
                .report
                .findings
                .iter()
                .find(|found| found.date == date && found.severity == Severity::Refuse);
            let why = match (refused, day.and_then(|day| day.why.as_ref())) {
                (Some(found), _) => found.what.clone(),
                (None, Some(why)) => why.clone(),
                _ if rows == 0 => "no source gave a row of it".to_owned(),
                _ => format!("it has {rows} rows, and the run asked no source for the whole day"),
            };
            let advice = match (refused, rows) {
                (Some(_), _) => {
                    "the check holds it back; the next run asks for it again, and --accept with the date \
                     publishes it as it is"
                }
                (None, 0) => {
                    "the next run asks for it again; if the exchange was closed, give --accept with the date"
                }
                (None, _) => {
                    "the next run asks for it again; if the vendor has no more rows, publish it with --accept \
                     and the date"
                }
            };
            WaitingDayReport { date, rows, expected, why, advice: advice.to_owned() }
        };
        dates.into_iter().map(day).collect()
    }

    /// Publishes the lists, unless the user wants the run to end. They go before the prices: what they say
    /// counts from their date on, so who sees them early sees nothing else of the days before.
    fn publish_lists(&mut self) -> Result<(), UpdateError> {
        if !self.cancel.is_cancelled() {
            self.report.listed.published = self.store.publish_listed()?;
        }
        Ok(())
    }

    /// Tells those who read the data how complete it is.
    fn tell_readers(&mut self) -> Result<(), UpdateError> {
        let text = |date: &JstDate| date.to_string();
        let incomplete = self.report.waiting.iter().map(|day| IncompleteDay {
            date: text(&day.date),
            rows: day.rows,
            expected: day.expected,
        });
        // What lies further ahead, a calendar may yet say otherwise.
        let last = self.state.published_range().map(|(_, last)| last);
        let after = self.stored_calendar.iter().filter(|(date, _)| Some(**date) > last);
        let other_days = after
            .filter(|(date, is_open)| holidays::is_closed(**date) == **is_open)
            .map(|(date, is_open)| (text(date), *is_open));
        let doubts = self.report.findings.iter().map(|found| DayDoubt {
            date: text(&found.date),
            kind: found.check.clone(),
            what: found.what.clone(),
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
        let folder = data.update_folder();
        status.store(data).map_err(|source| UpdateError::Io { path: folder, source })
    }
}
