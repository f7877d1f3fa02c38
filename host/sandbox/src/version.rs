//! Names of interfaces with their versions, `kumiki:strategy/log@1.0.1`, and which versions fit.

use wasmparser::ComponentExternName;

/// A name of a component's import or export, with its version written out: components may keep what
/// does not decide on fitting apart (`a:b/c@1` and `.0.2`).
pub(crate) fn full_name(name: &ComponentExternName<'_>) -> String {
    // The suffix of an implementation belongs to what it implements, not to its name.
    let suffix = name.version_suffix.filter(|_| name.implements.is_none());
    format!("{}{}", name.name, suffix.unwrap_or_default())
}

/// The parts of an interface's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterfaceName<'a> {
    /// `kumiki:strategy`
    pub(crate) package: &'a str,
    /// `log`
    pub(crate) interface: &'a str,
    /// `1.0.1`
    pub(crate) version: &'a str,
}

impl<'a> InterfaceName<'a> {
    /// Takes a name apart; none when it is no interface of a package with a version.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let (path, version) = name.split_once('@')?;
        let (package, interface) = path.split_once('/')?;
        Some(Self { package, interface, version })
    }
}

/// Whether a guest of one version runs on a host of another, by semantic versioning: the same major
/// version. What a later minor version adds is missing here, and found missing by its name or type.
/// Versions before 1 and those with a suffix (`1.1.0-rc.1`) promise nothing: they must be equal.
pub(crate) fn fits(guest: &str, host: &str) -> bool {
    guest == host
        || match (release(guest), release(host)) {
            (Some(guest), Some(host)) => guest[0] == host[0] && guest[0] > 0,
            _ => false,
        }
}

/// Major, minor and patch of a version without a suffix.
fn release(version: &str) -> Option<[u64; 3]> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| Some(part).filter(is_number).and_then(|part| part.parse().ok());
    let mut parts = version.split('.').map(number);
    let release = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let name = InterfaceName::parse("kumiki:strategy/log@1.0.1").unwrap();
        assert_eq!((name.package, name.interface), ("kumiki:strategy", "log"));
        assert_eq!(name.version, "1.0.1");
        for none in ["", "log", "a:b/c", "a:b@1.0.0", "@1/2"] {
            assert_eq!(InterfaceName::parse(none), None, "{none}");
        }
    }

    #[test]
    fn the_major_version_decides() {
        for (guest, host) in [("1.0.0", "1.0.0"), ("1.0.1", "1.0.0"), ("1.9.3", "1.2.0")] {
            assert!(fits(guest, host), "{guest} on {host}");
        }
        assert!(fits("1.0.0", "1.2.0"));
        for (guest, host) in [
            ("2.0.0", "1.0.0"),
            ("0.1.1", "0.1.0"),
            ("1.1.0-rc.1", "1.1.0"),
            ("1", "1.0.0"),
            ("+1.0.0", "1.0.0"),
        ] {
            assert!(!fits(guest, host), "{guest} on {host}");
        }
    }
}
