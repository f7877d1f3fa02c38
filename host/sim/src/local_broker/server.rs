//! The server: its listener, which can be closed, its connections, and faults of answers.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use domain::clock;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::config::Dialect;
use super::faults::{FaultKind, FaultSetting};
use super::gateway::{Cut, Effect, Gateway, Seen};
use super::limits::{
    BODY_BYTES_MAX, CONNECTIONS_MAX, CONTROL_BODY_BYTES_MAX, IDLE_TIME, REQUEST_TIME,
};
use super::refusal::{self, Refusal};
use super::rest::{self, Call, Request};
use super::{control, push};
use crate::http::{self, BadRequest, Head};

/// How long the market, or a command, waits for room on the push before it looks again.
const NO_ROOM: Duration = Duration::from_millis(1);
/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 1_024;

/// The listener, or in its place a socket that keeps the port while connections are refused.
#[derive(Debug, Default)]
struct Door {
    listener: Option<TcpListener>,
    kept: Option<TcpSocket>,
    /// Counts openings and closings, so that an old timer opens nothing.
    turn: u64,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    gateway: Mutex<Gateway>,
    door: Mutex<Door>,
    turned: Notify,
    address: SocketAddr,
    pub(crate) stop: CancellationToken,
    dialect: Dialect,
}

impl Shared {
    pub(crate) fn new(gateway: Gateway, address: SocketAddr, stop: CancellationToken) -> Self {
        let dialect = gateway.dialect;
        Self {
            gateway: Mutex::new(gateway),
            door: Mutex::default(),
            turned: Notify::new(),
            address,
            stop,
            dialect,
        }
    }

    /// The gateway. A task that failed leaves it as it is.
    pub(crate) fn gateway(&self) -> MutexGuard<'_, Gateway> {
        self.gateway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what is due on the push; waits while there is no room.
    pub(crate) fn hand_over(&self) {
        while !self.gateway().hand_over() && !self.stop.is_cancelled() {
            clock::sleep(NO_ROOM);
        }
    }

    /// Closes and opens the listener as commands asked for; what is left to do ends connections.
    pub(crate) fn turn(self: &Arc<Self>, runtime: &Handle) -> Vec<Cut> {
        let effects = std::mem::take(&mut self.gateway().effects);
        let mut cuts = Vec::new();
        for effect in effects {
            match effect {
                Effect::Cut(cut) => cuts.push(cut),
                Effect::Open => self.open(runtime, None),
                Effect::Close(milliseconds) => {
                    let turn = self.close();
                    let Some(milliseconds) = milliseconds else { continue };
                    let shared = Arc::clone(self);
                    let handle = runtime.clone();
                    runtime.spawn(async move {
                        sleep(Duration::from_millis(milliseconds)).await;
                        shared.open(&handle, Some(turn));
                    });
                }
            }
        }
        cuts
    }

    /// Refuses connections from now on.
    fn close(&self) -> u64 {
        let mut door = self.door();
        if door.listener.take().is_some() {
            // Bound and not listening: connections are refused and the port is nobody else's.
            door.kept = bind(self.address)
                .map_err(|error| tracing::warn!("cannot keep the port: {error}"))
                .ok();
        }
        door.turn += 1;
        self.turned.notify_one();
        door.turn
    }

    fn open(&self, runtime: &Handle, of_turn: Option<u64>) {
        let _entered = runtime.enter();
        let mut door = self.door();
        let is_due = of_turn.is_none_or(|turn| turn == door.turn);
        if door.listener.is_some() || !is_due {
            return;
        }
        let kept = door.kept.take().map_or_else(|| bind(self.address), Ok);
        match kept.and_then(|socket| socket.listen(BACKLOG)) {
            Ok(listener) => door.listener = Some(listener),
            Err(error) => tracing::error!("cannot listen on {} again: {error}", self.address),
        }
        door.turn += 1;
        self.turned.notify_one();
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Connections that were just ended do not keep the port from being bound.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Serves until it is told to stop.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    shared.door().listener = Some(listener);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = poll_fn(|context| match &shared.door().listener {
            Some(listener) => listener.poll_accept(context),
            None => Poll::Pending,
        });
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            () = shared.turned.notified() => continue,
            accepted = next => accepted,
        };
        let Ok((connection, _)) = accepted else {
            // The system has no more; it may have some in a moment.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            tracing::warn!("more than CONNECTIONS_MAX connections: one was closed");
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let cut = shared.gateway().http_cut.clone();
            let upgraded = tokio::select! {
                () = shared.stop.cancelled() => None,
                () = cut.cancelled() => None,
                upgraded = converse(connection, &shared) => upgraded,
            };
            if let Some((connection, head)) = upgraded {
                push::serve(connection, &head, shared).await;
            }
            drop(place);
        });
    }
}

