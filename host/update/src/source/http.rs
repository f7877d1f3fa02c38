//! One question, one answer over HTTP: limits on size and time, pauses between requests, and
//! another try where that can help.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use domain::clock::{Stopwatch, wall_now};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Request, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Runtime;

use super::error::{SourceError, shown};
use crate::limits::{
    BACK_OFF, BACK_OFF_TOO_MANY, BODY_BYTES_MAX, CONNECT_TIME, ERROR_BODY_BYTES_MAX, REQUEST_TIME,
    RETRY_AFTER_MAX, SHOWN_CHARS, TRIES, TRIES_TOO_MANY,
};
use crate::stop::Stop;

/// How this program names itself to servers.
const USER_AGENT: &str = concat!("kumiki/", env!("CARGO_PKG_VERSION"));

/// What all sources share: the runtime behind their requests and the wish to end.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Arc<Runtime>,
    stop: Stop,
}

impl Network {
    /// Prepares for requests that end when `stop` is wanted.
    ///
    /// # Errors
    /// What the system says when it cannot give what sockets need.
    pub fn new(stop: Stop) -> std::io::Result<Self> {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime: Arc::new(runtime), stop })
    }
}

/// How long a source is waited for and how often it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Time for one answer, from the connection to the last byte.
    pub request_time: Duration,
    /// The first pause before a request is sent again; each further one is twice as long.
    pub back_off: Duration,
    /// The same after too many requests, where the server does not say how long.
    pub back_off_too_many: Duration,
    /// The longest pause that a server may ask for.
    pub retry_after_max: Duration,
    /// Bytes of one answer, after unpacking.
    pub body_bytes_max: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            request_time: REQUEST_TIME,
            back_off: BACK_OFF,
            back_off_too_many: BACK_OFF_TOO_MANY,
            retry_after_max: RETRY_AFTER_MAX,
            body_bytes_max: BODY_BYTES_MAX,
        }
    }
}

/// An address that a source may be asked at: https, or http to this machine.
///
/// # Errors
/// A text that says what is wrong. It does not hold the address, which may be secret.
pub fn checked_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("not an address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address must not hold a name or a password".to_owned());
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err("an address must start with https:// (http:// only to this machine)".to_owned()),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// What a server answered to a request that it took.
pub(super) struct Page {
    /// The HTTP status, 200 to 299.
    pub(super) status: u16,
    /// The kind of content, in lower case.
    pub(super) content_type: String,
    /// The body.
    pub(super) body: Vec<u8>,
}

/// Asks one server, one question after the other.
pub(super) struct Client {
    http: reqwest::Client,
    network: Network,
    patience: Patience,
    /// Shortest time between the starts of two requests.
    interval: Duration,
    since_last: Option<Stopwatch>,
    /// What no text may ever show.
    secrets: Vec<SecretString>,
}

/// Why a try gave no page.
enum Failure {
    Final(SourceError),
    /// Another try may go well.
    Passing {
        what: String,
        /// Too many requests.
        too_many: bool,
        /// How long the server wants to be left alone.
        pause: Option<Duration>,
    },
}

