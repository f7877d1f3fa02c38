//! One question, one answer: pauses between requests, and another try where that can help.

use std::fmt;
use std::time::Duration;

use domain::clock::Stopwatch;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Request, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::address::is_loopback;
use crate::error::{HttpError, one_line};
use crate::limits::{CONNECT_TIME, SHOWN_CHARS, TRIES, TRIES_TOO_MANY};
use crate::pace::{Pace, Slowed};
use crate::policy::RequestPolicy;
use crate::response::{HttpResponse, body, header_text, retry_after, server_words};
use crate::secrets::Secrets;
use crate::stream::HttpStream;

/// How this program names itself to servers.
pub(crate) const USER_AGENT: &str = concat!("kumiki/", env!("CARGO_PKG_VERSION"));

/// Asks one server, one question after the other.
pub struct HttpClient {
    http: reqwest::Client,
    policy: RequestPolicy,
    /// Time between the starts of two requests.
    pace: Pace,
    since_last: Option<Stopwatch>,
    secrets: Secrets,
}

/// Why a try gave no answer.
enum Failure {
    Final(HttpError),
    /// Another try may go well.
    Passing {
        what: String,
        /// Too many requests.
        too_many: bool,
        /// How long the server wants to be left alone.
        pause: Option<Duration>,
    },
}

/// How often a question was asked in vain.
#[derive(Default)]
struct Tries {
    failures: u32,
    too_many: u32,
}

