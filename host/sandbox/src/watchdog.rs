//! Ends a call that takes too long on the wall clock. Live trading only; replay is bounded by fuel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

/// How often the engine's epoch moves on.
const EPOCH_INTERVAL: Duration = Duration::from_millis(10);

/// The watchdogs of one engine. All of them share one thread: the epoch is the engine's own, and a
/// thread for each instance would let the deadlines of N instances pass N times too early.
pub(crate) struct Watchdogs {
    engine: EngineWeak,
    ticker: Mutex<Weak<Ticker>>,
}

impl Watchdogs {
    pub(crate) fn of(engine: EngineWeak) -> Self {
        Self { engine, ticker: Mutex::default() }
    }

    /// A watchdog over calls that may take `allowed`; the epoch moves on while one of them lives.
    pub(crate) fn start(&self, allowed: Duration) -> std::io::Result<Watchdog> {
        // Nothing is left half done under this lock.
        let mut running = self.ticker.lock().unwrap_or_else(PoisonError::into_inner);
        let ticker = match running.upgrade() {
            Some(ticker) => ticker,
            None => Arc::new(Ticker::start(self.engine.clone())?),
        };
        *running = Arc::downgrade(&ticker);
        Ok(Watchdog { allowed, _ticker: ticker })
    }
}

/// The deadline of one instance's calls.
pub(crate) struct Watchdog {
    allowed: Duration,
    _ticker: Arc<Ticker>,
}

impl Watchdog {
    /// Epochs that a call may take; never fewer than one whole interval.
    pub(crate) fn deadline(&self) -> u64 {
        let epochs = self.allowed.as_nanos().div_ceil(EPOCH_INTERVAL.as_nanos());
        u64::try_from(epochs).unwrap_or(u64::MAX / 4).saturating_add(1)
    }

    pub(crate) fn allowed_ms(&self) -> u64 {
        u64::try_from(self.allowed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A thread that moves the engine's epoch on.
struct Ticker {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            loop {
                thread::sleep(EPOCH_INTERVAL);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self { stopped, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to tell; a failed join would only hide the first error.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;

    use super::*;

    #[test]
    fn an_engine_has_one_ticker_while_a_watchdog_lives() {
        let engine = Engine::default();
        let watchdogs = Watchdogs::of(engine.weak());
        let start = || watchdogs.start(Duration::from_secs(1)).unwrap();
        let alive: Vec<Watchdog> = (0..8).map(|_| start()).collect();
        assert!(alive.iter().all(|one| Arc::ptr_eq(&one._ticker, &alive[0]._ticker)));
        drop(alive);
        assert_eq!(watchdogs.ticker.lock().unwrap().strong_count(), 0, "it ends with the last");
        let again = start();
        assert!(again._ticker.thread.is_some());
    }
}
