//! Why a source gave nothing that can be used.

use domain::JstDate;
use http_client::{HttpClient, HttpError};

/// How far a failure reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Another request to the same source may go well.
    Request,
    /// The source has nothing for these dates, whatever the request.
    Dates,
    /// Every further request of this run would fail too.
    Source,
    /// The user wants the run to end.
    Run,
}

/// Why a source gave nothing that can be used. The texts hold no key and no secret address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The server gave no answer that can be read.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Requests are over for now: a day's allowance is used up, or a session has ended.
    #[error("{0}")]
    Closed(String),
    /// The subscription does not cover the dates that were asked for.
    #[error("the subscription covers {first} to {last}")]
    NotCovered {
        /// First date that it covers.
        first: JstDate,
        /// Last date that it covers.
        last: JstDate,
    },
    /// The source says, in an answer of its own form, that it cannot serve this request.
    #[error("{what} (1 tries)")]
    Busy {
        /// Its number and words.
        what: String,
    },
    /// The answer is not what the source documents.
    #[error("the answer cannot be used: {0}")]
    Malformed(String),
    /// It came, but more of its rows than a few cannot be used (rule `unusable`).
    #[error("the answer is refused: {0}")]
    Odd(String),
    /// The answer exceeds a limit.
    #[error("the answer has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of: rows or pages.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The source has no such call.
    #[error("the source has no {0}")]
    NoSuchCall(&'static str),
}

impl SourceError {
    /// How far the failure reaches.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        match self {
            Self::Http(HttpError::Key { .. } | HttpError::TooManyRequests(_)) | Self::Closed(_) => {
                Reach::Source
            }
            Self::Http(HttpError::Refused { .. }) | Self::NotCovered { .. } | Self::Odd(_) => {
                Reach::Dates
            }
            Self::Http(HttpError::Stopped) => Reach::Run,
            Self::Http(_)
            | Self::Busy { .. }
            | Self::Malformed(_)
            | Self::TooLarge { .. }
            | Self::NoSuchCall(_) => Reach::Request,
        }
    }

    /// An error made from an answer's words, free of the client's secrets.
    pub(super) fn redacted(self, client: &HttpClient) -> Self {
        match self {
            Self::Closed(text) => Self::Closed(client.redacted(&text)),
            Self::Busy { what } => Self::Busy { what: client.redacted(&what) },
            Self::Malformed(text) => Self::Malformed(client.redacted(&text)),
            Self::Odd(text) => Self::Odd(client.redacted(&text)),
            // What the client gives is free of them already.
            other => other,
        }
    }
}

/// An error about the body of an answer, free of the client's secrets.
pub(super) fn malformed(client: &HttpClient, what: impl Into<String>) -> SourceError {
    SourceError::Malformed(what.into()).redacted(client)
}
