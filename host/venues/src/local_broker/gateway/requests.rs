//! Requests to the gateway, queued or under way, and whether the gateway answers (specification 4, P46, P48).

use std::time::Duration;

use super::super::lanes::{Call, Lanes, Sent};
use super::super::limits::RETRIES;
use super::super::request::{Class, Question};
use super::reads::Read;
use crate::RequestContext;

/// The purpose of a request.
#[derive(Debug)]
pub(crate) enum Job {
    /// Registers symbols before the stream is opened.
    BeforeOpening,
    /// Registers symbols, after which frames are trusted.
    AfterOpening,
    /// Registers symbols that a client wants, or that the gateway has lost.
    Register,
    /// Unregisters symbols.
    Unregister,
    /// Reads the gateway's list, by a registration of what is registered.
    List,
    /// A read of a client.
    Read(RequestContext, Read),
    /// Reads the name of a registered symbol for the clients that wait for it; this client has waited longest.
    /// The board with the name registers nothing new.
    Name(u64, String),
    /// Reads the gateway's list, to see whether the gateway lives after another request failed too often.
    Probe,
}

impl Job {
    /// The client of the request; `None` if it is for all.
    pub(super) const fn client(&self) -> Option<u64> {
        match self {
            Self::Read(context, _) => Some(context.client),
            Self::Name(client, _) => Some(*client),
            _ => None,
        }
    }
}

/// An outage: the gateway cannot be reached, and requests wait.
#[derive(Debug)]
struct Outage {
    /// Failed tries after the first one.
    retries: u32,
    /// When the last failure was noted: requests that were sent before add nothing.
    since: Duration,
    next: Duration,
}

/// The part of a failed try in an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedTry {
    /// The first one.
    Begins,
    /// One of several; the request is tried again.
    GoesOn,
    /// The last one.
    IsLast,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing listens at the gateway's address.
    Refused,
    /// It could not be sent otherwise, or no answer came in time.
    Silent,
    /// The answer cannot be used.
    Unusable,
}

/// A request that failed in all of its tries.
#[derive(Debug)]
pub(crate) struct Suspect {
    pub(super) call: Call<Job>,
    pub(super) why: String,
    pub(super) failure: Failure,
}

/// All requests, and what their answers show about the gateway.
#[derive(Debug)]
pub(crate) struct Requests {
    lanes: Lanes<Job>,
    tickets: u64,
    /// The last request of the class of information was a registration, not a read.
    changed_last: bool,
    outage: Option<Outage>,
    /// The request of the last outage, until it is known whether the gateway lives.
    suspect: Option<Suspect>,
    /// When the gateway last answered.
    answered_at: Option<Duration>,
}

impl Requests {
    /// No requests yet; `order_calls_per_second` limits order-type calls.
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

