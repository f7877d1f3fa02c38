//! Login, token and outages.
//!
//! Specification 1, "Authentication", "States and transitions"; specification 4, P45 to P47.

use std::time::Duration;

use domain::gateway_mapping::GatewayErrorKind;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::super::event::{ErrorCode, VenueEvent};
use super::super::lanes::Call;
use super::super::lifecycle::{State, Trigger};
use super::super::limits::{LOGINS_WAITING_MAX, RATE_PAUSES, RETRIES, TOKEN_CHARS_MAX};
use super::super::request::{Answer, NoAnswer, Question, Request};
use super::super::service::NoPassword;
use super::requests::{FailedTry, Failure, Job, Suspect};
use super::symbols::read_list;
use super::{Gateway, Out};
use crate::{Now, Recipient, RequestContext};

/// A login that is under way.
#[derive(Debug)]
pub(crate) struct Login {
    /// The commands that wait for it; `None` for one that began by itself.
    context: Vec<Option<RequestContext>>,
}

/// The request for a token, with the password in memory.
#[derive(Debug)]
pub(crate) struct Renewal {
    ticket: Option<u64>,
    failures: u32,
    /// Answers that there were too many requests.
    slowed: usize,
    next: Duration,
}

impl Renewal {
    const fn at(next: Duration) -> Self {
        Self { ticket: None, failures: 0, slowed: 0, next }
    }
}

/// The login at the gateway: the password, the token, and the request for one.
#[derive(Debug, Default)]
pub(crate) struct Session {
    password: Option<SecretString>,
    token: Option<SecretString>,
    /// The ticket of the request that gave it: requests sent before have an older token.
    token_ticket: u64,
    /// It replaced a refused one, and no request has used it yet.
    token_is_untried: bool,
    login: Option<Login>,
    renewal: Option<Renewal>,
    /// Before it went down, the gateway answered, but wrongly.
    answers_badly: bool,
}

impl Session {
    /// The token, if there is one.
    pub(super) const fn token(&self) -> Option<&SecretString> {
        self.token.as_ref()
    }

    /// Whether a token is requested; all other requests wait for it.
    pub(super) const fn is_renewing(&self) -> bool {
        self.renewal.is_some()
    }

    /// Whether a request was sent with an older token than the present one.
    pub(super) const fn has_newer_token(&self, ticket: u64) -> bool {
        ticket < self.token_ticket
    }

    /// Whether the token replaced a refused one, and no request has used it yet.
    pub(super) const fn is_token_untried(&self) -> bool {
        self.token_is_untried
    }

    /// Notes that a request succeeded: the gateway accepts its token.
    pub(super) const fn token_was_taken(&mut self, ticket: u64) {
        self.token_is_untried &= self.has_newer_token(ticket);
    }
}

/// The official answer to the request for a token.
#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(rename = "ResultCode")]
    result_code: i64,
    #[serde(rename = "Token", default, deserialize_with = "wiped")]
    token: Option<Zeroizing<String>>,
}

/// A text in memory that is wiped. If it has escapes, the JSON library has a copy that is not wiped.
fn wiped<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Zeroizing<String>>, D::Error> {
    Ok(Option::deserialize(from)?.map(Zeroizing::new))
}

/// The result of a request for a token.
enum Came {
    Token(SecretString),
    /// The gateway refuses.
    Refused(String, Refusal),
    /// There were too many requests.
    TooMany(String),
    /// The answer decides nothing.
    Nothing(String),
}

/// Why the gateway gives no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The gateway itself is not logged in.
    LoggedOut,
    /// The gateway refuses the password.
    Password,
    /// The gateway does not know the request.
    Request,
}

impl Gateway {
    /// Logs in; a second command joins a login that is under way (P45).
    pub fn login(&mut self, context: Option<RequestContext>, now: Now) {
        match (self.state(), &mut self.session.login) {
            (State::Ready(_), _) => {
                if let Some(context) = context {
                    let event = ready(Some(&context));
                    self.send(Recipient::Client(context.client), event);
                }
                return;
            }
            (_, Some(login)) => {
                if login.context.len() < LOGINS_WAITING_MAX {
                    return login.context.push(context);
                }
                let Some(context) = context else { return };
                let why = format!(
                    "{LOGINS_WAITING_MAX} commands wait for the login already; wait for VenueReady"
                );
                return self.send_error(&context, ErrorCode::RateLimited, &why);
            }
            _ => {}
        }
        // After a refused token only the user knows whether the password is still right.
        if self.state() == State::TokenExpired {
            self.session.password = None;
        }
        self.life.step(Trigger::LoginRequested, now.wall);
        let request_id = context.as_ref().map(|context| context.request_id.clone());
        self.session.login = Some(Login { context: vec![context] });
        self.send(Recipient::All, VenueEvent::LoginStarted { request_id });
        if self.session.password.is_some() {
            self.session.renewal = Some(Renewal::at(now.mono));
            self.request_token(now);
        } else {
            self.session.renewal = None;
            self.out.push_back(Out::AskPassword);
        }
    }

