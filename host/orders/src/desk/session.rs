//! The session at the broker: login, freeze, second password (specification 2, "Session and password
//! states"; specification 4, P2, P3, P8, P23a, P41).

use std::sync::Arc;
use std::time::Duration;

use domain::order_mapping::VenuePhase;
use domain::{ReasonCode, Rejection, Secret};
use venues::web_broker::Masters;

use super::answers::expired;
use super::{Active, Asked, Desk, Job, JobKind, Now, SessionStand};
use crate::audit;
use crate::event::{FailureCode, Reply, SessionEvent, SessionFault, VenueStage, VenueStanding};
use crate::limits::READY_TIME;

/// A login that the broker has taken.
#[derive(Debug)]
pub struct LoginDone {
    /// The account's tax code.
    pub account: String,
    /// Whether it has a margin account.
    pub has_margin: bool,
    /// Names of what changed against the login before, never values.
    pub changed: Vec<&'static str>,
    /// Whether the broker says in its masters that it is open; none where it does not say.
    pub is_open: Option<bool>,
    /// The day's masters; none where they could not be had.
    pub masters: Option<Arc<Masters>>,
}

/// A login that came to nothing.
#[derive(Debug)]
pub enum LoginFailed {
    /// There are no credentials.
    NoCredentials(String),
    /// The broker refuses, or cannot be reached.
    Failed {
        /// Why, in one line.
        why: String,
        /// Whether the session before goes on.
        has_session: bool,
    },
}

/// What a login waits for before the venue is ready (P3).
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// The commands that asked; empty where a login is not under way.
    asked: Vec<Option<String>>,
    /// The masters are there, and a list and the stream are waited for.
    is_waiting: bool,
    has_list: bool,
    since_ms: u64,
    /// The session began, and it was not told yet that list or stream do not come.
    begun: Option<Duration>,
    /// The last fault.
    fault: Option<SessionFault>,
}

impl Desk {
    /// Logs in at the broker; a second command joins a login that is under way.
    pub fn login(&mut self, request_id: Option<String>, now: Now) {
        // A login that has ended and whose list or stream does not come is no reason to wait.
        let is_under_way = self.queue.iter().any(Job::is_login)
            || self.active.as_ref().is_some_and(|active| active.job.is_login());
        self.ready.asked.push(request_id.clone());
        if is_under_way {
            return;
        }
        self.ready.since_ms = now.wall.millis();
        self.tell_session(SessionEvent::LoginStarted { request_id });
        self.enqueue(None, JobKind::Login, now);
    }

    /// A login has ended.
    pub fn login_ended(&mut self, ticket: u64, ended: Result<LoginDone, LoginFailed>, now: Now) {
        let is_ours = |active: &Active| active.ticket == ticket && active.job.is_login();
        if !self.active.as_ref().is_some_and(is_ours) {
            return;
        }
        self.active = None;
        self.ready.since_ms = now.wall.millis();
        match ended {
            Ok(done) => self.logged_in(done, now),
            Err(LoginFailed::NoCredentials(why)) => {
                tracing::warn!(why, "no login at the web broker");
                // What is missing comes first: whoever waits for the end of the login hears it.
                self.venue_fault(SessionFault::LoginFailed, why);
                for request_id in std::mem::take(&mut self.ready.asked) {
                    self.tell_session(SessionEvent::LoginCancelled { request_id });
                }
            }
            Err(LoginFailed::Failed { why, has_session }) => {
                self.ready.asked.clear();
                if !has_session && self.stand == SessionStand::Active {
                    self.stand = SessionStand::LoggedOut;
                    self.set_stream(None);
                }
                self.venue_fault(SessionFault::LoginFailed, why);
            }
        }
        self.work(now);
    }

    fn logged_in(&mut self, done: LoginDone, now: Now) {
        self.epoch += 1;
        self.stand = SessionStand::Active;
        // The newest word: frames and answers that come later take its place (P2).
        self.phase = match done.is_open {
            Some(true) => VenuePhase::Open,
            Some(false) => VenuePhase::Closed,
            None => VenuePhase::Unknown,
        };
        self.is_closed_by_answer = false;
        self.account = done.account;
        self.has_margin = done.has_margin;
        if done.masters.is_some() {
            self.masters = done.masters;
        }
        self.ready.fault = None;
        if !done.changed.is_empty() && self.password.forget() {
            tracing::info!(
                "the engine has forgotten the second password: the session has other addresses"
            );
        }
        let (epoch, changed, ts) = (self.epoch, done.changed, now.wall);
        self.tell_session(SessionEvent::LoggedIn { epoch, changed, ts });
        if self.masters.is_none() {
            let why =
                "the engine got no masters from the broker and cannot check orders; log in again";
            self.ready.asked.clear();
            self.venue_fault(SessionFault::MastersMissing, why.to_owned());
        } else {
            self.ready.is_waiting = true;
            self.ready.begun = Some(now.mono);
        }
        self.ready.has_list = false;
        // The stream of a session before belongs to that session.
        self.set_stream(None);
        self.ask_list_soon(now);
        self.tick_resync(now);
    }

    /// A list has come.
    pub(crate) fn list_came(&mut self, now: Now) {
        self.ready.has_list = true;
        self.check_ready(now);
    }

