//! All orders of a run, by number, and every client order id that was ever used.
//!
//! Finished orders may be taken out; their ids stay known as 128-bit hashes, 25 bytes each (about
//! 200 MB at the limit of 4,000,000 orders, with the free places of the table).

use std::collections::{HashMap, VecDeque}; // lookup only: the map of ids
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Index, IndexMut};

use domain::OrderStatus;
use xxhash_rust::xxh3::xxh3_128;

use super::order::{Order, OrderIx};

/// xxh3-128 of a client order id. Two ids with the same hash would count as one; among 4,000,000
/// the chance is below 1 in 10^25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdHash([u64; 2]);

impl IdHash {
    fn of(id: &str) -> Self {
        let hash = xxh3_128(id.as_bytes());
        Self([hash as u64, (hash >> 64) as u64])
    }
}

impl std::hash::Hash for IdHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

/// The key is a hash already.
#[derive(Debug, Default)]
struct Already(u64);

impl Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Who has an id.
#[derive(Debug, Clone, Copy)]
struct Holder {
    order: OrderIx,
    /// How the order ended, once it was taken out.
    ended: OrderStatus,
}

/// What is known of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It was never used.
    Never,
    /// Its order is here.
    Here(OrderIx),
    /// Its order ended so and was taken out.
    Gone(OrderStatus),
}

/// All orders of a run.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Orders from number `first` on; `None` where one was taken out.
    slots: VecDeque<Option<Box<Order>>>,
    first: OrderIx,
    /// Finished orders that were not taken out yet.
    done: Vec<OrderIx>,
    /// Lookup only: its order is never seen.
    ids: HashMap<IdHash, Holder, BuildHasherDefault<Already>>, // lookup only
}

impl Store {
    /// Orders ever sent; the number of the next one.
    pub(super) fn sent(&self) -> OrderIx {
        // The number of orders is limited far below 2^32.
        self.first + self.slots.len() as OrderIx
    }

    /// Adds an order whose number is [`Self::sent`]. Tells whether its id is new; the first order
    /// with an id keeps it.
    pub(super) fn push(&mut self, mut order: Order) -> bool {
        order.number = self.sent();
        let holder = Holder { order: order.number, ended: OrderStatus::Initialized };
        let held_by = self.ids.entry(IdHash::of(&order.request.client_order_id)).or_insert(holder);
        let is_new = held_by.order == holder.order;
        self.slots.push_back(Some(Box::new(order)));
        is_new
    }

    /// What is known of an id.
    pub(super) fn find(&self, client_order_id: &str) -> Known {
        match self.ids.get(&IdHash::of(client_order_id)) {
            None => Known::Never,
            Some(holder) if self.get(holder.order).is_some() => Known::Here(holder.order),
            Some(holder) => Known::Gone(holder.ended),
        }
    }

    /// An order that was not taken out.
    pub(super) fn get(&self, number: OrderIx) -> Option<&Order> {
        let slot = number.checked_sub(self.first)?;
        self.slots.get(slot as usize)?.as_deref()
    }

    /// Notes that nothing can happen to an order any more.
    pub(super) fn finish(&mut self, number: OrderIx) {
        self.done.push(number);
    }

    /// Takes out the finished orders, in the order of their sending.
    pub(super) fn take_done(&mut self) -> Vec<Order> {
        let mut numbers = std::mem::take(&mut self.done);
        numbers.sort_unstable();
        let orders = numbers.into_iter().filter_map(|number| self.take(number)).collect();
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first += 1;
        }
        orders
    }

    fn take(&mut self, number: OrderIx) -> Option<Order> {
        let slot = number.checked_sub(self.first)?;
        let order = *self.slots.get_mut(slot as usize)?.take()?;
        if let Some(holder) = self.ids.get_mut(&IdHash::of(&order.request.client_order_id))
            && holder.order == number
        {
            holder.ended = order.status;
        }
        Some(order)
    }

    /// Gives up the orders that were not taken out, in the order of their sending.
    pub(super) fn into_orders(self) -> Vec<Order> {
        self.slots.into_iter().flatten().map(|order| *order).collect()
    }
}

impl Index<OrderIx> for Store {
    type Output = Order;

    #[expect(clippy::expect_used, reason = "only finished orders are taken out")]
    fn index(&self, number: OrderIx) -> &Order {
        self.get(number).expect("an order that is at the exchange was not taken out")
    }
}

impl IndexMut<OrderIx> for Store {
    #[expect(clippy::expect_used, reason = "only finished orders are taken out")]
    fn index_mut(&mut self, number: OrderIx) -> &mut Order {
        let slot = number
            .checked_sub(self.first)
            .and_then(|slot| self.slots.get_mut(slot as usize).and_then(Option::as_deref_mut));
        slot.expect("an order that is at the exchange was not taken out")
    }
}
