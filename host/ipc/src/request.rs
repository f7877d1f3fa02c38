//! The id by which an answer names its command (pin P61).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::Text;

/// Characters that an id may have.
const CHARS_MAX: usize = 64;

/// An id of a command, 1 to 64 characters, chosen by the client. It is echoed and never judged, so
/// the same one may be used again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RequestId(String);

impl RequestId {
    /// The id as the text of an answer.
    #[must_use]
    pub fn as_text(&self) -> Text<'_> {
        Text::Borrowed(&self.0)
    }
}

/// An id is empty or longer than 64 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestIdError;

impl fmt::Display for RequestIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a request_id has 1 to {CHARS_MAX} characters")
    }
}

impl std::error::Error for RequestIdError {}

impl TryFrom<String> for RequestId {
    type Error = RequestIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let fits = !text.is_empty() && text.chars().nth(CHARS_MAX).is_none();
        if fits { Ok(Self(text)) } else { Err(RequestIdError) }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for RequestId {
    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Chosen by the client and echoed in the answers.",
            "type": "string",
            "minLength": 1,
            "maxLength": CHARS_MAX,
        })
    }
}
