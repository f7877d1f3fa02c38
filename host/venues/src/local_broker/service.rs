//! The thread that owns the connection to the gateway.
//!
//! Commands come in by a queue, events go out by a function. Between the two everything happens on one thread,
//! in order of arrival.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::gateway_mapping::GatewayMapping;
use domain::market_update::MarketUpdate;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use secrecy::SecretString;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::config::{ConfigError, Endpoint, LocalBrokerConfig};
use super::event::{Command, VenueEvent};
use super::gateway::{Gateway, Out, Rules};
use super::limits::{COMMANDS_WAITING_MAX, END_TIME};
use super::push::{self, Pushed, follow};
use super::registration_file::{LeftOver, RegistrationFile};
use super::request::{Answer, NoAnswer};
use super::rest::Rest;
use crate::service::{Busy, Inputs, Later, VenueClock, VenueThread};
use crate::{Now, Recipient, RequestContext};

/// Why there is no password (specification 4, P50).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPassword {
    /// In one line, without a secret.
    pub why: String,
    /// Whether a person chose it, in the dialog or by ending the engine.
    pub is_wanted: bool,
}

/// Requests the gateway's password from the user. It may take minutes, and runs on a thread of its own.
pub type AskPassword = Box<dyn FnMut() -> Result<SecretString, NoPassword> + Send>;

/// The parts of the venue.
pub struct Setup {
    /// The gateway's address and the rules for its connection.
    pub config: LocalBrokerConfig,
    /// The dialect.
    pub mapping: Box<dyn GatewayMapping>,
    /// Requests the password when a login needs it.
    pub ask_password: AskPassword,
    /// The file of registered symbols for the engine after a killed one. Without it they stay registered then.
    pub registration_file: Option<PathBuf>,
}

