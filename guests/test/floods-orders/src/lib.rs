//! Sends orders that are accepted, and changes and cancels of them, at every trade: the parameter
//! `flood` says what, `count` how many, `tags` how many tags each order has.

use kumiki_sdk::OrderChange;
use kumiki_sdk::prelude::*;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flood {
    /// Market orders.
    Orders,
    /// A limit order, changes of it, a cancel.
    Changes,
    /// Limit orders, each cancelled at once.
    CancelReplace,
    /// One market order for so many lots that every trade fills a part of it.
    Fills,
}

const FLOODS: [(&str, Flood); 4] = [
    ("orders", Flood::Orders),
    ("changes", Flood::Changes),
    ("cancel-replace", Flood::CancelReplace),
    ("fills", Flood::Fills),
];
/// Characters of an id.
const ID_CHARACTERS: usize = 36;
/// Bytes of a tag with its key.
const TAG_BYTES: usize = 256;

/// The strategy.
#[derive(Debug)]
pub struct FloodsOrders {
    flood: Flood,
    count: u64,
    tags: usize,
    made: u64,
}

impl FloodsOrders {
    /// The order with an id as long as it may be, of characters that files have to escape.
    fn dressed(&mut self, order: Order) -> Order {
        self.made += 1;
        let number = self.made.to_string();
        let id = format!("{}{number}", "\"".repeat(ID_CHARACTERS - number.len()));
        let text = "x".repeat(TAG_BYTES - "x=".len());
        (0..self.tags).fold(order.with_id(id), |order, _| order.with_tag("x", &text))
    }

    /// A limit order at the price of a trade, which nothing fills before the next one.
    fn rest(&mut self, context: &mut Context, trade: &Trade) -> String {
        let lot = context.instrument(trade.instrument).lot;
        let order = Order::limit(trade.instrument, Side::Buy, lot, trade.price);
        let order = self.dressed(order);
        context.submit(order)
    }

    fn buy(&mut self, context: &mut Context, trade: &Trade, lots: u64) {
        let lot = context.instrument(trade.instrument).lot;
        let quantity = Quantity::new(lot.shares() * lots);
        let order = self.dressed(Order::market(trade.instrument, Side::Buy, quantity));
        context.submit(order);
    }
}

impl Strategy for FloodsOrders {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        let name = params.text("flood", "orders")?;
        let known = FLOODS.iter().find(|(known, _)| *known == name);
        let flood = known.ok_or_else(|| ParamError::new(format!("no flood is called `{name}`")))?.1;
        Ok(Self {
            flood,
            count: params.count("count", 1, 1..=usize::MAX)? as u64,
            tags: params.count("tags", 0, 0..=usize::MAX)?,
            made: 0,
        })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        match self.flood {
            Flood::Orders => (0..self.count).for_each(|_| self.buy(context, trade, 1)),
            Flood::Fills if context.has_working_orders(trade.instrument) => {}
            Flood::Fills => self.buy(context, trade, self.count),
            Flood::Changes => {
                let id = self.rest(context, trade);
                let lot = context.instrument(trade.instrument).lot;
                for number in 0..self.count {
                    let quantity = Some(Quantity::new(lot.shares() * (2 + number % 2)));
                    context.modify(&id, OrderChange { quantity, ..OrderChange::default() });
                }
                context.cancel(&id);
            }
            Flood::CancelReplace => {
                for _ in 0..self.count {
                    let id = self.rest(context, trade);
                    context.cancel(&id);
                }
            }
        }
    }
}

kumiki_sdk::register!(FloodsOrders);
