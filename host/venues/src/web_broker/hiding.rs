//! Redacts secrets that the broker may repeat: passwords, and addresses of a session.
//!
//! In words a sign replaces the secret. A text in the place of a code is shown only if it is a code.

use domain::order_mapping::Field;
use http_client::Secrets;
use secrecy::{ExposeSecret, SecretString};

use crate::web_broker::encoding::to_cp932;
use crate::web_broker::limits::CODE_CHARS_MAX;
use crate::web_broker::transport::Answered;

/// Replaces a text that is not a code.
pub const UNREADABLE_CODE: &str = "unreadable code";
/// Codes of a frame, which dialects put into their own texts.
const CODES_OF_FRAMES: [&str; 3] = ["p_errno", "p_EXRC", "p_EPRC"];
/// Words of a frame.
const WORDS_OF_FRAMES: [&str; 1] = ["p_err"];

/// Characters of the longest number among the broker's codes, with its sign.
const NUMBER_CHARS_MAX: usize = 6;

/// The secrets to redact. Nothing shows them.
#[derive(Debug, Clone, Default)]
pub struct Hidden(Secrets);

impl Hidden {
    /// The second password, in every form in which the broker may repeat it.
    #[must_use]
    pub fn password(password: &str) -> Self {
        let mut hidden = Self::default();
        hidden.hide(&SecretString::from(password.to_owned()));
        hidden
    }

    pub(crate) fn hide(&mut self, secret: &SecretString) {
        self.0.hide(secret);
        repeated(secret).iter().for_each(|form| self.0.hide(form));
    }

    fn words(&self, text: &mut String) {
        *text = self.0.redacted(text);
    }

    /// Leaves a code if it has letters, digits and `-` only and is no secret; else replaces it.
    fn code(&self, code: &mut String) {
        let is_code = code.len() <= CODE_CHARS_MAX
            && code.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-');
        // Short numbers are the broker's own codes, even if they equal a password: they decide the outcome of a
        // request.
        let is_number = code.len() <= NUMBER_CHARS_MAX
            && code.bytes().all(|letter| letter.is_ascii_digit() || letter == b'-');
        if !is_code || (!is_number && self.0.stands_in(code)) {
            UNREADABLE_CODE.clone_into(code);
        }
    }

    /// Redacts a frame of the stream.
    pub fn frame(&self, fields: &mut [Field]) {
        for field in fields {
            if CODES_OF_FRAMES.contains(&field.name.as_str()) {
                self.code(&mut field.value);
            } else if WORDS_OF_FRAMES.contains(&field.name.as_str()) {
                self.words(&mut field.value);
            }
        }
    }

    /// Redacts an answer. Fields that are neither words nor codes are data and stay.
    pub(crate) fn answer(&self, answered: &mut Answered) {
        let answer = &mut answered.answer;
        self.code(&mut answer.errno);
        self.words(&mut answer.error_text);
        for field in &mut answer.fields {
            if field.name.ends_with("Text") {
                self.words(&mut field.value);
            } else if matches!(field.name.as_str(), "sResultCode" | "sWarningCode") {
                self.code(&mut field.value);
            }
        }
    }
}

impl From<&Secrets> for Hidden {
    fn from(secrets: &Secrets) -> Self {
        Self(secrets.clone())
    }
}

/// The spellings of a secret in words that repeat a request. Characters outside ASCII are percent-encoded bytes
/// in an address, and numbers in JSON, with digits of either case. [`Secrets`] knows the spellings of ASCII.
pub(crate) fn repeated(secret: &SecretString) -> Vec<SecretString> {
    let secret = secret.expose_secret();
    if secret.is_ascii() {
        return Vec::new();
    }
    let in_json = |spell: fn(u16) -> String| {
        let unit = |unit: u16| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => spell(unit),
        };
        secret.encode_utf16().map(unit).collect::<String>()
    };
    let mut found =
        vec![in_json(|unit| format!("\\u{unit:04x}")), in_json(|unit| format!("\\u{unit:04X}"))];
    if let Ok(bytes) = to_cp932(secret) {
        let in_address = |spell: fn(u8) -> String| {
            let byte = |byte: &u8| {
                if byte.is_ascii() { char::from(*byte).to_string() } else { spell(*byte) }
            };
            bytes.iter().map(byte).collect::<String>()
        };
        found.push(in_address(|byte| format!("%{byte:02X}")));
        found.push(in_address(|byte| format!("%{byte:02x}")));
    }
    found.into_iter().map(SecretString::from).collect()
}

#[cfg(test)]
mod tests;
