//! The venue without input or output: commands, answers, frames and time go in, and what is to be done
//! outside comes out, in order. Time is given, so that a day of outages is a test of milliseconds.
//!
//! | what happens | what follows |
//! |---|---|
//! | a connection is refused | an outage begins: one request is tried again every `retry_wait`, all others wait; after three retries the gateway is down (P46) |
//! | a request cannot be made otherwise, is not answered in time, or its answer cannot be read or has a status of 500 and above | the same; but where answers to others, the stream, or in the end its list show that the gateway lives, that request fails alone (P46) |
//! | an answer has the official outline, and something in it is not known | its command fails at once |
//! | the token is not taken | one request for a new one with the password in memory, which all wait for; a second refusal is `token_expired` (P47) |
//! | too many requests | pauses of 1, 2 and 4 s of all requests of that class, then `rate_limited` (P48) |
//! | the stream ends | opened again after 5, 10, 20, 40 and 80 s; registrations come first; then the gateway is down, and tried every 80 s (P49) |
//! | the gateway is down and the stream opens | the venue is ready again, with the password in memory (P46) |

mod reads;
mod replies;
mod session;
mod shutdown;
mod stream;
mod symbols;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use domain::gateway_mapping::{GatewayErrorKind, GatewayMapping, GatewayRefusal};
use domain::order_mapping::MappingFault;
use secrecy::SecretString;

use self::reads::Read;
use self::session::{Failure, Login, Outage, Renewal, Suspect};
use self::stream::Stream;
use super::NoPassword;
use super::config::{ForcedLogout, KeepAlive, LocalBrokerConfig};
use super::drops::{Dropped, Report};
use super::event::{Command, ErrorCode, VenueEvent};
use super::feed::Feed;
use super::hidden::Hidden;
use super::lanes::{Call, LANES, Lanes};
use super::lifecycle::{Lifecycle, State};
use super::limits::{RATE_PAUSES, RECONNECTS, RETRIES, SHORT_ANSWER_BYTES_MAX};
use super::register_set::RegisterSet;
use super::registration_file::LeftOver;
use super::request::{Answer, Class, NoAnswer, Question, Request};
use crate::{Now, Recipient, ReportedOnce, RequestContext};

/// What is to be done outside.
#[derive(Debug)]
pub enum Out {
    /// An event is to be sent.
    Send(Recipient, Box<VenueEvent>),
    /// The gateway is to be asked; the answer comes back with [`Gateway::answered`] and the same ticket.
    Ask {
        /// Names the question.
        ticket: u64,
        /// The question.
        request: Request,
    },
    /// What the gateway has registered for us is to be written down, before what follows is done.
    WriteRegistered {
        /// See [`ForcedLogout::gateway_day`].
        gateway_day: u64,
        /// The symbols.
        symbols: Vec<String>,
    },
    /// The user is to be asked for the password; it comes back with [`Gateway::password`].
    AskPassword,
    /// The stream is to be opened, in the place of one that is open.
    OpenPush {
        /// Names the connection.
        connection: u64,
    },
    /// The stream is to be closed.
    ClosePush,
    /// The stream is to be pinged.
    Ping,
}

/// How the gateway is dealt with.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How a stream is known to live.
    pub keep_alive: KeepAlive,
    /// See [`KeepAlive::ReadTimeout`].
    pub read_timeout: Duration,
    /// When the gateway logs everybody out.
    pub forced_logout: ForcedLogout,
    /// Between tries to ask.
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
    /// Between tries of what has failed for long: the longest pause before the stream is opened again.
    pub(crate) fn long_wait(&self) -> Duration {
        self.reconnect_base * 2_u32.pow(RECONNECTS - 1)
    }
}

