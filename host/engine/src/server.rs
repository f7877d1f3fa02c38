//! Connections: who may connect, what a message may be, and how a connection ends (specification 4,
//! P62; specification 2, "Authentication").

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use ipc::{Command, EngineMode, Hello, SCHEMA_MAJOR, SCHEMA_MINOR, error_code};
use live::notify::Notifier;
use results::RunFolder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};
use tokio_util::sync::CancellationToken;

use crate::console::{Page, PageConnection};
use crate::handshake::{Side, is_proof, proof};
use crate::hub::ClientId;
use crate::limits::{
    CLOSE_TIME, EARLY_PINGS_MAX, ERRORS_WITHIN, HANDSHAKE_TIME, HANDSHAKES_MAX, MESSAGE_BYTES_MAX,
    NONCE_CHARS, ORDERS_END_LOOK, ORDERS_END_TIME, ORDERS_TOLD_TIME, PING_EVERY, PINGS_MAX,
    RUN_END_TIME, SILENCE_MAX, SYSTEM_HOLDS_BYTES, TRADES_AT_ONCE, TRADES_PER_REST, TRADES_REST,
};
use crate::outbox::{Closing, Outbox, Taken, Waiting};
use crate::present::session as present;
use crate::session::Shared;
use crate::session_file::{ConfigFolder, NotOurs, SessionFile};
use crate::startup::{EngineConfig, StartError};

type Socket = WebSocketStream<TcpStream>;

/// Bytes that are read and discarded of a client that goes on sending when its connection ends.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

/// Why the connection of a client ends that went without a word: it was killed, or ended so.
const LOST: &str = "lost";
/// Why a client has to go for which there is no room.
const TOO_MANY_CLIENTS: &str = "too_many_clients";
/// Characters of a client's version in the log.
const CLIENT_VERSION_SHOWN: usize = 64;

/// The answer to a client whose `Origin` may not connect.
const ORIGIN_REFUSED: &str =
    "clients with this Origin may not connect; allow it with --allow-origin, or send no Origin";
/// Characters of a client's `Origin` in the log.
const ORIGIN_SHOWN: usize = 128;

/// Where the engine listens.
#[derive(Debug, Clone, Copy)]
pub struct Listening {
    /// The port on 127.0.0.1.
    pub port: u16,
}

/// Serves clients until `shutdown`, a client's `Shutdown`, or an error. A run that is under way then is
/// ended and its results stay; all of it takes at most 5 seconds.
///
/// # Errors
/// [`StartError`]; nothing was served.
pub fn serve(
    config: EngineConfig,
    shutdown: CancellationToken,
    listening: impl FnOnce(Listening),
) -> Result<(), StartError> {
    if config.mode == EngineMode::Replay && !config.data.as_ref().is_some_and(|data| data.is_dir())
    {
        return Err(StartError::NoData(config.data));
    }
    for (what, folder) in [("config", &config.config_dir), ("cache", &config.cache_dir)] {
        check_writable(folder).map_err(|source| StartError::Folder {
            what,
            folder: folder.clone(),
            source,
        })?;
    }
    let config_folder = ConfigFolder::take(&config.config_dir).map_err(|error| match error {
        NotOurs::Running(port) => StartError::Running { port, folder: config.config_dir.clone() },
        NotOurs::System(source) => config_failed(&config.config_dir, source),
    })?;
    // What engines have left that were killed in a run; where there are no runs yet there is nothing.
    let _ = RunFolder::remove_unfinished(&config.cache_dir.join(crate::start::RUNS));
    let (port, token) = (config.port, config.token.clone());
    let config_dir = config.config_dir.clone();
    let notifier = Notifier::new(config.notify_command.clone())?;
    let shared = Arc::new(Shared::new(config, notifier, shutdown));
    // What the log of orders says is restored before anybody can ask for it.
    crate::live::start(&shared)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| StartError::Port { port, source })?;
        let port = listener.local_addr()?.port();
        let _ = shared.pages.ipc_port.set(port);
        let session_file = SessionFile::write(&config_folder, port, &token)
            .map_err(|source| config_failed(&config_dir, source))?;
        listening(Listening { port });
        tracing::info!(port, "listening");
        accept(&listener, &shared).await;
        drop(listener);
        end(&shared).await;
        drop(session_file);
        Ok(())
    });
    // A thread that does not come back, as one that reads a disk, does not hold the end up.
    runtime.shutdown_background();
    served
}

