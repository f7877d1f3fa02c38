//! The second password: when it is held, discarded and locked (specification 2, "Session and password states").
//!
//! Specification 4, P41 and P42. The caller passes the monotonic clock's time.

use std::time::Duration;

use domain::{Origin, ReasonCode, Rejection, Secret, ShortText};
use venues::RequestContext;

use crate::limits::JOBS_WAITING_MAX;

/// How the second password is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordRules {
    /// Time without a command that uses it, after which it is discarded.
    pub idle: Duration,
    /// Wrong passwords in a row that lock it.
    pub max_failures: u32,
    /// How long it stays locked.
    pub lockout: Duration,
}

impl Default for PasswordRules {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(1_800),
            max_failures: 3,
            lockout: Duration::from_secs(1_800),
        }
    }
}

/// The second password as one command has read it.
#[derive(Debug, Clone)]
pub struct HeldPassword {
    /// The password.
    pub value: Secret,
    /// Number of the password since the start: the broker's refusal of one does not count for the next.
    pub number: u64,
}

/// Where the second password stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PasswordStage {
    /// None is held.
    #[default]
    None,
    /// One is held.
    Held,
    /// Wrong ones have locked it, until this monotonic time.
    Locked(Duration),
}

/// State of the second password.
#[derive(Debug)]
pub struct SecondPassword {
    rules: PasswordRules,
    held: Option<HeldPassword>,
    set: u64,
    last_used: Duration,
    /// Since when the idle time stands still; none while it runs.
    stands_since: Option<Duration>,
    failures: u32,
    /// The newest one that the broker refused.
    refused: u64,
    locked_until: Option<Duration>,
    /// Commands that were answered with the request for it, with the order that each names: the kind of its
    /// sender and its id.
    waiting: Vec<(RequestContext, Option<(Origin, ShortText)>)>,
}

impl SecondPassword {
    /// A state without a password.
    #[must_use]
    pub const fn new(rules: PasswordRules) -> Self {
        Self {
            rules,
            held: None,
            set: 0,
            last_used: Duration::ZERO,
            stands_since: None,
            failures: 0,
            refused: 0,
            locked_until: None,
            waiting: Vec::new(),
        }
    }

    /// Holds a password, also while locked. A client that got the request for it sends its command again.
    pub fn set(&mut self, value: Secret, now: Duration) {
        self.set += 1;
        self.held = Some(HeldPassword { value, number: self.set });
        self.last_used = self.idle_clock(now);
        self.waiting.clear();
    }

    /// Notes a command that is answered with the request for it, once, and the order that it names.
    pub fn wait(&mut self, context: RequestContext, order: Option<(Origin, ShortText)>) {
        if self.waiting.iter().any(|(other, _)| *other == context) {
            return;
        }
        if self.waiting.len() >= JOBS_WAITING_MAX {
            self.waiting.remove(0);
        }
        self.waiting.push((context, order));
    }

    /// Takes the commands that were answered with the request for it.
    pub fn take_waiting(&mut self) -> Vec<(RequestContext, Option<(Origin, ShortText)>)> {
        std::mem::take(&mut self.waiting)
    }

    /// A client has left.
    pub fn client_left(&mut self, client: u64) {
        self.waiting.retain(|(context, _)| context.client != client);
    }

    /// Discards it; returns whether one was held.
    pub fn forget(&mut self) -> bool {
        self.held.take().is_some()
    }

    /// The password that is held.
    #[must_use]
    pub fn held(&self) -> Option<&Secret> {
        self.held.as_ref().map(|held| &held.value)
    }

    /// Whether one is held.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Where it stands.
    #[must_use]
    pub fn stage(&self, now: Duration) -> PasswordStage {
        match self.locked_until.filter(|until| now < *until) {
            Some(until) => PasswordStage::Locked(until),
            None if self.is_held() => PasswordStage::Held,
            None => PasswordStage::None,
        }
    }

    /// Discards it if no command has used it for too long; returns whether it did.
    pub fn forget_idle(&mut self, now: Duration) -> bool {
        let is_idle = self.idle_clock(now).saturating_sub(self.last_used) >= self.rules.idle;
        is_idle && self.forget()
    }

