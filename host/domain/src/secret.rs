//! Texts that no log may ever hold.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What is shown in place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// A password or a token: it can be read from a message but never written into one, its debug output
/// is `[REDACTED]`, and its memory is wiped when it goes.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SecretText)
    }
}

/// Reads the text of a secret. The usual error says what stands there instead, as `integer 1234`.
struct SecretText;

impl SecretText {
    fn no_text<E: Error>() -> Result<Secret, E> {
        Err(E::custom("a secret must be a text"))
    }
}

impl<'de> Visitor<'de> for SecretText {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::from(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Secret, E> {
        Ok(Secret::from(text))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Secret, E> {
        Self::no_text()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
        Self::no_text()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
        Self::no_text()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
        Self::no_text()
    }

    fn visit_unit<E: Error>(self) -> Result<Secret, E> {
        Self::no_text()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Secret, A::Error> {
        Self::no_text()
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Secret, A::Error> {
        Self::no_text()
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A password or a token.",
            "type": "string",
            "writeOnly": true,
        })
    }
}
