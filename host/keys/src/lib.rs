//! Keys and secret addresses: found in the environment, among systemd's credentials or in the system's
//! own key store, and put there.
//!
//! A crate that talks to somebody names its keys as constants of [`Key`]. What is found is a
//! [`SecretString`]: it has no text for people, so it gets into no log, report or message.

mod credential;
mod deadline;
pub mod dialog;
mod error;
mod pinentry;
mod private_key;
mod store;
mod value;

use std::env::{self, VarError};
use std::fmt::{self, Display, Formatter};

use secrecy::{ExposeSecret, SecretSlice, SecretString};

pub use credential::{CREDENTIAL_BYTES_MAX, CREDENTIALS_VARIABLE};
pub use error::KeyError;
pub use private_key::{PRIVATE_KEY_BYTES_MAX, PrivateKey};
pub use store::{KeyStore, SERVICE_VARIABLE, STORE_ANSWER_MAX, STORE_VARIABLE};
pub use value::{KEY_BYTES_MAX, open_file};

use store::Service;

/// The name under which key stores know this program, where no other is asked for.
pub const KEY_SERVICE: &str = "kumiki";
/// Bytes of a key's name, and of the name under which key stores know this program.
pub const NAME_BYTES_MAX: usize = 64;

/// Keeps the memory of this process, which holds secrets from now on, out of core files and from debuggers of
/// other processes of the user. Only Linux can.
pub fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An old kernel that cannot do it keeps its rules.
        _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Where a secret is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    variable: &'static str,
    other: Option<&'static str>,
    entry: &'static str,
    is_private_key: bool,
}

/// Where a secret came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This environment variable.
    Environment(&'static str),
    /// A file in the folder of systemd's credentials.
    Credential,
    /// A key store.
    Store(KeyStore),
}

/// A secret and where it came from.
#[derive(Debug)]
pub struct Found {
    /// The secret: the ASCII of a word, or a private key as DER.
    pub secret: SecretSlice<u8>,
    /// Where it came from.
    pub origin: Origin,
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Credential => f.write_str("systemd credential"),
            Self::Store(store) => f.write_str(store.title()),
        }
    }
}

