//! Requests to the gateway: those that wait, those on their way, and whether the gateway answers (specification 4,
//! P46, P48).

use std::time::Duration;

use super::super::lanes::{Call, Lanes, Sent};
use super::super::limits::RETRIES;
use super::super::request::{Class, Question};
use super::reads::Read;
use crate::RequestContext;

/// What a request is for.
#[derive(Debug)]
pub(crate) enum Job {
    /// Symbols are registered, before the stream is opened.
    BeforeOpening,
    /// Symbols are registered, and then frames are trusted.
    AfterOpening,
    /// Symbols are registered that a client wants, or that the gateway has lost.
    Register,
    /// Symbols are taken out.
    Unregister,
    /// The gateway's list is read, by registering once more what is registered.
    List,
    /// A client wants to know something.
    Read(RequestContext, Read),
    /// The name of a symbol that is registered, for the clients that wait for it; this client waits the
    /// longest. The board that tells it registers nothing new.
    Name(u64, String),
    /// The gateway's list, to see whether it lives: nothing came of another request, however often.
    Probe,
}

impl Job {
    /// Who wants it done; none where the venue does it for all.
    pub(super) const fn client(&self) -> Option<u64> {
        match self {
            Self::Read(asked, _) => Some(asked.client),
            Self::Name(client, _) => Some(*client),
            _ => None,
        }
    }
}

/// The gateway cannot be reached: which requests wait, and until when.
#[derive(Debug)]
struct Outage {
    /// Tries that have failed after the first one.
    retries: u32,
    /// When that was written down: what was sent before says nothing more.
    since: Duration,
    next: Duration,
}

/// What a try that failed is in an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedTry {
    /// The first one.
    Begins,
    /// One of several; the request is tried again.
    GoesOn,
    /// The last one.
    IsLast,
}

/// How nothing came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing listens at the gateway's address.
    Refused,
    /// It could not be made otherwise, or nothing came in time.
    Silent,
    /// What came is no answer.
    Unusable,
}

/// A request that nothing came of in all of its tries.
#[derive(Debug)]
pub(crate) struct Suspect {
    pub(super) call: Call<Job>,
    pub(super) why: String,
    pub(super) failure: Failure,
}

/// All requests, and what their answers say of the gateway.
#[derive(Debug)]
pub(crate) struct Requests {
    lanes: Lanes<Job>,
    tickets: u64,
    /// The last request of the class of information was a registration, and no read.
    changed_last: bool,
    outage: Option<Outage>,
    /// The request of the last outage, while it is seen whether the gateway lives.
    suspect: Option<Suspect>,
    /// When the gateway answered last.
    answered_at: Option<Duration>,
}

impl Requests {
    /// No request yet; with so many order-type calls in a second.
    pub(super) fn new(order_calls_per_second: u32) -> Self {
        Self {
            lanes: Lanes::new(order_calls_per_second),
            tickets: 0,
            changed_last: false,
            outage: None,
            suspect: None,
            answered_at: None,
        }
    }

