//! Fills on bars (F10). The path of prices inside a bar is unknown: where it matters, the worse one
//! is taken.

use domain::market::{Bar, BarGranularity, Trade};
use domain::time::NANOS_PER_MINUTE;
use domain::{InstrumentIx, OrderSide, Price, Quantity, TimeInForce, TsNanos};

use crate::Exchange;
use crate::book::ParticipationBudget;
use crate::matching::FillPrices;
use crate::order::{OrderIx, Standing};

/// A bar, as the exchange matches it.
#[derive(Debug, Clone, Copy)]
struct Span {
    bar: Bar,
    /// When it begins; an order that comes later does not take part.
    start: TsNanos,
}

impl Span {
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
        if self.markets[usize::from(instrument.0)].range.is_left_by(bar.low, bar.high) {
            self.leave_range(instrument, (bar.low, bar.high), bar.ts_event);
        }
        let market = &self.markets[usize::from(instrument.0)];
        if market.book.is_empty() {
            return;
        }
        let mut budget =
            ParticipationBudget::new(self.model.budget(bar.volume, market.instrument.lot));
        let span = Span { bar: Bar { instrument, ..*bar }, start: self.start_of(bar) };
        self.bar_auction(span, TimeInForce::AtTheOpen, &mut budget);
        self.bar_takers(span, &mut budget);
        self.markets[usize::from(instrument.0)].last_price = Some(bar.close);
        self.bar_stops(span, OrderSide::Buy, &mut budget);
        self.bar_stops(span, OrderSide::Sell, &mut budget);
        self.bar_resting(span, OrderSide::Buy, &mut budget);
        self.bar_resting(span, OrderSide::Sell, &mut budget);
        self.bar_auction(span, TimeInForce::AtTheClose, &mut budget);
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

    /// Orders whose auction opens or closes this bar.
    fn bar_auction(&mut self, span: Span, life: TimeInForce, budget: &mut ParticipationBudget) {
        // A minute's bar is the auction when it begins with it; a day's bar has all of them.
        let last_auction = match span.bar.granularity {
            BarGranularity::Minute => span.start,
            BarGranularity::Day => span.bar.ts_event,
        };
        let market = usize::from(span.bar.instrument.0);
        let waited = self.reached_in_bar(market, life, span.start, last_auction);
        let is_open = life == TimeInForce::AtTheOpen;
        let price = if is_open { span.bar.open } else { span.bar.close };
        // How much of the bar traded at that price is unknown.
        let no_queue = self.model.queue_ahead == Some(0);
        let quantity = if no_queue { span.bar.volume } else { Quantity::ZERO };
        let Bar { instrument, ts_event, .. } = span.bar;
        let print = Trade { instrument, ts_event, price, quantity };
        for number in &waited {
            // A limit order that turned market may be done by now.
            if self.orders[*number].standing != Standing::Nowhere {
                self.fill_in_auction(*number, print, budget);
            }
        }
        self.expire_rests(&waited, span.bar.ts_event);
    }

    fn takes_part(&self, number: OrderIx, span: Span) -> bool {
        let order = &self.orders[number];
        order.after <= span.start && order.arrival <= span.start
    }

    /// Orders that take liquidity fill at the open plus slippage, inside the bar's range.
    fn bar_takers(&mut self, span: Span, budget: &mut ParticipationBudget) {
        let mut index = 0;
        while let Some(number) = self.markets[usize::from(span.bar.instrument.0)].book.taker(index)
        {
            if self.takes_part(number, span) {
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
            if self.takes_part(number, span) {
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

    /// Resting orders fill when the bar trades through them, at their price or at a better open.
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
            if self.takes_part(number, span) {
                let opens_beyond = (limit.units() - span.bar.open.units()) * side.sign() > 0;
                let price = if opens_beyond { span.bar.open } else { limit };
                self.fill_in_bar(number, span, FillPrices { last: price, market: price }, budget);
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
