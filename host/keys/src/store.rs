//! The key stores: the system's own, and on Linux the kernel's keyring.

use std::env;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyring::{Entry, Error};
use secrecy::{ExposeSecret, SecretSlice};
use zeroize::Zeroizing;

use crate::deadline::within;
use crate::{KEY_SERVICE, Key, KeyError, NAME_BYTES_MAX};

/// Says which store is asked: `system`, `kernel` or `off`.
pub const STORE_VARIABLE: &str = "KUMIKI_KEY_STORE";
/// Another name under which stores know this program, so that one user may have keys of two accounts.
pub const SERVICE_VARIABLE: &str = "KUMIKI_KEY_SERVICE";
/// How long a store may take: a person unlocks it, or nobody is there.
pub const STORE_ANSWER_MAX: Duration = Duration::from_secs(120);
/// Characters of what a store says.
const WHY_CHARS_MAX: usize = 200;

/// A store did not answer in time; it is not asked again.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Where keys are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStore {
    /// The Secret Service on Linux, the Keychain on macOS, the Credential Manager on Windows.
    System,
    /// The kernel's keyring, on Linux: it forgets when the session or the machine ends, so it is only
    /// used when asked for.
    Kernel,
    /// None.
    Off,
}

impl FromStr for KeyStore {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "system" => Ok(Self::System),
            "kernel" => Ok(Self::Kernel),
            "off" => Ok(Self::Off),
            _ => Err("write system, kernel or off".to_owned()),
        }
    }
}

impl KeyStore {
    /// The store that the environment names; the system's own where it names none.
    ///
    /// # Errors
    /// [`KeyError`] for a name that is none.
    pub fn from_environment() -> Result<Self, KeyError> {
        let named = env::var_os(STORE_VARIABLE).unwrap_or_default();
        match named.to_str().map(str::trim) {
            Some("") => Ok(Self::System),
            Some(name) => name.parse().map_err(|what| KeyError::unusable(STORE_VARIABLE, what)),
            None => Err(KeyError::unusable(STORE_VARIABLE, "not text")),
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::System if cfg!(target_os = "macos") => "the Keychain",
            Self::System if cfg!(windows) => "the Credential Manager",
            Self::System => "the Secret Service",
            Self::Kernel => "the kernel's keyring",
            Self::Off => "no store",
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Kernel => "kernel",
            Self::Off => "off",
        }
    }

    pub(crate) fn get(
        self,
        service: Service,
        key: Key,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
        if self == Self::Off {
            return Ok(None);
        }
        absent_is_none(asked(move || {
            let entry = self.entry(&service, key.entry())?;
            // As bytes: as a text it would be too long for the Credential Manager.
            let bytes = match key.is_private_key() {
                true => entry.get_secret()?,
                false => entry.get_password()?.into_bytes(),
            };
            Ok(Zeroizing::new(bytes))
        }))
    }

    pub(crate) fn put(
        self,
        service: Service,
        key: Key,
        value: SecretSlice<u8>,
    ) -> Result<(), String> {
        let work = move || {
            let (entry, value) = (self.entry(&service, key.entry())?, value.expose_secret());
            if key.is_private_key() {
                return entry.set_secret(value);
            }
            let text = std::str::from_utf8(value).map_err(|_| unsupported("no text"))?;
            entry.set_password(text)
        };
        match absent_is_none(asked(work)) {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err("it did not keep the value".to_owned()),
            Err(why) => Err(why),
        }
    }

    pub(crate) fn remove(self, service: Service, name: &'static str) -> Result<bool, String> {
        let work = move || self.entry(&service, name)?.delete_credential();
        absent_is_none(asked(work)).map(|removed| removed.is_some())
    }

    /// The entry of this name. Making it asks no store yet, other than the kernel's.
    fn entry(self, service: &Service, name: &str) -> Result<Entry, Error> {
        match self {
            Self::System => Entry::new(&service.0, name),
            Self::Kernel => kernel_entry(&service.0, name),
            Self::Off => Err(unsupported("it is switched off")),
        }
    }
}

