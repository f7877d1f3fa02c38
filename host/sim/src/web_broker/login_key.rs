//! The key of a login: it encrypts the addresses of a session, so that only who has its private half can read
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, LineEnding};
use secrecy::SecretString;
use sha2::Sha256;

use super::ServerError;

/// Bits of keys that are made here.
const BITS: usize = 2_048;

/// A new private key, PEM in PKCS#8.
///
/// # Errors
/// The system gives no random bytes.
pub fn new_private_key() -> Result<SecretString, ServerError> {
    let failed = || ServerError::Config("cannot make a private key".to_owned());
    let key = rsa::PrivateKey::new(&mut getrandom::SysRng, BITS).map_err(|_| failed())?;
    let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|_| failed())?;
    Ok(SecretString::from(pem.as_str()))
}

/// The half that encrypts.
#[derive(Debug)]
pub(crate) struct LoginKey(rsa::PublicKey);

impl LoginKey {
    /// That of a private key.
    pub(crate) fn of(private_pem: &str) -> Result<Self, ServerError> {
        let key = rsa::PrivateKey::from_pkcs8_pem(private_pem);
        let key = key.map_err(|_| {
            ServerError::Config("the private key is not an RSA key in PKCS#8 (PEM)".to_owned())
        })?;
        Ok(Self(key.to_public_key()))
    }

    /// A text as the vendor sends it: with a byte order mark and a line end, encrypted, in Base64.
    pub(crate) fn encrypted(&self, text: &str) -> String {
        let text = format!("\u{feff}{text}\r\n");
        let encrypted = self.0.oaep_encrypt::<Sha256>(text.as_bytes());
        STANDARD.encode(encrypted.unwrap_or_default())
    }
}
