//! What the recorder's thread does, with the time given.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use domain::time::NANOS_PER_DAY;
use domain::{JstDate, TsNanos};
use thiserror::Error;

use crate::limits::{
    DAY_SEGMENTS_MAX, JOURNAL_ROWS_MAX, JOURNAL_TIME_MAX, RECORDER_END_TIME, RECORDER_ROOM_BYTES,
    SYNC_TIME,
};
use crate::parquet::ParquetError;

use super::day_files::{DayFiles, Job};
use super::ending::Ending;
use super::folder::{BoardFolder, DayFolder, days};
use super::journal::{Journal, JournalError};
use super::row::BoardRow;
use super::same_file::stands_at;
use super::segment::{SealReport, seal};
use super::trades_file::TradesFileReport;

/// Why nothing is recorded, or no more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// Another recorder writes there.
    #[error(
        "another program records into {}; end that one, or set another `record_dir`",
        .0.display()
    )]
    Locked(PathBuf),
    /// A day has too many segments.
    #[error(
        "{} has {DAY_SEGMENTS_MAX} segments, the most of a day; set another `record_dir`",
        .0.display()
    )]
    TooManySegments(PathBuf),
    /// A journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A table cannot be read or written.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// A file that the recorder did not make has the name of one of its own.
    #[error("{} was not made by a recorder; move it away", .0.display())]
    NotOurs(PathBuf),
    /// What is written has its name no more.
    #[error(
        "{} was removed, moved or replaced while it was recorded there; leave the folder as it is until the \
         engine has ended",
        .0.display()
    )]
    Gone(PathBuf),
    /// The end of the recorder does not wait for it; the next one does it.
    #[error("the recording has ended before it was done; the next start does it")]
    GivenUp,
    /// The system refuses.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl RecorderError {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// What a recorder tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecorderEvent {
    /// The files of a journal were made that a recorder before had left.
    Recovered(SealReport),
    /// What has the name of a journal cannot be read, and has another name now.
    SetAside {
        /// Where it is.
        aside: PathBuf,
        /// Why it cannot be read, in one line.
        why: String,
    },
    /// The files of a journal were made that was full or old.
    Sealed(SealReport),
    /// The trades of a day were written in the vendor's layout.
    TradesFile(TradesFileReport),
    /// They were not written before the end, or not all of them; the next start writes them.
    TradesFileLate {
        /// The day in Japan.
        date: JstDate,
        /// Segments of the day that its file lacks.
        lacks: Vec<u32>,
    },
    /// They could not be; the next start tries again.
    TradesFileFailed {
        /// The day in Japan.
        date: JstDate,
        /// Why, in one line.
        why: String,
    },
    /// So many rows came while the queue was full, since the last such event.
    Dropped {
        /// Rows that are not kept.
        rows: u64,
    },
    /// Nothing is recorded any more until the program starts again; what is on the disk stays.
    Stopped {
        /// Why, in one line, and what to do.
        why: String,
        /// Rows that had been taken and are not kept.
        lost: u64,
    },
}

/// Sizes and times at which a writer brings rows to the disk and makes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Rows of a journal, after which it becomes Parquet files.
    pub(super) journal_rows: u64,
    /// Age at which it does.
    pub(super) journal_time: Duration,
    /// How long a row may wait until it is on the disk.
    pub(super) sync_time: Duration,
    /// How long an end waits for files that the next start can make as well.
    pub(super) end_time: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            journal_rows: JOURNAL_ROWS_MAX,
            journal_time: JOURNAL_TIME_MAX,
            sync_time: SYNC_TIME,
            end_time: RECORDER_END_TIME,
        }
    }
}

/// The one writer of a folder. After an error it must not be used any more; what is on the disk stays, and
/// the next writer makes files of it.
#[derive(Debug)]
pub struct Writer {
    folder: BoardFolder,
    pace: Pace,
    current: Option<Segment>,
    /// The day of the last segment that ended, while its trades are not written.
    ended: Option<DayFolder>,
    /// When the day of the last row ends in Japan, while its trades are not written.
    day_over: Option<Duration>,
    files: Files,
    /// Rows on the disk.
    kept: u64,
    /// Keeps other writers away.
    lock: Arc<File>,
    ending: Arc<Ending>,
}

