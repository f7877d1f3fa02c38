//! Orders go only to hosts that the dialect is made for (specification 4, P1).
//!
//! A start sends nothing. If the dialect is not made for the host, nothing is prepared either: no log, no
//! request numbers.

use std::path::Path;
use std::time::Duration;

use orders::{DeskRules, Service, ServiceError, Setup};
use venues::web_broker::{Environment, WebBrokerConfig};

use crate::dialect::PlainDialect;

const HOSTS: [(Environment, &str); 2] =
    [(Environment::Demo, "demo-kabuka.e-shiten.jp"), (Environment::Prod, "kabuka.e-shiten.jp")];

fn start(
    folder: &Path,
    environment: Environment,
    base_url: Option<&str>,
    made_for: &[&str],
) -> Result<Service, ServiceError> {
    let broker = WebBrokerConfig {
        environment,
        base_url: base_url.map(str::to_owned),
        // The desk takes the dialect's own name.
        dialect: String::new(),
        production_allowed: true,
        connect_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_secs(1),
        state_dir: folder.to_owned(),
        cache_dir: folder.to_owned(),
    };
    let setup = Setup {
        broker,
        rules: DeskRules::default(),
        mapping: Box::new(PlainDialect::made_for(made_for)),
        config_dir: folder.to_owned(),
        credentials: Box::new(|_| Err("nobody logs in".to_owned())),
    };
    Service::start(setup, |_, _| {})
}

#[test]
fn a_dialect_that_is_not_made_for_the_vendors_hosts_is_refused_before_anything_is_prepared() {
    for (environment, host) in HOSTS {
        for made_for in [&[][..], &["e-shiten.jp"], &["x.kabuka.e-shiten.jp", "localhost"]] {
            let folder = tempfile::tempdir().unwrap();
            let error = start(folder.path(), environment, None, made_for).unwrap_err();
            assert!(matches!(error, ServiceError::OtherHost { .. }), "{error}");
            let others: String = made_for.iter().map(|one| format!(", {one}")).collect();
            let expected =
                format!("the dialect plain is not made for {host}, only for this machine{others}");
            assert_eq!(error.to_string(), expected);
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left behind");
        }
    }
}

/// The host is checked before the path, which may belong to a release that the dialect does not speak.
#[test]
fn a_dialect_that_is_not_made_for_a_host_is_refused_whatever_the_path() {
    for path in ["", "/", "/e_api_v4r8/", "/e_api_v4r10/"] {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("https://demo-kabuka.e-shiten.jp{path}");
        let error = start(folder.path(), Environment::Demo, Some(&url), &[]).unwrap_err();
        assert!(matches!(error, ServiceError::OtherHost { .. }), "{path}: {error}");
    }
}

#[test]
fn a_dialect_is_for_its_own_hosts_and_every_one_is_for_this_machine() {
    for (environment, host) in HOSTS {
        let folder = tempfile::tempdir().unwrap();
        let service = start(folder.path(), environment, None, &[host]).unwrap();
        assert_eq!(service.host(), host);
        service.stop();
        for (other, _) in HOSTS.iter().filter(|(other, _)| *other != environment) {
            let error = start(folder.path(), *other, None, &[host]).unwrap_err();
            assert!(matches!(error, ServiceError::OtherHost { .. }), "{error}");
        }
    }
    for made_for in [&[][..], &["kabuka.e-shiten.jp"]] {
        for url in ["http://127.0.0.1:9/e/", "http://localhost:9/e/", "http://[::1]:9/e/"] {
            let folder = tempfile::tempdir().unwrap();
            start(folder.path(), Environment::Demo, Some(url), made_for).unwrap().stop();
        }
    }
}
