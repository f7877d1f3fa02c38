//! Takes records, and writes them on a thread of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{JstDate, TsNanos};

use super::line;
use super::record::{Header, HostRecord, Record, Row};

/// Bytes that may wait to be written; with more the run ends (specification 4, P112).
pub const JOURNAL_WAITING_BYTES_MAX: usize = 64 << 20;
/// Bytes after which lines go into a new block: a block that grows is copied.
const BLOCK_BYTES: usize = 64 << 10;
/// Room of a new block, for the lines of a row.
const LINES_BYTES: usize = 1 << 10;
/// Time after which what was written is brought to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Files of one day: a clock that goes back and forth makes several.
const FILES_OF_DAY_MAX: u32 = 1_000;

/// A file of a journal.
pub trait JournalFile: Write + Send {
    /// Brings what was written to the disk.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;
}

impl JournalFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Makes the files of a journal. Tests have some that are slow or full.
pub trait JournalFiles: Send + 'static {
    /// Makes the file of a day.
    ///
    /// # Errors
    /// What the system says.
    fn create(&mut self, day: JstDate) -> io::Result<Box<dyn JournalFile>>;

    /// Where the files are, for messages.
    fn place(&self) -> String;
}

/// Files `journal-YYYYMMDD.jsonl` in a folder.
struct Folder(PathBuf);

impl JournalFiles for Folder {
    fn create(&mut self, day: JstDate) -> io::Result<Box<dyn JournalFile>> {
        let day = day.format("%Y%m%d");
        let names = (1..FILES_OF_DAY_MAX).map(|number| match number {
            1 => format!("journal-{day}.jsonl"),
            number => format!("journal-{day}-{number}.jsonl"),
        });
        for name in names {
            match File::create_new(self.0.join(name)) {
                Ok(file) => {
                    atomic_file::sync_folder(&self.0)?;
                    return Ok(Box::new(file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("there are {FILES_OF_DAY_MAX} files of {day}")))
    }

    fn place(&self) -> String {
        self.0.display().to_string()
    }
}

/// Lines of one day; the first one of a day begins with the header of its file.
struct Block {
    day: JstDate,
    lines: Vec<u8>,
}

/// What the journal's thread shares with the others.
struct State {
    blocks: VecDeque<Block>,
    /// Bytes that are not written, those in the writer's hand too.
    waiting: usize,
    /// The day of the last record.
    day: JstDate,
    /// The header of that day's file.
    header: Header,
    /// The checksum of the last line.
    checksum: u64,
    /// The last row, until the strategy has it.
    row: Option<Row>,
    /// Why nothing is taken any more.
    failure: Option<String>,
    is_closed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// There are lines, or the journal is closed.
    news: Condvar,
    place: String,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change under this lock is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's thread, which ends with the last handle of its journal.
struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    fn close(&self) {
        self.shared.state().is_closed = true;
        self.shared.news.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has nothing to tell; what it did not write is missing from the file.
            drop(thread.join());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// A journal that is written. Copies of it write the same one.
#[derive(Clone)]
pub struct Journal(Arc<Writer>);

impl Journal {
    /// Begins the journal of a run in its folder, with a file of `day`, which is the day in Japan.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(folder: &Path, header: Header, day: JstDate) -> io::Result<Self> {
        Self::create_in(Folder(folder.to_owned()), header, day)
    }

    /// The same with files of another kind.
    ///
    /// # Errors
    /// What the system says.
    pub fn create_in(files: impl JournalFiles, header: Header, day: JstDate) -> io::Result<Self> {
        let place = files.place();
        let header = Header { part: 1, after: 0, ..header };
        let mut lines = Vec::new();
        let checksum = line::push(&mut lines, &Record::Header(Box::new(header.clone())), 0)?;
        let mut file = OpenFile { files: Box::new(files), day, file: None };
        file.begin(day)?;
        file.write(&Block { day, lines })?;
        file.sync()?;
        let state = State {
            blocks: VecDeque::new(),
            waiting: 0,
            day,
            header,
            checksum,
            row: None,
            failure: None,
            is_closed: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), news: Condvar::new(), place });
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_all(&for_thread, &mut file))?;
        Ok(Self(Arc::new(Writer { shared, thread: Mutex::new(Some(thread)) })))
    }

    /// Takes a row, before all that it causes. The next call of the strategy with the same row does not record it
    /// again.
    pub fn row(&self, row: Row) {
        let mut state = self.0.shared.state();
        self.push(&mut state, Some(row.ts_event()), &[Record::Row(row)]);
        state.row = Some(row);
    }

    /// Takes what happened beside the strategy.
    pub fn host(&self, record: HostRecord<'_>) {
        let mut state = self.0.shared.state();
        self.push(&mut state, None, &[Record::Host(record)]);
    }

    /// Takes records of the instant `ts_event`; the row, if there is one, only where it was not taken before.
    pub(super) fn records(
        &self,
        row: Option<Row>,
        ts_event: Option<TsNanos>,
        records: &[Record<'_>],
    ) {
        let mut state = self.0.shared.state();
        if let Some(row) = row {
            let is_known = state.row.take().is_some_and(|known| known.is_same(&row));
            if !is_known {
                self.push(&mut state, Some(row.ts_event()), &[Record::Row(row)]);
            }
        }
        self.push(&mut state, ts_event, records);
    }

    /// Why nothing is recorded any more; the run must end with it.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.0.shared.state().failure.clone()
    }

    /// Ends the journal with the record of the run's end: waits until all of it is on the disk.
    ///
    /// # Errors
    /// Why it is not.
    pub fn finish(&self) -> Result<(), String> {
        self.host(HostRecord::End);
        self.0.close();
        self.failure().map_or(Ok(()), Err)
    }

    /// Adds lines, or fails for good where there is no room.
    fn push(&self, state: &mut State, ts_event: Option<TsNanos>, records: &[Record<'_>]) {
        if state.failure.is_some() || state.is_closed {
            return;
        }
        // The end of a day's orders comes with the first row of the next day, and has its own time.
        let day = ts_event.map_or(state.day, |ts_event| state.day.max(ts_event.jst_date()));
        let header = (day > state.day).then(|| {
            state.day = day;
            state.header.part += 1;
            state.header.after = state.checksum;
            state.checksum = 0;
            Record::Header(Box::new(state.header.clone()))
        });
        let has_room = state
            .blocks
            .back()
            .is_some_and(|block| block.day == day && block.lines.len() < BLOCK_BYTES);
        if !has_room {
            state.blocks.push_back(Block { day, lines: Vec::with_capacity(LINES_BYTES) });
        }
        let Some(block) = state.blocks.back_mut() else { return };
        for record in header.iter().chain(records) {
            let before = block.lines.len();
            let pushed = line::push(&mut block.lines, record, state.checksum);
            let bytes = block.lines.len() - before;
            let place = &self.0.shared.place;
            let failure = match pushed {
                Err(error) => format!("cannot write a record: {error}"),
                Ok(_) if state.waiting + bytes > JOURNAL_WAITING_BYTES_MAX => format!(
                    "{} MiB wait to be written to {place}, and more may not; use a faster disk",
                    JOURNAL_WAITING_BYTES_MAX >> 20
                ),
                Ok(checksum) => {
                    state.checksum = checksum;
                    state.waiting += bytes;
                    continue;
                }
            };
            block.lines.truncate(before);
            state.failure = Some(failure);
            break;
        }
        self.0.shared.news.notify_one();
    }
}

/// The file that is written.
struct OpenFile {
    files: Box<dyn JournalFiles>,
    day: JstDate,
    file: Option<Box<dyn JournalFile>>,
}

impl OpenFile {
    /// Begins the file of a day; the one before is on the disk then.
    fn begin(&mut self, day: JstDate) -> io::Result<()> {
        self.sync()?;
        let file = self.files.create(day)?;
        (self.day, self.file) = (day, Some(file));
        Ok(())
    }

    fn write(&mut self, block: &Block) -> io::Result<()> {
        if block.day != self.day {
            self.begin(block.day)?;
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&block.lines))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.sync())
    }
}