/// Output of the venue's thread, in order.
#[derive(Debug)]
pub enum Output<'a> {
    /// An event. A client's market data begin with `Subscribed` and end with `Unsubscribed`. After `Evicted` no
    /// client gets that symbol.
    Event(Recipient, &'a VenueEvent),
    /// Market data for all clients that are subscribed: the board goes out before the trade (specification 4, P56).
    Market(&'a MarketUpdate),
    /// The market data of a turn are complete: they go out together.
    MarketPause,
    /// The stream brings market data from now on, or none any more (specification 4, P115).
    Streaming(bool),
    /// Time goes on: many times per second, also where nothing else happens.
    Tick,
}

/// Why the venue cannot start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The address is not allowed.
    #[error("[local_broker] {0}")]
    Config(#[from] ConfigError),
    /// The connection cannot be prepared.
    #[error("cannot prepare the connection to the local broker: {0}")]
    Http(String),
    /// The system gives no thread or no sockets.
    #[error("the local broker cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// Frames that are taken before the thread looks at other input.
const FRAMES_AT_ONCE: usize = 64;
/// How long commands, or frames, have the thread for themselves, except for the one that is being handled.
/// Market data wait no longer for what comes with them.
const TURN: Duration = Duration::from_millis(1);
/// The interval of the clock ticks.
const TICK: Duration = Duration::from_millis(20);

/// Input of the thread. Besides commands, each client and each request for a password brings at most one.
enum Input {
    Command(RequestContext, Command),
    Left { client: u64 },
    Password(Result<SecretString, NoPassword>),
}

/// A running venue.
pub struct Service {
    thread: VenueThread<Input>,
    is_production: bool,
}

impl Service {
    /// Starts the thread. `emit` is called on that thread for every output, in order.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn start(
        setup: Setup,
        emit: impl FnMut(Output<'_>) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let Setup { config, mapping, ask_password, registration_file } = setup;
        let endpoint = Endpoint::of(&config)?;
        let description = mapping.description().clone();
        let rest = Rest::new(&endpoint, &description.rest_prefix, config.request_timeout);
        let rest = Arc::new(rest.map_err(ServiceError::Http)?);
        let is_production = endpoint.is_production;
        tracing::info!(
            dialect = description.name,
            version = description.version,
            sha256 = mapping.identity().sha256,
            place = endpoint.authority(),
            is_production,
            "the local broker starts"
        );
        let clock = VenueClock::start();
        let now = Now { mono: Duration::ZERO, ..clock.now() };
        let mut gateway = Gateway::new(Rules::of(&config), mapping, now);
        let registration_file = registration_file.and_then(|path| RegistrationFile::open(&path));
        if let Some(file) = &registration_file {
            let gateway_day = config.forced_logout.gateway_day(now.wall);
            gateway.left_over(file.left(gateway_day, now.wall.millis()));
        }
        let thread =
            VenueThread::start("local-broker", COMMANDS_WAITING_MAX, move |inputs, stop| {
                let (frames, stream) = push::queue();
                let worker = Worker {
                    gateway,
                    clock,
                    emit,
                    endpoint,
                    push_path: description.push_path,
                    rest,
                    time: config.request_timeout,
                    ask_password: Arc::new(Mutex::new(ask_password)),
                    passwords: inputs.later(),
                    registration_file,
                    frames,
                    push: None,
                    calls: FuturesUnordered::new(),
                    is_streaming: false,
                };
                worker.run(inputs, stream, stop, config.login_at_start)
            })?;
        Ok(Self { thread, is_production })
    }

    /// Whether the gateway is the real market's (specification 1, "Capabilities entry").
    #[must_use]
    pub const fn is_production(&self) -> bool {
        self.is_production
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Busy`]: the queue is full.
    pub fn command(&self, context: RequestContext, command: Command) -> Result<(), Busy> {
        self.thread.command(Input::Command(context, command))
    }

    /// Notes that a client has left: its subscriptions are released, after the commands that it has sent.
    pub fn client_left(&self, client: u64) {
        self.thread.notice(Input::Left { client });
    }

    /// Ends the venue. Its symbols are unregistered, if the gateway answers in time (specification 4, P50).
    pub fn stop(self) {
        if self.thread.stop().is_err() {
            tracing::error!("the local broker ended by a panic");
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// Whether a request succeeded.
const fn is_done(answer: &Result<Answer, NoAnswer>) -> bool {
    matches!(answer, Ok(Answer { status: 200, .. }))
}

type Call = Pin<Box<dyn Future<Output = (u64, Result<Answer, NoAnswer>)> + Send>>;

/// A connection that is opening or open.
struct Push {
    pings: mpsc::Sender<()>,
    task: JoinSet<()>,
}

struct Worker<T> {
    gateway: Gateway,
    clock: VenueClock,
    emit: T,
    endpoint: Endpoint,
    push_path: String,
    rest: Arc<Rest>,
    time: Duration,
    ask_password: Arc<Mutex<AskPassword>>,
    passwords: Later<Input>,
    registration_file: Option<RegistrationFile>,
    frames: mpsc::Sender<(u64, Pushed)>,
    push: Option<Push>,
    calls: FuturesUnordered<Call>,
    is_streaming: bool,
}

impl<T: FnMut(Output<'_>)> Worker<T> {
    fn now(&self) -> Now {
        self.clock.now()
    }

    /// Whether a turn that began then is over.
    fn is_over(&self, begin: Duration) -> bool {
        self.clock.elapsed().saturating_sub(begin) >= TURN
    }

    async fn run(
        mut self,
        mut inputs: Inputs<Input>,
        mut stream: mpsc::Receiver<(u64, Pushed)>,
        stop: CancellationToken,
        login_at_start: bool,
    ) {
        if login_at_start {
            let now = self.now();
            self.gateway.login(None, now);
            self.act();
        }
        // A timer of its own: a pause that begins anew with each frame would never end in a flood of frames.
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = ticks.tick() => {
                    let now = self.now();
                    self.gateway.tick(now);
                    (self.emit)(Output::Tick);
                }
                Some((ticket, came)) = self.calls.next() => {
                    let now = self.now();
                    self.gateway.answered(ticket, came, now);
                }
                Some(input) = inputs.next() => {
                    let begin = self.clock.elapsed();
                    let mut next = Some(input);
                    while let Some(input) = next {
                        self.input(input);
                        self.act();
                        next = if self.is_over(begin) { None } else { inputs.try_next() };
                    }
                    // Many commands of one client must not delay frames, nor the task that receives them.
                    tokio::task::yield_now().await;
                    let first = stream.try_recv().ok();
                    self.all_pushed(first, &mut stream);
                }
                first = stream.recv() => self.all_pushed(first, &mut stream),
            }
            self.act();
        }
        self.push = None;
        if let Some(dropped) = self.gateway.dropped_at_the_end() {
            tracing::warn!(venue = crate::local_broker::VENUE, "{dropped}");
        }
        // A gateway that is gone has no list; the next engine unregisters what else stays registered.
        let _ = tokio::time::timeout(END_TIME, self.take_out()).await;
    }

    /// Unregisters our symbols, after the answer to a request that may register some of them.
    async fn take_out(&mut self) {
        // Without an answer there is still time for the unregistration.
        while self.gateway.end()
            && let Ok(Some((ticket, came))) =
                tokio::time::timeout(END_TIME / 2, self.calls.next()).await
        {
            let now = self.now();
            self.gateway.answered(ticket, came, now);
            // Output from here on has no reader.
            self.gateway.take_out();
        }
        let Some(request) = self.gateway.last_unregister() else { return };
        let answer = self.rest.ask(request).await;
        let mut are_out = is_done(&answer);
        if matches!(answer, Ok(Answer { status: 400..500, .. }))
            && let Some(request) = self.gateway.last_list()
            && let Ok(list) = self.rest.ask(request).await
            && let Ok(rest) = self.gateway.last_unregister_of_list(&list.body)
        {
            are_out = match rest {
                Some(request) => is_done(&self.rest.ask(request).await),
                None => true,
            };
        }
        let now = self.now();
        if let Some(file) = self.registration_file.as_ref().filter(|_| are_out) {
            file.write(self.gateway.left_at_the_end(now));
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.now();
        let gateway = &mut self.gateway;
        match input {
            Input::Left { client } => gateway.client_left(client, now),
            Input::Password(given) => gateway.password(given, now),
            Input::Command(context, command) => gateway.command(context, &command, now),
        }
    }

    /// Takes what came over the stream, as much as fits into one turn. Clients get its market data together at
    /// the end of the turn.
    fn all_pushed(
        &mut self,
        first: Option<(u64, Pushed)>,
        stream: &mut mpsc::Receiver<(u64, Pushed)>,
    ) {
        let (mut next, mut taken, mut is_market) = (first, 0, false);
        let begin = self.clock.elapsed();
        while let Some((connection, pushed)) = next {
            is_market |= self.pushed(connection, pushed);
            taken += 1;
            let is_over = taken == FRAMES_AT_ONCE || self.is_over(begin);
            // A message that is taken out of the queue is handled.
            next = if is_over { None } else { stream.try_recv().ok() };
        }
        if is_market {
            (self.emit)(Output::MarketPause);
        }
    }

    /// Takes one message; returns whether it was market data.
    fn pushed(&mut self, connection: u64, pushed: Pushed) -> bool {
        let now = self.now();
        match pushed {
            Pushed::Frame(message) => {
                let Some(update) = self.gateway.frame(connection, &message, now) else {
                    return false;
                };
                // Output that was made before the market data goes out before them.
                self.act();
                (self.emit)(Output::Market(&update));
                return true;
            }
            Pushed::Opened => self.gateway.push_opened(connection, now),
            Pushed::Pong => self.gateway.push_lives(connection, now),
            Pushed::Closed(why) => self.gateway.push_closed(connection, &why, now),
        }
        false
    }

    /// Executes the output of the venue.
    fn act(&mut self) {
        if self.gateway.is_streaming() != self.is_streaming {
            self.is_streaming = !self.is_streaming;
            (self.emit)(Output::Streaming(self.is_streaming));
        }
        for out in self.gateway.take_out() {
            match out {
                Out::Send(to, event) => (self.emit)(Output::Event(to, &event)),
                Out::Ask { ticket, request } => {
                    let rest = Arc::clone(&self.rest);
                    self.calls.push(Box::pin(async move { (ticket, rest.ask(request).await) }));
                }
                Out::WriteRegistered { gateway_day, symbols } => {
                    if let Some(file) = &self.registration_file {
                        file.write(LeftOver { gateway_day, symbols, late_until_ms: None });
                    }
                }
                Out::AskPassword => self.ask_password(),
                Out::OpenPush { connection } => self.open(connection),
                Out::ClosePush => self.push = None,
                Out::Ping => {
                    if let Some(push) = &self.push {
                        // A connection that has not taken the last ping yet is found dead by its silence.
                        let _ = push.pings.try_send(());
                    }
                }
            }
        }
    }

    fn open(&mut self, connection: u64) {
        let (pings, wishes) = mpsc::channel(1);
        let mut task = JoinSet::new();
        let (endpoint, path) = (self.endpoint.clone(), self.push_path.clone());
        task.spawn(follow(endpoint, path, connection, self.time, self.frames.clone(), wishes));
        // An open connection ends with this.
        self.push = Some(Push { pings, task });
        debug_assert!(self.push.as_ref().is_some_and(|push| !push.task.is_empty()));
    }

    /// Requests the password on a thread of its own: a person takes minutes.
    fn ask_password(&self) {
        let (ask, passwords) = (Arc::clone(&self.ask_password), self.passwords.clone());
        let started =
            std::thread::Builder::new().name("local-broker-password".to_owned()).spawn(move || {
                let given = (*ask.lock().unwrap_or_else(PoisonError::into_inner))();
                passwords.send(Input::Password(given));
            });
        if let Err(error) = started {
            let why = format!("the engine cannot ask for the password: {error}");
            self.passwords.send(Input::Password(Err(NoPassword { why, is_wanted: false })));
        }
    }
}