    /// Takes the password for a login, or why there is none (P50).
    pub(super) fn password_given(&mut self, given: Result<SecretString, NoPassword>, now: Now) {
        if self.session.login.is_none() || self.session.renewal.is_some() {
            return;
        }
        match given {
            Ok(password) => {
                self.secrets.hide_password(&password);
                self.session.password = Some(password);
                self.session.renewal = Some(Renewal::at(now.mono));
                self.request_token(now);
            }
            Err(NoPassword { why, is_wanted }) => {
                if is_wanted {
                    tracing::info!(why, "no login at the local broker");
                } else {
                    tracing::warn!(why, "no login at the local broker: no password came");
                }
                self.life.step(Trigger::LoginCancelled, now.wall);
                for context in
                    self.session.login.take().map(|login| login.context).unwrap_or_default()
                {
                    let request_id = context.map(|context| context.request_id);
                    self.send(Recipient::All, VenueEvent::LoginCancelled { request_id });
                }
            }
        }
    }

    /// Requests a new token; all other requests wait for it (P47).
    pub(super) fn renew_token(&mut self, now: Now) {
        if self.session.renewal.is_some() {
            return;
        }
        if self.session.password.is_none() {
            return self.token_expired("the engine holds no password", now);
        }
        tracing::info!("the engine asks the local broker for a token, with the password in memory");
        self.session.renewal = Some(Renewal::at(now.mono));
        self.request_token(now);
    }

    fn request_token(&mut self, now: Now) {
        let Some(renewal) = &mut self.session.renewal else { return };
        let Some(password) = &self.session.password else { return };
        if renewal.ticket.is_some() || renewal.next > now.mono {
            return;
        }
        let ticket = self.requests.next_ticket();
        renewal.ticket = Some(ticket);
        let request = Request { question: Question::Token, secret: password.clone() };
        self.out.push_back(Out::Ask { ticket, request });
    }

    /// Takes the answer to a request for a token. Returns whether it was one.
    pub(super) fn token_answered(
        &mut self,
        ticket: u64,
        came: &Result<Answer, NoAnswer>,
        now: Now,
    ) -> bool {
        if self.session.renewal.as_ref().and_then(|renewal| renewal.ticket) != Some(ticket) {
            return false;
        }
        match self.read_token(came) {
            Came::Token(token) => {
                self.session.token_ticket = ticket;
                self.has_token(token, now);
            }
            Came::Refused(why, refusal) => self.no_token(&why, refusal, now),
            Came::TooMany(why) => self.token_slowed(&why, now),
            Came::Nothing(why) => {
                let Some(renewal) = &mut self.session.renewal else { return true };
                renewal.failures += 1;
                (renewal.ticket, renewal.next) = (None, now.mono + self.rules.retry_wait);
                if renewal.failures > RETRIES {
                    let answers = matches!(came, Ok(_) | Err(NoAnswer::Unreadable(_)));
                    self.app_down(&why, answers, now);
                } else {
                    tracing::warn!(why, "the local broker gives no token; the engine asks again");
                }
            }
        }
        self.drive(now);
        true
    }

    fn read_token(&mut self, came: &Result<Answer, NoAnswer>) -> Came {
        let answer = match came {
            Err(
                NoAnswer::Refused(why) | NoAnswer::Unreachable(why) | NoAnswer::Unreadable(why),
            ) => {
                return Came::Nothing(why.clone());
            }
            Ok(answer) => answer,
        };
        match answer.status {
            200 => {
                let Ok(read) = serde_json::from_str::<TokenAnswer>(&answer.body) else {
                    return Came::Nothing(
                        "the engine cannot read the answer to the token request".into(),
                    );
                };
                match read {
                    TokenAnswer { result_code: 0, token: Some(token) } if is_token(&token) => {
                        Came::Token(SecretString::from(token.as_str()))
                    }
                    TokenAnswer { result_code: 0, .. } => {
                        Came::Nothing("the answer to the token request has no token".into())
                    }
                    TokenAnswer { result_code, .. } => {
                        let why = format!("ResultCode {}", self.secrets.code(result_code));
                        Came::Refused(why, Refusal::Password)
                    }
                }
            }
            500.. => Came::Nothing(format!("the gateway answers HTTP status {}", answer.status)),
            status => {
                let refusal = self.refusal(status, &answer.body);
                match refusal.kind {
                    GatewayErrorKind::RateLimited => Came::TooMany(refusal.message),
                    GatewayErrorKind::TokenExpired => {
                        Came::Refused(refusal.message, Refusal::LoggedOut)
                    }
                    // A gateway with a code for it has understood the request, whatever the status (P59).
                    _ if status == 401 || refusal.code.is_some() => {
                        Came::Refused(refusal.message, Refusal::Password)
                    }
                    _ => Came::Refused(refusal.message, Refusal::Request),
                }
            }
        }
    }