/// The config folder cannot be written.
fn config_failed(folder: &Path, source: io::Error) -> StartError {
    StartError::Folder { what: "config", folder: folder.to_owned(), source }
}

/// Whether files can be made in a folder, which is made where it is missing.
fn check_writable(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    atomic_file::AtomicFile::create_private_in(folder).map(drop)
}

/// Takes connections until the end.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let greetings = Arc::new(Greetings::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.shutdown.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, for one; others may be given back meanwhile.
                tracing::warn!(error = %error, "the engine could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        tokio::spawn(connection(stream, Arc::clone(shared), greetings.begin()));
    }
}

/// Connections that have not shown yet that they may connect. Where there are too many, the oldest gives way
/// to the newest, so that silent connections block no client.
#[derive(Debug, Default)]
struct Greetings(Mutex<BTreeMap<u64, CancellationToken>>);

/// One of them, until it is dropped.
#[derive(Debug)]
struct Greeting {
    all: Arc<Greetings>,
    number: u64,
    /// Another one has taken its place.
    given_way: CancellationToken,
}

impl Greetings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> Greeting {
        let mut all = self.all();
        if all.len() >= HANDSHAKES_MAX
            && let Some((_, oldest)) = all.pop_first()
        {
            oldest.cancel();
            tracing::warn!("too many connections without a Hello; the engine closed the oldest");
        }
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        let given_way = CancellationToken::new();
        all.insert(number, given_way.clone());
        Greeting { all: Arc::clone(self), number, given_way }
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        let mut all = self.all.all();
        // One that has given way is gone already.
        if !self.given_way.is_cancelled() {
            all.remove(&self.number);
        }
    }
}

