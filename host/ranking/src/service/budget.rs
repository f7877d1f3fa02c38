//! The memory of all answers in flight: reserved before an answer is made, held until its client has
//! taken it, and never more than the operator allows.
//!
//! An eighth is kept for small answers and another one for those in between, so that large ones that
//! nobody takes are in nobody's way. Where one has to wait for memory, an answer whose client takes
//! nothing is given up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::clock::Stopwatch;
use prometheus::{IntCounter, IntGauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer_body::Sending;
use super::failure::Failure;
use super::limits::ServiceLimits;
use super::metrics::Metrics;

/// Bytes that are counted as one.
const UNIT_BYTES: u64 = 1_024;
/// Which part of all memory is for small answers only, and which for those in between.
const LANE_SHARE: u64 = 8;
/// Which part of all memory a small answer takes at most.
const SMALL_ANSWER_SHARE: u64 = 64;
/// Which part of all memory an answer in between takes at most, as ten years of the first 20 of each day.
const MIDDLE_ANSWER_SHARE: u64 = 16;
/// Pause between two looks for answers that nobody takes.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Hands out the memory for answers.
pub(super) struct AnswerBudget {
    small: Lane,
    middle: Lane,
    large: Lane,
    small_bytes_max: u64,
    middle_bytes_max: u64,
    stalled_after: Duration,
    sending: Mutex<SendingList>,
    held: IntGauge,
    given_up: IntCounter,
}

/// A part of the memory, in units.
struct Lane {
    permits: Arc<Semaphore>,
    units: u32,
}

/// Answers that are being sent, by the order in which they began.
#[derive(Default)]
struct SendingList {
    next: u64,
    all: BTreeMap<u64, Weak<Sending>>,
    /// Since the last one was given up.
    given_up: Option<Stopwatch>,
}

/// Memory that an answer holds; given back when it is dropped.
pub(super) struct Reservation {
    permit: Mutex<OwnedSemaphorePermit>,
    lane: Arc<Semaphore>,
    held: IntGauge,
}

impl AnswerBudget {
    pub(super) fn new(limits: &ServiceLimits, metrics: &Metrics) -> Self {
        let all = limits.answer_memory;
        let large = request_bytes_max(limits);
        let lane = |bytes: u64| {
            let most = u64::from(u32::MAX).min(Semaphore::MAX_PERMITS as u64);
            let units = (bytes / UNIT_BYTES).clamp(1, most) as u32;
            Lane { permits: Arc::new(Semaphore::new(units as usize)), units }
        };
        Self {
            small: lane(all / LANE_SHARE),
            middle: lane(all / LANE_SHARE),
            large: lane(large),
            small_bytes_max: all / SMALL_ANSWER_SHARE,
            middle_bytes_max: all / MIDDLE_ANSWER_SHARE,
            stalled_after: limits.stalled_after,
            sending: Mutex::default(),
            held: metrics.answer_bytes.clone(),
            given_up: metrics.given_up.clone(),
        }
    }

    /// Whether an answer of so many bytes is a small one, which waits for no large one.
    pub(super) const fn is_small(&self, bytes: u64) -> bool {
        bytes <= self.small_bytes_max
    }

    /// Waits for so many bytes.
    ///
    /// # Errors
    /// When there will never be so many.
    pub(super) async fn reserve(&self, bytes: u64) -> Result<Reservation, Failure> {
        let lane = match bytes {
            _ if self.is_small(bytes) => &self.small,
            _ if bytes <= self.middle_bytes_max => &self.middle,
            _ => &self.large,
        };
        let wanted = units(bytes).filter(|units| *units <= lane.units).ok_or_else(|| {
            let (asked, most) = (megabytes(bytes), megabytes(u64::from(lane.units) * UNIT_BYTES));
            Failure::new(
                "RESULT_TOO_LARGE",
                format!(
                    "the rankings of the request could take {asked} MB together while they are \
                     made, and {most} MB are allowed; ask for fewer days, a lower limit, or in \
                     several requests"
                ),
            )
        })?;
        let acquiring = Arc::clone(&lane.permits).acquire_many_owned(wanted);
        tokio::pin!(acquiring);
        let permit = loop {
            match tokio::time::timeout(LOOK_INTERVAL, &mut acquiring).await {
                Ok(permit) => {
                    break permit.map_err(|_| Failure::new("BUSY", "the service ends"))?;
                }
                Err(_) => self.give_up_one(&lane.permits),
            }
        };
        self.held.add(signed(permit.num_permits()));
        Ok(Reservation {
            permit: Mutex::new(permit),
            lane: Arc::clone(&lane.permits),
            held: self.held.clone(),
        })
    }

    /// Notes an answer that goes out in more than one piece; its number is for [`Self::sent`].
    pub(super) fn sends(&self, sending: &Arc<Sending>) -> u64 {
        let mut list = self.list();
        list.next += 1;
        let number = list.next;
        list.all.insert(number, Arc::downgrade(sending));
        number
    }

    /// Forgets an answer that is gone.
    pub(super) fn sent(&self, number: u64) {
        self.list().all.remove(&number);
    }

    /// Gives up the answer of which a client has taken nothing for the longest time, if that is long
    /// enough, or it takes too little, and its memory is of this kind. One after the other: what comes free may be enough
    /// for all that wait.
    fn give_up_one(&self, lane: &Arc<Semaphore>) {
        let mut list = self.list();
        if list.given_up.as_ref().is_some_and(|last| last.elapsed() < LOOK_INTERVAL) {
            return;
        }
        let all: Vec<Arc<Sending>> = list.all.values().filter_map(Weak::upgrade).collect();
        let over = self.stalled_after;
        let held = all.iter().filter(|sending| sending.holds_of(lane));
        let late = held.filter(|sending| sending.idle() >= over || sending.is_slow(over));
        if let Some(sending) = late.max_by_key(|sending| sending.idle()) {
            list.given_up = Some(Stopwatch::start());
            sending.give_up();
            self.given_up.inc();
            tracing::debug!("an answer that its client did not take was given up");
        }
    }

    fn list(&self) -> MutexGuard<'_, SendingList> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Holds so many bytes from now on; false where there are not so many more.
    pub(super) fn resize(&self, bytes: u64) -> bool {
        let Some(wanted) = units(bytes) else { return false };
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        let has = permit.num_permits();
        let wanted = wanted as usize;
        if wanted <= has {
            drop(permit.split(has - wanted));
            self.held.sub(signed(has - wanted));
            return true;
        }
        let more = u32::try_from(wanted - has).unwrap_or(u32::MAX);
        match Arc::clone(&self.lane).try_acquire_many_owned(more) {
            Ok(more) => {
                self.held.add(signed(more.num_permits()));
                permit.merge(more);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether this is memory of a kind.
    pub(super) fn is_of(&self, lane: &Arc<Semaphore>) -> bool {
        Arc::ptr_eq(&self.lane, lane)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let permit = self.permit.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.held.sub(signed(permit.num_permits()));
    }
}

/// Most bytes that one request may reserve.
pub(super) fn request_bytes_max(limits: &ServiceLimits) -> u64 {
    limits.answer_memory - 2 * (limits.answer_memory / LANE_SHARE)
}

fn units(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Units as the bytes that the metric shows.
fn signed(units: usize) -> i64 {
    (units as u64 * UNIT_BYTES).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u64) -> (AnswerBudget, Metrics) {
        let metrics = Metrics::default();
        let limits = ServiceLimits { answer_memory: bytes, ..ServiceLimits::default() };
        (AnswerBudget::new(&limits, &metrics), metrics)
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(async { tokio::time::timeout(Duration::from_millis(1), future).await.ok() })
    }

    #[test]
    fn memory_comes_back() {
        let (budget, metrics) = budget(64 << 20);
        let large = now(budget.reserve(40 << 20)).unwrap().unwrap();
        assert_eq!(metrics.answer_bytes.get(), 40 << 20);
        assert!(now(budget.reserve(9 << 20)).is_none(), "48 MB are for large answers");
        assert!(large.resize(1 << 20) && metrics.answer_bytes.get() == 1 << 20);
        let second = now(budget.reserve(47 << 20)).unwrap().unwrap();
        assert!(!large.resize(2 << 20) && large.resize(5) && large.resize(1_025));
        assert_eq!(metrics.answer_bytes.get(), (47 << 20) + 2_048);
        drop((large, second));
        assert_eq!(metrics.answer_bytes.get(), 0);
        let refused = now(budget.reserve((48 << 20) + 1)).unwrap().err().unwrap();
        assert_eq!(refused.code, "RESULT_TOO_LARGE");
        assert!(refused.message.contains("49 MB together"), "{}", refused.message);
    }

    #[test]
    fn small_answers_have_their_own() {
        let (budget, _) = budget(64 << 20);
        let _large = now(budget.reserve(48 << 20)).unwrap().unwrap();
        let small: Vec<_> = (0..8).map(|_| now(budget.reserve(1 << 20)).unwrap()).collect();
        assert!(small.iter().all(Result::is_ok));
        assert!(now(budget.reserve(1)).is_none(), "8 MB are for small answers");
        let middle: Vec<_> = (0..2).map(|_| now(budget.reserve(4 << 20)).unwrap()).collect();
        assert!(middle.iter().all(Result::is_ok), "and as many for those in between");
        assert!(now(budget.reserve(4 << 20)).is_none());
    }
}
