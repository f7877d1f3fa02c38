//! The venue without input or output, so that a day of outages is a test of milliseconds.
//!
//! Commands, answers, frames and the time go in. What is to be done outside comes out, in order.
//!
//! | what happens | what follows |
//! |---|---|
//! | a connection is refused | an outage begins: one request is tried again every `retry_wait`, all others wait; after three retries the gateway is down (P46) |
//! | a request fails otherwise: no answer in time, an unreadable answer, or a status of 500 and above | the same; but if other answers, the stream or at last its list show that the gateway lives, that request fails alone (P46) |
//! | an answer has the official outline and an unknown value | its command fails at once |
//! | the gateway refuses the token | one request for a new one with the password in memory; all others wait; a second refusal is `token_expired` (P47) |
//! | too many requests | pauses of 1, 2 and 4 s of all requests of that class, then `rate_limited` (P48) |
//! | the stream ends | opened again after 5, 10, 20, 40 and 80 s; registrations come first; then the gateway is down, and tried every 80 s (P49) |
//! | the gateway is down and the stream opens | the venue is ready again, with the password in memory (P46) |

mod reads;
mod registrations;
mod replies;
mod requests;
mod session;
mod shutdown;
mod stream;
mod subscribers;
mod symbols;

use std::collections::VecDeque;
use std::time::Duration;

use domain::gateway_mapping::{GatewayErrorKind, GatewayMapping, GatewayRefusal};
use domain::order_mapping::MappingFault;
use secrecy::SecretString;

use self::reads::Read;
use self::registrations::Registrations;
use self::requests::{Failure, Job, Requests};
use self::session::Session;
use self::stream::Stream;
use self::subscribers::Subscribers;
use super::NoPassword;
use super::config::{ForcedLogout, KeepAlive, LocalBrokerConfig};
use super::event::{Command, ErrorCode, VenueEvent};
use super::feed::Feed;
use super::hidden::Hidden;
use super::lanes::{Call, LANES};
use super::lifecycle::{Lifecycle, State};
use super::limits::{RATE_PAUSES, RECONNECTS, RETRIES, SHORT_ANSWER_BYTES_MAX};
use super::request::{Answer, NoAnswer, Question, Request};
use crate::{Now, Recipient, ReportedOnce, RequestContext};

/// Output of the venue.
#[derive(Debug)]
pub enum Out {
    /// Sends an event.
    Send(Recipient, Box<VenueEvent>),
    /// Sends a request; the answer comes back by [`Gateway::answered`] with the same ticket.
    Ask {
        /// Identifies the request.
        ticket: u64,
        /// The request.
        request: Request,
    },
    /// Writes down the symbols that are registered for us, before the outputs that follow.
    WriteRegistered {
        /// See [`ForcedLogout::gateway_day`].
        gateway_day: u64,
        /// The symbols.
        symbols: Vec<String>,
    },
    /// Requests the password from the user; it comes back by [`Gateway::password`].
    AskPassword,
    /// Opens the stream, in place of an open one.
    OpenPush {
        /// Identifies the connection.
        connection: u64,
    },
    /// Closes the stream.
    ClosePush,
    /// Pings the stream.
    Ping,
}

/// Rules for the connection to the gateway.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How a dead stream is found.
    pub keep_alive: KeepAlive,
    /// See [`KeepAlive::ReadTimeout`].
    pub read_timeout: Duration,
    /// When the gateway logs out all programs.
    pub forced_logout: ForcedLogout,
    /// Between two tries of a request.
    pub retry_wait: Duration,
    /// Before the first try to open the stream again.
    pub reconnect_base: Duration,
    /// Order-type calls in a second.
    pub order_calls_per_second: u32,
}

impl Rules {
    /// Those of a configuration.
    #[must_use]
    pub fn of(config: &LocalBrokerConfig) -> Self {
        Self {
            keep_alive: config.keep_alive,
            read_timeout: config.read_timeout,
            forced_logout: config.forced_logout,
            retry_wait: config.retry_wait,
            reconnect_base: config.reconnect_base,
            order_calls_per_second: config.order_calls_per_second,
        }
    }
}

