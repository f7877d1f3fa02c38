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

    /// Whether it is an answer of GraphQL with data, or one that is packed: errors are too small for that.
    #[must_use]
    pub fn has_data(&self) -> bool {
        let errors = [&b"{\"errors\":"[..], &b"{\"data\":null"[..]];
        self.status == 200 && !errors.iter().any(|begin| self.body.starts_with(begin))
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
        let mut text = format!("{head} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += "Host: localhost\r\n";
        }
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

    /// Reads one answer with its body.
    ///
    /// # Errors
    /// When the connection ends early or the answer is not HTTP.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut reply = self.receive_head()?;
        if reply.header("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            self.receive_chunks(&mut reply.body)?;
            return Ok(reply);
        }
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        reply.body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut reply.body)?;
        Ok(reply)
    }

    /// Reads an answer up to its body, which may follow with [`Connection::read`]. Answers to HEAD
    /// have none.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn receive_head(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| wrong(&format!("no status in `{line}`")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Reply { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| wrong("a broken header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads some bytes, as they came; 0 at the end of the connection.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }

    fn receive_chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(&line, 16).map_err(|_| wrong("a broken chunk"))?;
            let start = body.len();
            body.resize(start + length, 0);
            self.stream.read_exact(&mut body[start..])?;
            if !self.line()?.is_empty() {
                return Err(wrong("a chunk without an end"));
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    /// A line without its end. The end of the connection is an error.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// One request over a connection of its own.
///
/// # Panics
/// When there is no answer.
#[must_use]
pub fn request(address: SocketAddr, head: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let answer = Connection::open(address).and_then(|mut connection| {
        connection.send(head, headers, body)?;
        if head.starts_with("HEAD ") { connection.receive_head() } else { connection.receive() }
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
