//! The symbols that the gateway is to push, and the clients that want them.
//!
//! Specification 1, "States and transitions"; specification 4, P51, P52. This is state only: the code above
//! sends the requests.

use std::collections::{BTreeMap, BTreeSet};

use crate::local_broker::keys::TOKYO;
use crate::local_broker::limits::{LISTED_MAX, REGISTER_BATCH_MAX, RELEASED_MAX};
use crate::local_broker::{REGISTER_MAX, STRATEGY};

/// The result of a client's wish for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// It is in the set now, and has to be registered.
    New,
    /// It was in the set.
    Known,
    /// There is no room for it; nothing was changed.
    Full,
}

/// The difference between the gateway's list and the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// In the set and not in the list: to be registered again, the most recently used first.
    pub missing: Vec<String>,
    /// Entries of the list that belong to other programs; they stay.
    pub foreign: usize,
}

/// Symbols that clients want, at most [`REGISTER_MAX`] together with those of other programs.
#[derive(Debug, Default)]
pub struct RegisterSet {
    entries: BTreeMap<String, Entry>,
    /// Entries of other programs in the last list, with the markets.
    foreign: BTreeSet<(String, i64)>,
    /// Symbols that we registered, that no client wants, and that the gateway may still have; and whether the
    /// last list lacked each. One list may be cut short. A symbol that was dropped too soon would count as
    /// another program's in the next list.
    released: BTreeMap<String, bool>,
    uses: u64,
}

/// How a client holds a symbol's place.
#[derive(Debug, Clone, Copy, Default)]
struct Hold {
    /// By a subscription, which gets frames.
    is_subscribed: bool,
    /// By a board that it has read.
    has_read: bool,
}

#[derive(Debug, Default)]
struct Entry {
    /// The clients that hold it.
    clients: BTreeMap<u64, Hold>,
    /// Time of its last use, as a rising number.
    used: u64,
    /// A request to register it has left.
    is_sent: bool,
    /// It was in the gateway's last list.
    is_listed: bool,
}

impl RegisterSet {
    /// Subscribes a client to a symbol.
    pub fn register(&mut self, client: u64, symbol: &str) -> Registration {
        self.hold(client, symbol, true)
    }

    /// A client reads the board of a symbol, which counts as a use (the specification's touch). It takes a
    /// place like a subscription until the client unsubscribes or leaves, but gets no frames.
    pub fn read_board(&mut self, client: u64, symbol: &str) -> Registration {
        self.hold(client, symbol, false)
    }

    /// The board that a client wanted to read has arrived: the client holds the place.
    pub fn board_was_read(&mut self, client: u64, symbol: &str) {
        let entry = self.entries.get_mut(symbol);
        if let Some(hold) = entry.and_then(|entry| entry.clients.get_mut(&client)) {
            hold.has_read = true;
        }
    }

    /// Whether a client holds a place by more than an unanswered read.
    #[must_use]
    pub fn holds(&self, client: u64, symbol: &str) -> bool {
        let hold = self.entries.get(symbol).and_then(|entry| entry.clients.get(&client));
        hold.is_some_and(|hold| hold.is_subscribed || hold.has_read)
    }