impl Rules {
    /// The pause between tries after a long failure: the longest pause before the stream is opened again.
    pub(crate) fn long_wait(&self) -> Duration {
        self.reconnect_base * 2_u32.pow(RECONNECTS - 1)
    }
}

/// The venue.
pub struct Gateway {
    rules: Rules,
    mapping: Box<dyn GatewayMapping>,
    life: Lifecycle,
    session: Session,
    secrets: Hidden,
    requests: Requests,
    registrations: Registrations,
    subscribers: Subscribers,
    stream: Stream,
    feed: Feed,
    /// The unreadable rows and amounts that clients have reports of.
    left_out: ReportedOnce,
    /// The program ends, and nothing new begins.
    is_ending: bool,
    out: VecDeque<Out>,
}

impl Gateway {
    /// A venue before its first login.
    #[must_use]
    pub fn new(rules: Rules, mapping: Box<dyn GatewayMapping>, now: Now) -> Self {
        Self {
            requests: Requests::new(rules.order_calls_per_second),
            rules,
            mapping,
            life: Lifecycle::new(now.wall),
            session: Session::default(),
            secrets: Hidden::default(),
            registrations: Registrations::default(),
            subscribers: Subscribers::default(),
            stream: Stream::default(),
            feed: Feed::default(),
            left_out: ReportedOnce::default(),
            is_ending: false,
            out: VecDeque::new(),
        }
    }

    /// Takes the output since the last call.
    pub fn take_out(&mut self) -> VecDeque<Out> {
        std::mem::take(&mut self.out)
    }

