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
            return rest.late("the client took nothing, and others needed the memory".to_owned());
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
