//! HTTP as simulated servers read it: heads and bodies of requests. Shared with no client, because they
//! judge clients.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a request's line and headers, the query included; more answer with status 431.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of a request; more answer with status 431.
pub const HEADERS_MAX: usize = 100;

/// A request's line and headers.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    /// What stands after the first `?`, as it came.
    pub(crate) query: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header's value; its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a header names a word, in any case.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        let words = self.header(name).unwrap_or_default().split(',');
        words.into_iter().any(|said| said.trim().eq_ignore_ascii_case(word))
    }
}

/// Why a request cannot be read.
#[derive(Debug)]
pub(crate) enum BadRequest {
    /// The connection ended, or broke.
    Gone,
    /// Told with this status.
    Status(u16, &'static str),
}

/// Reads the next request's head; what follows it stays in `buffer`.
pub(crate) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<Head, BadRequest> {
    loop {
        let end = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end.filter(|end| *end <= HEAD_BYTES_MAX) {
            let head = String::from_utf8(buffer[..end].to_vec());
            buffer.drain(..end + 4);
            let head = head.map_err(|_| BadRequest::Status(400, "the head is not text"))?;
            return parse_head(&head);
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(BadRequest::Status(431, "the head is longer than HEAD_BYTES_MAX"));
        }
        fill(stream, buffer).await?;
    }
}

async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<(), BadRequest> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => Err(BadRequest::Gone),
        Ok(_) => Ok(()),
    }
}

/// Reads the body that a head announces, of at most `bytes_max`.
pub(crate) async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    head: &Head,
    bytes_max: usize,
) -> Result<Vec<u8>, BadRequest> {
    let length = match head.header("content-length").map(str::parse::<usize>) {
        None if head.header("transfer-encoding").is_some() => {
            return Err(BadRequest::Status(411, "a body needs a Content-Length"));
        }
        None => 0,
        Some(Ok(length)) if length <= bytes_max => length,
        Some(Ok(_)) => return Err(BadRequest::Status(413, "the body is longer than its limit")),
        Some(Err(_)) => return Err(BadRequest::Status(400, "Content-Length is not a number")),
    };
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    Ok(buffer.drain(..length).collect())
}

fn parse_head(text: &str) -> Result<Head, BadRequest> {
    let bad = |why| BadRequest::Status(400, why);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the first line must be METHOD TARGET HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        if headers.len() == HEADERS_MAX {
            return Err(BadRequest::Status(431, "more headers than HEADERS_MAX"));
        }
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Head { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers })
}
