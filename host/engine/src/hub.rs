//! The clients, and the events that go to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::OrderFilter;
use ipc::{Event, TradeRow};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use venues::Recipient;

use crate::console::Page;
use crate::limits::{ERRORS_MAX, ERRORS_WITHIN};
use crate::outbox::{Closing, Newest, Outbox, TradesHead};

/// What a board of ten levels a side takes as text, about.
const DEPTH_BYTES: usize = 1_200;

/// A client, counted since the engine's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(u64);

impl ClientId {
    /// The client of a number.
    pub(crate) const fn of(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// An event as it is sent.
pub(crate) fn text(event: &Event<'_>) -> Utf8Bytes {
    // Every event is an object with texts as keys, which is all that can fail.
    serde_json::to_string(event).unwrap_or_default().into()
}

/// A board as it is sent, in memory that a whole one fills.
pub(crate) fn depth_text(depth: &Event<'_>) -> Utf8Bytes {
    let mut text = Vec::with_capacity(DEPTH_BYTES);
    // As above.
    let _ = serde_json::to_writer(&mut text, depth);
    Utf8Bytes::try_from(text).unwrap_or_default()
}

#[derive(Debug)]
struct Client {
    outbox: Arc<Outbox>,
    /// Tickers that it wants, like `7203`.
    tickers: BTreeSet<String>,
    /// When its last refusals were.
    errors: VecDeque<Duration>,
    /// Its order lists of which messages are left.
    lists: VecDeque<OrderList>,
    /// It is a page in the browser.
    page: Option<Page>,
}

/// A list of orders of which messages are left.
#[derive(Debug, Clone)]
pub(crate) struct OrderList {
    pub(crate) request_id: String,
    /// The run whose orders it shows; of another run it shows none.
    pub(crate) run_id: Option<String>,
    pub(crate) filter: OrderFilter,
    /// Orders that were looked at, and those that were sent.
    pub(crate) seen: usize,
    pub(crate) sent: u64,
}

/// All clients.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    clients: BTreeMap<ClientId, Client>,
    joined: u64,
    /// Events that went to all clients.
    sequence: u64,
}

impl Hub {
    pub(crate) fn join(&mut self, outbox: Arc<Outbox>, page: Option<Page>) -> ClientId {
        self.joined += 1;
        let id = ClientId(self.joined);
        let (tickers, errors, lists) = (BTreeSet::new(), VecDeque::new(), VecDeque::new());
        self.clients.insert(id, Client { outbox, tickers, errors, lists, page });
        id
    }

    /// Removes a client. Returns whether it was here.
    pub(crate) fn leave(&mut self, id: ClientId) -> bool {
        self.clients.remove(&id).is_some()
    }

    /// The page that a client is; none for another program.
    pub(crate) fn page(&self, id: ClientId) -> Option<&Page> {
        self.clients.get(&id)?.page.as_ref()
    }

    /// Ends the connections of a page's session.
    pub(crate) fn close_session(&self, session_id: &str, closing: &dyn Fn() -> Closing) {
        let is_its = |client: &&Client| {
            client.page.as_ref().is_some_and(|page| page.session_id == session_id)
        };
        self.clients.values().filter(is_its).for_each(|client| client.outbox.close(closing()));
    }

    pub(crate) fn count(&self) -> usize {
        self.clients.len()
    }

    /// Clients that are pages, or those that are none.
    pub(crate) fn count_of(&self, pages: bool) -> usize {
        self.clients.values().filter(|client| client.page.is_some() == pages).count()
    }

    /// Clients that have joined so far.
    pub(crate) const fn joined(&self) -> u64 {
        self.joined
    }

    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Sends an event to every client.
    pub(crate) fn broadcast(&mut self, event: &Event<'_>) {
        self.broadcast_newest(event, None);
    }

    /// Sends every client a text.
    pub(crate) fn broadcast_text(&mut self, text: &Utf8Bytes) {
        self.sequence += 1;
        for client in self.clients.values() {
            client.outbox.push(text.clone(), None);
        }
    }

    /// Sends an event to every client. It takes the place of one of its kind that still waits.
    pub(crate) fn broadcast_newest(&mut self, event: &Event<'_>, newest: Option<Newest>) {
        self.sequence += 1;
        if self.clients.is_empty() {
            return;
        }
        let text = text(event);
        for client in self.clients.values() {
            client.outbox.push(text.clone(), newest);
        }
    }

    /// Sends an event to one client, if it is still here.
    pub(crate) fn send(&self, id: ClientId, event: &Event<'_>) {
        if let Some(client) = self.clients.get(&id) {
            client.outbox.push(text(event), None);
        }
    }

    /// Sends an event to the recipient that a venue names.
    pub(crate) fn send_to(&mut self, to: Recipient, event: &Event<'_>) {
        match to {
            Recipient::All => self.broadcast(event),
            Recipient::Client(number) => self.send(ClientId::of(number), event),
        }
    }

