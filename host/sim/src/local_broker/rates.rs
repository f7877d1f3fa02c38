//! How many calls of each class are let through.

use std::time::Duration;

use super::limits::{
    INFORMATION_CALLS_PER_SECOND, ORDER_CALLS_PER_SECOND, RATE_SLACK_CALLS, WALLET_CALLS_PER_SECOND,
};

/// A class of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Orders,
    Wallet,
    Information,
}

const SECOND: Duration = Duration::from_secs(1);

/// What is left of one class: a bucket that fills evenly and holds a second's calls and the slack.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    calls_per_second: u32,
    /// In billionths of a call.
    left: u64,
    filled_at: Duration,
    locked_until: Duration,
}

const CALL: u64 = 1_000_000_000;

impl Bucket {
    fn new(calls_per_second: u32) -> Self {
        let left = Self::room(calls_per_second);
        Self { calls_per_second, left, filled_at: Duration::ZERO, locked_until: Duration::ZERO }
    }

    fn room(calls_per_second: u32) -> u64 {
        u64::from(calls_per_second + RATE_SLACK_CALLS) * CALL
    }

    fn admits(&mut self, now: Duration, locks: bool) -> bool {
        let nanos = u64::try_from((now - self.filled_at).as_nanos()).unwrap_or(u64::MAX);
        let gained = nanos.saturating_mul(u64::from(self.calls_per_second));
        self.left = self.left.saturating_add(gained).min(Self::room(self.calls_per_second));
        self.filled_at = now;
        if now < self.locked_until || self.left < CALL {
            if locks {
                self.locked_until = now + SECOND;
            }
            return false;
        }
        self.left -= CALL;
        true
    }
}

/// All classes.
#[derive(Debug, Clone)]
pub(crate) struct Rates {
    orders: Bucket,
    wallet: Bucket,
    information: Bucket,
    /// Whether a refused call closes its class for a second more, as at the vendor.
    locks: bool,
}

impl Rates {
    pub(crate) fn new(locks: bool) -> Self {
        Self {
            orders: Bucket::new(ORDER_CALLS_PER_SECOND),
            wallet: Bucket::new(WALLET_CALLS_PER_SECOND),
            information: Bucket::new(INFORMATION_CALLS_PER_SECOND),
            locks,
        }
    }

    /// Whether one more call is let through at an instant.
    pub(crate) fn admits(&mut self, class: Class, now: Duration) -> bool {
        let bucket = match class {
            Class::Orders => &mut self.orders,
            Class::Wallet => &mut self.wallet,
            Class::Information => &mut self.information,
        };
        bucket.admits(now, self.locks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(rates: &mut Rates, class: Class, at_ms: u64, calls: u32) -> u32 {
        let at = Duration::from_millis(at_ms);
        (0..calls).map(|_| u32::from(rates.admits(class, at))).sum()
    }

    #[test]
    fn each_class_has_its_own_calls_of_a_second() {
        let mut rates = Rates::new(false);
        for (class, most) in [
            (Class::Orders, ORDER_CALLS_PER_SECOND),
            (Class::Wallet, WALLET_CALLS_PER_SECOND),
            (Class::Information, INFORMATION_CALLS_PER_SECOND),
        ] {
            assert_eq!(admitted(&mut rates, class, 0, 100), most + RATE_SLACK_CALLS, "{class:?}");
            assert_eq!(admitted(&mut rates, class, 1_000, 100), most, "{class:?}");
        }
    }

    #[test]
    fn a_client_that_keeps_to_the_rate_is_never_refused() {
        let mut rates = Rates::new(true);
        // A second's worth at once, then evenly, each a little early.
        assert_eq!(admitted(&mut rates, Class::Wallet, 0, 10), 10);
        for call in 1..1_000 {
            assert_eq!(admitted(&mut rates, Class::Wallet, call * 100 - 50, 1), 1, "{call}");
        }
    }

    #[test]
    fn a_refused_call_closes_the_class_where_the_vendor_does() {
        let mut rates = Rates::new(true);
        admitted(&mut rates, Class::Wallet, 0, 13);
        assert_eq!(admitted(&mut rates, Class::Wallet, 900, 1), 0);
        assert_eq!(admitted(&mut rates, Class::Wallet, 1_800, 1), 0);
        assert_eq!(admitted(&mut rates, Class::Wallet, 2_900, 1), 1);
        let mut rates = Rates::new(false);
        admitted(&mut rates, Class::Wallet, 0, 13);
        assert_eq!(admitted(&mut rates, Class::Wallet, 900, 1), 1);
    }
}
