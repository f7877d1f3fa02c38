//! Ends a call that takes too long on the wall clock. Live trading only; replay is bounded by fuel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

/// How often the engine's epoch moves on.
const EPOCH_INTERVAL: Duration = Duration::from_millis(10);

/// A thread that moves the engine's epoch on while an instance lives.
pub(crate) struct Watchdog {
    allowed: Duration,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn start(engine: EngineWeak, allowed: Duration) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(EPOCH_INTERVAL);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self { allowed, stopped, thread: Some(thread) })
    }

    /// Epochs that a call may take; never fewer than one whole interval.
    pub(crate) fn deadline(&self) -> u64 {
        let epochs = self.allowed.as_nanos().div_ceil(EPOCH_INTERVAL.as_nanos());
        u64::try_from(epochs).unwrap_or(u64::MAX / 4).saturating_add(1)
    }

    pub(crate) fn allowed_ms(&self) -> u64 {
        u64::try_from(self.allowed.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to tell; a failed join would only hide the first error.
            drop(thread.join());
        }
    }
}