/// Answers the requests of one connection, one after the other. Tells of one that becomes the push.
async fn converse(mut connection: TcpStream, shared: &Arc<Shared>) -> Option<(TcpStream, Head)> {
    connection.set_nodelay(true).ok();
    let mut buffer = Vec::new();
    loop {
        // A request that has begun has less time than one that has not.
        let patience = if buffer.is_empty() { IDLE_TIME } else { REQUEST_TIME };
        let head = timeout(patience, http::read_head(&mut connection, &mut buffer)).await;
        let head = match head {
            Ok(Ok(head)) => head,
            Ok(Err(BadRequest::Status(status, why))) => {
                page(&mut connection, status, why).await;
                return None;
            }
            Ok(Err(BadRequest::Gone)) | Err(_) => return None,
        };
        let closes = head.says("connection", "close");
        let is_control = head.path == "/control" || head.path.starts_with("/control/");
        let bytes_max = if is_control { CONTROL_BODY_BYTES_MAX } else { BODY_BYTES_MAX };
        let body = http::read_body(&mut connection, &mut buffer, &head, bytes_max);
        let body = match timeout(REQUEST_TIME, body).await {
            Ok(Ok(body)) => body,
            Ok(Err(BadRequest::Status(413, _))) => {
                let (status, code, text) = Refusal::TooLong.told(shared.dialect);
                write(&mut connection, status, JSON, &refusal::body(code, text)).await;
                return None;
            }
            Ok(Err(BadRequest::Status(status, why))) => {
                page(&mut connection, status, why).await;
                return None;
            }
            Ok(Err(BadRequest::Gone)) | Err(_) => return None,
        };
        let goes_on = if is_control {
            controlled(&mut connection, &head, &body, shared).await
        } else {
            match asked(&mut connection, &head, &body, shared).await {
                Next::Push => return Some((connection, head)),
                Next::Goes(goes_on) => goes_on,
            }
        };
        if closes || !goes_on {
            // What was written goes out before the end.
            connection.shutdown().await.ok();
            return None;
        }
    }
}

const JSON: &str = "application/json; charset=utf-8";

/// Writes an answer; tells whether that went well.
async fn write(connection: &mut TcpStream, status: u16, kind: &str, body: &str) -> bool {
    let text = answer_text(status, kind, body);
    connection.write_all(text.as_bytes()).await.is_ok()
}

