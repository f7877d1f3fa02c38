//! Which addresses are refused (specification 4, P1).

use std::path::PathBuf;
use std::time::Duration;

use super::*;

fn config(base_url: Option<&str>, environment: Environment, allowed: bool) -> WebBrokerConfig {
    WebBrokerConfig {
        environment,
        base_url: base_url.map(str::to_owned),
        dialect: "web-broker-v4r10".to_owned(),
        production_allowed: allowed,
        connect_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_secs(1),
        state_dir: PathBuf::new(),
        cache_dir: PathBuf::new(),
    }
}

fn of(base_url: &str) -> Result<Addresses, AddressError> {
    Addresses::new(&config(Some(base_url), Environment::Demo, true))
}

fn login_of(base_url: Option<&str>, dialect: &str) -> Result<(String, LoginKind), AddressError> {
    let dialect = dialect.to_owned();
    let config = WebBrokerConfig { dialect, ..config(base_url, Environment::Demo, true) };
    let addresses = Addresses::new(&config)?;
    let login = addresses.login(&SecretString::from("x".to_owned()));
    Ok((login.expose_secret().to_owned(), addresses.login_kind()))
}

/// The path is the dialect's if the address has none, and never that of another kind of login.
#[test]
fn the_dialect_says_the_path_and_the_kind_of_login() {
    let found = login_of(None, "web-broker-v4r8").unwrap();
    let wanted = "https://demo-kabuka.e-shiten.jp/e_api_v4r8/auth/?x".to_owned();
    assert_eq!(found, (wanted, LoginKind::Password));
    for (base_url, dialect, wanted, kind) in [
        ("http://127.0.0.1:1", "web-broker-spec", "e_api_v4r8/", LoginKind::Password),
        ("http://127.0.0.1:1/", "web-broker-v4r10", "e_api_v4r10/", LoginKind::Key),
        ("http://127.0.0.1:1/x/", "web-broker-v4r10", "x/", LoginKind::Key),
        ("http://127.0.0.1:1/e_api_v4r9/", "web-broker-v4r10", "e_api_v4r9/", LoginKind::Key),
    ] {
        let wanted = format!("http://127.0.0.1:1/{wanted}auth/?x");
        assert_eq!(login_of(Some(base_url), dialect), Ok((wanted, kind)), "{base_url}");
    }
    for (base_url, dialect) in [
        ("http://127.0.0.1:1/e_api_v4r10/", "web-broker-spec"),
        ("https://demo-kabuka.e-shiten.jp/e_api_v4r8/", "web-broker-v4r10"),
    ] {
        assert_eq!(login_of(Some(base_url), dialect), Err(AddressError::OtherRelease));
    }
}

#[test]
fn p1_the_price_host_is_for_addresses_of_a_session_only() {
    let market = Addresses::new(&config(None, Environment::Prod, true)).unwrap();
    let price = "https://price-kabuka.e-shiten.jp/e_api_v4r10/master/token/";
    let event = "wss://price-kabuka.e-shiten.jp/e_api_v4r10/event_ws/token/";
    assert!(market.judge(price, Scheme::Http).is_ok());
    assert!(market.judge(event, Scheme::WebSocket).is_ok());
    let near = "https://price-kabuka.e-shiten.jp.example.com/token/";
    assert_eq!(market.judge(near, Scheme::Http).map(drop), Err(AddressError::OtherServer));
    let demo = Addresses::new(&config(None, Environment::Demo, true)).unwrap();
    assert_eq!(demo.judge(price, Scheme::Http).map(drop), Err(AddressError::OtherServer));
    let base =
        config(Some("https://price-kabuka.e-shiten.jp/e_api_v4r10/"), Environment::Prod, true);
    assert_eq!(Addresses::new(&base).map(drop), Err(AddressError::Elsewhere));
}

#[test]
fn p1_the_built_in_addresses_and_this_machine_are_taken() {
    let demo = Addresses::new(&config(None, Environment::Demo, false)).unwrap();
    assert_eq!((demo.host(), demo.is_production()), (DEMO_HOST, false));
    assert_eq!(demo.simulator(), None);
    let login = demo.login(&SecretString::from("x".to_owned()));
    let wanted = "https://demo-kabuka.e-shiten.jp/e_api_v4r10/auth/?x";
    assert_eq!(login.expose_secret(), wanted);
    let market = Addresses::new(&config(None, Environment::Prod, true)).unwrap();
    assert_eq!((market.host(), market.is_production()), (PRODUCTION_HOST, true));
    assert_eq!(market.simulator(), None);
    let here = config(Some("http://127.0.0.1:19877"), Environment::Demo, false);
    let here = Addresses::new(&here).unwrap();
    assert_eq!(here.simulator().as_deref(), Some("127.0.0.1:19877"));
    for good in [
        "https://demo-kabuka.e-shiten.jp",
        "https://demo-kabuka.e-shiten.jp/e_api_v4r9/",
        "https://DEMO-KABUKA.e-shiten.jp:443/e_api_v4r10/",
        "http://127.0.0.1:1/",
        "http://127.9.9.9:80/x/",
        "http://[::1]:5/x/",
        "https://localhost/y/",
    ] {
        assert!(of(good).is_ok(), "{good}");
    }
    assert!(!format!("{demo:?}").contains("e_api"), "{demo:?}");
}

