//! Queues of requests to the gateway: one at a time in each class, no faster than its limit.
//!
//! Specification 1, "Limits"; specification 4, P48.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::limits::{BALANCE_CALLS_PER_SECOND, INFORMATION_CALLS_PER_SECOND};
use super::request::{Class, Question};

/// A token bucket whose time is given. It holds one token and gets them evenly, so that no second has more
/// requests than the limit. A bucket that saves up a second's tokens would let twice as many through.
#[derive(Debug)]
struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    clock: FakeRelativeClock,
    clock_at: Duration,
    /// Time between two tokens, and time of the next one.
    pause: Duration,
    next: Duration,
}

impl Bucket {
    fn new(per_second: u32) -> Self {
        let clock = FakeRelativeClock::default();
        let per_second = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(per_second).allow_burst(NonZeroU32::MIN);
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
        let pause = quota.replenish_interval();
        Self { limiter, clock, clock_at: Duration::ZERO, pause, next: Duration::ZERO }
    }

    /// Takes a token, if there is one.
    fn take(&mut self, now: Duration) -> bool {
        self.clock.advance(now.saturating_sub(self.clock_at));
        self.clock_at = self.clock_at.max(now);
        let is_there = self.limiter.check().is_ok();
        if is_there {
            self.next = now + self.pause;
        }
        is_there
    }
}

/// A request that is queued or under way.
#[derive(Debug)]
pub(crate) struct Call<J> {
    /// Its purpose.
    pub(crate) job: J,
    /// The request.
    pub(crate) question: Question,
    /// Answers that there were too many requests.
    pub(crate) slowed: usize,
    /// Answers that could not be used.
    pub(crate) failures: u32,
    /// When the first of its failed tries was sent.
    pub(crate) silent_since: Option<Duration>,
    /// Whether it was refused with a token that was renewed for it.
    pub(crate) has_new_token: bool,
    /// It must not leave before then.
    pub(crate) not_before: Duration,
    /// It goes behind all other requests of its client.
    pub(crate) yields: bool,
}