    /// State of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.life.state()
    }

    /// A line for the log about dropped frames, at the end of the program.
    #[must_use]
    pub fn dropped_at_the_end(&self) -> Option<String> {
        self.stream.dropped.at_the_end()
    }

    /// The symbols that are, or are to be, registered, the most recently used first.
    #[must_use]
    pub fn symbols(&self) -> Vec<String> {
        self.registrations.symbols()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) {
        self.tick_session(now);
        self.tick_stream(now);
        self.tick_names(now);
        self.drive(now);
    }

    /// Sends the queued requests that may be sent.
    fn drive(&mut self, now: Now) {
        if self.is_ending || !self.state().is_ready() && !self.is_healing() {
            return;
        }
        if self.session.is_renewing() {
            return;
        }
        let Some(token) = self.session.token().cloned() else { return };
        if !self.requests.may_begin(now.mono) {
            return;
        }
        self.register_due(now);
        let one_only = self.requests.is_in_outage();
        let lists_first = self.lists_first();
        for lane in 0..LANES {
            let Some((ticket, sent)) = self.requests.send(lane, lists_first, now.mono) else {
                continue;
            };
            let question = sent.question.clone();
            match (&sent.job, &question) {
                (_, Question::Register(symbols)) => {
                    self.registrations.sent(symbols.iter().map(String::as_str));
                }
                // Whatever frames need: the symbol takes a place there (P59).
                (Job::Read(_, Read::Board(symbol)), _) => self.registrations.board_sent(symbol),
                _ => {}
            }
            self.write_registered(now);
            let request = Request { question, secret: token.clone() };
            self.out.push_back(Out::Ask { ticket, request });
            if one_only {
                break;
            }
        }
    }

    /// Queues a client's read.
    fn enqueue(&mut self, context: RequestContext, read: Read, question: Question) {
        self.requests.push_fair(Call::new(Job::Read(context, read), question));
    }

    /// Takes the gateway's answer to a request, or the failure.
    pub fn answered(&mut self, ticket: u64, came: Result<Answer, NoAnswer>, now: Now) {
        if self.token_answered(ticket, &came, now) {
            return;
        }
        let Some(sent) = self.requests.take_sent(ticket) else { return };
        let (at, call) = (sent.at, sent.call);
        match came {
            _ if matches!(call.job, Job::Probe) => self.probed(&came, now),
            // A request for a name is not repeated, and its failure is no outage.
            Err(_) | Ok(Answer { status: 500.., .. }) if matches!(call.job, Job::Name(..)) => {
                self.doubt(&call, now);
                self.stop_naming(now);
            }
            Err(NoAnswer::Refused(why)) => {
                self.nothing_came_of(at, call, &why, Failure::Refused, now)
            }
            Err(NoAnswer::Unreachable(why)) => {
                self.nothing_came_of(at, call, &why, Failure::Silent, now)
            }
            Err(NoAnswer::Unreadable(why)) => {
                self.nothing_came_of(at, call, &why, Failure::Unusable, now);
            }
            Ok(answer) => match answer.status {
                200 => {
                    self.session.token_was_taken(ticket);
                    self.answered_well(at, call, &answer.body, now);
                }
                500.. => {
                    let why = format!("the gateway answers HTTP status {}", answer.status);
                    self.nothing_came_of(at, call, &why, Failure::Unusable, now);
                }
                status => {
                    self.requests.lives(now.mono);
                    let refusal = self.refusal(status, &answer.body);
                    self.refused(call, ticket, refusal, now);
                }
            },
        }
        self.drive(now);
    }

    /// What an answer with another status means.
    fn refusal(&mut self, status: u16, body: &str) -> GatewayRefusal {
        let shown = if body.len() <= SHORT_ANSWER_BYTES_MAX { body } else { "" };
        let refusal = self.mapping.classify(status, shown).unwrap_or_else(|fault| {
            fault_of(&fault, shown, &self.secrets);
            GatewayRefusal {
                kind: GatewayErrorKind::Other,
                code: None,
                message: "the dialect failed on this answer".to_owned(),
            }
        });
        let words = self.secrets.words_about(shown, &refusal.message);
        let code = refusal.code.map(|code| self.secrets.code(code));
        let message = match (code, words.is_empty()) {
            (Some(code), false) => format!("HTTP status {status}, code {code}: {words}"),
            (Some(code), true) => format!("HTTP status {status}, code {code}"),
            (None, false) => format!("HTTP status {status}: {words}"),
            (None, true) => format!("HTTP status {status}"),
        };
        GatewayRefusal { message, ..refusal }
    }

    /// The gateway refuses a request.
    fn refused(&mut self, mut call: Call<Job>, ticket: u64, refusal: GatewayRefusal, now: Now) {
        match refusal.kind {
            // The refusal is about an older token than the present one.
            GatewayErrorKind::TokenExpired if self.session.has_newer_token(ticket) => {
                call.has_new_token = true;
                self.put_back(call);
            }
            GatewayErrorKind::TokenExpired
                if call.has_new_token && matches!(call.job, Job::Name(..)) =>
            {
                self.failed(call, ErrorCode::TokenExpired, &refusal.message, now);
            }
            GatewayErrorKind::TokenExpired
                if call.has_new_token || self.session.is_token_untried() =>
            {
                self.put_back(call);
                self.token_expired(&refusal.message, now);
            }
            GatewayErrorKind::TokenExpired => {
                call.has_new_token = true;
                self.put_back(call);
                self.renew_token(now);
            }
            GatewayErrorKind::RateLimited => {
                let pause =
                    RATE_PAUSES.get(call.slowed).filter(|_| !matches!(call.job, Job::Name(..)));
                // Other requests that leave now would be refused, too, and prolong the gateway's pause.
                let until = now.mono + *pause.unwrap_or(&RATE_PAUSES[0]);
                self.requests.hold(&call.question, until);
                if pause.is_some() {
                    call.slowed += 1;
                    self.put_back(call);
                } else {
                    self.failed(call, ErrorCode::RateLimited, &refusal.message, now);
                }
                self.stop_naming(now);
            }
            GatewayErrorKind::RegisterFull => {
                let why =
                    symbols::full_there(&refusal.message, self.registrations.set.has_listed());
                self.failed(call, ErrorCode::RegisterFull, &why, now);
            }
            GatewayErrorKind::Other => {
                self.failed(call, ErrorCode::GatewayError, &refusal.message, now);
            }
        }
    }

    /// Repeats a request whose answer could not be used; its command fails after some tries.
    fn try_again(&mut self, mut call: Call<Job>, why: &str, now: Now) {
        call.failures += 1;
        if call.failures > RETRIES {
            let why = format!("{why}, {} times in a row", call.failures);
            if self.is_healing() && call.job.client().is_none() {
                return self.stream_lost(&why, now);
            }
            return self.failed(call, ErrorCode::GatewayError, &why, now);
        }
        tracing::warn!(question = ?call.question, why, "the engine asks the local broker again");
        call.not_before = now.mono + self.rules.retry_wait;
        self.put_back(call);
    }

    /// Queues a request that is repeated, before all others. Symbols to unregister that a client wants again
    /// are removed from it.
    fn put_back(&mut self, mut call: Call<Job>) {
        if let (Job::Unregister, Question::Unregister(symbols)) = (&call.job, &mut call.question) {
            symbols.retain(|symbol| !self.registrations.set.contains(symbol));
            if symbols.is_empty() {
                return;
            }
        }
        self.requests.push_first(call);
    }

    /// Ends a request that failed.
    fn failed(&mut self, call: Call<Job>, code: ErrorCode, why: &str, now: Now) {
        match call.job {
            Job::Read(context, read) => {
                self.read_failed(context.client, &read);
                self.send_error(&context, code, why);
            }
            Job::Name(_, symbol) => self.named(&symbol),
            job => self.registration_failed(job, call.question, code, why, now),
        }
    }

    /// An answer of status 200.
    fn answered_well(&mut self, sent: Duration, call: Call<Job>, body: &str, now: Now) {
        let done = match &call.job {
            Job::Read(context, read) => self.read_done(context.clone(), read.clone(), body, now),
            Job::Name(_, symbol) => {
                self.name_read(symbol, body);
                Ok(())
            }
            _ => self.registration_done(&call, body, now),
        };
        match done {
            Ok(()) => self.requests.lives(now.mono),
            Err(why) => self.nothing_came_of(sent, call, &why, Failure::Unusable, now),
        }
    }

    /// Reports the state of the venue.
    pub fn venue_state(&mut self, context: RequestContext, now: Now) {
        let state = self.state();
        // Nothing is wrong in the forced logout, but no boards come.
        let is_quiet = state.is_ready() && self.rules.forced_logout.contains(now.wall);
        let code = if is_quiet { Some(ErrorCode::ForcedLogout) } else { self.life.code() };
        let event = VenueEvent::State {
            request_id: context.request_id,
            state,
            code,
            since: self.life.since(),
        };
        self.send(Recipient::Client(context.client), event);
    }

    /// Executes a client's command.
    pub fn command(&mut self, context: RequestContext, command: &Command, now: Now) {
        match command {
            Command::Subscribe(ticker) => self.subscribe(context, ticker, now),
            Command::Unsubscribe(ticker) => self.unsubscribe(&context, ticker, now),
            Command::ReadBoard(ticker) => self.board(context, ticker, now),
            Command::EvictLru => self.evict_lru(&context, now),
            Command::ReadBuyingPower => self.buying_power(context, now),
            Command::ListOrders(query) => self.order_list(context, query, now),
            Command::ListPositions => self.positions(context, now),
            Command::Login => self.login(Some(context), now),
            Command::ReadState => self.venue_state(context, now),
        }
    }

    /// The password for a login, or why there is none.
    pub fn password(&mut self, given: Result<SecretString, NoPassword>, now: Now) {
        self.password_given(given, now);
        self.drive(now);
    }
}

/// Logs a failure of the dialect.
fn fault_of(fault: &MappingFault, given: &str, secrets: &Hidden) {
    let fault = secrets.fault_about(given, &fault.to_string());
    tracing::error!(fault, "the local broker's dialect failed");
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("life", &self.life).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