    /// Queues a client's request in turn with other clients'.
    pub(super) fn push_fair(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).push_fair(call, Job::client);
    }

    /// Queues a request before all others.
    pub(super) fn push_first(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).waiting.push_front(call);
    }

    /// Queues a request behind all others.
    pub(super) fn push_last(&mut self, call: Call<Job>) {
        self.lanes.of(&call.question).waiting.push_back(call);
    }

    /// A ticket for a request that leaves.
    pub(super) const fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Whether a request may leave: an outage tries one request at a time, when it is due.
    pub(super) fn may_begin(&mut self, now: Duration) -> bool {
        // No request of the outage is left, because clients have left or unsubscribed: the next one begins
        // anew.
        if self.lanes.is_idle() {
            self.outage = None;
        }
        let Some(outage) = &self.outage else { return true };
        outage.next <= now && self.lanes.all().iter().all(|lane| lane.sent.is_none())
    }

    /// Whether there is an outage.
    pub(super) const fn is_in_outage(&self) -> bool {
        self.outage.is_some()
    }

    /// Takes the next request of a lane that may leave now, with its ticket. While the gateway is probed, that
    /// is the read of its list. Before that list is known, no request that changes it leaves.
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

    /// Takes the request of a ticket, which is no longer under way.
    pub(super) fn take_sent(&mut self, ticket: u64) -> Option<Sent<Job>> {
        self.lanes.take_sent(ticket)
    }

    /// Holds all requests of a class until then.
    pub(super) fn hold(&mut self, question: &Question, until: Duration) {
        self.lanes.of(question).hold(until);
    }

    /// Drops the reads of a client that has left; other clients may wait for the same name.
    pub(super) fn client_left(&mut self, client: u64) {
        for lane in self.lanes.all() {
            lane.waiting.retain(|call| {
                call.job.client() != Some(client) || matches!(call.job, Job::Name(..))
            });
        }
    }

    /// Removes a symbol from the queued requests for some job, and removes those that are empty then.
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

    /// Drops the queued requests for the name of a symbol.
    pub(super) fn drop_name(&mut self, symbol: &str) {
        let is_of = |job: &Job| matches!(job, Job::Name(_, named) if named == symbol);
        self.lanes.information.waiting.retain(|call| !is_of(&call.job));
    }

    /// Drops the queued requests of the stream.
    pub(super) fn drop_of_stream(&mut self) {
        let is_streams = |job: &Job| matches!(job, Job::BeforeOpening | Job::AfterOpening);
        self.lanes.information.waiting.retain(|call| !is_streams(&call.job));
    }

    /// Whether registrations must be done before frames are trusted.
    pub(super) fn is_checking_stream(&self) -> bool {
        let lane = &self.lanes.information;
        let sent = lane.sent.as_ref().map(|sent| &sent.call);
        lane.waiting.iter().chain(sent).any(|call| matches!(call.job, Job::AfterOpening))
    }

    /// Whether registrations may go before the queue. They take turns with reads, so that a client that changes
    /// symbols all the time does not delay reads.
    pub(super) fn may_register(&self, now: Duration) -> bool {
        let lane = &self.lanes.information;
        let mut due = lane.waiting.iter().filter(|call| call.not_before <= now);
        let is_next = |call: &Call<Job>| call.job.client().is_none() || self.changed_last;
        lane.is_free(now) && !due.any(is_next)
    }

    /// Whether a request is under way that may register something.
    pub(super) fn is_registering(&self) -> bool {
        let registers = |call: &Call<Job>| match call.question {
            // A name is read from a symbol that is registered.
            Question::Board(_) => !matches!(call.job, Job::Name(..)),
            Question::Register(ref symbols) => !symbols.is_empty(),
            _ => false,
        };
        self.lanes.information.sent.as_ref().is_some_and(|sent| registers(&sent.call))
    }

    /// At the end of the program, takes the unanswered request of the class of information.
    pub(super) fn take_unanswered(&mut self) -> Option<Call<Job>> {
        self.lanes.information.sent.take().map(|sent| sent.call)
    }

    /// Whether a client's read of a board is unanswered.
    pub(super) fn reads_board(&self, client: u64, symbol: &str) -> bool {
        let lane = &self.lanes.information;
        let sent = lane.sent.as_ref().map(|sent| &sent.call);
        let suspect = self.suspect.as_ref().map(|suspect| &suspect.call);
        lane.waiting.iter().chain(sent).chain(suspect).any(|call| match &call.job {
            Job::Read(context, Read::Board(of)) => context.client == client && of == symbol,
            _ => false,
        })
    }

    /// Queued requests: all of them, and a client's own.
    pub(super) fn waiting(&self, client: u64) -> (usize, usize) {
        let is_own =
            |call: &&Call<Job>| matches!(&call.job, Job::Read(of, _) if of.client == client);
        (self.lanes.waiting().count(), self.lanes.waiting().filter(is_own).count())
    }

    /// Notes an answer that can be used, which ends an outage.
    pub(super) const fn lives(&mut self, now: Duration) {
        self.outage = None;
        self.answered_at = Some(now);
    }

    /// Notes an answer; it alone ends no outage.
    pub(super) const fn note_answer(&mut self, now: Duration) {
        self.answered_at = Some(now);
    }

    /// Ends the outage: it is over, or the failure was not one.
    pub(super) const fn end_outage(&mut self) {
        self.outage = None;
    }

    /// Whether the gateway has answered since then.
    pub(super) fn has_answered_since(&self, then: Duration) -> bool {
        self.answered_at.is_some_and(|at| at > then)
    }

    /// Whether the gateway has answered within that time.
    pub(super) fn has_answered_within(&self, time: Duration, now: Duration) -> bool {
        self.answered_at.is_some_and(|at| now.saturating_sub(at) < time)
    }

    /// Notes a failed try that was sent at `sent`; the next one is due at `next`.
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
        // A request that was sent before adds nothing.
        if sent < outage.since {
            return FailedTry::GoesOn;
        }
        outage.retries += 1;
        (outage.since, outage.next) = (now, next);
        if outage.retries >= RETRIES { FailedTry::IsLast } else { FailedTry::GoesOn }
    }

    /// Reads the gateway's list at once, to see whether the gateway lives and only this request fails.
    pub(super) fn suspect(&mut self, suspect: Suspect, now: Duration) {
        self.suspect = Some(suspect);
        self.push_first(Call::new(Job::Probe, Question::Register(Vec::new())));
        if let Some(outage) = &mut self.outage {
            outage.next = now;
        }
    }

    /// Takes the request that the list was read for, after its answer.
    pub(super) const fn take_suspect(&mut self) -> Option<Suspect> {
        self.suspect.take()
    }

    /// Ends the session: takes all requests that are queued or under way.
    pub(super) fn take_all(&mut self) -> Vec<Call<Job>> {
        self.outage = None;
        let mut calls = self.lanes.clear();
        calls.extend(self.suspect.take().map(|suspect| suspect.call));
        calls
    }
}