/// What a request is for.
#[derive(Debug)]
pub(crate) enum Job {
    /// Symbols are registered, before the stream is opened.
    BeforeOpening,
    /// Symbols are registered, and then frames are trusted.
    AfterOpening,
    /// Symbols are registered that somebody asked for, or that the gateway has lost.
    Register,
    /// Symbols are taken out.
    Unregister,
    /// The gateway's list is asked for, by registering once more what is registered.
    List,
    /// A client wants to know something.
    Read(RequestContext, Read),
    /// The name of a symbol that is registered, for whoever waits to be told that it is; this client waits the
    /// longest. The board that tells it registers nothing new.
    Name(u64, String),
    /// The gateway's list, to see whether it lives: nothing came of another request, however often.
    Probe,
}

impl Job {
    /// Who wants it done; none where the venue does it for all.
    const fn client(&self) -> Option<u64> {
        match self {
            Self::Read(asked, _) => Some(asked.client),
            Self::Name(client, _) => Some(*client),
            _ => None,
        }
    }
}

/// The venue.
pub struct Gateway {
    rules: Rules,
    mapping: Box<dyn GatewayMapping>,
    life: Lifecycle,
    password: Option<SecretString>,
    token: Option<SecretString>,
    /// The ticket of the request that gave it: what was sent before that had an older one.
    token_ticket: u64,
    /// It took the place of one that was refused, and nothing was done with it yet.
    token_is_untried: bool,
    secrets: Hidden,
    login: Option<Login>,
    renewal: Option<Renewal>,
    outage: Option<Outage>,
    /// The request of the last outage, while it is seen whether the gateway lives.
    suspect: Option<Suspect>,
    /// What went down answered, but not as it should.
    answers_badly: bool,
    /// When the gateway answered last.
    answered_at: Option<Duration>,
    lanes: Lanes<Job>,
    tickets: u64,
    set: RegisterSet,
    /// What was written down of it last, and the gateway's day.
    written: (u64, Vec<String>),
    /// Clients that wait for the registration of a symbol.
    subscribers: BTreeMap<String, Vec<symbols::Waiting>>,
    /// Of these, the symbols that are registered and whose names are being read, and since when.
    naming: BTreeMap<String, Duration>,
    /// Before then no name is read: the gateway did not answer to one, or had other things to do.
    names_after: Duration,
    /// Symbols that are to be registered, with the time and how often it was tried in vain.
    to_register: BTreeMap<String, symbols::Due>,
    /// The program ends: nothing is begun any more.
    is_ending: bool,
    /// The last request of the class of information was a registration, and no read.
    changed_last: bool,
    /// Symbols of requests that nothing came of, and until when the gateway's list may show them for that.
    in_doubt: BTreeMap<String, Duration>,
    /// When the gateway's list is looked at for that next, and for the last time.
    look_again: Option<Duration>,
    look_last: Duration,
    /// What an engine before this one has left registered, and on which day of the gateway's.
    left: Option<LeftOver>,
    /// Why orders of the newest list were left out of it: each is told once.
    odd_orders: ReportedOnce,
    /// What balances and positions lacked.
    left_out: ReportedOnce,
    /// When symbols that nobody wants any more may be taken out again that the gateway did not take out.
    unregister_after: BTreeMap<String, Duration>,
    /// Entries of others in the gateway's last list.
    foreign: usize,
    /// Names of issues, as frames have told them.
    names: BTreeMap<String, String>,
    feed: Feed,
    dropped: Dropped,
    malformed: Report,
    stream: Stream,
    out: VecDeque<Out>,
}

