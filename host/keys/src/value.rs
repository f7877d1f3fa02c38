//! What a key can be.

use secrecy::SecretString;

use crate::KeyError;

/// Bytes of a key or a secret address.
pub const KEY_BYTES_MAX: usize = 2_048;

/// A key is one word of visible ASCII, so that it can stand in a header or an address. Blanks around
/// it, like the line end of a file, do not belong to it.
pub(crate) fn checked(place: &str, text: &str) -> Result<SecretString, KeyError> {
    let text = text.trim();
    if text.len() > KEY_BYTES_MAX {
        return Err(KeyError::unusable(place, format!("longer than {KEY_BYTES_MAX} bytes")));
    }
    if text.is_empty() {
        return Err(KeyError::unusable(place, "empty"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeyError::unusable(place, "not one word of ASCII characters"));
    }
    Ok(SecretString::from(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn keys_are_one_word_and_never_shown() {
        let key = checked("X", " secret-word\n").unwrap();
        assert_eq!(key.expose_secret(), "secret-word");
        assert!(!format!("{key:?}").contains("secret-word"));
        assert!(checked("X", &"x".repeat(KEY_BYTES_MAX)).is_ok());
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        for wrong in ["", "  ", "two words", "schlüssel", long.as_str()] {
            let error = checked("X", wrong).unwrap_err();
            let message = format!("{error} {error:?}");
            assert!(message.starts_with("X: "), "{message}");
            assert!(wrong.trim().is_empty() || !message.contains(wrong), "{message}");
        }
    }
}