    /// A request leaves that registers these symbols, or reads their boards. From now on they are ours, unless
    /// another program had them; also if no client wants them.
    pub fn sent<'a>(&mut self, symbols: impl IntoIterator<Item = &'a str>) {
        for symbol in symbols {
            if let Some(entry) = self.entries.get_mut(symbol) {
                entry.is_sent = true;
            } else if !self.is_foreign(symbol) {
                self.let_go(symbol);
            }
        }
    }

    /// Adds symbols that an engine before this one registered and did not unregister.
    pub fn left_over(&mut self, symbols: impl IntoIterator<Item = String>) {
        for symbol in symbols {
            self.let_go(&symbol);
        }
    }

    /// The symbols to unregister: registered by us, and wanted by no client. Entries of other programs
    /// (specification 4, P52), and symbols that we never registered, are not among them.
    #[must_use]
    pub fn unwanted(&self) -> Vec<String> {
        self.released.keys().cloned().collect()
    }

    /// The clients that are subscribed to a symbol.
    pub fn subscribers(&self, symbol: &str) -> impl Iterator<Item = u64> {
        let clients = self.entries.get(symbol).into_iter().flat_map(|entry| &entry.clients);
        clients.filter(|(_, hold)| hold.is_subscribed).map(|(client, _)| *client)
    }

    /// Ends a client's failed subscription; a board that it has read holds its place.
    pub fn unsubscribed(&mut self, client: u64, symbol: &str) {
        let entry = self.entries.get_mut(symbol);
        if let Some(hold) = entry.and_then(|entry| entry.clients.get_mut(&client)) {
            hold.is_subscribed = false;
        }
    }

    /// Whether the gateway's last list had any symbol of the set.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        self.entries.values().any(|entry| entry.is_listed)
    }

    /// Releases a client's symbol. Returns whether no client wants it any more.
    pub fn release(&mut self, client: u64, symbol: &str) -> bool {
        let Some(entry) = self.entries.get_mut(symbol) else { return false };
        let was_last = entry.clients.remove(&client).is_some() && entry.clients.is_empty();
        if was_last {
            self.remove(symbol);
        }
        was_last
    }

    /// Removes a client. Returns the symbols that no client wants any more.
    pub fn client_left(&mut self, client: u64) -> Vec<String> {
        let mut symbols: Vec<String> = self.entries.keys().cloned().collect();
        symbols.retain(|symbol| self.release(client, symbol));
        symbols
    }

    /// Removes the least recently used symbol, whichever client wants it; only one of ours makes room. What a
    /// running strategy trades stays.
    pub fn evict_lru(&mut self) -> Option<String> {
        let ours = self.entries.iter().filter(|(symbol, entry)| {
            !self.is_foreign(symbol) && !entry.clients.contains_key(&STRATEGY)
        });
        let oldest = ours.min_by_key(|(_, entry)| entry.used)?.0.clone();
        self.remove(&oldest);
        Some(oldest)
    }

    /// Whether a running strategy holds a symbol of ours, so that none is evicted.
    #[must_use]
    pub fn is_held_by_strategy(&self) -> bool {
        let held = |entry: &Entry| entry.clients.contains_key(&STRATEGY);
        self.entries.iter().any(|(symbol, entry)| held(entry) && !self.is_foreign(symbol))
    }

    /// Compares the set with the gateway's list of symbols and markets; `taken_out` are the symbols that the
    /// request unregistered.
    pub fn apply_list(&mut self, list: &[(String, i64)], taken_out: &[String]) -> Reconciled {
        let listed =
            |symbol: &String| list.iter().any(|(one, market)| one == symbol && *market == TOKYO);
        self.released.retain(|symbol, was_missing| {
            let is_listed = listed(symbol);
            let is_gone = !is_listed && (*was_missing || taken_out.contains(symbol));
            *was_missing = !is_listed;
            !is_gone
        });
        let is_sent = |symbol: &String| self.entries.get(symbol).is_some_and(|entry| entry.is_sent);
        // An entry that another program had before stays its own, whichever client wants it now.
        let is_foreign = |(symbol, market): &&(String, i64)| {
            let is_ours = is_sent(symbol) && !self.is_foreign(symbol);
            *market != TOKYO || !is_ours && !self.released.contains_key(symbol)
        };
        let foreign = list.iter().filter(is_foreign).take(LISTED_MAX).cloned().collect();
        self.foreign = foreign;
        for (symbol, entry) in &mut self.entries {
            entry.is_listed = listed(symbol);
        }
        let missing = self.newest_first().into_iter().filter(|symbol| !listed(symbol)).collect();
        Reconciled { missing, foreign: self.foreign.len() }
    }

    /// All symbols in the order of registration after a lost connection: the most recently used first, in
    /// requests of at most [`REGISTER_BATCH_MAX`].
    #[must_use]
    pub fn batches(&self) -> Vec<Vec<String>> {
        self.newest_first().chunks(REGISTER_BATCH_MAX).map(<[String]>::to_vec).collect()
    }

    /// All symbols that we registered, wanted or not: to be unregistered at the end (specification 4, P50).
    #[must_use]
    pub fn ours(&self) -> Vec<String> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.is_sent);
        let entries = entries.map(|(symbol, _)| symbol).filter(|symbol| !self.is_foreign(symbol));
        let all: BTreeSet<&String> = entries.chain(self.released.keys()).collect();
        all.into_iter().cloned().collect()
    }

    /// Whether a symbol has a place.
    #[must_use]
    pub fn contains(&self, symbol: &str) -> bool {
        self.entries.contains_key(symbol)
    }

    /// Notes that the gateway refused to register it: its last list no longer counts for it.
    pub fn refused(&mut self, symbol: &str) {
        if let Some(entry) = self.entries.get_mut(symbol) {
            entry.is_listed = false;
        }
    }

    /// Whether a symbol of the set was in the gateway's last list.
    #[must_use]
    pub fn is_listed(&self, symbol: &str) -> bool {
        self.entries.get(symbol).is_some_and(|entry| entry.is_listed)
    }

    /// Whether a symbol has a place, is ours, or is another program's.
    #[must_use]
    pub fn knows(&self, symbol: &str) -> bool {
        self.contains(symbol) || self.released.contains_key(symbol) || self.is_foreign(symbol)
    }

    /// Whether a client is subscribed to the symbol: only then are its frames taken.
    #[must_use]
    pub fn is_subscribed(&self, symbol: &str) -> bool {
        let entry = self.entries.get(symbol);
        entry.is_some_and(|entry| entry.clients.values().any(|hold| hold.is_subscribed))
    }

    /// Whether any client is subscribed to any symbol.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.entries.keys().any(|symbol| self.is_subscribed(symbol))
    }

    /// Places taken, with those of other programs.
    #[must_use]
    pub fn taken(&self) -> usize {
        let shared = |(symbol, market): &&(String, i64)| {
            *market == TOKYO && self.entries.contains_key(symbol)
        };
        self.entries.len() + self.foreign.len() - self.foreign.iter().filter(shared).count()
    }

    fn hold(&mut self, client: u64, symbol: &str, subscribes: bool) -> Registration {
        let is_known = self.entries.contains_key(symbol);
        if !is_known && !self.is_foreign(symbol) && self.taken() >= REGISTER_MAX {
            return Registration::Full;
        }
        self.uses += 1;
        let entry = self.entries.entry(symbol.to_owned()).or_default();
        entry.used = self.uses;
        entry.clients.entry(client).or_default().is_subscribed |= subscribes;
        if is_known {
            return Registration::Known;
        }
        // The gateway may still have it: then it stays ours.
        entry.is_sent = self.released.remove(symbol).is_some();
        Registration::New
    }

    fn remove(&mut self, symbol: &str) {
        let removed = self.entries.remove(symbol);
        if removed.is_some_and(|entry| entry.is_sent) && !self.is_foreign(symbol) {
            self.let_go(symbol);
        }
    }

    fn let_go(&mut self, symbol: &str) {
        if self.released.len() >= RELEASED_MAX {
            self.released.pop_first();
        }
        self.released.insert(symbol.to_owned(), false);
    }

    /// Whether another program had it in the last list.
    #[must_use]
    pub fn is_foreign(&self, symbol: &str) -> bool {
        // There are few: the gateway has no more entries than it pushes.
        self.foreign.iter().any(|(one, market)| one == symbol && *market == TOKYO)
    }

    fn newest_first(&self) -> Vec<String> {
        let mut entries: Vec<(&String, u64)> =
            self.entries.iter().map(|(symbol, entry)| (symbol, entry.used)).collect();
        entries.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
        entries.into_iter().map(|(symbol, _)| symbol.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
