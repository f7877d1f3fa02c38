//! Clients that wait for the registration of a symbol, and the names of issues that they get with it
//! (specification 4, P51).

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::limits::{NAME_TIME, STREAMS_MAX};
use crate::RequestContext;

/// A command that waits for the registration of a symbol.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) context: RequestContext,
    /// The client was not subscribed before: where nothing comes of it, it has the symbol not.
    pub(super) is_new: bool,
}

/// Commands that wait for a registration or for a name, and the names that are known.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// By their symbols.
    waiting: BTreeMap<String, Vec<Waiting>>,
    /// Of these, the symbols that are registered and whose names are being read, and since when.
    naming: BTreeMap<String, Duration>,
    /// Before then no name is read: the gateway did not answer to one, or had other things to do.
    names_after: Duration,
    /// Names of issues, as boards have them.
    names: BTreeMap<String, String>,
}

impl Subscribers {
    /// Commands that wait for a symbol.
    pub(super) fn count(&self, symbol: &str) -> usize {
        self.waiting.get(symbol).map_or(0, Vec::len)
    }

    /// Whether a symbol's registration is waited for.
    pub(super) fn wait_for(&self, symbol: &str) -> bool {
        self.waiting.contains_key(symbol)
    }

    /// One more waits.
    pub(super) fn add(&mut self, symbol: String, waiting: Waiting) {
        self.waiting.entry(symbol).or_default().push(waiting);
    }

    /// Takes all that wait for a symbol.
    pub(super) fn take(&mut self, symbol: &str) -> Vec<Waiting> {
        self.waiting.remove(symbol).unwrap_or_default()
    }

    /// Takes those of a client.
    pub(super) fn take_of(&mut self, symbol: &str, client: u64) -> Vec<Waiting> {
        let Some(all) = self.waiting.get_mut(symbol) else { return Vec::new() };
        all.extract_if(.., |waiting| waiting.context.client == client).collect()
    }

    /// Takes all of all symbols; no name is read any more.
    pub(super) fn take_all(&mut self) -> BTreeMap<String, Vec<Waiting>> {
        self.naming.clear();
        std::mem::take(&mut self.waiting)
    }

    /// A client is gone. Gives the symbols whose names are read for no client.
    pub(super) fn client_left(&mut self, client: u64) -> Vec<String> {
        for waiting in self.waiting.values_mut() {
            waiting.retain(|waiting| waiting.context.client != client);
        }
        self.naming.keys().filter(|symbol| self.count(symbol) == 0).cloned().collect()
    }

    /// The client that waits for a symbol the longest, where its name is to be read first.
    pub(super) fn first_without_name(&self, symbol: &str, now: Duration) -> Option<u64> {
        let is_wanted = self.names_after <= now && !self.names.contains_key(symbol);
        let first = self.waiting.get(symbol)?.first()?;
        is_wanted.then_some(first.context.client)
    }

    /// A name is to be read. Says whether it was not before.
    pub(super) fn begin_naming(&mut self, symbol: &str, now: Duration) -> bool {
        self.naming.insert(symbol.to_owned(), now).is_none()
    }

    /// Whether a name is being read.
    pub(super) fn is_naming(&self, symbol: &str) -> bool {
        self.naming.contains_key(symbol)
    }

    /// A name is read no more. Says whether it was.
    pub(super) fn end_naming(&mut self, symbol: &str) -> bool {
        self.naming.remove(symbol).is_some()
    }

    /// No name is read before then. Gives the symbols whose names are being read.
    pub(super) fn hold_names(&mut self, until: Duration) -> Vec<String> {
        self.names_after = until;
        self.naming.keys().cloned().collect()
    }

    /// Symbols whose names are being read for too long.
    pub(super) fn late_names(&self, now: Duration) -> Vec<String> {
        let late = self.naming.iter().filter(|(_, since)| now.saturating_sub(**since) >= NAME_TIME);
        late.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// The name of an issue, where it is known.
    pub(super) fn name(&self, symbol: &str) -> Option<&String> {
        self.names.get(symbol)
    }

    /// Makes room for the name of an issue: of too many the names of those go that are not wanted.
    pub(super) fn make_room(&mut self, symbol: &str, is_wanted: impl Fn(&str) -> bool) {
        if self.names.len() >= STREAMS_MAX && !self.names.contains_key(symbol) {
            self.names.retain(|symbol, _| is_wanted(symbol));
        }
    }

    /// A name becomes known.
    pub(super) fn set_name(&mut self, symbol: &str, name: String) {
        self.names.insert(symbol.to_owned(), name);
    }
}