impl HttpClient {
    /// A client for the server of `address`, with at most `rate` requests a minute.
    ///
    /// # Errors
    /// A text that says why requests cannot be made.
    pub fn new(address: &Url, policy: RequestPolicy, rate: u32) -> Result<Self, String> {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // A key must not follow to another server.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME.min(policy.request_time))
            .timeout(policy.request_time);
        if is_loopback(address) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| format!("cannot prepare HTTP requests: {}", told(error)))?;
        let (pace, secrets) = (Pace::new(rate), Secrets::default());
        Ok(Self { http, policy, pace, since_last: None, secrets })
    }

    /// How slowly the server was asked, where it has said that requests were too many.
    #[must_use]
    pub fn slowed(&self) -> Option<Slowed> {
        self.pace.slowed()
    }

    /// Keeps a text out of every message, even where a server repeats it, as it is or encoded.
    pub fn hide(&mut self, secret: &SecretString) {
        self.secrets.hide(secret);
    }

    /// A text made from a server's words, free of secrets.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.secrets.redacted(text)
    }

    /// A server's words for a message: free of secrets, one line, nothing unprintable, and at most
    /// so many characters. Secrets go first: of one that is cut, a part would be left.
    #[must_use]
    pub fn words(&self, text: &str, characters_max: usize) -> String {
        one_line(&self.redacted(text), characters_max)
    }

    /// Sends a GET until there is an answer, as often as that makes sense. `prepare` makes the
    /// address anew for each try.
    ///
    /// # Errors
    /// What `prepare` says, or why there is no answer.
    pub async fn get<E: From<HttpError>>(
        &mut self,
        headers: &HeaderMap,
        mut prepare: impl FnMut() -> Result<Url, E>,
    ) -> Result<HttpResponse, E> {
        let mut tries = Tries::default();
        loop {
            self.keep_rate().await;
            let mut request = Request::new(reqwest::Method::GET, prepare()?);
            request.headers_mut().clone_from(headers);
            let failure = match self.get_once(request).await {
                Ok(response) => {
                    self.pace.answered();
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            if let Failure::Passing { too_many: true, .. } = failure {
                self.pace.slow_down();
                let interval_s = self.pace.interval().as_secs_f64();
                tracing::info!(
                    interval_s,
                    "the server had too many requests; kumiki sends them more slowly"
                );
            }
            match self.pause_after(failure, &mut tries) {
                Ok(pause) => tokio::time::sleep(pause).await,
                Err(error) => {
                    tracing::debug!(%error, "a request failed");
                    return Err(error.into());
                }
            }
        }
    }

    /// How long to wait before the next try, or why there is none.
    fn pause_after(&self, failure: Failure, tries: &mut Tries) -> Result<Duration, HttpError> {
        let (what, too_many, asked_pause) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Passing { what, too_many, pause } => (what, too_many, pause),
        };
        let policy = &self.policy;
        let (count, most, back_off) = match too_many {
            true => (&mut tries.too_many, TRIES_TOO_MANY, policy.back_off_too_many),
            false => (&mut tries.failures, TRIES, policy.back_off),
        };
        *count += 1;
        let pause = asked_pause.unwrap_or_else(|| back_off * 2_u32.pow(*count - 1));
        if too_many && pause > policy.retry_after_max {
            return Err(HttpError::TooManyRequests(pause));
        }
        let is_last = *count >= most;
        let tries = tries.failures + tries.too_many;
        if is_last {
            return Err(HttpError::Unavailable { what, tries });
        }
        let pause = pause.min(policy.retry_after_max);
        let pause_s = pause.as_secs_f64();
        tracing::debug!(what, tries, pause_s, "kumiki sends a request again");
        Ok(pause)
    }

    async fn keep_rate(&mut self) {
        if let Some(last) = self.since_last {
            let pause = self.pace.interval().saturating_sub(last.elapsed());
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        self.since_last = Some(Stopwatch::start());
    }

    async fn get_once(&self, request: Request) -> Result<HttpResponse, Failure> {
        let passing = |what: String| Failure::Passing { what, too_many: false, pause: None };
        let response = match self.http.execute(request).await {
            Ok(response) => response,
            Err(error) => return Err(passing(self.trouble(error))),
        };
        let status = response.status().as_u16();
        let content_type = header_text(&response, CONTENT_TYPE.as_str()).to_ascii_lowercase();
        if response.status().is_success() {
            let limit = self.policy.body_bytes_max;
            return match body(response, limit).await {
                Ok(Some(body)) => Ok(HttpResponse { status, content_type, body }),
                Ok(None) => Err(Failure::Final(HttpError::TooLarge { limit })),
                Err(error) => Err(passing(self.trouble(error))),
            };
        }
        Err(self.refusal(response).await)
    }

    /// Sends a GET once; the body of the answer comes piece by piece, at most so many bytes of it after
    /// unpacking. Beside the whole and a part of it, that nothing changed (304), that the condition does
    /// not hold (412) and that there is no such part (416) are answers too.
    ///
    /// # Errors
    /// Why there is no such answer.
    pub async fn open(
        &mut self,
        headers: &HeaderMap,
        address: Url,
        body_bytes_max: u64,
    ) -> Result<HttpStream, HttpError> {
        self.keep_rate().await;
        let mut request = Request::new(reqwest::Method::GET, address);
        request.headers_mut().clone_from(headers);
        let unavailable = |what| HttpError::Unavailable { what, tries: 1 };
        let response = self.http.execute(request).await;
        let response = response.map_err(|error| unavailable(self.trouble(error)))?;
        if matches!(response.status().as_u16(), 200 | 206 | 304 | 412 | 416) {
            return Ok(HttpStream::new(response, body_bytes_max));
        }
        Err(match self.refusal(response).await {
            Failure::Final(error) => error,
            Failure::Passing { too_many: true, pause, .. } => {
                HttpError::TooManyRequests(pause.unwrap_or(self.policy.back_off_too_many))
            }
            Failure::Passing { what, .. } => unavailable(what),
        })
    }

    /// Why an answer is none.
    async fn refusal(&self, response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        let pause = retry_after(header_text(&response, RETRY_AFTER.as_str()));
        let message = match self.words(&server_words(response).await, SHOWN_CHARS) {
            nothing if nothing.is_empty() => "no message".to_owned(),
            words => words,
        };
        match status {
            401 | 403 => Failure::Final(HttpError::Key { status, message }),
            429 => {
                let what = format!("too many requests (HTTP 429): {message}");
                Failure::Passing { what, too_many: true, pause }
            }
            408 | 500..=599 => {
                let what = format!("the server failed (HTTP {status}): {message}");
                let pause = pause.filter(|pause| *pause <= self.policy.retry_after_max);
                Failure::Passing { what, too_many: false, pause }
            }
            300..=399 => {
                let message = "the server points to another address; set that one".to_owned();
                Failure::Final(HttpError::Refused { status, message })
            }
            _ => Failure::Final(HttpError::Refused { status, message }),
        }
    }

    fn trouble(&self, error: reqwest::Error) -> String {
        if error.is_timeout() {
            let seconds = self.policy.request_time.as_secs_f64();
            return format!("no whole answer within {seconds} s");
        }
        self.words(&told(error), SHOWN_CHARS)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// An error and its causes, without the address.
pub(crate) fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// A header's value that is never shown.
///
/// # Errors
/// That the secret cannot stand in a header; the text does not hold it.
pub fn secret_header(secret: &SecretString) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(secret.expose_secret());
    let mut value =
        value.map_err(|_| "the key has characters that an HTTP header cannot hold".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