/// Writes what comes until the journal is closed or the disk says no.
fn write_all(shared: &Shared, file: &mut OpenFile) {
    let mut unsynced: Option<Stopwatch> = None;
    loop {
        let (blocks, is_closed) = take(shared, unsynced);
        for block in blocks {
            let written = if block.lines.is_empty() { Ok(()) } else { file.write(&block) };
            if let Err(error) = written {
                return fail(shared, &error);
            }
            shared.state().waiting -= block.lines.len();
            unsynced = unsynced.or_else(|| Some(Stopwatch::start()));
        }
        let is_due = unsynced.is_some_and(|since| is_closed || since.elapsed() >= SYNC_EVERY);
        if is_due {
            if let Err(error) = file.sync() {
                return fail(shared, &error);
            }
            unsynced = None;
        }
        if is_closed {
            return;
        }
    }
}

/// Waits for blocks, at most until what was written has to be brought to the disk. Says whether these are the last.
fn take(shared: &Shared, unsynced: Option<Stopwatch>) -> (VecDeque<Block>, bool) {
    let mut state = shared.state();
    while state.blocks.is_empty() && !state.is_closed {
        state = match unsynced.map(|since| SYNC_EVERY.saturating_sub(since.elapsed())) {
            None => shared.news.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => break,
            Some(left) => {
                shared.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
    (std::mem::take(&mut state.blocks), state.is_closed)
}

fn fail(shared: &Shared, error: &io::Error) {
    let failure = format!("cannot write to {}: {error}", shared.place);
    shared.state().failure.get_or_insert(failure);
}
