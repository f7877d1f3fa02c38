//! Clients that wait for the registration of a symbol, and the names of issues (specification 4, P51).

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::limits::{NAME_TIME, STREAMS_MAX};
use crate::RequestContext;

/// A command that waits for the registration of a symbol.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) context: RequestContext,
    /// The client was not subscribed before: if this fails, it does not have the symbol.
    pub(super) is_new: bool,
}

/// Commands that wait for a registration or a name, and the known names.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// By their symbols.
    waiting: BTreeMap<String, Vec<Waiting>>,
    /// Symbols of these that are registered and whose names are read, and since when.
    naming: BTreeMap<String, Duration>,
    /// No name is read before then: the gateway did not answer, or had other things to do.
    names_after: Duration,
    /// Names of issues, as boards have them.
    names: BTreeMap<String, String>,
}

impl Subscribers {
    /// The number of commands that wait for a symbol.
    pub(super) fn count(&self, symbol: &str) -> usize {
        self.waiting.get(symbol).map_or(0, Vec::len)
    }

    /// Whether a command waits for a symbol.
    pub(super) fn wait_for(&self, symbol: &str) -> bool {
        self.waiting.contains_key(symbol)
    }

    /// Adds a waiting command.
    pub(super) fn add(&mut self, symbol: String, waiting: Waiting) {
        self.waiting.entry(symbol).or_default().push(waiting);
    }

    /// Takes all commands that wait for a symbol.
    pub(super) fn take(&mut self, symbol: &str) -> Vec<Waiting> {
        self.waiting.remove(symbol).unwrap_or_default()
    }

    /// Takes a client's commands that wait for a symbol.
    pub(super) fn take_of(&mut self, symbol: &str, client: u64) -> Vec<Waiting> {
        let Some(all) = self.waiting.get_mut(symbol) else { return Vec::new() };
        all.extract_if(.., |waiting| waiting.context.client == client).collect()
    }

    /// Takes all commands; no name is read any more.
    pub(super) fn take_all(&mut self) -> BTreeMap<String, Vec<Waiting>> {
        self.naming.clear();
        std::mem::take(&mut self.waiting)
    }

    /// Removes a client. Returns the symbols whose names no client waits for.
    pub(super) fn client_left(&mut self, client: u64) -> Vec<String> {
        for waiting in self.waiting.values_mut() {
            waiting.retain(|waiting| waiting.context.client != client);
        }
        self.naming.keys().filter(|symbol| self.count(symbol) == 0).cloned().collect()
    }

    /// The client that has waited longest for a symbol whose name must be read.
    pub(super) fn first_without_name(&self, symbol: &str, now: Duration) -> Option<u64> {
        let is_wanted = self.names_after <= now && !self.names.contains_key(symbol);
        let first = self.waiting.get(symbol)?.first()?;
        is_wanted.then_some(first.context.client)
    }

    /// Notes that a name is read. Returns whether it was not before.
    pub(super) fn begin_naming(&mut self, symbol: &str, now: Duration) -> bool {
        self.naming.insert(symbol.to_owned(), now).is_none()
    }

    /// Whether a name is being read.
    pub(super) fn is_naming(&self, symbol: &str) -> bool {
        self.naming.contains_key(symbol)
    }

    /// Notes that a name is no longer read. Returns whether it was.
    pub(super) fn end_naming(&mut self, symbol: &str) -> bool {
        self.naming.remove(symbol).is_some()
    }

    /// Holds all reads of names until then. Returns the symbols whose names are being read.
    pub(super) fn hold_names(&mut self, until: Duration) -> Vec<String> {
        self.names_after = until;
        self.naming.keys().cloned().collect()
    }

    /// Symbols whose names have been read for too long.
    pub(super) fn late_names(&self, now: Duration) -> Vec<String> {
        let late = self.naming.iter().filter(|(_, since)| now.saturating_sub(**since) >= NAME_TIME);
        late.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// The name of an issue, if it is known.
    pub(super) fn name(&self, symbol: &str) -> Option<&String> {
        self.names.get(symbol)
    }

    /// Makes room for the name of an issue: if there are too many, names that are not wanted are discarded.
    pub(super) fn make_room(&mut self, symbol: &str, is_wanted: impl Fn(&str) -> bool) {
        if self.names.len() >= STREAMS_MAX && !self.names.contains_key(symbol) {
            self.names.retain(|symbol, _| is_wanted(symbol));
        }
    }

    /// Stores a name.
    pub(super) fn set_name(&mut self, symbol: &str, name: String) {
        self.names.insert(symbol.to_owned(), name);
    }
}
