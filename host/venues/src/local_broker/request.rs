//! Requests to the gateway: every endpoint of this phase, and no other (specification 1, "Endpoints").

use std::fmt;

use secrecy::SecretString;
use serde_json::json;
use zeroize::Zeroizing;

use super::keys::{BadTicker, TOKYO, composite_key, symbol_of};

/// The limit that a request counts against (specification 1, "Limits").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// None: the request for a token (specification 4, P48).
    Token,
    /// Orders; no request of this phase.
    Order,
    /// Balances.
    Balance,
    /// All other reads, and registrations.
    Information,
}

/// The HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
}

/// A request without its secret. Endpoints of orders have no name here: nothing in this crate can reach them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `POST /token`
    Token,
    /// `GET /wallet/cash`
    Cash,
    /// `GET /wallet/margin`
    Margin,
    /// `GET /orders`
    Orders,
    /// `GET /positions`
    Positions,
    /// `GET /board/{key}`; see [`Question::board`].
    Board(String),
    /// `PUT /register`
    Register(Vec<String>),
    /// `PUT /unregister`
    Unregister(Vec<String>),
    /// `PUT /unregister/all`. It removes the entries of other programs, too, so the venue never sends it by
    /// itself (specification 4, P50).
    UnregisterAll,
}

impl Question {
    /// The request for the board of a ticker, and its symbol.
    ///
    /// # Errors
    /// The ticker is not one.
    pub fn board(ticker: &str) -> Result<(String, Self), BadTicker> {
        let symbol = symbol_of(ticker)?;
        Ok((symbol.to_owned(), Self::Board(composite_key(symbol, TOKYO)?)))
    }

    /// The limit that it counts against.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Token => Class::Token,
            Self::Cash | Self::Margin => Class::Balance,
            Self::Orders
            | Self::Positions
            | Self::Board(_)
            | Self::Register(_)
            | Self::Unregister(_)
            | Self::UnregisterAll => Class::Information,
        }
    }

    /// Whether it changes the gateway's list.
    #[must_use]
    pub const fn changes_list(&self) -> bool {
        matches!(
            self,
            Self::Board(_) | Self::Register(_) | Self::Unregister(_) | Self::UnregisterAll
        )
    }

    /// The HTTP method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::Token => Method::Post,
            Self::Register(_) | Self::Unregister(_) | Self::UnregisterAll => Method::Put,
            Self::Cash | Self::Margin | Self::Orders | Self::Positions | Self::Board(_) => {
                Method::Get
            }
        }
    }

    /// The path below the dialect's prefix, with the query.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Token => "/token".to_owned(),
            Self::Cash => "/wallet/cash".to_owned(),
            Self::Margin => "/wallet/margin".to_owned(),
            Self::Orders => "/orders".to_owned(),
            Self::Positions => "/positions".to_owned(),
            Self::Board(key) => format!("/board/{key}"),
            Self::Register(_) => "/register".to_owned(),
            Self::Unregister(_) => "/unregister".to_owned(),
            Self::UnregisterAll => "/unregister/all".to_owned(),
        }
    }

    /// The body, except the token's, which holds the password.
    #[must_use]
    pub fn body(&self) -> Option<String> {
        let (Self::Register(symbols) | Self::Unregister(symbols)) = self else { return None };
        let row = |symbol: &String| json!({ "Symbol": symbol, "Exchange": TOKYO });
        Some(json!({ "Symbols": symbols.iter().map(row).collect::<Vec<_>>() }).to_string())
    }
}

/// A request with its secret: the password for a token, the token for all others.
#[derive(Clone)]
pub struct Request {
    /// The request.
    pub question: Question,
    /// The password or the token.
    pub secret: SecretString,
}

/// Shows no secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("question", &self.question).finish_non_exhaustive()
    }
}

/// An HTTP answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body, which may be a token; empty if it is not UTF-8.
    pub body: Zeroizing<String>,
}

/// Shows nothing of the body.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.body.len();
        f.debug_struct("Answer").field("status", &self.status).field("bytes", &bytes).finish()
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing listens at the address: the gateway is not running.
    #[error("{0}")]
    Refused(String),
    /// The gateway cannot be reached otherwise, or does not answer in time.
    #[error("{0}")]
    Unreachable(String),
    /// The answer cannot be used.
    #[error("{0}")]
    Unreadable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Specification 1, "Endpoints": the whole table. No other endpoint may be requested.
    const ENDPOINTS: [(Method, &str); 9] = [
        (Method::Post, "/token"),
        (Method::Get, "/wallet/cash"),
        (Method::Get, "/wallet/margin"),
        (Method::Get, "/orders"),
        (Method::Get, "/positions"),
        (Method::Get, "/board/7203@1"),
        (Method::Put, "/register"),
        (Method::Put, "/unregister"),
        (Method::Put, "/unregister/all"),
    ];

    /// Every kind of request with one example: a kind without a row does not compile.
    macro_rules! questions {
        ($($kind:pat => $question:expr, $class:expr, $body:expr;)*) => {
            const _: fn(&Question) = |question| match question { $($kind => (),)* };

            fn questions() -> Vec<(Question, Class, Option<&'static str>)> {
                let all = vec![$(($question, $class, $body)),*];
                let are_of_their_kinds = [$(matches!($question, $kind)),*];
                assert!(are_of_their_kinds.iter().all(|is| *is), "{are_of_their_kinds:?}");
                all
            }
        };
    }

    questions! {
        Question::Token => Question::Token, Class::Token, None;
        Question::Cash => Question::Cash, Class::Balance, None;
        Question::Margin => Question::Margin, Class::Balance, None;
        Question::Orders => Question::Orders, Class::Information, None;
        Question::Positions => Question::Positions, Class::Information, None;
        Question::Board(_) => Question::board("7203.TSE").unwrap().1, Class::Information, None;
        Question::Register(_) => Question::Register(two()), Class::Information, Some(BODY);
        Question::Unregister(_) => Question::Unregister(two()), Class::Information, Some(BODY);
        Question::UnregisterAll => Question::UnregisterAll, Class::Information, None;
    }

    const BODY: &str =
        r#"{"Symbols":[{"Symbol":"7203","Exchange":1},{"Symbol":"130A","Exchange":1}]}"#;

    fn two() -> Vec<String> {
        vec!["7203".to_owned(), "130A".to_owned()]
    }

    #[test]
    fn no_request_is_outside_of_the_table_of_endpoints() {
        let mut requests = Vec::new();
        for (question, class, body) in questions() {
            assert_eq!(question.class(), class, "{question:?}");
            assert_eq!(question.body().as_deref(), body, "{question:?}");
            requests.push((question.method(), question.path()));
        }
        let allowed: Vec<_> = ENDPOINTS.map(|(method, path)| (method, path.to_owned())).into();
        assert_eq!(requests, allowed);
    }

    /// No text of a client leads to another endpoint.
    #[test]
    fn no_ticker_leads_to_another_endpoint() {
        for ticker in ["../orders", "7203/../../orders", "7203?a", "7203#", "7203@1", "%2e%2e", ""]
        {
            assert!(Question::board(ticker).is_err(), "{ticker}");
        }
    }
}
