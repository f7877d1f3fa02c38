//! The memory of all answers in flight: one semaphore, whose permits are KiB.
//!
//! An answer takes what it may need before it is made, and gives it back when its client has all of it. Large
//! answers leave a quarter to small ones. While one waits for memory, those are given up whose clients take
//! too little.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use domain::clock::Stopwatch;
use hyper::body::{Frame, SizeHint};
use prometheus::IntCounter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use super::limits::ServiceLimits;
use super::metrics::Metrics;

/// Bytes of a permit.
const PERMIT_BYTES: u64 = 1_024;
/// Most permits: 256 GiB.
const PERMITS_MAX: u64 = 1 << 28;
/// Which part of all memory large answers leave to small ones.
const SPARE_SHARE: u64 = 4;
/// Which part of all memory a small answer takes at most.
const SMALL_SHARE: u64 = 64;
/// Pause between two looks for free memory.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes a second that a client must take while others wait: a line of a quarter megabit does.
const LEAST_BYTES_PER_SECOND: u64 = 32 * 1_024;

/// Hands out the memory for answers.
pub(super) struct AnswerMemory {
    permits: Arc<Semaphore>,
    /// How many there are.
    all: u32,
    wait: Duration,
    patience: Duration,
    timeout: Duration,
    sent: Mutex<Vec<Weak<Sending>>>,
    given_up: IntCounter,
}

/// Memory that an answer holds; given back when it is dropped.
pub(super) struct Reservation(Mutex<OwnedSemaphorePermit>);

impl AnswerMemory {
    pub(super) fn new(limits: &ServiceLimits, metrics: &Metrics) -> Self {
        let all = (limits.answer_memory / PERMIT_BYTES).clamp(1, PERMITS_MAX) as u32;
        Self {
            permits: Arc::new(Semaphore::new(all as usize)),
            all,
            wait: limits.memory_wait,
            patience: limits.stalled_after,
            timeout: limits.answer_timeout,
            sent: Mutex::default(),
            given_up: metrics.given_up.clone(),
        }
    }

    /// Whether an answer of so many bytes is a small one, for which large ones leave memory.
    pub(super) fn is_small(&self, bytes: u64) -> bool {
        bytes <= u64::from(self.all) * PERMIT_BYTES / SMALL_SHARE
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> u64 {
        (self.all as usize).saturating_sub(self.permits.available_permits()) as u64 * PERMIT_BYTES
    }

    /// Waits for so many bytes.
    ///
    /// # Errors
    /// When there will never be so many, or not soon.
    pub(super) async fn reserve(&self, bytes: u64) -> Result<Reservation, Failure> {
        let spare = if self.is_small(bytes) { 0 } else { self.all / SPARE_SHARE as u32 };
        let (wanted, most) = (permits(bytes), self.all - spare);
        if wanted > most {
            let (asked, most) = (megabytes(bytes), megabytes(u64::from(most) * PERMIT_BYTES));
            let message = format!(
                "the rankings of the request could take {asked} MB together while they are made, and \
                 {most} MB are allowed; ask for fewer days, a lower limit, or in several requests"
            );
            return Err(Failure::new("RESULT_TOO_LARGE", message));
        }
        let watch = Stopwatch::start();
        loop {
            // What is left to small ones is only taken to see that it is there.
            let taken = Arc::clone(&self.permits).try_acquire_many_owned(wanted + spare);
            if let Ok(mut permit) = taken {
                drop(permit.split(spare as usize));
                return Ok(Reservation(Mutex::new(permit)));
            }
            self.give_up_late();
            if watch.elapsed() >= self.wait {
                return Err(Failure::new("BUSY", "other answers hold the memory; try again later"));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// A body of these blocks, which holds its memory until it is gone.
    pub(super) fn body(&self, blocks: VecDeque<Bytes>, memory: Arc<Reservation>) -> Body {
        let rest = Rest { blocks, due: self.patience, _memory: memory };
        let sending = Arc::new(Sending {
            watch: Stopwatch::start(),
            patience: self.patience,
            timeout: self.timeout,
            rest: Mutex::new(Some(rest)),
        });
        let mut sent = lock(&self.sent);
        sent.retain(|other| other.strong_count() > 0);
        sent.push(Arc::downgrade(&sending));
        Body::new(AnswerBody(sending))
    }

    fn give_up_late(&self) {
        for sending in lock(&self.sent).iter().filter_map(Weak::upgrade) {
            let mut rest = lock(&sending.rest);
            if rest.as_ref().is_some_and(|rest| rest.due < sending.watch.elapsed()) {
                *rest = None;
                self.given_up.inc();
                tracing::debug!("an answer was dropped: its client did not read it");
            }
        }
    }
}

impl Reservation {
    /// Holds so many bytes from now on; false where there are not so many more.
    pub(super) fn resize(&self, bytes: u64) -> bool {
        let mut permit = lock(&self.0);
        let (has, wanted) = (permit.num_permits() as u32, permits(bytes));
        if wanted <= has {
            drop(permit.split((has - wanted) as usize));
            return true;
        }
        let more = Arc::clone(permit.semaphore()).try_acquire_many_owned(wanted - has);
        more.map(|more| permit.merge(more)).is_ok()
    }
}

/// An answer on its way, block by block.
struct AnswerBody(Arc<Sending>);

struct Sending {
    watch: Stopwatch,
    patience: Duration,
    timeout: Duration,
    /// None once it is given up, whatever its socket does.
    rest: Mutex<Option<Rest>>,
}

struct Rest {
    blocks: VecDeque<Bytes>,
    /// Until when the client must take more: each byte puts it off a little, never beyond the patience.
    due: Duration,
    _memory: Arc<Reservation>,
}

impl Rest {
    fn next(&mut self, now: Duration, patience: Duration) -> Option<Bytes> {
        let block = self.blocks.pop_front()?;
        let earned = block.len() as u64 * 1_000_000 / LEAST_BYTES_PER_SECOND;
        self.due = (self.due + Duration::from_micros(earned)).min(now + patience);
        Some(block)
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let sending = &self.0;
        let (now, limit) = (sending.watch.elapsed(), sending.timeout);
        let mut rest = lock(&sending.rest);
        let late = match rest.as_mut() {
            None => "the client read too slowly, and other answers needed the memory".to_owned(),
            Some(rest) if now > limit && !rest.blocks.is_empty() => {
                format!("the client did not take it within {} seconds", limit.as_secs_f64())
            }
            Some(rest) => {
                return Poll::Ready(rest.next(now, sending.patience).map(Frame::data).map(Ok));
            }
        };
        *rest = None;
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, late))))
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0.rest).as_ref().is_some_and(|rest| rest.blocks.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        let rest = lock(&self.0.rest);
        let blocks = rest.iter().flat_map(|rest| &rest.blocks);
        SizeHint::with_exact(blocks.map(|block| block.len() as u64).sum())
    }
}

