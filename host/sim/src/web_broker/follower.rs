//! A broker without a market of its own: it follows that of a gateway.

use std::sync::Arc;

use domain::{Price, TsNanos};

use super::days::NewDay;
use super::server::Shared;

/// The broker as the gateway drives it, in the gateway's own thread and order. Whoever holds the lock of the gateway
/// may take that of the broker, and never the other way round.
#[derive(Debug, Clone)]
pub(crate) struct Follower(Arc<Shared>);

impl Follower {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        shared.broker().follows = true;
        Self(Arc::clone(shared))
    }

    /// A trade of the market, which fills orders.
    pub(crate) fn trade(&self, issue: usize, time: TsNanos, price: Price, shares: u64) {
        self.0.broker().trade(issue, time, price, shares);
    }

    /// The day's trading is over.
    pub(crate) fn close_day(&self) {
        self.0.broker().close_day();
    }

    /// Another day begins.
    pub(crate) fn begin_day(&self, new: &NewDay) {
        let mut broker = self.0.broker();
        broker.end_day();
        broker.begin_day(new);
    }
}
