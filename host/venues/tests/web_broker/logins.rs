//! Logins that begin a session, and logins that fail.

use std::io;
use std::sync::{Arc, Mutex};

use venues::web_broker::{
    AddressError, Addresses, CallFailure, Credentials, Environment, LoginFailure, Transport,
};

use rsa::pkcs8::EncodePrivateKey as _;
use sha2::Sha256;

use crate::server::{Act, Server, config, login_ack, password, secret, sjis};

async fn login_with(body: impl Fn(u16) -> Vec<u8> + Send + Sync + 'static) -> LoginFailure {
    let server = Server::start(move |_, port| Act::Body(body(port)));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    let failure = transport.login(&password("user", "word")).await.unwrap_err();
    assert!(!transport.is_logged_in() && transport.event_address().is_none());
    let called = transport.call(&venues::web_broker::account::cash_request(), None).await;
    assert_eq!((called.p_no, called.result), (None, Err(CallFailure::NotLoggedIn)));
    assert_eq!(server.requests().len(), 1, "nothing is asked twice");
    failure
}

#[tokio::test]
async fn a_session_begins_and_ends() {
    let server = Server::start(|asked, port| match asked.contains("/auth/?") {
        true => Act::Body(login_ack(port)),
        false => {
            Act::Body(sjis(r#"{"p_errno":"0","sCLMID":"CLMAuthLogoutAck","sResultCode":"0"}"#))
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    let login = transport.login(&password("us\"er", "wo rd%\\")).await.unwrap();
    assert_eq!((login.account.as_str(), login.is_first), ("1", true));
    let again = transport.login(&password("user", "word")).await.unwrap();
    assert_eq!((again.changed, again.is_first), (Vec::new(), false));
    transport.logout().await.unwrap();
    assert!(!transport.is_logged_in());
    let asked = server.requests();
    let path = "/e_api_v4r8/auth/?";
    assert!(asked[0].starts_with(path), "{}", asked[0]);
    let json: serde_json::Value = serde_json::from_str(&asked[0][path.len()..]).unwrap();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["p_no", "p_sd_date", "sCLMID", "sUserId", "sPassword", "sJsonOfmt"]);
    assert_eq!(json["sUserId"], "us\"er");
    assert_eq!(json["sPassword"], "wo rd%\\");
    assert_eq!((&json["sCLMID"], &json["sJsonOfmt"]), (&"CLMAuthLoginRequest".into(), &"5".into()));
    assert!(asked[2].starts_with("/request/ND=virtual-secret-1/?{\"p_no\":\""), "{}", asked[2]);
    let number = |asked: &String| asked.split('"').nth(3).unwrap().parse::<u64>().unwrap();
    assert!(asked.is_sorted_by(|one, next| number(one) < number(next)), "{asked:?}");
}

#[tokio::test]
async fn addresses_that_changed_are_named() {
    let server = Server::start(|asked, port| {
        let ack = login_ack(port);
        Act::Body(match asked.contains("\"second\"") {
            true => String::from_utf8(ack).unwrap().replace("secret-3", "other-3").into_bytes(),
            false => ack,
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    transport.login(&password("first", "word")).await.unwrap();
    let login = transport.login(&password("second", "word")).await.unwrap();
    assert_eq!(login.changed, ["sUrlPrice"]);
}

#[tokio::test]
async fn logins_fail_in_ways_that_are_distinguished() {
    let refused =
        r#"{"p_errno":"0","sResultCode":"10031","sResultText":"暗証番号 word が違います"}"#;
    let failure = login_with(move |_| sjis(refused)).await;
    let text = "暗証番号 *** が違います".to_owned();
    assert_eq!(failure, LoginFailure::Refused { code: "10031".to_owned(), text });
    // A refused login repeats or shows secrets: in its code, in its words, and in its addresses.
    for (code, words) in [("wOrd", "W or\td"), ("10031 x", "virtual-secret-9"), ("word", "")] {
        let refused = format!(
            r#"{{"p_errno":"0","sResultCode":"{code}","sResultText":"<{words}>",
                "sUrlRequest":"https://127.0.0.1/virtual-secret-9/"}}"#
        );
        let failure = login_with(move |_| sjis(&refused)).await;
        let text = if words.is_empty() { "<>" } else { "<***>" }.to_owned();
        assert_eq!(failure, LoginFailure::Refused { code: "unreadable code".to_owned(), text });
    }
    let failure = login_with(|_| sjis(r#"{"p_errno":"word","p_err":"WORD"}"#)).await;
    let (errno, text) = ("unreadable code".to_owned(), "***".to_owned());
    assert_eq!(failure, LoginFailure::Unavailable { errno, text });
    let night = r#"{"p_errno":"9","p_err":"システム・サービス停止中"}"#;
    let failure = login_with(move |_| sjis(night)).await;
    assert!(
        matches!(&failure, LoginFailure::Unavailable { errno, .. } if errno == "9"),
        "{failure}"
    );
    let failure = login_with(|port| {
        let ack = String::from_utf8(login_ack(port)).unwrap();
        let ack: Vec<&str> = ack.lines().filter(|line| !line.contains("Url")).collect();
        let ack = ack.join("\n").replace("Flg\":\"0\"", "Flg\":\"1\"");
        format!("{}}}", ack.trim().trim_end_matches(',')).into_bytes()
    });
    assert_eq!(failure.await, LoginFailure::UnreadDocuments);
    let failure = login_with(|_| b"\x81{garbage".to_vec()).await;
    assert!(matches!(failure, LoginFailure::Unknown(_)), "{failure}");
    let failure = login_with(|_| b"{}".to_vec()).await;
    assert!(matches!(failure, LoginFailure::Unknown(_)), "{failure}");
}

#[tokio::test]
async fn p1_every_address_of_a_login_is_judged() {
    for (name, other) in [
        ("sUrlRequest", "https://kabuka.e-shiten.jp/e_api_v4r8/request/ND=virtual-secret/"),
        ("sUrlMaster", "https://demo-kabuka.e-shiten.jp/e_api_v4r8/master/"),
        ("sUrlPrice", "http://192.0.2.1/price/virtual-secret/"),
        ("sUrlEvent", "ftp://127.0.0.1/virtual-secret"),
        ("sUrlEventWebSocket", "ws://127.0.0.1.example.com/virtual-secret"),
        ("sUrlEventWebSocket", "http://127.0.0.1/virtual-secret"),
        ("sUrlRequest", "http://127.0.0.1/virtual-secret?x"),
        ("sUrlMaster", ""),
    ] {
        let failure = login_with(move |port| {
            let ack = String::from_utf8(login_ack(port)).unwrap();
            let start = ack.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
            let end = start + ack[start..].find('"').unwrap();
            format!("{}{other}{}", &ack[..start], &ack[end..]).into_bytes()
        })
        .await;
        let LoginFailure::Forbidden(text) = failure else { panic!("{other}: {failure}") };
        assert!(text.starts_with(name) && !text.contains("virtual-secret"), "{text}");
        assert!(other.is_empty() || !text.contains(other), "{text}");
    }
}

#[test]
fn p1_a_wrong_configuration_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = config(1, folder.path());
    wrong.base_url = Some("https://example.com/secret-path/".to_owned());
    let error = Transport::new(&wrong, true).unwrap_err().to_string();
    assert!(!error.contains('\n') && !error.contains("secret-path"), "{error}");
    assert!(error.contains("base_url"), "{error}");
    wrong.base_url = None;
    wrong.environment = Environment::Prod;
    assert!(matches!(Addresses::new(&wrong), Err(AddressError::Production(_))));
    assert!(!format!("{wrong:?}").contains("http"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let mut transport = Transport::new(&config(port, folder.path()), true).unwrap();
    let failure = transport.login(&password("user", "word")).await.unwrap_err();
    assert!(matches!(failure, LoginFailure::Unreachable(_)), "{failure}");
}

const AUTH_ID: &str = "canary48AuthId0123456789";

/// A key pair, and the answer to a login whose addresses are encrypted for it. Each has the bytes that the
/// vendor leaves in the file, except the last one.
pub(crate) fn encrypted_ack(key: &rsa::PublicKey, port: u16) -> String {
    let mut ack = String::from_utf8(login_ack(port)).unwrap();
    for name in ["sUrlRequest", "sUrlMaster", "sUrlPrice", "sUrlEvent", "sUrlEventWebSocket"] {
        let start = ack.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
        let end = start + ack[start..].find('"').unwrap();
        let address = match name {
            "sUrlEventWebSocket" => ack[start..end].to_owned(),
            _ => format!("\u{feff}{}\r\n", &ack[start..end]),
        };
        let encrypted = key.oaep_encrypt::<Sha256>(address.as_bytes()).unwrap();
        let encrypted = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, encrypted);
        ack.replace_range(start..end, &encrypted);
    }
    ack
}

fn new_key() -> rsa::PrivateKey {
    rsa::PrivateKey::new(&mut getrandom::SysRng, 2_048).unwrap()
}

pub(crate) fn key_credentials(key: &rsa::PrivateKey) -> Credentials {
    let der = key.to_pkcs8_der().unwrap();
    let private_key = keys::PrivateKey::read(der.as_bytes()).unwrap();
    Credentials::Key { auth_id: secret(AUTH_ID), private_key }
}

pub(crate) fn key_transport(server: &Server, folder: &std::path::Path) -> Transport {
    let mut config = server.config(folder);
    config.base_url = Some(format!("http://127.0.0.1:{}", server.port));
    config.dialect = "web-broker-v4r10".to_owned();
    Transport::new(&config, false).unwrap()
}

/// A login with a key that fails, and its failure.
async fn key_login_with(body: impl Fn(u16) -> Vec<u8> + Send + Sync + 'static) -> LoginFailure {
    let server = Server::start(move |_, port| Act::Body(body(port)));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = key_transport(&server, folder.path());
    let failure = transport.login(&key_credentials(&new_key())).await.unwrap_err();
    assert!(!transport.is_logged_in());
    assert_eq!(server.requests().len(), 1, "nothing is asked twice");
    let text = format!("{failure} {failure:?}");
    assert!(!text.contains("canary") && !text.contains("virtual-secret"), "{text}");
    failure
}

#[tokio::test]
async fn a_session_begins_with_a_key_and_its_addresses_stay_inside() {
    let key = new_key();
    let public = key.to_public_key();
    let server = Server::start(move |asked, port| match asked.contains("/auth/?") {
        true => Act::Body(sjis(&encrypted_ack(&public, port))),
        false => {
            Act::Body(sjis(r#"{"p_errno":"0","sCLMID":"CLMAuthLogoutAck","sResultCode":"0"}"#))
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = key_transport(&server, folder.path());
    let credentials = key_credentials(&key);
    assert_eq!(format!("{credentials:?}"), "Credentials { .. }");
    let login = transport.login(&credentials).await.unwrap();
    assert_eq!((login.account.as_str(), login.is_first), ("1", true));
    let again = transport.login(&credentials).await.unwrap();
    assert!(again.changed.is_empty(), "the same addresses: {:?}", again.changed);
    transport.logout().await.unwrap();
    let asked = server.requests();
    let path = "/e_api_v4r10/auth/?";
    assert!(asked[0].starts_with(path), "{}", asked[0]);
    let json: serde_json::Value = serde_json::from_str(&asked[0][path.len()..]).unwrap();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["p_no", "p_sd_date", "sCLMID", "sAuthId", "sJsonOfmt"]);
    assert_eq!(json["sAuthId"], AUTH_ID);
    assert!(asked[2].starts_with("/request/ND=virtual-secret-1/?{\"p_no\":\""), "{}", asked[2]);
}

#[tokio::test]
async fn logins_with_a_key_fail_in_ways_that_say_what_to_do() {
    let other = new_key().to_public_key();
    let failure = key_login_with(move |port| sjis(&encrypted_ack(&other, port))).await;
    assert_eq!(failure, LoginFailure::KeyDoesNotFit("sUrlRequest"));
    assert!(failure.to_string().contains("kumiki key set web-broker-private-key"), "{failure}");
    // Unencrypted addresses are refused for a login with a key.
    let failure = key_login_with(login_ack).await;
    assert_eq!(failure, LoginFailure::KeyDoesNotFit("sUrlRequest"));
    let wrong = format!(r#"{{"p_errno":"-1","p_err":"sAuthId:[{AUTH_ID}] is not valid."}}"#);
    let failure = key_login_with(move |_| sjis(&wrong)).await;
    let (code, text) = ("-1".to_owned(), "sAuthId:[***] is not valid.".to_owned());
    assert_eq!(failure, LoginFailure::IdRefused { code, text });
    assert!(failure.to_string().contains("kumiki key set web-broker-auth-id"), "{failure}");
    let cut = format!(r#"{{"p_errno":"-1","p_err":"sAuthId:[{}...] is wrong."}}"#, &AUTH_ID[..14]);
    let failure = key_login_with(move |_| sjis(&cut)).await;
    assert!(failure.to_string().contains("sAuthId:[***...] is wrong."), "{failure}");
    // Without the flag, too.
    let unread = r#"{"p_errno":"0","sResultCode":"0","sUrlRequest":"","sUrlMaster":"",
        "sUrlPrice":"","sUrlEvent":"","sUrlEventWebSocket":"","sKinsyouhouMidokuFlg":"0"}"#;
    let failure = key_login_with(move |_| sjis(unread)).await;
    assert_eq!(failure, LoginFailure::UnreadDocuments);
    assert!(failure.to_string().contains("web site"), "{failure}");
}

#[tokio::test]
async fn a_version_that_was_switched_off_says_so() {
    let server = Server::start(|_, _| {
        Act::Raw(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    let failure = transport.login(&password("user", "word")).await.unwrap_err();
    assert_eq!(failure, LoginFailure::Retired);
    let reported = failure.to_string();
    assert!(reported.contains("404") && reported.contains("dialect"), "{reported}");
    // The dialect is that of the present version, and the path is not.
    let mut config = server.config(folder.path());
    config.base_url = Some(format!("http://127.0.0.1:{}/e_api_v4r9/", server.port));
    config.dialect = "web-broker-v4r10".to_owned();
    drop(transport);
    let mut transport = Transport::new(&config, false).unwrap();
    let failure = transport.login(&key_credentials(&new_key())).await.unwrap_err();
    assert_eq!(failure, LoginFailure::RetiredPath);
    let reported = failure.to_string();
    assert!(
        reported.contains("404") && reported.contains("leave the path out of base_url"),
        "{reported}"
    );
}

#[tokio::test]
async fn credentials_of_another_kind_are_never_sent() {
    let server = Server::start(|_, port| Act::Body(login_ack(port)));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = key_transport(&server, folder.path());
    let failure = transport.login(&password("user", "word")).await.unwrap_err();
    assert_eq!(failure, LoginFailure::OtherCredentials);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_next_version_is_read_from_the_answer() {
    let server = Server::start(|_, port| {
        let ack = String::from_utf8(login_ack(port)).unwrap();
        let notice = "\"sUpdateInformAPISpecFunction\":\"20261220\",\"sUrlRequest\"";
        Act::Body(ack.replace("\"sUrlRequest\"", notice).into_bytes())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    let login = transport.login(&password("user", "word")).await.unwrap();
    assert_eq!(login.next_release, "20261220");
}

/// A text that a log is written to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One warning for all logins of a process, which has one transport; another date gives another warning.
#[tokio::test]
async fn the_next_version_is_warned_of_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let server = Server::start(|asked, port| {
        let ack = String::from_utf8(login_ack(port)).unwrap();
        let date = if asked.contains("\"later\"") { "20270110" } else { "20261220" };
        let notice = format!("\"sUpdateInformAPISpecFunction\":\"{date}\",\"sUrlRequest\"");
        Act::Body(ack.replace("\"sUrlRequest\"", &notice).into_bytes())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    let warnings = || {
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains("announces a new version")).count()
    };
    for _ in 0..3 {
        transport.login(&password("user", "word")).await.unwrap();
        assert_eq!(warnings(), 1);
    }
    transport.login(&password("later", "word")).await.unwrap();
    assert_eq!(warnings(), 2);
}
