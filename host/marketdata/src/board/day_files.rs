//! Keeps the trades files of days up to date: where the writer is, or on a thread of its own, so that a large
//! day keeps no row from the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use super::ending::Ending;
use super::folder::{BoardFolder, DayFolder};
use super::trades_file::{self, Draft, TradesFileReport, is_up_to_date, lacking};
use super::writer::{RecorderError, RecorderEvent};

/// What a writer hands over.
#[derive(Debug)]
pub(super) enum Job {
    /// Days of earlier writers whose trades may not be written, in time order.
    Behind(Vec<DayFolder>),
    /// A segment of the day has begun or is finished.
    Follow(DayFolder),
    /// The day or the recording has ended: its file is to be written.
    Over(DayFolder),
}

/// The trades files of a folder.
#[derive(Debug)]
pub(super) struct DayFiles {
    folder: BoardFolder,
    /// Days of earlier writers that are still to be looked at, in time order.
    pub(super) behind: Vec<DayFolder>,
    /// The file of the day that is recorded. It grows with each segment, so that little is to be done at its end.
    draft: Option<Draft>,
    ending: Arc<Ending>,
}

impl DayFiles {
    pub(super) const fn new(folder: BoardFolder, ending: Arc<Ending>) -> Self {
        Self { folder, behind: Vec::new(), draft: None, ending }
    }

    /// Does what is handed over until nobody does any more: days of earlier writers last, one at a time.
    pub(super) fn run(mut self, jobs: &Receiver<Job>, tell: &mut dyn FnMut(RecorderEvent)) {
        loop {
            let job = match jobs.try_recv() {
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) if self.catch_up(tell) => continue,
                Err(TryRecvError::Empty) => match jobs.recv() {
                    Ok(job) => job,
                    Err(_) => break,
                },
                Ok(job) => job,
            };
            match job {
                Job::Behind(days) => self.behind = days,
                Job::Follow(day) => self.follow(&day),
                Job::Over(day) => self.over(&day, tell),
            }
        }
        if let Some(last) = self.behind.last() {
            tracing::warn!(
                days = self.behind.len(), last = %last.date(),
                "the trades files of earlier days were not checked for missing segments; the next \
                 start checks and writes them"
            );
        }
    }

    /// Writes the trades of one day of an earlier writer, the newest first; `false` once none is left. An end
    /// does not wait for it.
    pub(super) fn catch_up(&mut self, tell: &mut dyn FnMut(RecorderEvent)) -> bool {
        let ending = Arc::clone(&self.ending);
        let is_given_up = || ending.has_begun();
        while !is_given_up() {
            let Some(day) = self.behind.pop() else { return false };
            // One that cannot be looked at is told by writing it.
            if !is_up_to_date(&self.folder, &day).unwrap_or(false) {
                let made = self.draft(None, &day, &is_given_up);
                let made = made.and_then(|draft| draft.commit(&self.folder));
                self.tell(&day, made, tell);
                return true;
            }
        }
        false
    }

    /// Adds the finished segments of a day to its draft. What goes wrong is told when the day is over.
    pub(super) fn follow(&mut self, day: &DayFolder) {
        let ending = Arc::clone(&self.ending);
        let draft = self.draft.take().filter(|draft| draft.day() == day);
        match self.draft(draft, day, &|| ending.is_over()) {
            Ok(draft) => self.draft = Some(draft),
            Err(why) => {
                tracing::debug!(date = %day.date(), %why, "cannot follow the trades of the day");
            }
        }
    }

    /// Writes the trades of a day.
    pub(super) fn over(&mut self, day: &DayFolder, tell: &mut dyn FnMut(RecorderEvent)) {
        let ending = Arc::clone(&self.ending);
        let draft = self.draft.take().filter(|draft| draft.day() == day && draft.is_whole());
        let made = self.draft(draft, day, &|| ending.is_over());
        let made = made.and_then(|draft| draft.commit(&self.folder));
        self.tell(day, made, tell);
    }

    /// A draft with all finished segments of a day: this one, or a new one.
    fn draft(
        &self,
        draft: Option<Draft>,
        day: &DayFolder,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Draft, RecorderError> {
        if let Some(mut draft) = draft
            && draft.extend(is_given_up)?
        {
            return Ok(draft);
        }
        let mut draft = Draft::begin(&self.folder, day)?;
        draft.extend(is_given_up)?;
        Ok(draft)
    }

    /// The recording goes on without that file: it can be made from the segments at any time.
    fn tell(
        &self,
        day: &DayFolder,
        made: Result<Option<TradesFileReport>, RecorderError>,
        tell: &mut dyn FnMut(RecorderEvent),
    ) {
        let date = day.date();
        match made {
            Ok(Some(report)) => {
                trades_file::log(&report);
                tell(RecorderEvent::TradesFile(report));
            }
            Ok(None) => {}
            Err(RecorderError::GivenUp) => {
                let lacks = lacking(&self.folder, day);
                tracing::warn!(
                    %date, segments = %trades_file::named(&lacks), folder = %day.path().display(),
                    "the trades file of the day lacks segments: the recording ended before it was \
                     written. Their trades are on the disk; the next start writes the file"
                );
                tell(RecorderEvent::TradesFileLate { date, lacks });
            }
            Err(error) => {
                let why = error.to_string();
                tracing::error!(%date, %why, "cannot write the trades of a recorded day");
                tell(RecorderEvent::TradesFileFailed { date, why });
            }
        }
    }
}
