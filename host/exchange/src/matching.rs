//! Fills: which of our orders a trade of the market can fill, at which price, and how much (F1-F5).
//!
//! The rule between this file and `look_ahead`: whatever a trade can do here, to an order or to its
//! place in the queue, makes `look_ahead` stop at that trade. A change of what matters here is a change
//! there; debug builds hold every trade that was skipped against this code.

mod look_ahead;

use domain::market::Trade;
use domain::order::OrderTrigger;
use domain::{
    Fill, Instrument, Money, OrderEventKind, OrderSide, Price, Quantity, TickTable, TsNanos,
};

use crate::auction::Auction;
use crate::book::ParticipationBudget;
use crate::order::{Order, OrderIx, Standing};
use crate::{Exchange, numbered};

/// The price of a fill, and that of the market before slippage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillPrices {
    pub(crate) last: Price,
    pub(crate) market: Price,
}

/// Whether fills were of market prices, or on bars of prices, that are off the grid of the instrument's tick table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OffGrid {
    /// The table of the first such fill's day.
    ticks: Option<TickTable>,
}

impl OffGrid {
    pub(crate) fn note(&mut self, price: Price, ticks: TickTable) {
        if self.ticks.is_none() && !ticks.is_aligned(price) {
            self.ticks = Some(ticks);
        }
    }

    /// What to tell of an instrument at the end, in the same words for all runs of a sweep; nothing where every
    /// price was on the grid.
    pub(crate) fn line(&self, instrument: &Instrument) -> Option<String> {
        let (ticks, id) = (self.ticks?, &instrument.id);
        Some(format!(
            "TICKS: {id}: there are fills of market prices that the tick table `{ticks}` does not \
             have. Slippage, limits and the day's range do not fit this data either. Give the \
             right table with --ticks or in instruments.csv"
        ))
    }
}

impl Exchange {
    /// Lets our orders match a trade of the market.
    pub fn take_trade(&mut self, trade: &Trade) {
        let Trade { ts_event, instrument, price, quantity } = *trade;
        if self.markets[usize::from(instrument.0)].range.is_left_by(price, price) {
            self.leave_range(instrument, (price, price, price), ts_event);
        }
        let is_auction = self.pass_auction(instrument, ts_event);
        let market = &self.markets[usize::from(instrument.0)];
        if market.book.is_empty() {
            return;
        }
        let print = *trade;
        let mut budget =
            ParticipationBudget::new(self.model.budget(quantity, market.instrument.lot));
        if is_auction {
            let auction = Auction { print, clock: ts_event };
            self.match_auction(auction, &mut budget, |order| order.may_match_at(ts_event));
        } else {
            // A trade that is too small to fill an order shows all the same that the price has left it.
            self.match_takers(print, &mut budget);
            self.match_resting(print, OrderSide::Buy, &mut budget);
            self.match_resting(print, OrderSide::Sell, &mut budget);
        }
        self.markets[usize::from(instrument.0)].last_price = Some(price);
        self.trigger_stops(print, OrderSide::Buy);
        self.trigger_stops(print, OrderSide::Sell);
    }

    fn match_takers(&mut self, print: Trade, budget: &mut ParticipationBudget) {
        let mut index = 0;
        while let Some(number) = self.markets[usize::from(print.instrument.0)].book.taker(index) {
            if self.orders[number].may_match_at(print.ts_event) {
                self.match_taker(number, print, budget);
            }
            // A taker that is done or rests now is gone from the list.
            if self.orders[number].standing == Standing::Taker {
                index += 1;
            }
        }
    }

    /// Fills an order that takes liquidity, or lets it rest when the price has left it (F4).
    fn match_taker(&mut self, number: OrderIx, print: Trade, budget: &mut ParticipationBudget) {
        match self.taker_price(number, print.price) {
            Some(_) if budget.is_used_up() => {}
            Some(price) => {
                let quantity = budget.take(self.orders[number].record.leaves());
                let prices = FillPrices { last: price, market: print.price };
                self.fill(number, print.ts_event, prices, quantity);
            }
            None => self.rest_instead(number),
        }
    }