    fn has_token(&mut self, token: SecretString, now: Now) {
        self.session.renewal = None;
        self.requests.end_outage();
        self.secrets.hide_token(&token);
        self.session.token = Some(token);
        self.session.token_is_untried = self.session.login.is_none();
        let Some(login) = self.session.login.take() else {
            // A gateway that has lost the token may have lost the symbols, too.
            if self.state().is_ready() {
                self.registrations.register_all_again(now.mono);
            }
            return self.trust_if_registered(now);
        };
        self.life.step(Trigger::TokenObtained, now.wall);
        self.feed.begin_session(now.wall);
        let today = self.rules.forced_logout.gateway_day(now.wall);
        self.registrations.take_left_over(today, now);
        for context in login.context {
            let event = ready(context.as_ref());
            self.send(Recipient::All, event);
        }
        self.begin_stream(now);
    }

    /// Ends a request for a token that was refused.
    fn no_token(&mut self, why: &str, refusal: Refusal, now: Now) {
        self.session.renewal = None;
        if self.session.login.is_none() || refusal == Refusal::LoggedOut {
            return self.token_expired(why, now);
        }
        let advice = match refusal {
            Refusal::Request => "check `dialect` and `base_url` in [local_broker]",
            Refusal::Password | Refusal::LoggedOut => {
                self.session.password = None;
                "check the API password in its settings and log in again"
            }
        };
        self.login_failed(ErrorCode::LoginFailed, why, advice, now);
    }

    /// Slows down the requests for a token (P48).
    fn token_slowed(&mut self, why: &str, now: Now) {
        let Some(renewal) = &mut self.session.renewal else { return };
        if let Some(pause) = RATE_PAUSES.get(renewal.slowed) {
            renewal.slowed += 1;
            (renewal.ticket, renewal.next) = (None, now.mono + *pause);
            return;
        }
        self.session.renewal = None;
        if self.session.login.is_none() {
            return self.token_expired(why, now);
        }
        self.login_failed(ErrorCode::RateLimited, why, "wait a minute and log in again", now);
    }

    fn login_failed(&mut self, code: ErrorCode, why: &str, advice: &str, now: Now) {
        self.session.login = None;
        self.life.step(Trigger::LoginRefused, now.wall);
        let message = format!("the gateway refuses the login ({why}); {advice}");
        self.venue_error(code, message, now);
    }

    /// The token is dead and there is no new one (specification 1, "States and transitions").
    pub(super) fn token_expired(&mut self, why: &str, now: Now) {
        self.life.step(Trigger::TokenRefused, now.wall);
        let message = if self.session.login.is_some() {
            format!("the gateway gives no token ({why}); log in there, and log in again here")
        } else {
            format!(
                "the gateway no longer takes the engine's token ({why}); check that the gateway is \
                 logged in, then log in again here"
            )
        };
        self.end_session(ErrorCode::TokenExpired, &message);
        self.session.token = None;
        self.venue_error(ErrorCode::TokenExpired, message, now);
    }

    /// The gateway cannot be reached, or its answers cannot be used, after all tries.
    fn app_down(&mut self, why: &str, answers: bool, now: Now) {
        if self.life.step(Trigger::Unreachable, now.wall) {
            return self.went_down(why, answers, now);
        }
        // It was down before, and all clients have a report.
        self.session.renewal = None;
        self.requests.take_all();
        self.stream_lost(why, now);
    }

    /// Reports once that the gateway is down.
    pub(super) fn went_down(&mut self, why: &str, answers: bool, now: Now) {
        self.session.answers_badly = answers;
        let message = self.is_down(&format!(" ({why})"));
        self.end_session(ErrorCode::LocalAppDown, &message);
        self.venue_error(ErrorCode::LocalAppDown, message, now);
        self.try_silently_later(now);
    }

    /// The error of a gateway that is down.
    pub(super) fn is_down(&self, why: &str) -> String {
        if self.session.answers_badly {
            format!("the gateway's answers cannot be used{why}; restart the gateway")
        } else {
            format!(
                "the engine cannot reach the gateway on this machine{why}; start the gateway and \
                 log in there"
            )
        }
    }

    /// Ends the session: all queued requests fail, and nothing is under way.
    fn end_session(&mut self, code: ErrorCode, message: &str) {
        (self.session.renewal, self.session.login) = (None, None);
        self.close_stream();
        for call in self.requests.take_all() {
            self.fail_call(call, code, message);
        }
        self.fail_subscribers(code, message);
    }

