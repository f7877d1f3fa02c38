//! The private key of a login: RSA, which decrypts the addresses that the web broker answers.

use std::fmt;

use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;
use secrecy::SecretSlice;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a private key's file; PEM of 4,096 bits has about 3,300.
pub const PRIVATE_KEY_BYTES_MAX: usize = 4_096;
/// Bits of the modulus.
const MODULUS_BITS: std::ops::RangeInclusive<u32> = 2_048..=4_096;
/// What editors of Windows put before a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A private key. It is wiped when it is dropped, and nothing shows it.
#[derive(Clone)]
pub struct PrivateKey(Box<rsa::PrivateKey>);

impl PrivateKey {
    /// Reads a key in PKCS#8 without a passphrase: PEM, with a byte order mark and any line ends, or DER.
    ///
    /// # Errors
    /// What is wrong with it, without any part of it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > PRIVATE_KEY_BYTES_MAX {
            return Err(format!("longer than {PRIVATE_KEY_BYTES_MAX} bytes"));
        }
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii();
        let key = if text.starts_with(b"-----") {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| rsa::PrivateKey::from_pkcs8_pem(text).ok())
        } else {
            rsa::PrivateKey::from_pkcs8_der(bytes).ok()
        };
        let key = key.ok_or(
            "not an RSA private key in PKCS#8 without a passphrase; its file begins with \
             -----BEGIN PRIVATE KEY-----",
        )?;
        if !MODULUS_BITS.contains(&key.n().bit_width()) {
            return Err("the RSA key must have 2048 to 4096 bits".to_owned());
        }
        Ok(Self(Box::new(key)))
    }

    /// The key as DER: the shortest form, which every key store can hold.
    ///
    /// # Errors
    /// It cannot be written so.
    pub(crate) fn der(&self) -> Result<SecretSlice<u8>, String> {
        let der = self.0.to_pkcs8_der().map_err(|_| "the key has no DER form".to_owned())?;
        Ok(SecretSlice::from(der.as_bytes().to_vec()))
    }

    /// What was encrypted for this key by RSA-OAEP with SHA-256 in both places and no label; `None` where
    /// it was encrypted for another one.
    #[must_use]
    pub fn decrypt(&self, encrypted: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.0.oaep_decrypt::<Sha256>(encrypted).ok().map(Zeroizing::new)
    }
}

/// Shows nothing.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rsa::pkcs8::LineEnding;
    use secrecy::ExposeSecret;

    use super::*;

    fn made(bits: usize) -> rsa::PrivateKey {
        rsa::PrivateKey::new(&mut getrandom::SysRng, bits).unwrap()
    }

    #[test]
    fn every_form_of_a_key_is_the_same_key() {
        let key = made(2_048);
        let der = key.to_pkcs8_der().unwrap();
        let lf = key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string();
        let crlf = key.to_pkcs8_pem(LineEnding::CRLF).unwrap().to_string();
        let secret = key.to_public_key().oaep_encrypt::<Sha256>(b"address").unwrap();
        for form in [der.as_bytes(), lf.as_bytes(), format!("\u{feff}{crlf}\r\n").as_bytes()] {
            let read = PrivateKey::read(form).unwrap();
            assert_eq!(read.der().unwrap().expose_secret(), der.as_bytes());
            assert_eq!(read.decrypt(&secret).unwrap().as_slice(), b"address");
            assert_eq!(format!("{read:?}"), "PrivateKey { .. }");
        }
        let other = PrivateKey::read(made(2_048).to_pkcs8_der().unwrap().as_bytes()).unwrap();
        assert!(other.decrypt(&secret).is_none(), "it is encrypted for another key");
    }

    #[test]
    fn what_is_no_such_key_is_refused_without_its_text() {
        // A modulus of 2,047 bits fills as many bytes as one of 2,048.
        for bits in [1_024, 2_047] {
            let small = made(bits).to_pkcs8_der().unwrap();
            let error = PrivateKey::read(small.as_bytes()).unwrap_err();
            assert!(error.contains("2048 to 4096 bits"), "{bits}: {error}");
        }
        let marker = "-----BEGIN PRIVATE KEY-----\nbWFya2Vy\n-----END PRIVATE KEY-----\n";
        for wrong in [&b""[..], b"marker", marker.as_bytes(), &[0; PRIVATE_KEY_BYTES_MAX + 1]] {
            let error = PrivateKey::read(wrong).unwrap_err();
            assert!(!error.contains("marker") && !error.contains("bWFya2Vy"), "{error}");
        }
    }
}
