//! What a login at the web broker needs: a name and a password, or an id and a private key. They come from the stores
//! of [`keys`], and for development from variables of their own (specification 2, "Secrets"; specification 4, P1).
//! The password of the local gateway comes from the person at this machine, and for development from a variable
//! (specification 1, "Authentication"; specification 4, P50).

use std::env::{self, VarError};
use std::io::Read as _;
use std::path::Path;

use domain::Secret;
use ipc::CredentialsRecord;
use keys::dialog::{Dialog, NoAnswer, Question};
use keys::{Key, PRIVATE_KEY_BYTES_MAX, PrivateKey};
use secrecy::{ExposeSecret, SecretString};
use venues::local_broker::NoPassword;
use venues::web_broker::{Credentials, LoginKind};
use zeroize::Zeroizing;

use crate::live::WEB_BROKER;

/// The user's name.
pub const WEB_BROKER_USER: Key = Key::new("KUMIKI_WEB_BROKER_USER", "web-broker-user");
/// The password of the login. The second password is stored nowhere.
pub const WEB_BROKER_PASSWORD: Key = Key::new("KUMIKI_WEB_BROKER_PASSWORD", "web-broker-password");

/// The authentication id of a login with a key.
pub const WEB_BROKER_AUTH_ID: Key = Key::new("KUMIKI_WEB_BROKER_AUTH_ID", "web-broker-auth-id");
/// The private key of such a login.
pub const WEB_BROKER_PRIVATE_KEY: Key =
    Key::new("KUMIKI_WEB_BROKER_PRIVATE_KEY", "web-broker-private-key").of_private_key();
/// All of them.
pub const WEB_BROKER_KEYS: [Key; 4] =
    [WEB_BROKER_USER, WEB_BROKER_PASSWORD, WEB_BROKER_AUTH_ID, WEB_BROKER_PRIVATE_KEY];

/// The variables of development, for the name and the password.
pub const DEV_VARIABLES: [&str; 2] = ["DEV_WEBBROKER_USER_ID", "DEV_WEBBROKER_PASSWORD"];
/// The variables of development, for the authentication id and the path of the private key's file.
pub const DEV_KEY_VARIABLES: [&str; 2] =
    ["DEV_WEBBROKER_AUTH_ID", "DEV_WEBBROKER_PRIVATE_KEY_FILE"];

/// The variable of development for the password of the local gateway, which is stored nowhere.
pub const DEV_GATEWAY_PASSWORD: &str = "DEV_LOCALBROKER_API_PASSWORD";
/// The question to the person at this machine.
const GATEWAY_QUESTION: Question = Question {
    title: "Kumiki",
    description: "API password of the local broker's gateway on this machine",
    prompt: "API password",
};

/// The password of the local gateway: that of development where it is allowed and set, else that of a dialog. It
/// waits for the person.
///
/// # Errors
/// Why there is none, in one line and without a secret.
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

/// Finds what a login of this kind needs. The credentials of development come first where they are allowed
/// and set.
///
/// # Errors
/// What is missing and where it can be put, in one line and without a secret.
pub fn find(dev_login_allowed: bool, kind: LoginKind) -> Result<Credentials, String> {
    let found = match kind {
        LoginKind::Password => find_password(dev_login_allowed, variable, stored_secret),
        LoginKind::Key => find_key(dev_login_allowed, variable, stored_secret, stored_private_key),
    };
    tracing::debug!(credentials = record(found.as_ref().ok()), "looked for credentials");
    found
}

/// What the log says of them: whether they are there.
fn record(found: Option<&Credentials>) -> String {
    let secret = |text: &SecretString| Secret::from(text.expose_secret().to_owned());
    let (user_id, password) = match found {
        Some(Credentials::Password { user, password }) => {
            (Some(secret(user)), Some(secret(password)))
        }
        Some(Credentials::Key { auth_id, .. }) => (Some(secret(auth_id)), None),
        None => (None, None),
    };
    let record = CredentialsRecord { venue: WEB_BROKER.to_owned(), user_id, password };
    serde_json::to_string(&record).unwrap_or_else(|error| error.to_string())
}

fn find_password(
    dev_login_allowed: bool,
    variable: impl Fn(&str) -> Result<Option<SecretString>, String>,
    stored_secret: impl Fn(Key) -> Result<SecretString, String>,
) -> Result<Credentials, String> {
    if let Some([user, password]) = of_development(dev_login_allowed, DEV_VARIABLES, variable)? {
        return Ok(Credentials::Password { user, password });
    }
    let [user, password] = [WEB_BROKER_USER, WEB_BROKER_PASSWORD].map(stored_secret);
    Ok(Credentials::Password { user: user?, password: password? })
}