impl Client {
    /// A client for the server of `address`, with at most `rate` requests a minute.
    pub(super) fn new(
        network: &Network,
        address: &Url,
        patience: Patience,
        rate: u32,
    ) -> Result<Self, String> {
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // A key must not follow to another server.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME.min(patience.request_time))
            .timeout(patience.request_time);
        if is_loopback(address) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| format!("no HTTP: {}", told(error)))?;
        Ok(Self {
            http,
            network: network.clone(),
            patience,
            interval: Duration::from_secs(60) / rate.max(1),
            since_last: None,
            secrets: Vec::new(),
        })
    }

    /// Keeps a text out of every message, even where a server repeats it.
    pub(super) fn hide(&mut self, secret: &SecretString) {
        self.secrets.push(secret.clone());
    }

    /// Sends a GET until there is an answer, as often as that makes sense. `prepare` makes the
    /// address anew for each try.
    pub(super) fn get(
        &mut self,
        headers: &HeaderMap,
        mut prepare: impl FnMut() -> Result<Url, SourceError>,
    ) -> Result<Page, SourceError> {
        let runtime = Arc::clone(&self.network.runtime);
        let stop = self.network.stop.clone();
        let found = runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.wanted() => Err(SourceError::Stopped),
                found = self.get_patiently(headers, &mut prepare) => found,
            }
        });
        found.map_err(|error| self.cleaned(error))
    }

    async fn get_patiently(
        &mut self,
        headers: &HeaderMap,
        prepare: &mut impl FnMut() -> Result<Url, SourceError>,
    ) -> Result<Page, SourceError> {
        let (mut failures, mut too_many_times) = (0, 0);
        loop {
            self.keep_rate().await;
            let mut request = Request::new(reqwest::Method::GET, prepare()?);
            request.headers_mut().clone_from(headers);
            let (what, too_many, asked_pause) = match self.get_once(request).await {
                Ok(page) => return Ok(page),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing { what, too_many, pause }) => (what, too_many, pause),
            };
            let (count, most, back_off) = match too_many {
                true => (&mut too_many_times, TRIES_TOO_MANY, self.patience.back_off_too_many),
                false => (&mut failures, TRIES, self.patience.back_off),
            };
            *count += 1;
            let pause = asked_pause.unwrap_or_else(|| back_off * 2_u32.pow(*count - 1));
            if too_many && pause > self.patience.retry_after_max {
                return Err(SourceError::TooManyRequests(pause));
            }
            if *count >= most {
                return Err(SourceError::Unavailable { what, tries: failures + too_many_times });
            }
            tokio::time::sleep(pause.min(self.patience.retry_after_max)).await;
        }
    }

    async fn keep_rate(&mut self) {
        if let Some(last) = self.since_last {
            let pause = self.interval.saturating_sub(last.elapsed());
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        self.since_last = Some(Stopwatch::start());
    }

    async fn get_once(&self, request: Request) -> Result<Page, Failure> {
        let passing = |what: String| Failure::Passing { what, too_many: false, pause: None };
        let response = match self.http.execute(request).await {
            Ok(response) => response,
            Err(error) => return Err(passing(self.trouble(error))),
        };
        let status = response.status().as_u16();
        let content_type = header_text(&response, CONTENT_TYPE.as_str()).to_ascii_lowercase();
        if response.status().is_success() {
            let limit = self.patience.body_bytes_max;
            return match body(response, limit).await {
                Ok(Some(body)) => Ok(Page { status, content_type, body }),
                Ok(None) => Err(Failure::Final(SourceError::TooLarge { what: "bytes", limit })),
                Err(error) => Err(passing(self.trouble(error))),
            };
        }
        let pause = retry_after(header_text(&response, RETRY_AFTER.as_str()));
        let message = server_words(response).await;
        match status {
            401 | 403 => Err(Failure::Final(SourceError::Key { status, message })),
            429 => {
                let what = format!("too many requests (HTTP 429): {message}");
                Err(Failure::Passing { what, too_many: true, pause })
            }
            408 | 500..=599 => {
                let what = format!("the server failed (HTTP {status}): {message}");
                let pause = pause.filter(|pause| *pause <= self.patience.retry_after_max);
                Err(Failure::Passing { what, too_many: false, pause })
            }
            300..=399 => {
                let message = "the server points to another address; set that one".to_owned();
                Err(Failure::Final(SourceError::Refused { status, message }))
            }
            _ => Err(Failure::Final(SourceError::Refused { status, message })),
        }
    }

    fn trouble(&self, error: reqwest::Error) -> String {
        if error.is_timeout() {
            let seconds = self.patience.request_time.as_secs_f64();
            return format!("no whole answer within {seconds} s");
        }
        told(error)
    }

    /// An error made from a server's words, free of secrets.
    pub(super) fn cleaned(&self, error: SourceError) -> SourceError {
        let clean = |text: String| {
            self.secrets
                .iter()
                .fold(text, |text, secret| text.replace(secret.expose_secret(), "***"))
        };
        match error {
            SourceError::Key { status, message } => {
                SourceError::Key { status, message: clean(message) }
            }
            SourceError::Refused { status, message } => {
                SourceError::Refused { status, message: clean(message) }
            }
            SourceError::Unavailable { what, tries } => {
                SourceError::Unavailable { what: clean(what), tries }
            }
            SourceError::Closed(text) => SourceError::Closed(clean(text)),
            SourceError::Malformed(text) => SourceError::Malformed(clean(text)),
            other => other,
        }
    }

    /// An error about a body, free of secrets.
    pub(super) fn malformed(&self, what: impl Into<String>) -> SourceError {
        self.cleaned(SourceError::Malformed(what.into()))
    }
}

/// The whole body, or `None` where it is larger than `limit`.
async fn body(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// What a server says in the body of a failure, in one short line.
async fn server_words(response: Response) -> String {
    let Ok(Some(body)) = body(response, ERROR_BODY_BYTES_MAX).await else {
        return "no message".to_owned();
    };
    let json: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let message = json
        .as_ref()
        .and_then(|json| ["message", "error"].iter().find_map(|name| json.get(name)?.as_str()));
    let text = String::from_utf8_lossy(&body);
    match shown(message.unwrap_or(&text), SHOWN_CHARS) {
        words if words.is_empty() => "no message".to_owned(),
        words => words,
    }
}

fn header_text<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// How long to wait: seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = DateTime::parse_from_rfc2822(text.trim()).ok()?;
    let moment = u64::try_from(moment.timestamp()).ok()?;
    let now = wall_now().millis().div_ceil(1_000);
    Some(Duration::from_secs(moment.saturating_sub(now)))
}

/// An error and its causes, without the address.
fn told(error: reqwest::Error) -> String {
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
    shown(&text, SHOWN_CHARS)
}

/// A header's value that is never shown.
pub(super) fn secret_header(secret: &SecretString) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(secret.expose_secret());
    let mut value = value.map_err(|_| "the key cannot stand in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_safe_for_keys() {
        for good in [
            "https://example.com/v2",
            "http://127.0.0.1:80/",
            "http://[::1]/",
            "http://localhost:1/x",
        ] {
            assert!(checked_address(good).is_ok(), "{good}");
        }
        for (wrong, part) in [
            ("http://example.com", "https://"),
            ("http://127.0.0.1.example.com", "https://"),
            ("ftp://127.0.0.1", "https://"),
            ("https://name:word@example.com", "a name or a password"),
            ("example.com", "not an address"),
        ] {
            let message = checked_address(wrong).unwrap_err();
            assert!(message.contains(part) && !message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn pauses_are_seconds_or_dates() {
        assert_eq!(retry_after("17"), Some(Duration::from_secs(17)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let far = retry_after("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(far > Duration::from_secs(86_400 * 365));
        assert_eq!((retry_after(""), retry_after("soon")), (None, None));
    }
}
