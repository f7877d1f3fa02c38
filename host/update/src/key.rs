//! Keys and secret addresses: from the environment, else from the system's own key store.

use secrecy::SecretString;

use crate::limits::KEY_BYTES_MAX;

/// The name under which the system's key store knows this program.
pub const KEY_SERVICE: &str = "kumiki";

/// A secret that a source needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The market-data vendor's API key.
    Vendor,
    /// The web broker's virtual address for prices, which a login gives for one day.
    WebBrokerPriceUrl,
    /// The public source's key, where it wants one.
    Public,
}

impl Key {
    /// The environment variable.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Vendor => "KUMIKI_JQUANTS_API_KEY",
            Self::WebBrokerPriceUrl => "KUMIKI_WEB_BROKER_PRICE_URL",
            Self::Public => "KUMIKI_PUBLIC_API_KEY",
        }
    }

    /// The user name of the entry in the system's key store.
    #[must_use]
    pub const fn entry(self) -> &'static str {
        match self {
            Self::Vendor => "jquants-api-key",
            Self::WebBrokerPriceUrl => "web-broker-price-url",
            Self::Public => "public-api-key",
        }
    }

    /// Looks the secret up.
    ///
    /// # Errors
    /// A text for the report that says why there is none and where it can be put. It never holds
    /// any part of the secret.
    pub fn find(self) -> Result<SecretString, String> {
        match std::env::var(self.variable()) {
            Ok(text) if !text.trim().is_empty() => return self.check(&text),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(format!("{} is not text", self.variable()));
            }
            _ => {}
        }
        let entry = keyring::Entry::new(KEY_SERVICE, self.entry());
        match entry.and_then(|entry| entry.get_password()) {
            Ok(text) => self.check(&text),
            Err(keyring::Error::NoEntry) => Err(self.missing("")),
            // Containers and servers often have no key store at all.
            Err(error) => Err(self.missing(&format!(" ({error})"))),
        }
    }

    fn missing(self, why: &str) -> String {
        format!(
            "no key: {} is not set, and the system's key store has no {} for {KEY_SERVICE}{why}",
            self.variable(),
            self.entry()
        )
    }

    /// A key is one line of visible ASCII, so that it can stand in a header or an address.
    fn check(self, text: &str) -> Result<SecretString, String> {
        let text = text.trim();
        if text.len() > KEY_BYTES_MAX {
            return Err(format!("{}: longer than {KEY_BYTES_MAX} bytes", self.variable()));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{}: not one word of ASCII characters", self.variable()));
        }
        Ok(SecretString::from(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn keys_are_one_word_and_never_shown() {
        let key = Key::Vendor.check(" secret-word\n").unwrap();
        assert_eq!(key.expose_secret(), "secret-word");
        assert!(!format!("{key:?}").contains("secret-word"));
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        for wrong in ["", "  ", "two words", "schlüssel", long.as_str()] {
            let message = Key::Vendor.check(wrong).unwrap_err();
            assert!(message.starts_with("KUMIKI_JQUANTS_API_KEY: "), "{message}");
            assert!(wrong.trim().is_empty() || !message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn a_missing_key_says_where_it_can_be_put() {
        let message = Key::Public.missing("");
        assert!(message.contains("KUMIKI_PUBLIC_API_KEY is not set"), "{message}");
        assert!(message.contains("public-api-key for kumiki"), "{message}");
    }
}
