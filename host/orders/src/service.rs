//! The thread that owns an order desk and its connection to the broker.
//!
//! Commands come in by a queue, events go out by a function. Between the two everything happens on one thread,
//! in order of arrival.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::clock::wall_now;
use domain::order_mapping::OrderMapping;
use domain::{JstDate, OrderEventKind, Secret, TsNanos};
use secrecy::SecretString;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};
use venues::service::{Busy, Inputs, VenueClock, VenueThread};
use venues::web_broker::{
    AddressError, Addresses, Called, Credentials, Hidden, Login, LoginKind, Masters, StreamEvent,
    Transport, TransportError, WebBrokerConfig, follow,
};

use crate::audit::{AuditError, AuditLog};
use crate::command::DeskCommand;
use crate::desk::{Desk, DeskRules, LoginDone, LoginFailed, Now, Out, Recipient, RequestContext};
use crate::event::DeskEvent;
use crate::instruments::InstrumentTable;

/// Commands queued for the thread, which takes them in microseconds.
pub const COMMANDS_WAITING_MAX: usize = 4_096;
/// Frames of the stream queued for the thread; the stream waits if there are more.
const FRAMES_WAITING_MAX: usize = 1_024;
/// How long the end of the program waits for an answer that is under way, because its line belongs in the log.
const LAST_ANSWER_TIME: Duration = Duration::from_secs(3);
/// How long a request is under way before a test's crash point ends the program.
const KILL_AFTER: Duration = Duration::from_millis(20);

/// Finds the credentials when a login of a kind needs them. The error says in one line what is missing and what
/// to do, without a secret.
pub type FindCredentials = Box<dyn Fn(LoginKind) -> Result<Credentials, String> + Send>;

/// The parts of a desk.
pub struct Setup {
    /// Where the broker is.
    pub broker: WebBrokerConfig,
    /// How the desk works.
    pub rules: DeskRules,
    /// The dialect.
    pub mapping: Box<dyn OrderMapping>,
    /// Where the audit log is.
    pub config_dir: PathBuf,
    /// Finds the credentials at a login.
    pub credentials: FindCredentials,
}

