//! Sends the request for a WebSocket by hand: libraries log its address, and a broker's address is secret.

use std::io;
use std::time::Duration;

use http_client::{Socket, Url, connect_socket};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::as_bytes::AsBytes;
use crate::local_broker::limits::HANDSHAKE_BYTES_MAX;

pub(crate) type Stream = WebSocketStream<AsBytes<Box<dyn Socket>>>;

/// Opens a WebSocket: no compression, no redirect, one attempt. Frames of either kind come as bytes.
///
/// # Errors
/// A text without the address.
pub(crate) async fn open(
    address: &SecretString,
    query: Option<&str>,
    frame_bytes_max: usize,
    time: Duration,
) -> Result<Stream, String> {
    match tokio::time::timeout(time, connect(address, query, frame_bytes_max, time)).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("no stream within {} s", time.as_secs_f64())),
    }
}

async fn connect(
    address: &SecretString,
    query: Option<&str>,
    frame_bytes_max: usize,
    time: Duration,
) -> Result<Stream, String> {
    let url =
        Url::parse(address.expose_secret()).map_err(|_| "the address is not valid".to_owned())?;
    let host = url.host_str().unwrap_or_default();
    let is_secure = url.scheme() == "wss";
    let port = url.port().unwrap_or(if is_secure { 443 } else { 80 });
    let bare_host = host.trim_matches(['[', ']']);
    let no_connection = |error: io::Error| format!("no connection ({})", error.kind());
    let socket = connect_socket(bare_host, port, is_secure, time).await;
    let mut socket = socket.map_err(no_connection)?;
    let key = generate_key();
    let shown_port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let head = format!(
        "GET {path}{query} HTTP/1.1\r\nHost: {host}{shown_port}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    );
    let ended = |error: io::Error| format!("the connection ended ({})", error.kind());
    socket.write_all(head.as_bytes()).await.map_err(ended)?;
    socket.flush().await.map_err(ended)?;
    let (head, mut rest) = answer(&mut socket).await?;
    accepted(&head, &derive_accept_key(key.as_bytes()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(frame_bytes_max))
        .max_frame_size(Some(frame_bytes_max));
    let socket = AsBytes::new(socket, &mut rest);
    Ok(WebSocketStream::from_partially_read(socket, rest, Role::Client, Some(config)).await)
}

/// The head of the answer, and the bytes after it.
async fn answer(socket: &mut Box<dyn Socket>) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut head = Vec::new();
    loop {
        let end = head.windows(4).position(|part| part == b"\r\n\r\n").map(|end| end + 4);
        if let Some(end) = end.filter(|end| *end <= HANDSHAKE_BYTES_MAX) {
            let rest = head.split_off(end);
            return Ok((head, rest));
        }
        if end.is_some() || head.len() > HANDSHAKE_BYTES_MAX {
            return Err(format!("the answer's head has more than {HANDSHAKE_BYTES_MAX} bytes"));
        }
        match socket.read_buf(&mut head).await {
            Ok(0) => return Err("the connection ended before a stream began".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(format!("the connection ended ({})", error.kind())),
        }
    }
}

/// Checks that the head begins the stream.
fn accepted(head: &[u8], accept: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut status = lines.next().unwrap_or_default().split(' ');
    let is_http = status.next().is_some_and(|version| version.starts_with("HTTP/1."));
    match status.next().and_then(|status| status.parse::<u16>().ok()) {
        Some(101) if is_http => {}
        Some(status) if is_http => return Err(format!("no stream (HTTP status {status})")),
        _ => return Err("the answer is not HTTP".to_owned()),
    }
    let headers: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let has = |name: &str, wanted: &str| {
        headers.iter().any(|(found, value)| found == name && value.eq_ignore_ascii_case(wanted))
    };
    let answers_key =
        headers.iter().any(|(n, value)| n == "sec-websocket-accept" && *value == accept);
    let is_packed = headers.iter().any(|(name, _)| name == "sec-websocket-extensions");
    if !has("upgrade", "websocket") || !answers_key || is_packed {
        return Err("the answer does not open the WebSocket".to_owned());
    }
    Ok(())
}

/// Why a connection ended, in words that show no received data. `who` is the other side.
pub(crate) fn reason(error: &Error, who: &str, frame_bytes_max: usize) -> String {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => format!("{who} ended the stream"),
        Error::Io(error) => format!("the connection ended ({})", error.kind()),
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            format!("a frame has more than {frame_bytes_max} bytes")
        }
        // Its program ended or was killed, or something on the way has cut it.
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            format!("the connection to {who} was lost")
        }
        Error::Protocol(_) => "the data break the rules of WebSockets".to_owned(),
        _ => "the stream failed".to_owned(),
    }
}