    /// Sends one client a text.
    pub(crate) fn send_text(&self, id: ClientId, text: Utf8Bytes) {
        if let Some(client) = self.clients.get(&id) {
            client.outbox.push(text, None);
        }
    }

    /// Sends one client that its command is wrong, and counts that.
    pub(crate) fn refuse(&mut self, id: ClientId, event: &Event<'_>, now: Duration) {
        self.send(id, event);
        self.count_error(id, now);
    }

    /// Counts an error of a client; after too many of these it has to go.
    pub(crate) fn count_error(&mut self, id: ClientId, now: Duration) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.errors.push_back(now);
        while client.errors.front().is_some_and(|first| now.saturating_sub(*first) > ERRORS_WITHIN)
        {
            client.errors.pop_front();
        }
        if client.errors.len() >= ERRORS_MAX {
            let reason = "too_many_errors".to_owned();
            client.outbox.close(Closing { code: 1008, reason, at_once: false });
        }
    }

    /// The lists of a client of which messages are left.
    pub(crate) fn lists(&mut self, id: ClientId) -> Option<&mut VecDeque<OrderList>> {
        self.clients.get_mut(&id).map(|client| &mut client.lists)
    }

    /// Signals a client's writer whether messages of lists are left.
    pub(crate) fn signal_lists(&self, id: ClientId) {
        if let Some(client) = self.clients.get(&id) {
            client.outbox.set_list(!client.lists.is_empty());
        }
    }

    /// Whether the next message of a client's lists is to be made.
    pub(crate) fn wants_list(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.outbox.wants_list())
    }

    /// The tickers that a client wants.
    pub(crate) fn tickers(&mut self, id: ClientId) -> Option<&mut BTreeSet<String>> {
        self.clients.get_mut(&id).map(|client| &mut client.tickers)
    }

    /// The client for which the most waits, where that is much, and how many bytes it was written so far.
    pub(crate) fn most_behind(&self) -> Option<(ClientId, u64)> {
        let clients = self.clients.iter();
        let behind = clients.filter_map(|(id, client)| Some((*id, client.outbox.behind()?)));
        let (id, (_, written)) = behind.max_by_key(|(_, (parts, _))| *parts)?;
        Some((id, written))
    }

    /// Runs no longer wait for this client, until it has read all that waits.
    pub(crate) fn end_backpressure(&self, id: ClientId) {
        if let Some(client) = self.clients.get(&id) {
            client.outbox.end_backpressure();
        }
    }

    /// Whether any client wants a ticker.
    pub(crate) fn is_wanted(&self, ticker: &str) -> bool {
        self.clients.values().any(|client| client.tickers.contains(ticker))
    }

    /// Sends a trade to the subscribers of its ticker.
    pub(crate) fn publish_trade(&mut self, head: &Arc<TradesHead>, row: &TradeRow, now: Duration) {
        self.sequence += 1;
        for client in self.clients.values() {
            if client.tickers.contains(&head.ticker) {
                client.outbox.push_trade(head, row, now);
            }
        }
    }

    /// Queues a board, as it is sent, and then its trade for the subscribers of the ticker. For a client that is
    /// behind only the newest board waits. [`Self::wake_writers`] wakes their writers.
    pub(crate) fn publish_market(
        &mut self,
        ticker: &str,
        depth: &Utf8Bytes,
        trade: Option<(&Arc<TradesHead>, &TradeRow)>,
        now: Duration,
    ) {
        self.sequence += 1 + u64::from(trade.is_some());
        let newest = Newest::depth(ticker);
        for client in self.clients.values().filter(|client| client.tickers.contains(ticker)) {
            client.outbox.put_market(depth.clone(), newest, trade, now);
        }
    }

    /// Wakes the writers for the market data of [`Self::publish_market`].
    pub(crate) fn wake_writers(&self) {
        self.clients.values().for_each(|client| client.outbox.wake_for_market());
    }

    /// Ends all subscriptions of a ticker.
    pub(crate) fn forget_ticker(&mut self, ticker: &str) {
        for client in self.clients.values_mut() {
            client.tickers.remove(ticker);
        }
    }

    /// Sends an event of a ticker to its subscribers.
    pub(crate) fn publish(&mut self, ticker: &str, event: &Event<'_>, newest: Option<Newest>) {
        self.sequence += 1;
        let mut written = None;
        for client in self.clients.values().filter(|client| client.tickers.contains(ticker)) {
            let text = written.get_or_insert_with(|| text(event));
            client.outbox.push(text.clone(), newest);
        }
    }

    /// Ends all connections, after what waits for them.
    pub(crate) fn close_all(&self, code: u16, reason: &str) {
        for client in self.clients.values() {
            client.outbox.close(Closing { code, reason: reason.to_owned(), at_once: false });
        }
    }
}
