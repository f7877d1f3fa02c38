//! The end of a run: publish, split, and say how it ended.

use std::ops::ControlFlow;

use super::report::{DayOutcome, DoubtKind, DoubtReport, Ending, PublishedReport, SplitReport};
use super::slots::KeyTrouble;
use super::{DayState, Job, Phase, UpdateError};
use crate::limits::REPORT_FILES_MAX;
use crate::price_store::PublishedCheck;
use crate::store::StoreError;

impl Job<'_> {
    /// Publishes what changed, unless the user wants the run to end.
    pub(super) fn finish(&mut self) -> Result<(), UpdateError> {
        self.tell_silent_rows();
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
            self.save_state()?;
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

    /// Sees to it that published files which are not as they were written are made again (rules W1 to W3),
    /// and tells which; so are those that are gone.
    fn check_published(&mut self) -> Result<(), UpdateError> {
        let PublishedCheck { damaged, gone } = self.store.check_published()?;
        let troubles = [
            (damaged, "not as they were written", "look after the disk, or who else writes there"),
            (gone, "gone", "look who removes files there"),
        ];
        for (files, what, advice) in troubles {
            if files.is_empty() {
                continue;
            }
            let mut named = files[..files.len().min(REPORT_FILES_MAX)].join(", ");
            if files.len() > REPORT_FILES_MAX {
                named.push_str(&format!(" and {} more", files.len() - REPORT_FILES_MAX));
            }
            self.note(format!("published files are {what}, and are made again: {named}; {advice}"));
        }
        Ok(())
    }

    /// Ties the published files together, where every one of them is of the same publication.
    fn publish_generation(&mut self, is_due: bool) -> Result<(), UpdateError> {
        if self.report.split.is_some() || (!is_due && self.store.has_published()) {
            match self.store.publish_generation() {
                Ok(generation) => tracing::info!(generation, "what is published belongs together"),
                Err(error) if is_due => return Err(error.into()),
                // Nothing is new, and what is there is not this run's.
                Err(error) => self.note(format!("the generation is the one before: {error}")),
            }
        }
        Ok(())
    }

    /// Whether readers have something else than the store.
    fn is_publication_due(&mut self) -> Result<bool, UpdateError> {
        if self.published_range().is_none() {
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
        let base_fault = published.base_fault.as_ref().map(|why| {
            format!(
                "the snapshot for rankings was made whole, because the one before is not as it was \
                 written: {why}; look after the disk"
            )
        });
        let (snapshot, days, codes) = (published.number, published.days, published.codes);
        let new_days = published.new_days;
        tracing::info!(snapshot, days, new_days, codes, "the combined database is published");
        drop(entered);
        base_fault.into_iter().for_each(|note| self.note(note));
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
        self.save_state()
    }

    /// What the user has to do for the vendor's key, where the run ends so (rules K1 and K2).
    fn key_error(&self, ending: Ending) -> Option<String> {
        match self.key_trouble.as_ref().filter(|_| ending != Ending::Interrupted)? {
            KeyTrouble::Refused(why) => Some(format!(
                "the vendor does not take the key, so its days are missing or of a lesser source: {why}; \
                 see `kumiki key list` for where it comes from"
            )),
            KeyTrouble::Missing(why) => (ending != Ending::Done)
                .then(|| format!("days are missing, and the vendor cannot be asked: {why}")),
        }
    }

    fn ending(&self, publication_was_due: bool) -> Ending {
        let is_open = |day: &DayState| day.outcome.is_none();
        let is_bad = |day: &DayState| {
            is_open(day) || matches!(day.outcome, Some(DayOutcome::Failed | DayOutcome::Incomplete))
        };
        let is_refused = |doubt: &DoubtReport| doubt.kind == DoubtKind::Refused;
        let has_refused = self.report.doubts.iter().any(is_refused);
        let is_short = has_refused
            || self.is_closed_in_a_row
            || self.has_open_outage
            || self.state.incomplete.keys().any(|date| self.is_due(*date));
        let has_gap = self.report.gaps.iter().any(|date| self.is_due(*date));
        let is_published = self.report.split.is_some() || !publication_was_due;
        let is_undone = self.cut_short || !is_published || self.days.values().any(is_open);
        if self.cancel.is_cancelled() && is_undone {
            Ending::Interrupted
        } else if has_gap {
            Ending::Gap
        } else if is_short || self.report.issues_failed > 0 || self.days.values().any(is_bad) {
            Ending::Incomplete
        } else {
            Ending::Done
        }
    }
}
