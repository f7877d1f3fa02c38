//! Issues, and the list of those that are registered.

use domain::{Price, Quantity, TickTable};

use super::board::Board;
use super::config::{Dialect, Listed};
use super::gateway::{Gateway, business_day_before, seed_of};
use super::limits::{ISSUES_MAX, REGISTERED_MAX};
use super::refusal::Refusal;
use crate::web_broker::Issue;

/// The gateway's codes of exchanges on which shares can be registered, Tokyo first.
pub(crate) const EXCHANGES: [i64; 4] = [1, 3, 5, 6];

/// A registered symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) listed: Listed,
    /// Whether its board is pushed.
    pub(crate) pushes: bool,
}

impl Gateway {
    pub(crate) fn add_issue(&mut self, issue: Issue) -> Result<usize, String> {
        if !is_code(&issue.symbol) {
            return Err("a symbol is 4 to 9 of the characters 0-9 and A-Z".to_owned());
        }
        if self.index.contains_key(&issue.symbol) {
            return Err("the list names it twice".to_owned());
        }
        if self.boards.len() == ISSUES_MAX {
            return Err(format!("more than ISSUES_MAX issues ({ISSUES_MAX})"));
        }
        if issue.lot.is_zero() || issue.base <= Price::default() {
            return Err("a lot has at least one share, a price is above 0".to_owned());
        }
        let place = self.boards.len();
        self.index.insert(issue.symbol.clone(), place);
        let previous = business_day_before(&self.calendar, self.day);
        let seed = seed_of(&self.config.source);
        self.boards.push(Board::new(issue, seed, previous, self.market_time));
        Ok(place)
    }

    /// The place of an issue's board; any well-formed code becomes an issue where that is configured.
    pub(crate) fn issue(&mut self, symbol: &str) -> Option<usize> {
        if let Some(place) = self.index.get(symbol) {
            return Some(*place);
        }
        if !self.config.any_symbol || !is_code(symbol) {
            return None;
        }
        let sum: i64 = symbol.bytes().map(|byte| i64::from(byte) * 37).sum();
        let base = Price::from_yen(300 + sum % 4_000);
        self.add_issue(Issue {
            symbol: symbol.to_owned(),
            name: format!("銘柄{symbol}"),
            lot: Quantity::new(100),
            ticks: TickTable::Normal,
            base: TickTable::Normal.floor(base),
        })
        .ok()
    }

    /// Registers symbols. Too many: none of them. Unknown ones: the others are registered.
    pub(crate) fn register(&mut self, wanted: &[Listed], pushes: bool) -> Result<(), Refusal> {
        let mut known = Vec::new();
        for listed in wanted {
            if EXCHANGES.contains(&listed.exchange) && self.issue(&listed.symbol).is_some() {
                known.push(listed);
            }
        }
        let mut list = self.registered.clone();
        for listed in &known {
            match list.iter_mut().find(|entry| entry.listed == **listed) {
                Some(entry) => entry.pushes |= pushes,
                None => list.push(Entry { listed: (*listed).clone(), pushes }),
            }
        }
        if list.len() > REGISTERED_MAX {
            return Err(Refusal::RegisterFull);
        }
        self.registered = list;
        match known.len() {
            count if count == wanted.len() => Ok(()),
            0 => Err(Refusal::NotRegistered),
            _ => Err(Refusal::PartlyRegistered),
        }
    }

    /// Takes symbols off the list.
    pub(crate) fn unregister(&mut self, unwanted: &[Listed]) -> Result<(), Refusal> {
        let before = self.registered.len();
        self.registered.retain(|entry| !unwanted.contains(&entry.listed));
        // The specification knows no such refusal.
        if self.dialect == Dialect::Spec {
            return Ok(());
        }
        match before - self.registered.len() {
            count if count >= unwanted.len() => Ok(()),
            0 => Err(Refusal::NotUnregistered),
            _ => Err(Refusal::PartlyUnregistered),
        }
    }
}

/// Whether a text is the code of an issue.
fn is_code(text: &str) -> bool {
    (4..=9).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}
