//! Exactly one attempt: a request that leaves this machine once or not at all, for servers at which a
//! second one would do the work twice. No layer sends it again, no connection is used for two.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::response::{body, wiped_body};
use crate::secrets::Secrets;

/// Asks a server once for each question, and says how far a question without an answer has come.
/// Addresses are secret: they stand in no error and in no event of this crate.
pub struct OneAttempt {
    http: reqwest::Client,
    answer_time: Duration,
    secrets: Secrets,
}

/// Why one attempt gave no answer. The texts are our own: neither the address nor a word of the
/// server's is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The machine was reached and refuses the connection: nothing was sent.
    #[error("the server refuses the connection")]
    Refused,
    /// There was no connection, or no request: nothing was sent.
    #[error("nothing was sent: {0}")]
    NotSent(String),
    /// Nothing came in time after the connection stood: the server may have done what it was asked for.
    #[error("the request may have arrived: {0}")]
    MayBeSent(String),
    /// What came after the connection stood is no whole answer, or its end: the same holds, and somebody is there.
    #[error("the request may have arrived: {0}")]
    Broken(String),
    /// The server answered with another status than 200.
    #[error("HTTP status {0}")]
    Status(u16),
    /// The answer is too large.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes, after unpacking.
        limit: usize,
    },
}

/// An answer whose body comes piece by piece.
pub struct AttemptStream {
    response: Response,
    limit: usize,
    received: usize,
    answer_time: Duration,
}

impl OneAttempt {
    /// A client with a time to connect and one for the whole answer, from the connection to the last
    /// byte. To this machine it goes without a proxy.
    ///
    /// # Errors
    /// A text that says why requests cannot be made.
    pub fn new(
        is_loopback: bool,
        connect_time: Duration,
        answer_time: Duration,
    ) -> Result<Self, String> {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(crate::client::USER_AGENT)
            // What is in the address must not follow to another server.
            .redirect(reqwest::redirect::Policy::none())
            // A request on a connection that the server was about to close would be sent again.
            .pool_max_idle_per_host(0)
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(connect_time)
            .timeout(answer_time);
        if is_loopback {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|_| "cannot prepare HTTP requests".to_owned())?;
        Ok(Self { http, answer_time, secrets: Secrets::default() })
    }

    /// Keeps a text out of what [`Self::redacted`] gives, as it is or encoded.
    pub fn hide(&mut self, secret: &SecretString) {
        self.secrets.hide(secret);
    }

    /// A text of the server's, free of secrets.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.secrets.redacted(text)
    }

    /// What is kept out.
    #[must_use]
    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Sends a GET once and waits for the whole answer of status 200, unpacked.
    ///
    /// # Errors
    /// Why there is no answer, and whether the server may have been asked.
    pub async fn get(
        &self,
        address: &SecretString,
        body_bytes_max: usize,
    ) -> Result<Vec<u8>, AttemptError> {
        let response = self.send(address, self.answer_time).await?;
        match body(response, body_bytes_max).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(AttemptError::TooLarge { limit: body_bytes_max }),
            Err(error) => Err(after_sending(&error, self.answer_time)),
        }
    }

    /// The same, but the body comes piece by piece, with a time of its own for the whole.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn open(
        &self,
        address: &SecretString,
        body_bytes_max: usize,
        answer_time: Duration,
    ) -> Result<AttemptStream, AttemptError> {
        let response = self.send(address, answer_time).await?;
        Ok(AttemptStream { response, limit: body_bytes_max, received: 0, answer_time })
    }

    /// Sends a request once and waits for the whole answer, whatever its status. `json` is the body. Both bodies
    /// are in memory that is wiped; the HTTP library has copies of them and of the headers in its buffers that
    /// nobody can wipe.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        json: Option<&SecretString>,
        body_bytes_max: usize,
    ) -> Result<(u16, Zeroizing<Vec<u8>>), AttemptError> {
        let mut request = self.http.request(method, url).headers(headers);
        if let Some(json) = json {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(Bytes::from_owner(Wiped(json.clone())));
        }
        let sent = request.send().await;
        let response = sent.map_err(|error| without_answer(&error, self.answer_time))?;
        let status = response.status().as_u16();
        match wiped_body(response, body_bytes_max).await {
            Ok(Some(body)) => Ok((status, body)),
            Ok(None) => Err(AttemptError::TooLarge { limit: body_bytes_max }),
            Err(error) => Err(after_sending(&error, self.answer_time)),
        }
    }

    async fn send(
        &self,
        address: &SecretString,
        answer_time: Duration,
    ) -> Result<Response, AttemptError> {
        let url = Url::parse(address.expose_secret());
        let url = url.map_err(|_| AttemptError::NotSent("the address is not valid".to_owned()))?;
        let sent = self.http.get(url).timeout(answer_time).send().await;
        let response = sent.map_err(|error| without_answer(&error, answer_time))?;
        match response.status().as_u16() {
            200 => Ok(response),
            status => Err(AttemptError::Status(status)),
        }
    }
}

