//! Why a text is no formula.

use nom::error::{ErrorKind, ParseError};

use super::tokens;

/// Why a text is no formula, on one line, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FormulaError {
    /// The character that is wrong, counted from 1; one past the last at the end of the text.
    pub position: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// What is wrong, while the parser still holds the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault<'a> {
    /// The text from the wrong character on.
    pub(super) at: &'a str,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// Something else should stand here; the hint is shown at the end of the text.
    Unexpected(&'static str),
    /// A message of its own.
    Message(String),
}

/// Where the parser meets something that fits nowhere.
const OPERAND: &str = "a column, a number or `(` should follow";

impl<'a> ParseError<&'a str> for Fault<'a> {
    fn from_error_kind(at: &'a str, _kind: ErrorKind) -> Self {
        Self { at, what: What::Unexpected(OPERAND) }
    }

    fn append(_at: &'a str, _kind: ErrorKind, other: Self) -> Self {
        other
    }
}

impl Fault<'_> {
    /// The error for the client; `text` is the whole formula.
    pub(super) fn into_error(self, text: &str) -> FormulaError {
        let before = text.len().saturating_sub(self.at.len());
        let position = text.char_indices().take_while(|(byte, _)| *byte < before).count() + 1;
        let message = match self.what {
            What::Message(message) => message,
            What::Unexpected(hint) => match tokens::first(self.at) {
                Some(token) => format!("unexpected `{token}` at character {position}"),
                None => {
                    format!("unexpected end of the formula at character {position}; {hint}")
                }
            },
        };
        FormulaError { position, message }
    }
}