/// Ends the run, closes the connections, and waits for them, as long as there is time.
async fn end(shared: &Arc<Shared>) {
    let is_trading = {
        let mut core = shared.lock();
        let is_trading = core.is_trading();
        core.stop_run(None);
        is_trading
    };
    let quiet = || async {
        while !shared.lock().is_quiet() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let venues = Arc::clone(shared);
    let stopped = tokio::task::spawn_blocking(move || {
        venues.live.stop(|| {
            // The strategy's orders are cancelled while the desk is there. What the broker has not answered by then is
            // told as working (P127).
            let watch = Stopwatch::start();
            let ends_within = |time| {
                while !venues.lock().is_quiet() && watch.elapsed() < time {
                    domain::clock::sleep(ORDERS_END_LOOK);
                }
                venues.lock().is_quiet()
            };
            if is_trading && !ends_within(ORDERS_END_TIME) {
                venues.live.ask_what_is_left();
                ends_within(ORDERS_END_TIME + ORDERS_TOLD_TIME);
            }
        });
    });
    let ended = async {
        let _ = stopped.await;
        shared.live.desk_is_gone();
        quiet().await;
    };
    if timeout(RUN_END_TIME, ended).await.is_err() {
        tracing::warn!(
            "the work under way did not end in time; the engine ends without its result"
        );
    }
    shared.lock().hub.close_all(1001, "the engine ends");
    let left = async {
        while shared.lock().hub.count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // What a person has to know goes out meanwhile.
    let notifier = shared.notifier.clone();
    let notified = tokio::task::spawn_blocking(move || notifier.finish(CLOSE_TIME));
    let _ = timeout(CLOSE_TIME, left).await;
    let _ = notified.await;
}

/// One connection from its begin to its end.
async fn connection(stream: TcpStream, shared: Arc<Shared>, greeting: Greeting) {
    let _ = stream.set_nodelay(true);
    let greeted = tokio::select! {
        greeted = greet(stream, &shared) => greeted,
        () = greeting.given_way.cancelled() => return,
    };
    let Some((socket, hello, page)) = greeted else { return };
    drop(greeting);
    let outbox = Arc::new(Outbox::new(shared.started));
    let mut of_page = None;
    if let Some(page) = &page {
        of_page = PageConnection::begin(&shared.pages.sessions, page);
        if of_page.is_none() {
            return close(socket, 1008, error_code::AUTH_FAILED).await;
        }
    }
    let joined = shared.join(&outbox, page.clone(), |state| {
        present::ready(&shared, hello.proof.clone(), page.as_ref(), state)
    });
    let Some(client) = joined else {
        return close(socket, 1008, TOO_MANY_CLIENTS).await;
    };
    let version: String = hello.client_version.chars().take(CLIENT_VERSION_SHOWN).collect();
    tracing::info!(version = %version.escape_debug(), "a client has connected");
    let done = CancellationToken::new();
    let (sink, source) = socket.split();
    let writer = Writer { shared: Arc::clone(&shared), client, outbox: Arc::clone(&outbox) };
    let mut writer = tokio::spawn(writer.write(sink, done.clone()));
    let source = read(source, &shared, (client, page.as_ref()), &outbox, &done).await;
    // What waits is written, as long as the client takes it.
    outbox.close(Closing { code: 1000, reason: String::new(), at_once: false });
    let written = match timeout(CLOSE_TIME, &mut writer).await {
        Ok(written) => written,
        Err(_) => {
            outbox.close(Closing { code: 1008, reason: "too_slow".to_owned(), at_once: true });
            writer.await
        }
    };
    if let Ok(sink) = written
        && let Ok(socket) = source.reunite(sink)
    {
        discard_rest(socket).await;
    }
    shared.leave(client);
    drop(of_page);
    outbox.log_waits();
    match outbox.closing() {
        // Neither who leaves nor who sees the engine end was sent away.
        Some(Closing { code, reason, .. }) if ![1000, 1001].contains(&code) => {
            tracing::warn!(code, reason, "the engine disconnects a client");
        }
        Some(Closing { reason, .. }) if reason == LOST => {
            tracing::info!("the connection of a client was lost");
        }
        _ => tracing::info!("a client has left"),
    }
}

/// The client's first message, checked; none where it may not connect. It gets the reason.
async fn greet(stream: TcpStream, shared: &Shared) -> Option<(Socket, Hello, Option<Page>)> {
    let since = shared.started.elapsed();
    let time_left =
        || HANDSHAKE_TIME.saturating_sub(shared.started.elapsed().saturating_sub(since));
    let origins = &shared.config.allowed_origins;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let console = shared.pages.origin();
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let check = |request: &Request, response: Response| match request.headers().get("origin") {
        Some(origin)
            if !is_loopback(request)
                || !origins
                    .iter()
                    .chain(&console)
                    .any(|allowed| allowed.as_bytes() == origin.as_bytes()) =>
        {
            let shown = String::from_utf8_lossy(origin.as_bytes());
            let shown: String = shown.chars().take(ORIGIN_SHOWN).collect();
            tracing::warn!(origin = %shown.escape_debug(), "{ORIGIN_REFUSED}");
            Err(refused_origin())
        }
        _ => Ok(response),
    };
    let upgrade = accept_hdr_async_with_config(stream, check, Some(config));
    let mut socket = timeout(time_left(), upgrade).await.ok()?.ok()?;
    let server_nonce = web_console::random_hex();
    let challenge = Message::Text(crate::hub::text(&present::challenge(&server_nonce)));
    timeout(time_left(), socket.send(challenge)).await.ok()?.ok()?;
    let mut pings = 0;
    let text = loop {
        let Ok(message) = timeout(time_left(), socket.next()).await else {
            let text = format!("no Hello came within {} s", HANDSHAKE_TIME.as_secs());
            refuse(socket, error_code::HANDSHAKE_TIMEOUT, &text).await;
            return None;
        };
        match message {
            Some(Ok(Message::Text(text))) => break text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) if pings < EARLY_PINGS_MAX => pings += 1,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return None,
            Some(Ok(Message::Close(_))) | None => return None,
            Some(Err(error)) if is_lost(&error) => return None,
            Some(other) => {
                let (code, reason) = wrong_message(&other);
                close(socket, code, reason).await;
                return None;
            }
        }
    };
    let hello = match crate::decode::decode(&text) {
        Ok(Command::Hello(hello)) => hello,
        Ok(_) => {
            let text = "the first message must be Hello";
            refuse(socket, error_code::AUTH_FAILED, text).await;
            return None;
        }
        Err(wrong) => {
            // A fault of the greeting, whatever the message was to be.
            refuse(socket, error_code::VALIDATION_ERROR, &wrong.message()).await;
            return None;
        }
    };
    if !NONCE_CHARS.contains(&hello.client_nonce.chars().count()) {
        let (least, most) = (NONCE_CHARS.start(), NONCE_CHARS.end());
        let text = format!(
            "CLIENT_NONCE: it needs {least} to {most} characters; send 32 random bytes in hexadecimal"
        );
        refuse(socket, error_code::VALIDATION_ERROR, &text).await;
        return None;
    }
    let mode = shared.config.mode.as_str();
    let session = match &hello.session_id {
        None => None,
        Some(session_id) => {
            let Some(session) = shared.pages.sessions.find(session_id) else {
                let text = "the session of this page has ended; open the console again";
                refuse(socket, error_code::AUTH_FAILED, text).await;
                return None;
            };
            Some(session)
        }
    };
    let token = session.as_ref().map_or(&shared.config.token, |session| &session.key);
    let Hello { client_nonce, proof: sent, .. } = &hello;
    // A client without the token learns nothing else.
    if !is_proof(token, Side::Client, &server_nonce, client_nonce, &hello.mode, sent) {
        let text = "the proof is wrong: check the token, both nonces and the mode";
        refuse(socket, error_code::AUTH_FAILED, text).await;
        return None;
    }
    if hello.schema_major != SCHEMA_MAJOR {
        let text = format!(
            "the client's messages have major version {}, the engine's {SCHEMA_MAJOR}; update the \
             older program",
            hello.schema_major
        );
        refuse(socket, error_code::SCHEMA_MISMATCH, &text).await;
        return None;
    }
    if hello.mode != mode {
        let text = format!(
            "the client wants mode `{}`, the engine has `{mode}`; start an engine with the mode \
             that you want",
            hello.mode
        );
        refuse(socket, error_code::MODE_MISMATCH, &text).await;
        return None;
    }
    if hello.schema_minor != SCHEMA_MINOR {
        let (clients, own) = (hello.schema_minor, SCHEMA_MINOR);
        tracing::warn!(clients, own, "a client has messages of another minor version");
    }
    let proof = proof(token, Side::Server, &server_nonce, &hello.client_nonce, &hello.mode);
    Some((socket, Hello { proof, ..hello }, session.map(Page::from)))
}

/// Whether a browser was told to come here by an address of this machine, not by a name that points to it.
fn is_loopback(request: &Request) -> bool {
    let host = request.headers().get("host").and_then(|host| host.to_str().ok());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    name.is_some_and(|name| matches!(name, "127.0.0.1" | "localhost" | "[::1]"))
}

/// The answer to an `Origin` that may not connect. Its length lets a client that keeps the connection see its end.
fn refused_origin() -> ErrorResponse {
    let mut refused = ErrorResponse::new(Some(ORIGIN_REFUSED.to_owned()));
    *refused.status_mut() = StatusCode::FORBIDDEN;
    let headers = refused.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(ORIGIN_REFUSED.len()));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    refused
}

