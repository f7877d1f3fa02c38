//! Orders that trades can fill or trigger, in the order in which they are.

use domain::{Price, Quantity, TsNanos};

use crate::order::OrderIx;

/// An order's place on a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The price, times the ladder's sign: the smallest is reached first.
    key: i64,
    sequence: u64,
    pub(crate) order: OrderIx,
}

/// Orders sorted by price, the one that the market reaches first in front; at the same price the
/// older one.
#[derive(Debug, Clone)]
pub(crate) struct Ladder {
    sign: i64,
    rungs: Vec<Rung>,
}

impl Ladder {
    const fn new(sign: i64) -> Self {
        Self { sign, rungs: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rungs.len()
    }

    pub(crate) fn get(&self, place: usize) -> Option<Rung> {
        self.rungs.get(place).copied()
    }

    /// The price that the market reaches first.
    #[inline]
    pub(crate) fn first_price(&self) -> Option<i64> {
        self.rungs.first().map(|rung| rung.key * self.sign)
    }

    fn place_of(&self, price: Price, sequence: u64) -> usize {
        let wanted = (price.units() * self.sign, sequence);
        self.rungs.partition_point(|rung| (rung.key, rung.sequence) < wanted)
    }

    pub(crate) fn add(&mut self, price: Price, sequence: u64, order: OrderIx) {
        let place = self.place_of(price, sequence);
        self.rungs.insert(place, Rung { key: price.units() * self.sign, sequence, order });
    }

    pub(crate) fn remove(&mut self, price: Price, sequence: u64, order: OrderIx) {
        let place = self.place_of(price, sequence);
        let found = self.rungs.get(place).map(|rung| rung.order);
        assert!(found == Some(order), "order {order} stood elsewhere than at {price}");
        self.rungs.remove(place);
    }
}

/// An order that takes the next trades.
#[derive(Debug, Clone, Copy)]
struct Taker {
    sequence: u64,
    order: OrderIx,
    after: TsNanos,
}

/// Orders that wait for an auction.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    order: OrderIx,
    auction: TsNanos,
}

/// The orders of one instrument at the exchange.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    /// Oldest first.
    takers: Vec<Taker>,
    /// No taker matches before this.
    pub(crate) takers_after: TsNanos,
    /// Resting limit orders.
    pub(crate) buys: Ladder,
    pub(crate) sells: Ladder,
    /// Stops that wait for their trigger.
    pub(crate) stop_buys: Ladder,
    pub(crate) stop_sells: Ladder,
    /// Oldest first. An order that also rests (funari) stands on both lists.
    auctions: Vec<Waiting>,
    /// No auction comes before this.
    pub(crate) auction_from: TsNanos,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            takers: Vec::new(),
            takers_after: TsNanos::MAX,
            buys: Ladder::new(-1),
            sells: Ladder::new(1),
            stop_buys: Ladder::new(1),
            stop_sells: Ladder::new(-1),
            auctions: Vec::new(),
            auction_from: TsNanos::MAX,
        }
    }
}

impl Book {
    pub(crate) fn is_empty(&self) -> bool {
        let ladders = [&self.buys, &self.sells, &self.stop_buys, &self.stop_sells];
        self.takers.is_empty()
            && self.auctions.is_empty()
            && ladders.iter().all(|ladder| ladder.len() == 0)
    }

    pub(crate) fn taker(&self, place: usize) -> Option<OrderIx> {
        self.takers.get(place).map(|taker| taker.order)
    }

    pub(crate) fn takers(&self) -> impl Iterator<Item = OrderIx> {
        self.takers.iter().map(|taker| taker.order)
    }

    pub(crate) fn add_taker(&mut self, sequence: u64, order: OrderIx, after: TsNanos) {
        let place = self.takers.partition_point(|other| other.sequence < sequence);
        self.takers.insert(place, Taker { sequence, order, after });
        self.takers_after = self.takers_after.min(after);
    }

    pub(crate) fn remove_taker(&mut self, sequence: u64) {
        self.takers.retain(|taker| taker.sequence != sequence);
        let afters = self.takers.iter().map(|taker| taker.after);
        self.takers_after = afters.min().unwrap_or(TsNanos::MAX);
    }

    pub(crate) fn add_to_auction(&mut self, order: OrderIx, auction: TsNanos) {
        self.auctions.push(Waiting { order, auction });
        self.auction_from = self.auction_from.min(auction);
    }

    pub(crate) fn remove_from_auction(&mut self, order: OrderIx) {
        self.auctions.retain(|waiting| waiting.order != order);
        let auctions = self.auctions.iter().map(|waiting| waiting.auction);
        self.auction_from = auctions.min().unwrap_or(TsNanos::MAX);
    }

    /// Whether a trade at `ts_event` is an auction that somebody waits for.
    #[inline]
    pub(crate) fn is_auction(&self, ts_event: TsNanos) -> bool {
        ts_event >= self.auction_from
    }

    /// Orders that wait for an auction, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = OrderIx> {
        self.auctions.iter().map(|waiting| waiting.order)
    }
}

/// What is left of one trade for our orders (F3).
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    left: Quantity,
    taken: Quantity,
}

impl Budget {
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

    fn ladders() -> (Ladder, Ladder) {
        let mut book = Book::default();
        for (price, sequence) in [(10, 1), (12, 2), (11, 3), (12, 4)] {
            book.buys.add(Price::from_yen(price), sequence, sequence as OrderIx);
            book.sells.add(Price::from_yen(price), sequence, sequence as OrderIx);
        }
        (book.buys, book.sells)
    }

    fn order(ladder: &Ladder) -> Vec<OrderIx> {
        ladder.rungs.iter().map(|rung| rung.order).collect()
    }

    #[test]
    fn the_best_price_stands_first_and_the_older_at_equal_price() {
        let (mut buys, sells) = ladders();
        assert_eq!(order(&buys), [2, 4, 3, 1]);
        assert_eq!(order(&sells), [1, 3, 2, 4]);
        buys.remove(Price::from_yen(12), 4, 4);
        assert_eq!(order(&buys), [2, 3, 1]);
        assert_eq!(buys.first_price(), Some(Price::from_yen(12).units()));
    }

    #[test]
    #[should_panic(expected = "stood elsewhere")]
    fn an_order_is_never_taken_from_another_s_place() {
        let (mut buys, _) = ladders();
        buys.remove(Price::from_yen(11), 4, 4);
    }
}
