//! Decides which addresses of the web broker may be used, and makes the addresses of requests.
//!
//! No other code does (specification 4, P1). No error shows an address: those of a session are as good as its
//! password.

use std::fmt;

use http_client::{Url, is_loopback};
use secrecy::{ExposeSecret, SecretString};

use crate::web_broker::limits::VIRTUAL_URL_BYTES_MAX;
use crate::web_broker::release::{LoginKind, Release};
use crate::web_broker::{Environment, WebBrokerConfig};

/// Hosts are compared whole: the demo's name contains the market's.
const DEMO_HOST: &str = "demo-kabuka.e-shiten.jp";
const PRODUCTION_HOST: &str = "kabuka.e-shiten.jp";
/// The host of most addresses in a login at the market's host; no login goes there.
const PRODUCTION_SESSION_HOST: &str = "price-kabuka.e-shiten.jp";

/// Why an address is refused, in one line that does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It cannot be read.
    #[error("base_url or an address of the broker is not a valid address")]
    NotAnAddress,
    /// It is too long.
    #[error("an address of the broker has more than {VIRTUAL_URL_BYTES_MAX} bytes")]
    TooLong,
    /// It has a name, a password, a port, a query or a fragment, which are not allowed.
    #[error("an address of the broker must hold no name, password, port, query or fragment")]
    NotPlain,
    /// Not encrypted, and not on this machine.
    #[error("an address of the broker must begin with https or wss, unless it is on this machine")]
    NotEncrypted,
    /// A folder must end with `/`.
    #[error("base_url must end with /")]
    NotAFolder,
    /// Neither the broker nor this machine.
    #[error(
        "base_url is neither the broker's address of this environment nor on this machine \
         (127.0.0.0/8, ::1, localhost)"
    )]
    Elsewhere,
    /// The market, without permission.
    #[error("the production address needs environment = \"prod\" and WEBBROKER_ALLOW_PROD=1; {0}")]
    Production(&'static str),
    /// The path belongs to a release with another kind of login than the dialect's.
    #[error(
        "base_url ends with the path of a release that the dialect does not speak; leave the path out, or \
         set the dialect of that release"
    )]
    OtherRelease,
    /// A login gave an address of another host.
    #[error("the answer to the login names an address of another server")]
    OtherServer,
}

/// Where a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    ThisMachine,
    Demo,
    Production,
}

/// The protocol of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Requests and answers.
    Http,
    /// The stream of events.
    WebSocket,
}

/// The allowed addresses of this session's broker.
#[derive(Clone)]
pub struct Addresses {
    base: Url,
    place: Place,
    host: String,
    release: Release,
}

impl Addresses {
    /// The addresses of a configuration.
    ///
    /// # Errors
    /// [`AddressError`] in one line, if a rule refuses it.
    pub fn new(config: &WebBrokerConfig) -> Result<Self, AddressError> {
        let (mut base, place) = Self::server_of(config)?;
        let of_dialect = Release::of_dialect(&config.dialect);
        if base.path() == "/" {
            base.set_path(&of_dialect.path());
        }
        let release = match (Release::of_path(base.path()), place) {
            (Some(release), _) if release.login() == of_dialect.login() => release,
            (Some(_), _) => return Err(AddressError::OtherRelease),
            (None, Place::ThisMachine) => of_dialect,
            (None, _) => return Err(AddressError::Elsewhere),
        };
        let host = base.host_str().unwrap_or_default().to_owned();
        Ok(Self { base, place, host, release })
    }

    /// The host of a configuration, for any dialect, and whether it is this machine.
    ///
    /// # Errors
    /// [`AddressError`] in one line, if a rule refuses it.
    pub fn host_of(config: &WebBrokerConfig) -> Result<(String, bool), AddressError> {
        let (base, place) = Self::server_of(config)?;
        Ok((base.host_str().unwrap_or_default().to_owned(), place == Place::ThisMachine))
    }

