//! Fills on bars (F10). The path of prices inside a bar is unknown: where it matters, the worse one
//! is taken.
//!
//! The rule between this file and `look_ahead`: a bar of a market whose book is empty does nothing
//! here, so `next_bar_stop` may skip it and nothing else. Code here that moves something of an empty
//! book is a change there; debug builds hold every bar that was skipped against this code.

use domain::market::{Bar, BarGranularity, Trade};
use domain::time::NANOS_PER_MINUTE;
use domain::{InstrumentIx, OrderSide, Price, Quantity, TsNanos};

use crate::Exchange;
use crate::auction::Auction;
use crate::book::ParticipationBudget;
use crate::matching::FillPrices;
use crate::order::{Order, OrderIx, Standing};

/// A bar, as the exchange matches it.
#[derive(Debug, Clone, Copy)]
struct Span {
    bar: Bar,
    /// When it begins; an order that comes later does not take part.
    start: TsNanos,
}

impl Span {
    /// The auction at a price of the bar, with orders that wait for one up to `clock`. How much of the
    /// bar traded at that price is unknown, so only an empty queue ahead lets a touch fill.
    fn auction(self, price: Price, clock: TsNanos, has_queue: bool) -> Auction {
        let Bar { instrument, ts_event, volume, .. } = self.bar;
        let quantity = if has_queue { Quantity::ZERO } else { volume };
        Auction { print: Trade { instrument, ts_event, price, quantity }, clock }
    }

    /// An order takes part in the first bar that begins at or after its arrival.
    fn takes_part(self, order: &Order) -> bool {
        order.after <= self.start && order.arrival <= self.start
    }

    fn clamp(self, price: Price) -> Price {
        price.clamp(self.bar.low, self.bar.high)
    }

    /// How far the bar's best price for resting orders of a side goes beyond a limit.
    fn beyond(self, limit: Price, side: OrderSide) -> i64 {
        let best = if side == OrderSide::Buy { self.bar.low } else { self.bar.high };
        (limit.units() - best.units()) * side.sign()
    }

    /// The worse of two prices for a side.
    fn worse(one: Price, other: Price, side: OrderSide) -> Price {
        if side == OrderSide::Buy { one.max(other) } else { one.min(other) }
    }
}

impl Exchange {
    /// Lets our orders match a bar of the market. What was due up to the bar's end comes before.
    ///
    /// # Panics
    /// When a day's bar comes on a day that did not begin with [`TradingHours::in_one_session`]:
    /// orders for its auctions would end at lunch.
    ///
    /// [`TradingHours::in_one_session`]: domain::session::TradingHours::in_one_session
    pub fn take_bar(&mut self, instrument: InstrumentIx, bar: &Bar) {
        let is_seen_whole = self.hours.is_none_or(|hours| hours.is_one_session());
        assert!(bar.granularity != BarGranularity::Day || is_seen_whole, "the day has sessions");
        self.take_prices(instrument, bar, (bar.open, bar.open));
        let start = self.start_of(bar);
        let opens_with_auction = start >= self.markets[usize::from(instrument.0)].auction_from;
        self.pass_auction(instrument, bar.last_nanosecond());
        let market = &self.markets[usize::from(instrument.0)];
        if market.book.is_empty() {
            return self.take_prices(instrument, bar, (bar.low, bar.high));
        }
        let fills_before = self.trade_numbers;
        let mut budget =
            ParticipationBudget::new(self.model.budget(bar.volume, market.instrument.lot));
        let span = Span { bar: Bar { instrument, ..*bar }, start };
        let has_queue = self.model.queue_ahead != Some(0);
        if opens_with_auction {
            let auction = span.auction(bar.open, start, has_queue);
            self.match_auction(auction, &mut budget, |order| span.takes_part(order));
        } else {
            self.bar_takers(span, &mut budget);
        }
        // Whoever fills at the open needs no cash for prices that come after it.
        self.take_prices(instrument, bar, (bar.low, bar.high));
        self.markets[usize::from(instrument.0)].last_price = Some(bar.close);
        self.bar_stops(span, OrderSide::Buy, &mut budget);
        self.bar_stops(span, OrderSide::Sell, &mut budget);
        self.bar_resting(span, OrderSide::Buy, &mut budget);
        self.bar_resting(span, OrderSide::Sell, &mut budget);
        if bar.granularity == BarGranularity::Day {
            let auction = span.auction(bar.close, bar.ts_event, has_queue);
            self.match_auction(auction, &mut budget, |order| span.takes_part(order));
        }
        if self.trade_numbers != fills_before {
            // Whatever of it they filled at, a bar off the grid is none of the tick table's market.
            let market = &mut self.markets[usize::from(instrument.0)];
            for price in [bar.open, bar.high, bar.low, bar.close] {
                market.off_grid.note(price, market.instrument.ticks);
            }
        }
    }

