//! Addresses that are safe for keys.

use reqwest::Url;

/// An address that a server may be asked at: https, or http to this machine.
///
/// # Errors
/// A text that says what is wrong. It does not hold the address, which may be secret.
pub fn checked_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("not an address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address must not hold a name or a password".to_owned());
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err("an address must start with https:// (http:// only to this machine)".to_owned()),
    }
}

/// Whether an address is of this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_safe_for_keys() {
        for good in [
            "https://example.com/v2",
            "http://127.0.0.1:80/",
            "http://[::1]/",
            "http://localhost:1/x",
        ] {
            assert!(checked_address(good).is_ok(), "{good}");
        }
        for (wrong, part) in [
            ("http://example.com", "https://"),
            ("http://127.0.0.1.example.com", "https://"),
            ("ftp://127.0.0.1", "https://"),
            ("https://name:word@example.com", "a name or a password"),
            ("example.com", "not an address"),
        ] {
            let message = checked_address(wrong).unwrap_err();
            assert!(message.contains(part) && !message.contains(wrong), "{message}");
        }
    }
}
