//! Starts a program of the user's on what a person has to know: `[engine] notify_command`.
//!
//! The program starts without a shell, one at a time. It gets one line of JSON on its standard input, and of the
//! environment only a few names, so no secret. Who tells of something never waits: at most
//! [`NOTICES_WAITING_MAX`] notices wait, then the oldest goes, and the next line counts it as `dropped`. A program that
//! takes longer than [`PROGRAM_TIME`] is ended.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use domain::text::with_causes;
use domain::{InstrumentId, OrderSide, Price, Quantity, TsNanos};
use serde::Serialize;

/// Notices that wait for the program.
pub const NOTICES_WAITING_MAX: usize = 100;
/// How long the program may take.
pub const PROGRAM_TIME: Duration = Duration::from_secs(10);
/// Bytes of a notice's message; the rest is cut off, so that a line fits into every system's pipe.
pub const NOTICE_MESSAGE_BYTES_MAX: usize = 400;
/// How often it is looked for whether the program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// What of the environment the program gets.
const ENVIRONMENT: &[&str] = if cfg!(windows) {
    // Without the first PowerShell does not start, nor does any program that opens a socket.
    &["SystemRoot", "PATH", "TEMP", "USERPROFILE"]
} else {
    &["PATH", "HOME", "LANG"]
};

/// What a person has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A run has ended with a fault.
    Fault,
    /// A running strategy gets no market data.
    MarketDataLost,
    /// A venue needs a login.
    LoginNeeded,
    /// The second password is needed.
    PasswordNeeded,
    /// An order was filled.
    Fill,
    /// A run has ended.
    RunEnd,
}

/// What was filled, as the line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeFill {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Which way.
    pub side: OrderSide,
    /// Shares of this fill.
    pub quantity: Quantity,
    /// Its price.
    pub price: Price,
}

/// A notice for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is of.
    pub kind: NoticeKind,
    /// The engine's time.
    pub ts: TsNanos,
    /// The strategy, where it is of one.
    pub strategy_id: Option<String>,
    /// What a person reads, without any secret.
    pub message: String,
    /// The fill, where it is of one.
    pub fill: Option<NoticeFill>,
}

/// The line that the program gets.
#[derive(Serialize)]
struct Line<'a> {
    kind: NoticeKind,
    ts_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy_id: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fill: Option<FillText<'a>>,
    /// Notices before this one that nobody got.
    dropped: u64,
}

#[derive(Serialize)]
struct FillText<'a> {
    instrument_id: &'a str,
    side: &'static str,
    qty: String,
    price: String,
}

impl Notice {
    fn line(&self, dropped: u64) -> serde_json::Result<String> {
        let fill = self.fill.as_ref().map(|fill| FillText {
            instrument_id: fill.instrument.as_str(),
            side: fill.side.as_str(),
            qty: fill.quantity.to_string(),
            price: fill.price.to_string(),
        });
        let line = Line {
            kind: self.kind,
            ts_ms: self.ts.millis(),
            strategy_id: self.strategy_id.as_deref(),
            message: begin_of(&self.message, NOTICE_MESSAGE_BYTES_MAX),
            fill,
            dropped,
        };
        Ok(serde_json::to_string(&line)? + "\n")
    }
}

/// The text, cut off between two characters.
fn begin_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Tells notices to the user's program. Copies are one and the same; what waits when the last one is dropped is told
/// while the process lives.
#[derive(Debug, Clone, Default)]
pub struct Notifier(Option<Arc<Handle>>);

/// What all copies share.
#[derive(Debug)]
struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    command: Vec<String>,
    time: Duration,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Notice>,
    /// Notices that went without being told, since the last line.
    dropped: u64,
    /// The program runs.
    is_busy: bool,
    is_closed: bool,
}

impl Shared {
    /// Nothing under the lock panics.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notifier {
    /// A notifier that starts `command`, a program and its arguments; an empty one starts nothing.
    ///
    /// # Errors
    /// What the system says when it gives no thread.
    pub fn new(command: Vec<String>) -> io::Result<Self> {
        Self::with_time(command, PROGRAM_TIME)
    }

    fn with_time(command: Vec<String>, time: Duration) -> io::Result<Self> {
        if command.is_empty() {
            return Ok(Self(None));
        }
        let shared = Shared { command, time, queue: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let worker = Arc::clone(&shared);
        thread::Builder::new().name("notify".to_owned()).spawn(move || worker.work())?;
        Ok(Self(Some(Arc::new(Handle(shared)))))
    }

    /// Tells a notice when its turn comes. It never waits.
    pub fn tell(&self, notice: Notice) {
        let Some(handle) = &self.0 else { return };
        let mut queue = handle.0.lock();
        if queue.waiting.len() >= NOTICES_WAITING_MAX {
            queue.waiting.pop_front();
            queue.dropped += 1;
        }
        // What a person must act on does not wait for fills.
        let is_fill = |waiting: &Notice| waiting.kind == NoticeKind::Fill;
        let place = queue.waiting.iter().position(is_fill).filter(|_| !is_fill(&notice));
        let place = place.unwrap_or(queue.waiting.len());
        queue.waiting.insert(place, notice);
        drop(queue);
        handle.0.changed.notify_all();
    }

    /// Waits until everything is told, at most so long: for the end of the process.
    pub fn finish(&self, at_most: Duration) {
        let Some(handle) = &self.0 else { return };
        let is_under_way = |queue: &mut Queue| queue.is_busy || !queue.waiting.is_empty();
        let queue = handle.0.lock();
        // What is not told then is not told at all.
        drop(handle.0.changed.wait_timeout_while(queue, at_most, is_under_way));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Tells one notice after the other, until all copies of the notifier are gone and nothing waits.
    fn work(&self) {
        while let Some((notice, dropped)) = self.next() {
            let told = notice.line(dropped).map_err(io::Error::other);
            match told.and_then(|line| run(&self.command, &line, self.time)) {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => tracing::warn!(%status, "notify_command has failed"),
                Ok(None) => {
                    let seconds = self.time.as_secs();
                    tracing::warn!(seconds, "notify_command took too long and was ended");
                }
                Err(error) => {
                    let error = with_causes(&error);
                    tracing::warn!(error, "notify_command cannot be started");
                }
            }
            self.lock().is_busy = false;
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<(Notice, u64)> {
        let is_idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_closed;
        let queue = self.changed.wait_while(self.lock(), is_idle);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let notice = queue.waiting.pop_front()?;
        queue.is_busy = true;
        Some((notice, std::mem::take(&mut queue.dropped)))
    }
}

/// Runs the program with a line on its standard input. Tells how it ended, none where it was ended.
fn run(command: &[String], line: &str, time: Duration) -> io::Result<Option<ExitStatus>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for name in ENVIRONMENT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program need not read it.
        let _ = input.write_all(line.as_bytes());
    }
    let watch = Stopwatch::start();
    while watch.elapsed() < time {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(LOOK);
    }
    end(&mut child)?;
    Ok(None)
}

/// Ends a program, with what it has started where the system knows that.
fn end(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It may have ended at the same moment.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    #[cfg(not(unix))]
    {
        let _ = child.kill();
    }
    child.wait().map(drop)
}

#[cfg(test)]
mod tests;