    /// Prices of a bar, the lowest and the highest, have traded: outside of the day's range they make it wider.
    fn take_prices(&mut self, instrument: InstrumentIx, bar: &Bar, (low, high): (Price, Price)) {
        if self.markets[usize::from(instrument.0)].range.is_left_by(low, high) {
            self.leave_range(instrument, (bar.open, low, high), bar.ts_event);
        }
    }

    /// When a bar begins: a minute before its end, or the day's first session.
    fn start_of(&self, bar: &Bar) -> TsNanos {
        match bar.granularity {
            BarGranularity::Minute => {
                TsNanos::from_nanos(bar.ts_event.nanos().saturating_sub(NANOS_PER_MINUTE))
            }
            BarGranularity::Day => self.hours.map_or(bar.ts_event, |hours| hours.morning_open),
        }
    }

    /// Orders that take liquidity fill at the open plus slippage, inside the bar's range.
    fn bar_takers(&mut self, span: Span, budget: &mut ParticipationBudget) {
        let mut index = 0;
        while let Some(number) = self.markets[usize::from(span.bar.instrument.0)].book.taker(index)
        {
            if span.takes_part(&self.orders[number]) {
                match self.taker_price(number, span.bar.open) {
                    Some(price) => {
                        let prices = FillPrices { last: span.clamp(price), market: span.bar.open };
                        self.fill_in_bar(number, span, prices, budget);
                    }
                    None => self.rest_instead(number),
                }
            }
            if self.orders[number].standing == Standing::Taker {
                index += 1;
            }
        }
    }

    /// Stops that the bar reaches fill at the worse of trigger and open plus slippage.
    fn bar_stops(&mut self, span: Span, side: OrderSide, budget: &mut ParticipationBudget) {
        let mut index = 0;
        loop {
            let book = &self.markets[usize::from(span.bar.instrument.0)].book;
            let levels = if side == OrderSide::Buy { &book.stop_buys } else { &book.stop_sells };
            let Some(number) = levels.get(index).map(|entry| entry.order) else { break };
            let trigger = self.orders[number].record.request.trigger_price.unwrap_or_default();
            let farthest = if side == OrderSide::Buy { span.bar.high } else { span.bar.low };
            if (farthest.units() - trigger.units()) * side.sign() < 0 {
                break;
            }
            if span.takes_part(&self.orders[number]) {
                self.trigger(number, span.bar.ts_event);
                self.fill_triggered(number, span, trigger, budget);
            } else {
                index += 1;
            }
        }
    }

    fn fill_triggered(
        &mut self,
        number: OrderIx,
        span: Span,
        trigger: Price,
        budget: &mut ParticipationBudget,
    ) {
        let side = self.orders[number].record.request.side;
        let base = Span::worse(trigger, span.bar.open, side);
        if let Some(price) = self.taker_price(number, base) {
            let prices = FillPrices { last: span.clamp(price), market: base };
            return self.fill_in_bar(number, span, prices, budget);
        }
        // Opened beyond the limit: the bar may come back to it, after the trigger for certain.
        let was_at_open = (span.bar.open.units() - trigger.units()) * side.sign() >= 0;
        let limit = self.orders[number].record.request.price.unwrap_or_default();
        if was_at_open && span.beyond(limit, side) > 0 {
            self.fill_in_bar(number, span, FillPrices { last: limit, market: limit }, budget);
        }
    }

    /// Resting orders fill at their price when the bar trades through it; in an auction at its open they
    /// were filled before.
    fn bar_resting(&mut self, span: Span, side: OrderSide, budget: &mut ParticipationBudget) {
        let mut index = 0;
        while !budget.is_used_up() {
            let book = &self.markets[usize::from(span.bar.instrument.0)].book;
            let levels = if side == OrderSide::Buy { &book.buys } else { &book.sells };
            let Some(number) = levels.get(index).map(|entry| entry.order) else { break };
            let limit = self.orders[number].record.request.price.unwrap_or_default();
            let beyond = span.beyond(limit, side);
            if beyond < 0 || beyond == 0 && self.model.queue_ahead != Some(0) {
                break;
            }
            if span.takes_part(&self.orders[number]) {
                self.fill_in_bar(number, span, FillPrices { last: limit, market: limit }, budget);
            }
            if self.orders[number].standing == Standing::Resting {
                index += 1;
            }
        }
    }

    fn fill_in_bar(
        &mut self,
        number: OrderIx,
        span: Span,
        prices: FillPrices,
        budget: &mut ParticipationBudget,
    ) {
        let quantity = budget.take(self.orders[number].record.leaves());
        if !quantity.is_zero() {
            self.fill(number, span.bar.ts_event, prices, quantity);
        }
    }
}
