//! Auctions: orders that wait for one take part in its trade only (F6).
//!
//! The rule between this file and `look_ahead`: a trade is an auction from the book's `auction_from`
//! on, whatever its price and size, and `look_ahead` stops at each such trade, also where it fills
//! nothing, because what waited expires. Code here that acts earlier is a change there.

use domain::market::Trade;
use domain::{Quantity, TimeInForce, TsNanos};

use crate::Exchange;
use crate::book::ParticipationBudget;
use crate::matching::FillPrices;
use crate::order::{OrderIx, Standing};

impl Exchange {
    /// The trade is an auction that some orders wait for: they and the orders that take liquidity
    /// share it, oldest first. What is left of those that waited expires.
    pub(crate) fn match_auction(&mut self, print: Trade, budget: &mut ParticipationBudget) {
        let book = &self.markets[usize::from(print.instrument.0)].book;
        let waited: Vec<OrderIx> =
            book.waiting().filter(|number| self.is_its_auction(*number, print)).collect();
        // An order that turns market now may be among the takers as well.
        let takers = book.takers().filter(|number| !self.is_its_auction(*number, print));
        let mut all: Vec<OrderIx> = takers.chain(waited.iter().copied()).collect();
        all.sort_by_key(|number| self.orders[*number].sequence);
        for number in all {
            if !self.orders[number].may_match_at(print.ts_event) {
                continue;
            }
            if self.is_its_auction(number, print) {
                self.fill_in_auction(number, print, budget);
            } else {
                self.match_taker(number, print, budget);
            }
        }
        self.expire_rests(&waited, print.ts_event);
    }

    fn is_its_auction(&self, number: OrderIx, print: Trade) -> bool {
        self.orders[number].auction.is_some_and(|auction| print.ts_event >= auction)
    }

    /// Fills an order at the auction's own price. A limit must be better than that price, or at it
    /// with the whole queue ahead inside the auction's volume.
    pub(crate) fn fill_in_auction(
        &mut self,
        number: OrderIx,
        print: Trade,
        budget: &mut ParticipationBudget,
    ) {
        let lot = self.market_of(number).instrument.lot;
        let order = &self.orders[number];
        let side = order.record.request.side;
        let limit = order.record.request.price.filter(|_| !order.funari);
        let better = limit.map(|limit| (limit.units() - print.price.units()) * side.sign());
        let most = match (better, self.model.queue_ahead) {
            (None | Some(1..), _) => order.record.leaves(),
            (Some(0), Some(ahead)) => print
                .quantity
                .saturating_sub(Quantity::new(ahead))
                .saturating_sub(budget.taken())
                .floor_to(lot),
            _ => Quantity::ZERO,
        };
        let quantity = budget.take(order.record.leaves().min(most));
        if !quantity.is_zero() {
            let prices = FillPrices { last: print.price, market: print.price };
            self.fill(number, print.ts_event, prices, quantity);
        }
    }

    /// What is left of orders whose auction is over expires.
    pub(crate) fn expire_rests(&mut self, waited: &[OrderIx], now: TsNanos) {
        for number in waited {
            if self.orders[*number].standing != Standing::Nowhere {
                self.expire(*number, now, None);
            }
        }
    }

    /// Orders of one kind whose auction is inside a bar that begins at `start`.
    pub(crate) fn reached_in_bar(
        &self,
        instrument: usize,
        life: TimeInForce,
        start: TsNanos,
        last_auction: TsNanos,
    ) -> Vec<OrderIx> {
        let is_reached = |number: &OrderIx| {
            let order = &self.orders[*number];
            order.record.request.time_in_force == life
                && order.after <= start
                && order.arrival <= start
                && order.auction.is_some_and(|auction| auction <= last_auction)
        };
        self.markets[instrument].book.waiting().filter(is_reached).collect()
    }
}
