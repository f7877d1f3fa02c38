//! Lists that are late (fault `late-lists`): what the broker held some time ago.

use std::collections::{BTreeSet, VecDeque};
use std::mem::swap;
use std::time::Duration;

use domain::clock::Stopwatch;

use super::broker::Broker;
use super::faults::FaultKind;
use super::ledger::Ledger;
use super::limits::LATE_BOOKS_MAX;
use super::order::Order;

/// What lists tell of.
#[derive(Debug, Clone)]
struct Books {
    orders: Vec<Order>,
    open: BTreeSet<usize>,
    ledger: Ledger,
}

/// What was held since when, the oldest first. The first one is what lists tell now; without the fault there is none.
#[derive(Debug)]
pub(super) struct LateBooks {
    watch: Stopwatch,
    kept: VecDeque<(Duration, Books)>,
}

impl LateBooks {
    pub(super) fn new() -> Self {
        Self { watch: Stopwatch::start(), kept: VecDeque::new() }
    }
}

impl Broker {
    /// Keeps what is held now, while lists are late. Every change of it calls this.
    pub(crate) fn keep_books(&mut self) {
        self.drop_old_books();
        if !self.faults.has(FaultKind::LateLists) {
            return;
        }
        if self.late.kept.len() == LATE_BOOKS_MAX {
            tracing::warn!("LATE_BOOKS_MAX states: lists are later than late-lists says");
            return;
        }
        let books = Books {
            orders: self.orders.clone(),
            open: self.open.clone(),
            ledger: self.ledger.clone(),
        };
        self.late.kept.push_back((self.late.watch.elapsed(), books));
    }

    /// Drops what lists do not tell any more. The state in which the fault began stays until it is old enough.
    fn drop_old_books(&mut self) {
        let Some(lag) = self.faults.standing(FaultKind::LateLists) else {
            self.late.kept.clear();
            return;
        };
        let lag = Duration::from_millis(u64::try_from(lag).unwrap_or_default());
        let now = self.late.watch.elapsed();
        while self.late.kept.get(1).is_some_and(|(since, _)| *since + lag <= now) {
            self.late.kept.pop_front();
        }
    }

    /// Asks for something as it was before.
    pub(super) fn with_late_books<T>(&mut self, ask: impl FnOnce(&Self) -> T) -> T {
        self.drop_old_books();
        let Some((since, mut books)) = self.late.kept.pop_front() else { return ask(self) };
        self.swap_books(&mut books);
        let told = ask(self);
        self.swap_books(&mut books);
        self.late.kept.push_front((since, books));
        told
    }

    fn swap_books(&mut self, books: &mut Books) {
        swap(&mut self.orders, &mut books.orders);
        swap(&mut self.open, &mut books.open);
        swap(&mut self.ledger, &mut books.ledger);
    }
}
