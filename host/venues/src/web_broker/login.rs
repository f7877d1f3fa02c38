//! What a login gives: the addresses of a session, which are as good as its password.

use std::fmt;

use domain::order_mapping::{BrokerAnswer, BrokerRequest, Field, field};
use secrecy::{ExposeSecret, SecretString};

use crate::web_broker::addresses::{Addresses, Scheme};

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
    /// Names of the addresses that differ from those of the login before; empty at the first.
    pub changed: Vec<&'static str>,
    /// Whether no session came before it in this process.
    pub is_first: bool,
    /// When the user logged in before, as the broker writes it (`YYYYMMDDHHMMSS`); may be empty.
    pub last_login: String,
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
    /// The broker wants a phone call first (`sResultCode` 10087 to 10089).
    #[error("the broker wants the authentication by phone first ({code}: {text})")]
    PhoneAuthentication {
        /// Its `sResultCode`.
        code: String,
        /// Its words.
        text: String,
    },
    /// The session's layer failed (`p_errno`), as at night.
    #[error("the broker takes no login now (p_errno {errno}: {text})")]
    Unavailable {
        /// Its `p_errno`.
        errno: String,
        /// Its words.
        text: String,
    },
    /// Documents are unread, so the broker gives no addresses.
    #[error("the broker gives no session: documents wait to be read on its web site")]
    UnreadDocuments,
    /// It gave an address that the rules refuse.
    #[error("the login is refused: {0}")]
    Forbidden(String),
    /// Nothing was sent.
    #[error("the login was not sent: {0}")]
    NotSent(String),
    /// The broker's machine refuses the connection.
    #[error("{0}")]
    Unreachable(String),
    /// Nobody can tell what became of it.
    #[error("the login has no clear answer: {0}")]
    Unknown(String),
}

pub(crate) fn login_request(user: &SecretString, password: &SecretString) -> BrokerRequest {
    let fields = vec![
        Field::new("sUserId", user.expose_secret()),
        Field::new("sPassword", password.expose_secret()),
    ];
    BrokerRequest { id: "CLMAuthLoginRequest".to_owned(), fields, ..Default::default() }
}

pub(crate) fn logout_request() -> BrokerRequest {
    BrokerRequest { id: "CLMAuthLogoutRequest".to_owned(), ..Default::default() }
}

/// Reads the answer to a login.
pub(crate) fn read(
    answer: &BrokerAnswer,
    addresses: &Addresses,
) -> Result<(Session, Login), LoginFailure> {
    let text = |name: &'static str| found(answer, name);
    if !answer.errno.is_empty() {
        let (errno, text) = (answer.errno.clone(), answer.error_text.clone());
        return Err(LoginFailure::Unavailable { errno, text });
    }
    match (text("sResultCode"), text("sResultText")) {
        ("0", _) => {}
        ("", _) => {
            return Err(LoginFailure::Unknown("the answer has no sResultCode".to_owned()));
        }
        (code @ ("10087" | "10088" | "10089"), text) => {
            let (code, text) = (code.to_owned(), text.to_owned());
            return Err(LoginFailure::PhoneAuthentication { code, text });
        }
        (code, text) => {
            let (code, text) = (code.to_owned(), text.to_owned());
            return Err(LoginFailure::Refused { code, text });
        }
    }
    let names = ["sUrlRequest", "sUrlMaster", "sUrlPrice", "sUrlEvent", "sUrlEventWebSocket"];
    if text("sKinsyouhouMidokuFlg") == "1"
        || names.iter().all(|name| found(answer, name).is_empty())
    {
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
    };
    Ok((session, login))
}

fn found<'a>(answer: &'a BrokerAnswer, name: &str) -> &'a str {
    field(&answer.fields, name).unwrap_or_default()
}

impl Session {
    /// Every address, with the broker's name of it.
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

/// What no text may show of the answer to a login, even to one that is refused: the addresses, and the parts
/// of their paths that are long enough to be secret by themselves.
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
