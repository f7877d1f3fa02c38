//! Our symbols at the gateway: registered, to be registered, to be unregistered, or perhaps registered late.
//!
//! Specification 4, P50, P52.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::keys::TOKYO;
use super::super::lanes::Call;
use super::super::limits::{
    LATE_MAX, LATE_TIME, REGISTER_BATCH_MAX, REGISTRATION_FILE_SYMBOLS_MAX, RELEASED_MAX, RETRIES,
};
use super::super::register_set::{Reconciled, RegisterSet};
use super::super::registration_file::LeftOver;
use super::super::request::Question;
use super::requests::Job;
use crate::Now;

/// A symbol that is to be registered.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Duration,
    /// Lists in a row that lacked it.
    tries: u32,
    /// It has a request of its own, because one with others was refused.
    is_single: bool,
    /// Its request is under way.
    is_sent: bool,
    /// Its subscribers have a report that it could not be registered.
    was_reported: bool,
}

impl Due {
    const fn at(at: Duration) -> Self {
        Self { at, tries: 0, is_single: false, is_sent: false, was_reported: false }
    }
}

/// The register set, and the requests that it needs.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    pub(super) set: RegisterSet,
    due: BTreeMap<String, Due>,
    /// For symbols that the gateway did not unregister: when that may be tried again.
    unregister_after: BTreeMap<String, Duration>,
    /// Symbols of failed requests, and until when the gateway may still register them.
    in_doubt: BTreeMap<String, Duration>,
    /// When the gateway's list is read next to find these, and for the last time.
    look_again: Option<Duration>,
    look_last: Duration,
    /// The symbols that an engine before this one left registered, and their gateway day.
    left: Option<LeftOver>,
    /// Entries of other programs in the gateway's last list.
    foreign: usize,
    /// The gateway day and the symbols that were written down last.
    written: (u64, Vec<String>),
}

impl Registrations {
    /// All symbols that have a place, the most recently used first.
    pub(super) fn symbols(&self) -> Vec<String> {
        self.set.batches().concat()
    }

    /// Entries of other programs in the gateway's last list.
    pub(super) const fn foreign(&self) -> usize {
        self.foreign
    }

    /// Whether the subscribers of a symbol have a report that it could not be registered.
    pub(super) fn was_reported(&self, symbol: &str) -> bool {
        self.due.get(symbol).is_some_and(|due| due.was_reported)
    }

    /// Plans the registration of a symbol that is new in the set.
    pub(super) fn register(&mut self, symbol: &str, now: Duration) {
        self.due.insert(symbol.to_owned(), Due::at(now));
    }

    /// Plans the registration of a symbol now, also if it is registered already.
    pub(super) fn register_also(&mut self, symbol: &str, now: Duration) {
        let due = self.due.entry(symbol.to_owned()).or_insert(Due::at(now));
        due.at = due.at.min(now);
    }

    /// Plans a repeated registration of a symbol, if none is planned.
    pub(super) fn register_again(&mut self, symbol: String, at: Duration) {
        self.due.entry(symbol).or_insert(Due::at(at));
    }

    /// Plans a registration of all symbols, to see whether the gateway still has them.
    pub(super) fn register_all_again(&mut self, now: Duration) {
        for symbol in self.symbols() {
            self.register_again(symbol, now);
        }
    }

    /// Plans the registration of a symbol in a request of its own.
    pub(super) fn register_alone(&mut self, symbol: &str, at: Duration, was_reported: bool) {
        let due = Due { is_single: true, was_reported, ..Due::at(at) };
        self.due.insert(symbol.to_owned(), due);
    }

    /// Ends the plan for a symbol. Returns whether its subscribers have a report of a failure.
    pub(super) fn settled(&mut self, symbol: &str) -> bool {
        self.due.remove(symbol).is_some_and(|due| due.was_reported)
    }

    /// The gateway's list lacks a symbol. It is registered `again`. After some tries in a row it is not: the
    /// error has their number, and whether its subscribers have a report.
    pub(super) fn missed(&mut self, symbol: &str, again: Duration) -> Result<(), (u32, bool)> {
        let due = self.due.remove(symbol);
        let was_reported = due.is_some_and(|due| due.was_reported);
        let tries = due.map_or(0, |due| due.tries) + 1;
        if tries > RETRIES || !self.set.contains(symbol) {
            return Err((tries, was_reported));
        }
        self.due.insert(symbol.to_owned(), Due { tries, was_reported, ..Due::at(again) });
        Ok(())
    }

    /// Discards all plans for a symbol that no client wants, except that it is unregistered.
    pub(super) fn forget(&mut self, symbol: &str) {
        self.due.remove(symbol);
        self.unregister_after.remove(symbol);
    }

    /// The session has ended. With the next stream all symbols are registered, and unwanted ones unregistered.
    pub(super) fn end_session(&mut self) {
        self.due.clear();
        self.unregister_after.clear();
    }

