//! Standard error: text for people below the progress line, or JSON lines for scripts.

use std::fmt::{self, Arguments};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
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

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        suspended(|| {
            let _ = io::stderr().lock().write_all(for_terminal(&text).as_bytes());
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
