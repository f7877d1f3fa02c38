//! The symbols that are, or are to be, registered at the gateway (specification 1, "States and transitions",
//! "Limits"; specification 4, P51, P52). What the gateway has of others counts against the same limit.

use std::collections::{BTreeMap, BTreeSet};

use super::REGISTER_MAX;
use super::keys::TOKYO;

/// Whether a symbol has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registered {
    /// It got one.
    New,
    /// It had one.
    Known,
    /// There is none left.
    Full,
}

/// How the gateway's list differs from ours.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Ours that the gateway does not have.
    pub(crate) missing: Vec<String>,
    /// Ours once, and wanted no more.
    pub(crate) stale: Vec<String>,
}

/// One of our symbols.
#[derive(Debug, Default)]
struct Entry {
    clients: BTreeSet<u64>,
    used: u64,
}

/// The register set.
#[derive(Debug, Default)]
pub(crate) struct RegisterSet {
    entries: BTreeMap<String, Entry>,
    /// Uses so far: the entry with the lowest number was used longest ago.
    uses: u64,
    /// Symbols that this process has asked for and wants no more; the gateway may still have them.
    given_up: BTreeSet<String>,
    /// Entries of the gateway's last list that are nobody's here.
    foreign: usize,
}

/// Symbols that are remembered as given up: more than the gateway can have.
const GIVEN_UP_MAX: usize = 4 * REGISTER_MAX;

impl RegisterSet {
    /// A client wants a symbol.
    pub(crate) fn register(&mut self, client: u64, symbol: &str) -> Registered {
        let registered = self.touch(symbol);
        if let Some(entry) = self.entries.get_mut(symbol) {
            entry.clients.insert(client);
        }
        registered
    }

    /// A symbol is used: it gets a place, where it has none (specification 1, "Endpoints", rule 1).
    pub(crate) fn touch(&mut self, symbol: &str) -> Registered {
        let is_known = self.entries.contains_key(symbol);
        if !is_known && self.entries.len() + self.foreign >= REGISTER_MAX {
            return Registered::Full;
        }
        self.uses += 1;
        self.entries.entry(symbol.to_owned()).or_default().used = self.uses;
        self.given_up.remove(symbol);
        if is_known { Registered::Known } else { Registered::New }
    }

    /// Gives a place back that nobody is subscribed to.
    pub(crate) fn untouch(&mut self, symbol: &str) {
        if !self.is_subscribed(symbol) {
            self.remove(symbol);
        }
    }

    /// A client wants a symbol no more. Tells whether nobody does now.
    pub(crate) fn release(&mut self, client: u64, symbol: &str) -> bool {
        let Some(entry) = self.entries.get_mut(symbol) else { return false };
        let is_last = entry.clients.remove(&client) && entry.clients.is_empty();
        if is_last {
            self.remove(symbol);
        }
        is_last
    }

    /// A client wants nothing any more; the symbols that nobody wants now.
    pub(crate) fn client_left(&mut self, client: u64) -> Vec<String> {
        let all: Vec<String> = self.symbols().map(str::to_owned).collect();
        all.into_iter().filter(|symbol| self.release(client, symbol)).collect()
    }

    /// Takes the symbol out that was used longest ago.
    pub(crate) fn evict_lru(&mut self) -> Option<String> {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
        let symbol = oldest.map(|(symbol, _)| symbol.clone())?;
        self.remove(&symbol);
        Some(symbol)
    }

    fn remove(&mut self, symbol: &str) {
        if self.entries.remove(symbol).is_some() {
            if self.given_up.len() >= GIVEN_UP_MAX {
                self.given_up.pop_first();
            }
            self.given_up.insert(symbol.to_owned());
        }
    }

