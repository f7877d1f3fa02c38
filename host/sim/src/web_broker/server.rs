//! The server: connections, doors, and faults of answers.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::clock;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::answers::Answer;
use super::broker::{Broker, Seen};
use super::config::Form;
use super::faults::{FaultKind, FaultSetting};
use super::limits::{CONNECTIONS_MAX, CONTROL_BODY_BYTES_MAX, IDLE_TIME, REQUEST_TIME};
use super::refusal::Refusal;
use super::request::Request;
use super::wire;
use super::{control, stream, times};
use crate::http::{self, BadRequest, Head};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    broker: Mutex<Broker>,
    pub(crate) changed: watch::Receiver<u64>,
    pub(crate) stop: CancellationToken,
    pub(crate) form: Form,
}

impl Shared {
    pub(crate) fn new(
        broker: Broker,
        changed: watch::Receiver<u64>,
        stop: CancellationToken,
    ) -> Self {
        let form = broker.config.form;
        Self { broker: Mutex::new(broker), changed, stop, form }
    }

    /// The broker. A task that failed leaves it as it is.
    pub(crate) fn broker(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until it is told to stop.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
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
            let stop = shared.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = converse(connection, shared) => {}
            }
            drop(place);
        });
    }
}

/// Answers the requests of one connection, one after the other.
async fn converse(mut connection: TcpStream, shared: Arc<Shared>) {
    connection.set_nodelay(true).ok();
    let mut buffer = Vec::new();
    loop {
        // A request that has begun has less time than one that has not.
        let patience = if buffer.is_empty() { IDLE_TIME } else { REQUEST_TIME };
        let head = timeout(patience, http::read_head(&mut connection, &mut buffer)).await;
        let head = match head {
            Ok(Ok(head)) => head,
            Ok(Err(BadRequest::Status(status, why))) => {
                plain(&mut connection, status, why).await;
                return;
            }
            Ok(Err(BadRequest::Gone)) | Err(_) => return,
        };
        let closes = head.says("connection", "close");
        let goes_on = if head.path == "/control" {
            controlled(&mut connection, &mut buffer, &head, &shared).await
        } else {
            match door_of(shared.form, &head.path) {
                Some(("event_ws", token)) => {
                    let token = token.to_owned();
                    return stream::upgrade(connection, &head, &token, shared).await;
                }
                Some((door, token)) if head.method == "GET" => {
                    asked(&mut connection, &head, door, token, &shared).await
                }
                Some(_) => plain(&mut connection, 405, "requests are made with GET").await,
                None => plain(&mut connection, 404, "there is nothing at this address").await,
            }
        };
        if closes || !goes_on {
            // What was written goes out before the end.
            connection.shutdown().await.ok();
            return;
        }
    }
}

/// The door that a path leads to, and the part of it that nobody can guess.
fn door_of(form: Form, path: &str) -> Option<(&'static str, &str)> {
    let rest = path.strip_prefix(form.root())?.strip_prefix('/')?;
    if rest == "auth/" {
        return Some(("auth", ""));
    }
    let (door, token) = rest.split_once('/')?;
    let known =
        ["request", "master", "price", "event_ws"].into_iter().find(|known| *known == door)?;
    let token = token.strip_suffix('/')?;
    (!token.contains('/')).then_some((known, token))
}

fn status_line(status: u16) -> String {
    let text = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Simulated",
    };
    format!("HTTP/1.1 {status} {text}\r\n")
}

/// A text as an answer; tells whether the connection goes on.
pub(crate) async fn plain(connection: &mut TcpStream, status: u16, text: &str) -> bool {
    let head = format!(
        "{}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        status_line(status),
        text.len() + 1
    );
    let all = format!("{head}{text}\n");
    connection.write_all(all.as_bytes()).await.is_ok() && status < 400
}

async fn controlled(
    connection: &mut TcpStream,
    buffer: &mut Vec<u8>,
    head: &Head,
    shared: &Shared,
) -> bool {
    // A page in a browser may not reach it: it has no origin of its own here.
    if head.header("origin").is_some() {
        return plain(connection, 400, "no page of a browser may control the simulator").await;
    }
    let body = http::read_body(connection, buffer, head, CONTROL_BODY_BYTES_MAX);
    let body = match timeout(REQUEST_TIME, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(BadRequest::Status(status, why))) => return plain(connection, status, why).await,
        Ok(Err(BadRequest::Gone)) | Err(_) => return false,
    };
    let (status, answer) = match head.method.as_str() {
        "GET" => (200, control::view(&shared.broker())),
        "POST" => match control::run(&mut shared.broker(), &body) {
            Ok(answer) => (200, answer),
            Err(why) => (400, json!({ "error": why })),
        },
        _ => return plain(connection, 405, "GET shows, POST commands").await,
    };
    let text = format!("{answer}\n");
    let head = format!(
        "{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        status_line(status),
        text.len()
    );
    connection.write_all(format!("{head}{text}").as_bytes()).await.is_ok()
}

