//! The symbols that the gateway shall push, and who wants them (specification 1, "States and transitions";
//! specification 4, P51, P52). Only what is meant stands here: requests are sent above.

use std::collections::{BTreeMap, BTreeSet};

use crate::local_broker::REGISTER_MAX;
use crate::local_broker::keys::TOKYO;
use crate::local_broker::limits::{LISTED_MAX, REGISTER_BATCH_MAX, RELEASED_MAX};

/// What became of a wish for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// It is in the set now, and has to be registered.
    New,
    /// It was in the set.
    Known,
    /// There is no room for it; nothing was changed.
    Full,
}

/// What the gateway's list says beside the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// In the set and not in the list: to be registered again, the one used last first.
    pub missing: Vec<String>,
    /// Entries of the list that are somebody else's; they stay.
    pub foreign: usize,
}

/// Symbols that are wanted, at most [`REGISTER_MAX`] together with those of others.
#[derive(Debug, Default)]
pub struct RegisterSet {
    entries: BTreeMap<String, Entry>,
    /// What others had registered by the last list, with the markets.
    foreign: BTreeSet<(String, i64)>,
    /// Registered by us, wanted by no client, and in the gateway's list as far as is known; and whether the last
    /// list lacked it. One list may be cut short, and what it lacks would count as somebody else's in the next.
    released: BTreeMap<String, bool>,
    uses: u64,
}

/// What a client has a symbol's place by.
#[derive(Debug, Clone, Copy, Default)]
struct Hold {
    /// It is subscribed; frames are for it.
    is_subscribed: bool,
    /// It has read the board.
    has_read: bool,
}

#[derive(Debug, Default)]
struct Entry {
    /// Who has it.
    clients: BTreeMap<u64, Hold>,
    /// A higher number was used later.
    used: u64,
    /// A request to register it has left.
    is_sent: bool,
    /// It was in the gateway's last list.
    is_listed: bool,
}

impl RegisterSet {
    /// A client subscribes to a symbol.
    pub fn register(&mut self, client: u64, symbol: &str) -> Registration {
        self.hold(client, symbol, true)
    }

    /// A client reads the board of a symbol, which counts as a use of it (the specification's touch) and takes a
    /// place like a subscription until the client gives the symbol up or leaves; frames are not for it.
    pub fn read_board(&mut self, client: u64, symbol: &str) -> Registration {
        self.hold(client, symbol, false)
    }

    /// The board that a client wanted to read has come: it keeps the place.
    pub fn board_was_read(&mut self, client: u64, symbol: &str) {
        let entry = self.entries.get_mut(symbol);
        if let Some(hold) = entry.and_then(|entry| entry.clients.get_mut(&client)) {
            hold.has_read = true;
        }
    }

    /// Whether a client has a place by something else than a reading that was not answered yet.
    #[must_use]
    pub fn keeps(&self, client: u64, symbol: &str) -> bool {
        let hold = self.entries.get(symbol).and_then(|entry| entry.clients.get(&client));
        hold.is_some_and(|hold| hold.is_subscribed || hold.has_read)
    }

    /// A request leaves that registers these, or reads their board: from now on they are ours, where no other program
    /// had them, and also where no client wants them any more.
    pub fn sent<'a>(&mut self, symbols: impl IntoIterator<Item = &'a str>) {
        for symbol in symbols {
            if let Some(entry) = self.entries.get_mut(symbol) {
                entry.is_sent = true;
            } else if !self.is_foreign(symbol) {
                self.let_go(symbol);
            }
        }
    }

    /// Symbols that an engine of ours before this one has registered, and did not take out.
    pub fn left_over(&mut self, symbols: impl IntoIterator<Item = String>) {
        for symbol in symbols {
            self.let_go(&symbol);
        }
    }

    /// Registered by us and wanted by no client, as far as is known: to be unregistered. Not among them is what
    /// another program had registered (specification 4, P52), or what we never registered.
    #[must_use]
    pub fn unwanted(&self) -> Vec<String> {
        self.released.keys().cloned().collect()
    }

    /// Who is subscribed to a symbol.
    pub fn subscribers(&self, symbol: &str) -> impl Iterator<Item = u64> {
        let clients = self.entries.get(symbol).into_iter().flat_map(|entry| &entry.clients);
        clients.filter(|(_, hold)| hold.is_subscribed).map(|(client, _)| *client)
    }

    /// Nothing comes of a client's subscription; a board that it has read keeps its place.
    pub fn unsubscribed(&mut self, client: u64, symbol: &str) {
        let entry = self.entries.get_mut(symbol);
        if let Some(hold) = entry.and_then(|entry| entry.clients.get_mut(&client)) {
            hold.is_subscribed = false;
        }
    }

    /// Whether the gateway's last list had anything that has a place here.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        self.entries.values().any(|entry| entry.is_listed)
    }

    /// A client releases a symbol. Says whether no client wants it any more.
    pub fn release(&mut self, client: u64, symbol: &str) -> bool {
        let Some(entry) = self.entries.get_mut(symbol) else { return false };
        let was_last = entry.clients.remove(&client).is_some() && entry.clients.is_empty();
        if was_last {
            self.remove(symbol);
        }
        was_last
    }

    /// A client is gone. Gives the symbols that no client wants any more.
    pub fn client_left(&mut self, client: u64) -> Vec<String> {
        let mut symbols: Vec<String> = self.entries.keys().cloned().collect();
        symbols.retain(|symbol| self.release(client, symbol));
        symbols
    }

    /// Removes the symbol that was used longest ago, whichever client wants it; only one of ours makes room.
    pub fn evict_lru(&mut self) -> Option<String> {
        let ours = self.entries.iter().filter(|(symbol, _)| !self.is_foreign(symbol));
        let oldest = ours.min_by_key(|(_, entry)| entry.used)?.0.clone();
        self.remove(&oldest);
        Some(oldest)
    }

    /// Compares with the gateway's own list, as symbols and markets; `taken_out` are the symbols that the
    /// request was to take out.
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
        // What another program had before stays its own, whichever client wants it now.
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

    /// All symbols as they are registered after a connection was lost: the one used last first, in
    /// requests of at most [`REGISTER_BATCH_MAX`].
    #[must_use]
    pub fn batches(&self) -> Vec<Vec<String>> {
        self.newest_first().chunks(REGISTER_BATCH_MAX).map(<[String]>::to_vec).collect()
    }

    /// What we have registered, wanted or not: to be unregistered at the end (specification 4, P50).
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

    /// The gateway has refused to register it: whatever its last list said counts no more.
    pub fn refused(&mut self, symbol: &str) {
        if let Some(entry) = self.entries.get_mut(symbol) {
            entry.is_listed = false;
        }
    }

    /// Whether a symbol that has a place was in the gateway's last list.
    #[must_use]
    pub fn is_listed(&self, symbol: &str) -> bool {
        self.entries.get(symbol).is_some_and(|entry| entry.is_listed)
    }

    /// Whether a symbol has a place, is known to be ours, or is somebody else's.
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

    /// Places taken, those of others included.
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

    /// Whether somebody else had it registered by the last list.
    #[must_use]
    pub fn is_foreign(&self, symbol: &str) -> bool {
        // Few: the gateway keeps no more than it pushes.
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
