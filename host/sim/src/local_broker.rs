//! The simulated local gateway: a server over HTTP and WebSocket on this machine that answers as the
//! broker's application does, from the vendor's documents and with nothing of our client.
//!
//! It has every call of a read-only client; calls that would send an order are counted and refused, so that
//! a test can show that nobody makes one. Boards are made around trades: of the vendor's trade files, of a
//! walk of prices, or posted one by one. It keeps what was really traded and pushed, for tests to compare
//! with what a client found.
//!
//! Everything can be looked at, and every fault switched, at `/control`: see [`mod@control`].

mod account;
mod board;
mod board_text;
mod config;
pub mod control;
mod faults;
mod feed;
mod frames;
mod gateway;
pub mod limits;
mod push;
mod rates;
mod refusal;
mod registrations;
mod rest;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::{self, Handle};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

pub use crate::web_broker::Issue;
pub use config::{Config, Dialect, FeedStart, FirstDay, Listed, QuoteNames, Source};
pub use faults::{FaultKind, FaultSetting};
pub use secrecy::SecretString;

use domain::{ExchangeCalendar, JstDate};
use feed::Walk;
use gateway::Gateway;
use replay::data_set::DataSet;
use server::Shared;

use crate::files::{self, FilesError, Wanted};
use crate::web_broker::Follower;

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// The trade files cannot be read.
    #[error(transparent)]
    Data(Box<replay::RequestError>),
    /// The port cannot be had.
    #[error(
        "cannot listen on port {port} of this machine: {source}; choose another --port, or --port 0 for \
         any free one"
    )]
    Port {
        /// The port that was asked for.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The system gives no thread or timer.
    #[error("the server cannot start: {0}")]
    System(#[from] io::Error),
}

impl From<FilesError> for ServerError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Issue(why) => Self::Config(why),
            FilesError::Data(error) => Self::Data(error),
        }
    }
}

/// A gateway before it listens: its trade files are read, and its first day is known.
pub(crate) struct Prepared {
    pub(crate) config: Config,
    data: Option<DataSet>,
    pub(crate) first_day: JstDate,
}

impl Prepared {
    pub(crate) fn new(mut config: Config) -> Result<Self, ServerError> {
        let data = match &config.source {
            Source::Files { folder, cache, start, end } => {
                let range = (*start, *end);
                let wanted = Wanted { folder: folder.clone(), cache: cache.clone(), range };
                let (data, issues) = files::load(&config.issues, wanted)?;
                (config.issues, config.any_symbol) = (issues, false);
                Some(data)
            }
            Source::Walk { days, .. } if !(1..=limits::DAYS_MAX).contains(days) => {
                let most = limits::DAYS_MAX;
                return Err(ServerError::Config(format!("{days} days: it must be 1 to {most}")));
            }
            Source::Walk { .. } | Source::Still => None,
        };
        let of_files = data.as_ref().map(|data| data.range.0);
        let first_day = gateway::first_day(&config, &ExchangeCalendar::default(), of_files)?;
        if config.first_day == FirstDay::Today {
            // It is asked for again, maybe after midnight.
            config.first_day = FirstDay::On(first_day);
        }
        Ok(Self { config, data, first_day })
    }

    /// Whose sessions the first day has; none: the market stands.
    pub(crate) fn sessions(&self) -> Option<JstDate> {
        match self.config.source {
            Source::Still => None,
            _ => Some(self.data.as_ref().map_or(self.first_day, |data| data.range.0)),
        }
    }
}

/// A running simulated gateway. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Handle,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a gateway; it listens when this returns.
    ///
    /// # Errors
    /// [`ServerError`]: the configuration, the trade files or the port.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        Self::start_prepared(Prepared::new(config)?, None)
    }

    /// Starts a gateway whose trades, and days, are those of a broker too.
    pub(crate) fn start_prepared(
        prepared: Prepared,
        follower: Option<Follower>,
    ) -> Result<Self, ServerError> {
        let Prepared { config, data, .. } = prepared;
        let (source, speed, port) = (config.source.clone(), config.speed, config.port);
        let bound = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = bound.map_err(|source| ServerError::Port { port, source })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let first = data.as_ref().map(|data| data.range.0);
        let mut gateway = Gateway::new(Arc::new(config), first)?;
        gateway.follower = follower;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared::new(gateway, address, stop));
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let for_server = Arc::clone(&shared);
        let serving = std::thread::Builder::new().name("sim-local-broker".to_owned());
        let mut threads = vec![serving.spawn(move || {
            runtime.block_on(async move {
                match TcpListener::from_std(listener) {
                    Ok(listener) => server::serve(listener, for_server).await,
                    Err(error) => tracing::error!("the server cannot start: {error}"),
                }
            });
        })?];
        let for_feed = Arc::clone(&shared);
        let feeding = std::thread::Builder::new().name("sim-feed".to_owned());
        match (source, data) {
            (Source::Files { .. }, Some(data)) => {
                threads.push(feeding.spawn(move || feed::play_files(&for_feed, &data, speed))?);
            }
            (Source::Walk { seed, days, mean_gap_ms }, _) => {
                let walk = Walk::new(seed, days, mean_gap_ms);
                threads.push(feeding.spawn(move || walk.play(&for_feed, speed))?);
            }
            _ => {}
        }
        Ok(Self { address, shared, runtime: handle, threads })
    }

    /// What clients take for the gateway's address: scheme, host and port.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Address of the push.
    #[must_use]
    pub fn push_url(&self) -> String {
        let path = self.shared.gateway().dialect.push_path();
        format!("ws://{}{path}", self.address)
    }

    /// Sends a frame on the push, in turn with those of the market; waits while there is no room.
    ///
    /// # Errors
    /// No client is connected.
    pub fn push(&self, frame: &Value) -> Result<(), String> {
        self.push_text(frame.to_string())
    }

    /// The same, of any text.
    ///
    /// # Errors
    /// No client is connected.
    pub fn push_text(&self, text: String) -> Result<(), String> {
        self.push_message(Message::text(text))
    }

    /// The same, of a binary frame.
    ///
    /// # Errors
    /// No client is connected.
    pub fn push_binary(&self, bytes: Vec<u8>) -> Result<(), String> {
        self.push_message(Message::binary(bytes))
    }

    fn push_message(&self, message: Message) -> Result<(), String> {
        if !self.shared.gateway().enqueue(message) {
            return Err("no client is connected to the push".to_owned());
        }
        self.shared.hand_over();
        Ok(())
    }

    /// Switches a fault on, written as on the command line: `too-many@wallet/cash*2`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fault(&self, text: &str) -> Result<(), String> {
        self.shared.gateway().faults.add(text.parse()?)
    }

    /// Does commands of the control endpoint, without the network.
    ///
    /// # Errors
    /// What is wrong with the first wrong one.
    pub fn control(&self, commands: &Value) -> Result<Value, String> {
        let told = control::run(&mut self.shared.gateway(), "", commands.to_string().as_bytes());
        for cut in self.shared.turn(&self.runtime) {
            cut.cut();
        }
        self.shared.hand_over();
        told
    }

    /// Everything that the gateway holds, as `GET /control/state` shows it.
    #[must_use]
    pub fn view(&self) -> Value {
        control::view(&self.shared.gateway())
    }

    /// Ends it and waits for that.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}
