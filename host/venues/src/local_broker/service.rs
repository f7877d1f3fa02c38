//! The thread that owns the connection to the gateway. Commands come in by a queue, events go out by a
//! function; between the two everything happens on one thread, in the order in which it came.

use domain::gateway_mapping::GatewayMapping;
use ipc::{Command, DepthSnapshot, Event, TradeRow};
use secrecy::SecretString;
use thiserror::Error;

use crate::Recipient;
use crate::local_broker::{ConfigError, LocalBrokerConfig};

/// Why nobody gave a password (specification 4, P50).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPassword {
    /// In one line, without a secret.
    pub why: String,
}

/// Asks the user for the gateway's password; it may wait for minutes, and is called on a thread of its own.
pub type AskPassword = Box<dyn FnMut() -> Result<SecretString, NoPassword> + Send>;

/// What the venue is made of.
pub struct Setup {
    /// Where the gateway is and how it is spoken to.
    pub config: LocalBrokerConfig,
    /// The dialect.
    pub mapping: Box<dyn GatewayMapping>,
    /// Asks for the password when a login needs it.
    pub ask_password: AskPassword,
}

/// What came of one frame: a snapshot, and the trade derived from it, in this order (specification 4, P56).
#[derive(Debug, Clone, Copy)]
pub struct MarketData<'a> {
    /// Code of the issue, like `7203`.
    pub symbol: &'a str,
    /// The board.
    pub depth: &'a DepthSnapshot<'a>,
    /// The trade.
    pub trade: Option<&'a TradeRow>,
}

/// What the venue tells.
#[derive(Debug)]
pub enum Told<'a> {
    /// An event. `Subscribed` and `Unsubscribed` to a client are where its market data begins and ends;
    /// after `SubscriptionEvicted` nobody gets that symbol.
    Event(Recipient, &'a Event<'a>),
    /// Market data for all clients that are subscribed.
    Market(MarketData<'a>),
}

/// Why the venue cannot start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The address is none that may be used.
    #[error("[local_broker] {0}")]
    Config(#[from] ConfigError),
    /// The system gives no thread or no sockets.
    #[error("the local broker cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// A command could not be handed over: too many wait, or the venue has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// A venue that runs.
#[derive(Debug)]
pub struct Service {}

impl Service {
    /// Starts the thread. `tell` is called on that thread for everything told, in order.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn start(
        setup: Setup,
        tell: impl FnMut(Told<'_>) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let _ = (setup, tell);
        Ok(Self {})
    }

    /// Whether the gateway is the real market's (specification 1, "Capabilities entry").
    #[must_use]
    pub const fn is_production(&self) -> bool {
        false
    }

    /// Hands a command over; commands that are none of the venue's are passed over.
    ///
    /// # Errors
    /// [`Busy`]: it was not taken.
    pub fn command(&self, client: u64, command: Command) -> Result<(), Busy> {
        let _ = (client, command);
        Ok(())
    }

    /// A client is gone: what it was subscribed to is released.
    pub fn client_left(&self, client: u64) {
        let _ = client;
    }

    /// Ends the venue: its own symbols are unregistered, where the gateway answers in time (specification 4, P50).
    pub fn stop(self) {}
}