impl Gateway {
    /// A venue that nobody has logged in at.
    #[must_use]
    pub fn new(rules: Rules, mapping: Box<dyn GatewayMapping>, now: Now) -> Self {
        Self {
            lanes: Lanes::new(rules.order_calls_per_second),
            rules,
            mapping,
            life: Lifecycle::new(now.wall),
            password: None,
            token: None,
            token_ticket: 0,
            token_is_untried: false,
            secrets: Hidden::default(),
            login: None,
            renewal: None,
            outage: None,
            suspect: None,
            answers_badly: false,
            answered_at: None,
            tickets: 0,
            set: RegisterSet::default(),
            written: (0, Vec::new()),
            subscribers: BTreeMap::new(),
            naming: BTreeMap::new(),
            names_after: Duration::ZERO,
            to_register: BTreeMap::new(),
            is_ending: false,
            changed_last: false,
            in_doubt: BTreeMap::new(),
            look_again: None,
            look_last: Duration::ZERO,
            left: None,
            odd_orders: ReportedOnce::default(),
            left_out: ReportedOnce::default(),
            unregister_after: BTreeMap::new(),
            foreign: 0,
            names: BTreeMap::new(),
            feed: Feed::default(),
            dropped: Dropped::default(),
            malformed: Report::default(),
            stream: Stream::default(),
            out: VecDeque::new(),
        }
    }

