//! Who may ask: one optional bearer token. It is never printed and compared in constant time.

use std::fmt;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Shortest token. 16 random letters cannot be guessed over a network.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Longest token; also the most that is read from its file.
pub const TOKEN_BYTES_MAX: usize = 1_024;

/// A secret that a client sends as `Authorization: Bearer <token>`. Only its hash is kept.
#[derive(Clone)]
pub struct BearerToken {
    hash: [u8; 32],
}

/// Why a token cannot be used. Its text is never part of the message.
#[derive(Debug, Error)]
pub enum TokenError {
    /// Too short, too long, or with characters that no header can carry.
    #[error(
        "the token must have {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} visible ASCII characters \
         without spaces; it has {found}"
    )]
    Unfit {
        /// What it has.
        found: String,
    },
    /// The file with the token cannot be read.
    #[error("the file with the token cannot be read: {0}")]
    File(std::io::Error),
}

impl BearerToken {
    /// A token from its text; space and line ends around it do not count.
    ///
    /// # Errors
    /// When it is too short, too long or not visible ASCII.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) {
            return Err(TokenError::Unfit { found: format!("{} bytes", text.len()) });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unfit { found: "other characters".to_owned() });
        }
        Ok(Self { hash: Sha256::digest(text).into() })
    }

    /// A token from a file that holds nothing else.
    ///
    /// # Errors
    /// When the file cannot be read or its text cannot be a token.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        Self::from_bytes(&fs::read(path).map_err(TokenError::File)?)
    }

    /// A token from bytes, which need not be text.
    ///
    /// # Errors
    /// When they cannot be a token.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        let text = str::from_utf8(bytes);
        Self::new(text.map_err(|_| TokenError::Unfit { found: "other characters".to_owned() })?)
    }

    /// Whether an Authorization header carries this token. The time does not tell how much of it is
    /// right: hashes are compared, and always to their end.
    #[must_use]
    pub fn admits(&self, header: Option<&[u8]>) -> bool {
        let Some((scheme, sent)) = header.and_then(|header| header.split_at_checked(7)) else {
            return false;
        };
        let hash: [u8; 32] = Sha256::digest(sent.trim_ascii()).into();
        let difference = hash.iter().zip(&self.hash).fold(0, |all, (a, b)| all | (a ^ b));
        scheme.eq_ignore_ascii_case(b"bearer ") & (std::hint::black_box(difference) == 0)
    }
}

/// Shows that there is one, not what it is.
impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn only_the_token_is_admitted() {
        let token = BearerToken::new(&format!(" {TEXT}\n")).unwrap();
        let admits = |header: &str| token.admits(Some(header.as_bytes()));
        assert!(admits(&format!("Bearer {TEXT}")) && admits(&format!("bearer {TEXT}")));
        for wrong in ["", "Bearer", "Bearer ", TEXT, "Basic  0123456789abcdef"] {
            assert!(!admits(wrong), "{wrong}");
        }
        assert!(!admits(&format!("Bearer {TEXT}0")) && !admits("Bearer 0123456789abcdeF"));
        assert!(!token.admits(None));
    }

    #[test]
    fn unfit_tokens_are_refused_without_being_shown() {
        for text in ["secret", "0123456789 abcdef", "0123456789abcdé", &"x".repeat(1_025)] {
            let message = BearerToken::new(text).unwrap_err().to_string();
            assert!(!message.contains(text), "{message}");
        }
        assert!(BearerToken::new(&"x".repeat(TOKEN_BYTES_MAX)).is_ok());
        let shown = format!("{:?}", BearerToken::new(TEXT).unwrap());
        assert_eq!(shown, "BearerToken(hidden)");
    }

    #[test]
    fn a_file_may_hold_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, format!("{TEXT}\n")).unwrap();
        let token = BearerToken::from_file(&path).unwrap();
        assert!(token.admits(Some(format!("Bearer {TEXT}").as_bytes())));
        fs::write(&path, [0xff; 20]).unwrap();
        assert!(matches!(BearerToken::from_file(&path), Err(TokenError::Unfit { .. })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(BearerToken::from_file(&path), Err(TokenError::File(_))));
    }
}