/// In the keyring of the session. Not in the persistent one too: where no session was opened, asking for
/// that makes a session of our own, which ends with us.
#[cfg(target_os = "linux")]
fn kernel_entry(service: &str, name: &str) -> Result<Entry, Error> {
    use keyring::keyutils::{KeyutilsCredential, decode_error};
    use linux_keyutils::{KeyRing, KeyRingIdentifier};
    let session = KeyRing::from_special_id(KeyRingIdentifier::Session, false);
    let session = session.map_err(decode_error)?;
    let description = format!("{service}:{name}");
    let credential = KeyutilsCredential { session, persistent: None, description };
    Ok(Entry::new_with_credential(Box::new(credential)))
}

#[cfg(not(target_os = "linux"))]
fn kernel_entry(_: &str, _: &str) -> Result<Entry, Error> {
    Err(unsupported("only Linux has the kernel's keyring"))
}

fn unsupported(why: &'static str) -> Error {
    Error::NoStorageAccess(why.into())
}

/// The name under which stores know this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service(String);

impl Service {
    pub(crate) fn from_environment() -> Result<Self, KeyError> {
        let named = env::var_os(SERVICE_VARIABLE).unwrap_or_default();
        Self::parse(&named.to_string_lossy()).ok_or_else(|| {
            KeyError::unusable(
                SERVICE_VARIABLE,
                format!("write 1 to {NAME_BYTES_MAX} ASCII letters, digits, -, _ or ."),
            )
        })
    }

    fn parse(name: &str) -> Option<Self> {
        let name = if name.is_empty() { KEY_SERVICE } else { name };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (name.len() <= NAME_BYTES_MAX && name.bytes().all(fits)).then(|| Self(name.to_owned()))
    }
}

/// Asks a store, in time.
fn asked<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Trouble> {
    let silent = || Trouble::Other(format!("no answer within {} s", STORE_ANSWER_MAX.as_secs()));
    if SILENT.load(Ordering::Relaxed) {
        return Err(silent());
    }
    match within(STORE_ANSWER_MAX, move || work().map_err(|error| Trouble::of(&error))) {
        Some(ended) => ended,
        None => {
            SILENT.store(true, Ordering::Relaxed);
            Err(silent())
        }
    }
}

fn absent_is_none<T>(ended: Result<T, Trouble>) -> Result<Option<T>, String> {
    match ended {
        Ok(value) => Ok(Some(value)),
        Err(Trouble::NoEntry) => Ok(None),
        Err(Trouble::Other(why)) => Err(why),
    }
}

/// What a store has against it.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    NoEntry,
    Other(String),
}

impl Trouble {
    /// In words without any part of a secret: of what a store holds nothing is repeated.
    fn of(error: &Error) -> Self {
        let text = match error {
            Error::NoEntry => return Self::NoEntry,
            Error::BadEncoding(_) => "its entry is not text".to_owned(),
            Error::Ambiguous(entries) => {
                format!("it has {} entries of this name; remove all but one there", entries.len())
            }
            Error::PlatformFailure(cause) | Error::NoStorageAccess(cause) => cause.to_string(),
            other => other.to_string(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self::Other(text.chars().take(WHY_CHARS_MAX).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_short_word() {
        assert_eq!(Service::parse(""), Some(Service(KEY_SERVICE.to_owned())));
        let longest = "x".repeat(NAME_BYTES_MAX);
        assert!(Service::parse(&longest).is_some() && Service::parse("kumiki-2.b_c").is_some());
        for wrong in [longest + "x", "two words".to_owned(), "ü".to_owned(), "a/b".to_owned()] {
            assert_eq!(Service::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_a_store_says_is_one_short_line_without_what_it_holds() {
        let told = |error| match Trouble::of(&error) {
            Trouble::Other(text) => text,
            Trouble::NoEntry => panic!("{error:?} is no missing entry"),
        };
        assert_eq!(Trouble::of(&Error::NoEntry), Trouble::NoEntry);
        assert_eq!(told(Error::BadEncoding(b"marker".to_vec())), "its entry is not text");
        let long = format!("a\nb {}", "c".repeat(2 * WHY_CHARS_MAX));
        let text = told(Error::PlatformFailure(long.into()));
        assert!(text.starts_with("a b c") && text.chars().count() == WHY_CHARS_MAX, "{text}");
        assert_eq!(told(unsupported("only Linux")), "only Linux");
    }

    #[test]
    fn stores_have_words() {
        for store in [KeyStore::System, KeyStore::Kernel, KeyStore::Off] {
            assert_eq!(store.word().parse(), Ok(store));
        }
        assert!("session".parse::<KeyStore>().is_err());
    }
}
