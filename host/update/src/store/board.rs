//! The databases of recorded boards, `jp/stocks_board/<code>.db`, from the recordings of a live engine.
//!
//! Each has the tables `depth` and `trades`, with the columns of the recordings (a code in the place of the
//! symbol), in the order of receipt, and `recorded_segment`, which says how many rows of which segment it has.
//!
//! A file is copied aside, gets the rows of segments that it does not have, and takes the old one's place. One that is
//! gone or damaged is made again from all recordings; the run fails if those are gone too. A file that the job did not
//! write stays, and the run fails. Nothing is ever removed. A segment that cannot be read is left out and named; once it
//! is published, it is looked at only if it changed or a file is made again.
//!
//! The job notes in `work/board.json` what it is about to rename and what it has, so a job that was killed is
//! finished by the next one, and every row is in its file once. The same recordings give the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use domain::JstDate;
use duckdb::Connection;
use marketdata::board::{BoardFolder, FinishedSegment, days};
use pricestore::DataDir;
use pricestore::generation::{GenerationFileName, PublishedFile, digest_of, modified_us};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::durable::{give_name, remove_unfinished, sync_file, sync_folder};
use super::error::StoreError;
use super::limits::BOARD_NOTES_BYTES_MAX;
use super::lock;
use super::opening::connect;
use super::paths::{StorePaths, unfinished};
use crate::price_store::StoreProgress;

mod files;
mod segments;

use files::{has_bytes, is_of_the_job, write_one};
pub use segments::DamagedSegment;
use segments::{Dated, read};

/// What is told while files are written.
const WHAT: &str = "writing a board of each issue";
/// The version of the notes.
const VERSION: u32 = 1;

/// What became of the recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BoardReport {
    /// Days of the recordings.
    pub days: u64,
    /// Segments of them that were not published before, and are now.
    pub new_segments: u64,
    /// Order books that were added to files.
    pub depth: u64,
    /// Trades that were added to files.
    pub trades: u64,
    /// Files that were written.
    pub written: u64,
    /// Files that stayed as they were.
    pub unchanged: u64,
    /// Codes whose files were gone or damaged and were made again.
    pub made_again: Vec<String>,
    /// Recorded symbols that are no codes of issues, and have no file.
    pub left_out: Vec<String>,
    /// Segments that are not published, because a file of them cannot be read.
    pub damaged: Vec<DamagedSegment>,
}

/// The JSON schema of a report, as it is printed.
#[must_use]
pub fn board_report_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<BoardReport>().to_value()
}

/// What the job has published, and what it is about to.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    version: u32,
    /// How far each day is published, by `YYYY-MM-DD`.
    days: BTreeMap<JstDate, DayNote>,
    /// How far days are in a run that has not come to its end: some files have them, others have not yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    under_way: BTreeMap<JstDate, DayNote>,
    /// The files by code.
    files: BTreeMap<String, PublishedFile>,
    /// A file that is being given its name.
    placing: BTreeMap<String, PublishedFile>,
}

/// How far a day is published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DayNote {
    /// The last segment.
    last: u32,
    /// Bytes of the files of the segments up to it that are published: other recordings have others.
    bytes: u64,
    /// Segments up to it that are not published, because they could not be read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    without: BTreeSet<u32>,
}

impl DayNote {
    /// Whether a segment of the day is published.
    fn has(&self, segment: &FinishedSegment) -> bool {
        segment.number <= self.last && !self.without.contains(&segment.number)
    }
}

