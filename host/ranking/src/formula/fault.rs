//! Why a text is no formula.

use nom::error::{ErrorKind, ParseError};

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
