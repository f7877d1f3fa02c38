//! Why there is no secret, or why it could not be kept. The texts hold no part of it.

use std::fmt::{self, Display, Formatter};

use crate::{Key, KeyStore, STORE_VARIABLE};

/// Why there is no secret, or why it could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No place has it.
    #[error(
        "no key: {} is not set{}, there is no systemd credential {}, and {}; see `kumiki help key`",
        key.variable(), NorOther(*key), key.entry(), StoreWithout(*key, *store, why)
    )]
    Missing {
        /// What was looked for.
        key: Key,
        /// The store that was asked.
        store: KeyStore,
        /// Why the store could not be asked; empty where it was, and has no such entry.
        why: String,
    },
    /// It is there and cannot be used.
    #[error("{place}: {what}")]
    Unusable {
        /// Where the value stands, like the name of an environment variable.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// A store could not be used.
    #[error(
        "cannot use {}: {why}. Set {} in the environment{}",
        store.title(), key.variable(), OtherPlaces(*key, *store)
    )]
    Store {
        /// What was to be kept or removed.
        key: Key,
        /// The store.
        store: KeyStore,
        /// What it says.
        why: String,
    },
}

impl KeyError {
    pub(crate) fn unusable(place: &str, what: impl Into<String>) -> Self {
        Self::Unusable { place: place.to_owned(), what: what.into() }
    }
}

struct NorOther(Key);

impl Display for NorOther {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.other_variable() {
            Some(other) => write!(f, ", nor is {other}"),
            None => Ok(()),
        }
    }
}

struct StoreWithout<'a>(Key, KeyStore, &'a str);

impl Display for StoreWithout<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(key, store, why) = self;
        match (store, why.is_empty()) {
            (KeyStore::Off, _) => write!(f, "{STORE_VARIABLE}=off switches key stores off"),
            (_, true) => write!(f, "{} has no {}", store.title(), key.entry()),
            (_, false) => write!(f, "{} gave no key ({why})", store.title()),
        }
    }
}

/// What else Linux has.
struct OtherPlaces(Key, KeyStore);

impl Display for OtherPlaces {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !cfg!(target_os = "linux") {
            return Ok(());
        }
        write!(f, ", or LoadCredential={}:FILE in a unit of systemd", self.0.entry())?;
        if self.1 == KeyStore::System {
            write!(
                f,
                ". Or use `--store kernel`, which lasts until you log out, with \
                 {STORE_VARIABLE}=kernel where kumiki runs"
            )?;
        }
        Ok(())
    }
}
