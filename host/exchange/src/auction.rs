//! Auctions (F6-AUCTION): one price for all orders that are better than it, those that wait for the
//! auction and those that work in the session alike.
//!
//! The rule between this file and `look_ahead`: the first trade from a market's `auction_from` on is
//! an auction, whatever its price and size, and `look_ahead` stops there wherever the market has an
//! order. Code here that acts on any other row is a change there.

use domain::TsNanos;
use domain::market::Trade;
use domain::{OrderSide, Price, Quantity};

use crate::Exchange;
use crate::book::ParticipationBudget;
use crate::matching::FillPrices;
use crate::order::{Order, OrderIx, Standing};

/// An auction, as a trade or a bar shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Auction {
    /// Its price, the shares that may be those of its price, and the time of its fills.
    pub(crate) print: Trade,
    /// Orders that wait for an auction up to this time take part.
    pub(crate) clock: TsNanos,
}

impl Auction {
    /// How far a limit is better than the auction's price.
    fn better_by(self, limit: Price, side: OrderSide) -> i64 {
        (limit.units() - self.print.price.units()) * side.sign()
    }
}

impl Exchange {
    /// Fills our orders in an auction by price, then by age: market orders first. What is left of the
    /// orders that waited for it expires. Orders for which `may_match` is false take no part.
    pub(crate) fn match_auction(
        &mut self,
        auction: Auction,
        budget: &mut ParticipationBudget,
        may_match: impl Fn(&Order) -> bool,
    ) {
        let Trade { instrument, price, ts_event, .. } = auction.print;
        let book = &self.markets[usize::from(instrument.0)].book;
        let is_waited_for = |number: &OrderIx| self.waits_for(*number, auction);
        let waited: Vec<OrderIx> = book.waiting().filter(is_waited_for).collect();
        // An order that turns market now (funari) may be among the others as well.
        let working = book.takers().chain(book.buys.reached_at(price));
        let working = working.chain(book.sells.reached_at(price));
        let working = working.filter(|number| !is_waited_for(number));
        let mut all: Vec<OrderIx> = waited.iter().copied().chain(working).collect();
        all.retain(|number| may_match(&self.orders[*number]));
        all.sort_by_key(|number| self.auction_rank(*number, auction));
        for number in all {
            self.fill_in_auction(number, auction, budget);
        }
        for number in waited {
            if self.orders[number].standing != Standing::Nowhere {
                self.expire(number, ts_event, None);
            }
        }
    }

    fn waits_for(&self, number: OrderIx, auction: Auction) -> bool {
        self.orders[number].auction.is_some_and(|wanted| auction.clock >= wanted)
    }

    /// The limit of an order in an auction; none for market orders and for those that are so now.
    fn auction_limit(&self, number: OrderIx, auction: Auction) -> Option<Price> {
        let order = &self.orders[number];
        let is_market = order.funari && self.waits_for(number, auction);
        order.record.request.price.filter(|_| !is_market)
    }

    /// Price, then time: the smallest is filled first.
    fn auction_rank(&self, number: OrderIx, auction: Auction) -> (u8, i64, u64) {
        let order = &self.orders[number];
        match self.auction_limit(number, auction) {
            None => (0, 0, order.sequence),
            Some(limit) if order.is_buy() => (1, -limit.units(), order.sequence),
            Some(limit) => (2, limit.units(), order.sequence),
        }
    }

    /// Fills an order at the auction's own price: all of it where its limit is better, and at that
    /// very limit from what the queue ahead leaves. A limit order that took liquidity and is not
    /// better rests from now on.
    fn fill_in_auction(
        &mut self,
        number: OrderIx,
        auction: Auction,
        budget: &mut ParticipationBudget,
    ) {
        let print = auction.print;
        let side = self.orders[number].record.request.side;
        let limit = self.auction_limit(number, auction);
        let better_by = limit.map(|limit| auction.better_by(limit, side));
        let most = match better_by {
            None => self.orders[number].record.leaves(),
            Some(1..) => self.move_queue(number, print, false, budget),
            Some(0) if self.model.queue_ahead.is_some() => {
                self.move_queue(number, print, true, budget)
            }
            Some(_) => Quantity::ZERO,
        };
        let quantity = budget.take(self.orders[number].record.leaves().min(most));
        if !quantity.is_zero() {
            let prices = FillPrices { last: print.price, market: print.price };
            self.fill(number, print.ts_event, prices, quantity);
        }
        let is_left = better_by.is_some_and(|better_by| better_by <= 0);
        if is_left && self.orders[number].standing == Standing::Taker {
            self.rest_instead(number);
        }
    }
}
