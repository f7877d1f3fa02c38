//! Sends all kinds of commands, chosen by a seeded generator of its own, and writes down what it
//! sees. Two replays of it agree only when every event came in the same order.

use kumiki_sdk::OrderChange;
use kumiki_sdk::prelude::*;

/// The strategy. Parameters: `seed`, and `every` (mean number of trades between two commands).
#[derive(Debug)]
pub struct TradesAtRandom {
    state: u64,
    every: u64,
    orders: Vec<String>,
    /// Mixes everything seen; told at the end.
    seen: u64,
}

impl TradesAtRandom {
    /// The next number below `bound` (SplitMix64).
    fn draw(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn mix(&mut self, value: u64) {
        self.seen = (self.seen ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
    }

    fn order(&mut self, context: &mut Context, index: InstrumentIx, price: Price) {
        let (lot, tick) = {
            let instrument = context.instrument(index);
            (instrument.lot, instrument.tick_at(price))
        };
        let side = if self.draw(2) == 0 { Side::Buy } else { Side::Sell };
        let quantity = lot * (1 + self.draw(9));
        let order = if self.draw(3) == 0 {
            Order::market(index, side, quantity)
        } else {
            let steps = self.draw(21) as i64 - 10;
            let price = context.instrument(index).floor_to_tick(price);
            Order::limit(index, side, quantity, price + tick * steps)
        };
        self.orders.push(context.submit(order));
    }

    fn decide(&mut self, context: &mut Context, index: InstrumentIx, price: Price) {
        if self.draw(self.every) != 0 {
            return;
        }
        let held = context.position(index);
        self.mix(held.quantity as u64);
        self.mix(context.account().free_cash().units() as u64);
        match (self.draw(10), self.orders.last().cloned()) {
            (0, Some(id)) => context.cancel(&id),
            (1, Some(id)) => {
                let quantity = Some(Quantity::new(100 * (1 + self.draw(9))));
                context.modify(&id, OrderChange { quantity, ..OrderChange::default() });
            }
            (2, _) => context.cancel_all(Some(index)),
            (3, _) => {
                let working = context.working_orders();
                self.mix(working.len() as u64);
                self.order(context, index, price);
            }
            (4, _) => context.emit_signal(
                index,
                SignalKind::Annotate,
                None,
                Some(price),
                Some("random"),
                None,
            ),
            _ => self.order(context, index, price),
        }
    }
}

impl Strategy for TradesAtRandom {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self {
            state: params.integer("seed", 1, 0..=i64::MAX)? as u64,
            every: params.integer("every", 50, 1..=1_000_000)? as u64,
            orders: Vec::new(),
            seen: 0,
        })
    }

    fn on_start(&mut self, context: &mut Context) {
        self.mix(context.now().0);
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.mix(trade.ts_event.0);
        self.mix(u64::from(trade.instrument.0));
        self.mix(trade.price.units() as u64);
        self.mix(trade.quantity.shares());
        self.decide(context, trade.instrument, trade.price);
    }

    fn on_bar(&mut self, context: &mut Context, bar: &Bar) {
        self.mix(bar.ts_event.0);
        for price in [bar.open, bar.high, bar.low, bar.close] {
            self.mix(price.units() as u64);
        }
        self.mix(bar.volume.shares());
        self.decide(context, bar.instrument, bar.close);
    }

    fn on_order_event(&mut self, context: &mut Context, event: &OrderEvent) {
        self.mix(event.ts_event.0);
        self.mix(event.status as u64);
        if let OrderEventKind::Filled(fill) = &event.kind {
            self.mix(fill.last_price.units() as u64);
            if self.draw(8) == 0 {
                let lot = context.instrument(event.instrument).lot;
                context.submit(Order::market(event.instrument, Side::Sell, lot));
            }
        }
    }

    fn on_account_event(&mut self, context: &mut Context, event: &AccountEvent) {
        self.mix(event.ts_event.0);
        self.mix(u64::from(event.instrument.0));
        let AccountEventKind::Split(split) = &event.kind else { return };
        self.mix(u64::from(split.old_shares) << 32 | u64::from(split.new_shares));
        self.mix(split.quantity as u64);
        self.mix(split.cash_paid.units() as u64);
        let Some(price) = split.last_price else { return };
        self.mix(price.units() as u64);
        self.decide(context, event.instrument, price);
    }

    fn on_stop(&mut self, context: &mut Context) {
        let seen = self.seen;
        context.narrate(None, "seen", &format!("{seen:016x}"));
    }
}

kumiki_sdk::register!(TradesAtRandom);
