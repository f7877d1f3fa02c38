//! Requests to the gateway as HTTP: one attempt each, with the secret that belongs to it (specification 1,
//! "Endpoints").

use std::time::Duration;

use http_client::{
    AttemptError, HeaderMap, HeaderName, Method as HttpMethod, OneAttempt, Url, secret_header,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

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
    /// A client; nothing is asked yet.
    pub(crate) fn new(endpoint: &Endpoint, prefix: &str, time: Duration) -> Result<Self, String> {
        let http = OneAttempt::new(true, time, time)?;
        Ok(Self { http, base: format!("http://{}{prefix}", endpoint.authority()) })
    }

    /// Asks once.
    pub(crate) async fn ask(&self, request: Request) -> Result<Answer, NoAnswer> {
        let Request { question, secret } = request;
        let unreadable = |why: &str| NoAnswer::Unreadable(why.to_owned());
        let url = Url::parse(&format!("{}{}", self.base, question.path()))
            .map_err(|_| unreadable("the address of the request is none"))?;
        let mut headers = HeaderMap::new();
        let body = if question == Question::Token {
            Some(SecretString::from(json!({ "APIPassword": secret.expose_secret() }).to_string()))
        } else {
            let token = secret_header(&secret);
            let token = token.map_err(|_| unreadable("the token cannot be sent in a header"))?;
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
        let asked = self.http.ask(method, url, headers, body.as_ref(), limit).await;
        let (status, body) = asked.map_err(|error| match error {
            AttemptError::Refused | AttemptError::NotSent(_) | AttemptError::MayBeSent(_) => {
                NoAnswer::Unreachable(error.to_string())
            }
            AttemptError::Status(_) | AttemptError::TooLarge { .. } => {
                NoAnswer::Unreadable(error.to_string())
            }
        })?;
        let body = String::from_utf8(body).unwrap_or_default();
        Ok(Answer { status, body })
    }
}
