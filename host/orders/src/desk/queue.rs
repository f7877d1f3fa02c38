//! The queue of jobs for the broker, which takes one request at a time, and their time limits.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use domain::{ReasonCode, Rejection};

use super::change::Sender;
use super::lists::Purpose;
use super::strategies::Look;
use super::{Desk, Now, RequestContext, cancel_all, change, lists, money, submit};
use crate::book::OrderKey;
use crate::event::StrategyEvent;
use crate::limits::{JOBS_OF_CLIENT_MAX, JOBS_WAITING_MAX, ORDER_ANSWER_TIME};

/// A job for the broker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) context: Option<RequestContext>,
    pub(crate) received: Duration,
    pub(crate) kind: JobKind,
    /// Its own end is not reported: its time limit is over, or it is a part of a cancel of many.
    pub(crate) is_abandoned: bool,
}

impl Job {
    /// Whether it is a login, which is neither withdrawn nor ended by a freeze.
    pub(crate) const fn is_login(&self) -> bool {
        matches!(self.kind, JobKind::Login)
    }

    /// Whether its time limit is over.
    pub(crate) fn is_late(&self, now: Now) -> bool {
        now.mono.saturating_sub(self.received) >= ORDER_ANSWER_TIME
    }

    /// Whether it only reads data: orders go first.
    fn is_inquiry(&self) -> bool {
        match &self.kind {
            JobKind::List(list) => matches!(list.purpose, Purpose::Client(_)),
            JobKind::BuyingPower(_)
            | JobKind::Positions(_)
            | JobKind::Details(_)
            | JobKind::Look(_) => true,
            _ => false,
        }
    }

    /// Its rank in the queue: what reduces a strategy's risk, other jobs that change something, then reads, then
    /// details.
    fn rank(&self) -> u8 {
        match &self.kind {
            JobKind::Change(change) if change.reduces_risk() => 0,
            JobKind::Submit(submit) if submit.sells_own_shares => 0,
            JobKind::Details(_) => 3,
            _ => 1 + u8::from(self.is_inquiry()),
        }
    }

    /// The id of the command behind it, as events name it; none for a command of a strategy.
    pub(super) fn request_id(&self) -> Option<String> {
        let is_of_person = match &self.kind {
            JobKind::Change(change) => change.sender == Sender::Person,
            _ => true,
        };
        let context = self.context.as_ref().filter(|_| is_of_person);
        context.map(|context| context.request_id.clone())
    }

    /// Whether it has taken the second password.
    fn uses_password(&self) -> bool {
        matches!(
            self.kind,
            JobKind::Submit(_)
                | JobKind::Change(_)
                | JobKind::CancelAll { .. }
                | JobKind::CancelRow(_)
        )
    }

