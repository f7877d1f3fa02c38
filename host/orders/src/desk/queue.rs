//! What waits for the broker, which takes one question at a time, and for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{ReasonCode, Rejection};

use super::lists::Purpose;
use super::{Active, Asked, Desk, Now, cancel_all, change, lists, money, submit};
use crate::book::OrderKey;
use crate::limits::{JOBS_OF_CLIENT_MAX, JOBS_WAITING_MAX, ORDER_ANSWER_TIME};

/// What waits for the broker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) asked: Option<Asked>,
    pub(crate) received: Duration,
    pub(crate) kind: JobKind,
    /// Nobody waits for its own end: the time of an answer is over, or it is a part of a cancel of many.
    pub(crate) is_given_up: bool,
}

impl Job {
    /// Whether it is a login, which is neither withdrawn nor ended by a freeze.
    pub(crate) const fn is_login(&self) -> bool {
        matches!(self.kind, JobKind::Login)
    }

    /// Whether the time of its answer is over.
    pub(crate) fn is_late(&self, now: Now) -> bool {
        now.mono.saturating_sub(self.received) >= ORDER_ANSWER_TIME
    }

    /// Whether somebody only wants to know something: orders go first.
    fn is_inquiry(&self) -> bool {
        match &self.kind {
            JobKind::List(list) => matches!(list.purpose, Purpose::Client(_)),
            JobKind::BuyingPower(_) | JobKind::Positions(_) | JobKind::Details(_) => true,
            _ => false,
        }
    }

    /// Its place among what waits: what changes something, what somebody wants to know, what nobody waits for.
    fn rank(&self) -> u8 {
        match &self.kind {
            JobKind::Details(_) => 2,
            _ => u8::from(self.is_inquiry()),
        }
    }

    fn is_of(&self, client: u64) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.client == client)
    }
}

#[derive(Debug)]
pub(crate) enum JobKind {
    Login,
    Submit(submit::SubmitJob),
    Change(change::ChangeJob),
    CancelAll {
        number: u64,
        targets: Vec<OrderKey>,
    },
    CancelRow(cancel_all::RowCancel),
    List(lists::ListJob),
    BuyingPower(money::BuyingPowerJob),
    Positions(money::PositionsJob),
    /// The fills of an order that a list has and no notice told.
    Details(OrderKey),
}

/// Why a command was not sent in its time.
pub(super) fn not_sent() -> Rejection {
    let seconds = ORDER_ANSWER_TIME.as_secs();
    let text = format!(
        "NOT_SENT: the command waited for {seconds} s; the broker was busy, or the machine slept"
    );
    Rejection::new(ReasonCode::InternalError, text)
}

impl Desk {
    /// Whether an order, a change or a cancel of a client can wait for its turn: one client leaves room for
    /// the others, and questions take no room of orders.
    pub(crate) fn has_room(&self, client: u64) -> Result<(), Rejection> {
        self.has_room_for(client, false)
    }

    /// Whether a question of a client can wait for its turn.
    pub(crate) fn has_room_to_ask(&self, client: u64) -> Result<(), Rejection> {
        self.has_room_for(client, true)
    }

    fn has_room_for(&self, client: u64, is_inquiry: bool) -> Result<(), Rejection> {
        let alike = || self.queue.iter().filter(|job| job.is_inquiry() == is_inquiry);
        let of_client = alike().filter(|job| job.is_of(client)).count();
        let (limit, whose) = match alike().count() {
            JOBS_WAITING_MAX.. => (JOBS_WAITING_MAX, "commands"),
            _ if of_client >= JOBS_OF_CLIENT_MAX => (JOBS_OF_CLIENT_MAX, "commands of this client"),
            _ => return Ok(()),
        };
        let text = format!(
            "TOO_MANY_WAITING: {limit} {whose} wait for the broker; wait for their answers"
        );
        Err(Rejection::new(ReasonCode::InternalError, text))
    }

    /// A job waits for its turn: what changes something before what only asks, details last, else as it came.
    pub(crate) fn enqueue(&mut self, asked: Option<Asked>, kind: JobKind, now: Now) {
        self.withdraw_after_sleep(now);
        self.put_in_queue(Job { asked, received: now.mono, kind, is_given_up: false });
        self.work(now);
    }

