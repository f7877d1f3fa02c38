//! Ends a call that takes too long on the wall clock. Live trading only; replay is bounded by fuel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

/// How often the engine's epoch moves on.
const BEAT: Duration = Duration::from_millis(10);

/// A thread that moves the engine's epoch on while an instance lives.
pub(crate) struct Watchdog {
    allowed: Duration,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn start(engine: EngineWeak, allowed: Duration) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(BEAT);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self { allowed, over, thread: Some(thread) })
    }

    /// Beats that a call may take; never fewer than one whole beat.
    pub(crate) fn deadline(&self) -> u64 {
        let beats = self.allowed.as_nanos().div_ceil(BEAT.as_nanos());
        u64::try_from(beats).unwrap_or(u64::MAX / 4).saturating_add(1)
    }

    pub(crate) fn allowed_ms(&self) -> u64 {
        u64::try_from(self.allowed.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to tell; a failed join would only hide the first error.
            drop(thread.join());
        }
    }
}
