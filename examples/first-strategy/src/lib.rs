//! Buys one lot when the price falls below `below`, and sells it when the price has risen by `gain`.
//! Made for one instrument: its two prices follow that one's splits.

use kumiki_sdk::prelude::*;

/// The strategy. Parameters, in yen: `below`, `gain`.
pub struct Dip {
    below: Price,
    gain: Price,
}

impl Strategy for Dip {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self {
            below: params.price("below", Price::from_yen(1_000))?,
            gain: params.price("gain", Price::from_yen(5))?,
        })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        if context.has_working_orders(trade.instrument) {
            return;
        }
        let position = context.position(trade.instrument);
        match position.average_price() {
            None if trade.price < self.below => {
                let lot = context.instrument(trade.instrument).lot;
                let order = context.submit(Order::market(trade.instrument, Side::Buy, lot));
                let why = format!("{} is below {}", trade.price, self.below);
                context.narrate(Some(&order), "Buy the dip", &why);
            }
            Some(paid) if trade.price >= paid + self.gain => {
                let all = position.shares();
                let order = context.submit(Order::market(trade.instrument, Side::Sell, all));
                let why = format!("{} is {} or more above {paid}", trade.price, self.gain);
                context.narrate(Some(&order), "Take the gain", &why);
            }
            _ => {}
        }
    }

    fn on_account_event(&mut self, _: &mut Context, event: &AccountEvent) {
        // Without this a split into two looks like a dip by half.
        if let AccountEventKind::Split(split) = &event.kind {
            self.below = split.price(self.below);
            self.gain = split.price(self.gain);
        }
    }
}

kumiki_sdk::register!(Dip);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_sdk::testing::TestHost;

    #[test]
    fn buys_the_dip_and_sells_the_rise() {
        let mut host = TestHost::<Dip>::new(r#"{"below": 990, "gain": 10}"#).unwrap();
        assert!(host.trade("990", 100).is_empty());
        assert_eq!(host.trade("989", 100).len(), 2, "an order and its reason");
        host.fill_all("989");
        assert!(host.trade("998", 100).is_empty());
        assert_eq!(host.trade("999", 100).len(), 2);
        host.fill_all("999");
        assert!(host.position().is_flat());
    }

    #[test]
    fn a_split_is_no_dip() {
        let mut host = TestHost::<Dip>::new(r#"{"below": 990, "gain": 10}"#).unwrap();
        assert!(host.trade("1000", 100).is_empty());
        assert!(host.split(1, 2).is_empty());
        assert!(host.trade("500", 100).is_empty());
        assert_eq!(host.trade("494.9", 100).len(), 2, "a dip of the new shares");
    }
}
