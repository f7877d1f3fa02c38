//! How long events wait for their client: from the queue to the client's socket. It is measured at level debug
//! of the log alone, and logged when the client leaves.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;

/// Parts of a doubling: a time is known to 1/32 of itself.
const PARTS: u64 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// One slot for each part of each doubling that 64 bits of nanoseconds have.
const SLOTS: usize = ((u64::BITS - PART_BITS + 1) as u64 * PARTS) as usize;

/// What a client has waited for.
#[derive(Debug)]
pub(crate) struct Waits {
    /// The clock of the events' times.
    clock: Stopwatch,
    /// The writer alone takes it.
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// What the writer has in hand: when it was queued, and how many events it is.
    in_hand: Vec<(Duration, u64)>,
    sent: u64,
    longest: u64,
    slots: Vec<u64>,
}

impl Waits {
    /// None where the log leaves it out.
    pub(crate) fn if_wanted(clock: Stopwatch) -> Option<Self> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| Self::new(clock))
    }

    fn new(clock: Stopwatch) -> Self {
        let seen = Seen { in_hand: Vec::new(), sent: 0, longest: 0, slots: vec![0; SLOTS] };
        Self { clock, seen: Mutex::new(seen) }
    }

    /// The time on the clock of the events.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer takes messages: when the oldest event of each was queued, and how many it has.
    pub(crate) fn taken(&self, messages: impl Iterator<Item = (Duration, u64)>) {
        let mut seen = self.seen();
        // What was in hand before was not written.
        seen.in_hand.clear();
        seen.in_hand.extend(messages);
    }

    /// What the writer had in hand is written to the socket.
    pub(crate) fn written(&self) {
        let now = self.now();
        let mut seen = self.seen();
        let mut in_hand = std::mem::take(&mut seen.in_hand);
        for (since, events) in &in_hand {
            let nanos = u64::try_from(now.saturating_sub(*since).as_nanos()).unwrap_or(u64::MAX);
            seen.slots[slot(nanos)] += events;
            seen.sent += events;
            seen.longest = seen.longest.max(nanos);
        }
        in_hand.clear();
        // Its room is used again.
        seen.in_hand = in_hand;
    }

    /// Logs it. Each event of a message counts as having waited as long as the oldest in it.
    pub(crate) fn log(&self) {
        let seen = self.seen();
        let micros = |nanos: u64| nanos as f64 / 1e3;
        tracing::debug!(
            told = seen.sent,
            p50_us = micros(seen.at(50)),
            p99_us = micros(seen.at(99)),
            max_us = micros(seen.longest),
            "what a client was told, from its queue to its socket"
        );
    }
}

impl Seen {
    /// The time that so many of 100 events did not wait longer than; at most 1/32 more than the true one.
    fn at(&self, percent: u64) -> u64 {
        let wanted = (self.sent * percent).div_ceil(100);
        let mut counted = 0;
        for (slot, events) in self.slots.iter().enumerate() {
            counted += events;
            if *events > 0 && counted >= wanted {
                return slot_end(slot as u64).min(self.longest);
            }
        }
        0
    }
}

/// Where a time is counted.
const fn slot(nanos: u64) -> usize {
    if nanos < PARTS {
        return nanos as usize;
    }
    let shift = u64::BITS - 1 - PART_BITS - nanos.leading_zeros();
    ((shift as u64 + 1) * PARTS + (nanos >> shift) - PARTS) as usize
}

/// The longest time that is counted there.
const fn slot_end(slot: u64) -> u64 {
    if slot < PARTS {
        return slot;
    }
    let shift = slot / PARTS - 1;
    let first = (PARTS + slot % PARTS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_to_a_part_of_itself() {
        for nanos in (0..200).chain([1_000_000, 4_999_999, 1 << 40, u64::MAX - 1, u64::MAX]) {
            let slot = slot(nanos);
            assert!(slot < SLOTS, "{nanos}");
            let end = slot_end(slot as u64);
            assert!(nanos <= end && end - nanos <= nanos / PARTS, "{nanos} counts as {end}");
        }
        assert!((1..SLOTS as u64).all(|slot| slot_end(slot - 1) < slot_end(slot)));
    }

    #[test]
    fn only_what_was_written_counts_with_all_its_events() {
        let waits = Waits::new(Stopwatch::start());
        let now = waits.now();
        waits.taken([(Duration::ZERO, 1_000)].into_iter());
        waits.taken([(now, 98), (now, 1)].into_iter());
        waits.written();
        waits.written();
        let seen = waits.seen();
        assert_eq!(seen.sent, 99);
        assert!(seen.at(50) <= seen.at(99) && seen.at(99) <= seen.at(100));
        assert_eq!(seen.at(100), seen.longest);
    }
}
