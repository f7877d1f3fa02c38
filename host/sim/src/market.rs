//! One market for both simulators: a gateway that shows its boards, and a broker that takes orders for it.
//!
//! The gateway has the trades: of files, of a walk of prices, or posted at its `/control`. Each is matched at the
//! broker's exchange first, and shown on the board after it, under one lock. So whoever sees a trade and sends an
//! order does not meet that trade, and equal orders at equal places of the market have equal fills. Days are the
//! gateway's too.
//!
//! Both servers have their own `/control`. At the broker's, `trade`, `market` and `next-day` are refused: they are
//! `trade`, `market` and `day` at the gateway's.

use thiserror::Error;

use crate::local_broker::{self, Prepared};
use crate::web_broker;

/// What a market is started with.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The gateway, and the market: its issues, where trades come from and which day is the first. Only these issues
    /// are known.
    pub gateway: local_broker::Config,
    /// The broker. Its issues, trade files and first day are those of the gateway, whatever stands here.
    pub broker: web_broker::Config,
}

/// Why a market does not start.
#[derive(Debug, Error)]
pub enum MarketError {
    /// Its gateway does not.
    #[error(transparent)]
    Gateway(#[from] local_broker::ServerError),
    /// Its broker does not.
    #[error(transparent)]
    Broker(#[from] web_broker::ServerError),
}

/// A running market. It ends when this is dropped, the gateway first: it drives the broker.
#[derive(Debug)]
pub struct Market {
    /// The gateway.
    pub gateway: local_broker::Server,
    /// The broker.
    pub broker: web_broker::Server,
}

impl Market {
    /// Starts both; they listen when this returns.
    ///
    /// # Errors
    /// [`MarketError`]: a configuration, the trade files or a port.
    pub fn start(config: Config) -> Result<Self, MarketError> {
        let gateway = local_broker::Config { any_symbol: false, ..config.gateway };
        let prepared = Prepared::new(gateway)?;
        let broker = web_broker::Config {
            issues: prepared.config.issues.clone(),
            data: None,
            business_day: Some(prepared.first_day),
            ..config.broker
        };
        let (broker, follower) = web_broker::Server::start_following(broker, prepared.sessions())?;
        let gateway = local_broker::Server::start_prepared(prepared, Some(follower))?;
        Ok(Self { gateway, broker })
    }
}
