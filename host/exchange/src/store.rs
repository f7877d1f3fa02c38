//! All orders of a run, a store for each origin: by number, and every client order id that was ever
//! used there.
//!
//! Finished orders may be taken out; their ids stay known as 128-bit hashes, and how they ended as a byte: 22
//! bytes each (about 46 MB at the default limit of 1,800,000 orders, with the free slots of the
//! table, and 180 MB at the highest, 4,000,000).

use std::collections::{HashMap, VecDeque}; // lookup only: the map of ids
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use domain::{OrderRecord, OrderRequest, OrderStatus, Origin};
use xxhash_rust::xxh3::xxh3_128;

use crate::order::{Order, OrderIx};

/// xxh3-128 of a client order id. Two ids with the same hash would count as one; among 4,000,000
/// the chance is below 1 in 10^25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdHash([u8; 16]);

impl IdHash {
    fn of(id: &str) -> Self {
        Self(xxh3_128(id.as_bytes()).to_le_bytes())
    }
}

impl std::hash::Hash for IdHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The lower half.
        state.write_u64(u128::from_le_bytes(self.0) as u64);
    }
}

/// The key is a hash already.
#[derive(Debug, Clone, Default)]
struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
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

/// What is known of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdState {
    /// It was never used.
    Unused,
    /// Its order is here.
    Held(OrderIx),
    /// Its order ended so and was taken out.
    Retired(OrderStatus),
}

/// The bit that tells the keys of clients' orders from those of the strategy's.
const CLIENT: OrderIx = 1 << 31;

/// Whose order this is.
pub(crate) const fn origin_of(number: OrderIx) -> Origin {
    if number & CLIENT == 0 { Origin::Strategy } else { Origin::Client }
}

/// Blocks of memory of orders that were taken out, kept for the next ones: some 6 MB, where a day had as many.
const SPARE_MAX: usize = 16_384;

/// All orders of one origin.
#[derive(Debug, Clone)]
struct Store {
    /// Key of the first order that this origin can send.
    base: OrderIx,
    /// Orders from key `first` on; `None` where one was taken out.
    slots: VecDeque<Option<Box<Order>>>,
    first: OrderIx,
    /// Finished orders that were not taken out yet.
    done: Vec<OrderIx>,
    /// Orders that are not done.
    open: usize,
    /// The key of the order that has an id. Lookup only: its order is never seen.
    ids: HashMap<IdHash, OrderIx, BuildHasherDefault<PrehashedHasher>>, // lookup only
    /// How each order ended that was taken out, from the first that this origin sent.
    ended: Vec<OrderStatus>,
    /// Orders that were taken out, at most [`SPARE_MAX`]; the next ones take their places in memory.
    #[expect(clippy::vec_box, reason = "it is the boxes that are kept")]
    spare: Vec<Box<Order>>,
}

impl Store {
    fn new(base: OrderIx) -> Self {
        let (slots, done, ids) = (VecDeque::new(), Vec::new(), HashMap::default());
        let (ended, spare) = (Vec::new(), Vec::new());
        Self { base, slots, first: base, done, open: 0, ids, ended, spare }
    }

    /// The key of the next order.
    fn next(&self) -> OrderIx {
        // The number of orders is limited far below 2^31.
        self.first + self.slots.len() as OrderIx
    }

    /// The request of the next order, where the one of an order was that was taken out, if nobody has that one
    /// any more.
    fn place(&mut self, request: OrderRequest) -> Arc<OrderRequest> {
        if let Some(order) = self.spare.last_mut()
            && let Some(place) = Arc::get_mut(&mut order.record.request)
        {
            *place = request;
            // It is this order's alone as soon as that one's place is taken.
            return Arc::clone(&order.record.request);
        }
        Arc::new(request)
    }

    /// Adds an order. Tells its key, and whether its id is new; the first order with an id keeps it.
    fn push(&mut self, order: Order) -> (OrderIx, bool) {
        let number = self.next();
        let id = IdHash::of(&order.record.request.client_order_id);
        let is_new = *self.ids.entry(id).or_insert(number) == number;
        self.slots.push_back(Some(match self.spare.pop() {
            None => Box::new(order),
            Some(mut place) => {
                *place = order;
                place
            }
        }));
        self.ended.push(OrderStatus::Initialized);
        (number, is_new)
    }

    /// What is known of an id.
    fn find(&self, client_order_id: &str) -> IdState {
        match self.ids.get(&IdHash::of(client_order_id)) {
            None => IdState::Unused,
            Some(number) if self.get(*number).is_some() => IdState::Held(*number),
            Some(number) => IdState::Retired(self.ended[(number - self.base) as usize]),
        }
    }