impl Key {
    /// A secret in the environment variable `variable`, else a credential of the name `entry`, else
    /// under that name in a key store. See [`Key::locate`].
    ///
    /// # Panics
    /// At compile time, when `entry` is not 1 to [`NAME_BYTES_MAX`] of `a-z`, `0-9` and `-`: it names
    /// a file.
    #[must_use]
    pub const fn new(variable: &'static str, entry: &'static str) -> Self {
        let bytes = entry.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= NAME_BYTES_MAX, "1 to 64 bytes");
        let mut at = 0;
        while at < bytes.len() {
            let fine = matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'-');
            assert!(fine, "only a-z, 0-9 and -");
            at += 1;
        }
        Self { variable, other: None, entry, is_private_key: false }
    }

    /// The same, with a variable of somebody else that is read where our own is not set.
    #[must_use]
    pub const fn or_variable(self, other: &'static str) -> Self {
        Self { other: Some(other), ..self }
    }

    /// The same, whose value is a private key and no word: a file of it is read, and stores keep its bytes.
    #[must_use]
    pub const fn of_private_key(self) -> Self {
        Self { is_private_key: true, ..self }
    }

    /// Whether its value is a private key.
    #[must_use]
    pub const fn is_private_key(self) -> bool {
        self.is_private_key
    }

    /// Bytes that a file with the value may have.
    #[must_use]
    pub const fn file_bytes_max(self) -> usize {
        if self.is_private_key { PRIVATE_KEY_BYTES_MAX } else { CREDENTIAL_BYTES_MAX }
    }

    /// Our environment variable.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        self.variable
    }

    /// The variable of somebody else, where there is one.
    #[must_use]
    pub const fn other_variable(self) -> Option<&'static str> {
        self.other
    }

    /// The name of the credential and of the entry in a key store.
    #[must_use]
    pub const fn entry(self) -> &'static str {
        self.entry
    }

    /// The value of this key from the text of a place of somebody else's, by the rules of all its places.
    ///
    /// # Errors
    /// [`KeyError`] where the text cannot be a key.
    pub fn read(self, place: &str, text: &SecretString) -> Result<SecretString, KeyError> {
        let value = value::of(self, place, text.expose_secret().as_bytes())?;
        let text = std::str::from_utf8(value.expose_secret());
        text.map(SecretString::from).map_err(|_| KeyError::unusable(place, "not text"))
    }

    /// Looks the secret up, as [`Key::locate`] does.
    ///
    /// # Errors
    /// [`KeyError`], which says why there is none and where it can be put.
    pub fn find(self) -> Result<SecretString, KeyError> {
        let found = self.locate()?;
        let text = std::str::from_utf8(found.secret.expose_secret());
        let text = text.map_err(|_| KeyError::unusable(self.entry, "not text"))?;
        Ok(SecretString::from(text))
    }

    /// Looks a private key up, as [`Key::locate`] does.
    ///
    /// # Errors
    /// [`KeyError`], which says why there is none and where it can be put.
    pub fn find_private_key(self) -> Result<PrivateKey, KeyError> {
        let found = self.locate()?;
        PrivateKey::read(found.secret.expose_secret())
            .map_err(|what| KeyError::unusable(self.entry, what))
    }

    /// Looks the secret up and tells where it was. The first row that has one counts; what is there and
    /// cannot be used is an error, because passing over it would use another key than the one meant.
    ///
    /// | # | place | counts when | cannot be used |
    /// |---|---|---|---|
    /// | K1 | our variable | set and not blank | not one word of ASCII, longer than [`KEY_BYTES_MAX`] |
    /// | K2 | somebody else's variable | as K1 | as K1 |
    /// | K3 | a file of its name in `$CREDENTIALS_DIRECTORY` | it is there | as K1; no file, open to others |
    /// | K4 | the store that `KUMIKI_KEY_STORE` names | it has an entry | as K1 |
    ///
    /// K4 is the system's own store (Secret Service, Keychain, Credential Manager) without that
    /// variable or with `system`, the kernel's keyring with `kernel` only, none with `off`. A store that
    /// cannot be asked has no key; the error tells why. A private key is no word of ASCII but what
    /// [`PrivateKey::read`] takes, in every row.
    ///
    /// # Errors
    /// [`KeyError`], which says why there is none and where it can be put.
    pub fn locate(self) -> Result<Found, KeyError> {
        if let Some(found) = self.before_stores()? {
            return Ok(found);
        }
        let store = KeyStore::from_environment()?;
        let missing = |why: String| KeyError::Missing { key: self, store, why };
        match store.get(Service::from_environment()?, self) {
            Ok(Some(bytes)) => {
                let place = format!("{} in {}", self.entry, store.title());
                Ok(Found { secret: value::of(self, &place, &bytes)?, origin: Origin::Store(store) })
            }
            Ok(None) => Err(missing(String::new())),
            Err(why) => Err(missing(why)),
        }
    }

    /// The rows K1 to K3 of [`Key::locate`], which go before any store.
    ///
    /// # Errors
    /// [`KeyError`] where one of them cannot be used.
    pub fn before_stores(self) -> Result<Option<Found>, KeyError> {
        for variable in [Some(self.variable), self.other].into_iter().flatten() {
            if let Some(secret) = in_variable(self, variable)? {
                return Ok(Some(Found { secret, origin: Origin::Environment(variable) }));
            }
        }
        let credential = credential::find(self)?;
        Ok(credential.map(|secret| Found { secret, origin: Origin::Credential }))
    }

    /// Puts a value into a store, in place of what is there.
    ///
    /// # Errors
    /// [`KeyError`] where the value cannot be a key, or the store cannot be used.
    pub fn put(self, store: KeyStore, value: &[u8]) -> Result<(), KeyError> {
        let value = value::of(self, "the value", value)?;
        let ended = store.put(Service::from_environment()?, self, value);
        ended.map_err(|why| KeyError::Store { key: self, store, why })
    }

    /// Removes the value from a store; false where it has none.
    ///
    /// # Errors
    /// [`KeyError`] where the store cannot be used.
    pub fn remove(self, store: KeyStore) -> Result<bool, KeyError> {
        let ended = store.remove(Service::from_environment()?, self.entry);
        ended.map_err(|why| KeyError::Store { key: self, store, why })
    }
}

fn in_variable(key: Key, variable: &str) -> Result<Option<SecretSlice<u8>>, KeyError> {
    match env::var(variable) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => value::of(key, variable, text.as_bytes()).map(Some),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(KeyError::unusable(variable, "not text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_with_secrets_is_in_no_core_file() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        hide_memory();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    const KEY: Key = Key::new("KUMIKI_TEST_KEY", "test-key");

    #[test]
    fn a_missing_key_says_where_it_can_be_put() {
        let told = |key, store, why: &str| {
            KeyError::Missing { key, store, why: why.to_owned() }.to_string()
        };
        let message = told(KEY, KeyStore::Off, "");
        for words in ["KUMIKI_TEST_KEY is not set", "credential test-key", "KUMIKI_KEY_STORE=off"] {
            assert!(message.contains(words), "{message}");
        }
        let message = told(KEY.or_variable("OTHER_KEY"), KeyStore::System, "it is locked");
        for words in ["nor is OTHER_KEY", "test-key", "it is locked", "kumiki help key"] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn what_is_found_has_no_text() {
        let secret = SecretSlice::from(b"marker-4711".to_vec());
        let found = Found { secret, origin: Origin::Credential };
        assert!(!format!("{found:?}").contains("marker"), "{found:?}");
    }
}