#[test]
fn p1_every_other_address_is_refused() {
    use AddressError::{Elsewhere, NotAFolder, NotAnAddress, NotEncrypted, NotPlain, Production};
    for (wrong, error) in [
        (
            "https://kabuka.e-shiten.jp/e_api_v4r8/",
            Production("the environment is demo; set it to prod"),
        ),
        ("https://demo-kabuka.e-shiten.jp.example.com/e_api_v4r8/", Elsewhere),
        ("https://xdemo-kabuka.e-shiten.jp/e_api_v4r8/", Elsewhere),
        ("https://demo-kabuka.e-shiten.jp./e_api_v4r8/", Elsewhere),
        ("https://example.com/demo-kabuka.e-shiten.jp/", Elsewhere),
        ("https://demo-kabuka.e-shiten.jp/e_api_v4r10/x/", Elsewhere),
        ("https://demo-kabuka.e-shiten.jp:444/e_api_v4r8/", NotPlain),
        ("https://name@demo-kabuka.e-shiten.jp/e_api_v4r8/", NotPlain),
        ("http://demo-kabuka.e-shiten.jp/e_api_v4r8/", NotEncrypted),
        ("http://127.0.0.1.example.com/", NotEncrypted),
        ("http://127.0.0.1/x", NotAFolder),
        ("http://127.0.0.1/?x/", NotPlain),
        ("ws://127.0.0.1/", NotAnAddress),
        ("https://demo-kabuka.e-shiten.jp\\@example.com/", NotAnAddress),
        ("http://127.0.0.1/\n/", NotAnAddress),
        ("", NotAnAddress),
    ] {
        let found = of(wrong).map(drop).unwrap_err();
        assert_eq!(found, error, "{wrong}");
        assert!(wrong.is_empty() || !found.to_string().contains(wrong), "{found}");
    }
    let no_variable =
        "the variable WEBBROKER_ALLOW_PROD is missing or not 1; set it for this command";
    let is_demo = "the environment is demo; set it to prod";
    let market = Some("https://kabuka.e-shiten.jp/e_api_v4r8/");
    for (base_url, environment, allowed, error) in [
        (None, Environment::Prod, false, Production(no_variable)),
        (market, Environment::Demo, true, Production(is_demo)),
        (Some("https://demo-kabuka.e-shiten.jp/e_api_v4r8/"), Environment::Prod, true, Elsewhere),
    ] {
        let found = Addresses::new(&config(base_url, environment, allowed)).map(drop);
        assert_eq!(found, Err(error));
    }
}

#[test]
fn p1_addresses_of_a_login_are_of_the_server_of_the_login() {
    let demo = Addresses::new(&config(None, Environment::Demo, true)).unwrap();
    let judge = |text: &str, scheme| demo.judge(text, scheme).map(drop);
    let sample = "https://demo-kabuka.e-shiten.jp/e_api_v4r7/request/ND=/";
    assert_eq!(judge(sample, Scheme::Http), Ok(()));
    let socket = "wss://demo-kabuka.e-shiten.jp/e_api_v4r7/event_ws/ND=/";
    assert_eq!(judge(socket, Scheme::WebSocket), Ok(()));
    assert_eq!(judge(socket, Scheme::Http), Err(AddressError::NotAnAddress));
    let market = "https://kabuka.e-shiten.jp/e_api_v4r7/request/ND=/";
    assert_eq!(judge(market, Scheme::Http), Err(AddressError::OtherServer));
    assert_eq!(judge("http://127.0.0.1/", Scheme::Http), Err(AddressError::OtherServer));
    let local = of("http://127.0.0.1:1/").unwrap();
    for other in [sample, market] {
        let error = local.judge(other, Scheme::Http).map(drop).unwrap_err();
        assert_eq!(error, AddressError::OtherServer);
        assert!(!error.to_string().contains("ALLOW_PROD"), "no invitation: {error}");
    }
    let long = format!("http://127.0.0.1/{}", "x".repeat(VIRTUAL_URL_BYTES_MAX));
    assert_eq!(local.judge(&long, Scheme::Http).map(drop), Err(AddressError::TooLong));
}