fn find_key(
    dev_login_allowed: bool,
    variable: impl Fn(&str) -> Result<Option<SecretString>, String>,
    stored_secret: impl Fn(Key) -> Result<SecretString, String>,
    stored_private_key: impl Fn(Key) -> Result<PrivateKey, String>,
) -> Result<Credentials, String> {
    if let Some([auth_id, path]) = of_development(dev_login_allowed, DEV_KEY_VARIABLES, variable)? {
        let auth_id = WEB_BROKER_AUTH_ID.read(DEV_KEY_VARIABLES[0], &auth_id);
        let auth_id = auth_id.map_err(|error| error.to_string())?;
        let private_key = private_key_file(path.expose_secret())?;
        return Ok(Credentials::Key { auth_id, private_key });
    }
    let (auth_id, private_key) =
        (stored_secret(WEB_BROKER_AUTH_ID), stored_private_key(WEB_BROKER_PRIVATE_KEY));
    Ok(Credentials::Key { auth_id: auth_id?, private_key: private_key? })
}

/// Both variables of development, or none.
fn of_development(
    is_allowed: bool,
    [one, other]: [&str; 2],
    variable: impl Fn(&str) -> Result<Option<SecretString>, String>,
) -> Result<Option<[SecretString; 2]>, String> {
    if !is_allowed {
        return Ok(None);
    }
    match (variable(one)?, variable(other)?) {
        (Some(first), Some(second)) => Ok(Some([first, second])),
        (None, None) => Ok(None),
        (Some(_), None) => Err(format!("{one} is set and {other} is not; set both")),
        (None, Some(_)) => Err(format!("{other} is set and {one} is not; set both")),
    }
}

fn private_key_file(path: &str) -> Result<PrivateKey, String> {
    let [_, variable] = DEV_KEY_VARIABLES;
    let unread =
        |error: std::io::Error| format!("{variable}: cannot read the file ({})", error.kind());
    let most = PRIVATE_KEY_BYTES_MAX + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    let file = keys::open_file(Path::new(path)).map_err(|why| format!("{variable}: {why}"))?;
    file.take(most as u64).read_to_end(&mut bytes).map_err(unread)?;
    PrivateKey::read(&bytes).map_err(|what| format!("{variable}: {what}"))
}

fn stored_secret(key: Key) -> Result<SecretString, String> {
    key.find().map_err(|error| missing_key(key, &error.to_string()))
}

fn stored_private_key(key: Key) -> Result<PrivateKey, String> {
    key.find_private_key().map_err(|error| missing_key(key, &error.to_string()))
}

/// Why a key is missing, and how it is put where it is looked for.
fn missing_key(key: Key, why: &str) -> String {
    let name = key.entry();
    let file = if key.is_private_key() { " --file KEY.pem" } else { "" };
    format!("{why}; put it into the system's key store with `kumiki key set {name}{file}`")
}

