//! The push: one WebSocket client gets the boards of registered symbols.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_util::sync::CancellationToken;

use super::faults::FaultKind;
use super::limits::{CLIENT_FRAME_BYTES_MAX, PUSH_STALL_TIME};
use super::server::Shared;
use crate::http::Head;

/// Messages that are written before what the client sent is looked at again.
const BATCH: usize = 256;

/// Whether a request asks for a WebSocket.
pub(crate) fn is_upgrade(head: &Head) -> bool {
    let has_key = head.header("sec-websocket-key").is_some_and(|key| !key.is_empty());
    head.method == "GET" && head.says("upgrade", "websocket") && has_key
}

/// Serves a client of the push until it, or the gateway, ends.
pub(crate) async fn serve(mut connection: TcpStream, head: &Head, shared: Arc<Shared>) {
    let key = head.header("sec-websocket-key").unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    let (id, frames, freeze, cut) = {
        let mut gateway = shared.gateway();
        let (id, frames, freeze) = gateway.connect();
        (id, frames, freeze, gateway.push_cut.clone())
    };
    let served = async {
        if connection.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(CLIENT_FRAME_BYTES_MAX))
            .max_frame_size(Some(CLIENT_FRAME_BYTES_MAX));
        let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
        follow(socket, frames, (&freeze, &cut), &shared).await;
    };
    tokio::select! {
        () = cut.cancelled() => {}
        () = shared.stop.cancelled() => {}
        () = served => {}
    }
    shared.gateway().disconnected(id);
}

/// Sends what is due and answers pings.
async fn follow(
    mut socket: WebSocketStream<TcpStream>,
    mut frames: mpsc::Receiver<Message>,
    (freeze, cut): (&CancellationToken, &CancellationToken),
    shared: &Shared,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let is_open = tokio::select! {
            biased;
            () = freeze.cancelled() => {
                // The connection stays and nothing comes of it.
                return std::future::pending().await;
            }
            message = socket.next() => match message {
                Some(Ok(message)) => in_time(heard(&mut socket, message, shared)).await,
                Some(Err(_)) | None => false,
            },
            count = frames.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    // Another client took the place, or all ends without a word.
                    if !cut.is_cancelled() {
                        timeout(PUSH_STALL_TIME, socket.close(None)).await.ok();
                    }
                    return;
                }
                send(&mut socket, batch.drain(..)).await
            }
        };
        if !is_open {
            return;
        }
    }
}

async fn send(
    socket: &mut WebSocketStream<TcpStream>,
    messages: impl Iterator<Item = Message>,
) -> bool {
    for message in messages {
        if !in_time(async { socket.feed(message).await.is_ok() }).await {
            return false;
        }
    }
    in_time(async { socket.flush().await.is_ok() }).await
}

/// Whether something went well; a client that takes nothing for [`PUSH_STALL_TIME`] is given up.
async fn in_time(done: impl Future<Output = bool>) -> bool {
    timeout(PUSH_STALL_TIME, done).await.unwrap_or_else(|_| {
        tracing::warn!("the client of the push took nothing for PUSH_STALL_TIME: it was closed");
        false
    })
}

/// Takes what the client says; tells whether the connection goes on.
async fn heard(socket: &mut WebSocketStream<TcpStream>, message: Message, shared: &Shared) -> bool {
    match message {
        Message::Ping(_) => {
            let is_empty = {
                let mut gateway = shared.gateway();
                gateway.counts.pings += 1;
                gateway.faults.has(FaultKind::EmptyPong)
            };
            if is_empty {
                // It takes the place of the answer that is ready.
                return socket.send(Message::Pong(Bytes::new())).await.is_ok();
            }
            socket.flush().await.is_ok()
        }
        Message::Close(_) => false,
        Message::Text(_) | Message::Binary(_) => {
            shared.gateway().counts.client_frames += 1;
            true
        }
        Message::Pong(_) | Message::Frame(_) => true,
    }
}