impl<J> Call<J> {
    pub(crate) const fn new(job: J, question: Question) -> Self {
        Self {
            job,
            question,
            slowed: 0,
            failures: 0,
            silent_since: None,
            has_new_token: false,
            not_before: Duration::ZERO,
            yields: false,
        }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Sent<J> {
    pub(crate) ticket: u64,
    pub(crate) at: Duration,
    pub(crate) call: Call<J>,
}

/// The requests of one class.
#[derive(Debug)]
pub(crate) struct Lane<J> {
    bucket: Bucket,
    /// The gateway wants fewer requests: none leaves before then.
    held: Duration,
    /// The last request was a repeated one.
    was_retry: bool,
    pub(crate) waiting: VecDeque<Call<J>>,
    pub(crate) sent: Option<Sent<J>>,
}

impl<J> Lane<J> {
    fn new(per_second: u32) -> Self {
        let (bucket, held) = (Bucket::new(per_second), Duration::ZERO);
        Self { bucket, held, was_retry: false, waiting: VecDeque::new(), sent: None }
    }

    /// Queues a client's request. Each client's next request comes before the second next one of any other
    /// client. So no client waits for all requests of another.
    pub(crate) fn push_fair(&mut self, call: Call<J>, client_of: impl Fn(&J) -> Option<u64>) {
        let client = client_of(&call.job);
        let mut ahead: BTreeMap<u64, usize> = BTreeMap::new();
        let is_own = |waiting: &Call<J>| client_of(&waiting.job) == client;
        let of_own = self.waiting.iter().filter(|call| is_own(call)).count();
        let is_later = |waiting: &Call<J>| {
            let Some(other) = client_of(&waiting.job) else { return false };
            let turn = ahead.entry(other).or_default();
            *turn += 1;
            *turn > of_own + 1
        };
        let place = self.waiting.iter().position(is_later).unwrap_or(self.waiting.len());
        // It takes the turn of its client's first request that yields, and that one takes the new one's turn.
        let yielding = self.waiting.iter().position(|waiting| waiting.yields && is_own(waiting));
        let call = match yielding.filter(|_| !call.yields) {
            Some(own) => std::mem::replace(&mut self.waiting[own], call),
            None => call,
        };
        self.waiting.insert(place, call);
    }

    /// Whether a request could leave now.
    pub(crate) fn is_free(&self, now: Duration) -> bool {
        self.sent.is_none() && self.bucket.next <= now && self.held <= now
    }

    /// Holds all requests until then.
    pub(crate) fn hold(&mut self, until: Duration) {
        self.held = self.held.max(until);
    }

    /// Sends the first request that is due and may leave, if the limit allows it.
    pub(crate) fn send(
        &mut self,
        ticket: u64,
        now: Duration,
        may_leave: impl Fn(&Call<J>) -> bool,
    ) -> Option<&Call<J>> {
        let is_due = |call: &Call<J>| call.not_before <= now && may_leave(call);
        let first = self.waiting.iter().position(is_due)?;
        // Repeated requests would delay those that were never tried: they take turns.
        let untried = |call: &Call<J>| is_due(call) && call.failures == 0;
        let fresh = self.was_retry.then(|| self.waiting.iter().position(untried)).flatten();
        let due = fresh.unwrap_or(first);
        if self.sent.is_some() || self.held > now || !self.bucket.take(now) {
            return None;
        }
        let call = self.waiting.remove(due)?;
        self.was_retry = call.failures > 0;
        Some(&self.sent.insert(Sent { ticket, at: now, call }).call)
    }
}

/// How many lanes there are.
pub(crate) const LANES: usize = 3;

/// All of them.
#[derive(Debug)]
pub(crate) struct Lanes<J> {
    /// Always empty in this phase.
    pub(crate) order: Lane<J>,
    pub(crate) balance: Lane<J>,
    pub(crate) information: Lane<J>,
}

impl<J> Lanes<J> {
    /// With so many order-type calls in a second.
    pub(crate) fn new(order_calls: u32) -> Self {
        Self {
            order: Lane::new(order_calls),
            balance: Lane::new(BALANCE_CALLS_PER_SECOND),
            information: Lane::new(INFORMATION_CALLS_PER_SECOND),
        }
    }

    /// The lane of a request.
    pub(crate) const fn of(&mut self, question: &Question) -> &mut Lane<J> {
        match question.class() {
            Class::Order => &mut self.order,
            Class::Balance => &mut self.balance,
            Class::Token | Class::Information => &mut self.information,
        }
    }

    /// All three.
    pub(crate) const fn all(&mut self) -> [&mut Lane<J>; LANES] {
        [&mut self.information, &mut self.balance, &mut self.order]
    }

    /// Queued requests.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Call<J>> {
        let lanes = [&self.information, &self.balance, &self.order];
        lanes.into_iter().flat_map(|lane| &lane.waiting)
    }

    /// Takes the request of a ticket, which is no longer under way.
    pub(crate) fn take_sent(&mut self, ticket: u64) -> Option<Sent<J>> {
        let mut lanes = self.all().into_iter();
        let is_of = |lane: &&mut Lane<J>| lane.sent.as_ref().is_some_and(|s| s.ticket == ticket);
        lanes.find(is_of)?.sent.take()
    }

    /// Whether nothing is queued or under way.
    pub(crate) fn is_idle(&self) -> bool {
        let lanes = [&self.information, &self.balance, &self.order];
        lanes.iter().all(|lane| lane.waiting.is_empty() && lane.sent.is_none())
    }

    /// Takes all requests that are queued or under way.
    pub(crate) fn clear(&mut self) -> Vec<Call<J>> {
        let mut calls = Vec::new();
        for lane in self.all() {
            calls.extend(lane.sent.take().map(|sent| sent.call));
            calls.extend(lane.waiting.drain(..));
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request that a lane sends.
    fn send_next<J>(lane: &mut Lane<J>, ticket: u64, now: Duration) -> Option<Question> {
        lane.send(ticket, now, |_| true).map(|call| call.question.clone())
    }

    /// P48: no second, wherever it begins, has more requests than the limit.
    #[test]
    fn p48_no_second_has_more_than_the_limit() {
        limits_hold(5, 20);
        // A newer gateway takes more orders (`order_calls_per_second`).
        limits_hold(10, 40);
    }

    /// With `order_calls` order-type calls in a second, and `orders` of them queued.
    fn limits_hold(order_calls: u32, orders: u64) {
        let mut lanes = Lanes::new(order_calls);
        for number in 0..40 {
            lanes.information.waiting.push_back(Call::new(number, Question::Orders));
            lanes.balance.waiting.push_back(Call::new(number, Question::Cash));
            if number < orders {
                // Any question: the class of orders has none.
                lanes.order.waiting.push_back(Call::new(number, Question::Orders));
            }
        }
        let mut left: Vec<(Duration, u64)> = Vec::new();
        for ms in (0..5_000).step_by(7) {
            let now = Duration::from_millis(ms);
            for (number, lane) in lanes.all().into_iter().enumerate() {
                if lane.send(number as u64, now, |_| true).is_some() {
                    left.push((now, number as u64));
                    lane.sent = None;
                }
            }
        }
        let count = 80 + orders as usize;
        assert_eq!(left.len(), count, "all of them leave in about four seconds");
        let limits = [10, 10, order_calls as usize];
        for (first, lane) in &left {
            let second = *first..*first + Duration::from_secs(1);
            let within = left.iter().filter(|(at, of)| of == lane && second.contains(at)).count();
            let limit = limits[usize::try_from(*lane).unwrap()];
            assert!(within <= limit, "{within} in the second from {first:?}");
        }
    }

    #[test]
    fn no_client_waits_for_all_requests_of_another() {
        let mut lane = Lane::new(10);
        let client_of = |job: &(u64, u64)| (job.0 > 0).then_some(job.0);
        // A registration, of no client.
        lane.waiting.push_back(Call::new((0, 0), Question::Register(Vec::new())));
        for (client, number) in [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (2, 2), (1, 4), (3, 2)] {
            lane.push_fair(Call::new((client, number), Question::Orders), client_of);
        }
        let order: Vec<(u64, u64)> = lane.waiting.iter().map(|call| call.job).collect();
        let expected = [(0, 0), (1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (1, 3), (1, 4)];
        assert_eq!(order, expected);
    }

    #[test]
    fn what_yields_goes_behind_all_else_of_its_client_and_in_turn_with_others() {
        let mut lane = Lane::new(10);
        let client_of = |job: &(u64, u64)| Some(job.0);
        let call = |job, yields| Call { yields, ..Call::new(job, Question::Orders) };
        for (client, number, yields) in [
            (1, 91, true),
            (1, 92, true),
            (1, 93, true),
            (2, 1, false),
            (1, 1, false),
            (2, 2, false),
            (1, 2, false),
        ] {
            lane.push_fair(call((client, number), yields), client_of);
        }
        let order: Vec<(u64, u64)> = lane.waiting.iter().map(|call| call.job).collect();
        assert_eq!(order, [(1, 1), (2, 1), (1, 2), (2, 2), (1, 93), (1, 91), (1, 92)]);
    }

    #[test]
    fn what_is_made_again_takes_turns_with_what_was_never_tried() {
        let mut lane = Lane::new(10);
        let call = |job, failures| Call { failures, ..Call::new(job, Question::Orders) };
        lane.waiting.extend([call(1, 1), call(2, 2), call(3, 0), call(4, 0), call(5, 1)]);
        let mut order = Vec::new();
        for second in 1..=5 {
            let sent = lane.send(second, Duration::from_secs(second), |_| true);
            order.extend(sent.map(|call| call.job));
            lane.sent = None;
        }
        assert_eq!(order, [1, 3, 2, 4, 5]);
    }

    /// P48: a lane on hold sends nothing.
    #[test]
    fn p48_a_lane_that_is_held_sends_nothing() {
        let mut lane = Lane::new(10);
        lane.waiting.extend([1, 2].map(|job| Call::new(job, Question::Orders)));
        lane.hold(Duration::from_secs(5));
        lane.hold(Duration::from_secs(2));
        assert!(!lane.is_free(Duration::from_secs(4)));
        assert_eq!(send_next(&mut lane, 1, Duration::from_secs(4)), None);
        assert!(lane.is_free(Duration::from_secs(5)));
        assert_eq!(send_next(&mut lane, 1, Duration::from_secs(5)), Some(Question::Orders));
    }

    #[test]
    fn a_request_that_pauses_delays_no_other_one() {
        let mut lane = Lane::new(10);
        let pause = Call { not_before: Duration::from_secs(5), ..Call::new(1, Question::Orders) };
        lane.waiting.extend([pause, Call::new(2, Question::Positions)]);
        assert_eq!(send_next(&mut lane, 1, Duration::from_secs(1)), Some(Question::Positions));
        lane.sent = None;
        assert_eq!(send_next(&mut lane, 2, Duration::from_secs(2)), None);
        assert_eq!(send_next(&mut lane, 2, Duration::from_secs(5)), Some(Question::Orders));
    }

    #[test]
    fn one_request_of_a_class_is_on_its_way_at_a_time() {
        let mut lanes = Lanes::new(5);
        lanes.of(&Question::Orders).waiting.push_back(Call::new(1, Question::Orders));
        lanes.of(&Question::Positions).waiting.push_back(Call::new(2, Question::Positions));
        let second = Duration::from_secs(1);
        assert_eq!(send_next(&mut lanes.information, 7, second), Some(Question::Orders));
        assert_eq!(send_next(&mut lanes.information, 8, second * 9), None);
        assert_eq!(lanes.take_sent(8).map(|sent| sent.call.job), None);
        assert_eq!(lanes.take_sent(7).map(|sent| sent.call.job), Some(1));
        assert_eq!(send_next(&mut lanes.information, 8, second * 9), Some(Question::Positions));
        assert_eq!((lanes.waiting().count(), lanes.clear().len()), (0, 1));
    }
}
