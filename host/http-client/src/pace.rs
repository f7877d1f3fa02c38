//! How fast questions follow each other: at most at the rate that the user set, slower after a server
//! has said that they were too many, and slowly faster again.

use std::time::Duration;

use crate::limits::{INTERVAL_MAX, RECOVERY_ANSWERS, RECOVERY_PERCENT};

/// The time between the starts of two requests.
#[derive(Debug)]
pub(crate) struct Pace {
    shortest: Duration,
    now: Duration,
    longest: Duration,
    /// Answers since the pace was changed.
    answers: u32,
    /// How often the server had too many.
    too_many: u32,
}

/// How a server that had too many requests was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slowed {
    /// How often it said so.
    pub too_many: u32,
    /// The longest time between two requests.
    pub longest: Duration,
    /// The time between two requests now.
    pub now: Duration,
}

impl Pace {
    /// At most so many requests a minute.
    pub(crate) fn new(rate: u32) -> Self {
        let shortest = Duration::from_secs(60) / rate.max(1);
        Self { shortest, now: shortest, longest: shortest, answers: 0, too_many: 0 }
    }

    /// The time between two requests now.
    pub(crate) fn interval(&self) -> Duration {
        self.now
    }

    /// The server had too many: half as many from now on.
    pub(crate) fn slow_down(&mut self) {
        self.now = (self.now * 2).min(INTERVAL_MAX.max(self.shortest));
        self.longest = self.longest.max(self.now);
        self.answers = 0;
        self.too_many += 1;
    }

    /// The server has answered.
    pub(crate) fn answered(&mut self) {
        if self.now <= self.shortest {
            return;
        }
        self.answers += 1;
        if self.answers >= RECOVERY_ANSWERS {
            self.answers = 0;
            self.now = (self.now * (100 - RECOVERY_PERCENT) / 100).max(self.shortest);
        }
    }

    /// How the server was asked, where it ever had too many.
    pub(crate) fn slowed(&self) -> Option<Slowed> {
        let Self { longest, now, too_many, .. } = *self;
        (too_many > 0).then_some(Slowed { too_many, longest, now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_halves_at_once_and_recovers_slowly() {
        let mut pace = Pace::new(60);
        let second = Duration::from_secs(1);
        assert_eq!((pace.interval(), pace.slowed()), (second, None));
        (0..10 * RECOVERY_ANSWERS).for_each(|_| pace.answered());
        assert_eq!(pace.interval(), second, "never faster than was asked for");
        pace.slow_down();
        pace.slow_down();
        let slowed = Slowed { too_many: 2, longest: 4 * second, now: 4 * second };
        assert_eq!((pace.interval(), pace.slowed()), (4 * second, Some(slowed)));
        (1..RECOVERY_ANSWERS).for_each(|_| pace.answered());
        assert_eq!(pace.interval(), 4 * second, "not yet");
        pace.answered();
        assert_eq!(pace.interval(), 4 * second * (100 - RECOVERY_PERCENT) / 100);
        // One more that was too many begins the wait anew.
        (1..RECOVERY_ANSWERS).for_each(|_| pace.answered());
        pace.slow_down();
        let slow = pace.interval();
        (1..RECOVERY_ANSWERS).for_each(|_| pace.answered());
        assert_eq!(pace.interval(), slow);
        (0..100 * RECOVERY_ANSWERS).for_each(|_| pace.answered());
        let slowed = pace.slowed().unwrap();
        assert_eq!((slowed.too_many, slowed.now, pace.interval()), (3, second, second));
        (0..100).for_each(|_| pace.slow_down());
        assert_eq!(pace.interval(), INTERVAL_MAX);
        // A rate below that is never made faster.
        let mut slow = Pace::new(1);
        slow.slow_down();
        assert_eq!(slow.interval(), Duration::from_secs(60));
    }
}
