//! The stream of events: one connection, followed until it is no longer wanted.
//!
//! The broker sends the day's events again at each connection (`p_eno=0`), on purpose. Numbers of different
//! kinds do not rise together, so no number shows which events were missed. The reader has its own record of
//! what it has seen.

use std::fmt;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::order_mapping::Field;
use futures_util::{SinkExt as _, StreamExt as _};
use secrecy::SecretString;
use tokio::sync::mpsc::Sender;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::web_broker::frame;
use crate::web_broker::hiding::Hidden;
use crate::web_broker::limits::FRAME_BYTES_MAX;
use crate::websocket::{self, Stream};

/// The requested events: states, keep-alives, executions, system and operation states. The order of the
/// arguments is the broker's.
const QUERY: &str = "p_rid=0&p_board_no=1000&p_eno=0&p_evt_cmd=ST,KP,EC,SS,US";

/// The address of the stream of events. Nothing shows it.
#[derive(Clone)]
pub struct EventAddress {
    address: SecretString,
    connect_time: Duration,
    hidden: Hidden,
}

impl EventAddress {
    pub(crate) fn new(address: &SecretString, connect_time: Duration, hidden: Hidden) -> Self {
        Self { address: address.clone(), connect_time, hidden }
    }
}

impl fmt::Debug for EventAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventAddress").finish_non_exhaustive()
    }
}

/// Output of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// The connection is up.
    Up,
    /// A frame, keep-alives too.
    Frame(Vec<Field>),
    /// A frame that cannot be read, with an error that shows nothing of it. The connection stays up.
    Unreadable(String),
    /// The connection is down, and why; it is tried again.
    Down(String),
}

/// Time limits of [`follow_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowTimes {
    /// Silence after which a connection counts as dead. The broker sends something every 5 seconds.
    pub silence: Duration,
    /// The first pause before the next connection; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// How long a connection must have been up until the pause is the first one again. A stream that another
    /// program takes away repeatedly is tried ever more slowly.
    pub stable: Duration,
}

impl Default for FollowTimes {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(20),
            pause: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
            stable: Duration::from_secs(60),
        }
    }
}

/// Follows the stream until `cancel` is cancelled or the receiver is gone.
pub async fn follow(address: EventAddress, sender: Sender<StreamEvent>, cancel: CancellationToken) {
    follow_with(address, sender, cancel, FollowTimes::default()).await;
}

/// The same with other times.
pub async fn follow_with(
    address: EventAddress,
    sender: Sender<StreamEvent>,
    cancel: CancellationToken,
    times: FollowTimes,
) {
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = sender.closed() => {}
        () = connections(&address, &sender, times) => {}
    }
}

/// Makes one connection after the other; ends when the receiver is gone.
async fn connections(address: &EventAddress, sender: &Sender<StreamEvent>, times: FollowTimes) {
    let mut pause = times.pause;
    loop {
        let opened =
            websocket::open(&address.address, Some(QUERY), FRAME_BYTES_MAX, address.connect_time);
        let why = match opened.await {
            Ok(mut stream) => {
                let watch = Stopwatch::start();
                if sender.send(StreamEvent::Up).await.is_err() {
                    return;
                }
                let why = read(&mut stream, sender, times.silence, &address.hidden).await;
                if watch.elapsed() >= times.stable {
                    pause = times.pause;
                }
                why
            }
            Err(why) => why,
        };
        tracing::debug!(why, "the web broker's stream of events is down");
        if sender.send(StreamEvent::Down(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(times.pause_max);
    }
}

/// Reads a connection to its end, and returns why it ended.
async fn read(
    stream: &mut Stream,
    sender: &Sender<StreamEvent>,
    silence: Duration,
    hidden: &Hidden,
) -> String {
    loop {
        let Ok(came) = tokio::time::timeout(silence, stream.next()).await else {
            return format!("nothing came for {} s", silence.as_secs_f64());
        };
        let message = match came {
            Some(Ok(message)) => message,
            Some(Err(error)) => return websocket::reason(&error, "the broker", FRAME_BYTES_MAX),
            None => return "the broker ended the stream".to_owned(),
        };
        let parsed = match message {
            // Texts that are not BASE64 are Shift-JIS, in frames of either kind.
            Message::Text(_) | Message::Binary(_) => frame::parse(&message.into_data()),
            Message::Ping(_) => {
                // The library has made the answer; it must be sent.
                if stream.flush().await.is_err() {
                    return "the connection ended".to_owned();
                }
                continue;
            }
            Message::Close(_) => return "the broker ended the stream".to_owned(),
            Message::Pong(_) | Message::Frame(_) => continue,
        };
        let event = match parsed {
            Ok(fields) if fields.is_empty() => continue,
            Ok(mut fields) => {
                hidden.frame(&mut fields);
                StreamEvent::Frame(fields)
            }
            // Its content is lost, so the reader must know: the order list replaces it. The connection stays
            // up, because the broker would send the same again at the next one.
            Err(error) => StreamEvent::Unreadable(error.to_string()),
        };
        if sender.send(event).await.is_err() {
            return "the engine no longer reads the stream".to_owned();
        }
    }
}