    fn is_of(&self, client: u64) -> bool {
        self.context.as_ref().is_some_and(|context| context.client == client)
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
    /// Request the fills of an order that a list has and no notice reported.
    Details(OrderKey),
    /// Request the cash or the shares of the account for a strategy.
    Look(Look),
}

/// The rejection of a command that was not sent in time.
pub(super) fn not_sent() -> Rejection {
    let seconds = ORDER_ANSWER_TIME.as_secs();
    let text = format!(
        "NOT_SENT: the command waited for {seconds} s; the broker was busy, or the machine slept"
    );
    Rejection::new(ReasonCode::InternalError, text)
}

/// The jobs that are queued, and the one whose request is under way.
#[derive(Debug, Default)]
pub(crate) struct JobQueue {
    waiting: VecDeque<Job>,
    active: Option<(u64, Job)>,
    /// Requests so far.
    tickets: u64,
}

impl JobQueue {
    /// Checks that a client may queue one more job. Each client leaves room for the others, and reads do not
    /// use the room of orders.
    fn check_room(&self, client: u64, is_inquiry: bool) -> Result<(), Rejection> {
        let alike = || self.waiting.iter().filter(|job| job.is_inquiry() == is_inquiry);
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

    /// Queues a job behind those of its rank and of the ranks before.
    pub(super) fn put(&mut self, job: Job) {
        let last = self.waiting.iter().rposition(|waiting| waiting.rank() <= job.rank());
        self.waiting.insert(last.map_or(0, |last| last + 1), job);
    }

    /// Queues a job that was under way before those of its rank.
    pub(super) fn put_first(&mut self, job: Job) {
        let first = self.waiting.iter().position(|waiting| waiting.rank() >= job.rank());
        self.waiting.insert(first.unwrap_or(self.waiting.len()), job);
    }

    /// Whether a job waits that goes before a job's next request.
    pub(super) fn has_before(&self, job: &Job) -> bool {
        self.waiting.front().is_some_and(|first| first.rank() == 0 && job.rank() > 0)
    }

    /// Whether a request of the desk's own is queued.
    pub(super) fn has_look(&self, look: Look) -> bool {
        self.waiting.iter().any(|job| matches!(job.kind, JobKind::Look(other) if other == look))
    }

    /// Whether a cancel of an order is queued or under way.
    pub(super) fn has_cancel_of(&self, key: OrderKey) -> bool {
        let mut jobs = self.waiting.iter().chain(self.active());
        jobs.any(
            |job| matches!(&job.kind, JobKind::Change(one) if one.key == key && one.is_cancel()),
        )
    }

    /// The order of the active job, if it is a new one that was not sent yet.
    pub(super) fn unsent_submit(&self) -> Option<OrderKey> {
        match self.active().map(|job| &job.kind) {
            Some(JobKind::Submit(submit)) if !submit.is_sent => Some(submit.key),
            _ => None,
        }
    }

    /// The next job, unless a request is under way.
    fn next(&mut self) -> Option<Job> {
        if self.active.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Makes a job the active one; returns the ticket of its request.
    pub(super) fn start(&mut self, job: Job) -> u64 {
        self.tickets += 1;
        self.active = Some((self.tickets, job));
        self.tickets
    }

    /// Finishes the job of a ticket; `None` if it is not the active one.
    pub(super) fn finish(&mut self, ticket: u64) -> Option<Job> {
        self.active.take_if(|(active, _)| *active == ticket).map(|(_, job)| job)
    }

    /// Finishes a login; false if the ticket is not the active login's.
    pub(super) fn finish_login(&mut self, ticket: u64) -> bool {
        let is_login = |active: &mut (u64, Job)| active.0 == ticket && active.1.is_login();
        self.active.take_if(is_login).is_some()
    }

    /// The job whose request is under way.
    fn active(&self) -> Option<&Job> {
        self.active.as_ref().map(|(_, job)| job)
    }

    pub(super) fn has_waiting_login(&self) -> bool {
        self.waiting.iter().any(Job::is_login)
    }

    /// Whether a login is queued or under way.
    pub(super) fn has_login(&self) -> bool {
        self.has_waiting_login() || self.active().is_some_and(Job::is_login)
    }

    /// Whether a submit is under way whose answer may have any number.
    pub(super) fn is_submitting(&self) -> bool {
        let kind = self.active().map(|job| &job.kind);
        matches!(kind, Some(JobKind::Submit(submit)) if submit.is_sent)
    }

    /// Jobs that have taken the second password.
    pub(super) fn password_users(&self) -> usize {
        self.waiting.iter().chain(self.active()).filter(|job| job.uses_password()).count()
    }

    /// Clients with queued orders.
    fn clients_with_orders(&self) -> BTreeSet<u64> {
        let waiting = self.waiting.iter().filter(|job| !job.is_inquiry());
        waiting.filter_map(|job| job.context.as_ref().map(|context| context.client)).collect()
    }

    /// Takes jobs out of the queue; the others stay in order.
    pub(super) fn any_waiting(&self, is_it: impl Fn(&Job) -> bool) -> bool {
        self.waiting.iter().any(is_it)
    }

    /// Takes jobs that wait.
    pub(super) fn take_waiting(&mut self, is_taken: impl Fn(&Job) -> bool) -> Vec<Job> {
        if !self.waiting.iter().any(&is_taken) {
            return Vec::new();
        }
        let (taken, left): (Vec<Job>, Vec<Job>) = self.waiting.drain(..).partition(is_taken);
        self.waiting = left.into();
        taken
    }

    /// The end of the active job will not be reported; returns the job, the first time.
    pub(super) fn abandon_active(&mut self) -> Option<&Job> {
        let (_, job) = self.active.as_mut().filter(|(_, job)| !job.is_abandoned)?;
        job.is_abandoned = true;
        Some(job)
    }
}

impl Desk {
    /// Checks that a client may queue an order, a change or a cancel.
    pub(crate) fn has_room(&self, client: u64) -> Result<(), Rejection> {
        self.queue.check_room(client, false)
    }

    /// Checks that a client may queue a read.
    pub(crate) fn has_room_for_read(&self, client: u64) -> Result<(), Rejection> {
        self.queue.check_room(client, true)
    }

    /// Queues a job: jobs that change something before reads, details last, else in order of arrival.
    pub(crate) fn enqueue(&mut self, context: Option<RequestContext>, kind: JobKind, now: Now) {
        self.withdraw_after_sleep(now);
        self.queue.put(Job { context, received: now.mono, kind, is_abandoned: false });
        self.work(now);
    }

    /// Starts the next job, unless a request is under way.
    pub(super) fn work(&mut self, now: Now) {
        self.withdraw_after_sleep(now);
        while let Some(job) = self.queue.next() {
            if job.is_late(now) && !job.is_login() {
                self.withdraw(job, now);
                continue;
            }
            self.begin(job, now);
        }
    }

    /// A list that was requested at `sent_at` serves all clients that have waited since before.
    pub(super) fn serve_waiting_lists(&mut self, sent_at: Duration) {
        // A client with queued orders still wants to see them in its list.
        let has_orders = self.queue.clients_with_orders();
        let is_served = |job: &Job| {
            let is_behind =
                job.context.as_ref().is_some_and(|one| has_orders.contains(&one.client));
            let JobKind::List(list) = &job.kind else { return false };
            matches!(list.purpose, Purpose::Client(_)) && job.received < sent_at && !is_behind
        };
        for job in self.queue.take_waiting(is_served) {
            if let (Some(context), JobKind::List(list)) = (job.context, job.kind)
                && let Purpose::Client(filter) = list.purpose
            {
                self.report_list(context.client, &context.request_id, Some(&filter));
            }
        }
    }

    /// Handles commands whose time limit is over. Those that have not been sent are withdrawn. Those that have
    /// been sent go on, and their end is not reported (P23a).
    pub(super) fn abandon_late(&mut self, now: Now) {
        self.withdraw_all(|job| job.is_late(now), now);
        if self.queue.active().is_some_and(|job| job.is_late(now)) {
            self.abandon_active(now);
        }
    }

    /// Stops the active job's reports to its sender.
    fn abandon_active(&mut self, now: Now) {
        let unsent = self.queue.unsent_submit();
        let Some(job) = self.queue.abandon_active() else { return };
        let context = job.context.clone();
        // A guard is under way and the order itself will not be sent: the guard's answer is dropped.
        if let Some(key) = unsent {
            return self.refuse_submit(context.as_ref(), key, &not_sent(), now);
        }
        let of_strategy = self.queue.active().and_then(|job| self.strategy_of(job));
        let seconds = ORDER_ANSWER_TIME.as_secs();
        let text =
            format!("TIMEOUT: the broker has not answered within {seconds} s; read the order list");
        match (of_strategy, context) {
            (Some((strategy_id, client_order_id)), _) => {
                let why = text;
                self.report_strategy(StrategyEvent::OutcomeUnknown {
                    strategy_id,
                    client_order_id,
                    why,
                });
            }
            (None, Some(context)) => {
                self.report_error(&context, ReasonCode::InternalError, text, None);
            }
            (None, None) => {}
        }
    }

    /// Withdraws commands that are too old because the machine slept.
    fn withdraw_after_sleep(&mut self, now: Now) {
        if self.wall.has_slept(now) {
            self.withdraw_all(|_| true, now);
            self.abandon_active(now);
        }
    }

    /// Ends late jobs that have not been sent, except logins.
    fn withdraw_all(&mut self, is_late: impl Fn(&Job) -> bool, now: Now) {
        for job in self.queue.take_waiting(|job| is_late(job) && !job.is_login()) {
            self.withdraw(job, now);
        }
    }

    /// Refuses a command that was not sent in time.
    pub(super) fn withdraw(&mut self, job: Job, now: Now) {
        self.refuse_job(job, &not_sent(), now);
    }
}
