//! Servers for the tests: a well-behaved one with rules, and one that sends any bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use http_client::{CancellationToken, Network, RequestPolicy};
use tokio::runtime::Runtime;
use update::IssueCode;
use wiremock::{Mock, MockServer, Request};

/// The key of all tests; no text may ever show it.
pub(crate) const KEY: &str = "very-secret-key-0123456789";

/// A rate that never makes a test wait.
pub(crate) const FAST: u32 = 60_000;

/// Short pauses and a short time for answers.
pub(crate) fn policy() -> RequestPolicy {
    RequestPolicy {
        request_time: Duration::from_secs(20),
        back_off: Duration::from_millis(1),
        back_off_too_many: Duration::from_millis(1),
        retry_after_max: Duration::from_secs(5),
        body_bytes_max: 1 << 20,
    }
}

pub(crate) fn network() -> Network {
    Network::new(CancellationToken::new()).unwrap()
}

pub(crate) fn date(text: &str) -> domain::JstDate {
    text.parse().unwrap()
}

pub(crate) fn code(text: &str) -> IssueCode {
    text.parse().unwrap()
}

/// An HTTP server that answers by rules.
pub(crate) struct Server {
    runtime: Runtime,
    server: MockServer,
}

impl Server {
    pub(crate) fn start(rules: Vec<Mock>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            for rule in rules {
                server.register(rule).await;
            }
            server
        });
        Self { runtime, server }
    }

    pub(crate) fn address(&self) -> String {
        self.server.uri()
    }

    /// One more rule.
    pub(crate) fn add(&self, rule: Mock) {
        self.runtime.block_on(self.server.register(rule));
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.runtime.block_on(self.server.received_requests()).unwrap()
    }

    /// Path and query of the requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        let text = |request: Request| match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        self.requests().into_iter().map(text).collect()
    }
}

/// What a [`RawServer`] does with one connection, after it has read the request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes and then nothing, without closing.
    Hang(Vec<u8>),
    /// Sends these bytes one by one, with a pause after each.
    Drip(Vec<u8>, Duration),
}

/// A server that sends what it is told, HTTP or not; one act for each connection, the last one for
/// all further ones.
pub(crate) struct RawServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl RawServer {
    pub(crate) fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        // Ends with the test's process.
        thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                let act = acts[index.min(acts.len() - 1)].clone();
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream.unwrap(), act, &seen));
            }
        });
        Self { address, requests }
    }

    /// Sends this text after a head of status 200, with its true length.
    pub(crate) fn with_body(body: &str) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        Self::start(vec![Act::Send([head.as_bytes(), body.as_bytes()].concat())])
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests came.
    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn serve(mut stream: TcpStream, act: Act, seen: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        request.push(byte[0]);
    }
    seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
    // The client may have gone away; that is its good right.
    match act {
        Act::Send(bytes) => _ = stream.write_all(&bytes),
        Act::Hang(bytes) => {
            let _ = stream.write_all(&bytes);
            // Until the client closes.
            let _ = stream.read(&mut byte);
        }
        Act::Drip(bytes, pause) => {
            for byte in bytes {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(pause);
            }
        }
    }
}

/// Binds a port and frees it again, so that nobody listens there.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