/// Refuses a connection with the reason.
async fn refuse(mut socket: Socket, code: &str, message: &str) {
    tracing::warn!(code, "the engine refuses a client");
    let event = present::engine_error(None, code, message, None);
    let _ = socket.send(Message::Text(crate::hub::text(&event))).await;
    close(socket, 1008, code).await;
}

fn close_frame(code: u16, reason: &str) -> Message {
    Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
}

/// Ends a connection of which nothing else is running.
async fn close(mut socket: Socket, code: u16, reason: &str) {
    let _ = timeout(CLOSE_TIME, socket.send(close_frame(code, reason))).await;
    discard_rest(socket).await;
}

/// Reads what a client still sends. A connection that is dropped before is reset, and the client may
/// never see why.
async fn discard_rest(socket: Socket) {
    let mut stream = socket.into_inner();
    // The client sees the end at once, and closes its side.
    let _ = stream.shutdown().await;
    let rest = async {
        let mut buffer = vec![0; 64 << 10];
        let mut read = 0;
        while read < DISCARDED_BYTES_MAX {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(bytes) => read += bytes,
            }
        }
    };
    let _ = timeout(CLOSE_TIME, rest).await;
}

/// The close code of what is no text, with a reason.
fn wrong_message(message: &Result<Message, WsError>) -> (u16, &'static str) {
    match message {
        Ok(_) => (1003, "only_text"),
        Err(WsError::Utf8(_)) => (1007, "no_utf8"),
        Err(WsError::Capacity(_)) => (1009, "too_long"),
        Err(_) => (1002, "protocol_error"),
    }
}

