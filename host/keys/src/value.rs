//! What a key can be.

use std::fs::{self, File};
use std::path::Path;

use secrecy::{ExposeSecret, SecretSlice, SecretString};

use crate::private_key::{BYTE_ORDER_MARK, PrivateKey};
use crate::{Key, KeyError};

/// Bytes of a key or a secret address.
pub const KEY_BYTES_MAX: usize = 2_048;

/// The value of a key, from the bytes of a variable, a file or a store. A byte order mark is no part of it.
pub(crate) fn of(key: Key, place: &str, bytes: &[u8]) -> Result<SecretSlice<u8>, KeyError> {
    let unusable = |what: String| KeyError::unusable(place, what);
    if key.is_private_key() {
        return PrivateKey::read(bytes).and_then(|key| key.der()).map_err(unusable);
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| unusable("not text".to_owned()))?;
    let word = checked(place, text)?;
    Ok(SecretSlice::from(word.expose_secret().as_bytes().to_vec()))
}

/// Opens a file with a value: never a pipe or a device, which might take for ever.
///
/// # Errors
/// Why it cannot be read, without its path.
pub fn open_file(path: &Path) -> Result<File, String> {
    let unread = |error: std::io::Error| format!("cannot be read ({})", error.kind());
    // Looked at before it is opened: opening a pipe would wait for somebody who writes.
    if !fs::metadata(path).map_err(unread)?.is_file() {
        return Err("cannot be read: it is a pipe, a device or a folder, not a file".to_owned());
    }
    File::open(path).map_err(unread)
}

/// A key is one word of visible ASCII, so that it can stand in a header or an address. Blanks around
/// it, like the line end of a file, do not belong to it.
fn checked(place: &str, text: &str) -> Result<SecretString, KeyError> {
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
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_word() {
        let key = Key::new("KUMIKI_TEST_KEY", "test-key");
        let found = of(key, "X", "\u{feff}word\r\n".as_bytes()).unwrap();
        assert_eq!(found.expose_secret(), b"word");
    }

    #[test]
    fn only_a_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        assert!(open_file(&file).unwrap_err().starts_with("cannot be read ("));
        fs::write(&file, "").unwrap();
        open_file(&file).unwrap();
        let refused = |path: &Path| {
            let told = open_file(path).unwrap_err();
            assert!(told.contains("it is a pipe, a device or a folder"), "{told}");
        };
        refused(folder.path());
        #[cfg(unix)]
        {
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
            refused(&pipe);
            refused("/dev/zero".as_ref());
        }
    }

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
