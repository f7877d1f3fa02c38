//! Logins, the end of a session and the second password, as the desk handles them.
//!
//! Specification 2, "Session and password states"; specification 4, P3, P8, P23a, P41. Their own state is in
//! `crate::session` and `crate::password`.

use domain::{ReasonCode, Rejection, Secret};

use super::answers::expired;
use super::{Desk, JobKind, Now, RequestContext};
use crate::audit;
use crate::event::{DeskEvent, FailureCode, Reply, SessionEvent, SessionFault, VenueStanding};
use crate::limits::READY_TIME;
use crate::password::PasswordStage;
use crate::session::{LoginDone, LoginFailed, SessionState};

impl Desk {
    /// Logs in at the broker; a second command joins a login that is under way.
    pub fn login(&mut self, request_id: Option<String>, now: Now) {
        // A login that has ended, but whose list or stream is missing, does not delay another one.
        let is_under_way = self.queue.has_login();
        self.session.wait_for_login(request_id.clone());
        if is_under_way {
            return;
        }
        self.session.login_moves(now);
        self.report_session(SessionEvent::LoginStarted { request_id });
        self.enqueue(None, JobKind::Login, now);
    }

    /// Takes the result of a login.
    pub fn login_ended(&mut self, ticket: u64, ended: Result<LoginDone, LoginFailed>, now: Now) {
        if !self.queue.finish_login(ticket) {
            return;
        }
        self.session.login_moves(now);
        match ended {
            Ok(done) => self.logged_in(done, now),
            Err(LoginFailed::NoCredentials(why)) => {
                tracing::warn!(why, "no login at the web broker");
                // The fault goes out first, so that clients that wait for the end of the login get it.
                self.venue_fault(SessionFault::LoginFailed, why);
                for request_id in self.session.take_waiting_logins() {
                    self.report_session(SessionEvent::LoginCancelled { request_id });
                }
            }
            Err(LoginFailed::Failed { why, has_session }) => {
                self.session.take_waiting_logins();
                if !has_session && self.session.log_out() {
                    self.set_stream(None);
                }
                self.venue_fault(SessionFault::LoginFailed, why);
            }
        }
        self.work(now);
    }

    fn logged_in(&mut self, mut done: LoginDone, now: Now) {
        let epoch = self.session.begin(&mut done);
        let changed = done.changed;
        if !changed.is_empty() && self.password.forget() {
            tracing::info!(
                "the engine has forgotten the second password: the session has other addresses"
            );
        }
        self.report_session(SessionEvent::LoggedIn { epoch, changed, ts: now.wall });
        if self.session.masters().is_none() {
            let why =
                "the engine got no masters from the broker and cannot check orders; log in again";
            self.session.take_waiting_logins();
            self.venue_fault(SessionFault::MastersMissing, why.to_owned());
        } else {
            self.session.wait_for_ready(now);
        }
        // The stream of an earlier session belongs to that session.
        self.set_stream(None);
        self.request_list_soon(now);
        self.tick_resync(now);
    }

    /// Notes that a list has arrived.
    pub(crate) fn list_came(&mut self, now: Now) {
        self.session.list_came();
        self.check_ready(now);
    }

    /// Reports that a session has had no list or no stream for too long. When they come, the venue is ready.
    pub(crate) fn tick_ready(&mut self, now: Now) {
        if let Some(what) = self.session.take_lateness(now) {
            let seconds = READY_TIME.as_secs();
            let why = format!(
                "the broker's {what} has not come within {seconds} s; the engine keeps waiting"
            );
            self.venue_fault(SessionFault::NotReady, why);
            self.session.wait_on();
        }
    }

    /// Reports that the venue is ready, once a list has arrived and the stream is up.
    pub(crate) fn check_ready(&mut self, now: Now) {
        let has_stream = self.stream_is_up() || !self.rules.phase.takes_notices();
        for request_id in self.session.take_readiness(has_stream, now).into_iter().flatten() {
            self.report_session(SessionEvent::Ready { request_id });
        }
    }

