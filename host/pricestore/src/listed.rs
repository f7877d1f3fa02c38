//! What the issues were called, and where they were listed: the lists of the vendor by date, and the
//! database `jp/listed_info.db` that is made of them.
//!
//! No answer knows the future, so what is shown of an issue on a date is what was known on it:
//!
//! | Rule | Where | an issue on a date has |
//! |---|---|---|
//! | N1 | the last stored list of the date or before has the issue | what that list says |
//! | N2 | that list does not have it, whatever other lists say | nothing |
//! | N3 | every stored list is of a later date | nothing |
//! | N4 | no list is stored | nothing |
//! | N5 | a text is empty, longer than [`LISTED_TEXT_BYTES_MAX`] or would steer a terminal | nothing in its place |

mod database;
mod history;

use std::fmt;
use std::sync::Arc;

use domain::text::steers;

use crate::limits::LISTED_TEXT_BYTES_MAX;

pub use database::{ListedError, create, load, read_file, schema, store, write_file};
pub use history::{Change, ListedHistory, Span};

/// What a list says of an issue: the columns of the database, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueField {
    /// Its name in Japanese.
    Name,
    /// Its name in English.
    NameEn,
    /// The market's code.
    MarketCode,
    /// The market.
    Market,
    /// The code of its sector of 33.
    Sector33Code,
    /// Its sector of 33.
    Sector33,
    /// The code of its sector of 17.
    Sector17Code,
    /// Its sector of 17.
    Sector17,
    /// Its class of size.
    Size,
}

/// How many things a list says.
const FIELDS: usize = IssueField::ALL.len();

impl IssueField {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::NameEn,
        Self::MarketCode,
        Self::Market,
        Self::Sector33Code,
        Self::Sector33,
        Self::Sector17Code,
        Self::Sector17,
        Self::Size,
    ];

    /// The name of its column.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::NameEn => "name_en",
            Self::MarketCode => "market_code",
            Self::Market => "market",
            Self::Sector33Code => "sector33_code",
            Self::Sector33 => "sector33",
            Self::Sector17Code => "sector17_code",
            Self::Sector17 => "sector17",
            Self::Size => "size",
        }
    }

    /// What it is, for the description of the database.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Name => "name in Japanese",
            Self::NameEn => "name in English",
            Self::MarketCode => "code of the market, like 0111",
            Self::Market => "market, in Japanese",
            Self::Sector33Code => "code of the sector of 33, like 3700",
            Self::Sector33 => "sector of 33, in Japanese",
            Self::Sector17Code => "code of the sector of 17, like 6",
            Self::Sector17 => "sector of 17, in Japanese",
            Self::Size => "class of size as the vendor gives it, like TOPIX Core30, or -",
        }
    }
}

/// What a list says of one issue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueInfo([Option<Arc<str>>; FIELDS]);

/// Why a text is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFault {
    /// It has more than [`LISTED_TEXT_BYTES_MAX`] bytes.
    TooLong,
    /// It has characters that are commands to what shows it.
    Steers,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "it has more than {LISTED_TEXT_BYTES_MAX} bytes"),
            Self::Steers => f.write_str("it has control characters"),
        }
    }
}

impl IssueInfo {
    /// A text of it; none where the list says nothing.
    #[must_use]
    pub fn text(&self, field: IssueField) -> Option<&str> {
        self.0[field as usize].as_deref()
    }

    /// Takes a text; an empty one says nothing (rule N5).
    ///
    /// # Errors
    /// Why it is not taken; the field says nothing then.
    pub fn set(&mut self, field: IssueField, text: &str) -> Result<(), TextFault> {
        let place = &mut self.0[field as usize];
        *place = None;
        if text.len() > LISTED_TEXT_BYTES_MAX {
            return Err(TextFault::TooLong);
        }
        if text.contains(steers) {
            return Err(TextFault::Steers);
        }
        if !text.is_empty() {
            *place = Some(text.into());
        }
        Ok(())
    }

    /// The same with a text, where it can be taken.
    #[must_use]
    pub fn with(mut self, field: IssueField, text: &str) -> Self {
        let _ = self.set(field, text);
        self
    }
}

#[cfg(test)]
mod tests;
