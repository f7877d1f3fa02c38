//! The end of a feed for the strategy's thread.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::fault::FaultKind;
use replay::stream::{MarketStream, StreamStep};

use super::{FeedLimits, FeedObserver, FeedStep, Opening, Shared, State, Waiting};
use crate::real::BrokerNews;

/// The end of a feed for the strategy's thread. Dropped, it ends the feed.
pub struct FeedReceiver {
    shared: Arc<Shared>,
    limits: FeedLimits,
    observer: Box<dyn FeedObserver>,
    /// What the observer knows: the strategy is slow.
    is_slow: bool,
}

impl fmt::Debug for FeedReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedReceiver").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// What the strategy's thread does next.
enum Next {
    Step(StreamStep),
    /// A row, or news of the broker, that has waited so long.
    Row(FeedStep, Duration),
    /// Nothing waits.
    Nothing,
}

impl FeedReceiver {
    pub(super) fn new(
        shared: Arc<Shared>,
        limits: FeedLimits,
        observer: Box<dyn FeedObserver>,
    ) -> Self {
        Self { shared, limits, observer, is_slow: false }
    }

    /// Takes what comes next. What was done to the run goes before rows that wait; among rows nothing changes its
    /// place.
    fn take(&self, state: &mut State) -> Next {
        if state.has_overflowed {
            let allowed = self.limits.waiting;
            let text =
                format!("{allowed} events waited for the strategy; fewer than {allowed} may wait");
            return Next::Step(StreamStep::Fail(FaultKind::TooSlow(text)));
        }
        if state.is_stopped {
            return Next::Step(StreamStep::Stop);
        }
        if state.is_lost != state.told_lost {
            state.told_lost = state.is_lost;
            return Next::Step(StreamStep::MarketDataLost(state.is_lost));
        }
        if std::mem::take(&mut state.wants_buying_power) {
            return Next::Step(StreamStep::ReportBuyingPower);
        }
        let Some(first) = state.waiting.pop_front() else { return Next::Nothing };
        let waited = first.since.elapsed();
        if waited > self.limits.too_slow_from {
            state.stop();
            let allowed = self.limits.too_slow_from.as_millis();
            let waited = waited.as_millis();
            let text =
                format!("an event waited {waited} ms for the strategy; {allowed} ms are allowed");
            return Next::Step(StreamStep::Fail(FaultKind::TooSlow(text)));
        }
        Next::Row(first.step, waited)
    }

    /// Tells the observer how long the oldest event has waited (P116).
    pub(super) fn watch(&mut self, waited: Duration) {
        let is_slow = match self.is_slow {
            false => waited > self.limits.slow_from,
            true => waited > self.limits.in_time_up_to,
        };
        if is_slow != self.is_slow {
            self.is_slow = is_slow;
            self.observer.slow(is_slow);
        }
    }
}

impl MarketStream for FeedReceiver {
    fn ready(&mut self) {
        self.observer.ready(Opening(Arc::clone(&self.shared)));
    }

    fn next(&mut self) -> StreamStep {
        loop {
            match self.next_step() {
                FeedStep::Market(step) => return step,
                // On paper there is no broker.
                FeedStep::Broker(_) => {}
            }
        }
    }
}

impl FeedReceiver {
    /// News of the broker after the run was stopped; none when none came in time.
    pub fn news_after_stop(&mut self, at_most: Duration) -> Option<BrokerNews> {
        let watch = Stopwatch::start();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            if let Some(Waiting { step: FeedStep::Broker(news), .. }) = state.waiting.pop_front() {
                return Some(news);
            }
            let left = at_most.checked_sub(watch.elapsed()).filter(|left| !left.is_zero())?;
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What comes next, of the market or of the broker. Waits until there is something.
    pub fn next_step(&mut self) -> FeedStep {
        // The observer hears without the lock: it may be in the middle of sending.
        loop {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            match self.take(&mut state) {
                Next::Step(step) => return FeedStep::Market(step),
                Next::Row(step, waited) => {
                    drop(state);
                    self.watch(waited);
                    return step;
                }
                Next::Nothing if self.is_slow => {
                    drop(state);
                    self.watch(Duration::ZERO);
                }
                Next::Nothing => {
                    drop(shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }
}

impl Drop for FeedReceiver {
    fn drop(&mut self) {
        self.shared.lock().stop();
    }
}
