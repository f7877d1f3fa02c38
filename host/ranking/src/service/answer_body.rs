//! An answer on its way to its client: block by block, and what was taken is free at once.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use domain::clock::Stopwatch;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Semaphore;

use super::budget::Reservation;
use super::context::QueryContext;

/// Bytes a second that a client must take on average while others wait: a line of a quarter megabit does.
const LEAST_BYTES_PER_SECOND: f64 = 32.0 * 1_024.0;

/// The blocks of an answer, with the memory that they hold.
pub(super) struct AnswerBody {
    sending: Arc<Sending>,
    watch: Stopwatch,
    context: Arc<QueryContext>,
    /// Its number among those that can be given up; a single block cannot.
    number: Option<u64>,
}

/// What is left of an answer. The budget may give it up at any time, whatever its socket does.
pub(super) struct Sending(Mutex<Rest>);

struct Rest {
    blocks: VecDeque<Bytes>,
    /// Bytes that the client has not been given.
    bytes: u64,
    reservation: Option<Arc<Reservation>>,
    /// Since the client last took something.
    idle: Stopwatch,
    /// How fast it takes.
    pace: Pace,
    given_up: bool,
}

impl AnswerBody {
    /// A body that holds `reservation` until its end.
    pub(super) fn new(
        blocks: VecDeque<Bytes>,
        reservation: Arc<Reservation>,
        context: Arc<QueryContext>,
    ) -> Self {
        let bytes = blocks.iter().map(|block| block.len() as u64).sum();
        let is_long = blocks.len() > 1;
        let sending = Arc::new(Sending(Mutex::new(Rest {
            blocks,
            bytes,
            reservation: Some(reservation),
            idle: Stopwatch::start(),
            pace: Pace::start(),
            given_up: false,
        })));
        let number = is_long.then(|| context.budget.sends(&sending));
        Self { sending, watch: Stopwatch::start(), context, number }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.context.budget.sent(number);
        }
    }
}

impl Sending {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long the client has taken nothing.
    pub(super) fn idle(&self) -> Duration {
        self.rest().idle.elapsed()
    }

    /// Whether the client has taken too little for so long.
    pub(super) fn is_slow(&self, over: Duration) -> bool {
        self.rest().pace.is_slow(over)
    }

    /// Whether memory of this kind would come free.
    pub(super) fn holds_of(&self, lane: &Arc<Semaphore>) -> bool {
        self.rest().reservation.as_ref().is_some_and(|reservation| reservation.is_of(lane))
    }

    /// Frees all that is left; the client gets no more.
    pub(super) fn give_up(&self) {
        let mut rest = self.rest();
        rest.given_up = true;
        rest.free();
    }
}

impl Rest {
    fn free(&mut self) {
        self.blocks = VecDeque::new();
        self.reservation = None;
    }

    fn late(&mut self, what: String) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.free();
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, what))))
    }
}

/// How fast a client takes an answer, from one look to the next.
struct Pace {
    since: Stopwatch,
    bytes: u64,
    /// It took too little from the look before to the last one.
    was_slow: bool,
}

impl Pace {
    fn start() -> Self {
        Self { since: Stopwatch::start(), bytes: 0, was_slow: false }
    }

    fn took(&mut self, bytes: u64, over: Duration) {
        if self.since.elapsed() >= over {
            *self =
                Self { was_slow: is_too_little(self.bytes, self.since.elapsed()), ..Self::start() };
        }
        self.bytes += bytes;
    }

    fn is_slow(&self, over: Duration) -> bool {
        let elapsed = self.since.elapsed();
        self.was_slow || (elapsed >= over && is_too_little(self.bytes, elapsed))
    }
}

fn is_too_little(bytes: u64, elapsed: Duration) -> bool {
    (bytes as f64) < elapsed.as_secs_f64() * LEAST_BYTES_PER_SECOND
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let limit = self.context.limits.answer_timeout;
        let is_late = self.watch.elapsed() > limit;
        let mut rest = self.sending.rest();
        if rest.given_up {
            return rest.late(
                "the client took nothing or too little, and others needed the memory".to_owned(),
            );
        }
        if is_late && !rest.blocks.is_empty() {
            let seconds = limit.as_secs_f64();
            return rest.late(format!("the client did not take it within {seconds} seconds"));
        }
        rest.idle = Stopwatch::start();
        // What was given before was taken now; the block that is given next is still held.
        if let Some(reservation) = &rest.reservation {
            reservation.resize(rest.bytes);
        }
        let Some(block) = rest.blocks.pop_front() else {
            rest.free();
            return Poll::Ready(None);
        };
        rest.bytes -= block.len() as u64;
        let over = self.context.limits.stalled_after;
        rest.pace.took(block.len() as u64, over);
        Poll::Ready(Some(Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        let rest = self.sending.rest();
        rest.blocks.is_empty() && !rest.given_up
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.sending.rest().bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_slow_below_the_least_rate() {
        for (bytes, seconds, expected) in
            [(0, 1, true), (32 * 1_024, 1, false), (32 * 1_024 - 1, 1, true), (163_840, 5, false)]
        {
            assert_eq!(is_too_little(bytes, Duration::from_secs(seconds)), expected, "{bytes}");
        }
        let mut pace = Pace::start();
        let (never, at_once) = (Duration::from_secs(3_600), Duration::ZERO);
        assert!(!pace.is_slow(never) && pace.is_slow(at_once));
        // Much at once makes up for the time that has gone.
        pace.took(1 << 40, never);
        assert!(!pace.is_slow(at_once));
    }
}