/// A request under way; counted until it is answered.
struct InFlight<'a> {
    shared: &'a Shared,
    counts: bool,
    number: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.counts {
            self.shared.broker().counts.in_flight -= 1;
        }
    }
}

/// Answers a request; tells whether the connection goes on.
async fn asked(
    connection: &mut TcpStream,
    head: &Head,
    door: &'static str,
    token: &str,
    shared: &Shared,
) -> bool {
    let read = wire::decode_query(&head.query).map_err(str::to_owned);
    let read = read.and_then(|text| Request::parse(&text));
    let (request, wrong) = match read {
        Ok(request) => (request, None),
        Err(why) => (Request::default(), Some(why)),
    };
    let id = request.id().to_owned();
    let (flight, faults) = arrive(shared, head, door, &request, &id);
    let fault = |name: FaultKind| faults.iter().find(|fault| fault.name == name);
    if let Some(fault) = fault(FaultKind::DelayRequest) {
        sleep(fault.delay()).await;
    }
    if fault(FaultKind::DropBefore).is_some() {
        shared.broker().outcome(flight.number, "dropped before");
        return false;
    }
    if let Some(fault) = fault(FaultKind::HttpStatus) {
        shared.broker().outcome(flight.number, format!("status {}", fault.value));
        let status = u16::try_from(fault.value).unwrap_or(503);
        plain(connection, status, "a simulated fault").await;
        return true;
    }
    let has_stream = shared.form != Form::V4r10;
    if id == "CLMEventDownload" && door == "master" && wrong.is_none() && has_stream {
        return download(connection, shared, token, &request, &flight).await;
    }
    let answer = done(shared, door, token, &request, wrong, &faults, flight.number);
    if fault(FaultKind::DropAnswer).is_some() {
        shared.broker().release();
        return false;
    }
    if let Some(fault) = fault(FaultKind::DelayAnswer) {
        shared.broker().release();
        sleep(fault.delay()).await;
    } else if fault(FaultKind::NoticesFirst).is_some() {
        shared.broker().release();
        sleep(Duration::from_millis(100)).await;
    }
    let is_pretty = request.text("sJsonOfmt").parse::<u32>().is_ok_and(|bits| bits & 1 != 0);
    let goes_on = write_answer(connection, head, shared, &answer, is_pretty, &faults).await;
    drop(flight);
    shared.broker().release();
    goes_on
}

/// Puts a request down, and takes the faults that it meets.
fn arrive<'a>(
    shared: &'a Shared,
    head: &Head,
    door: &'static str,
    request: &Request,
    id: &str,
) -> (InFlight<'a>, Vec<FaultSetting>) {
    let mut broker = shared.broker();
    let counts = id != "CLMEventDownload";
    let overlaps = counts && broker.counts.in_flight > 0;
    broker.counts.overlaps += u64::from(overlaps);
    broker.counts.in_flight += u64::from(counts);
    let is_login = door == "auth";
    let secrets = [
        ("sUserId", request.text("sUserId") == broker.config.user),
        ("sAuthId", is_login && broker.is_auth_id(request)),
        ("sPassword", is_login && broker.is_login_password(request)),
        ("sSecondPassword", broker.is_second_password(request)),
    ];
    let number = broker.see(Seen {
        number: 0,
        at: times::milli(clock::wall_now()),
        door,
        fields: request.told(&secrets),
        left_plain: wire::left_plain(&head.query),
        overlaps,
        outcome: String::new(),
    });
    let faults = broker.faults.of_request(id);
    drop(broker);
    (InFlight { shared, counts, number }, faults)
}