/// Publishes what a live engine recorded, under the lock of the update job.
///
/// # Errors
/// [`StoreError`]; each file is the old or the new one, and the next run goes on from there.
pub fn publish_board(
    data: &DataDir,
    recordings: &Path,
    progress: &mut StoreProgress<'_>,
) -> Result<BoardReport, StoreError> {
    data.refuse_replica()?;
    let paths = StorePaths::new(data);
    let board = BoardFolder::new(recordings);
    if !board.days_folder().is_dir() {
        let what = "it has no folder `board`; name the folder into which the engine records \
            (`record_dir`)";
        return Err(StoreError::Unusable { path: recordings.to_owned(), what: what.to_owned() });
    }
    if recordings.to_string_lossy().contains(['*', '?', '[', ']']) {
        let what = "its path has one of * ? [ ], which the database engine takes for a pattern";
        return Err(StoreError::Unusable { path: recordings.to_owned(), what: what.to_owned() });
    }
    for folder in [paths.work_folder(), paths.board_folder()] {
        fs::create_dir_all(&folder).map_err(StoreError::io("make the folder", &folder))?;
    }
    let _lock = lock::take_job(&paths)?;
    remove_unfinished(&paths.board_folder())?;
    let mut job = Job { notes: Notes::load(&paths)?, recordings: Vec::new(), board, paths };
    job.settle()?;
    job.publish(progress)
}

impl Notes {
    fn path(paths: &StorePaths) -> PathBuf {
        paths.work_folder().join("board.json")
    }

    fn load(paths: &StorePaths) -> Result<Self, StoreError> {
        let path = Self::path(paths);
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { version: VERSION, ..Self::default() });
            }
            other => other.map_err(StoreError::io("read", &path))?,
        };
        let unusable = |what: String| StoreError::Unusable { path: path.clone(), what };
        // Whoever opens a pipe waits for somebody who writes.
        if !found.is_file() {
            return Err(unusable("it is no file".to_owned()));
        }
        if found.len() > BOARD_NOTES_BYTES_MAX {
            return Err(unusable(format!("it has more than {BOARD_NOTES_BYTES_MAX} bytes")));
        }
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        let notes: Self = serde_json::from_slice(&bytes).map_err(|error| {
            unusable(format!(
                "{error}; it says which boards are published. Remove it and the folder \
                 jp/stocks_board, which are made again from the recordings"
            ))
        })?;
        if notes.version != VERSION {
            let version = notes.version;
            return Err(unusable(format!(
                "it has version {version}; use the program that wrote it"
            )));
        }
        Ok(notes)
    }

    fn store(&self, paths: &StorePaths) -> Result<(), StoreError> {
        let path = Self::path(paths);
        let bytes = serde_json::to_vec(self).map_err(io::Error::other);
        let written = bytes.and_then(|bytes| atomic_file::write(&path, &bytes));
        written.map_err(StoreError::io("write", path))
    }
}

struct Job {
    paths: StorePaths,
    board: BoardFolder,
    notes: Notes,
    /// All finished segments, in time order.
    recordings: Vec<Dated>,
}

