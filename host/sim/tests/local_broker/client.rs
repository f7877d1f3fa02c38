//! A plain client: sockets, bytes and JSON, nothing of the project's own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use sim::local_broker::{Config, Dialect, Server};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket, client::IntoClientRequest};

/// A gateway that takes any number of calls and whose market stands.
pub(crate) fn start(dialect: Dialect) -> Server {
    start_with(Config { dialect, has_rate_limit: false, ..Config::default() })
}

pub(crate) fn start_with(config: Config) -> Server {
    Server::start(config).unwrap()
}

/// Sends bytes and reads what comes until the end; none where the connection is refused.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request).ok()?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok()?;
    Some(all)
}

/// What came back of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The status and the code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, i64) {
        (self.status, self.json()["Code"].as_i64().unwrap_or_default())
    }
}

/// Makes a call on a connection of its own; none where nothing whole comes back.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: Option<&str>,
) -> Option<Told> {
    let key = key.map_or(String::new(), |key| format!("X-API-KEY: {key}\r\n"));
    let content = body.map_or(String::new(), |body| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    });
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n{key}{content}\r\n{}",
        body.unwrap_or_default()
    );
    let all = String::from_utf8(exchange(address, request.as_bytes())?).unwrap();
    let (head, body) = all.split_once("\r\n\r\n")?;
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    if length.parse() != Ok(body.len()) {
        return None;
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Told { status, head: head.to_owned(), body: body.to_owned() })
}

/// A client that has a token.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    prefix: &'static str,
    push_url: String,
    pub(crate) key: String,
}

impl Client {
    pub(crate) fn new(server: &Server) -> Self {
        let is_spec = server.view()["dialect"] == "local-broker-spec";
        let prefix = if is_spec { "" } else { "/kabusapi" };
        let key = String::new();
        Self { address: server.address, prefix, push_url: server.push_url(), key }
    }

    pub(crate) fn logged_in(server: &Server) -> Self {
        let mut client = Self::new(server);
        let told = client.log_in("demo");
        assert_eq!((told.status, &told.json()["ResultCode"]), (200, &json!(0)));
        client
    }

    pub(crate) fn log_in(&mut self, password: &str) -> Told {
        let body = json!({ "APIPassword": password }).to_string();
        let path = format!("{}/token", self.prefix);
        let told = ask(self.address, "POST", &path, None, Some(&body)).unwrap();
        if told.status == 200 {
            self.key = told.json()["Token"].as_str().unwrap().to_owned();
        }
        told
    }

    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Told> {
        let path = format!("{}{path}", self.prefix);
        let body = body.map(Value::to_string);
        ask(self.address, method, &path, Some(&self.key), body.as_deref())
    }

    pub(crate) fn get(&self, path: &str) -> Told {
        self.call("GET", path, None).unwrap()
    }

    /// A change of the registrations: symbols of Tokyo.
    pub(crate) fn put(&self, path: &str, symbols: &[&str]) -> Told {
        let rows = symbols.iter().map(|symbol| json!({ "Symbol": symbol, "Exchange": 1 }));
        let body = json!({ "Symbols": rows.collect::<Vec<_>>() });
        self.call("PUT", path, Some(&body)).unwrap()
    }

    /// The symbols of an answered list.
    pub(crate) fn list(told: &Told) -> Vec<String> {
        let list = told.json()["RegistList"].as_array().unwrap().clone();
        list.iter().map(|row| row["Symbol"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn push(&self) -> Push {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = self.push_url.as_str().into_client_request().unwrap();
        let config = tungstenite::protocol::WebSocketConfig::default();
        let (socket, _) =
            tungstenite::client::client_with_config(request, stream, Some(config)).unwrap();
        Push(socket)
    }
}

/// A client of the push.
pub(crate) struct Push(WebSocket<TcpStream>);

impl Push {
    pub(crate) fn next(&mut self) -> Option<Message> {
        self.0.read().ok()
    }

    pub(crate) fn frame(&mut self) -> Value {
        match self.next() {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("no frame: {other:?}"),
        }
    }

    pub(crate) fn send(&mut self, message: Message) {
        self.0.send(message).unwrap();
    }

    pub(crate) fn ping(&mut self, payload: &'static [u8]) {
        self.0.send(Message::Ping(payload.into())).unwrap();
    }

    /// Whether nothing comes for a moment; what comes later is not known.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.0.get_ref().set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        let told = self.0.read();
        self.0.get_ref().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        matches!(told, Err(tungstenite::Error::Io(_)))
    }

    /// The bytes that the server sent, without a look at what they mean.
    pub(crate) fn raw(&mut self) -> &mut TcpStream {
        self.0.get_mut()
    }
}

/// Waits until the state is as wished.
pub(crate) fn wait(server: &Server, what: &str, done: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..6_000 {
        let view = server.view();
        if done(&view) {
            return view;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}: {}", server.view())
}
