//! The releases of the vendor's version 4: their paths, kinds of login and requests for masters.

use http_client::{Url, is_loopback};

/// The default dialect for servers on this machine.
const LOCAL_DIALECT: &str = "web-broker-spec";
/// The default dialect for the vendor's hosts: its present release.
const VENDORS_DIALECT: &str = "web-broker-v4r10";
/// The release of a dialect whose name has none: that of the specification.
const SPECIFICATION: u32 = 8;
/// The first release whose login is by a key.
const FIRST_WITH_KEYS: u32 = 9;
/// The first release without a stream of all masters.
const FIRST_WITHOUT_STREAM: u32 = 10;

/// The default dialect of a server (specification 4, P1).
#[must_use]
pub fn usual_dialect(base_url: Option<&str>) -> &'static str {
    let url = base_url.and_then(|text| Url::parse(text).ok());
    if url.is_some_and(|url| is_loopback(&url)) { LOCAL_DIALECT } else { VENDORS_DIALECT }
}

/// The kind of credentials for a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginKind {
    /// A name and a password; the addresses are not encrypted.
    Password,
    /// An authentication id; the addresses are encrypted for a private key.
    Key,
}

/// A release, `v4rN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release(u32);

impl Release {
    /// The release at the end of a dialect's name: `web-broker-v4r10`.
    pub(crate) fn of_dialect(name: &str) -> Self {
        let number = name.rsplit_once("-v4r").and_then(|(_, number)| number.parse().ok());
        Self(number.unwrap_or(SPECIFICATION))
    }

    /// The release of a path, `/e_api_v4r10/`; `None` if the path has another form.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let number = path.strip_prefix("/e_api_v4r")?.strip_suffix('/')?.parse().ok()?;
        Some(Self(number)).filter(|release| release.path() == path)
    }

    /// The path of its addresses.
    pub(crate) fn path(self) -> String {
        format!("/e_api_v4r{}/", self.0)
    }

    pub(crate) fn login(self) -> LoginKind {
        if self.0 < FIRST_WITH_KEYS { LoginKind::Password } else { LoginKind::Key }
    }

    /// Whether all masters come in one stream.
    pub(crate) fn has_master_stream(self) -> bool {
        self.0 < FIRST_WITHOUT_STREAM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_have_the_release() {
        for (name, path, login) in [
            ("web-broker-spec", "/e_api_v4r8/", LoginKind::Password),
            ("web-broker-v4r8", "/e_api_v4r8/", LoginKind::Password),
            ("mine-v4r9", "/e_api_v4r9/", LoginKind::Key),
            ("web-broker-v4r10", "/e_api_v4r10/", LoginKind::Key),
        ] {
            let release = Release::of_dialect(name);
            assert_eq!((release.path().as_str(), release.login()), (path, login), "{name}");
            assert_eq!(Release::of_path(path), Some(release));
        }
        for other in ["/", "/e_api_v4r10", "/e_api_v4r010/", "/e_api_v4r+9/", "/x/e_api_v4r9/"] {
            assert_eq!(Release::of_path(other), None, "{other}");
        }
    }
}