    /// Gives the id of an order free for another one.
    fn free_id(&mut self, number: OrderIx) {
        let Some(order) = self.get(number) else { return };
        let id = IdHash::of(&order.record.request.client_order_id);
        if self.ids.get(&id) == Some(&number) {
            self.ids.remove(&id);
        }
    }

    /// An order that was not taken out.
    fn get(&self, number: OrderIx) -> Option<&Order> {
        let slot = number.checked_sub(self.first)?;
        self.slots.get(slot as usize)?.as_deref()
    }

    /// Takes out the finished orders, in the order of their sending.
    fn take_done(&mut self, mut take: impl FnMut(&OrderRecord)) {
        self.done.sort_unstable();
        for number in self.done.drain(..) {
            let slot = number.checked_sub(self.first);
            let slot = slot.and_then(|slot| self.slots.get_mut(slot as usize));
            if let Some(order) = slot.and_then(Option::take) {
                self.ended[(number - self.base) as usize] = order.record.status;
                take(&order.record);
                if self.spare.len() < SPARE_MAX {
                    self.spare.push(order);
                }
            }
        }
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

/// All orders of a run. Keys sort by origin, the strategy's first, then by the time of sending.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    strategy: Store,
    client: Store,
}

impl Default for Orders {
    fn default() -> Self {
        Self { strategy: Store::new(0), client: Store::new(CLIENT) }
    }
}

impl Orders {
    const fn of(&self, origin: Origin) -> &Store {
        match origin {
            Origin::Strategy => &self.strategy,
            Origin::Client => &self.client,
        }
    }

    const fn of_mut(&mut self, origin: Origin) -> &mut Store {
        match origin {
            Origin::Strategy => &mut self.strategy,
            Origin::Client => &mut self.client,
        }
    }

    /// Orders of an origin that were ever sent; the number of its next one.
    pub(crate) fn sent(&self, origin: Origin) -> u32 {
        let store = self.of(origin);
        store.next() - store.base
    }

    /// Orders of an origin that are not done.
    pub(crate) fn open(&self, origin: Origin) -> usize {
        self.of(origin).open
    }

    /// The same, to count.
    pub(crate) fn open_mut(&mut self, origin: Origin) -> &mut usize {
        &mut self.of_mut(origin).open
    }

    /// The request of the next order of an origin.
    pub(crate) fn place(&mut self, origin: Origin, request: OrderRequest) -> Arc<OrderRequest> {
        self.of_mut(origin).place(request)
    }

    /// Adds an order. Tells its key, and whether its id is new in its origin.
    pub(crate) fn push(&mut self, order: Order) -> (OrderIx, bool) {
        self.of_mut(order.record.origin).push(order)
    }

    /// Gives the id of an order free for another one of its origin.
    pub(crate) fn free_id(&mut self, number: OrderIx) {
        self.of_mut(origin_of(number)).free_id(number);
    }

    /// What is known of an id of an origin.
    pub(crate) fn find(&self, origin: Origin, client_order_id: &str) -> IdState {
        self.of(origin).find(client_order_id)
    }

    /// An order that was not taken out.
    pub(crate) fn get(&self, number: OrderIx) -> Option<&Order> {
        self.of(origin_of(number)).get(number)
    }

    /// Notes that an order takes no transition any more.
    pub(crate) fn finish(&mut self, number: OrderIx) {
        self.of_mut(origin_of(number)).done.push(number);
    }

    /// Finished orders that were not taken out yet.
    pub(crate) fn done(&self) -> usize {
        self.strategy.done.len() + self.client.done.len()
    }

    /// Takes out the finished orders, by origin and in the order of their sending.
    pub(crate) fn take_done(&mut self, mut take: impl FnMut(&OrderRecord)) {
        self.strategy.take_done(&mut take);
        self.client.take_done(take);
    }

    /// Gives up the orders that were not taken out, by origin and in the order of their sending.
    pub(crate) fn into_records(self) -> Vec<OrderRecord> {
        let slots = self.strategy.slots.into_iter().chain(self.client.slots);
        slots.flatten().map(|order| order.record).collect()
    }
}

impl Index<OrderIx> for Orders {
    type Output = Order;

    #[inline]
    #[expect(clippy::expect_used, reason = "only finished orders are taken out")]
    fn index(&self, number: OrderIx) -> &Order {
        self.get(number).expect("an order that is at the exchange was not taken out")
    }
}

impl IndexMut<OrderIx> for Orders {
    #[inline]
    #[expect(clippy::expect_used, reason = "only finished orders are taken out")]
    fn index_mut(&mut self, number: OrderIx) -> &mut Order {
        let store = self.of_mut(origin_of(number));
        let slot = number
            .checked_sub(store.first)
            .and_then(|slot| store.slots.get_mut(slot as usize).and_then(Option::as_deref_mut));
        slot.expect("an order that is at the exchange was not taken out")
    }
}