    fn match_resting(&mut self, print: Trade, side: OrderSide, budget: &mut ParticipationBudget) {
        let counts_touches = self.model.queue_ahead.is_some();
        let mut index = 0;
        while counts_touches || !budget.is_used_up() {
            let book = &self.markets[usize::from(print.instrument.0)].book;
            let levels = if side == OrderSide::Buy { &book.buys } else { &book.sells };
            let Some(number) = levels.get(index).map(|entry| entry.order) else { break };
            let limit = self.orders[number].record.request.price.unwrap_or_default();
            // Above zero where the trade is through the limit.
            let beyond = (limit.units() - print.price.units()) * side.sign();
            if beyond < 0 || beyond == 0 && !counts_touches {
                break;
            }
            if self.orders[number].may_match_at(print.ts_event) {
                let most = self.move_queue(number, print, beyond == 0, budget);
                let quantity = budget.take(self.orders[number].record.leaves().min(most));
                if !quantity.is_zero() {
                    let prices = FillPrices { last: limit, market: print.price };
                    self.fill(number, print.ts_event, prices, quantity);
                }
            }
            if self.orders[number].standing == Standing::Resting {
                index += 1;
            }
        }
    }

    /// Lets a trade work off the queue ahead of a resting order; tells how many of its shares are
    /// left for the order (F4).
    pub(crate) fn move_queue(
        &mut self,
        number: OrderIx,
        print: Trade,
        is_touch: bool,
        budget: &ParticipationBudget,
    ) -> Quantity {
        let lot = self.market_of(number).instrument.lot;
        let order = &mut self.orders[number];
        if !is_touch {
            // Whoever stood ahead at this price is done.
            order.queue_left = Quantity::ZERO;
            return order.record.leaves();
        }
        let ahead = order.queue_left;
        order.queue_left = ahead.saturating_sub(print.quantity);
        print.quantity.saturating_sub(ahead).saturating_sub(budget.taken()).floor_to(lot)
    }

    /// Stops that the trade has reached become new orders at its time (F5).
    fn trigger_stops(&mut self, print: Trade, side: OrderSide) {
        let mut index = 0;
        loop {
            let book = &self.markets[usize::from(print.instrument.0)].book;
            let levels = if side == OrderSide::Buy { &book.stop_buys } else { &book.stop_sells };
            let Some(number) = levels.get(index).map(|entry| entry.order) else { break };
            let trigger = self.orders[number].record.request.trigger_price.unwrap_or_default();
            if (print.price.units() - trigger.units()) * side.sign() < 0 {
                break;
            }
            if self.orders[number].may_match_at(print.ts_event) {
                self.trigger(number, print.ts_event);
            } else {
                index += 1;
            }
        }
    }

    /// Makes a stop an ordinary order.
    pub(crate) fn trigger(&mut self, number: OrderIx, now: TsNanos) {
        let order = &self.orders[number];
        let trigger = order.record.request.trigger_price.unwrap_or_default();
        let (before, is_buy) = (order.sequence, order.is_buy());
        let book = &mut self.market_mut(number).book;
        let levels = if is_buy { &mut book.stop_buys } else { &mut book.stop_sells };
        levels.remove(trigger, before, number);
        let sequence = self.next_sequence();
        let order = &mut self.orders[number];
        order.record.ts_triggered = Some(now);
        (order.after, order.arrival, order.sequence) = (now, now, sequence);
        self.enter_book(number);
    }

    /// F2: the print and the slippage, inside the day's range and never better than the print; for a limit
    /// order never past its limit, and none once the print itself is past it.
    pub(crate) fn taker_price(&self, number: OrderIx, print: Price) -> Option<Price> {
        let order = &self.orders[number];
        let market = self.market_of(number);
        let steps = i64::from(self.model.slippage_ticks) * order.record.request.side.sign();
        let slipped = order.worst.clamp(market.instrument.ticks.moved(print, steps));
        // Ticks that do not fit the prices may have no price of the day beyond the print.
        let slipped = if order.is_buy() { slipped.max(print) } else { slipped.min(print) };
        match order.record.request.price {
            None => Some(slipped),
            Some(limit) if order.is_buy() => (print <= limit).then(|| slipped.min(limit)),
            Some(limit) => (print >= limit).then(|| slipped.max(limit)),
        }
    }

