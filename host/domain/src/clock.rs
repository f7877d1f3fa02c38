//! The only place of the host that reads time. Replay never calls it for anything that reaches a
//! strategy or a result; it times progress lines, the paced replay, watchdogs and benches.

#![expect(clippy::disallowed_methods, reason = "this module is the one that may read time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::TsNanos;

/// Measures elapsed time on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The wall clock: now, in UTC. Zero where the machine's clock stands before 1970.
#[must_use]
pub fn wall_now() -> TsNanos {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TsNanos::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Lets this thread sleep. The system may wake it later, never earlier.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_forward() {
        let watch = Stopwatch::start();
        assert!(wall_now() > TsNanos::from_nanos(1_600_000_000_000_000_000));
        assert!(watch.elapsed() <= watch.elapsed());
    }
}