    /// What is to be done, since this was asked last.
    pub fn take_out(&mut self) -> VecDeque<Out> {
        std::mem::take(&mut self.out)
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn state(&self) -> State {
        self.life.state()
    }

    /// What is to be told of dropped frames at the end of the program.
    #[must_use]
    pub fn dropped_at_the_end(&self) -> Option<String> {
        self.dropped.at_the_end()
    }

    /// The symbols that are, or are to be, registered; the one used last first.
    #[must_use]
    pub fn symbols(&self) -> Vec<String> {
        self.all_symbols()
    }

    /// Time goes on: what is due is done.
    pub fn tick(&mut self, now: Now) {
        self.tick_session(now);
        self.tick_stream(now);
        self.tick_names(now);
        self.drive(now);
    }

    /// Sends what waits and may be sent.
    fn drive(&mut self, now: Now) {
        if self.is_ending || !self.state().is_ready() && !self.is_healing() {
            return;
        }
        if self.renewal.is_some() {
            return;
        }
        let Some(token) = self.token.clone() else { return };
        // Whose requests came to nothing left, or gave them up: the next one begins anew.
        if self.lanes.is_idle() {
            self.outage = None;
        }
        // In an outage one request is tried at a time, when its time has come.
        if let Some(outage) = &self.outage
            && (outage.next > now.mono || self.lanes.all().iter().any(|lane| lane.sent.is_some()))
        {
            return;
        }
        self.register_due(now);
        let one_only = self.outage.is_some();
        let lists_first = self.lists_first();
        let probes_only = self.suspect.is_some();
        let may_leave = |call: &Call<Job>| {
            if probes_only {
                return matches!(call.job, Job::Probe);
            }
            !lists_first || matches!(call.job, Job::BeforeOpening) || !call.question.changes_list()
        };
        for place in 0..LANES {
            let ticket = self.tickets + 1;
            let Some(sent) = self.lanes.all()[place].send(ticket, now.mono, may_leave) else {
                continue;
            };
            self.tickets = ticket;
            let question = sent.question.clone();
            if question.class() == Class::Information {
                self.changed_last = sent.job.client().is_none();
            }
            match (&sent.job, &question) {
                (_, Question::Register(symbols)) => {
                    self.set.sent(symbols.iter().map(String::as_str));
                }
                // Whatever frames need: it takes a place there (P59).
                (Job::Read(_, Read::Board(symbol)), _) => {
                    self.set.sent([symbol.as_str()]);
                    // What nobody wants any more leaves anew.
                    self.unregister_after.remove(symbol);
                }
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

    /// Puts what a client wants to know among the requests that wait.
    fn enqueue(&mut self, asked: RequestContext, read: Read, question: Question) {
        let call = Call::new(Job::Read(asked, read), question);
        self.lanes.of(&call.question).push_fair(call, Job::client);
    }

    /// The gateway's answer to a request, or why there is none.
    pub fn answered(&mut self, ticket: u64, came: Result<Answer, NoAnswer>, now: Now) {
        if self.token_answered(ticket, &came, now) {
            return;
        }
        let Some(sent) = self.lanes.take_sent(ticket) else { return };
        let (at, call) = (sent.at, sent.call);
        match came {
            _ if matches!(call.job, Job::Probe) => self.probed(&came, now),
            // A name is worth no second try, and its board no outage.
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
                    self.token_is_untried &= ticket < self.token_ticket;
                    self.answered_well(at, call, &answer.body, now);
                }
                500.. => {
                    let why = format!("the gateway answers HTTP status {}", answer.status);
                    self.nothing_came_of(at, call, &why, Failure::Unusable, now);
                }
                status => {
                    self.lives(now);
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
            // It says nothing of the token that came meanwhile.
            GatewayErrorKind::TokenExpired if ticket < self.token_ticket => {
                call.has_new_token = true;
                self.put_back(call);
            }
            GatewayErrorKind::TokenExpired
                if call.has_new_token && matches!(call.job, Job::Name(..)) =>
            {
                self.failed(call, ErrorCode::TokenExpired, &refusal.message, now);
            }
            GatewayErrorKind::TokenExpired if call.has_new_token || self.token_is_untried => {
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
                // Whatever else left meanwhile would be refused too, and make the gateway wait anew.
                let lane = self.lanes.of(&call.question);
                lane.hold(now.mono + *pause.unwrap_or(&RATE_PAUSES[0]));
                if pause.is_some() {
                    call.slowed += 1;
                    self.put_back(call);
                } else {
                    self.failed(call, ErrorCode::RateLimited, &refusal.message, now);
                }
                self.stop_naming(now);
            }
            GatewayErrorKind::RegisterFull => {
                let why = symbols::full_there(&refusal.message, self.set.has_listed());
                self.failed(call, ErrorCode::RegisterFull, &why, now);
            }
            GatewayErrorKind::Other => {
                self.failed(call, ErrorCode::GatewayError, &refusal.message, now);
            }
        }
    }

    /// The gateway has given an answer that can be used.
    const fn lives(&mut self, now: Now) {
        self.outage = None;
        self.answered_at = Some(now.mono);
    }

    /// Makes a request again whose answer could not be used; its command fails after some tries.
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

    /// Puts a request back that is to be made again, before all others. What was to be taken out and is wanted by
    /// now is no part of it any more.
    fn put_back(&mut self, mut call: Call<Job>) {
        if let (Job::Unregister, Question::Unregister(symbols)) = (&call.job, &mut call.question) {
            symbols.retain(|symbol| !self.set.contains(symbol));
            if symbols.is_empty() {
                return;
            }
        }
        self.lanes.of(&call.question).waiting.push_front(call);
    }

    /// A request has come to nothing.
    fn failed(&mut self, call: Call<Job>, code: ErrorCode, why: &str, now: Now) {
        match call.job {
            Job::Read(asked, read) => {
                self.read_failed(asked.client, &read);
                self.send_error(&asked, code, why);
            }
            Job::Name(_, symbol) => self.named(&symbol),
            job => self.registration_failed(job, call.question, code, why, now),
        }
    }

    /// An answer of status 200.
    fn answered_well(&mut self, sent: Duration, call: Call<Job>, body: &str, now: Now) {
        let done = match &call.job {
            Job::Read(asked, read) => self.read_done(asked.clone(), read.clone(), body, now),
            Job::Name(_, symbol) => {
                self.name_read(symbol, body);
                Ok(())
            }
            _ => self.registration_done(&call, body, now),
        };
        match done {
            Ok(()) => self.lives(now),
            Err(why) => self.nothing_came_of(sent, call, &why, Failure::Unusable, now),
        }
    }

    /// Says where the venue stands.
    pub fn venue_state(&mut self, context: RequestContext, now: Now) {
        let state = self.state();
        // Nothing is wrong then, and nothing is shown.
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

    /// Does what a client wants.
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

    /// The password that a login waits for, or why there is none.
    pub fn password(&mut self, given: Result<SecretString, NoPassword>, now: Now) {
        self.password_given(given, now);
        self.drive(now);
    }
}

/// A dialect has failed at what it was given.
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
