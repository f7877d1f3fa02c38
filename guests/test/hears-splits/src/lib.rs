//! Writes down what it hears of splits beside what it can ask then, and sends an order at that time.
//! It buys at its first trade and leaves an order behind that lives for some days.

use kumiki_sdk::prelude::*;

/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// The strategy.
#[derive(Debug)]
pub struct HearsSplits {
    begun: bool,
}

impl Strategy for HearsSplits {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { begun: false })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let (index, lot) = (trade.instrument, context.instrument(trade.instrument).lot);
        let cheap = context
            .instrument(index)
            .floor_to_tick(Price::from_units(trade.price.units() / 100 * 95));
        let days = TimeInForce::Gtd(Timestamp(trade.ts_event.0 + 3 * DAY));
        context.submit(Order::market(index, Side::Buy, lot).with_id("first"));
        context.submit(
            Order::limit(index, Side::Buy, lot, cheap).with_id("patient").with_time_in_force(days),
        );
        // Asked now, so that an old answer would show after the split.
        let held = context.position(index).quantity;
        context.info(&format!("held before: {held}"));
    }

    fn on_order_event(&mut self, context: &mut Context, event: &OrderEvent) {
        let held = context.position(event.instrument).quantity;
        let id = &event.client_order_id;
        if let OrderEventKind::Expired(why) = &event.kind {
            context.narrate(Some(id), "expired", &format!("{why}, {held} held"));
        }
    }

    fn on_account_event(&mut self, context: &mut Context, event: &AccountEvent) {
        let AccountEventKind::Split(split) = &event.kind else { return };
        let held = context.position(event.instrument).quantity;
        let working = context.working_orders().len();
        let price = split.last_price.unwrap_or_default();
        let text = format!(
            "{} for {}, {} shares and {} yen, last price {price}; {held} held, {working} working",
            split.new_shares, split.old_shares, split.quantity, split.cash_paid
        );
        let price = context.instrument(event.instrument).floor_to_tick(price);
        let lot = context.instrument(event.instrument).lot;
        let order = Order::limit(event.instrument, Side::Buy, lot, price).with_id("after");
        let id = context.submit(order);
        context.narrate(Some(&id), "split", &text);
    }
}

kumiki_sdk::register!(HearsSplits);