fn answer_text(status: u16, kind: &str, body: &str) -> String {
    let words = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Simulated",
    };
    format!(
        "HTTP/1.1 {status} {words}\r\nContent-Type: {kind}\r\nServer: Microsoft-HTTPAPI/2.0\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An answer that is a page.
async fn page(connection: &mut TcpStream, status: u16, why: &str) -> bool {
    let text = format!("<html><body>{why}</body></html>\n");
    write(connection, status, "text/html; charset=utf-8", &text).await
}

/// Shows the state, or does commands.
async fn controlled(
    connection: &mut TcpStream,
    head: &Head,
    body: &[u8],
    shared: &Arc<Shared>,
) -> bool {
    // A page in a browser may not reach it: it has no origin of its own here.
    if head.header("origin").is_some() {
        page(connection, 400, "no page of a browser may control the simulator").await;
        return false;
    }
    let name = head.path.strip_prefix("/control").unwrap_or_default().trim_start_matches('/');
    let (status, answer) = match (head.method.as_str(), name) {
        ("GET", "" | "state") => (200, control::view(&shared.gateway())),
        ("GET", _) => (404, json!({ "error": "GET shows /control/state alone" })),
        ("POST", _) => match control::run(&mut shared.gateway(), name, body) {
            Ok(answer) => (200, answer),
            Err(why) => (400, json!({ "error": why })),
        },
        _ => (405, json!({ "error": "GET shows, POST commands" })),
    };
    // Whoever only looks waits for no client of the push, and does nothing that a command asked for.
    let cuts = if head.method == "POST" {
        let cuts = shared.turn(&Handle::current());
        while !shared.gateway().hand_over() {
            sleep(NO_ROOM).await;
        }
        cuts
    } else {
        Vec::new()
    };
    let goes_on = write(connection, status, JSON, &format!("{answer}\n")).await;
    let ends = !cuts.is_empty();
    if ends {
        connection.shutdown().await.ok();
    }
    for cut in cuts {
        cut.cut();
    }
    goes_on && !ends
}

/// What becomes of a connection.
enum Next {
    /// It becomes the push.
    Push,
    /// Whether it goes on.
    Goes(bool),
}

/// Answers a call.
async fn asked(connection: &mut TcpStream, head: &Head, body: &[u8], shared: &Shared) -> Next {
    let (call, symbol) = Call::of(shared.dialect, &head.path);
    let request = Request { head, body, call, symbol };
    let faults = {
        let mut gateway = shared.gateway();
        *gateway.calls.entry(call.name()).or_default() += 1;
        gateway.faults.of_call(call.name())
    };
    let fault = |name: FaultKind| faults.iter().find(|fault| fault.name == name);
    if fault(FaultKind::DropBefore).is_some() {
        return Next::Goes(false);
    }
    if call == Call::Websocket && !faults.iter().any(is_answer) && push::is_upgrade(head) {
        if let Some(fault) = fault(FaultKind::DelayAnswer) {
            sleep(fault.delay()).await;
        }
        note(shared, head, 101, None);
        return Next::Push;
    }
    let (status, code, text) = done(shared, &request, &faults);
    note(shared, head, status, code);
    if let Some(fault) = fault(FaultKind::DelayAnswer) {
        sleep(fault.delay()).await;
    }
    if fault(FaultKind::DropAnswer).is_some() {
        return Next::Goes(false);
    }
    if fault(FaultKind::Garbage).is_some() {
        return Next::Goes(page(connection, 200, "a simulated fault").await);
    }
    if fault(FaultKind::EmptyAnswer).is_some() {
        return Next::Goes(write(connection, 200, JSON, "").await);
    }
    if fault(FaultKind::HalfAnswer).is_some() {
        let whole = answer_text(status, JSON, &text).into_bytes();
        let half = whole.len() - text.len().div_ceil(2);
        connection.write_all(&whole[..half]).await.ok();
        return Next::Goes(false);
    }
    let kind = if text.starts_with('<') { "text/html; charset=utf-8" } else { JSON };
    Next::Goes(write(connection, status, kind, &text).await)
}

/// Whether a fault takes the place of what would be done.
fn is_answer(fault: &FaultSetting) -> bool {
    matches!(
        fault.name,
        FaultKind::Unauthorized
            | FaultKind::TooMany
            | FaultKind::ServerError
            | FaultKind::BadRequest
    )
}

/// Status, code and body of a call's answer.
fn done(
    shared: &Shared,
    request: &Request<'_>,
    faults: &[FaultSetting],
) -> (u16, Option<i64>, String) {
    let dialect = shared.dialect;
    let refused =
        |(status, code, text): (u16, i64, &str)| (status, Some(code), refusal::body(code, text));
    if let Some(fault) = faults.iter().find(|fault| is_answer(fault)) {
        let asked_for = |(status, code, _): (u16, i64, &'static str)| {
            let code = if fault.value == 0 { code } else { fault.value };
            refused((status, code, "指定された異常です"))
        };
        return match fault.name {
            FaultKind::Unauthorized => asked_for(Refusal::DeadToken.told(dialect)),
            FaultKind::TooMany => asked_for(Refusal::TooMany.told(dialect)),
            FaultKind::BadRequest => asked_for((400, fault.value, "")),
            _ => {
                let status = u16::try_from(fault.value).unwrap_or(500);
                (status, None, "<html><body>a simulated fault</body></html>".to_owned())
            }
        };
    }
    match rest::answer(&mut shared.gateway(), request, faults) {
        Ok(text) => (200, None, text),
        Err(refusal) => refused(refusal.told(dialect)),
    }
}

fn note(shared: &Shared, head: &Head, status: u16, code: Option<i64>) {
    let path = if head.query.is_empty() {
        head.path.clone()
    } else {
        format!("{}?{}", head.path, head.query)
    };
    let method = head.method.clone();
    shared.gateway().see(Seen { number: 0, method, path, status, code });
}
