//! What servers answer: whole bodies within a limit, words about failures, wished pauses.

use std::time::{Duration, UNIX_EPOCH};

use domain::clock::wall_now;
use reqwest::Response;
use zeroize::Zeroizing;

use crate::limits::ERROR_BODY_BYTES_MAX;

/// What a server answered to a request that it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The HTTP status, 200 to 299.
    pub status: u16,
    /// The kind of content, in lower case.
    pub content_type: String,
    /// The body, unpacked.
    pub body: Vec<u8>,
}

/// The whole body, or `None` where it is larger than `limit`.
pub(crate) async fn body(
    mut response: Response,
    limit: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// The same in memory that is wiped, and so is what it has grown out of. What the HTTP library has read it into is
/// not.
pub(crate) async fn wiped_body(
    mut response: Response,
    limit: usize,
) -> Result<Option<Zeroizing<Vec<u8>>>, reqwest::Error> {
    let mut body = Zeroizing::new(Vec::new());
    while let Some(piece) = response.chunk().await? {
        let bytes = body.len() + piece.len();
        if bytes > limit {
            return Ok(None);
        }
        if bytes > body.capacity() {
            let room = bytes.max(2 * body.capacity()).min(limit);
            let before = std::mem::replace(&mut body, Zeroizing::new(Vec::with_capacity(room)));
            body.extend_from_slice(&before);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// What a server says in the body of a failure, as it says it; empty where it says nothing.
pub(crate) async fn server_words(response: Response) -> String {
    let Ok(Some(body)) = body(response, ERROR_BODY_BYTES_MAX).await else {
        return String::new();
    };
    let json: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let message = json
        .as_ref()
        .and_then(|json| ["message", "error"].iter().find_map(|name| json.get(name)?.as_str()));
    let text = String::from_utf8_lossy(&body);
    message.unwrap_or(&text).to_owned()
}

pub(crate) fn header_text<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// How long to wait: seconds, or a date.
pub(crate) fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text.trim()).ok()?;
    let until = until.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let now = wall_now().millis().div_ceil(1_000);
    Some(Duration::from_secs(until.saturating_sub(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_seconds_or_dates() {
        assert_eq!(retry_after("17"), Some(Duration::from_secs(17)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let far = retry_after("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(far > Duration::from_secs(86_400 * 365));
        assert_eq!((retry_after(""), retry_after("soon")), (None, None));
    }
}
