//! Requests to the gateway by HTTP: one attempt each, with its secret (specification 1, "Endpoints").

use std::time::Duration;

use http_client::{
    AttemptError, HeaderMap, HeaderName, Method as HttpMethod, OneAttempt, Url, secret_header,
};
use secrecy::{ExposeSecret, SecretString};
use zeroize::{Zeroize as _, Zeroizing};

use super::config::Endpoint;
use super::limits::{ANSWER_BYTES_MAX, SHORT_ANSWER_BYTES_MAX};
use super::request::{Answer, Method, NoAnswer, Question, Request};

/// The header with the token (specification 1, "Endpoints").
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// The gateway over HTTP.
#[derive(Debug)]
pub(crate) struct Rest {
    http: OneAttempt,
    /// Scheme, host, port and the dialect's prefix.
    base: String,
}

impl Rest {
    /// A client, before its first request.
    pub(crate) fn new(endpoint: &Endpoint, prefix: &str, time: Duration) -> Result<Self, String> {
        let http = OneAttempt::new(true, time, time)?;
        Ok(Self { http, base: format!("http://{}{prefix}", endpoint.authority()) })
    }

    /// Sends a request once.
    pub(crate) async fn ask(&self, request: Request) -> Result<Answer, NoAnswer> {
        let Request { question, secret } = request;
        let unreadable = |why: &str| NoAnswer::Unreadable(why.to_owned());
        let url = Url::parse(&format!("{}{}", self.base, question.path()))
            .map_err(|_| unreadable("the address of the request is not valid"))?;
        let mut headers = HeaderMap::new();
        let body = if question == Question::Token {
            let body = password_body(&secret);
            Some(body.ok_or_else(|| unreadable("cannot send the password"))?)
        } else {
            let token = secret_header(&secret);
            let token = token.map_err(|_| {
                unreadable("the token has characters that an HTTP header cannot hold")
            })?;
            headers.insert(TOKEN_HEADER, token);
            question.body().map(SecretString::from)
        };
        let method = match question.method() {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Put => HttpMethod::PUT,
        };
        let limit = match question {
            Question::Orders | Question::Positions => ANSWER_BYTES_MAX,
            _ => SHORT_ANSWER_BYTES_MAX,
        };
        let answered = self.http.ask(method, url, headers, body.as_ref(), limit).await;
        let (status, body) = answered.map_err(|error| match error {
            AttemptError::Refused => NoAnswer::Refused(error.to_string()),
            AttemptError::NotSent(_) | AttemptError::MayBeSent(_) => {
                NoAnswer::Unreachable(error.to_string())
            }
            AttemptError::Broken(_) | AttemptError::Status(_) | AttemptError::TooLarge { .. } => {
                NoAnswer::Unreadable(error.to_string())
            }
        })?;
        Ok(Answer { status, body: text(body) })
    }
}

/// The body of the request for a token.
fn password_body(password: &SecretString) -> Option<SecretString> {
    const AROUND: [&str; 2] = [r#"{"APIPassword":"#, "}"];
    /// Bytes of the longest escape of JSON.
    const ESCAPE_BYTES: usize = 6;
    let password = password.expose_secret();
    // It has its full capacity from the beginning: growth would leave copies behind.
    let room = AROUND.concat().len() + 2 + ESCAPE_BYTES * password.len();
    let mut body = Zeroizing::new(Vec::with_capacity(room));
    body.extend_from_slice(AROUND[0].as_bytes());
    serde_json::to_writer(&mut *body, password).ok()?;
    body.extend_from_slice(AROUND[1].as_bytes());
    debug_assert!(body.len() <= room);
    std::str::from_utf8(&body).ok().map(SecretString::from)
}

/// A body as text, without a copy of it; empty if it is not UTF-8.
fn text(mut body: Zeroizing<Vec<u8>>) -> Zeroizing<String> {
    let text = String::from_utf8(std::mem::take(&mut *body)).unwrap_or_else(|error| {
        error.into_bytes().zeroize();
        String::new()
    });
    Zeroizing::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_login_is_json_whatever_the_password_is() {
        for password in ["Pass01", "a\"b\\c\u{1}\u{7f}é鍵/", &"\u{2}".repeat(300)] {
            let body = password_body(&SecretString::from(password)).unwrap();
            let read: serde_json::Value = serde_json::from_str(body.expose_secret()).unwrap();
            assert_eq!(read, serde_json::json!({ "APIPassword": password }));
        }
    }

    #[test]
    fn a_body_that_is_no_text_is_empty() {
        assert_eq!(text(Zeroizing::new(b"{}".to_vec())).as_str(), "{}");
        assert_eq!(text(Zeroizing::new(b"{\xff}".to_vec())).as_str(), "");
        let answer = Answer { status: 200, body: text(Zeroizing::new(b"a token".to_vec())) };
        assert_eq!(format!("{answer:?}"), "Answer { status: 200, bytes: 7 }");
    }
}