impl Job {
    /// Notes a file that a killed job has given its name, or has not.
    fn settle(&mut self) -> Result<(), StoreError> {
        if self.notes.placing.is_empty() {
            return Ok(());
        }
        for (code, placing) in std::mem::take(&mut self.notes.placing) {
            if has_bytes(&self.paths.board(&code), &placing)? {
                self.notes.files.insert(code, placing);
            }
        }
        self.notes.store(&self.paths)
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<BoardReport, StoreError> {
        let connection = connect(&self.paths)?;
        let days = self.read_recordings(&connection)?;
        let mut report = BoardReport { days, ..BoardReport::default() };
        let is_published =
            |one: &Dated| self.notes.days.get(&one.date).is_some_and(|day| day.has(&one.segment));
        let (old, new): (Vec<Dated>, Vec<Dated>) =
            self.recordings.iter().cloned().partition(is_published);
        let again = self.damaged(&connection)?;
        if !again.is_empty() {
            self.refuse_gone(&again)?;
            let codes: Vec<&str> = again.iter().map(String::as_str).collect();
            let what = format!("{} cannot be made again, because ", codes.join(", "));
            let folder = self.paths.board_folder();
            refuse_damaged(&folder, &what, &read(&connection, &old).damaged)?;
        }
        let new = read(&connection, &new);
        for DamagedSegment { file, why, .. } in &new.damaged {
            tracing::warn!(%file, %why, "a recorded segment is not published: it cannot be read");
        }
        let is_damaged = |one: &Dated| {
            let is_it = |other: &DamagedSegment| {
                (other.date, other.segment) == (one.date, one.segment.number)
            };
            new.damaged.iter().any(is_it)
        };
        let (damaged, sound): (Vec<Dated>, Vec<Dated>) =
            std::mem::take(&mut self.recordings).into_iter().partition(is_damaged);
        self.recordings = sound;
        report.new_segments = new.sound.len() as u64;
        let mut codes = BTreeSet::new();
        for symbol in new.symbols {
            match GenerationFileName::issue(&symbol) {
                Some(_) => drop(codes.insert(symbol)),
                None => report.left_out.push(symbol),
            }
        }
        codes.extend(again.iter().cloned());
        self.refuse_foreign(&codes)?;
        let days_done = self.day_notes(&damaged)?;
        if !codes.is_empty() {
            // Whoever goes on after this run has to have the same recordings.
            self.notes.under_way.extend(days_done.clone());
            self.notes.store(&self.paths)?;
        }
        let all = codes.len() as u64;
        for (done, code) in (0..).zip(&codes) {
            if progress(done, all, WHAT) == ControlFlow::Break(()) {
                return Err(StoreError::Cancelled);
            }
            let is_again = again.contains(code);
            let segments = if is_again { &self.recordings } else { &new.sound };
            let added = write_one(&connection, &self.paths, code, segments, is_again)?;
            let Some((depth, trades)) = added else { continue };
            self.place(code)?;
            (report.depth, report.trades) = (report.depth + depth, report.trades + trades);
            report.written += 1;
        }
        let _ = progress(all, all, WHAT);
        self.notes.under_way.retain(|date, _| !days_done.contains_key(date));
        self.notes.days.extend(days_done);
        self.notes.store(&self.paths)?;
        report.damaged = new.damaged;
        report.unchanged = self.notes.files.len() as u64 - report.written;
        report.made_again = again.into_iter().collect();
        Ok(report)
    }

    /// Lists what is recorded; gives the number of days. Days that were published have to be the same.
    fn read_recordings(&mut self, connection: &Connection) -> Result<u64, StoreError> {
        let folder = self.board.days_folder();
        let found = days(&self.board).map_err(StoreError::io("list", &folder))?;
        for day in &found {
            let dated = |segment| Dated { date: day.date(), segment };
            let segments = day.finished().map_err(StoreError::io("list", day.path()))?;
            let notes = [self.notes.days.get(&day.date()), self.notes.under_way.get(&day.date())];
            for note in notes.into_iter().flatten().filter(|_| !segments.is_empty()) {
                let before = segments.iter().filter(|one| note.has(one));
                let bytes = before.map(bytes_of).sum::<Result<u64, _>>()?;
                if bytes != note.bytes {
                    let before = segments.iter().filter(|one| note.has(one)).cloned();
                    let before: Vec<Dated> = before.map(dated).collect();
                    refuse_damaged(day.path(), "", &read(connection, &before).damaged)?;
                    let what = format!(
                        "its segments up to {:06} have {bytes} bytes, and those that were published \
                         {}: it is another recording, or files of it are gone. Give the folder of the \
                         same engine, or publish into another data folder",
                        note.last, note.bytes
                    );
                    return Err(StoreError::Unusable { path: day.path().to_owned(), what });
                }
            }
            self.recordings.extend(segments.into_iter().map(dated));
        }
        Ok(found.len() as u64)
    }

    /// The codes of the job's files that are gone or have other bytes. Somebody else's in
    /// the place of one is refused.
    fn damaged(&mut self, connection: &Connection) -> Result<BTreeSet<String>, StoreError> {
        let (mut damaged, mut foreign) = (BTreeSet::new(), BTreeSet::new());
        for (code, file) in &mut self.notes.files {
            let path = self.paths.board(code);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_file() && file.is_file(&found) => {}
                Ok(found) if found.is_file() && has_bytes(&path, file)? => {
                    file.modified_us = modified_us(&found);
                }
                Ok(_) if !is_of_the_job(connection, &path)? => drop(foreign.insert(code.clone())),
                Ok(_) => drop(damaged.insert(code.clone())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    damaged.insert(code.clone());
                }
                Err(error) => return Err(StoreError::io("look at", path)(error)),
            }
        }
        self.refuse_others(&foreign)?;
        Ok(damaged)
    }

