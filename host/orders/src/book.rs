//! The orders that the desk knows: its own and those placed elsewhere.
//!
//! Its own are found by the caller's id, the others by the broker's number. The book is also the map that makes
//! a resend harmless (specification 2, "Idempotency record"; specification 4, P21, P23).

mod order;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::{InstrumentIx, JstDate, Origin, ShortText};

use crate::instruments::InstrumentTable;
use crate::limits::ORDERS_HELD_MAX;

pub(crate) use order::{
    DeskOrder, Illegal, PendingOperation, Seen, close_action, detail_id, fill_id, last_moment,
    split_fill_id,
};

/// An order's place in the book: in the order in which the desk came to know of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OrderKey(u64);

/// All orders.
#[derive(Debug, Default)]
pub(crate) struct Book {
    orders: BTreeMap<OrderKey, DeskOrder>,
    /// By the kind of the sender and its id (specification 4, P92).
    by_id: HashMap<(Origin, ShortText), OrderKey>,
    /// Orders of one number, the newest last.
    by_number: HashMap<ShortText, Vec<OrderKey>>,
    next: u64,
    instruments: Arc<InstrumentTable>,
}

impl Book {
    /// The instruments that its orders name.
    pub(crate) const fn instruments(&self) -> &Arc<InstrumentTable> {
        &self.instruments
    }

    /// The position and the name of an issue of the broker's. `None` if the table is full.
    pub(crate) fn instrument_of(&self, symbol: &str) -> Option<(InstrumentIx, ShortText)> {
        let name = ShortText::from(format!("{symbol}.TSE"));
        Some((self.instruments.place(&name)?, name))
    }

    /// Adds an order; none where the book is full.
    pub(crate) fn add(&mut self, order: DeskOrder) -> Option<OrderKey> {
        if self.orders.len() >= ORDERS_HELD_MAX {
            return None;
        }
        let key = OrderKey(self.next);
        self.next += 1;
        if let Some(name) = order.name() {
            self.by_id.insert(name, key);
        }
        if let Some(number) = &order.venue_order_id {
            self.by_number.entry(number.clone()).or_default().push(key);
        }
        self.orders.insert(key, order);
        Some(key)
    }

    pub(crate) fn get(&self, key: OrderKey) -> Option<&DeskOrder> {
        self.orders.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: OrderKey) -> Option<&mut DeskOrder> {
        self.orders.get_mut(&key)
    }

    /// The order of an id among those of one kind of sender (specification 4, P92, P94).
    pub(crate) fn by_id(&self, origin: Origin, client_order_id: &str) -> Option<OrderKey> {
        self.by_id.get(&(origin, client_order_id.into())).copied()
    }

    /// The order that a row or a notice describes. Numbers are unique on one business day only; see
    /// [`DeskOrder::is_seen_as`].
    pub(crate) fn by_number(&self, number: &str, seen: Seen<'_>) -> Option<OrderKey> {
        let known = self.by_number.get(number)?;
        let same_day = |key: &&OrderKey| {
            let order = self.orders.get(key).filter(|order| order.has_looks_of(seen));
            let day = order.and_then(|order| order.business_day.as_deref());
            day.is_some() && day == seen.day
        };
        let fits =
            |key: &&OrderKey| self.orders.get(key).is_some_and(|order| order.is_seen_as(seen));
        let newest_first = || known.iter().rev();
        newest_first().find(same_day).or_else(|| newest_first().find(fits)).copied()
    }

    /// Whether another order that may work has its number, and their business days do not differ. A broker that
    /// gets the number alone may take the other order.
    pub(crate) fn has_twin_number(&self, key: OrderKey) -> bool {
        let Some(order) = self.orders.get(&key) else { return false };
        let Some(number) = &order.venue_order_id else { return false };
        self.others_of_number(number, Some(key)).any(|other| {
            let days = (&order.business_day, &other.business_day);
            !matches!(days, (Some(day), Some(other)) if day != other)
        })
    }

    /// Whether the broker may take a number for another order that may work, not the one of `key`.
    pub(crate) fn is_number_of_another(&self, number: &str, key: Option<OrderKey>) -> bool {
        self.others_of_number(number, key).next().is_some()
    }

