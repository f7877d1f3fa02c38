//! The proofs by which both sides of a connection show that they have the token, without sending it.

use std::fmt::Write;

use domain::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Who proves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn mac(token: &Secret, side: Side, server: &str, client: &str, mode: &str) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes()).expect("any length");
    let text = match side {
        Side::Client => format!("client:{server}:{client}:{mode}"),
        Side::Server => format!("server:{client}:{server}:{mode}"),
    };
    mac.update(text.as_bytes());
    mac
}

/// The proof of a side, as it is sent.
pub(crate) fn proof(token: &Secret, side: Side, server: &str, client: &str, mode: &str) -> String {
    hex(&mac(token, side, server, client, mode).finalize().into_bytes())
}

/// Whether a proof is the right one; takes as long for a wrong one, wherever it is wrong.
pub(crate) fn is_proof(
    token: &Secret,
    side: Side,
    server: &str,
    client: &str,
    mode: &str,
    sent: &str,
) -> bool {
    let digits = sent.as_bytes();
    let is_hex = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 64 || !is_hex {
        return false;
    }
    let value = |digit: u8| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 };
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect();
    mac(token, side, server, client, mode).verify_slice(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use web_console::random_hex;

    use super::*;

    #[test]
    fn a_proof_is_of_one_token_side_and_connection() {
        let token = Secret::from("0123456789abcdef".to_owned());
        let (server, client) = (random_hex(), random_hex());
        assert_eq!(server.len(), 64);
        assert_ne!(server, client);
        let sent = proof(&token, Side::Client, &server, &client, "replay");
        let taken = |token: &Secret, side, server: &str, client: &str, mode: &str, sent: &str| {
            is_proof(token, side, server, client, mode, sent)
        };
        assert!(taken(&token, Side::Client, &server, &client, "replay", &sent));
        let other = Secret::from("0123456789abcdeg".to_owned());
        assert!(!taken(&other, Side::Client, &server, &client, "replay", &sent));
        assert!(!taken(&token, Side::Server, &server, &client, "replay", &sent));
        assert!(!taken(&token, Side::Client, &random_hex(), &client, "replay", &sent));
        assert!(!taken(&token, Side::Client, &server, &random_hex(), "replay", &sent));
        assert!(!taken(&token, Side::Client, &server, &client, "live", &sent));
        for wrong in [sent.to_uppercase(), sent[2..].to_owned(), String::new(), sent + "00"] {
            assert!(!taken(&token, Side::Client, &server, &client, "replay", &wrong), "{wrong}");
        }
    }

    /// The same as `hmac.new(b"key-of-16-chars-", b"client:aa:bb:replay", "sha256").hexdigest()` of Python.
    #[test]
    fn a_proof_is_hmac_sha256() {
        let token = Secret::from("key-of-16-chars-".to_owned());
        let expected = "0474e49b6a2f346fe380816353a79d7614c6cc4a0877a79fff56bc1331d38b35";
        assert_eq!(proof(&token, Side::Client, "aa", "bb", "replay"), expected);
    }
}