    /// The requests that are due. A read of the gateway's list comes first, if `may_look`. Then come the
    /// symbols that go together, the most recently used first, and one of those that go alone.
    pub(super) fn take_due(&mut self, now: Duration, may_look: bool) -> Vec<Call<Job>> {
        let mut calls = Vec::new();
        if may_look && self.look_again.take_if(|at| *at <= now).is_some() {
            calls.push(Call::new(Job::List, Question::Register(self.symbols())));
            let again = self.look_last.min(now + LATE_MAX / 2);
            self.look_again = Some(again).filter(|at| *at > now);
        }
        let (mut together, mut single) = (Vec::new(), None);
        for symbol in self.symbols() {
            let Some(due) = self.due.get_mut(&symbol) else { continue };
            if due.is_sent || due.at > now || due.is_single && single.is_some() {
                continue;
            }
            due.is_sent = true;
            if due.is_single {
                single = Some(symbol);
            } else {
                together.push(symbol);
            }
        }
        let together = together.chunks(REGISTER_BATCH_MAX).map(<[String]>::to_vec);
        for symbols in together.chain(single.into_iter().map(|symbol| vec![symbol])) {
            calls.push(Call::new(Job::Register, Question::Register(symbols)));
        }
        calls
    }

    /// The requests that unregister unwanted symbols. Symbols that stay registered are tried at `again`.
    pub(super) fn take_leaving(&mut self, now: Duration, again: Duration) -> Vec<Call<Job>> {
        let mut leaving = self.set.unwanted();
        self.unregister_after.retain(|symbol, _| leaving.binary_search(symbol).is_ok());
        leaving.retain(|symbol| self.unregister_after.get(symbol).is_none_or(|at| *at <= now));
        self.unregister_after.extend(leaving.iter().map(|symbol| (symbol.clone(), again)));
        let batches = leaving.chunks(REGISTER_BATCH_MAX);
        batches
            .map(|batch| Call::new(Job::Unregister, Question::Unregister(batch.to_vec())))
            .collect()
    }

    /// Notes that a request registers these symbols.
    pub(super) fn sent<'a>(&mut self, symbols: impl IntoIterator<Item = &'a str>) {
        self.set.sent(symbols);
    }

    /// Notes that a board is read. Its symbol takes a place; if no client wants it, it is unregistered again.
    pub(super) fn board_sent(&mut self, symbol: &str) {
        self.set.sent([symbol]);
        self.unregister_after.remove(symbol);
    }

    /// Notes that the gateway may register these symbols late, for so long.
    pub(super) fn doubt(&mut self, symbols: &[String], time: Duration, now: Duration) {
        self.in_doubt.extend(symbols.iter().map(|symbol| (symbol.clone(), now + time)));
        while self.in_doubt.len() > RELEASED_MAX {
            self.in_doubt.pop_first();
        }
        self.look_again.get_or_insert(now + LATE_MAX / 2);
        self.look_last = now + LATE_MAX;
    }

    /// Takes the gateway's whole list, after a request that unregistered `taken_out`.
    pub(super) fn apply_list(
        &mut self,
        list: &[(String, i64)],
        taken_out: &[String],
        now: Duration,
    ) -> Reconciled {
        self.in_doubt.retain(|_, until| *until > now);
        let in_doubt = list.iter().filter(|(symbol, market)| {
            *market == TOKYO && self.in_doubt.contains_key(symbol) && !self.set.knows(symbol)
        });
        let in_doubt: Vec<String> = in_doubt.map(|(symbol, _)| symbol.clone()).collect();
        self.set.left_over(in_doubt);
        let found = self.set.apply_list(list, taken_out);
        self.foreign = found.foreign;
        found
    }

    /// Notes the symbols that an engine before this one left registered. If the first login is on the same
    /// gateway day, they are ours and are unregistered.
    pub(super) fn left_over(&mut self, left: LeftOver) {
        self.left = Some(left);
    }

    /// Takes these symbols up at the first login, on that gateway day.
    pub(super) fn take_left_over(&mut self, today: u64, now: Now) {
        let Some(LeftOver { gateway_day, symbols, late_until_ms }) = self.left.take() else {
            return;
        };
        let late = late_until_ms.map(|until| until.saturating_sub(now.wall.millis()));
        if gateway_day != today || late == Some(0) {
            return;
        }
        if let Some(late) = late {
            // The gateway may still register them late.
            self.doubt(&symbols, Duration::from_millis(late).min(LATE_TIME), now.mono);
        }
        self.set.left_over(symbols);
    }

    /// The symbols that are registered for us on the gateway day, if they have changed since they were written
    /// down.
    pub(super) fn take_unwritten(&mut self, gateway_day: u64) -> Option<Vec<String>> {
        let registered = (gateway_day, self.set.ours());
        let has_any = (registered.1.len(), self.written.1.len()) != (0, 0);
        let is_new = registered != self.written && has_any;
        self.written = registered;
        is_new.then(|| self.written.1.clone())
    }

    /// The symbols that we have, or may have, registered, without those of other programs.
    pub(super) fn to_take_out(&self) -> Vec<String> {
        let mut symbols = self.set.ours();
        symbols.extend(self.in_doubt.keys().filter(|symbol| !self.set.knows(symbol)).cloned());
        symbols
    }

    /// The symbols that the gateway may still register after ours were unregistered. Those that other programs
    /// had in the last list are theirs.
    pub(super) fn left_at_the_end(&self, gateway_day: u64, now: Now) -> LeftOver {
        let late = |(symbol, until): &(&String, &Duration)| {
            **until > now.mono && !self.set.is_foreign(symbol)
        };
        let late = self.in_doubt.iter().filter(late).take(REGISTRATION_FILE_SYMBOLS_MAX);
        let late: Vec<_> = late.collect();
        let until = late.iter().map(|(_, until)| **until - now.mono).max();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        LeftOver {
            gateway_day,
            symbols: late.iter().map(|(symbol, _)| (*symbol).clone()).collect(),
            late_until_ms: until.map(|time| now.wall.millis().saturating_add(millis(time))),
        }
    }
}
