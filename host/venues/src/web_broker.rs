//! The web broker: requests as addresses, answers as Shift-JIS JSON, and a stream of events.
//!
//! Specification 2; specification 4, P1 to P8.

pub mod account;
pub mod addresses;
pub mod encoding;
pub mod events;
pub mod frame;
mod hiding;
pub mod json;
pub mod limits;
mod login;
pub mod master_records;
pub mod masters;
mod masters_cache;
pub mod numbers;
mod order_detail;
mod release;
pub mod request;
pub mod ticks;
mod transport;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use addresses::{AddressError, Addresses};
pub use events::{EventAddress, FollowTimes, StreamEvent, follow, follow_with};
pub use hiding::{Hidden, UNREADABLE_CODE};
pub use login::{Credentials, Login, LoginFailure};
pub use masters::{BusinessDays, Issue, Masters, MastersError};
pub use numbers::{NumbersError, RequestNumbers};
pub use order_detail::{OrderDetail, read_order_detail};
pub use release::{LoginKind, usual_dialect};
pub use ticks::Ticks;
pub use transport::{
    Answered, CallFailure, Called, NUMBERS_FILE, Transport, TransportError, read_answer,
};

/// An environment of the broker (specification 4, P1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// The demo, whose orders reach no market.
    #[default]
    Demo,
    /// The market.
    Prod,
}

/// `[web_broker]` of `kumiki.toml` as types (specification 4, P1).
#[derive(Clone)]
pub struct WebBrokerConfig {
    /// `environment`
    pub environment: Environment,
    /// `base_url`: the address of the login's folder; `None` for the environment's own. Without a path it gets
    /// that of the dialect's release.
    pub base_url: Option<String>,
    /// Name of the dialect. If it ends like `v4r10`, that is the vendor's release: see [`LoginKind`].
    pub dialect: String,
    /// Whether requests to the production address are allowed: `WEBBROKER_ALLOW_PROD` is `1`.
    pub production_allowed: bool,
    /// `connect_timeout_ms`
    pub connect_timeout: Duration,
    /// `answer_timeout_ms`: from the connection to the last byte of an answer.
    pub answer_timeout: Duration,
    /// Folder of the file with the request numbers.
    pub state_dir: PathBuf,
    /// Folder of the masters' cache; it may be deleted.
    pub cache_dir: PathBuf,
}

/// Shows no address.
impl fmt::Debug for WebBrokerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebBrokerConfig")
            .field("environment", &self.environment)
            .field("dialect", &self.dialect)
            .field("production_allowed", &self.production_allowed)
            .field("connect_timeout", &self.connect_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .finish_non_exhaustive()
    }
}
