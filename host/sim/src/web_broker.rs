//! The simulated web broker: a server over HTTP and WebSocket on this machine that speaks the broker's
//! own form, from the vendor's documents and with nothing of our client.
//!
//! Orders are matched by the `exchange` crate: a limit order fills at a touch, market orders without
//! slippage, and never more than a trade's shares. The account, margin positions too, is kept here; fills
//! settle at once and nothing is charged. Without trade files the market stands at 09:30 of the first
//! business day until trades are posted. Days of trade files become business days from today on, so that
//! what clients compare with their own clock fits. Splits inside trade files are not modelled.
//!
//! Everything can be looked at, and every fault switched, at `/control`: see [`mod@control`].

mod answers;
mod broker;
mod changes;
mod config;
pub mod control;
mod days;
mod event_log;
mod faults;
mod follower;
mod inquiries;
mod late_lists;
mod ledger;
pub mod limits;
mod login_key;
mod market;
mod masters;
mod notices;
mod order;
mod refusal;
mod request;
mod server;
mod stream;
mod terms;
mod times;
mod trading;
mod wire;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use domain::{ExchangeCalendar, JstDate};
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use config::{Config, Form, Issue, MarketData, MarketStart};
pub use faults::{FaultKind, FaultSetting};
pub use login_key::new_private_key;
pub use secrecy::SecretString;

pub(crate) use days::NewDay;
pub(crate) use follower::Follower;

use broker::Broker;
use server::Shared;

use crate::files::{self, FilesError, Wanted};

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

/// A running simulated broker. It ends when this is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// The private key of a login with one, PEM in PKCS#8.
    pub private_key: Option<SecretString>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Without what it holds: addresses of a login are secrets.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a broker; it listens when this returns.
    ///
    /// # Errors
    /// [`ServerError`]: the configuration, the trade files or the port.
    pub fn start(mut config: Config) -> Result<Self, ServerError> {
        let Some(data) = config.data.clone() else { return Self::listen(config, None) };
        let wanted =
            Wanted { folder: data.folder, cache: data.cache, range: (data.start, data.end) };
        let loaded;
        (loaded, config.issues) = files::load(&config.issues, wanted)?;
        let mut server = Self::listen(config, Some(loaded.range.0))?;
        server.shared.broker().market_runs = data.begins == MarketStart::AtOnce;
        let shared = Arc::clone(&server.shared);
        let playing = std::thread::Builder::new().name("sim-market".to_owned());
        server.threads.push(playing.spawn(move || market::play(&shared, &loaded, data.speed))?);
        Ok(server)
    }

    /// Starts a broker whose market is a gateway's. The first day has the sessions of a date; none: the
    /// market stands.
    pub(crate) fn start_following(
        config: Config,
        hours_of: Option<JstDate>,
    ) -> Result<(Self, Follower), ServerError> {
        let server = Self::listen(config, hours_of)?;
        let follower = Follower::of(&server.shared);
        Ok((server, follower))
    }

    /// Listens. The first day has the sessions of a date; none: the market stands until trades are posted.
    fn listen(mut config: Config, hours_of: Option<JstDate>) -> Result<Self, ServerError> {
        if config.form == Form::V4r10 && config.private_key.is_none() {
            config.private_key = Some(new_private_key()?);
        }
        let private_key = config.private_key.clone();
        let port = config.port;
        let bound = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = bound.map_err(|source| ServerError::Port { port, source })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (changes, changed) = watch::channel(0);
        let config = Arc::new(config);
        let broker =
            Broker::new(config, address.port(), ExchangeCalendar::default(), changes, hours_of)?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared::new(broker, changed, stop));
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let for_server = Arc::clone(&shared);
        let serving = std::thread::Builder::new().name("sim-web-broker".to_owned());
        let threads = vec![serving.spawn(move || {
            runtime.block_on(async move {
                match TcpListener::from_std(listener) {
                    Ok(listener) => server::serve(listener, for_server).await,
                    Err(error) => tracing::error!("the server cannot start: {error}"),
                }
            });
        })?];
        Ok(Self { address, private_key, shared, threads })
    }

    /// What clients take for the broker's address; the login lies below it.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}{}/", self.address, self.shared.form.root())
    }

    /// Does commands of the control endpoint, without the network.
    ///
    /// # Errors
    /// What is wrong with the first wrong one.
    pub fn control(&self, commands: &Value) -> Result<Value, String> {
        control::run(&mut self.shared.broker(), commands.to_string().as_bytes())
    }

    /// Everything that the broker holds, as `GET /control` shows it.
    #[must_use]
    pub fn view(&self) -> Value {
        control::view(&self.shared.broker())
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