    /// Refuses to make files again where recordings are missing of which they may have had rows.
    fn refuse_gone(&self, again: &BTreeSet<String>) -> Result<(), StoreError> {
        let there: BTreeSet<JstDate> = self.recordings.iter().map(|one| one.date).collect();
        let mut noted = self.notes.days.keys().chain(self.notes.under_way.keys());
        let Some(gone) = noted.find(|date| !there.contains(date)) else { return Ok(()) };
        let codes: Vec<&str> = again.iter().map(String::as_str).collect();
        let what = format!(
            "{} cannot be made again, because the recordings of {gone} are not in {}; put these or a copy \
             of the file back",
            codes.join(", "),
            self.board.path().display()
        );
        Err(StoreError::Unusable { path: self.paths.board_folder(), what })
    }

    /// Refuses files that the job did not write.
    fn refuse_foreign(&self, codes: &BTreeSet<String>) -> Result<(), StoreError> {
        let is_foreign = |code: &&String| {
            !self.notes.files.contains_key(*code)
                && fs::symlink_metadata(self.paths.board(code)).is_ok()
        };
        self.refuse_others(&codes.iter().filter(is_foreign).cloned().collect())
    }

    fn refuse_others(&self, foreign: &BTreeSet<String>) -> Result<(), StoreError> {
        if foreign.is_empty() {
            return Ok(());
        }
        let what = format!(
            "{} in it were not written by this job; the job left them unchanged. Move them away",
            foreign.iter().map(|code| format!("{code}.db")).collect::<Vec<_>>().join(", ")
        );
        Err(StoreError::Unusable { path: self.paths.board_folder(), what })
    }

    /// Gives the finished file of a code its name, and notes it before and after.
    fn place(&mut self, code: &str) -> Result<(), StoreError> {
        let path = self.paths.board(code);
        let aside = unfinished(&path);
        sync_file(&aside)?;
        let found = fs::metadata(&aside).map_err(StoreError::io("look at", &aside))?;
        let (bytes, xxh128) = digest_of(&aside).map_err(StoreError::io("read", &aside))?;
        let name = format!("jp/stocks_board/{code}.db");
        let file = PublishedFile { path: name, bytes, xxh128, modified_us: modified_us(&found) };
        self.notes.placing.insert(code.to_owned(), file.clone());
        self.notes.store(&self.paths)?;
        give_name(&aside, &path)?;
        sync_folder(&self.paths.board_folder())?;
        self.notes.placing.clear();
        self.notes.files.insert(code.to_owned(), file);
        self.notes.store(&self.paths)
    }

    /// How far the days are where all that is recorded is published, but for these.
    fn day_notes(&self, damaged: &[Dated]) -> Result<BTreeMap<JstDate, DayNote>, StoreError> {
        let mut days: BTreeMap<JstDate, DayNote> = BTreeMap::new();
        for one in &self.recordings {
            let day = days.entry(one.date).or_default();
            day.last = day.last.max(one.segment.number);
            day.bytes += bytes_of(&one.segment)?;
        }
        for one in damaged {
            let day = days.entry(one.date).or_default();
            day.last = day.last.max(one.segment.number);
            day.without.insert(one.segment.number);
        }
        Ok(days)
    }
}

/// Refuses to go on without published rows of segments that cannot be read.
fn refuse_damaged(path: &Path, what: &str, damaged: &[DamagedSegment]) -> Result<(), StoreError> {
    let Some(DamagedSegment { file, why, .. }) = damaged.first() else { return Ok(()) };
    let what = format!(
        "{what}{file}, whose rows are published, cannot be read: {why}; put a copy of it back"
    );
    Err(StoreError::Unusable { path: path.to_owned(), what })
}

/// Bytes of the files of a segment.
fn bytes_of(segment: &FinishedSegment) -> Result<u64, StoreError> {
    let files = [&segment.depth, &segment.trades].into_iter().flatten();
    let bytes = files.map(|path| {
        let found = fs::metadata(path).map_err(StoreError::io("look at", path));
        found.map(|found| found.len())
    });
    bytes.sum()
}

#[cfg(test)]
mod tests;