/// Whether a connection has ended without the words with which one ends.
const fn is_lost(error: &WsError) -> bool {
    matches!(error, WsError::Io(_) | WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake))
}

/// Reads a client's messages until it goes or has to go.
async fn read(
    mut source: SplitStream<Socket>,
    shared: &Arc<Shared>,
    (client, page): (ClientId, Option<&Page>),
    outbox: &Outbox,
    done: &CancellationToken,
) -> SplitStream<Socket> {
    let (mut pings, mut since) = (0_u32, shared.started.elapsed());
    // The first messages say nothing of how the client reads.
    let mut written = outbox.bytes_queued();
    loop {
        written = written.max(outbox.bytes_written());
        let message = tokio::select! {
            message = timeout(SILENCE_MAX, source.next()) => message,
            () = done.cancelled() => return source,
        };
        let Ok(message) = message else {
            // A slow reader may not have come to the ping. A small number of written bytes may still be in the
            // buffers of the system.
            if outbox.bytes_written().saturating_sub(written) > SYSTEM_HOLDS_BYTES {
                continue;
            }
            let reason = "ping_timeout".to_owned();
            outbox.close(Closing { code: 1008, reason, at_once: true });
            return source;
        };
        match message {
            Some(Ok(Message::Text(text))) => {
                shared.handle(client, page, &text);
                if outbox.is_closing() {
                    return source;
                }
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                let now = shared.started.elapsed();
                if now.saturating_sub(since) > ERRORS_WITHIN {
                    (pings, since) = (0, now);
                }
                pings += 1;
                if pings > PINGS_MAX {
                    let reason = "too_many_pings".to_owned();
                    outbox.close(Closing { code: 1008, reason, at_once: true });
                    return source;
                }
            }
            Some(Ok(Message::Close(_)) | Err(WsError::ConnectionClosed)) | None => {
                outbox.close(Closing { code: 1000, reason: String::new(), at_once: true });
                return source;
            }
            Some(Err(error)) if is_lost(&error) => {
                outbox.close(Closing { code: 1000, reason: LOST.to_owned(), at_once: true });
                return source;
            }
            Some(other) => {
                let (code, reason) = wrong_message(&other);
                let reason = reason.to_owned();
                outbox.close(Closing { code, reason, at_once: false });
                return source;
            }
        }
    }
}

