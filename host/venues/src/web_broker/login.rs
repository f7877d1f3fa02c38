//! The login: credentials, and the addresses of a session, which are as good as its password.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::order_mapping::{BrokerAnswer, BrokerRequest, Field, field};
use keys::PrivateKey;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroize as _;

use crate::web_broker::addresses::{Addresses, Scheme};
use crate::web_broker::release::LoginKind;

/// The answer's fields that are addresses of a session.
const ADDRESSES: [&str; 5] =
    ["sUrlRequest", "sUrlMaster", "sUrlPrice", "sUrlEvent", "sUrlEventWebSocket"];

/// Credentials. Nothing shows them.
pub enum Credentials {
    /// Of releases before v4r9.
    Password {
        /// The user's name.
        user: SecretString,
        /// The password.
        password: SecretString,
    },
    /// From release v4r9 on.
    Key {
        /// The authentication id.
        auth_id: SecretString,
        /// The key for which the addresses come encrypted.
        private_key: PrivateKey,
    },
}

impl Credentials {
    /// The texts that must be redacted everywhere.
    pub(crate) fn texts(&self) -> Vec<&SecretString> {
        match self {
            Self::Password { user, password } => vec![user, password],
            Self::Key { auth_id, .. } => vec![auth_id],
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// The addresses of a session. Nothing shows them.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) request: SecretString,
    pub(crate) master: SecretString,
    pub(crate) price: SecretString,
    pub(crate) event: SecretString,
    pub(crate) event_socket: SecretString,
}

/// A session that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The tax account of the login in the broker's code (`sZyoutoekiKazeiC`).
    pub account: String,
    /// Whether the login has a margin account (`sSinyouKouzaKubun`; only `0` says that it has none).
    pub has_margin: bool,
    /// Names of the addresses that differ from those of the last login; empty at the first.
    pub changed: Vec<&'static str>,
    /// Whether no session came before it in this process.
    pub is_first: bool,
    /// Time of the user's last login, as the broker writes it (`YYYYMMDDHHMMSS`); may be empty.
    pub last_login: String,
    /// When another release replaces this one, as the broker writes it (`YYYYMMDD`); may be empty.
    pub next_release: String,
}

/// Why there is no session. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginFailure {
    /// The broker refuses the login.
    #[error("the broker refuses the login ({code}: {text})")]
    Refused {
        /// Its `sResultCode`.
        code: String,
        /// Its words.
        text: String,
    },
    /// The broker does not know the authentication id.
    #[error(
        "the broker does not take the authentication id: it is unknown, or of the other \
         environment ({code}: {text}); set the id of this environment with `kumiki key set \
         web-broker-auth-id`"
    )]
    IdRefused {
        /// Its `p_errno`.
        code: String,
        /// Its words.
        text: String,
    },
    /// The addresses are encrypted for another key, or not encrypted.
    #[error(
        "the private key does not fit: it cannot decrypt {0}; set the key whose public half the \
         broker has, with `kumiki key set web-broker-private-key --file KEY.pem`"
    )]
    KeyDoesNotFit(&'static str),
    /// The broker has no such release, or has it no longer.
    #[error(
        "the broker has no login at this address (HTTP status 404): it has switched this version \
         off; set [web_broker] dialect to its present version, or update kumiki if that dialect is \
         missing"
    )]
    Retired,
    /// The same, and the path of another release comes from the configuration.
    #[error(
        "the broker has no login at this address (HTTP status 404): base_url and [web_broker] \
         dialect have different versions; leave the path out of base_url"
    )]
    RetiredPath,
    /// The credentials do not fit the kind of login.
    #[error("the login was not sent: this version of the broker takes another kind of credentials")]
    OtherCredentials,
    /// The session's layer failed (`p_errno`), as at night.
    #[error("the broker takes no login now (p_errno {errno}: {text})")]
    Unavailable {
        /// Its `p_errno`.
        errno: String,
        /// Its words.
        text: String,
    },
    /// Documents are unread, so the broker gives no addresses.
    #[error(
        "the broker gives no session: documents wait to be read; log in on its web site, read and confirm \
         them there, and log in here again"
    )]
    UnreadDocuments,
    /// It gave an address that a rule refuses.
    #[error("the login is refused: {0}")]
    Forbidden(String),
    /// Nothing was sent.
    #[error("the login was not sent: {0}")]
    NotSent(String),
    /// The broker's server refuses the connection.
    #[error("{0}")]
    Unreachable(String),
    /// Its outcome is unknown.
    #[error("the login has no clear answer: {0}")]
    Unknown(String),
}

/// The answer to a login. Its texts are wiped when it is dropped, also the addresses.
pub(crate) struct LoginAnswer(pub(crate) BrokerAnswer);

impl Drop for LoginAnswer {
    fn drop(&mut self) {
        wipe(&mut self.0.fields);
    }
}

/// Overwrites the texts of fields.
pub(crate) fn wipe(fields: &mut [Field]) {
    fields.iter_mut().for_each(|field| field.value.zeroize());
}