/// Who writes the trades of days.
#[derive(Debug)]
enum Files {
    /// The writer itself, when a day is over.
    Here(Box<DayFiles>),
    /// Another thread, meanwhile.
    Thread(Sender<Job>),
}

/// The segment that is written.
#[derive(Debug)]
struct Segment {
    day: DayFolder,
    number: u32,
    journal: Journal,
    /// When it began.
    since: Duration,
    /// When the first row came that is not on the disk.
    waits_since: Option<Duration>,
}

impl Writer {
    /// Takes a folder, which is made where there is none.
    ///
    /// # Errors
    /// [`RecorderError`]: another writer has it, there is no room in it, or the system refuses.
    pub fn open(folder: &Path) -> Result<Self, RecorderError> {
        Self::open_with(folder, Pace::default())
    }

    pub(super) fn open_with(folder: &Path, pace: Pace) -> Result<Self, RecorderError> {
        let folder = BoardFolder::new(folder);
        let path = folder.days_folder();
        fs::create_dir_all(&path).map_err(RecorderError::io("make", &path))?;
        let path = folder.lock_file();
        let lock = atomic_file::open_own(&path).map_err(RecorderError::io("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RecorderError::Locked(folder.path().to_owned()));
            }
            Err(TryLockError::Error(source)) => {
                return Err(RecorderError::io("lock", &path)(source));
            }
        }
        let path = folder.days_folder();
        has_room(&path).map_err(RecorderError::io("write the first 8 MiB in", &path))?;
        let (current, ended, day_over) = (None, None, None);
        let ending = Arc::new(Ending::default());
        let day_files = DayFiles::new(folder.clone(), Arc::clone(&ending));
        let files = Files::Here(Box::new(day_files));
        let lock = Arc::new(lock);
        Ok(Self { folder, pace, current, ended, day_over, files, kept: 0, lock, ending })
    }

    /// Hands over to `jobs` what is to be done for the trades of days from now on.
    pub(super) fn hand_over_to(&mut self, jobs: Sender<Job>) -> DayFiles {
        self.files = Files::Thread(jobs);
        DayFiles::new(self.folder.clone(), Arc::clone(&self.ending))
    }

    pub(super) fn ending(&self) -> Arc<Ending> {
        Arc::clone(&self.ending)
    }

    /// Whoever holds it keeps other writers away.
    pub(super) fn lock(&self) -> Arc<File> {
        Arc::clone(&self.lock)
    }

