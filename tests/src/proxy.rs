//! A proxy before a service, which can cut, change, slow down or refuse answers: for tests of who asks
//! over a network that is not good.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use domain::clock::sleep;

use crate::http::{Connection, Reply};

/// What becomes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tamper {
    /// It is handed on.
    Pass,
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    /// This byte of the body is another one.
    Flip(usize),
    /// The body goes on for ever after its end.
    Endless,
    /// So many bytes of the body are sent at a time, with a pause between.
    Slow(usize),
    /// Another status and body.
    Instead(u16, Vec<u8>),
    /// The connection ends without an answer.
    Refuse,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    pub path: String,
    /// Its `Range`.
    pub range: Option<String>,
    /// Its `If-Range`.
    pub if_range: Option<String>,
    /// The status of the answer before it was tampered with; 0 where there was none.
    pub status: u16,
}

/// Headers of a request that are not handed on. Answers come as they are, so that what is done to them
/// shows.
const UNSENT: [&str; 3] = ["host", "connection", "accept-encoding"];

type Rule = dyn FnMut(&str) -> Tamper + Send;

struct Shared {
    target: Mutex<SocketAddr>,
    rule: Mutex<Box<Rule>>,
    seen: Mutex<Vec<Seen>>,
}

/// A proxy on this machine; it ends with the test's process.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// Starts a proxy before a service, which hands everything on.
    ///
    /// # Panics
    /// When the system has no socket for it.
    #[must_use]
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            rule: Mutex::new(Box::new(|_: &str| Tamper::Pass)),
            seen: Mutex::default(),
        });
        let used = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&used);
                // Who goes away is not waited for.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Leads to another service from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        *locked(&self.shared.target) = target;
    }

    /// Asks this for every request from now on, by its path.
    pub fn tamper(&self, rule: impl FnMut(&str) -> Tamper + Send + 'static) {
        *locked(&self.shared.rule) = Box::new(rule);
    }

    /// What was asked since the last time.
    #[must_use]
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut locked(&self.shared.seen))
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let head = lines.first().cloned().unwrap_or_default();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<(&str, &str)> =
        lines.iter().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        let found = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| (*value).to_owned())
    };
    let (range, if_range) = (header("range"), header("if-range"));
    let tamper = locked(&shared.rule)(&path);
    let target = *locked(&shared.target);
    let sent: Vec<(&str, &str)> = headers
        .iter()
        .filter(|(name, _)| !UNSENT.contains(&name.to_ascii_lowercase().as_str()))
        .copied()
        .collect();
    let reply = match &tamper {
        Tamper::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => asked(target, &format!("GET {path}"), &sent),
    };
    let status = reply.as_ref().map_or(0, |reply| reply.status);
    locked(&shared.seen).push(Seen { path, range, if_range, status });
    answer(stream.get_mut(), reply?, tamper)
}

fn asked(target: SocketAddr, head: &str, headers: &[(&str, &str)]) -> io::Result<Reply> {
    let mut connection = Connection::open(target)?;
    connection.send(head, headers, &[])?;
    connection.receive()
}

fn answer(out: &mut TcpStream, mut reply: Reply, tamper: Tamper) -> io::Result<()> {
    if let Tamper::Instead(status, body) = &tamper {
        (reply.status, reply.body) = (*status, body.clone());
        // It is not what the service has tagged.
        reply.headers.retain(|(name, _)| name != "etag");
    }
    if let Tamper::Flip(at) = tamper
        && let Some(byte) = reply.body.get_mut(at)
    {
        *byte ^= 0x55;
    }
    let mut head = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        if !["content-length", "transfer-encoding", "connection"].contains(&name.as_str()) {
            head += &format!("{name}: {value}\r\n");
        }
    }
    // A body without a length goes to the end of the connection.
    if tamper != Tamper::Endless && reply.status != 304 {
        head += &format!("content-length: {}\r\n", reply.body.len());
    }
    out.write_all((head + "\r\n").as_bytes())?;
    match tamper {
        Tamper::Cut(after) => out.write_all(&reply.body[..after.min(reply.body.len())]),
        Tamper::Slow(bytes) => reply.body.chunks(bytes.max(1)).try_for_each(|part| {
            sleep(Duration::from_millis(2));
            out.write_all(part)
        }),
        Tamper::Endless => {
            out.write_all(&reply.body)?;
            // Until the client has had enough.
            loop {
                out.write_all(&[b' '; 65_536])?;
            }
        }
        _ => out.write_all(&reply.body),
    }
}
