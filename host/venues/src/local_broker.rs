//! The local gateway: the broker's program on this machine, with requests by HTTP and pushed boards.
//!
//! Boards come over a WebSocket (specification 1; specification 4, P43 to P60). The gateway is only read: no
//! code here reaches an endpoint for orders.

pub mod account;
pub mod config;
mod drops;
pub mod event;
pub mod feed;
pub mod gateway;
mod hidden;
pub mod keys;
mod lanes;
pub mod lifecycle;
pub mod limits;
mod number;
mod push;
mod quote;
mod register_set;
pub mod registration_file;
pub mod request;
mod rest;
pub mod service;

pub use config::{ConfigError, ForcedLogout, KeepAlive, LocalBrokerConfig};
pub use drops::{DropReason, Dropped, accepts};
pub use event::{Command, ErrorCode, VenueEvent};
pub use feed::Feed;
pub use register_set::{Reconciled, RegisterSet, Registration};
pub use service::{AskPassword, NoPassword, Output, Service, ServiceError, Setup};

/// The venue's name on the wire (specification 1, "Identifiers").
pub const VENUE: &str = "local_broker";
/// The strategy's number among clients: no client has it.
pub const STRATEGY: u64 = u64::MAX;
/// Symbols that the gateway pushes at once (specification 1, "Limits").
pub const REGISTER_MAX: usize = 50;