    /// Orders of a number that may work, but for the one of a key.
    fn others_of_number(
        &self,
        number: &str,
        key: Option<OrderKey>,
    ) -> impl Iterator<Item = &DeskOrder> {
        let same = self.by_number.get(number).into_iter().flatten();
        let others = same.filter(move |other| Some(**other) != key);
        others.filter_map(|other| self.orders.get(other)).filter(|order| !order.is_settled())
    }

    /// The order that a person means by a number: the newest that is not over, else the newest.
    pub(crate) fn by_number_alone(&self, number: &str) -> Option<OrderKey> {
        let known = self.by_number.get(number)?;
        let is_open =
            |key: &&OrderKey| self.orders.get(key).is_some_and(|order| !order.is_settled());
        known.iter().rev().find(is_open).or_else(|| known.last()).copied()
    }

    /// Gives an order its number.
    pub(crate) fn set_number(
        &mut self,
        key: OrderKey,
        number: &ShortText,
        day: Option<&ShortText>,
    ) {
        if let Some(order) = self.orders.get_mut(&key) {
            order.venue_order_id = Some(number.clone());
            if day.is_some() {
                order.business_day = day.cloned();
            }
            order.unknown_since = None;
            self.by_number.entry(number.clone()).or_default().push(key);
        }
    }

    /// Frees the id of an order (P21). The order itself stays, because notices may still be about it. An order
    /// that never had a number is removed.
    pub(crate) fn free_id(&mut self, key: OrderKey) {
        let Some(order) = self.orders.get(&key) else { return };
        if let Some(name) = order.name()
            && self.by_id.get(&name) == Some(&key)
        {
            self.by_id.remove(&name);
        }
        if order.venue_order_id.is_none() {
            self.orders.remove(&key);
        }
    }

    /// Removes an order wholly.
    pub(crate) fn remove(&mut self, key: OrderKey) {
        let Some(order) = self.orders.remove(&key) else { return };
        if let Some(name) = order.name()
            && self.by_id.get(&name) == Some(&key)
        {
            self.by_id.remove(&name);
        }
        if let Some(number) = &order.venue_order_id
            && let Some(known) = self.by_number.get_mut(number)
        {
            known.retain(|one| *one != key);
            if known.is_empty() {
                self.by_number.remove(number);
            }
        }
    }

    /// Removes an order wholly and returns it.
    pub(crate) fn take(&mut self, key: OrderKey) -> Option<DeskOrder> {
        let order = self.orders.get(&key).cloned();
        self.remove(key);
        order
    }

    /// Orders of a number, of all days.
    pub(crate) fn of_number(&self, number: &str) -> impl Iterator<Item = OrderKey> {
        self.by_number.get(number).into_iter().flatten().copied()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (OrderKey, &mut DeskOrder)> {
        self.orders.iter_mut().map(|(key, order)| (*key, order))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (OrderKey, &DeskOrder)> {
        self.orders.iter().map(|(key, order)| (*key, order))
    }

    /// Marks the orders that the newest list leaves ambiguous.
    pub(crate) fn set_ambiguous(&mut self, is_ambiguous: impl Fn(OrderKey) -> bool) {
        for (key, order) in &mut self.orders {
            order.is_ambiguous = is_ambiguous(*key);
        }
    }

    pub(crate) fn keys(&self) -> Vec<OrderKey> {
        self.orders.keys().copied().collect()
    }

    /// Frees the ids of settled orders whose last day was before `today` (P23). The orders themselves, with
    /// their numbers and fills, stay until a list of a later day does not have them. The broker reports them as
    /// long as it lists them.
    pub(crate) fn forget_before(&mut self, today: JstDate) {
        // An order that should still work, but that no list has, holds its id: it may come back.
        let is_proven = |order: &DeskOrder| order.status.is_final() || !order.lives_on(today);
        let is_old =
            |order: &DeskOrder| order.is_settled() && order.last_day() < today && is_proven(order);
        let old = self.orders.iter().filter(|(_, order)| is_old(order));
        let old: Vec<(OrderKey, bool)> = old.map(|(key, order)| (*key, order.is_gone)).collect();
        for (key, is_gone) in old {
            if is_gone {
                self.remove(key);
            } else {
                self.free_id(key);
            }
        }
    }
}