    /// Tells that a session has no list or no stream after so long. When they come, the venue is ready.
    pub(crate) fn tick_ready(&mut self, now: Now) {
        let begun = self.ready.begun.filter(|_| self.ready.is_waiting);
        if begun.is_some_and(|begun| now.mono.saturating_sub(begun) >= READY_TIME) {
            self.ready.begun = None;
            self.ready.asked.clear();
            let what = if self.ready.has_list { "stream of events" } else { "list of orders" };
            let seconds = READY_TIME.as_secs();
            let why = format!(
                "the broker's {what} has not come within {seconds} s; the engine keeps waiting"
            );
            self.venue_fault(SessionFault::NotReady, why);
            self.ready.is_waiting = true;
        }
    }

    /// Tells that the venue is ready, once a list has come and the stream is up.
    pub(crate) fn check_ready(&mut self, now: Now) {
        let has_stream = self.stream_is_up() || !self.rules.phase.takes_notices();
        if !self.ready.is_waiting || !self.ready.has_list || !has_stream {
            return;
        }
        self.ready.is_waiting = false;
        self.ready.since_ms = now.wall.millis();
        self.ready.fault = None;
        if self.ready.asked.is_empty() {
            self.ready.asked.push(None);
        }
        for request_id in std::mem::take(&mut self.ready.asked) {
            self.tell_session(SessionEvent::Ready { request_id });
        }
    }

    fn venue_fault(&mut self, fault: SessionFault, message: String) {
        self.ready.fault = Some(fault);
        self.ready.is_waiting = false;
        self.tell_session(SessionEvent::Fault { fault, message });
    }

    /// The broker has ended the session: nothing that waits is sent any more (P23a).
    pub(crate) fn freeze(&mut self, now: Now) {
        if self.stand == SessionStand::Frozen {
            return;
        }
        self.stand = SessionStand::Frozen;
        self.ready.since_ms = now.wall.millis();
        if !self.queue.iter().any(Job::is_login) {
            self.ready.asked.clear();
        }
        audit::session_expired(&mut *self.log, now.wall);
        self.password.forget();
        let why = "the broker has ended the session; log in again";
        self.venue_fault(SessionFault::Expired, why.to_owned());
        let rejection = expired();
        let waiting = std::mem::take(&mut self.queue);
        for job in waiting {
            if job.is_login() {
                self.queue.push_back(job);
            } else {
                self.refuse_job(job, &rejection, now);
            }
        }
        self.end_cancels(now);
    }

    /// Holds the second password. Who was asked for it sends the command again (P41).
    pub fn set_second_password(&mut self, asked: Asked, value: Secret, now: Now) {
        if value.expose().is_empty() {
            let text = "VALUE: the second password is empty".to_owned();
            return self.tell_error(&asked, FailureCode::Invalid, text, None);
        }
        self.password.set(value, now.mono);
        self.at_modal.clear();
        let request_id = asked.request_id;
        self.reply(asked.client, Reply::SecondPasswordSet { request_id });
    }

    /// Forgets the second password. Commands that had been answered with the question for it end.
    pub fn forget_second_password(&mut self, now: Now) {
        let uses = |kind: &JobKind| {
            matches!(
                kind,
                JobKind::Submit(_)
                    | JobKind::Change(_)
                    | JobKind::CancelAll { .. }
                    | JobKind::CancelRow(_)
            )
        };
        let in_flight = self.queue.iter().filter(|job| uses(&job.kind)).count()
            + usize::from(self.active.as_ref().is_some_and(|active| uses(&active.job.kind)));
        self.password.forget();
        if in_flight > 0 {
            tracing::info!(in_flight, "commands under way keep the second password they have read");
        }
        let text = "NO_PASSWORD: the command needs the second password; send SetSecondPassword and \
                    the command again";
        let rejection = Rejection::new(ReasonCode::SecondPasswordRequired, text);
        for (asked, id) in std::mem::take(&mut self.at_modal) {
            match id {
                Some(id) => self.tell_order_refused(&asked, &id, &rejection, now),
                None => self.tell_refused(asked.request_id, &rejection, now),
            }
        }
    }

    /// A client is gone: nobody waits for the second password in its name, nor knows what it was told.
    pub fn client_left(&mut self, client: u64) {
        self.at_modal.retain(|(asked, _)| asked.client != client);
        self.money_left_out.client_left(client);
    }

    /// Tells where the venue stands.
    pub fn venue_state(&mut self, asked: Asked) {
        let stage = match self.stand {
            _ if !self.ready.asked.is_empty() => VenueStage::LoggingIn,
            SessionStand::Active if self.ready.is_waiting => VenueStage::LoggingIn,
            SessionStand::LoggedOut => VenueStage::LoggedOut,
            SessionStand::Active => VenueStage::Ready,
            SessionStand::Frozen => VenueStage::Expired,
        };
        let stream_is_up = match (self.stand, self.stream_is_up()) {
            (SessionStand::Active, true) => Some(true),
            (SessionStand::Active, false) if self.rules.phase.takes_notices() => Some(false),
            _ => None,
        };
        let standing = VenueStanding {
            request_id: asked.request_id,
            stage,
            stream_is_up,
            fault: self.ready.fault,
            since_ms: self.ready.since_ms,
        };
        self.reply(asked.client, Reply::VenueState(standing));
    }
}