    fn venue_fault(&mut self, fault: SessionFault, message: String) {
        self.session.set_fault(fault);
        self.report_session(SessionEvent::Fault { fault, message });
    }

    /// Handles the end of the session by the broker: queued jobs are not sent (P23a).
    pub(crate) fn freeze(&mut self, now: Now) {
        if !self.session.freeze(now) {
            return;
        }
        if !self.queue.has_waiting_login() {
            self.session.take_waiting_logins();
        }
        audit::session_expired(&mut *self.log, now.wall);
        self.password.forget();
        let why = "the broker has ended the session; log in again";
        self.venue_fault(SessionFault::Expired, why.to_owned());
        let rejection = expired();
        for job in self.queue.take_waiting(|job| !job.is_login()) {
            self.refuse_job(job, &rejection, now);
        }
        self.end_cancels(now);
        self.end_strategies(&rejection, now);
    }

    /// Holds the second password. A client that got the request for it sends its command again (P41).
    pub fn set_second_password(&mut self, context: RequestContext, value: Secret, now: Now) {
        if value.expose().is_empty() {
            let text = "VALUE: the second password is empty".to_owned();
            return self.report_error(&context, FailureCode::Invalid, text, None);
        }
        self.password.set(value, now.mono);
        self.strategies.password_set();
        let request_id = context.request_id;
        self.reply(context.client, Reply::SecondPasswordSet { request_id });
    }

    /// Discards the second password. Commands that were answered with the request for it end.
    pub fn forget_second_password(&mut self, now: Now) {
        let in_flight = self.queue.password_users();
        self.password.forget();
        if in_flight > 0 {
            tracing::info!(in_flight, "commands under way keep the second password they have read");
        }
        let text = "NO_PASSWORD: the command needs the second password; send SetSecondPassword and \
                    the command again";
        let rejection = Rejection::new(ReasonCode::SecondPasswordRequired, text);
        for (context, order) in self.password.take_waiting() {
            match order {
                Some((origin, id)) => {
                    self.report_order_refused(&context, (origin, &id), &rejection, now);
                }
                None => self.report_refused(context.request_id, &rejection, now),
            }
        }
    }

    /// A client has left: it waits for no second password, and reports that it got need no record.
    pub fn client_left(&mut self, client: u64) {
        self.password.client_left(client);
        self.money_left_out.client_left(client);
    }

    /// Sends the state of the venue.
    pub fn venue_state(&mut self, context: RequestContext, now: Now) {
        let standing = self.standing(Some(context.request_id), now);
        self.reply(context.client, Reply::VenueState(standing));
    }

    /// Tells all clients where the second password stands, where that has changed.
    pub(super) fn tell_password(&mut self, now: Now) {
        let stage = self.password.stage(now.mono);
        if std::mem::replace(&mut self.told_password, stage) != stage {
            let standing = self.standing(None, now);
            self.broadcast(DeskEvent::Reply(Reply::VenueState(standing)));
        }
    }

    fn standing(&self, request_id: Option<String>, now: Now) -> VenueStanding {
        let stream_is_up = match (self.session.state(), self.stream_is_up()) {
            (SessionState::Active, true) => Some(true),
            (SessionState::Active, false) if self.rules.phase.takes_notices() => Some(false),
            _ => None,
        };
        let password = self.password.stage(now.mono);
        let locked_until_ms = match password {
            PasswordStage::Locked(until) => {
                let left = until.saturating_sub(now.mono).as_millis();
                Some(now.wall.millis() + u64::try_from(left).unwrap_or(u64::MAX))
            }
            PasswordStage::None | PasswordStage::Held => None,
        };
        VenueStanding {
            request_id,
            stage: self.session.stage(),
            stream_is_up,
            fault: self.session.last_fault(),
            since_ms: self.session.since_ms(),
            password,
            locked_until_ms,
        }
    }
}
