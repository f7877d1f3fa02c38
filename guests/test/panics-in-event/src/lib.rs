//! Panics at the trade with the number of its parameter `at`; before that it buys once.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct PanicsInEvent {
    at: i64,
    trades: i64,
}

impl Strategy for PanicsInEvent {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { at: params.integer("at", 3, 1..=i64::MAX)?, trades: 0 })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.trades += 1;
        if self.trades == 1 {
            let lot = context.instrument(trade.instrument).lot;
            context.submit(Order::market(trade.instrument, Side::Buy, lot));
        }
        assert!(self.trades < self.at, "the price {} was too much for me", trade.price);
    }
}

kumiki_sdk::register!(PanicsInEvent);