    /// Rows that are on the disk, of those that this writer took.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        self.kept
    }

    /// Finishes what an earlier writer has left: journals, files that have no name yet, and the trades of
    /// days in the vendor's layout.
    ///
    /// # Errors
    /// [`RecorderError`]; nothing is lost then.
    pub fn recover(&mut self, tell: &mut dyn FnMut(RecorderEvent)) -> Result<(), RecorderError> {
        self.recover_journals(tell)?;
        if let Files::Here(files) = &mut self.files {
            while files.catch_up(tell) {}
        }
        Ok(())
    }

    /// The same without the trades of days. A journal that cannot be read is set aside: what is recorded next
    /// does not depend on it.
    pub(super) fn recover_journals(
        &mut self,
        tell: &mut dyn FnMut(RecorderEvent),
    ) -> Result<(), RecorderError> {
        let path = self.folder.days_folder();
        remove_unfinished(&path)?;
        remove_unfinished(&self.folder.trades_folder())?;
        let behind = days(&self.folder).map_err(RecorderError::io("list", &path))?;
        for day in &behind {
            remove_unfinished(day.path())?;
            let listed = day.list().map_err(RecorderError::io("list", day.path()))?;
            for segment in listed.journals {
                tell(recover_journal(day, segment)?);
            }
        }
        self.hand_over(Job::Behind(behind), tell);
        Ok(())
    }

    /// Takes a sound row ([`BoardRow::is_sound`]) at a time of a clock that never goes back.
    ///
    /// # Errors
    /// [`RecorderError`]
    pub fn push(
        &mut self,
        row: &BoardRow,
        now: Duration,
        tell: &mut dyn FnMut(RecorderEvent),
    ) -> Result<(), RecorderError> {
        let date = row.day();
        let open = self.current.as_ref().map(|segment| &segment.day).or(self.ended.as_ref());
        if open.is_some_and(|day| day.date() != date) {
            self.end_day(tell)?;
        }
        let mut begun = None;
        let current = match &mut self.current {
            Some(current) => current,
            none => {
                let segment = Segment::begin(self.folder.day(date), now)?;
                begun = Some(segment.day.clone());
                none.insert(segment)
            }
        };
        current.waits_since.get_or_insert(now);
        self.day_over = Some(now + until_midnight(row.received()));
        if current.journal.push(row) {
            self.sync()?;
        }
        if let Some(day) = begun {
            self.hand_over(Job::Follow(day), tell);
        }
        self.tick(now, tell)
    }

    /// Does what is due at a time.
    ///
    /// # Errors
    /// [`RecorderError`]
    pub fn tick(
        &mut self,
        now: Duration,
        tell: &mut dyn FnMut(RecorderEvent),
    ) -> Result<(), RecorderError> {
        // Nobody may push on the next day, as on a Saturday.
        if self.day_over.is_some_and(|over| now >= over) {
            return self.end_day(tell);
        }
        let Some(current) = &self.current else { return Ok(()) };
        let rows = current.journal.rows() + current.journal.waiting() as u64;
        let is_over = rows >= self.pace.journal_rows
            || now.saturating_sub(current.since) >= self.pace.journal_time;
        // At the end all rows that wait come to the disk first.
        if is_over && !self.ending.has_begun() {
            return self.end_segment(tell);
        }
        if current.waits_since.is_some_and(|since| now >= since + self.pace.sync_time) {
            self.sync()?;
        }
        Ok(())
    }

    /// When [`Self::tick`] is to be called at the latest; never where nothing waits.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let of_segment = self.current.as_ref().map(|current| {
            let over = current.since + self.pace.journal_time;
            current.waits_since.map_or(over, |since| over.min(since + self.pace.sync_time))
        });
        of_segment.into_iter().chain(self.day_over).min()
    }

    /// Ends the segment and writes the trades of its day.
    ///
    /// # Errors
    /// [`RecorderError`]
    pub fn finish(&mut self, tell: &mut dyn FnMut(RecorderEvent)) -> Result<(), RecorderError> {
        self.end_day(tell)
    }

    fn end_day(&mut self, tell: &mut dyn FnMut(RecorderEvent)) -> Result<(), RecorderError> {
        self.end_segment(tell)?;
        self.day_over = None;
        if let Some(day) = self.ended.take() {
            self.hand_over(Job::Over(day), tell);
        }
        Ok(())
    }

    fn end_segment(&mut self, tell: &mut dyn FnMut(RecorderEvent)) -> Result<(), RecorderError> {
        self.sync()?;
        let Some(current) = self.current.take() else { return Ok(()) };
        let report = match seal(&current.day, current.number, &|| self.ending.is_over()) {
            Err(RecorderError::GivenUp) => {
                tracing::warn!(
                    date = %current.day.date(), segment = current.number,
                    "the recording ended before its last rows were in Parquet files. The journal \
                     has them; the next start makes the files"
                );
                self.ended = Some(current.day);
                return Ok(());
            }
            other => other?,
        };
        tracing::debug!(
            date = %report.date, segment = report.segment, depth = report.depth,
            trades = report.trades, "a segment of the recording is finished"
        );
        tell(RecorderEvent::Sealed(report));
        self.ended = Some(current.day.clone());
        self.hand_over(Job::Follow(current.day), tell);
        Ok(())
    }

    /// Brings the rows that wait to the disk. Where the journal is not at its place any more none of its rows is.
    pub(super) fn sync(&mut self) -> Result<(), RecorderError> {
        let Some(current) = &mut self.current else { return Ok(()) };
        self.kept += current.sync()?;
        let journal = &current.journal;
        let path = journal.path();
        if !journal.is_at_its_place().map_err(RecorderError::io("look at", path))? {
            self.kept -= journal.rows();
            return Err(RecorderError::Gone(path.to_owned()));
        }
        let path = self.folder.lock_file();
        // Without it another recorder may take the folder.
        if !stands_at(&self.lock, &path).map_err(RecorderError::io("look at", &path))? {
            return Err(RecorderError::Gone(path));
        }
        Ok(())
    }

    /// Has something done for the trades of days.
    fn hand_over(&mut self, job: Job, tell: &mut dyn FnMut(RecorderEvent)) {
        match (&mut self.files, job) {
            (Files::Thread(jobs), job) => {
                // It is there as long as this is.
                let _ = jobs.send(job);
            }
            (Files::Here(files), Job::Behind(days)) => files.behind = days,
            (Files::Here(files), Job::Over(day)) => files.over(&day, tell),
            (Files::Here(_), Job::Follow(_)) => {}
        }
    }
}

