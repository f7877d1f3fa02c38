//! Orders that trades can fill or trigger, in the order in which they are.

use domain::{Price, Quantity, TsNanos};

use crate::order::OrderIx;

/// An order among the price levels of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelOrder {
    /// The price, times the levels' sign: the smallest is reached first.
    key: i64,
    sequence: u64,
    pub(crate) order: OrderIx,
}

/// Orders sorted by price, the one that the market reaches first in front; at the same price the
/// older one.
#[derive(Debug, Clone)]
pub(crate) struct PriceLevels {
    sign: i64,
    orders: Vec<LevelOrder>,
}

impl PriceLevels {
    const fn new(sign: i64) -> Self {
        Self { sign, orders: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<LevelOrder> {
        self.orders.get(index).copied()
    }

    /// The price that the market reaches first.
    #[inline]
    pub(crate) fn first_price(&self) -> Option<i64> {
        self.orders.first().map(|entry| entry.key * self.sign)
    }

    /// Orders that the market reaches at `price`, those at that very price included.
    pub(crate) fn reached_at(&self, price: Price) -> impl Iterator<Item = OrderIx> {
        let key = price.units() * self.sign;
        self.orders.iter().take_while(move |entry| entry.key <= key).map(|entry| entry.order)
    }

    fn index_of(&self, price: Price, sequence: u64) -> usize {
        let wanted = (price.units() * self.sign, sequence);
        self.orders.partition_point(|entry| (entry.key, entry.sequence) < wanted)
    }

    pub(crate) fn add(&mut self, price: Price, sequence: u64, order: OrderIx) {
        let index = self.index_of(price, sequence);
        self.orders.insert(index, LevelOrder { key: price.units() * self.sign, sequence, order });
    }

    pub(crate) fn remove(&mut self, price: Price, sequence: u64, order: OrderIx) {
        let index = self.index_of(price, sequence);
        let found = self.orders.get(index).map(|entry| entry.order);
        assert!(found == Some(order), "order {order} stood elsewhere than at {price}");
        self.orders.remove(index);
    }
}

/// An order that takes the next trades.
#[derive(Debug, Clone, Copy)]
struct Taker {
    sequence: u64,
    order: OrderIx,
    after: TsNanos,
    has_limit: bool,
}

/// The orders of one instrument at the exchange.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    /// Oldest first.
    takers: Vec<Taker>,
    /// No taker matches before this.
    pub(crate) takers_after: TsNanos,
    /// Whether a trade of any size may leave a taker behind: one with a limit.
    pub(crate) has_limit_takers: bool,
    /// Resting limit orders.
    pub(crate) buys: PriceLevels,
    pub(crate) sells: PriceLevels,
    /// Stops that wait for their trigger.
    pub(crate) stop_buys: PriceLevels,
    pub(crate) stop_sells: PriceLevels,
    /// Oldest first. An order that also rests (funari) stands on both lists.
    auctions: Vec<OrderIx>,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            takers: Vec::new(),
            takers_after: TsNanos::MAX,
            has_limit_takers: false,
            buys: PriceLevels::new(-1),
            sells: PriceLevels::new(1),
            stop_buys: PriceLevels::new(1),
            stop_sells: PriceLevels::new(-1),
            auctions: Vec::new(),
        }
    }
}

impl Book {
    pub(crate) fn is_empty(&self) -> bool {
        let levels = [&self.buys, &self.sells, &self.stop_buys, &self.stop_sells];
        self.takers.is_empty()
            && self.auctions.is_empty()
            && levels.iter().all(|levels| levels.len() == 0)
    }

    pub(crate) fn taker(&self, index: usize) -> Option<OrderIx> {
        self.takers.get(index).map(|taker| taker.order)
    }

    pub(crate) fn takers(&self) -> impl Iterator<Item = OrderIx> {
        self.takers.iter().map(|taker| taker.order)
    }

    pub(crate) fn add_taker(
        &mut self,
        sequence: u64,
        order: OrderIx,
        after: TsNanos,
        has_limit: bool,
    ) {
        let index = self.takers.partition_point(|other| other.sequence < sequence);
        self.takers.insert(index, Taker { sequence, order, after, has_limit });
        self.takers_after = self.takers_after.min(after);
        self.has_limit_takers |= has_limit;
    }

    pub(crate) fn remove_taker(&mut self, sequence: u64) {
        self.takers.retain(|taker| taker.sequence != sequence);
        let afters = self.takers.iter().map(|taker| taker.after);
        self.takers_after = afters.min().unwrap_or(TsNanos::MAX);
        self.has_limit_takers = self.takers.iter().any(|taker| taker.has_limit);
    }

    pub(crate) fn add_to_auction(&mut self, order: OrderIx) {
        self.auctions.push(order);
    }

    pub(crate) fn remove_from_auction(&mut self, order: OrderIx) {
        self.auctions.retain(|waiting| *waiting != order);
    }

    /// Orders that wait for an auction, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = OrderIx> {
        self.auctions.iter().copied()
    }
}

/// What is left of one trade for our orders (F3).
#[derive(Debug, Clone)]
pub(crate) struct ParticipationBudget {
    left: Quantity,
    taken: Quantity,
}

impl ParticipationBudget {
    pub(crate) const fn new(shares: Quantity) -> Self {
        Self { left: shares, taken: Quantity::ZERO }
    }

    pub(crate) const fn is_used_up(&self) -> bool {
        self.left.is_zero()
    }

    /// Shares that our orders took.
    pub(crate) const fn taken(&self) -> Quantity {
        self.taken
    }

    /// Takes up to `wanted` shares.
    pub(crate) fn take(&mut self, wanted: Quantity) -> Quantity {
        let taken = wanted.min(self.left);
        self.left = self.left.saturating_sub(taken);
        self.taken += taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> (PriceLevels, PriceLevels) {
        let mut book = Book::default();
        for (price, sequence) in [(10, 1), (12, 2), (11, 3), (12, 4)] {
            book.buys.add(Price::from_yen(price), sequence, sequence as OrderIx);
            book.sells.add(Price::from_yen(price), sequence, sequence as OrderIx);
        }
        (book.buys, book.sells)
    }

    fn order(levels: &PriceLevels) -> Vec<OrderIx> {
        levels.orders.iter().map(|entry| entry.order).collect()
    }

    #[test]
    fn the_best_price_stands_first_and_the_older_at_equal_price() {
        let (mut buys, sells) = levels();
        assert_eq!(order(&buys), [2, 4, 3, 1]);
        assert_eq!(order(&sells), [1, 3, 2, 4]);
        buys.remove(Price::from_yen(12), 4, 4);
        assert_eq!(order(&buys), [2, 3, 1]);
        assert_eq!(buys.first_price(), Some(Price::from_yen(12).units()));
    }

    #[test]
    #[should_panic(expected = "stood elsewhere")]
    fn an_order_is_never_taken_from_another_level() {
        let (mut buys, _) = levels();
        buys.remove(Price::from_yen(11), 4, 4);
    }
}
