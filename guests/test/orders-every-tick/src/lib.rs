//! Sends a market order at every trade: buys when flat, else sells what it holds.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct OrdersEveryTick;

impl Strategy for OrdersEveryTick {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self)
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        let position = context.position(trade.instrument);
        let order = if position.is_flat() {
            let lot = context.instrument(trade.instrument).lot;
            Order::market(trade.instrument, Side::Buy, lot)
        } else {
            Order::market(trade.instrument, Side::Sell, position.shares())
        };
        context.submit(order);
    }
}

kumiki_sdk::register!(OrdersEveryTick);