impl Segment {
    fn begin(day: DayFolder, now: Duration) -> Result<Self, RecorderError> {
        let path = day.path();
        fs::create_dir_all(path).map_err(RecorderError::io("make", path))?;
        let folder = atomic_file::folder_of(path);
        atomic_file::sync_folder(folder).map_err(RecorderError::io("write in", folder))?;
        let number = day.list().map_err(RecorderError::io("list", path))?.last() + 1;
        if number > DAY_SEGMENTS_MAX {
            return Err(RecorderError::TooManySegments(path.to_owned()));
        }
        let journal = Journal::create(day.journal(number))?;
        Ok(Self { day, number, journal, since: now, waits_since: None })
    }

    /// Brings the rows that wait to the disk; gives how many.
    fn sync(&mut self) -> Result<u64, RecorderError> {
        let rows = self.journal.waiting() as u64;
        self.journal.sync()?;
        self.waits_since = None;
        Ok(rows)
    }
}

/// From a time to the end of its day in Japan.
fn until_midnight(time: TsNanos) -> Duration {
    Duration::from_nanos(NANOS_PER_DAY - time.jst_nanos_of_day())
}

/// Makes the files of a journal that an earlier writer has left, or sets it aside where it cannot be read.
fn recover_journal(day: &DayFolder, segment: u32) -> Result<RecorderEvent, RecorderError> {
    let report = match seal(day, segment, &|| false) {
        Ok(report) => report,
        Err(RecorderError::Journal(
            error @ (JournalError::Unreadable { .. } | JournalError::Foreign { .. }),
        )) => {
            let path = day.journal(segment);
            let aside = day.set_aside(segment).map_err(RecorderError::io("rename", &path))?;
            let why = error.to_string();
            tracing::warn!(
                %why, aside = %aside.display(),
                "cannot read a journal of a recording. It is kept under another name, and no file \
                 has its rows. New rows are recorded. Once it can be read, end the engine, give it \
                 its name back and start again"
            );
            return Ok(RecorderEvent::SetAside { aside, why });
        }
        Err(error) => return Err(error),
    };
    let (damaged, torn) = (report.journal.damaged_bytes, report.journal.torn_bytes);
    tracing::warn!(
        date = %report.date, segment, rows = report.journal.rows, torn, damaged,
        "a recording was left unfinished; its rows are kept"
    );
    Ok(RecorderEvent::Recovered(report))
}

/// Writes as much as the longest block of a journal needs, and removes it again.
fn has_room(folder: &Path) -> io::Result<()> {
    let mut file = atomic_file::AtomicFile::create_in(folder)?;
    let zeros = [0; 64 << 10];
    for _ in 0..RECORDER_ROOM_BYTES / zeros.len() {
        file.write_all(&zeros)?;
    }
    atomic_file::sync_file(file.unfinished_path())
}

/// Removes files of a folder that a killed writer was writing aside: nobody else writes there.
fn remove_unfinished(folder: &Path) -> Result<(), RecorderError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(RecorderError::io("list", folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(RecorderError::io("list", folder))?;
        let name = entry.file_name();
        let is_unfinished =
            name.to_str().is_some_and(|name| name.starts_with(atomic_file::UNFINISHED_PREFIX));
        if is_unfinished && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(RecorderError::io("remove", &path))?;
        }
    }
    Ok(())
}
