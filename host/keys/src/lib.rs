//! Keys and secret addresses: from the environment, else from the system's own key store.
//!
//! A crate that talks to somebody names its keys as constants of [`Key`]. What is found is a
//! [`SecretString`]: it has no text for people, so it gets into no log, report or message.

use secrecy::SecretString;

/// The name under which the system's key store knows this program.
pub const KEY_SERVICE: &str = "kumiki";
/// Bytes of a key or a secret address.
pub const KEY_BYTES_MAX: usize = 2_048;

/// Where a secret is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    variable: &'static str,
    entry: &'static str,
}

/// Why there is no secret. The texts hold no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Neither the environment nor the key store has it.
    #[error(
        "no key: {} is not set, and the system's key store has no {} for {KEY_SERVICE}{store}",
        key.variable, key.entry
    )]
    Missing {
        /// What was looked for.
        key: Key,
        /// What the key store says in parentheses; empty where it works and has no such entry.
        store: String,
    },
    /// It cannot be used.
    #[error("{variable}{what}")]
    Unusable {
        /// The environment variable, whether or not the value came from there.
        variable: &'static str,
        /// What is wrong with the value.
        what: String,
    },
}

impl Key {
    /// A secret in the environment variable `variable`, else under the user name `entry` in the
    /// system's key store.
    #[must_use]
    pub const fn new(variable: &'static str, entry: &'static str) -> Self {
        Self { variable, entry }
    }

    /// The environment variable.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        self.variable
    }

    /// The user name of the entry in the system's key store.
    #[must_use]
    pub const fn entry(self) -> &'static str {
        self.entry
    }

    /// Looks the secret up.
    ///
    /// # Errors
    /// [`KeyError`], which says why there is none and where it can be put.
    pub fn find(self) -> Result<SecretString, KeyError> {
        match std::env::var(self.variable) {
            Ok(text) if !text.trim().is_empty() => return self.check(&text),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(self.unusable(" is not text".to_owned()));
            }
            _ => {}
        }
        let entry = keyring::Entry::new(KEY_SERVICE, self.entry);
        match entry.and_then(|entry| entry.get_password()) {
            Ok(text) => self.check(&text),
            Err(keyring::Error::NoEntry) => {
                Err(KeyError::Missing { key: self, store: String::new() })
            }
            // Containers and servers often have no key store at all.
            Err(error) => Err(KeyError::Missing { key: self, store: format!(" ({error})") }),
        }
    }

    /// A key is one line of visible ASCII, so that it can stand in a header or an address.
    fn check(self, text: &str) -> Result<SecretString, KeyError> {
        let text = text.trim();
        if text.len() > KEY_BYTES_MAX {
            return Err(self.unusable(format!(": longer than {KEY_BYTES_MAX} bytes")));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.unusable(": not one word of ASCII characters".to_owned()));
        }
        Ok(SecretString::from(text.to_owned()))
    }

    const fn unusable(self, what: String) -> KeyError {
        KeyError::Unusable { variable: self.variable, what }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const KEY: Key = Key::new("KUMIKI_TEST_KEY", "test-key");

    #[test]
    fn keys_are_one_word_and_never_shown() {
        let key = KEY.check(" secret-word\n").unwrap();
        assert_eq!(key.expose_secret(), "secret-word");
        assert!(!format!("{key:?}").contains("secret-word"));
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        for wrong in ["", "  ", "two words", "schlüssel", long.as_str()] {
            let message = KEY.check(wrong).unwrap_err().to_string();
            assert!(message.starts_with("KUMIKI_TEST_KEY: "), "{message}");
            assert!(wrong.trim().is_empty() || !message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn a_missing_key_says_where_it_can_be_put() {
        let message = KeyError::Missing { key: KEY, store: String::new() }.to_string();
        assert!(message.contains("KUMIKI_TEST_KEY is not set"), "{message}");
        assert!(message.contains("test-key for kumiki"), "{message}");
    }
}
