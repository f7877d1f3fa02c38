//! A gateway over real sockets: it answers as a test says, and passes on its streams.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::WebSocket;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A status and a body.
pub(crate) type Answer = (u16, Vec<u8>);
pub(crate) type Stream = WebSocket<TcpStream>;

pub(crate) struct Server {
    pub(crate) port: u16,
    /// The streams that were opened, in their order.
    pub(crate) streams: mpsc::Receiver<Stream>,
}

impl Server {
    /// Starts a gateway; `answer` gets the method and the path of each request, and its body.
    pub(crate) fn start(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(answer, 0)
    }

    fn listen(
        answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
        handshake_bytes: usize,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, streams) = mpsc::channel();
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (answer, sender) = (answer.clone(), sender.clone());
                std::thread::spawn(move || {
                    serve(socket.unwrap(), &*answer, &sender, handshake_bytes);
                });
            }
        });
        Self { port, streams }
    }

    /// One whose answers to requests for a stream have a head of so many bytes.
    pub(crate) fn with_long_handshakes(bytes: usize) -> Self {
        Self::listen(usual, bytes)
    }

    /// One that answers as the official one does.
    pub(crate) fn usual() -> Self {
        Self::start(usual)
    }
}

/// The official answers; every registration succeeds.
pub(crate) fn usual(asked: &str, body: &str) -> Answer {
    let body = match asked {
        "POST /token" => json!({ "ResultCode": 0, "Token": "token" }),
        "PUT /register" => {
            let read: Value = serde_json::from_str(body).unwrap();
            json!({ "RegistList": read["Symbols"] })
        }
        "PUT /unregister" => json!({ "RegistList": [] }),
        "GET /wallet/cash" => json!({ "StockAccountWallet": 1 }),
        "GET /wallet/margin" => json!({ "MarginAccountWallet": 2 }),
        _ => return (404, Vec::new()),
    };
    (200, body.to_string().into_bytes())
}

fn serve(
    mut socket: TcpStream,
    answer: &(dyn Fn(&str, &str) -> Answer + Send + Sync),
    streams: &mpsc::Sender<Stream>,
    handshake_bytes: usize,
) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if !socket.read(&mut byte).is_ok_and(|read| read == 1) {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    if let Some(key) = header("Sec-WebSocket-Key") {
        let accept = derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n"
        );
        let more = handshake_bytes.saturating_sub(head.len() + "X-More: \r\n\r\n".len());
        let head = format!("{head}X-More: {}\r\n\r\n", "x".repeat(more));
        // The client may have closed the connection.
        let _ = socket.write_all(head.as_bytes());
        // A test that needs no more streams is over.
        let _ = streams.send(WebSocket::from_raw_socket(socket, Role::Server, None));
        return;
    }
    let length = header("Content-Length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).unwrap();
    let asked = head.split(" HTTP/").next().unwrap();
    let (status, body) = answer(asked, std::str::from_utf8(&body).unwrap());
    let head = format!(
        "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    // The client may be gone.
    let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body));
}
