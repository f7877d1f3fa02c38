//! A client of the engine: one WebSocket of its own, from the handshake on.

use std::net::{Ipv4Addr, TcpStream};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio_tungstenite::tungstenite::client::client_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes, WebSocket};

use crate::rank_bench::or_stop;

/// What the client makes its proof with; one is enough for a bench.
const NONCE: &str = "2b7e151628aed2a6abf7158809cf4f3c2b7e151628aed2a6abf7158809cf4f3c";
/// Events that refuse a command.
const REFUSALS: [&str; 4] = ["Error", "EngineError", "EngineBusy", "OrderRejected"];

/// A connection that the engine has taken.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    requests: u64,
}

impl Client {
    /// Connects to an engine of a mode, and shows that it has the token.
    pub(crate) fn connect(port: u16, token: &str, mode: &str) -> Self {
        let stream = or_stop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
        or_stop(stream.set_nodelay(true));
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let address = format!("ws://127.0.0.1:{port}/");
        let Ok((socket, _)) = client_with_config(address, stream, Some(config)) else {
            panic!("port {port} is no engine's");
        };
        let mut client = Self { socket, requests: 0 };
        let challenge = client.next_json();
        let server_nonce = challenge["server_nonce"].as_str().unwrap_or_default().to_owned();
        client.send_json(&json!({
            "op": "Hello", "schema_major": ipc::SCHEMA_MAJOR, "schema_minor": ipc::SCHEMA_MINOR,
            "client_version": "bench", "mode": mode, "client_nonce": NONCE,
            "proof": proof(token, &server_nonce, mode),
        }));
        let ready = client.next_json();
        assert_eq!(ready["event"], "Ready", "{ready}");
        client
    }

    /// Sends a command, and gives the id of the request.
    pub(crate) fn send(&mut self, op: &str, mut fields: Value) -> String {
        self.requests += 1;
        let request_id = format!("bench-{}", self.requests);
        fields["op"] = op.into();
        fields["request_id"] = request_id.as_str().into();
        self.send_json(&fields);
        request_id
    }

    /// Sends a command and gives its answer. What comes before it is passed over.
    pub(crate) fn ask(&mut self, op: &str, fields: Value, answer: &str) -> Value {
        let request_id = self.send(op, fields);
        loop {
            let event = self.next_json();
            let name = event["event"].as_str().unwrap_or_default();
            if event["request_id"] == request_id.as_str() {
                assert!(!REFUSALS.contains(&name), "{op}: {event}");
                if name == answer {
                    return event;
                }
            }
        }
    }

    /// The next event of a name.
    pub(crate) fn wait(&mut self, name: &str) -> Value {
        loop {
            let event = self.next_json();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// The next event as it came; none where the engine has ended the connection.
    pub(crate) fn next(&mut self) -> Option<Utf8Bytes> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(text),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    fn next_json(&mut self) -> Value {
        let Some(text) = self.next() else { panic!("the engine has ended the connection") };
        or_stop(serde_json::from_str(&text))
    }

    fn send_json(&mut self, value: &Value) {
        or_stop(self.socket.send(Message::text(value.to_string())));
    }
}

fn proof(token: &str, server_nonce: &str, mode: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(token.as_bytes()) else {
        panic!("HMAC takes keys of every length");
    };
    mac.update(format!("client:{server_nonce}:{NONCE}:{mode}").as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
