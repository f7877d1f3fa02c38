//! The recorder of a live engine: a queue with a limit and a thread of its own, and one for the trades files.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::market_update::MarketUpdate;

use crate::limits::{RECORDER_GIVE_UP_TIME, RECORDER_QUEUE_ROWS, RECORDER_TELL_TIME};

use super::ending::Ending;
use super::row::BoardRow;
use super::writer::{Pace, RecorderError, RecorderEvent, Writer};

/// Why a row is not recorded. It is counted, and an event reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRecorded {
    /// [`RECORDER_QUEUE_ROWS`] rows wait.
    Full,
    /// The recorder has stopped.
    Stopped,
    /// The row has more levels, longer texts or larger numbers than can be kept.
    Unsound,
}

/// What became of the rows so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderCounts {
    /// Rows that were taken.
    pub taken: u64,
    /// Rows among them that are on the disk.
    pub kept: u64,
    /// Rows that were not taken: the queue was full, the recorder had stopped, or they cannot be kept.
    pub refused: u64,
}

impl fmt::Display for RecorderCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, kept, refused } = self;
        write!(f, "{kept} of {taken} accepted rows are on the disk, {refused} rows were refused")
    }
}

#[derive(Debug, Default)]
struct Shared {
    taken: AtomicU64,
    kept: AtomicU64,
    refused: AtomicU64,
    has_stopped: AtomicBool,
}

