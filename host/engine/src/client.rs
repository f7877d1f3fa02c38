//! The other side of a connection, for programs on this machine: finds the running engine, shows that it
//! may connect, sends commands and reads events. It blocks, and does nothing by itself.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::Secret;
use domain::clock::Stopwatch;
use ipc::{Command, EngineMode, Event, Hello, Ready, RequestId, SCHEMA_MAJOR, SCHEMA_MINOR};
use thiserror::Error;
use tokio_tungstenite::tungstenite::client::client_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, HandshakeError, Message, WebSocket};
use uuid::Uuid;
use web_console::random_hex;

use crate::handshake::{Side, is_proof, proof};
use crate::limits::HANDSHAKE_TIME;
use crate::session_file::{self, EngineAddress, SESSION_FILE};

/// How long the connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Bytes of a message of the engine; a list of 10,000 orders has a tenth of it.
const EVENT_BYTES_MAX: usize = 64 << 20;

/// Why there is no connection, or none any more.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No session file.
    #[error(
        "no engine runs with the config folder {}: it has no {SESSION_FILE}; start one with \
         `kumiki serve --standalone --mode live` or `--mode replay`, or name its folder with --config-dir",
        .0.display()
    )]
    NoEngine(PathBuf),
    /// Nobody listens.
    #[error(
        "the engine of {} does not answer on port {port} ({source}); if it has ended, start it again \
         with `kumiki serve`",
        folder.display()
    )]
    NoAnswer {
        /// The config folder.
        folder: PathBuf,
        /// The port that its session file names.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// The engine refuses the connection.
    #[error("the engine refuses the connection ({code}): {message}")]
    Refused {
        /// Its code.
        code: String,
        /// Its words.
        message: String,
    },
    /// Who listens there is no engine that has the token.
    #[error(
        "another program listens on port {0}, not the engine of the session file; start the engine \
         again"
    )]
    NotTheEngine(u16),
    /// It ended.
    #[error("the connection to the engine has ended{}", .0.as_ref().map_or(String::new(), |why| format!(": {why}")))]
    Ended(Option<String>),
    /// A message could not be read or written.
    #[error("cannot read or write a message of the engine: {0}")]
    Message(String),
}

/// An event as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The event.
    pub event: Event<'static>,
    /// Its JSON.
    pub text: String,
}

/// A connection that the engine has taken.
#[derive(Debug)]
pub struct Client {
    socket: WebSocket<TcpStream>,
    ready: Ready<'static>,
    commands_sent: u64,
}

/// An id for an order: a random UUID.
#[must_use]
pub fn new_order_id() -> String {
    Uuid::new_v4().to_string()
}