/// Most bytes that one request may reserve.
pub(super) fn request_bytes_max(limits: &ServiceLimits) -> u64 {
    limits.answer_memory - limits.answer_memory / SPARE_SHARE
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX)
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(bytes: u64, wait: Duration) -> AnswerMemory {
        let limits = ServiceLimits {
            answer_memory: bytes,
            memory_wait: wait,
            stalled_after: Duration::ZERO,
            ..ServiceLimits::default()
        };
        AnswerMemory::new(&limits, &Metrics::default())
    }

    fn reserved(memory: &AnswerMemory, bytes: u64) -> Result<Reservation, &'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(memory.reserve(bytes)).map_err(|failure| failure.code)
    }

    #[test]
    fn memory_comes_back() {
        let memory = memory(64 << 20, Duration::ZERO);
        let large = reserved(&memory, 40 << 20).unwrap();
        assert_eq!(memory.held(), 40 << 20);
        assert_eq!(reserved(&memory, 9 << 20).err(), Some("BUSY"), "48 MB are for large answers");
        assert!(large.resize(1 << 20) && memory.held() == 1 << 20);
        let second = reserved(&memory, 47 << 20).unwrap();
        assert!(!large.resize(18 << 20) && large.resize(5) && large.resize(1_025));
        assert_eq!(memory.held(), (47 << 20) + 2_048);
        drop((large, second));
        assert_eq!(memory.held(), 0);
        assert_eq!(reserved(&memory, (48 << 20) + 1).err(), Some("RESULT_TOO_LARGE"));
    }

    #[test]
    fn small_answers_have_a_quarter() {
        let memory = memory(64 << 20, Duration::ZERO);
        let _large = reserved(&memory, 48 << 20).unwrap();
        let small: Vec<_> = (0..16).map(|_| reserved(&memory, 1 << 20)).collect();
        assert!(small.iter().all(Result::is_ok));
        assert_eq!(reserved(&memory, 1).err(), Some("BUSY"));
    }

    #[test]
    fn a_client_has_to_take_so_much() {
        let second = |seconds| Duration::from_secs(seconds);
        let memory = Arc::new(reserved(&memory(1 << 20, Duration::ZERO), 1).unwrap());
        let block = Bytes::from(vec![0; 65_536]);
        let blocks = VecDeque::from(vec![block; 5]);
        let mut rest = Rest { blocks, due: second(5), _memory: memory };
        // A block is worth two seconds, but nothing is worth more than the patience.
        for (now, due) in [(0, 5), (3, 7), (6, 9), (6, 11), (20, 13)] {
            rest.next(second(now), second(5)).unwrap();
            assert_eq!(rest.due, second(due), "{now}");
        }
        assert!(rest.next(second(20), second(5)).is_none());
    }

    #[test]
    fn what_nobody_takes_is_given_up_for_another() {
        let memory = memory(64 << 20, Duration::from_secs(60));
        let reservation = Arc::new(reserved(&memory, 48 << 20).unwrap());
        let body = memory.body(VecDeque::from([Bytes::from("never taken")]), reservation);
        assert!(reserved(&memory, 1).is_ok() && memory.given_up.get() == 0, "nobody had to wait");
        assert!(reserved(&memory, 48 << 20).is_ok() && memory.given_up.get() == 1);
        assert_eq!((memory.held(), body.is_end_stream()), (0, false));
    }
}