impl Shared {
    fn counts(&self) -> RecorderCounts {
        RecorderCounts {
            kept: self.kept.load(Ordering::Relaxed),
            taken: self.taken.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

type Tell = Box<dyn FnMut(RecorderEvent) + Send>;

/// Tells events of both threads.
struct Teller(Mutex<Tell>);

impl Teller {
    fn tell(&self, event: RecorderEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(event);
    }

    /// The same where no other thread sends one just now, which might take for ever.
    fn try_tell(&self, event: RecorderEvent) {
        if let Ok(mut tell) = self.0.try_lock() {
            tell(event);
        }
    }
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Teller").finish_non_exhaustive()
    }
}

/// A recorder that runs. Dropped, it brings everything to the disk, and makes its files as far as there is time.
#[derive(Debug)]
pub struct Recorder {
    rows: Option<SyncSender<BoardRow>>,
    shared: Arc<Shared>,
    ending: Arc<Ending>,
    end_time: Duration,
    teller: Arc<Teller>,
    threads: Vec<JoinHandle<()>>,
    /// Nothing comes, and it ends when both threads have ended.
    running: Receiver<Infallible>,
}

impl Recorder {
    /// Takes the folder, which is made where there is none, finishes the journals that a recorder before has
    /// left, and starts the threads. `tell` is called on these after this.
    ///
    /// # Errors
    /// [`RecorderError`]: another program records there, there is no room, or the system refuses; nothing is
    /// recorded then.
    pub fn start(
        folder: &Path,
        tell: impl FnMut(RecorderEvent) + Send + 'static,
    ) -> Result<Self, RecorderError> {
        Self::start_with(folder, Pace::default(), RECORDER_QUEUE_ROWS, tell)
    }

    pub(super) fn start_with(
        folder: &Path,
        pace: Pace,
        queue_rows: usize,
        mut tell: impl FnMut(RecorderEvent) + Send + 'static,
    ) -> Result<Self, RecorderError> {
        let mut writer = Writer::open_with(folder, pace)?;
        let (jobs, waiting_jobs) = channel();
        let files = writer.hand_over_to(jobs);
        writer.recover_journals(&mut tell)?;
        let (rows, waiting) = sync_channel(queue_rows);
        let shared = Arc::new(Shared::default());
        let (ending, lock) = (writer.ending(), writer.lock());
        let teller = Arc::new(Teller(Mutex::new(Box::new(tell))));
        let (runs, running) = channel::<Infallible>();
        let mut worker = Worker {
            writer,
            shared: Arc::clone(&shared),
            teller: Arc::clone(&teller),
            watch: Stopwatch::start(),
            told_refused: 0,
            told_at: None,
        };
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(RecorderError::io("start a thread for", folder))
        };
        let (runs_too, files_teller) = (runs.clone(), Arc::clone(&teller));
        let day_files = spawn(
            "trades-file",
            Box::new(move || {
                files.run(&waiting_jobs, &mut |event| files_teller.tell(event));
                // Others may write there from now on.
                drop((lock, runs_too));
            }),
        )?;
        let recorder = spawn(
            "recorder",
            Box::new(move || {
                worker.run(waiting);
                drop((worker, runs));
            }),
        )?;
        let threads = vec![recorder, day_files];
        let end_time = pace.end_time;
        Ok(Self { rows: Some(rows), shared, ending, end_time, teller, threads, running })
    }

    /// Hands over what a feed has sent, the order book first; never waits. What is not kept is counted.
    pub fn record(&self, update: &MarketUpdate) {
        let _ = self.try_record(BoardRow::Depth(update.board.clone()));
        if let Some(trade) = &update.trade {
            let _ = self.try_record(BoardRow::Trade(trade.clone()));
        }
    }

    /// Hands a row over; never waits.
    ///
    /// # Errors
    /// [`NotRecorded`]: the row is not kept, and counted.
    pub fn try_record(&self, row: BoardRow) -> Result<(), NotRecorded> {
        let sent = match &self.rows {
            _ if !row.is_sound() => Err(NotRecorded::Unsound),
            None => Err(NotRecorded::Stopped),
            Some(_) if self.shared.has_stopped.load(Ordering::Relaxed) => Err(NotRecorded::Stopped),
            Some(rows) => {
                // Counted before, so that no row is kept that was not taken.
                self.shared.taken.fetch_add(1, Ordering::Relaxed);
                rows.try_send(row).map_err(|error| {
                    self.shared.taken.fetch_sub(1, Ordering::Relaxed);
                    match error {
                        TrySendError::Full(_) => NotRecorded::Full,
                        TrySendError::Disconnected(_) => NotRecorded::Stopped,
                    }
                })
            }
        };
        if sent.is_err() {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// What became of the rows so far.
    #[must_use]
    pub fn counts(&self) -> RecorderCounts {
        self.shared.counts()
    }

    /// Brings everything to the disk and ends. Files that are not made in time are made by the next start.
    #[must_use]
    pub fn stop(mut self) -> RecorderCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.ending.begin();
        self.rows = None;
        let mut has_ended = self.has_ended(self.end_time);
        if !has_ended {
            self.ending.give_up();
            has_ended = self.has_ended(RECORDER_GIVE_UP_TIME);
        }
        for thread in self.threads.drain(..).filter(|_| has_ended) {
            if thread.join().is_err() {
                tracing::error!("a thread of the recorder ended in a panic");
            }
        }
        let counts = self.counts();
        let lost = counts.taken.saturating_sub(counts.kept);
        if lost > 0 && !has_ended {
            tracing::error!(
                lost,
                "the disk did not take the last rows of the recording before its end: {counts}; \
                 check the disk"
            );
            self.teller.try_tell(RecorderEvent::Dropped { rows: lost });
        } else if lost > 0 || counts.refused > 0 {
            tracing::warn!("the recording has ended and lacks rows: {counts}");
        } else {
            tracing::info!("the recording has ended: {counts}");
        }
    }

    /// Waits until both threads have ended.
    fn has_ended(&self, time: Duration) -> bool {
        self.running.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

struct Worker {
    writer: Writer,
    shared: Arc<Shared>,
    teller: Arc<Teller>,
    watch: Stopwatch,
    /// Refused rows that were reported.
    told_refused: u64,
    told_at: Option<Duration>,
}

impl Worker {
    fn run(&mut self, rows: Receiver<BoardRow>) {
        let Err(error) = self.record(&rows) else {
            self.tell_refused(true);
            return;
        };
        self.shared.has_stopped.store(true, Ordering::Relaxed);
        while rows.try_recv().is_ok() {}
        drop(rows);
        self.tell_refused(true);
        let lost = self.shared.taken.load(Ordering::Relaxed).saturating_sub(self.writer.kept());
        let why = format!("{error}; check the disk and start the engine again");
        tracing::error!(lost, "the recording has stopped: {why}");
        self.teller.tell(RecorderEvent::Stopped { why, lost });
    }

    /// Until no more rows are handed over.
    fn record(&mut self, rows: &Receiver<BoardRow>) -> Result<(), RecorderError> {
        loop {
            let due = self.writer.due().into_iter().chain(self.refused_due()).min();
            let wait = due.map(|due| due.saturating_sub(self.watch.elapsed()));
            // A queue that is never empty must not keep what is due from being done: `push` does it.
            let next = match (rows.try_recv(), wait) {
                (Ok(row), _) => Ok(row),
                (Err(TryRecvError::Disconnected), _) => Err(RecvTimeoutError::Disconnected),
                (Err(TryRecvError::Empty), None) => {
                    rows.recv().map_err(|_| RecvTimeoutError::Disconnected)
                }
                (Err(TryRecvError::Empty), Some(wait)) => rows.recv_timeout(wait),
            };
            let now = self.watch.elapsed();
            let teller = &self.teller;
            let tell = &mut |event| teller.tell(event);
            let done = match next {
                Ok(row) => self.writer.push(&row, now, tell),
                Err(RecvTimeoutError::Timeout) => self.writer.tick(now, tell),
                Err(RecvTimeoutError::Disconnected) => {
                    // On the disk first: files can be made of it at any time.
                    let synced = self.writer.sync();
                    self.shared.kept.store(self.writer.kept(), Ordering::Relaxed);
                    let finished = synced.and_then(|()| self.writer.finish(tell));
                    self.shared.kept.store(self.writer.kept(), Ordering::Relaxed);
                    return finished;
                }
            };
            self.shared.kept.store(self.writer.kept(), Ordering::Relaxed);
            done?;
            self.tell_refused(false);
        }
    }

    /// When rows that were not taken are to be reported; never where all are.
    fn refused_due(&self) -> Option<Duration> {
        let is_told = self.shared.refused.load(Ordering::Relaxed) == self.told_refused;
        (!is_told).then(|| self.told_at.map_or(Duration::ZERO, |told| told + RECORDER_TELL_TIME))
    }

    /// Tells of rows that were not taken, at most every [`RECORDER_TELL_TIME`], and at the end.
    fn tell_refused(&mut self, is_end: bool) {
        let refused = self.shared.refused.load(Ordering::Relaxed);
        if refused == self.told_refused {
            return;
        }
        let now = self.watch.elapsed();
        let is_due = self.told_at.is_none_or(|told| now >= told + RECORDER_TELL_TIME);
        if is_due || is_end {
            let rows = refused - self.told_refused;
            (self.told_refused, self.told_at) = (refused, Some(now));
            tracing::warn!(
                rows,
                "rows are not recorded: too many are waiting, or they are too large"
            );
            self.teller.tell(RecorderEvent::Dropped { rows });
        }
    }
}
