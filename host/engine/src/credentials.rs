//! The user's name and password at the web broker: from the house's key places, and for development from
//! two variables of their own (specification 2, "Secrets"; specification 4, P1).

use std::env::{self, VarError};

use ipc::{CredentialsRecord, Secret};
use keys::Key;
use orders::Credentials;
use secrecy::{ExposeSecret, SecretString};

use crate::live::WEB_BROKER;

/// The user's name.
pub const WEB_BROKER_USER: Key = Key::new("KUMIKI_WEB_BROKER_USER", "web-broker-user");
/// The password of the login. The second password is kept nowhere.
pub const WEB_BROKER_PASSWORD: Key = Key::new("KUMIKI_WEB_BROKER_PASSWORD", "web-broker-password");

/// The variables of development, for the name and the password.
pub const DEV_VARIABLES: [&str; 2] = ["DEV_WEBBROKER_USER_ID", "DEV_WEBBROKER_PASSWORD"];

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
        second_password: None,
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
