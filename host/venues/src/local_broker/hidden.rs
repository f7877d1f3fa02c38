//! Redacts our passwords and tokens in all texts of the gateway.
//!
//! Three rules hold for every text of the gateway's on its way to a client, a log or an error:
//! - It is redacted first and cut afterwards. A secret that is cut would no longer be found.
//! - A dialect cuts texts and knows no secrets. If its input holds a secret, nothing of its output is shown:
//!   [`Hidden::words_about`], [`Hidden::name`].
//! - An exact id that holds a secret is redacted like all else, although no command can name it then.
//!
//! Numbers stay, as in amounts, times and codes of a closed list. Only numbers in the gateway's own words
//! (codes of errors, further fields of orders) are redacted.

use std::collections::VecDeque;

use domain::text::on_one_line;
use http_client::{Secrets, one_line};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::account::{AccountOrder, AccountPosition};
use super::limits::{NAME_CHARS_MAX, PASSWORDS_HIDDEN_MAX, TOKENS_HIDDEN_MAX, WORDS_CHARS_MAX};

/// Replaces a code that is a secret.
const HIDDEN: &str = "***";

/// The most recently used passwords and tokens. Nothing shows them.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    secrets: Secrets,
    /// The most recently used one is the last.
    passwords: VecDeque<SecretString>,
    tokens: VecDeque<SecretString>,
}

impl Hidden {
    /// Redacts a password from now on. Above [`PASSWORDS_HIDDEN_MAX`] it drops the least recently used one.
    pub(crate) fn hide_password(&mut self, password: &SecretString) {
        keep(&mut self.passwords, password, PASSWORDS_HIDDEN_MAX);
        self.renew();
    }

    /// Redacts a token from now on. Above [`TOKENS_HIDDEN_MAX`] it drops the least recently used one.
    pub(crate) fn hide_token(&mut self, token: &SecretString) {
        keep(&mut self.tokens, token, TOKENS_HIDDEN_MAX);
        self.renew();
    }

    /// A token may equal a password, so none is removed by itself.
    fn renew(&mut self) {
        self.secrets = Secrets::default();
        self.passwords.iter().chain(&self.tokens).for_each(|secret| self.secrets.hide(secret));
    }

    /// A text of the gateway in full: on one line, redacted, then cut.
    pub(crate) fn words(&self, text: &str) -> String {
        one_line(&self.secrets.redacted(text), WORDS_CHARS_MAX)
    }

    /// A dialect's text about `given`, on one line and cut.
    pub(crate) fn words_about(&self, given: &str, said: &str) -> String {
        one_line(&self.about(given, said), WORDS_CHARS_MAX)
    }

    /// A dialect's failure at `given`, on one line.
    pub(crate) fn fault_about(&self, given: &str, fault: &str) -> String {
        on_one_line(&self.about(given, fault)).into_owned()
    }

    fn about(&self, given: &str, said: &str) -> String {
        if said.is_empty() || !self.secrets.stand_in(given) {
            return self.secrets.redacted(said);
        }
        "(not shown: the gateway repeats a secret)".to_owned()
    }

    /// The name that a dialect found in `given`, cut; `None` if `given` or the name holds a secret.
    pub(crate) fn name(&self, given: &str, name: &str) -> Option<String> {
        let may_be_shown = !self.secrets.stand_in(given) && !self.secrets.stand_in(name);
        may_be_shown.then(|| name.chars().take(NAME_CHARS_MAX).collect())
    }

    /// A code of the gateway's.
    pub(crate) fn code(&self, code: i64) -> String {
        self.number(&code.to_string()).unwrap_or(HIDDEN).to_owned()
    }

    fn number<'a>(&self, number: &'a str) -> Option<&'a str> {
        Some(number).filter(|number| !self.secrets.stands_in(number))
    }

    /// Redacts an order: its ids, and all further fields with their names.
    pub(crate) fn order(&self, row: &mut AccountOrder) {
        self.text(&mut row.venue_order_id);
        self.text(&mut row.instrument_id);
        self.fields(&mut row.extra);
    }

    /// Redacts a position: its ids.
    pub(crate) fn position(&self, row: &mut AccountPosition) {
        self.text(&mut row.instrument_id);
        if let Some(id) = &mut row.number {
            self.text(id);
        }
    }

    fn text(&self, text: &mut String) {
        if self.secrets.stand_in(text) {
            *text = self.secrets.redacted(text);
        }
    }

    /// If names are the same after redaction, the last one stays.
    fn fields(&self, fields: &mut Map<String, Value>) {
        let all = std::mem::take(fields);
        fields.extend(all.into_iter().map(|(name, mut value)| {
            self.value(&mut value);
            (self.secrets.redacted(&name), value)
        }));
    }

    /// Redacts a value at any depth: rows are nested no deeper than
    /// [`ROW_DEPTH_MAX`](super::limits::ROW_DEPTH_MAX).
    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.secrets.redacted(text),
            Value::Number(number) if self.number(&number.to_string()).is_none() => {
                *value = HIDDEN.into();
            }
            Value::Object(fields) => self.fields(fields),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Makes a secret the last one, and drops the first above `count_max`.
fn keep(kept: &mut VecDeque<SecretString>, secret: &SecretString, count_max: usize) {
    kept.retain(|known| known.expose_secret() != secret.expose_secret());
    kept.push_back(secret.clone());
    if kept.len() > count_max {
        kept.pop_front();
    }
}

#[cfg(test)]
mod tests;