/// What writes to one client.
struct Writer {
    shared: Arc<Shared>,
    client: ClientId,
    outbox: Arc<Outbox>,
}

impl Writer {
    /// Writes what waits for the client, until its connection ends.
    async fn write(
        self,
        mut sink: SplitSink<Socket, Message>,
        done: CancellationToken,
    ) -> SplitSink<Socket, Message> {
        let Self { shared, client, outbox } = self;
        let mut pings = tokio::time::interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, and the client has just sent its Hello.
        pings.tick().await;
        let mut pace = Pace::new(shared.started);
        loop {
            if outbox.wants_list() {
                shared.lock().continue_list(client);
            }
            let messages = match outbox.take() {
                Taken::Nothing => tokio::select! {
                    () = outbox.wake.notified() => continue,
                    _ = pings.tick() => vec![Message::Ping(Bytes::new())],
                },
                Taken::Close(Closing { code, reason, .. }) => {
                    let _ = timeout(CLOSE_TIME, sink.send(close_frame(code, &reason))).await;
                    break;
                }
                Taken::Messages(messages) => {
                    pace.take(&messages);
                    let is_due = pings.tick().now_or_never().is_some();
                    let ping = is_due.then(|| Message::Ping(Bytes::new()));
                    let texts = messages.into_iter().map(|one| Message::Text(one.into_text()));
                    ping.into_iter().chain(texts).collect()
                }
            };
            let written = async {
                for message in messages {
                    sink.feed(message).await?;
                }
                sink.flush().await.map(|()| outbox.written())
            };
            let went_well = tokio::select! {
                written = written => written.is_ok(),
                () = outbox.hurry.notified() => {
                    // What is half written stays so; only a client that reads sees why.
                    true
                }
            };
            if !went_well {
                break;
            }
            if pace.is_to_rest() {
                outbox.rest().await;
            }
        }
        done.cancel();
        sink
    }
}

/// How many messages of trades a client was sent lately: a few go out at once; of a dense stream those that
/// come close to each other go out together.
struct Pace {
    clock: Stopwatch,
    /// Messages that may go out at once, and when they were counted last.
    left: u32,
    counted: Duration,
    only_trades: bool,
}

impl Pace {
    const fn new(clock: Stopwatch) -> Self {
        Self { clock, left: TRADES_AT_ONCE, counted: Duration::ZERO, only_trades: false }
    }

    fn take(&mut self, messages: &[Waiting]) {
        self.only_trades = messages.iter().all(Waiting::is_trades);
        let trades = messages.iter().filter(|waiting| waiting.is_trades()).count();
        let now = self.clock.elapsed();
        let rests = now.saturating_sub(self.counted).as_nanos() / TRADES_REST.as_nanos();
        if rests > 0 {
            self.counted = now;
            let more = u32::try_from(rests).unwrap_or(u32::MAX).saturating_mul(TRADES_PER_REST);
            self.left = self.left.saturating_add(more).min(TRADES_AT_ONCE);
        }
        self.left = self.left.saturating_sub(u32::try_from(trades).unwrap_or(u32::MAX));
    }

    const fn is_to_rest(&self) -> bool {
        self.only_trades && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_origin_is_answered_with_its_length() {
        let refused = refused_origin();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let body = refused.body().as_deref().unwrap();
        let length = refused.headers()[CONTENT_LENGTH].to_str().unwrap();
        assert_eq!(length, body.len().to_string());
        assert!(body.contains("--allow-origin") && body.contains("no Origin"), "{body}");
    }
}
