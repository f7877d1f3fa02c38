//! Buys once and keeps it: the yardstick for every other strategy.

use kumiki_sdk::prelude::*;

/// The strategy. Parameter: `quantity` (shares).
#[derive(Debug)]
pub struct BuyAndHold {
    quantity: Quantity,
}

impl Strategy for BuyAndHold {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { quantity: params.quantity("quantity", Quantity::new(100))? })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.hold(context, trade.instrument, trade.price);
    }

    fn on_bar(&mut self, context: &mut Context, bar: &Bar) {
        self.hold(context, bar.instrument, bar.close);
    }
}

impl BuyAndHold {
    fn hold(&self, context: &mut Context, instrument: InstrumentIx, price: Price) {
        // An order that expired or was refused is sent again at the next trade or bar.
        if !context.has_working_orders(instrument) && context.position(instrument).is_flat() {
            let id = context.submit(Order::market(instrument, Side::Buy, self.quantity));
            context.emit_signal(
                instrument,
                SignalKind::EntryLong,
                Some(Side::Buy),
                Some(price),
                Some("entry"),
                None,
            );
            context.narrate(
                Some(&id),
                "buy and hold",
                "nothing is held, so the position is opened",
            );
        }
    }
}

kumiki_sdk::register!(BuyAndHold);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_sdk::Action;
    use kumiki_sdk::testing::TestHost;

    #[test]
    fn buys_once_and_keeps_it() {
        let mut host = TestHost::<BuyAndHold>::new(r#"{"quantity": 300}"#).unwrap();
        let actions = host.trade("1000", 100);
        assert!(matches!(actions[0], Action::Submit(_)));
        assert!(matches!(actions[1], Action::EmitSignal(_)));
        assert!(matches!(actions[2], Action::Narrate(_)));
        assert_eq!(host.trade("1001", 100), []);
        host.fill_all("1001");
        assert_eq!(host.position().quantity, 300);
        assert_eq!(host.trade("500", 100), []);
    }
}