    /// Puts a job behind those of its rank and of the ranks before.
    pub(super) fn put_in_queue(&mut self, job: Job) {
        let last = self.queue.iter().rposition(|waiting| waiting.rank() <= job.rank());
        self.queue.insert(last.map_or(0, |last| last + 1), job);
    }

    /// Takes the next job, unless the broker is being asked.
    pub(super) fn work(&mut self, now: Now) {
        self.withdraw_after_sleep(now);
        while self.active.is_none() {
            let Some(job) = self.queue.pop_front() else { return };
            if job.is_late(now) && !job.is_login() {
                self.withdraw(job, now);
                continue;
            }
            self.begin(job, now);
        }
    }

    /// A list that was asked for at a time serves all clients who have waited for one since before.
    pub(super) fn serve_waiting_lists(&mut self, sent_at: Duration) {
        // A client whose orders wait still wants to see them in its list.
        let waiting = self.queue.iter().filter(|job| !job.is_inquiry());
        let has_orders: BTreeSet<u64> =
            waiting.filter_map(|job| job.asked.as_ref().map(|asked| asked.client)).collect();
        let is_served = |job: &Job| {
            let is_behind = job.asked.as_ref().is_some_and(|one| has_orders.contains(&one.client));
            let JobKind::List(list) = &job.kind else { return false };
            matches!(list.purpose, Purpose::Client(_)) && job.received < sent_at && !is_behind
        };
        for job in self.take_waiting(is_served) {
            if let (Some(asked), JobKind::List(list)) = (job.asked, job.kind)
                && let Purpose::Client(filter) = list.purpose
            {
                self.tell_list(asked.client, &asked.request_id, Some(&filter));
            }
        }
    }

    /// Commands whose time of an answer is over: what has not been sent is withdrawn, what has been sent
    /// goes on without anybody who waits (P23a).
    pub(super) fn give_up_waits(&mut self, now: Now) {
        self.withdraw_all(|job| job.is_late(now), now);
        if self.active.as_ref().is_some_and(|active| active.job.is_late(now)) {
            self.give_up_active(now);
        }
    }

    /// Nobody waits any more for the job that the broker is asked for.
    fn give_up_active(&mut self, now: Now) {
        if let Some(Active { job, .. }) = &mut self.active
            && !job.is_given_up
        {
            job.is_given_up = true;
            let asked = job.asked.clone();
            // Its guard was asked and the order itself never will be: what the guard answers is dropped.
            if let JobKind::Submit(submit) = &job.kind
                && !submit.is_sent
            {
                let key = submit.key;
                return self.refuse_submit(asked.as_ref(), key, &not_sent(), now);
            }
            if let Some(asked) = asked {
                let seconds = ORDER_ANSWER_TIME.as_secs();
                let text = format!(
                    "TIMEOUT: the broker has not answered within {seconds} s; read the order list"
                );
                self.tell_error(&asked, ReasonCode::InternalError, text, None);
            }
        }
    }

    /// What waited while the machine slept is too old to be sent.
    fn withdraw_after_sleep(&mut self, now: Now) {
        if self.wall.has_slept(now) {
            self.withdraw_all(|_| true, now);
            self.give_up_active(now);
        }
    }

    /// Ends the jobs, logins apart, that are late and have not been sent.
    fn withdraw_all(&mut self, is_late: impl Fn(&Job) -> bool, now: Now) {
        for job in self.take_waiting(|job| is_late(job) && !job.is_login()) {
            self.withdraw(job, now);
        }
    }

    /// Takes jobs out of the queue; the others keep their order.
    fn take_waiting(&mut self, is_taken: impl Fn(&Job) -> bool) -> Vec<Job> {
        if !self.queue.iter().any(&is_taken) {
            return Vec::new();
        }
        let (taken, kept): (Vec<Job>, Vec<Job>) = self.queue.drain(..).partition(is_taken);
        self.queue = kept.into();
        taken
    }

    /// A command that was not sent in time never will be.
    pub(super) fn withdraw(&mut self, job: Job, now: Now) {
        self.refuse_job(job, &not_sent(), now);
    }
}
