//! Orders that can be filled, in the order in which they are.

use domain::{Price, Quantity};

use super::order::OrderIx;

/// A resting limit order's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resting {
    pub(super) price: Price,
    pub(super) sequence: u64,
    pub(super) order: OrderIx,
}

/// Orders that can be filled: those that take liquidity, oldest first; resting buys from the
/// highest price and resting sells from the lowest, older ones first at the same price.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) takers: Vec<OrderIx>,
    pub(super) buys: Vec<Resting>,
    pub(super) sells: Vec<Resting>,
}

impl Book {
    pub(super) fn len(&self) -> usize {
        self.takers.len() + self.buys.len() + self.sells.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn add_taker(&mut self, order: OrderIx) {
        self.takers.push(order);
    }

    pub(super) fn add_buy(&mut self, resting: Resting) {
        let before = |other: &Resting| {
            other.price > resting.price
                || other.price == resting.price && other.sequence < resting.sequence
        };
        let place = self.buys.partition_point(before);
        self.buys.insert(place, resting);
    }

    pub(super) fn add_sell(&mut self, resting: Resting) {
        let before = |other: &Resting| {
            other.price < resting.price
                || other.price == resting.price && other.sequence < resting.sequence
        };
        let place = self.sells.partition_point(before);
        self.sells.insert(place, resting);
    }

    pub(super) fn remove(&mut self, order: OrderIx) {
        self.takers.retain(|other| *other != order);
        self.buys.retain(|other| other.order != order);
        self.sells.retain(|other| other.order != order);
    }

    /// Whether a trade at `price` goes through a resting order.
    #[inline]
    pub(super) fn is_crossed_by(&self, price: i64) -> bool {
        self.buys.first().is_some_and(|best| price < best.price.units())
            || self.sells.first().is_some_and(|best| price > best.price.units())
    }
}

/// What is left of one trade for our orders (F3).
#[derive(Debug)]
pub(super) struct Budget {
    left: Quantity,
}

impl Budget {
    pub(super) fn new(shares: Quantity) -> Self {
        Self { left: shares }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.left.is_zero()
    }

    /// Takes up to `wanted` shares.
    pub(super) fn take(&mut self, wanted: Quantity) -> Quantity {
        let taken = wanted.min(self.left);
        self.left = self.left.saturating_sub(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting(price: i64, sequence: u64) -> Resting {
        Resting { price: Price::from_yen(price), sequence, order: sequence as OrderIx }
    }

    #[test]
    fn the_best_price_stands_first_and_the_older_at_equal_price() {
        let mut book = Book::default();
        for (price, sequence) in [(10, 1), (12, 2), (11, 3), (12, 4)] {
            book.add_buy(resting(price, sequence));
            book.add_sell(resting(price, sequence + 10));
        }
        let order = |side: &[Resting]| side.iter().map(|place| place.sequence).collect::<Vec<_>>();
        assert_eq!(order(&book.buys), [2, 4, 3, 1]);
        assert_eq!(order(&book.sells), [11, 13, 12, 14]);
        book.remove(4);
        assert_eq!(book.len(), 7);
    }

    #[test]
    fn only_a_trade_through_the_price_crosses() {
        let mut book = Book::default();
        book.add_buy(resting(10, 1));
        assert!(!book.is_crossed_by(Price::from_yen(10).units()));
        assert!(book.is_crossed_by(Price::from_yen(10).units() - 1));
    }
}
