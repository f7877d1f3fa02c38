//! By which names a service lets itself be called. A page elsewhere can have its own name point to
//! this machine (DNS rebinding), and its browser would then take our answers for that page's own.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};

/// Decides by the host that a request names.
#[derive(Debug, Clone)]
pub(super) struct HostCheck {
    /// Names beside the machine's own; none where every name is good.
    names: Option<Vec<String>>,
}

impl HostCheck {
    /// A service that only this machine reaches, or that was told its names, asks for them.
    pub(super) fn new(address: SocketAddr, named: &[String]) -> Self {
        let asks = address.ip().is_loopback() || !named.is_empty();
        Self { names: asks.then(|| named.iter().map(|name| name.to_ascii_lowercase()).collect()) }
    }

    /// Whether a request may be answered. One without any host comes from no browser.
    pub(super) fn admits(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(names) = &self.names else { return true };
        let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
        hosts.all(|host| is_ours(host, names))
            && uri.authority().is_none_or(|host| is_ours(host.as_str(), names))
    }
}

/// Numbers are no names, so they cannot be made to point here; `localhost` never points elsewhere.
fn is_ours(host: &str, names: &[String]) -> bool {
    let host = without_port(host).to_ascii_lowercase();
    let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    number.parse::<IpAddr>().is_ok()
        || host == "localhost"
        || host.ends_with(".localhost")
        || names.contains(&host)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(address: &str, named: &[&str], host: &str) -> bool {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        HostCheck::new(address.parse().unwrap(), &named).admits(&Uri::from_static("/"), &headers)
    }

    #[test]
    fn only_names_of_this_machine_are_good() {
        const HERE: &str = "127.0.0.1:8080";
        for good in [
            "localhost",
            "LOCALHOST:8080",
            "kumiki.localhost:1",
            "127.0.0.1:8080",
            "127.0.0.1",
            "[::1]:8080",
            "[::1]",
            "192.168.1.5:80",
        ] {
            assert!(admits(HERE, &[], good), "{good}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil",
            "",
            ":80",
        ] {
            assert!(!admits(HERE, &[], foreign), "{foreign}");
            assert!(admits("0.0.0.0:8080", &[], foreign), "{foreign}");
            assert!(!admits("0.0.0.0:8080", &["rank.example"], foreign), "{foreign}");
        }
        assert!(admits(HERE, &["Rank.Example"], "rank.example:443"));
    }

    #[test]
    fn what_stands_in_the_address_counts_too() {
        let check = HostCheck::new("[::1]:80".parse().unwrap(), &[]);
        let mut headers = HeaderMap::new();
        assert!(check.admits(&Uri::from_static("/"), &headers));
        assert!(!check.admits(&Uri::from_static("http://evil.example/"), &headers));
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(!check.admits(&Uri::from_static("/"), &headers));
    }
}