/// Does what a request asks for.
fn done(
    shared: &Shared,
    door: &'static str,
    token: &str,
    request: &Request,
    wrong: Option<String>,
    faults: &[FaultSetting],
    number: u64,
) -> Answer {
    let mut broker = shared.broker();
    let fault = |name: FaultKind| faults.iter().find(|fault| fault.name == name);
    let id = request.id();
    let mut answer = if let Some(why) = wrong {
        broker.refused(request, id, &Refusal::Parameter(why))
    } else if let Some(fault) = fault(FaultKind::Errno) {
        broker.envelope(request, id, fault.value, "a simulated fault.")
    } else if let Some(fault) = fault(FaultKind::Result) {
        let code = u32::try_from(fault.value).unwrap_or_default();
        let id = if door == "auth" { "CLMAuthLoginAck" } else { id };
        broker.refused(request, id, &Refusal::Business(code, "指定された異常です"))
    } else if door == "auth" {
        broker.login(request)
    } else {
        broker.answer(door, token, request)
    };
    if let Some(fault) = fault(FaultKind::ErrnoAfter) {
        answer = broker.envelope(request, id, fault.value, "a simulated fault.");
    }
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let (errno, result) = (text("p_errno"), text("sResultCode"));
    let outcome = match (errno, result) {
        ("0", "0" | "") => "done".to_owned(),
        ("0", code) => format!("result {code}"),
        (errno, _) => format!("errno {errno}"),
    };
    broker.outcome(number, outcome);
    for fault in faults {
        broker.outcome(number, format!("fault {}", fault.name.name()));
    }
    answer
}

async fn write_answer(
    connection: &mut TcpStream,
    head: &Head,
    shared: &Shared,
    answer: &Answer,
    is_pretty: bool,
    faults: &[FaultSetting],
) -> bool {
    let has = |name: FaultKind| faults.iter().any(|fault| fault.name == name);
    let text = if is_pretty {
        serde_json::to_string_pretty(answer).unwrap_or_default()
    } else {
        serde_json::to_string(answer).unwrap_or_default()
    };
    let mut body = match shared.form {
        Form::Spec => wire::percent_encoded(&text),
        Form::V4r8 | Form::V4r10 => wire::shift_jis(&text),
    };
    if has(FaultKind::Garbage) {
        body = vec![0xff, 0x00, 0x81, b'<', b'}', 0xfe, b'%', b'7', 0x80];
    }
    if has(FaultKind::HugeAnswer) {
        body = vec![b' '; 64 * 1024 * 1024];
    }
    let packs = shared.broker().faults.has(FaultKind::Gzip) && head.says("accept-encoding", "gzip");
    let mut encoding = "";
    if packs {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        if encoder.write_all(&body).is_ok()
            && let Ok(packed) = encoder.finish()
        {
            (body, encoding) = (packed, "Content-Encoding: gzip\r\n");
        }
    }
    let head = format!(
        "{}Content-Type: text/html; charset=Shift_JIS\r\n{encoding}Content-Length: {}\r\n\r\n",
        status_line(200),
        body.len()
    );
    let half = has(FaultKind::HalfAnswer);
    if half {
        body.truncate(body.len() / 2);
    }
    connection.write_all(head.as_bytes()).await.is_ok()
        && connection.write_all(&body).await.is_ok()
        && !half
}

/// The stream of master records. After the last one the connection stays open until the client leaves.
async fn download(
    connection: &mut TcpStream,
    shared: &Shared,
    token: &str,
    request: &Request,
    flight: &InFlight<'_>,
) -> bool {
    let entered = {
        let mut broker = shared.broker();
        let entered = broker.enter(token, request, false);
        broker.outcome(flight.number, if entered.is_ok() { "download" } else { "refused" });
        match entered {
            Ok(()) => Ok((broker.master_records(), broker.faults.has(FaultKind::TruncatedMaster))),
            Err(refusal) => Err(broker.refused(request, request.id(), &refusal)),
        }
    };
    let (records, is_cut) = match entered {
        Ok(entered) => entered,
        Err(answer) => {
            let body = serde_json::to_string(&answer).unwrap_or_default();
            return plain(connection, 200, &body).await;
        }
    };
    let mut bytes = Vec::new();
    for record in &records {
        // Records are never percent-encoded: they are told apart by their braces.
        bytes.extend(wire::shift_jis(&serde_json::to_string(record).unwrap_or_default()));
    }
    if is_cut {
        bytes.truncate(bytes.len() * 2 / 3);
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=Shift_JIS\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    if connection.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    // Chunks of odd sizes: characters and records lie across their edges.
    for chunk in bytes.chunks(1_021) {
        let size = format!("{:x}\r\n", chunk.len());
        for part in [size.as_bytes(), chunk, b"\r\n"] {
            if connection.write_all(part).await.is_err() {
                return false;
            }
        }
    }
    if !is_cut {
        let mut rest = Vec::new();
        timeout(REQUEST_TIME, http::read_head(connection, &mut rest)).await.ok();
    }
    false
}