/// The request for a login. Its fields are secrets: [`wipe`] them after use.
pub(crate) fn login_request(credentials: &Credentials) -> BrokerRequest {
    let fields = match credentials {
        Credentials::Password { user, password } => vec![
            Field::new("sUserId", user.expose_secret()),
            Field::new("sPassword", password.expose_secret()),
        ],
        Credentials::Key { auth_id, .. } => vec![Field::new("sAuthId", auth_id.expose_secret())],
    };
    BrokerRequest { id: "CLMAuthLoginRequest".to_owned(), fields, ..Default::default() }
}

pub(crate) fn logout_request() -> BrokerRequest {
    BrokerRequest { id: "CLMAuthLogoutRequest".to_owned(), ..Default::default() }
}

/// Replaces the encrypted addresses of a session by their texts. The error names the field that the key does
/// not fit. Without a session there are no addresses.
pub(crate) fn decrypt(answer: &mut BrokerAnswer, key: &PrivateKey) -> Result<(), &'static str> {
    if !answer.errno.is_empty() || found(answer, "sResultCode") != "0" {
        return Ok(());
    }
    for name in ADDRESSES {
        let field = answer.fields.iter_mut().find(|field| field.name == name);
        let Some(field) = field.filter(|field| !field.value.is_empty()) else { continue };
        let encrypted = STANDARD.decode(field.value.trim()).map_err(|_| name)?;
        let bytes = key.decrypt(&encrypted).ok_or(name)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| name)?;
        // The vendor's own tools leave both in the file.
        text.trim_start_matches('\u{feff}')
            .trim_end_matches(['\r', '\n'])
            .clone_into(&mut field.value);
    }
    Ok(())
}

/// Reads the answer to a login.
pub(crate) fn read(
    answer: &BrokerAnswer,
    addresses: &Addresses,
) -> Result<(Session, Login), LoginFailure> {
    let text = |name: &'static str| found(answer, name);
    if !answer.errno.is_empty() {
        let (errno, text) = (answer.errno.clone(), answer.error_text.clone());
        if errno == "-1" && addresses.login_kind() == LoginKind::Key {
            return Err(LoginFailure::IdRefused { code: errno, text });
        }
        return Err(LoginFailure::Unavailable { errno, text });
    }
    match (text("sResultCode"), text("sResultText")) {
        ("0", _) => {}
        ("", _) => {
            return Err(LoginFailure::Unknown("the answer has no sResultCode".to_owned()));
        }
        (code, text) => {
            let (code, text) = (code.to_owned(), text.to_owned());
            return Err(LoginFailure::Refused { code, text });
        }
    }
    // The flag is not always set when the addresses are missing.
    if text("sKinsyouhouMidokuFlg") == "1" || text("sUrlRequest").is_empty() {
        return Err(LoginFailure::UnreadDocuments);
    }
    let judge = |name: &str, scheme| {
        let judged = addresses.judge(found(answer, name), scheme);
        judged.map_err(|error| LoginFailure::Forbidden(format!("{name}: {error}")))
    };
    let session = Session {
        request: judge("sUrlRequest", Scheme::Http)?,
        master: judge("sUrlMaster", Scheme::Http)?,
        price: judge("sUrlPrice", Scheme::Http)?,
        event: judge("sUrlEvent", Scheme::Http)?,
        event_socket: judge("sUrlEventWebSocket", Scheme::WebSocket)?,
    };
    let login = Login {
        account: text("sZyoutoekiKazeiC").to_owned(),
        has_margin: text("sSinyouKouzaKubun") != "0",
        changed: Vec::new(),
        is_first: true,
        last_login: text("sLastLoginDate").to_owned(),
        next_release: text("sUpdateInformAPISpecFunction").to_owned(),
    };
    Ok((session, login))
}

fn found<'a>(answer: &'a BrokerAnswer, name: &str) -> &'a str {
    field(&answer.fields, name).unwrap_or_default()
}

impl Session {
    /// Every address, with the broker's name for it.
    pub(crate) fn named(&self) -> [(&'static str, &SecretString); 5] {
        [
            ("sUrlRequest", &self.request),
            ("sUrlMaster", &self.master),
            ("sUrlPrice", &self.price),
            ("sUrlEvent", &self.event),
            ("sUrlEventWebSocket", &self.event_socket),
        ]
    }

    /// Names of the addresses that differ from another session's.
    pub(crate) fn changed_since(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.named().into_iter().zip(other.named());
        let differs =
            pairs.filter(|((_, one), (_, other))| one.expose_secret() != other.expose_secret());
        differs.map(|((name, _), _)| name).collect()
    }
}

/// Texts that must be redacted after the answer to a login, even to a refused one. They are the addresses, and
/// the parts of their paths that are long enough to be secret.
pub(crate) fn secrets_of(answer: &BrokerAnswer) -> Vec<SecretString> {
    let mut secrets = Vec::new();
    let addresses = answer.fields.iter().filter(|field| field.name.starts_with("sUrl"));
    for address in addresses.map(|field| field.value.as_str()) {
        secrets.push(SecretString::from(address.to_owned()));
        let parts = address.split(['/', '=']).skip(3).filter(|part| part.len() >= 8);
        let is_public = |part: &str| part.starts_with("e_api_") || part == "event_ws";
        let parts = parts.filter(|part| !is_public(part));
        secrets.extend(parts.map(|part| SecretString::from(part.to_owned())));
    }
    secrets
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
