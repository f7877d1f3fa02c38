//! A server on this machine: it answers, is silent, or hangs up, and stores its requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use venues::web_broker::encoding::{from_cp932, percent_decode, to_cp932};
use venues::web_broker::{Credentials, Environment, Transport, WebBrokerConfig};

/// The server's reaction to a request.
pub(crate) enum Act {
    /// Answers with a body and status 200.
    Body(Vec<u8>),
    /// Answers with these bytes as they are.
    Raw(Vec<u8>),
    /// Hangs up.
    HangUp,
    /// Says nothing for a while.
    Wait(Duration),
}

pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server; `answer` gets the decoded path and query of each request.
    pub(crate) fn start(answer: impl Fn(&str, u16) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(socket.unwrap(), port, &seen, &*answer));
            }
        });
        Self { port, requests }
    }

    /// The requests so far, decoded.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn config(&self, folder: &Path) -> WebBrokerConfig {
        config(self.port, folder)
    }

    pub(crate) fn transport(&self, folder: &Path, decodes: bool) -> Transport {
        Transport::new(&self.config(folder), decodes).unwrap()
    }

    /// A transport that is logged in.
    pub(crate) async fn session(&self, folder: &Path) -> Transport {
        let mut transport = self.transport(folder, true);
        transport.login(&password("user", "word")).await.unwrap();
        transport
    }
}

pub(crate) fn config(port: u16, folder: &Path) -> WebBrokerConfig {
    WebBrokerConfig {
        environment: Environment::Demo,
        base_url: Some(format!("http://127.0.0.1:{port}/e_api_v4r8/")),
        dialect: "web-broker-spec".to_owned(),
        production_allowed: false,
        connect_timeout: Duration::from_secs(5),
        answer_timeout: Duration::from_millis(1_500),
        state_dir: folder.join("state"),
        cache_dir: folder.join("cache"),
    }
}

/// A name and a password.
pub(crate) fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password { user: secret(user), password: secret(password) }
}

pub(crate) fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

/// The head of a request, decoded; a connection may bring several.
fn serve(
    mut socket: TcpStream,
    port: u16,
    seen: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str, u16) -> Act + ?Sized),
) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match socket.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let line = head.split(|byte| *byte == b' ').nth(1).unwrap();
        let asked = from_cp932(&percent_decode(line)).unwrap();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        let sent = match answer(&asked, port) {
            Act::Body(body) => http(&body, ""),
            Act::Raw(bytes) => bytes,
            Act::HangUp => return,
            Act::Wait(time) => {
                std::thread::sleep(time);
                return;
            }
        };
        if socket.write_all(&sent).is_err() {
            return;
        }
        if !sent.starts_with(b"HTTP/1.1 200 OK\r\n") {
            return;
        }
    }
}

/// A whole answer.
pub(crate) fn http(body: &[u8], headers: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// A text as the broker sends it.
pub(crate) fn sjis(text: &str) -> Vec<u8> {
    to_cp932(text).unwrap()
}

/// The answer to a login, with addresses of this server.
pub(crate) fn login_ack(port: u16) -> Vec<u8> {
    sjis(&format!(
        r#"{{"p_errno":"0","p_err":"","sCLMID":"CLMAuthLoginAck","sResultCode":"0",
        "sResultText":"","sZyoutoekiKazeiC":"1","sLastLoginDate":"20261120090000",
        "sKinsyouhouMidokuFlg":"0",
        "sUrlRequest":"http://127.0.0.1:{port}/request/ND=virtual-secret-1/",
        "sUrlMaster":"http://127.0.0.1:{port}/master/ND=virtual-secret-2/",
        "sUrlPrice":"http://127.0.0.1:{port}/price/ND=virtual-secret-3/",
        "sUrlEvent":"http://127.0.0.1:{port}/event/ND=virtual-secret-4/",
        "sUrlEventWebSocket":"ws://127.0.0.1:{port}/event_ws/ND=virtual-secret-5/"}}"#
    ))
}

/// Answers logins, and all else by `answer`.
pub(crate) fn logged_in(
    answer: impl Fn(&str, u16) -> Act + Send + Sync + 'static,
) -> impl Fn(&str, u16) -> Act + Send + Sync + 'static {
    move |asked, port| match asked.contains("/auth/?") {
        true => Act::Body(login_ack(port)),
        false => answer(asked, port),
    }
}
