//! Why a source gave nothing that can be used.

use std::time::Duration;

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
    /// The source does not take the key.
    #[error("the key or its plan was refused (HTTP {status}): {message}")]
    Key {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        message: String,
    },
    /// The source does not answer such a request, as for dates outside of a subscription.
    #[error("refused (HTTP {status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        message: String,
    },
    /// Requests are over for now: a day's allowance is used up, or a session has ended.
    #[error("{0}")]
    Closed(String),
    /// Too many requests, and the pause that the server asks for is too long.
    #[error(
        "too many requests, and the server asks for a pause of {} s; try again later or lower the rate",
        .0.as_secs()
    )]
    TooManyRequests(Duration),
    /// The server could not be reached or failed, again and again.
    #[error("{what} ({tries} tries)")]
    Unavailable {
        /// What happened at the last try.
        what: String,
        /// How often it was tried.
        tries: u32,
    },
    /// The answer is not what the source documents.
    #[error("the answer cannot be used: {0}")]
    Malformed(String),
    /// The answer exceeds a limit.
    #[error("the answer has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The source has no such call.
    #[error("the source has no {0}")]
    NoSuchCall(&'static str),
    /// The user wants the run to end.
    #[error("stopped")]
    Stopped,
}

impl SourceError {
    /// How far the failure reaches.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        match self {
            Self::Key { .. } | Self::Closed(_) | Self::TooManyRequests(_) => Reach::Source,
            Self::Refused { .. } => Reach::Dates,
            Self::Unavailable { .. }
            | Self::Malformed(_)
            | Self::TooLarge { .. }
            | Self::NoSuchCall(_) => Reach::Request,
            Self::Stopped => Reach::Run,
        }
    }
}

/// A server's words for a message: one line, not too long, nothing unprintable.
pub(super) fn shown(text: &str, characters_max: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line: String = words
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(characters_max)
        .collect();
    if words.chars().nth(characters_max).is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_server_become_one_short_line() {
        assert_eq!(shown(" a\r\n b\tc\u{1b}[31m ", 40), "a b c\u{fffd}[31m");
        assert_eq!(shown("日本語です", 3), "日本語...");
        assert_eq!(shown("日本語", 3), "日本語");
        assert_eq!(shown("", 3), "");
    }
}