    /// Holds the gateway's whole list against ours. What others have stays there and counts.
    pub(crate) fn apply_list(&mut self, list: &[(String, i64)]) -> Differences {
        let tokyo = |symbol: &str| list.iter().any(|(of, at)| of == symbol && *at == TOKYO);
        let missing = self.symbols().filter(|symbol| !tokyo(symbol)).map(str::to_owned).collect();
        let is_stale = |symbol: &&String| tokyo(symbol);
        let stale: Vec<String> = self.given_up.iter().filter(is_stale).cloned().collect();
        // What the gateway does not have is given up no longer, but gone.
        self.given_up.retain(|symbol| tokyo(symbol));
        let is_ours = |symbol: &str, at: i64| {
            at == TOKYO && (self.entries.contains_key(symbol) || self.given_up.contains(symbol))
        };
        let foreign: BTreeSet<&(String, i64)> =
            list.iter().filter(|(symbol, at)| !is_ours(symbol, *at)).collect();
        self.foreign = foreign.len();
        Differences { missing, stale }
    }

    /// All symbols, in their order.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether a symbol has a place.
    pub(crate) fn contains(&self, symbol: &str) -> bool {
        self.entries.contains_key(symbol)
    }

    /// Whether a client wants a symbol.
    pub(crate) fn is_subscribed(&self, symbol: &str) -> bool {
        self.entries.get(symbol).is_some_and(|entry| !entry.clients.is_empty())
    }

    /// Entries of others in the gateway's last list.
    pub(crate) const fn foreign(&self) -> usize {
        self.foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(symbols: &[&str]) -> Vec<(String, i64)> {
        symbols.iter().map(|symbol| ((*symbol).to_owned(), TOKYO)).collect()
    }

    /// Specification 1, "Limits": the 51st is refused, and nothing is taken out for it.
    #[test]
    fn the_51st_symbol_is_refused_and_nothing_goes_for_it() {
        let mut set = RegisterSet::default();
        for number in 0..REGISTER_MAX {
            assert_eq!(set.register(1, &format!("{}", 1_000 + number)), Registered::New);
        }
        assert_eq!(set.register(1, "9999"), Registered::Full);
        assert_eq!(set.touch("9999"), Registered::Full);
        assert_eq!(set.register(2, "1000"), Registered::Known);
        assert_eq!(set.symbols().count(), REGISTER_MAX);
        // 1000 was used just now.
        assert_eq!(set.evict_lru().as_deref(), Some("1001"));
        assert_eq!(set.touch("1002"), Registered::Known);
        assert_eq!(set.evict_lru().as_deref(), Some("1003"));
        assert_eq!(set.register(1, "9999"), Registered::New);
    }

    /// P51: counted by clients.
    #[test]
    fn p51_a_symbol_stays_until_the_last_client_has_left() {
        let mut set = RegisterSet::default();
        set.register(1, "7203");
        set.register(1, "7203");
        set.register(2, "7203");
        set.register(2, "9984");
        assert!(!set.release(1, "7203") && !set.release(1, "7203"));
        assert_eq!(set.client_left(2), ["7203", "9984"]);
        assert!(!set.release(2, "7203"), "once only");
        set.touch("6758");
        assert!(set.contains("6758") && !set.is_subscribed("6758"));
        set.untouch("6758");
        assert!(!set.contains("6758"));
    }

    /// P52: what others have stays and counts; what is ours and gone is registered again.
    #[test]
    fn p52_the_gateways_list_is_held_against_ours() {
        let mut set = RegisterSet::default();
        set.register(1, "7203");
        set.register(1, "9984");
        let mut held = list(&["7203", "1301", "1301"]);
        held.push(("7203".to_owned(), 3));
        let found = set.apply_list(&held);
        assert_eq!((found.missing, found.stale), (vec!["9984".to_owned()], vec![]));
        assert_eq!(set.foreign(), 2, "1301 once, and 7203 of another market");
        set.release(1, "9984");
        let found = set.apply_list(&list(&["7203", "9984"]));
        assert_eq!((found.missing, found.stale), (vec![], vec!["9984".to_owned()]));
        assert_eq!(set.foreign(), 0, "what we gave up is not foreign");
        let found = set.apply_list(&list(&["7203"]));
        assert_eq!(found, Differences::default());
        assert_eq!(set.apply_list(&list(&["7203", "9984"])).stale, Vec::<String>::new());
        assert_eq!(set.foreign(), 1, "gone and there again: somebody else's");
        let full: Vec<String> = (1_000..1_049).map(|number| number.to_string()).collect();
        set.apply_list(&list(&full.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(set.register(1, "130A"), Registered::Full);
    }
}
