//! Does what the last yen of each trade's price says, so that a test writes a strategy with trades.
//!
//! | yen | what it does |
//! |---|---|
//! | 1, 2 | buys, sells 100 shares at the market |
//! | 3 | buys 100 shares with a limit 50 yen lower |
//! | 4 | cancels all |
//! | 5 | sells 200 shares at the market |
//! | 6 | sends 100 orders |
//! | 7 | panics |
//! | others | nothing |
//!
//! It writes its position into the log at each trade, and each event of its orders.

use kumiki_sdk::prelude::*;

/// Shares of an order.
const SHARES: u64 = 100;

/// The strategy.
#[derive(Debug)]
pub struct ActsByPrice;

impl Strategy for ActsByPrice {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self)
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        let (at, yen) = (trade.instrument, trade.price.units() / 10_000);
        let held = context.position(at).quantity;
        context.info(&format!("HELD {held} at {yen}"));
        let shares = Quantity::new(SHARES);
        let market = |side, shares| Order::market(at, side, shares);
        match yen % 10 {
            1 => drop(context.submit(market(Side::Buy, shares))),
            2 => drop(context.submit(market(Side::Sell, shares))),
            3 => {
                let price = Price::from_units((yen - 50) * 10_000);
                context.submit(Order::limit(at, Side::Buy, shares, price));
            }
            4 => context.cancel_all(None),
            5 => drop(context.submit(market(Side::Sell, Quantity::new(2 * SHARES)))),
            6 => (0..100).for_each(|_| drop(context.submit(market(Side::Buy, shares)))),
            7 => panic!("a trade told it to"),
            _ => {}
        }
    }

    fn on_order_event(&mut self, context: &mut Context, event: &OrderEvent) {
        context.info(&format!("EVENT {:?}", event.status));
    }
}

kumiki_sdk::register!(ActsByPrice);
