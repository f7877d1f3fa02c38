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
#[derive(Debug)]
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
#[derive(Debug)]
pub(crate) struct Book {
    /// Oldest first.
    takers: Vec<Taker>,
    /// No taker matches before this.
    takers_after: TsNanos,
    /// Resting limit orders.
    pub(crate) buys: Ladder,
    pub(crate) sells: Ladder,
    /// Stops that wait for their trigger.
    pub(crate) stop_buys: Ladder,
    pub(crate) stop_sells: Ladder,
    /// Oldest first. An order that also rests (funari) stands on both lists.
    auctions: Vec<Waiting>,
    /// No auction comes before this.
    auction_from: TsNanos,
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

    /// What a trade must be to matter here. `touches` says whether a trade at the price of a
    /// resting order matters, not only one through it.
    #[inline]
    pub(crate) fn reach(&self, touches: bool) -> Reach {
        let through = i64::from(!touches);
        Reach {
            takers_after: self.takers_after,
            auction_from: self.auction_from,
            resting: Span {
                low: self.buys.first_price().map_or(i64::MIN, |price| price - through),
                high: self.sells.first_price().map_or(i64::MAX, |price| price + through),
            },
            stops: Span {
                low: self.stop_sells.first_price().unwrap_or(i64::MIN),
                high: self.stop_buys.first_price().unwrap_or(i64::MAX),
            },
        }
    }
}

/// Two prices; what is at or outside them matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    low: i64,
    high: i64,
}

impl Span {
    #[inline]
    const fn is_hit_by(self, price: i64) -> bool {
        price <= self.low || price >= self.high
    }
}

/// What a trade must be to matter to a book.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    takers_after: TsNanos,
    auction_from: TsNanos,
    resting: Span,
    stops: Span,
}

impl Reach {
    /// Whether a trade may fill, trigger or end an order. One of fewer than `needed` shares fills
    /// none.
    #[inline]
    pub(crate) fn is_hit_by(self, ts_event: u64, price: i64, quantity: u64, needed: u64) -> bool {
        let may_fill = ts_event > self.takers_after.nanos() || self.resting.is_hit_by(price);
        may_fill && quantity >= needed
            || self.stops.is_hit_by(price)
            || ts_event >= self.auction_from.nanos()
    }
}

/// What is left of one trade for our orders (F3).
#[derive(Debug)]
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

    #[test]
    fn what_matters_depends_on_the_kind_of_order() {
        let mut book = Book::default();
        let hit = |book: &Book, touches, price: i64, quantity| {
            book.reach(touches).is_hit_by(5, Price::from_yen(price).units(), quantity, 100)
        };
        assert!(!hit(&book, false, 10, 100), "nobody is there");
        book.buys.add(Price::from_yen(10), 1, 1);
        assert!(!hit(&book, false, 10, 100) && hit(&book, true, 10, 100));
        assert!(hit(&book, false, 9, 100) && !hit(&book, false, 9, 99));
        book.stop_buys.add(Price::from_yen(20), 2, 2);
        assert!(hit(&book, false, 20, 1), "a stop needs no volume");
        book.add_taker(3, 3, TsNanos::from_nanos(5));
        assert!(!hit(&book, false, 15, 100), "the same instant");
        book.add_taker(4, 4, TsNanos::from_nanos(4));
        assert!(hit(&book, false, 15, 100));
        book.remove_taker(4);
        assert!(!hit(&book, false, 15, 100));
        book.add_to_auction(5, TsNanos::from_nanos(5));
        assert!(hit(&book, false, 15, 1));
    }
}
