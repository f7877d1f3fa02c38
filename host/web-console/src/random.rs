//! Bytes that nobody guesses.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// 32 random bytes of the system as lowercase hexadecimal digits. Two random UUIDs would have 12 bits
/// that are always the same, so three are hashed.
#[must_use]
pub fn random_hex() -> String {
    let mut hash = Sha256::new();
    for _ in 0..3 {
        hash.update(Uuid::new_v4().as_bytes());
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