    /// Lets the idle time stand still, or run on from there: it stands still during a run with real orders
    /// (specification 4, P122).
    pub fn stand_still(&mut self, stands: bool, now: Duration) {
        match (stands, self.stands_since) {
            (true, None) => self.stands_since = Some(now),
            (false, Some(since)) => {
                self.stands_since = None;
                self.last_used += now.saturating_sub(since);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// The time that counts for idleness.
    fn idle_clock(&self, now: Duration) -> Duration {
        self.stands_since.unwrap_or(now)
    }

    /// Checks that wrong passwords have not locked it.
    ///
    /// # Errors
    /// `SECOND_PASSWORD_LOCKED` with the seconds that are left.
    pub fn check_lock(&mut self, now: Duration) -> Result<(), Rejection> {
        let Some(until) = self.locked_until else { return Ok(()) };
        if now >= until {
            self.locked_until = None;
            self.failures = 0;
            return Ok(());
        }
        let seconds = until.saturating_sub(now).as_secs() + 1;
        let failures = self.rules.max_failures;
        Err(Rejection::new(
            ReasonCode::SecondPasswordLocked,
            format!("LOCKED: {failures} wrong second passwords in a row; wait {seconds} s"),
        ))
    }

    /// The password for a command, which counts as use.
    pub fn use_it(&mut self, now: Duration) -> Option<HeldPassword> {
        self.forget_idle(now);
        let held = self.held.clone()?;
        self.last_used = self.idle_clock(now);
        Some(held)
    }

    /// Whether the broker has refused this password: it is not sent again.
    #[must_use]
    pub const fn is_refused(&self, used: &HeldPassword) -> bool {
        used.number <= self.refused
    }

    /// The broker has refused a password. It is discarded, and the count of failures rises if `counts`.
    pub fn refuse(&mut self, used: &HeldPassword, counts: bool, now: Duration) {
        self.refused = self.refused.max(used.number);
        if self.held.as_ref().is_some_and(|held| held.number <= self.refused) {
            self.held = None;
        }
        if counts {
            self.failures += 1;
            if self.failures >= self.rules.max_failures {
                self.locked_until = Some(now + self.rules.lockout);
            }
        }
    }

    /// The broker has accepted a password.
    pub fn accept(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(now: u64) -> SecondPassword {
        let mut password = SecondPassword::new(PasswordRules::default());
        password.set("0000".to_owned().into(), at(now));
        password
    }

    #[test]
    fn it_is_forgotten_after_half_an_hour_without_use() {
        let mut password = held(10);
        assert!(password.use_it(at(1_800)).is_some());
        assert!(!password.forget_idle(at(3_599)));
        assert!(password.forget_idle(at(3_600)) && !password.is_held());
        let mut password = held(10);
        assert!(password.use_it(at(1_810)).is_none(), "also where nobody looked in between");
    }

    /// Specification 4, P42.
    #[test]
    fn three_in_a_row_lock_for_half_an_hour() {
        let mut password = held(0);
        for time in 1..=3 {
            assert!(password.check_lock(at(time)).is_ok(), "the third failure is still answered");
            let used = password.use_it(at(time)).unwrap();
            password.refuse(&used, true, at(time));
            assert!(!password.is_held() && password.is_refused(&used));
            password.set("1111".to_owned().into(), at(time));
        }
        let reported = password.check_lock(at(4)).unwrap_err();
        assert_eq!(reported.code, ReasonCode::SecondPasswordLocked);
        assert!(
            reported.text.starts_with("LOCKED: 3 wrong") && reported.text.contains("1800 s"),
            "{reported}"
        );
        assert!(password.is_held(), "setting one while locked is allowed");
        assert!(password.check_lock(at(1_802)).is_err());
        assert!(password.check_lock(at(1_803)).is_ok());
    }

    /// P122: during a run with real orders the idle time stands still.
    #[test]
    fn p122_the_idle_time_stands_still_during_a_run() {
        let mut password = held(0);
        password.stand_still(true, at(1_000));
        assert!(!password.forget_idle(at(100_000)));
        password.stand_still(false, at(100_000));
        assert!(!password.forget_idle(at(100_799)), "1,799 s of idle time");
        assert!(password.forget_idle(at(100_800)));
        let mut password = held(0);
        password.stand_still(true, at(1_000));
        assert!(password.use_it(at(50_000)).is_some());
        password.stand_still(false, at(60_000));
        assert!(!password.forget_idle(at(61_799)) && password.forget_idle(at(61_800)));
    }

    #[test]
    fn a_success_resets_the_count_and_a_malformed_one_does_not_count() {
        let mut password = held(0);
        for round in 0..6 {
            let used = password.use_it(at(1)).unwrap();
            password.refuse(&used, round % 2 == 0, at(1));
            if round == 2 {
                password.accept();
            }
            password.set("1111".to_owned().into(), at(1));
        }
        assert!(password.check_lock(at(2)).is_ok(), "2, then 1 after the reset");
    }

    #[test]
    fn a_newer_password_outlives_the_refusal_of_an_older_one() {
        let mut password = held(0);
        let old = password.use_it(at(1)).unwrap();
        password.set("1111".to_owned().into(), at(2));
        password.refuse(&old, true, at(3));
        assert!(password.is_held());
        let new = password.use_it(at(4)).unwrap();
        assert!(password.is_refused(&old) && !password.is_refused(&new));
    }
}