    /// Puts a client's request among those that wait.
    pub(super) fn push_fair(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).push_fair(call, Job::client);
    }

    /// Puts a request before all others.
    pub(super) fn push_first(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).waiting.push_front(call);
    }

    /// Puts a request behind all others.
    pub(super) fn push_last(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).waiting.push_back(call);
    }

    /// Names a request that leaves.
    pub(super) const fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Whether something may leave: in an outage one request is tried at a time, when its time has come.
    pub(super) fn may_begin(&mut self, now: Duration) -> bool {
        // Whose requests came to nothing left, or gave them up: the next one begins anew.
        if self.lanes.is_idle() {
            self.outage = None;
        }
        let Some(outage) = &self.outage else { return true };
        outage.next <= now && self.lanes.all().iter().all(|lane| lane.sent.is_none())
    }

    /// Whether an outage goes on.
    pub(super) const fn is_in_outage(&self) -> bool {
        self.outage.is_some()
    }

    /// Takes the next request of a lane that may leave now, with its ticket. While it is seen whether the gateway
    /// lives, that is the question for its list; before that list is known, nothing that changes it.
    pub(super) fn send(
        &mut self,
        lane: usize,
        lists_first: bool,
        now: Duration,
    ) -> Option<(u64, &Call<Job>)> {
        let probes_only = self.suspect.is_some();
        let may_leave = |call: &Call<Job>| {
            if probes_only {
                return matches!(call.job, Job::Probe);
            }
            !lists_first || matches!(call.job, Job::BeforeOpening) || !call.question.changes_list()
        };
        let ticket = self.tickets + 1;
        let [information, balance, order] = self.lanes.all();
        let lane = [information, balance, order].into_iter().nth(lane)?;
        let sent = lane.send(ticket, now, may_leave)?;
        self.tickets = ticket;
        if sent.question.class() == Class::Information {
            self.changed_last = sent.job.client().is_none();
        }
        Some((ticket, sent))
    }

    /// The request of a ticket, which is on its way no more.
    pub(super) fn take_sent(&mut self, ticket: u64) -> Option<Sent<Job>> {
        self.lanes.take_sent(ticket)
    }

    /// Lets no request of a question's class leave before then.
    pub(super) fn hold(&mut self, question: &Question, until: Duration) {
        self.lanes.of(question).hold(until);
    }

    /// A client is gone, and with it what it wanted to know; others may wait for the same name.
    pub(super) fn client_left(&mut self, client: u64) {
        for lane in self.lanes.all() {
            lane.waiting.retain(|call| {
                call.job.client() != Some(client) || matches!(call.job, Job::Name(..))
            });
        }
    }

    /// Takes a symbol out of the requests for some job that wait, and those that are empty then with it.
    pub(super) fn drop_symbol(&mut self, symbol: &str, is_of: impl Fn(&Job) -> bool) {
        self.lanes.information.waiting.retain_mut(|call| {
            let (Question::Register(symbols) | Question::Unregister(symbols)) = &mut call.question
            else {
                return true;
            };
            if !is_of(&call.job) {
                return true;
            }
            symbols.retain(|waiting| waiting != symbol);
            !symbols.is_empty()
        });
    }

    /// Takes out what waits to read the name of a symbol.
    pub(super) fn drop_name(&mut self, symbol: &str) {
        let is_of = |job: &Job| matches!(job, Job::Name(_, named) if named == symbol);
        self.lanes.information.waiting.retain(|call| !is_of(&call.job));
    }

    /// Takes out what waits for the stream.
    pub(super) fn drop_of_stream(&mut self) {
        let is_streams = |job: &Job| matches!(job, Job::BeforeOpening | Job::AfterOpening);
        self.lanes.information.waiting.retain(|call| !is_streams(&call.job));
    }

    /// Whether symbols are still being registered before frames are trusted.
    pub(super) fn is_checking_stream(&self) -> bool {
        let lane = &self.lanes.information;
        let sent = lane.sent.as_ref().map(|sent| &sent.call);
        lane.waiting.iter().chain(sent).any(|call| matches!(call.job, Job::AfterOpening))
    }

    /// Whether registrations may be put before what waits: they take turns with what clients read, so that a client
    /// that changes symbols all the time keeps no reads up.
    pub(super) fn may_register(&self, now: Duration) -> bool {
        let lane = &self.lanes.information;
        let mut due = lane.waiting.iter().filter(|call| call.not_before <= now);
        let is_next = |call: &Call<Job>| call.job.client().is_none() || self.changed_last;
        lane.is_free(now) && !due.any(is_next)
    }

    /// Whether a request is on its way that may register something.
    pub(super) fn is_registering(&self) -> bool {
        let registers = |call: &Call<Job>| match call.question {
            // A name is read of what is registered.
            Question::Board(_) => !matches!(call.job, Job::Name(..)),
            Question::Register(ref symbols) => !symbols.is_empty(),
            _ => false,
        };
        self.lanes.information.sent.as_ref().is_some_and(|sent| registers(&sent.call))
    }

    /// The program has ended: takes the request of the class of information that is not answered.
    pub(super) fn take_unanswered(&mut self) -> Option<Call<Job>> {
        self.lanes.information.sent.take().map(|sent| sent.call)
    }

    /// Whether a reading of a board by a client is not answered yet.
    pub(super) fn reads_board(&self, client: u64, symbol: &str) -> bool {
        let lane = &self.lanes.information;
        let sent = lane.sent.as_ref().map(|sent| &sent.call);
        let suspect = self.suspect.as_ref().map(|suspect| &suspect.call);
        lane.waiting.iter().chain(sent).chain(suspect).any(|call| match &call.job {
            Job::Read(context, Read::Board(of)) => context.client == client && of == symbol,
            _ => false,
        })
    }

    /// Requests that wait: all of them, and those that a client sent.
    pub(super) fn waiting(&self, client: u64) -> (usize, usize) {
        let is_own =
            |call: &&Call<Job>| matches!(&call.job, Job::Read(of, _) if of.client == client);
        (self.lanes.waiting().count(), self.lanes.waiting().filter(is_own).count())
    }

    /// The gateway has given an answer that can be used.
    pub(super) const fn lives(&mut self, now: Duration) {
        self.outage = None;
        self.answered_at = Some(now);
    }

    /// The gateway has answered; whether an outage is over is not decided by that.
    pub(super) const fn note_answer(&mut self, now: Duration) {
        self.answered_at = Some(now);
    }

    /// What failed is no outage, or it is over.
    pub(super) const fn end_outage(&mut self) {
        self.outage = None;
    }

    /// Whether the gateway has answered something since then.
    pub(super) fn has_answered_since(&self, then: Duration) -> bool {
        self.answered_at.is_some_and(|at| at > then)
    }

    /// Whether the gateway has answered something within that time.
    pub(super) fn has_answered_within(&self, time: Duration, now: Duration) -> bool {
        self.answered_at.is_some_and(|at| now.saturating_sub(at) < time)
    }

    /// A try has failed that was sent then; the next one is due at `next`.
    pub(super) fn failed_try(
        &mut self,
        sent: Duration,
        now: Duration,
        next: Duration,
    ) -> FailedTry {
        let Some(outage) = &mut self.outage else {
            self.outage = Some(Outage { retries: 0, since: now, next });
            return FailedTry::Begins;
        };
        // What was sent before says no more than what is known.
        if sent < outage.since {
            return FailedTry::GoesOn;
        }
        outage.retries += 1;
        (outage.since, outage.next) = (now, next);
        if outage.retries >= RETRIES { FailedTry::IsLast } else { FailedTry::GoesOn }
    }

    /// Reads the gateway's list at once, to see whether it lives or only this request fails.
    pub(super) fn suspect(&mut self, suspect: Suspect, now: Duration) {
        self.suspect = Some(suspect);
        self.push_first(Call::new(Job::Probe, Question::Register(Vec::new())));
        if let Some(outage) = &mut self.outage {
            outage.next = now;
        }
    }

    /// The answer to that has come. Gives the request that it was about.
    pub(super) const fn take_suspect(&mut self) -> Option<Suspect> {
        self.suspect.take()
    }

    /// The session has ended: takes out everything that waits or is on its way.
    pub(super) fn take_all(&mut self) -> Vec<Call<Job>> {
        self.outage = None;
        let mut calls = self.lanes.clear();
        calls.extend(self.suspect.take().map(|suspect| suspect.call));
        calls
    }
}
