//! Standard error: text for people below the progress line, or JSON lines for scripts.

use std::fmt::{self, Arguments};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::clock::wall_now;
use domain::text::for_terminal;
use indicatif::WeakProgressBar;
use serde_json::json;
use tracing::Level;

/// Whether standard error is for scripts.
static JSON: AtomicBool = AtomicBool::new(false);
/// The progress line that is on the terminal now.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Says whether standard error is for scripts.
pub(crate) fn set_json(is_json: bool) {
    JSON.store(is_json, Ordering::Relaxed);
}

/// Whether standard error is for scripts, so that nothing but JSON belongs there.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Says which progress line is on the terminal from now on.
pub(crate) fn set_progress(bar: WeakProgressBar) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
}

/// Writes something else to standard error while the progress line is away; it would be torn.
pub(crate) fn suspended(write: impl FnOnce()) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown.and_then(|bar| bar.upgrade()) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Writes a text of the command itself as a line of the log, whatever the level. Where it cannot be
/// written there is nobody left to tell.
pub(crate) fn write_json(level: Level, text: Arguments<'_>) {
    let mut line = json!({
        "timestamp": utc().to_string(),
        "level": level.as_str(),
        "message": text.to_string(),
        "target": "cli",
    })
    .to_string();
    line.push('\n');
    let _ = StandardError.write_all(line.as_bytes());
}

/// Now, as JSON logs have it.
pub(crate) fn utc() -> impl fmt::Display {
    let now: SystemTime = UNIX_EPOCH + Duration::from_nanos(wall_now().nanos());
    humantime::format_rfc3339_micros(now)
}

/// Standard error below the progress line. A closed one does not end a service.
pub(crate) struct StandardError;

/// Where lines go that another thread writes.
static ASIDE: OnceLock<Aside> = OnceLock::new();
/// Lines of the log that wait for standard error; what comes beyond is lost, and counted.
const LINES_WAITING_MAX: usize = 1_024;
/// How long the end waits for lines that are left.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The way to the thread that writes.
struct Aside {
    lines: SyncSender<Line>,
    lost: AtomicU64,
}

enum Line {
    Text(String),
    /// Everything before it is written.
    Drained(SyncSender<()>),
}

/// From now on another thread writes what is logged: a pipe that nobody reads takes no more at some time, and
/// whoever wrote to it would wait for ever.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn write_aside() -> io::Result<()> {
    let (lines, waiting) = sync_channel(LINES_WAITING_MAX);
    let writes = move || {
        for line in waiting {
            match line {
                Line::Text(text) => write_now(&text),
                Line::Drained(done) => drop(done.try_send(())),
            }
            let lost = ASIDE.get().map_or(0, |aside| aside.lost.swap(0, Ordering::Relaxed));
            if lost > 0 {
                let text = format!(
                    "{lost} lines of the log were lost, because standard error was not read\n"
                );
                write_now(&text);
            }
        }
    };
    thread::Builder::new().name("log".to_owned()).spawn(writes)?;
    // Once for each process.
    let _ = ASIDE.set(Aside { lines, lost: AtomicU64::new(0) });
    Ok(())
}

/// Waits for what another thread still has to write, for a moment only.
pub(crate) fn drain() {
    let Some(aside) = ASIDE.get() else { return };
    let (done, is_done) = sync_channel(1);
    if aside.lines.try_send(Line::Drained(done)).is_ok() {
        let _ = is_done.recv_timeout(DRAIN_TIME);
    }
}

fn write_now(text: &str) {
    suspended(|| {
        let _ = io::stderr().lock().write_all(for_terminal(text).as_bytes());
    });
}

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        match ASIDE.get() {
            None => write_now(&text),
            Some(aside) => {
                if aside.lines.try_send(Line::Text(text.into_owned())).is_err() {
                    aside.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