fn variable(name: &str) -> Result<Option<SecretString>, String> {
    match env::var(name) {
        Ok(text) => {
            Ok(Some(SecretString::from(text)).filter(|text| !text.expose_secret().is_empty()))
        }
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8 text; set it again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: [&str; 2] = ["dev-user-marker", "dev-password-marker"];

    fn found(
        is_allowed: bool,
        dev: [Option<&str>; 2],
        stored: [Option<&str>; 2],
    ) -> Result<[String; 2], String> {
        let variable = |name: &str| {
            let index = usize::from(name == DEV_VARIABLES[1]);
            Ok(dev[index].map(SecretString::from))
        };
        let key = |key: Key| {
            let index = usize::from(key == WEB_BROKER_PASSWORD);
            let nowhere = || missing_key(key, &format!("{} is nowhere", key.entry()));
            stored[index].map(SecretString::from).ok_or_else(nowhere)
        };
        match find_password(is_allowed, variable, key)? {
            Credentials::Password { user, password } => {
                Ok([&user, &password].map(|text| text.expose_secret().to_owned()))
            }
            other @ Credentials::Key { .. } => panic!("{other:?}"),
        }
    }

    #[test]
    fn development_comes_first_where_it_is_allowed() {
        let stored = [Some("user"), Some("password")];
        let pair = |texts: [&str; 2]| Ok(texts.map(str::to_owned));
        assert_eq!(found(true, SET.map(Some), stored), pair(SET));
        assert_eq!(found(false, SET.map(Some), stored), pair(["user", "password"]));
        assert_eq!(found(true, [None, None], stored), pair(["user", "password"]));
    }

    #[test]
    fn a_login_with_a_key_takes_the_file_of_development_where_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("marker.pem");
        let found_with = |is_allowed, path: Option<&str>, own: &str| {
            let variable = |name: &str| {
                let [id, file] = DEV_KEY_VARIABLES;
                assert!([id, file].contains(&name), "{name}");
                Ok(if name == id { Some(own) } else { path }.map(SecretString::from))
            };
            let stored = |key: Key| {
                assert_eq!(key, WEB_BROKER_AUTH_ID);
                Ok(SecretString::from("stored-marker"))
            };
            let nowhere = |key: Key| Err(missing_key(key, "it is nowhere"));
            find_key(is_allowed, variable, stored, nowhere)
        };
        let found =
            |is_allowed, path| found_with(is_allowed, path, "dev-marker").map(drop).unwrap_err();
        let path = file.to_str().unwrap();
        let missing = found(true, Some(path));
        assert!(missing.starts_with("DEV_WEBBROKER_PRIVATE_KEY_FILE: cannot be read"), "{missing}");
        std::fs::write(&file, "marker").unwrap();
        let wrong = found(true, Some(path));
        assert!(
            wrong.starts_with("DEV_WEBBROKER_PRIVATE_KEY_FILE: not an RSA private key"),
            "{wrong}"
        );
        let half = found(true, None);
        assert!(half.contains("DEV_WEBBROKER_PRIVATE_KEY_FILE is not; set both"), "{half}");
        let stored = found(false, Some(path));
        let words = "`kumiki key set web-broker-private-key --file KEY.pem`";
        assert!(stored.starts_with("it is nowhere; ") && stored.contains(words), "{stored}");
        let folder = found(true, folder.path().to_str());
        assert!(folder.contains("it is a pipe, a device or a folder"), "{folder}");
        for text in [missing, wrong, half, stored, folder] {
            assert!(!text.contains("marker"), "{text}");
        }
        // The id is a word, as in every other place; what editors and shells put around it is taken off.
        for own in ["two marker", "\u{feff} ", "m\u{e4}rker", &"marker".repeat(1_000)] {
            let error = found_with(true, Some(path), own).map(drop).unwrap_err();
            assert!(error.starts_with("DEV_WEBBROKER_AUTH_ID: "), "{error}");
            assert!(!error.contains("marker") && !error.contains("rker"), "{error}");
        }
        let own = SecretString::from("\u{feff} dev-marker\r\n");
        let read = WEB_BROKER_AUTH_ID.read(DEV_KEY_VARIABLES[0], &own).unwrap();
        assert_eq!(read.expose_secret(), "dev-marker");
    }

    /// Specification 1, "Authentication", 2: the variable of development skips the dialog, where it may.
    #[test]
    fn the_gateways_password_is_typed_unless_development_has_one() {
        let given = |is_allowed, dev: Option<&str>, typed: Result<&str, &str>| {
            let variable = |name: &str| {
                assert_eq!(name, "DEV_LOCALBROKER_API_PASSWORD");
                Ok(dev.map(SecretString::from))
            };
            let none = |why: &str| NoPassword { why: why.to_owned(), is_wanted: true };
            let ask = || typed.map(SecretString::from).map_err(none);
            let found = gateway_password_with(is_allowed, variable, ask);
            found.map(|found| found.expose_secret().to_owned()).map_err(|none| none.why)
        };
        let password = |text: &str| Ok(text.to_owned());
        assert_eq!(given(true, Some("dev"), Err("no terminal")), password("dev"));
        assert_eq!(given(false, Some("dev"), Ok("typed")), password("typed"));
        assert_eq!(given(true, None, Ok("typed")), password("typed"));
        assert_eq!(given(true, None, Err("no password")), Err("no password".to_owned()));
    }

    #[test]
    fn what_is_missing_is_named_without_a_secret() {
        let error = found(false, SET.map(Some), [Some("user"), None]).unwrap_err();
        for words in ["web-broker-password is nowhere", "kumiki key set web-broker-password"] {
            assert!(error.contains(words), "{error}");
        }
        let half = found(true, [Some(SET[0]), None], [None, None]).unwrap_err();
        assert!(half.contains("DEV_WEBBROKER_PASSWORD is not; set both"), "{half}");
        assert!(!error.contains("marker") && !half.contains("marker"));
    }
}