/// Why a desk cannot start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The broker's address is not allowed.
    #[error("[web_broker] {0}")]
    Address(#[from] AddressError),
    /// The dialect is made for other hosts, where its requests may have another meaning.
    #[error(
        "the dialect {dialect} is not made for {host}, only for this machine{}",
        made_for.iter().map(|host| format!(", {host}")).collect::<String>()
    )]
    OtherHost {
        /// Name of the dialect.
        dialect: String,
        /// Where orders would go.
        host: String,
        /// The hosts that it is made for, beside this machine.
        made_for: Vec<String>,
    },
    /// The connection cannot be prepared.
    #[error("cannot prepare the connection to the web broker: {0}")]
    Transport(#[from] TransportError),
    /// The system gives no thread or no sockets.
    #[error("the order desk cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// The masters of the newest login, for those who ask beside the thread.
type Published = Arc<Mutex<Option<Arc<Masters>>>>;

enum Input {
    Command { context: RequestContext, command: Box<DeskCommand> },
    Left { client: u64 },
}

/// A running order desk.
pub struct Service {
    thread: VenueThread<Input>,
    instruments: Arc<InstrumentTable>,
    masters: Published,
    host: String,
    is_production: bool,
    simulator: Option<String>,
}

impl Service {
    /// Opens the log, restores what it says, and starts the thread. `emit` is called on that thread for
    /// every event, in order.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn start(
        mut setup: Setup,
        emit: impl Fn(Recipient, &DeskEvent) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let description = setup.mapping.description();
        // The dialect's own name: a file may have any name.
        setup.broker.dialect.clone_from(&description.name);
        let (host, is_this_machine) = Addresses::host_of(&setup.broker)?;
        if !description.is_made_for(&host, is_this_machine) {
            return Err(ServiceError::OtherHost {
                dialect: description.name.clone(),
                host,
                made_for: description.hosts.clone(),
            });
        }
        let addresses = Addresses::new(&setup.broker)?;
        let (log, restored) = AuditLog::open(&setup.config_dir)?;
        let identity = setup.mapping.identity();
        tracing::info!(
            dialect = description.name,
            version = description.version,
            sha256 = identity.sha256,
            orders = restored.entries.len(),
            "the order desk of the web broker starts"
        );
        let transport = Transport::new(&setup.broker, description.decodes_answers)?;
        let clock = VenueClock::start();
        let now = Now { mono: Duration::ZERO, ..clock.now() };
        let desk = Desk::new(setup.rules, setup.mapping, Box::new(log), restored, now);
        let instruments = Arc::clone(desk.instruments());
        let (host, is_production) = (addresses.host().to_owned(), addresses.is_production());
        let simulator = addresses.simulator();
        let credentials = setup.credentials;
        let masters = Published::default();
        let published = Arc::clone(&masters);
        let thread =
            VenueThread::start("web-broker", COMMANDS_WAITING_MAX, move |inputs, stop| {
                let (frames, stream) = mpsc::channel(FRAMES_WAITING_MAX);
                let worker = Worker {
                    desk,
                    clock,
                    emit: Box::new(emit),
                    credentials,
                    masters: published,
                    transport: Some(transport),
                    call: None,
                    frames,
                    following: None,
                };
                worker.run(inputs, stream, stop)
            })?;
        Ok(Self { thread, instruments, masters, host, is_production, simulator })
    }

    /// The broker's host, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether orders reach the market.
    #[must_use]
    pub const fn is_production(&self) -> bool {
        self.is_production
    }

    /// The address of the simulator in the broker's place, if orders go to one.
    #[must_use]
    pub fn simulator(&self) -> Option<&str> {
        self.simulator.as_deref()
    }

    /// The instruments that the desk's orders name.
    #[must_use]
    pub fn instruments(&self) -> &InstrumentTable {
        &self.instruments
    }

    /// The masters of the newest login; none before the first.
    #[must_use]
    pub fn masters(&self) -> Option<Arc<Masters>> {
        self.masters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Busy`]: the queue is full.
    pub fn command(&self, context: RequestContext, command: DeskCommand) -> Result<(), Busy> {
        let command = Box::new(command);
        self.thread.command(Input::Command { context, command })
    }

    /// Notes that a client has left.
    pub fn client_left(&self, client: u64) {
        self.thread.notice(Input::Left { client });
    }

    /// Ends the desk, after the answer that is under way, or after three seconds without it.
    pub fn stop(self) {
        if self.thread.stop().is_err() {
            tracing::error!("the order desk ended by a panic");
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("host", &self.host).finish_non_exhaustive()
    }
}

/// The result of a call, with the connection that comes back with it.
enum Done {
    Called { ticket: u64, called: Called },
    LoggedIn { ticket: u64, ended: Result<LoginDone, LoginFailed> },
}

/// Broadcasts an event of the desk to its recipients.
type Emit = Box<dyn Fn(Recipient, &DeskEvent) + Send>;
type Call = Pin<Box<dyn Future<Output = (Transport, Done)> + Send>>;

struct Worker {
    desk: Desk,
    clock: VenueClock,
    emit: Emit,
    credentials: FindCredentials,
    masters: Published,
    /// `None` during a request: one request is under way at a time.
    transport: Option<Transport>,
    call: Option<Call>,
    frames: mpsc::Sender<(u64, StreamEvent)>,
    /// The stream of the present session: the number of its login, and the guard that ends it.
    following: Option<(u64, DropGuard)>,
}

impl Worker {
    fn now(&self) -> Now {
        self.clock.now()
    }

    async fn run(
        mut self,
        mut inputs: Inputs<Input>,
        mut stream: mpsc::Receiver<(u64, StreamEvent)>,
        stop: CancellationToken,
    ) {
        // A timer of its own: a pause that begins anew with each command would never end in a flood of
        // commands.
        let mut ticks = tokio::time::interval(Desk::tick_pause());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                done = ended(&mut self.call) => self.done(done),
                _ = ticks.tick() => {
                    let now = self.now();
                    self.desk.tick(now);
                }
                Some(input) = inputs.next() => self.input(input),
                Some((session, event)) = stream.recv() => self.streamed(session, event),
            }
            self.act();
        }
        self.following = None;
        if self.call.is_some()
            && let Ok(done) = tokio::time::timeout(LAST_ANSWER_TIME, ended(&mut self.call)).await
        {
            self.done(done);
            for out in self.desk.take_out() {
                if let Out::Emit(to, event) = out {
                    (self.emit)(to, &event);
                }
            }
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Left { client } => self.desk.client_left(client),
            Input::Command { context, command } => self.desk.command(context, *command, now),
        }
    }

    fn streamed(&mut self, session: u64, event: StreamEvent) {
        if self.following.as_ref().is_none_or(|(present, _)| *present != session) {
            return;
        }
        let now = self.now();
        match event {
            StreamEvent::Up => self.desk.stream_up(now),
            StreamEvent::Frame(mut fields) => {
                if let Some(password) = self.desk.second_password() {
                    Hidden::password(password.expose()).frame(&mut fields);
                }
                self.desk.frame(&fields, now);
            }
            StreamEvent::Unreadable(why) => self.desk.unreadable_frame(why, now),
            StreamEvent::Down(why) => {
                tracing::warn!(why, "the stream of events is down");
                self.desk.stream_down();
            }
        }
    }

    fn done(&mut self, (transport, done): (Transport, Done)) {
        let now = self.now();
        match done {
            Done::Called { ticket, called } => {
                self.transport = Some(transport);
                self.desk.answered(ticket, called, now);
            }
            Done::LoggedIn { ticket, ended } => {
                if let Ok(login) = &ended {
                    self.follow(&transport);
                    if login.masters.is_some() {
                        let mut masters =
                            self.masters.lock().unwrap_or_else(PoisonError::into_inner);
                        masters.clone_from(&login.masters);
                    }
                }
                self.transport = Some(transport);
                self.desk.login_ended(ticket, ended, now);
            }
        }
    }

    /// Follows the stream of the session that has begun, and ends the one before.
    fn follow(&mut self, transport: &Transport) {
        let session = self.following.take().map_or(1, |(session, _)| session + 1);
        let Some(address) = transport.event_address() else { return };
        let cancel = CancellationToken::new();
        self.following = Some((session, cancel.clone().drop_guard()));
        let (sender, mut events) = mpsc::channel(FRAMES_WAITING_MAX);
        let frames = self.frames.clone();
        tokio::spawn(follow(address, sender, cancel));
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if frames.send((session, event)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Executes the output of the desk.
    fn act(&mut self) {
        let held = |desk: &Desk| desk.second_password().map(secret);
        for out in self.desk.take_out() {
            match out {
                Out::Emit(to, event) => {
                    (self.emit)(to, &event);
                    if let DeskEvent::Order(event) = *event {
                        let is_of_strategy =
                            event.origin.as_ref().is_some_and(|one| one.strategy_id().is_some());
                        match event.kind {
                            OrderEventKind::Accepted => crate::kill::here("accepted_broadcast"),
                            OrderEventKind::Filled(_) if is_of_strategy => {
                                crate::kill::here("fill_broadcast");
                            }
                            _ => {}
                        }
                    }
                }
                Out::Send { ticket, request, password, within } => {
                    let is_order = request.password_field.is_some();
                    if is_order {
                        crate::kill::here("before_send");
                    }
                    // The desk sends one request at a time.
                    let Some(mut transport) = self.transport.take() else { continue };
                    transport.also_hide(held(&self.desk));
                    self.call = Some(Box::pin(async move {
                        if is_order && crate::kill::is_at("sending") {
                            // The request leaves, and its answer is not read.
                            let password = password.as_ref().map(secret);
                            let sent = transport.call(&request, password.as_ref());
                            let _ = tokio::time::timeout(KILL_AFTER, sent).await;
                            crate::kill::here("sending");
                        }
                        let password = password
                            .map(|password| SecretString::from(password.expose().to_owned()));
                        let called = match within {
                            Some(time) => transport.call_within(&request, time).await,
                            None => transport.call(&request, password.as_ref()).await,
                        };
                        transport.also_hide(None);
                        (transport, Done::Called { ticket, called })
                    }));
                }
                Out::Login { ticket } => {
                    let Some(transport) = self.transport.take() else { continue };
                    let held = held(&self.desk);
                    let credentials = (self.credentials)(transport.addresses().login_kind());
                    self.call = Some(Box::pin(login(transport, ticket, credentials, held)));
                }
            }
        }
    }
}

/// The business date of the broker's masters, whose day begins at 05:30 in Japan.
fn business_date(now: TsNanos) -> JstDate {
    const OPENS: u64 = (5 * 60 + 30) * 60 * 1_000_000_000;
    TsNanos::from_nanos(now.nanos().saturating_sub(OPENS)).jst_date()
}

fn secret(password: &Secret) -> SecretString {
    SecretString::from(password.expose().to_owned())
}

/// Waits for the call that is under way, or for ever if there is none.
async fn ended(call: &mut Option<Call>) -> (Transport, Done) {
    match call {
        Some(future) => {
            let done = future.await;
            *call = None;
            done
        }
        None => std::future::pending().await,
    }
}

async fn login(
    mut transport: Transport,
    ticket: u64,
    credentials: Result<Credentials, String>,
    second_password: Option<SecretString>,
) -> (Transport, Done) {
    let credentials = match credentials {
        Ok(credentials) => credentials,
        Err(why) => {
            let ended = Err(LoginFailed::NoCredentials(why));
            return (transport, Done::LoggedIn { ticket, ended });
        }
    };
    transport.also_hide(second_password);
    let ended = match transport.login(&credentials).await {
        Err(failure) => Err(LoginFailed::Failed {
            why: failure.to_string(),
            has_session: transport.event_address().is_some(),
        }),
        Ok(login) => {
            let masters = transport.masters(business_date(wall_now())).await;
            let masters = masters.inspect_err(|error| {
                tracing::error!(%error, "the broker gave no masters");
            });
            let masters = masters.ok().map(Arc::new);
            let is_open = masters.as_deref().and_then(Masters::system_is_open);
            let Login { account, has_margin, changed, .. } = login;
            Ok(LoginDone { account, has_margin, changed, is_open, masters })
        }
    };
    transport.also_hide(None);
    (transport, Done::LoggedIn { ticket, ended })
}
