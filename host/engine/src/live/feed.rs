//! From what the local broker's venue tells to what waits for clients: who wants which symbol, and each
//! snapshot and trade on its way to them (specification 1, "Events"; specification 4, P51, P53, P56).

use std::collections::BTreeMap;
use std::sync::Arc;

use ipc::Event;
use venues::Recipient;
use venues::local_broker::MarketData;

use crate::hub::{ClientId, Hub};
use crate::limits::STREAM_HEADS_MAX;
use crate::outbox::TradesHead;
use crate::session::Shared;

/// What the trades of each symbol have in common, so that they are made once.
#[derive(Debug, Default)]
pub(super) struct Feed {
    heads: BTreeMap<String, Arc<TradesHead>>,
}

impl Feed {
    /// Tells the clients that want it what came of a frame. Nobody is waited for.
    pub(super) fn market(&mut self, shared: &Shared, market: &MarketData<'_>) {
        // Only this thread changes who wants what, but for clients that leave.
        if !shared.lock().hub.is_wanted(market.symbol) {
            return;
        }
        let depth = crate::hub::text(&Event::DepthSnapshot(market.depth.clone()));
        let trade = market.trade.map(|row| (self.head(market), row));
        let now = shared.started.elapsed();
        let mut core = shared.lock();
        core.hub.tell_depth(market.symbol, &depth);
        if let Some((head, row)) = trade {
            core.hub.tell_trade(&head, row, now);
        }
    }

    fn head(&mut self, market: &MarketData<'_>) -> Arc<TradesHead> {
        let (symbol, depth) = (market.symbol, market.depth);
        if let Some(head) = self.heads.get(symbol)
            && head.stream_session_id == depth.stream_session_id
        {
            return Arc::clone(head);
        }
        if self.heads.len() >= STREAM_HEADS_MAX {
            self.heads.clear();
        }
        let head = Arc::new(TradesHead {
            venue: depth.venue.to_string(),
            exchange: depth.exchange.to_string(),
            ticker: depth.ticker.to_string(),
            instrument_id: None,
            stream_session_id: depth.stream_session_id.to_string(),
        });
        self.heads.insert(symbol.to_owned(), Arc::clone(&head));
        head
    }
}

/// Tells an event, and keeps in mind who wants which symbol from now on.
pub(super) fn tell(hub: &mut Hub, to: Recipient, event: &Event<'_>) {
    match (to, event) {
        (Recipient::Client(number), Event::Subscribed(subscribed)) => {
            if let Some(tickers) = hub.tickers(ClientId::of(number)) {
                tickers.insert(subscribed.ticker.to_string());
            }
        }
        (Recipient::Client(number), Event::Unsubscribed(unsubscribed)) => {
            if let Some(tickers) = hub.tickers(ClientId::of(number)) {
                tickers.remove(&*unsubscribed.ticker);
            }
        }
        (_, Event::SubscriptionEvicted(evicted)) => hub.forget_ticker(&evicted.symbol),
        _ => {}
    }
    hub.tell_recipient(to, event);
}