    /// Puts an order into the book: a stop before its trigger, an order that takes liquidity, or
    /// one that rests (F4).
    pub(crate) fn enter_book(&mut self, number: OrderIx) {
        let order = &self.orders[number];
        let (sequence, after, is_buy) = (order.sequence, order.after, order.is_buy());
        if order.waits_for_trigger() {
            let trigger = order.record.request.trigger_price.unwrap_or_default();
            let book = &mut self.market_mut(number).book;
            let levels = if is_buy { &mut book.stop_buys } else { &mut book.stop_sells };
            levels.add(trigger, sequence, number);
            self.orders[number].standing = Standing::Stop;
        } else if self.is_marketable(order) {
            let has_limit = order.record.request.price.is_some();
            self.market_mut(number).book.add_taker(sequence, number, after, has_limit);
            self.orders[number].standing = Standing::Taker;
        } else {
            self.rest(number);
        }
    }

    /// Whether an order takes liquidity at the last price. Before the first price every order does.
    fn is_marketable(&self, order: &Order) -> bool {
        let last = self.markets[usize::from(order.record.request.instrument.0)].last_price;
        match (order.record.request.price, last) {
            (None, _) | (_, None) => true,
            (Some(limit), Some(last)) if order.is_buy() => limit >= last,
            (Some(limit), Some(last)) => limit <= last,
        }
    }

    /// The price has left an order that took liquidity: from now on it rests (F4).
    pub(crate) fn rest_instead(&mut self, number: OrderIx) {
        let sequence = self.orders[number].sequence;
        self.market_mut(number).book.remove_taker(sequence);
        self.rest(number);
    }

    fn rest(&mut self, number: OrderIx) {
        let order = &mut self.orders[number];
        order.standing = Standing::Resting;
        let (sequence, is_buy) = (order.sequence, order.is_buy());
        // Only orders with a limit come here: the others are always marketable.
        let price = order.record.request.price.unwrap_or_default();
        let book = &mut self.market_mut(number).book;
        let levels = if is_buy { &mut book.buys } else { &mut book.sells };
        levels.add(price, sequence, number);
    }

    pub(crate) fn fill(
        &mut self,
        number: OrderIx,
        now: TsNanos,
        prices: FillPrices,
        quantity: Quantity,
    ) {
        let price = prices.last;
        self.trade_numbers += 1;
        let trade_id = numbered(None, self.trade_numbers);
        let order = &mut self.orders[number];
        let (instrument, side) = (order.record.request.instrument, order.record.request.side);
        order.record.filled += quantity;
        // The cash check has shown that every value fits.
        order.record.filled_value += Money::checked_notional(price, quantity).unwrap_or_default();
        let fee = self.model.commission.fee(order.record.filled_value) - order.record.commission;
        order.record.commission += fee;
        let done = order.record.leaves().is_zero();
        self.note_round_trip(number, price, quantity, fee);
        let market = self.market_mut(number);
        for price in [prices.market, price] {
            market.off_grid.note(price, market.instrument.ticks);
        }
        self.account.book(instrument, side, price, quantity, fee);
        self.our_volume += quantity;
        self.release_filled(number, quantity);
        self.transition(number, OrderTrigger::Fill { done }, now, |record| {
            OrderEventKind::Filled(Fill {
                side,
                trade_id,
                last_quantity: quantity,
                last_price: price,
                market_price: prices.market,
                cumulative_quantity: record.filled,
                leaves_quantity: record.leaves(),
                commission: Some(fee),
            })
        });
        if done {
            self.close(number);
        }
    }
}
