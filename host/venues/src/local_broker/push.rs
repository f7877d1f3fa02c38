//! The WebSocket of boards: one connection, from its opening to its end.
//!
//! Specification 1, "Push board message". The stream decides when it is opened, pinged and closed.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::config::Endpoint;
use super::limits::{FRAME_RECEIVED_BYTES_MAX, FRAMES_WAITING_MAX};
use crate::websocket;

/// What comes over a connection.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// It is open.
    Opened,
    /// A frame, of either kind.
    Frame(Bytes),
    /// The answer to a ping, whatever it repeats.
    Pong,
    /// It could not be opened, or has ended, and why.
    Closed(String),
}

/// What comes over a connection, with the connection's number.
type Named = (u64, Pushed);

/// The queue of what comes over all connections.
pub(crate) fn queue() -> (mpsc::Sender<Named>, mpsc::Receiver<Named>) {
    mpsc::channel(FRAMES_WAITING_MAX)
}

/// Opens a connection and passes on its data, until it ends or the receiver is gone. Each item of `pings` sends
/// a ping.
pub(crate) async fn follow(
    endpoint: Endpoint,
    path: String,
    connection: u64,
    time: Duration,
    sender: mpsc::Sender<Named>,
    mut pings: mpsc::Receiver<()>,
) {
    let why = run(&endpoint, &path, connection, time, &sender, &mut pings).await;
    // If the receiver is gone, the receiver has closed it.
    let _ = sender.send((connection, Pushed::Closed(why))).await;
}

async fn run(
    endpoint: &Endpoint,
    path: &str,
    connection: u64,
    time: Duration,
    sender: &mpsc::Sender<Named>,
    pings: &mut mpsc::Receiver<()>,
) -> String {
    let address = SecretString::from(format!("ws://{}{path}", endpoint.authority()));
    let mut stream = match websocket::open(&address, None, FRAME_RECEIVED_BYTES_MAX, time).await {
        Ok(stream) => stream,
        Err(why) => return why,
    };
    let listens = |sent: Result<(), _>| sent.is_ok();
    if !listens(sender.send((connection, Pushed::Opened)).await) {
        return String::new();
    }
    loop {
        let came = tokio::select! {
            biased;
            Some(()) = pings.recv() => {
                let ping = stream.send(Message::Ping(Bytes::from_static(b"kumiki")));
                match tokio::time::timeout(time, ping).await {
                    Ok(Ok(())) => continue,
                    _ => return "the connection takes no data".to_owned(),
                }
            }
            came = stream.next() => came,
        };
        let pushed = match came {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                Pushed::Frame(message.into_data())
            }
            Some(Ok(Message::Pong(_))) => Pushed::Pong,
            Some(Ok(Message::Ping(_))) => {
                // The library has made the answer; it must be sent.
                match tokio::time::timeout(time, stream.flush()).await {
                    Ok(Ok(())) => continue,
                    _ => return "the connection takes no data".to_owned(),
                }
            }
            Some(Ok(Message::Close(_))) | None => return "the gateway ended the stream".to_owned(),
            Some(Ok(Message::Frame(_))) => continue,
            Some(Err(error)) => {
                return websocket::reason(&error, "the gateway", FRAME_RECEIVED_BYTES_MAX);
            }
        };
        if !listens(sender.send((connection, pushed)).await) {
            return String::new();
        }
    }
}

#[cfg(test)]
mod tests;
