//! Why a server gave no answer that can be used.

use std::time::Duration;

use crate::stream::MinimumRate;

/// Why a server gave no answer. The texts hold no key and no secret address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The server does not take the key, or not for this question (HTTP 401 or 403).
    #[error("refused (HTTP {status}): {message}")]
    Key {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        message: String,
    },
    /// The server does not answer such a request, as for dates outside of a subscription.
    #[error("refused (HTTP {status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        message: String,
    },
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
    /// The answer is too large.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes, after unpacking.
        limit: usize,
    },
    /// The answer comes too slowly.
    #[error("fewer than {} bytes came within {} s", .0.bytes, .0.time.as_secs_f64())]
    TooSlow(MinimumRate),
    /// The user wants the work to end.
    #[error("stopped")]
    Stopped,
}

/// A server's words for a message: one line, not too long, nothing unprintable.
#[must_use]
pub fn one_line(text: &str, characters_max: usize) -> String {
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
        assert_eq!(one_line(" a\r\n b\tc\u{1b}[31m ", 40), "a b c\u{fffd}[31m");
        assert_eq!(one_line("日本語です", 3), "日本語...");
        assert_eq!(one_line("日本語", 3), "日本語");
        assert_eq!(one_line("", 3), "");
    }
}
