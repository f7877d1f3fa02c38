//! The user's name and password at the web broker: from the house's key places, and for development from
//! two variables of their own (specification 2, "Secrets"; specification 4, P1). The password of the local
//! gateway: from the person at this machine, and for development from a variable (specification 1,
//! "Authentication"; specification 4, P50).

use std::env::{self, VarError};

use ipc::{CredentialsRecord, Secret};
use keys::Key;
use keys::dialog::{Dialog, NoAnswer, Question};
use orders::Credentials;
use secrecy::{ExposeSecret, SecretString};
use venues::local_broker::NoPassword;

use crate::live::WEB_BROKER;

/// The user's name.
pub const WEB_BROKER_USER: Key = Key::new("KUMIKI_WEB_BROKER_USER", "web-broker-user");
/// The password of the login. The second password is kept nowhere.
pub const WEB_BROKER_PASSWORD: Key = Key::new("KUMIKI_WEB_BROKER_PASSWORD", "web-broker-password");

/// The variables of development, for the name and the password.
pub const DEV_VARIABLES: [&str; 2] = ["DEV_WEBBROKER_USER_ID", "DEV_WEBBROKER_PASSWORD"];

/// The variable of development for the password of the local gateway, which is kept nowhere.
pub const DEV_GATEWAY_PASSWORD: &str = "DEV_LOCALBROKER_API_PASSWORD";
/// What the person at this machine is asked.
const GATEWAY_QUESTION: Question = Question {
    title: "Kumiki",
    description: "API password of the local broker's gateway on this machine",
    prompt: "API password",
};

/// The password of the local gateway: that of development where it is allowed and set, else the person is
/// asked. It waits for the person.
///
/// # Errors
/// Why nobody gave one, in one line and without a secret.
pub(crate) fn gateway_password(
    dev_login_allowed: bool,
    dialog: &Dialog,
) -> Result<SecretString, NoPassword> {
    let ask = || {
        dialog.ask(GATEWAY_QUESTION).map_err(|error| NoPassword {
            is_wanted: matches!(error, NoAnswer::Cancelled | NoAnswer::Closed),
            why: error.to_string(),
        })
    };
    let found = gateway_password_with(dev_login_allowed, variable, ask);
    let why = found.as_ref().err().map(|none| none.why.as_str());
    tracing::debug!(given = found.is_ok(), why, "looked for the gateway's password");
    found
}

fn gateway_password_with(
    dev_login_allowed: bool,
    variable: impl Fn(&str) -> Result<Option<SecretString>, String>,
    ask: impl FnOnce() -> Result<SecretString, NoPassword>,
) -> Result<SecretString, NoPassword> {
    let of_development = if dev_login_allowed { variable(DEV_GATEWAY_PASSWORD) } else { Ok(None) };
    let of_development = of_development.map_err(|why| NoPassword { why, is_wanted: false })?;
    of_development.map_or_else(ask, Ok)
}

/// Finds both. The credentials of development come first where they are allowed and set.
///
/// # Errors
/// What is missing and where it can be put, in one line and without a secret.
pub(crate) fn find(dev_login_allowed: bool) -> Result<Credentials, String> {
    let key = |key: Key| key.find().map_err(|error| error.to_string());
    let found = find_with(dev_login_allowed, variable, key);
    tracing::debug!(credentials = record(found.as_ref().ok()), "looked for credentials");
    found
}

/// What the log says of them: whether they are there.
fn record(found: Option<&Credentials>) -> String {
    let secret = |text: &SecretString| Secret::from(text.expose_secret().to_owned());
    let record = CredentialsRecord {
        venue: WEB_BROKER.to_owned(),
        user_id: found.map(|found| secret(&found.user)),
        password: found.map(|found| secret(&found.password)),
    };
    serde_json::to_string(&record).unwrap_or_else(|error| error.to_string())
}