    fn fail_call(&mut self, call: Call<Job>, code: ErrorCode, message: &str) {
        // The next stream registers the symbols again.
        if let Job::Read(context, read) = call.job {
            self.read_failed(context.client, &read);
            self.send_error(&context, code, message);
        }
    }

    /// Handles a request that failed. One failing endpoint does not mean that the gateway is down. A gateway
    /// that refuses connections is down, whatever its stream shows (specification 1, "States and transitions";
    /// P46).
    pub(super) fn nothing_came_of(
        &mut self,
        sent: Duration,
        mut call: Call<Job>,
        why: &str,
        failure: Failure,
        now: Now,
    ) {
        if failure == Failure::Silent {
            self.doubt(&call, now);
        }
        if matches!(call.job, Job::BeforeOpening) && failure != Failure::Unusable {
            // One of the stream's tries has failed, and no client waits for it.
            return self.stream_lost(why, now);
        }
        if failure != Failure::Refused {
            let first = *call.silent_since.get_or_insert(sent);
            // A stream that has just had data is alive.
            let lately = sent.min(now.mono.saturating_sub(self.rules.retry_wait));
            if self.has_lived_since(sent) || self.was_alive_since(lately) {
                self.requests.end_outage();
                return self.try_again(call, why, now);
            }
            if failure == Failure::Unusable
                && !self.requests.is_in_outage()
                && self.is_housekeeping(&call)
            {
                return self.try_again(call, why, now);
            }
            call.failures += 1;
            if call.failures > RETRIES && self.has_lived_since(first) {
                return self.fails_alone(call, why, now);
            }
        }
        self.outage(sent, call, why, failure, now);
    }

    /// Whether no client waits for a request: it unregisters symbols, or registers ones that failed before.
    fn is_housekeeping(&self, call: &Call<Job>) -> bool {
        match (&call.job, &call.question) {
            (Job::Unregister, _) => true,
            (Job::Register, Question::Register(symbols)) => {
                symbols.iter().all(|symbol| self.registrations.was_reported(symbol))
            }
            _ => false,
        }
    }

    /// The gateway lives, and only this request fails. The next outage begins anew.
    fn fails_alone(&mut self, call: Call<Job>, why: &str, now: Now) {
        self.requests.end_outage();
        let why = format!("{why}, {} times", call.failures);
        self.failed(call, ErrorCode::GatewayError, &why, now);
    }

    /// Begins an outage, or notes one more failed try of it.
    fn outage(&mut self, sent: Duration, call: Call<Job>, why: &str, failure: Failure, now: Now) {
        match self.requests.failed_try(sent, now.mono, now.mono + self.rules.retry_wait) {
            FailedTry::Begins => {
                tracing::warn!(why, "the local broker gives no answer; the engine asks again");
                self.stop_naming(now);
            }
            FailedTry::GoesOn => {}
            FailedTry::IsLast => return self.out_of_tries(call, why, failure, now),
        }
        self.put_back(call);
    }

    /// The tries are over. The gateway's list shows whether it is down, or only this request fails.
    fn out_of_tries(&mut self, call: Call<Job>, why: &str, failure: Failure, now: Now) {
        let is_list = matches!(&call.question, Question::Register(symbols) if symbols.is_empty());
        if failure == Failure::Refused || is_list {
            self.put_back(call);
            return self.app_down(why, failure == Failure::Unusable, now);
        }
        self.requests.suspect(Suspect { call, why: why.to_owned(), failure }, now.mono);
    }

    /// Takes the answer to the probe of the gateway.
    pub(super) fn probed(&mut self, came: &Result<Answer, NoAnswer>, now: Now) {
        let Some(Suspect { call, why, failure }) = self.requests.take_suspect() else { return };
        let is_answer = match came {
            Ok(Answer { status: 200, body }) => read_list(body).is_ok(),
            Ok(answer) => answer.status < 500,
            Err(_) => false,
        };
        if is_answer {
            self.requests.note_answer(now.mono);
        }
        if is_answer || call.silent_since.is_some_and(|first| self.has_lived_since(first)) {
            return self.fails_alone(call, &why, now);
        }
        self.put_back(call);
        self.app_down(&why, failure == Failure::Unusable, now);
    }

    /// Whether the gateway has answered since then, or its stream shows that it lives.
    fn has_lived_since(&self, then: Duration) -> bool {
        self.requests.has_answered_since(then) || self.was_alive_since(then)
    }

    pub(super) fn tick_session(&mut self, now: Now) {
        self.request_token(now);
    }
}

fn ready(context: Option<&RequestContext>) -> VenueEvent {
    VenueEvent::Ready { request_id: context.map(|context| context.request_id.clone()) }
}

/// Whether a text can be in a header.
fn is_token(token: &str) -> bool {
    (1..=TOKEN_CHARS_MAX).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic())
}