impl Client {
    /// Connects to the engine of a config folder, which has to be of this mode.
    ///
    /// # Errors
    /// [`ClientError`]
    pub fn attach(folder: &Path, mode: EngineMode) -> Result<Self, ClientError> {
        let Some(EngineAddress { port, token }) = session_file::find(folder) else {
            return Err(ClientError::NoEngine(folder.to_owned()));
        };
        let no_answer = |source| ClientError::NoAnswer { folder: folder.to_owned(), port, source };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIME).map_err(no_answer)?;
        stream.set_nodelay(true).map_err(no_answer)?;
        stream.set_read_timeout(Some(HANDSHAKE_TIME)).map_err(no_answer)?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(EVENT_BYTES_MAX))
            .max_frame_size(Some(EVENT_BYTES_MAX));
        let url = format!("ws://127.0.0.1:{port}/");
        let (socket, _) = client_with_config(url, stream, Some(limits)).map_err(|error| {
            no_answer(match error {
                HandshakeError::Failure(WsError::Io(source)) => source,
                HandshakeError::Failure(other) => io::Error::other(other.to_string()),
                HandshakeError::Interrupted(_) => ErrorKind::TimedOut.into(),
            })
        })?;
        Self::greet(socket, port, &token, mode)
    }

    fn greet(
        mut socket: WebSocket<TcpStream>,
        port: u16,
        token: &Secret,
        mode: EngineMode,
    ) -> Result<Self, ClientError> {
        let Event::Challenge(challenge) = first(&mut socket)? else {
            return Err(ClientError::NotTheEngine(port));
        };
        let (server_nonce, client_nonce) = (challenge.server_nonce.into_owned(), random_hex());
        let hello = Hello {
            schema_major: SCHEMA_MAJOR,
            schema_minor: SCHEMA_MINOR,
            client_version: concat!("kumiki ", env!("CARGO_PKG_VERSION")).to_owned(),
            mode: mode.as_str().to_owned(),
            proof: proof(token, Side::Client, &server_nonce, &client_nonce, mode.as_str()),
            client_nonce: client_nonce.clone(),
            session_id: None,
        };
        write(&mut socket, &Command::Hello(hello))?;
        match first(&mut socket)? {
            Event::Ready(ready) => {
                let (side, proof) = (Side::Server, &ready.proof);
                if !is_proof(token, side, &server_nonce, &client_nonce, mode.as_str(), proof) {
                    return Err(ClientError::NotTheEngine(port));
                }
                Ok(Self { socket, ready, commands_sent: 0 })
            }
            Event::EngineError(error) => Err(ClientError::Refused {
                code: error.code.into_owned(),
                message: error.message.into_owned(),
            }),
            _ => Err(ClientError::NotTheEngine(port)),
        }
    }

    /// What the engine said of itself.
    #[must_use]
    pub const fn ready(&self) -> &Ready<'static> {
        &self.ready
    }

    /// An id for the next command of this connection.
    ///
    /// # Errors
    /// None in practice: a number is always an id.
    pub fn request_id(&mut self) -> Result<RequestId, ClientError> {
        self.commands_sent += 1;
        // Answers go to all clients with the id of their command, so no two commands may share one.
        let id = format!("{}-{}", Uuid::new_v4().simple(), self.commands_sent);
        RequestId::try_from(id).map_err(|error| ClientError::Message(error.to_string()))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// [`ClientError::Ended`]
    pub fn send(&mut self, command: &Command) -> Result<(), ClientError> {
        write(&mut self.socket, command)
    }

    /// Sends the second password, which no [`Command`] can write.
    ///
    /// # Errors
    /// [`ClientError::Ended`]
    pub fn send_second_password(
        &mut self,
        request_id: &RequestId,
        value: &Secret,
    ) -> Result<(), ClientError> {
        let text = serde_json::json!({
            "op": "SetSecondPassword",
            "request_id": request_id.as_text(),
            "value": value.expose(),
        });
        self.socket.send(Message::Text(text.to_string().into())).map_err(ended)
    }

    /// The next event; none where none comes within this time.
    ///
    /// # Errors
    /// [`ClientError`]
    pub fn next(&mut self, wait: Duration) -> Result<Option<Received>, ClientError> {
        let watch = Stopwatch::start();
        loop {
            let left = wait.saturating_sub(watch.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let socket = self.socket.get_ref();
            socket.set_read_timeout(Some(left)).map_err(|error| ended(WsError::Io(error)))?;
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let text = text.as_str().to_owned();
                    let event = parsed(&text)?;
                    return Ok(Some(Received { event, text }));
                }
                Ok(Message::Close(frame)) => {
                    let why = frame.map(|frame| frame.reason.as_str().to_owned());
                    return Err(ClientError::Ended(why.filter(|why| !why.is_empty())));
                }
                Ok(_) => {}
                Err(WsError::Io(error)) if is_late(&error) => return Ok(None),
                Err(error) => return Err(ended(error)),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The engine sees the end either way.
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

fn is_late(error: &io::Error) -> bool {
    // The caller looks for signals itself.
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn ended(error: WsError) -> ClientError {
    ClientError::Ended(match error {
        WsError::ConnectionClosed | WsError::AlreadyClosed => None,
        other => Some(other.to_string()),
    })
}

fn parsed(text: &str) -> Result<Event<'static>, ClientError> {
    serde_json::from_str(text).map_err(|error| ClientError::Message(error.to_string()))
}

fn write(socket: &mut WebSocket<TcpStream>, command: &Command) -> Result<(), ClientError> {
    let text = serde_json::to_string(command);
    let text = text.map_err(|error| ClientError::Message(error.to_string()))?;
    socket.send(Message::Text(text.into())).map_err(ended)
}

/// The next text of a greeting.
fn first(socket: &mut WebSocket<TcpStream>) -> Result<Event<'static>, ClientError> {
    loop {
        match socket.read().map_err(ended)? {
            Message::Text(text) => return parsed(&text),
            Message::Close(frame) => {
                let why = frame.map(|frame| frame.reason.as_str().to_owned());
                return Err(ClientError::Ended(why.filter(|why| !why.is_empty())));
            }
            _ => {}
        }
    }
}