fn find_with(
    dev_login_allowed: bool,
    variable: impl Fn(&str) -> Result<Option<SecretString>, String>,
    key: impl Fn(Key) -> Result<SecretString, String>,
) -> Result<Credentials, String> {
    if dev_login_allowed {
        let [user, password] = DEV_VARIABLES;
        match (variable(user)?, variable(password)?) {
            (Some(user), Some(password)) => return Ok(Credentials { user, password }),
            (None, None) => {}
            (Some(_), None) => {
                return Err(format!("{user} is set and {password} is not; set both"));
            }
            (None, Some(_)) => {
                return Err(format!("{password} is set and {user} is not; set both"));
            }
        }
    }
    let both = [WEB_BROKER_USER, WEB_BROKER_PASSWORD].map(|wanted| {
        key(wanted).map_err(|why| {
            let name = wanted.entry();
            format!("{why}; put it into the system's key store with `kumiki key set {name}`")
        })
    });
    let [user, password] = both;
    Ok(Credentials { user: user?, password: password? })
}

fn variable(name: &str) -> Result<Option<SecretString>, String> {
    match env::var(name) {
        Ok(text) => {
            Ok(Some(SecretString::from(text)).filter(|text| !text.expose_secret().is_empty()))
        }
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is no text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: [&str; 2] = ["dev-user-marker", "dev-password-marker"];

    fn found(
        is_allowed: bool,
        dev: [Option<&str>; 2],
        kept: [Option<&str>; 2],
    ) -> Result<[String; 2], String> {
        let variable = |name: &str| {
            let index = usize::from(name == DEV_VARIABLES[1]);
            Ok(dev[index].map(SecretString::from))
        };
        let key = |key: Key| {
            let index = usize::from(key == WEB_BROKER_PASSWORD);
            kept[index].map(SecretString::from).ok_or_else(|| format!("{} is nowhere", key.entry()))
        };
        let found = find_with(is_allowed, variable, key)?;
        Ok([&found.user, &found.password].map(|text| text.expose_secret().to_owned()))
    }

    #[test]
    fn development_comes_first_where_it_is_allowed() {
        let kept = [Some("user"), Some("password")];
        let told = |texts: [&str; 2]| Ok(texts.map(str::to_owned));
        assert_eq!(found(true, SET.map(Some), kept), told(SET));
        assert_eq!(found(false, SET.map(Some), kept), told(["user", "password"]));
        assert_eq!(found(true, [None, None], kept), told(["user", "password"]));
    }

    /// Specification 1, "Authentication", 2: the variable of development skips the dialog, where it may.
    #[test]
    fn the_gateways_password_is_asked_for_unless_development_has_one() {
        let given = |is_allowed, dev: Option<&str>, asked: Result<&str, &str>| {
            let variable = |name: &str| {
                assert_eq!(name, "DEV_LOCALBROKER_API_PASSWORD");
                Ok(dev.map(SecretString::from))
            };
            let none = |why: &str| NoPassword { why: why.to_owned(), is_wanted: true };
            let ask = || asked.map(SecretString::from).map_err(none);
            let found = gateway_password_with(is_allowed, variable, ask);
            found.map(|found| found.expose_secret().to_owned()).map_err(|none| none.why)
        };
        let told = |text: &str| Ok(text.to_owned());
        assert_eq!(given(true, Some("dev"), Err("nobody is here")), told("dev"));
        assert_eq!(given(false, Some("dev"), Ok("typed")), told("typed"));
        assert_eq!(given(true, None, Ok("typed")), told("typed"));
        assert_eq!(given(true, None, Err("it was cancelled")), Err("it was cancelled".to_owned()));
    }

    #[test]
    fn what_is_missing_is_named_without_a_secret() {
        let told = found(false, SET.map(Some), [Some("user"), None]).unwrap_err();
        for words in ["web-broker-password is nowhere", "kumiki key set web-broker-password"] {
            assert!(told.contains(words), "{told}");
        }
        let half = found(true, [Some(SET[0]), None], [None, None]).unwrap_err();
        assert!(half.contains("DEV_WEBBROKER_PASSWORD is not; set both"), "{half}");
        assert!(!told.contains("marker") && !half.contains("marker"));
    }
}