    fn server_of(config: &WebBrokerConfig) -> Result<(Url, Place), AddressError> {
        let host = match config.environment {
            Environment::Demo => DEMO_HOST,
            Environment::Prod => PRODUCTION_HOST,
        };
        let built_in = format!("https://{host}/");
        let base = config.base_url.as_deref().unwrap_or(&built_in);
        let base = plain(base, Scheme::Http)?;
        let place = place_of(&base).ok_or(AddressError::Elsewhere)?;
        match (place, config.environment) {
            (Place::Production, Environment::Prod) if config.production_allowed => {}
            (Place::Production, environment) => {
                let missing = match (environment, config.production_allowed) {
                    (Environment::Prod, _) => {
                        "the variable WEBBROKER_ALLOW_PROD is missing or not 1; set it for this command"
                    }
                    (Environment::Demo, true) => "the environment is demo; set it to prod",
                    (Environment::Demo, false) => "both are missing",
                };
                return Err(AddressError::Production(missing));
            }
            (Place::Demo, Environment::Prod) => return Err(AddressError::Elsewhere),
            (Place::Demo, Environment::Demo) | (Place::ThisMachine, _) => {}
        }
        if !base.path().ends_with('/') {
            return Err(AddressError::NotAFolder);
        }
        Ok((base, place))
    }

    /// The host of the requests, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether orders reach the market.
    #[must_use]
    pub fn is_production(&self) -> bool {
        self.place == Place::Production
    }

    /// Whether the server is on this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.place == Place::ThisMachine
    }

    /// The address of a simulator, for people; only on this machine can there be one.
    #[must_use]
    pub fn simulator(&self) -> Option<String> {
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        self.is_this_machine().then(|| format!("{}{port}", self.host))
    }

    /// The kind of credentials for a login here.
    #[must_use]
    pub fn login_kind(&self) -> LoginKind {
        self.release.login()
    }

    /// The release of the dialect.
    pub(crate) fn release(&self) -> Release {
        self.release
    }

    /// Identifies a server: host and port.
    pub(crate) fn server(&self) -> String {
        let port = self.base.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.host)
    }

    /// The address of a login.
    pub(crate) fn login(&self, query: &SecretString) -> SecretString {
        // Of the right size at once: a text that grows or shrinks leaves a copy.
        SecretString::from([self.base.as_str(), "auth/?", query.expose_secret()].concat())
    }

    /// The address of a request, at an address that a login gave.
    pub(crate) fn request(to: &SecretString, query: &SecretString) -> SecretString {
        SecretString::from([to.expose_secret(), "?", query.expose_secret()].concat())
    }

    /// Checks an address that a login gave by the rules for the login itself.
    pub(crate) fn judge(&self, text: &str, scheme: Scheme) -> Result<SecretString, AddressError> {
        let url = plain(text, scheme)?;
        let place = match url.host_str() {
            Some(PRODUCTION_SESSION_HOST) => Some(Place::Production),
            _ => place_of(&url),
        };
        // Even if the market is allowed: it is not the server of the login.
        if place != Some(self.place) {
            return Err(AddressError::OtherServer);
        }
        Ok(SecretString::from(String::from(url)))
    }
}

/// Shows the host only.
impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").field("host", &self.host).finish_non_exhaustive()
    }
}

/// An address of scheme, host and path only, and on this machine a port.
fn plain(text: &str, scheme: Scheme) -> Result<Url, AddressError> {
    if text.len() > VIRTUAL_URL_BYTES_MAX {
        return Err(AddressError::TooLong);
    }
    // Characters that a parser would drop silently.
    if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
        return Err(AddressError::NotAnAddress);
    }
    let url = Url::parse(text).map_err(|_| AddressError::NotAnAddress)?;
    let (secure, open) = match scheme {
        Scheme::Http => ("https", "http"),
        Scheme::WebSocket => ("wss", "ws"),
    };
    match url.scheme() {
        found if found == secure => {}
        found if found == open && is_loopback(&url) => {}
        found if found == open => return Err(AddressError::NotEncrypted),
        _ => return Err(AddressError::NotAnAddress),
    }
    let has_port = url.port().is_some() && !is_loopback(&url);
    let has_name = !url.username().is_empty() || url.password().is_some();
    if has_port || has_name || url.query().is_some() || url.fragment().is_some() {
        return Err(AddressError::NotPlain);
    }
    Ok(url)
}

fn place_of(url: &Url) -> Option<Place> {
    match url.host_str()? {
        DEMO_HOST => Some(Place::Demo),
        PRODUCTION_HOST => Some(Place::Production),
        _ if is_loopback(url) => Some(Place::ThisMachine),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
