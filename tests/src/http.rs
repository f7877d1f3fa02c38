//! A small HTTP client for tests and benches: one request, or many over one connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a read may hang before a test fails. No test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status, like 200.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Vec<u8>,
}

impl Reply {
    /// The first header with this name, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream) })
    }

    /// Sends a request and does not wait.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, head: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut text = format!("{head} HTTP/1.1\r\nHost: test\r\n");
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        self.stream.get_mut().write_all(&bytes)
    }

    /// Reads one answer; its length must be stated.
    ///
    /// # Errors
    /// When the connection ends early or the answer is not HTTP.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| wrong(&format!("no status in `{line}`")))?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| wrong("a broken header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Reply { status, headers, body })
    }
}

/// One request over a connection of its own.
///
/// # Panics
/// When there is no answer.
#[must_use]
pub fn request(address: SocketAddr, head: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let answer = Connection::open(address).and_then(|mut connection| {
        connection.send(head, headers, body)?;
        connection.receive()
    });
    answer.unwrap_or_else(|error| panic!("{head}: {error}"))
}

/// The header of a GraphQL request.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// One GraphQL request with a body of JSON text.
///
/// # Panics
/// When there is no answer.
#[must_use]
pub fn graphql(address: SocketAddr, body: &str) -> Reply {
    request(address, "POST /graphql", &[JSON], body.as_bytes())
}