impl fmt::Debug for OneAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneAttempt").field("answer_time", &self.answer_time).finish_non_exhaustive()
    }
}

impl AttemptStream {
    /// The next bytes, unpacked; none after the last.
    ///
    /// # Errors
    /// When the connection was cut, the time is over, or there are more bytes than allowed.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, AttemptError> {
        let piece = self.response.chunk().await;
        let Some(piece) = piece.map_err(|error| after_sending(&error, self.answer_time))? else {
            return Ok(None);
        };
        self.received = self.received.saturating_add(piece.len());
        if self.received > self.limit {
            return Err(AttemptError::TooLarge { limit: self.limit });
        }
        Ok(Some(piece.to_vec()))
    }
}

impl fmt::Debug for AttemptStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptStream").field("received", &self.received).finish_non_exhaustive()
    }
}

/// Bytes that are wiped with the last one who holds them.
struct Wiped(SecretString);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        self.0.expose_secret().as_bytes()
    }
}

/// Why there is no head of an answer. Only what failed while connecting surely sent nothing.
fn without_answer(error: &reqwest::Error, answer_time: Duration) -> AttemptError {
    if error.is_builder() {
        return AttemptError::NotSent("cannot make the request".to_owned());
    }
    if !error.is_connect() {
        return after_sending(error, answer_time);
    }
    if error.is_timeout() {
        return AttemptError::NotSent("no connection in time".to_owned());
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => AttemptError::Refused,
        _ if cause::<rustls::Error>(error).is_some() => AttemptError::NotSent(
            "kumiki does not accept the server's certificate or its TLS".to_owned(),
        ),
        Some(kind) => AttemptError::NotSent(format!("no connection ({kind})")),
        None => AttemptError::NotSent("no connection".to_owned()),
    }
}

fn after_sending(error: &reqwest::Error, answer_time: Duration) -> AttemptError {
    if error.is_timeout() {
        let time = answer_time.as_secs_f64();
        return AttemptError::MayBeSent(format!("no whole answer within {time} s"));
    }
    AttemptError::Broken(if error.is_decode() {
        "cannot unpack the answer".to_owned()
    } else if error.is_body() {
        "the connection ended before the answer was whole".to_owned()
    } else {
        match cause::<io::Error>(error).map(io::Error::kind) {
            Some(kind) => format!("the connection ended without an answer ({kind})"),
            None => "the connection ended, or the answer is not HTTP".to_owned(),
        }
    })
}

/// The innermost cause of a kind.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let causes = std::iter::successors(Some(error), |&cause| {
        // What an input or output error carries is no source of its own.
        let carried = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        carried.map(|error| error as &(dyn Error + 'static)).or_else(|| cause.source())
    });
    causes.filter_map(|cause| cause.downcast_ref::<E>()).last()
}

#[cfg(test)]
mod tests;
