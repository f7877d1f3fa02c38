//! Fills: which of our orders a trade of the market can fill, at which price, and how much (F1-F4).

use std::sync::Arc;

use domain::order::OrderTrigger;
use domain::strategy::TradeColumns;
use domain::{Fill, InstrumentIx, Money, OrderEventKind, OrderType, Price, Quantity, TsNanos};

use super::Exchange;
use super::book::{Budget, Resting};
use super::order::{Order, OrderIx};

/// A trade of the market, as the exchange matches it.
#[derive(Debug, Clone, Copy)]
struct Print {
    ts_event: TsNanos,
    price: Price,
}

impl Exchange {
    /// The first row of `from..to` before which or at which something can happen here. Only looks;
    /// changes nothing, so it may be asked for any part of the rows, in any pieces.
    #[must_use]
    #[inline]
    pub fn next_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        if self.open.is_empty() && self.timed.is_empty() {
            return to;
        }
        self.find_stop(rows, from, to)
    }

    fn find_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let mut end = to;
        if let Some(due) = self.next_due() {
            end = from + rows.ts_event[from..to].partition_point(|ts| *ts < due.nanos());
        }
        for (index, market) in self.markets.iter().enumerate() {
            if !market.book.is_empty() {
                end = self.find_match(index, rows, from, end);
            }
        }
        end
    }

    /// The first row that may fill or move an order of this market.
    fn find_match(
        &self,
        instrument: usize,
        rows: TradeColumns<'_>,
        from: usize,
        to: usize,
    ) -> usize {
        let market = &self.markets[instrument];
        let lot = market.instrument.lot;
        let has_budget =
            |row: usize| !self.model.budget(Quantity::new(rows.quantity[row]), lot).is_zero();
        // Takers look at every trade after the event that made them.
        let takers_after = market.book.takers.iter().map(|order| self.orders[*order].after).min();
        for row in from..to {
            let ours = usize::from(rows.instrument[row]) == instrument;
            let taken = takers_after.is_some_and(|after| rows.ts_event[row] > after.nanos());
            if ours && (taken || market.book.is_crossed_by(rows.price[row])) && has_budget(row) {
                return row;
            }
        }
        to
    }

    /// Lets our orders match a trade of the market.
    pub fn take_trade(
        &mut self,
        instrument: InstrumentIx,
        ts_event: TsNanos,
        price: Price,
        quantity: Quantity,
    ) {
        let market = &self.markets[usize::from(instrument.0)];
        // A price outside the day's range says that the range is not known; nothing is filled.
        if market.book.is_empty() || !market.limits.contains(price) {
            return;
        }
        let mut budget = Budget::new(self.model.budget(quantity, market.instrument.lot));
        if budget.is_used_up() {
            return;
        }
        let print = Print { ts_event, price };
        self.match_takers(instrument, print, &mut budget);
        self.match_resting(instrument, print, &mut budget);
    }

    fn match_takers(&mut self, instrument: InstrumentIx, print: Print, budget: &mut Budget) {
        let takers = self.markets[usize::from(instrument.0)].book.takers.clone();
        for index in takers {
            if !self.may_match(index, print) {
                continue;
            }
            match self.taker_price(index, print) {
                Some(_) if budget.is_used_up() => {}
                Some(price) => {
                    let quantity = budget.take(self.orders[index].leaves());
                    self.fill(index, print.ts_event, price, quantity);
                }
                None => {
                    // The price has left it: from now on it rests (F4).
                    self.markets[usize::from(instrument.0)].book.remove(index);
                    self.rest(index);
                }
            }
        }
    }

    fn match_resting(&mut self, instrument: InstrumentIx, print: Print, budget: &mut Budget) {
        let book = &self.markets[usize::from(instrument.0)].book;
        let buys = book.buys.iter().take_while(|resting| print.price < resting.price);
        let sells = book.sells.iter().take_while(|resting| print.price > resting.price);
        let crossed: Vec<Resting> = buys.chain(sells).copied().collect();
        for resting in crossed {
            if !budget.is_used_up() && self.may_match(resting.order, print) {
                let quantity = budget.take(self.orders[resting.order].leaves());
                self.fill(resting.order, print.ts_event, resting.price, quantity);
            }
        }
    }

    /// F1: strictly later than the event behind the order, and not before its arrival.
    fn may_match(&self, index: OrderIx, print: Print) -> bool {
        let order = &self.orders[index];
        print.ts_event > order.after && print.ts_event >= order.arrival
    }

    /// F2: the print and the slippage, inside the day's range; for a limit order never past its
    /// limit, and none once the print itself is past it.
    fn taker_price(&self, index: OrderIx, print: Print) -> Option<Price> {
        let order = &self.orders[index];
        let market = &self.markets[usize::from(order.request.instrument.0)];
        let tick = market.instrument.ticks.tick_at(print.price).units();
        let slippage = i64::from(self.model.slippage_ticks) * tick * order.request.side.sign();
        let slipped = market.limits.clamp(Price::from_units(print.price.units() + slippage));
        match order.request.price {
            None => Some(slipped),
            Some(limit) if order.is_buy() => (print.price <= limit).then(|| slipped.min(limit)),
            Some(limit) => (print.price >= limit).then(|| slipped.max(limit)),
        }
    }

    /// Puts an accepted order where it belongs (F4).
    pub(super) fn enter_book(&mut self, index: OrderIx) {
        if self.is_marketable(&self.orders[index]) {
            let instrument = self.orders[index].request.instrument;
            self.markets[usize::from(instrument.0)].book.add_taker(index);
        } else {
            self.rest(index);
        }
    }

    /// Whether an order takes liquidity at the last price. Before the first price every order does.
    fn is_marketable(&self, order: &Order) -> bool {
        let last = self.markets[usize::from(order.request.instrument.0)].last_price;
        match (order.request.order_type, order.request.price, last) {
            (OrderType::Market, _, _) | (_, _, None) | (_, None, _) => true,
            (_, Some(limit), Some(last)) if order.is_buy() => limit >= last,
            (_, Some(limit), Some(last)) => limit <= last,
        }
    }

    fn rest(&mut self, index: OrderIx) {
        let order = &self.orders[index];
        let Some(price) = order.request.price else { return };
        let resting = Resting { price, sequence: order.sequence, order: index };
        let buys = order.is_buy();
        let book = &mut self.markets[usize::from(order.request.instrument.0)].book;
        if buys { book.add_buy(resting) } else { book.add_sell(resting) }
    }

    fn fill(&mut self, index: OrderIx, now: TsNanos, price: Price, quantity: Quantity) {
        self.trade_numbers += 1;
        let trade_id: Arc<str> = Arc::from(format!("T-{}", self.trade_numbers));
        let (instrument, side) = {
            let request = &self.orders[index].request;
            (request.instrument, request.side)
        };
        self.account.book(instrument, side, price, quantity, Money::ZERO);
        self.our_volume += quantity;
        self.count_fill(index, price, quantity);
        let done = self.orders[index].leaves().is_zero();
        self.happen(index, OrderTrigger::Fill { done }, now, |order| {
            OrderEventKind::Filled(Fill {
                side,
                trade_id,
                last_quantity: quantity,
                last_price: price,
                cumulative_quantity: order.filled,
                leaves_quantity: order.leaves(),
                commission: Money::ZERO,
            })
        });
        if done {
            self.close(index);
        }
    }

    /// Counts a fill and lets go of what was held back for its shares.
    fn count_fill(&mut self, index: OrderIx, price: Price, quantity: Quantity) {
        let order = &mut self.orders[index];
        order.filled += quantity;
        // Both values were checked when the order was taken.
        order.filled_value += Money::checked_notional(price, quantity).unwrap_or_default();
        if order.is_buy() {
            let share = Money::checked_notional(order.worst_price, quantity).unwrap_or_default();
            order.reserved -= share;
            self.account.release(share);
        } else {
            let instrument = usize::from(order.request.instrument.0);
            let market = &mut self.markets[instrument];
            market.selling = market.selling.saturating_sub(quantity);
        }
    }
}
