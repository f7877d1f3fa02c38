//! //! Tests of a strategy's logic without wasm and without an exchange: give it trades, check its actions, and fill
//! its orders.
//!
//! ```
//! # use kumiki_sdk::prelude::*;
//! # struct FirstTrade { bought: bool }
//! # impl Strategy for FirstTrade {
//! #     fn new(_: &mut Params) -> Result<Self, ParamError> { Ok(Self { bought: false }) }
//! #     fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
//! #         if !self.bought {
//! #             self.bought = true;
//! #             context.submit(Order::market(trade.instrument, Side::Buy, Quantity::new(100)));
//! #         }
//! #     }
//! # }
//! use kumiki_sdk::testing::TestHost;
//!
//! let mut host = TestHost::<FirstTrade>::new("{}").unwrap();
//! assert_eq!(host.trade("1674.1", 300).len(), 1);
//! host.fill_all("1674.2");
//! assert_eq!(host.trade("1674.3", 300).len(), 0);
//! ```

use crate::model::{
    Account, AccountEvent, AccountEventKind, Bar, Fill, Instrument, InstrumentIx, Order,
    OrderEvent, OrderEventKind, OrderStatus, Position, Side, Split, TickBand, Timestamp, Trade,
};
use crate::number::{Money, Price, Quantity};
use crate::params::ParamError;
use crate::runner::{Action, Runner};
use crate::strategy::Strategy;

/// The host's answers when a strategy runs natively. One set for each thread.
pub mod native {
    use std::cell::RefCell;

    use crate::model::{
        Account, AggressorSide, InstrumentIx, LogLevel, Position, Timestamp, WorkingOrder,
    };

    /// The answers.
    #[derive(Debug, Clone, Default)]
    pub struct Answers {
        /// The cash account.
        pub account: Account,
        /// The position in each instrument; 0 without an entry.
        pub positions: Vec<Position>,
        /// Orders that are not done.
        pub working_orders: Vec<WorkingOrder>,
        /// Lines that the strategy wrote.
        pub log: Vec<(LogLevel, String)>,
        /// Parameters that it reported: names with their values as JSON.
        pub parameters: Vec<(String, String)>,
    }

    thread_local! {
        static ANSWERS: RefCell<Answers> = RefCell::default();
    }

    /// Reads or changes the answers of this thread.
    pub fn with<R>(act: impl FnOnce(&mut Answers) -> R) -> R {
        ANSWERS.with_borrow_mut(act)
    }

    /// Only a component needs to know the time when a panic cannot ask the context any more.
    #[inline]
    pub(crate) fn set_now(_now: Timestamp) {}

    pub(crate) fn log(level: LogLevel, _now: Timestamp, message: &str) {
        with(|answers| answers.log.push((level, message.to_owned())));
    }

    pub(crate) fn report(name: &str, value: &str) {
        with(|answers| answers.parameters.push((name.to_owned(), value.to_owned())));
    }

    pub(crate) fn account() -> Account {
        with(|answers| answers.account)
    }

    pub(crate) fn position(instrument: InstrumentIx) -> Position {
        with(|answers| {
            answers.positions.get(usize::from(instrument.0)).copied().unwrap_or_default()
        })
    }

    pub(crate) fn working_orders() -> Vec<WorkingOrder> {
        with(|answers| answers.working_orders.clone())
    }

    pub(crate) fn aggressor_side(_row: u32) -> AggressorSide {
        AggressorSide::NoAggressor
    }
}

/// Runs a strategy natively, one event at a time, on one instrument: `1306.TSE`, lot 100, tick 1.
#[derive(Debug)]
pub struct TestHost<S> {
    runner: Runner<S>,
    working: Vec<Order>,
    fills: u64,
    now: Timestamp,
    last_price: Option<Price>,
}

impl<S: Strategy> TestHost<S> {
    /// Makes the strategy from its parameters (a JSON object), with an empty account.
    ///
    /// # Errors
    /// When the strategy refuses its parameters.
    pub fn new(config: &str) -> Result<Self, ParamError> {
        native::with(|answers| *answers = native::Answers::default());
        let instrument = Instrument {
            id: "1306.TSE".to_owned(),
            lot: Quantity::new(100),
            ticks: vec![TickBand { up_to: Price::from_units(i64::MAX), tick: Price::from_yen(1) }],
        };
        let runner = Runner::new(config, vec![instrument])?;
        Ok(Self { runner, working: Vec::new(), fills: 0, now: Timestamp(0), last_price: None })
    }

    /// The strategy itself.
    pub fn strategy(&self) -> &S {
        self.runner.strategy()
    }

    /// Sets the money in the account, in yen.
    pub fn set_cash(&mut self, yen: i64) {
        native::with(|answers| answers.account.cash = Money::from_yen(yen));
    }

    /// What is held.
    pub fn position(&self) -> Position {
        native::position(InstrumentIx(0))
    }

    /// Lines that the strategy wrote.
    pub fn log(&self) -> Vec<String> {
        native::with(|answers| answers.log.iter().map(|(_, line)| line.clone()).collect())
    }

    /// The parameters that the strategy runs with, given and default ones, in the order in which it
    /// read them: names with their values as JSON.
    pub fn parameters(&self) -> Vec<(String, String)> {
        native::with(|answers| answers.parameters.clone())
    }

    /// Says that events follow.
    pub fn start(&mut self) -> Vec<Action> {
        self.runner.start(self.now);
        self.collect()
    }

    /// One second passes and a trade happens.
    ///
    /// # Panics
    /// When the price is no number.
    pub fn trade(&mut self, price: &str, shares: u64) -> Vec<Action> {
        self.now.0 += 1_000_000_000;
        let price = price.parse().expect("the price of a test trade is a number");
        self.last_price = Some(price);
        self.runner.one_trade(&Trade {
            ts_event: self.now,
            instrument: InstrumentIx(0),
            price,
            quantity: Quantity::new(shares),
            row: 0,
        });
        self.collect()
    }

    /// A bar ends.
    pub fn bar(&mut self, bar: &Bar) -> Vec<Action> {
        self.now = bar.ts_event;
        self.last_price = Some(bar.close);
        self.runner.one_bar(bar);
        self.collect()
    }

    /// Fills every working order wholly at a price, and returns the strategy's actions after that.
    ///
    /// # Panics
    /// When the price is no number.
    pub fn fill_all(&mut self, price: &str) -> Vec<Action> {
        let price: Price = price.parse().expect("the price of a test fill is a number");
        for order in std::mem::take(&mut self.working) {
            self.fills += 1;
            native::with(|answers| {
                answers.positions.resize(1, Position::default());
                apply_fill(&mut answers.positions[0], &mut answers.account, &order, price);
            });
            let fill = Fill {
                trade_id: format!("{}", self.fills),
                last_quantity: order.quantity,
                last_price: price,
                cumulative_quantity: order.quantity,
                leaves_quantity: Quantity::ZERO,
                commission: Money::ZERO,
            };
            self.tell(&order, OrderStatus::Filled, OrderEventKind::Filled(fill));
        }
        self.collect()
    }

    /// Lets every working order expire, and returns the strategy's actions after that.
    pub fn expire_all(&mut self) -> Vec<Action> {
        for order in std::mem::take(&mut self.working) {
            let kind = OrderEventKind::Expired("DAY".to_owned());
            self.tell(&order, OrderStatus::Expired, kind);
        }
        self.collect()
    }

    /// /// Shares are split: every `old_shares` become `new_shares`. Working orders expire first, the position
    /// changes, and the strategy gets the event. Returns the strategy's actions after that. Fractions of a share are
    /// paid in cash at the last price.
    ///
    /// # Panics
    /// When one of them is 0.
    pub fn split(&mut self, old_shares: u32, new_shares: u32) -> Vec<Action> {
        assert!(old_shares > 0 && new_shares > 0, "a split has shares on both sides");
        for order in std::mem::take(&mut self.working) {
            let kind = OrderEventKind::Expired("EX_RIGHTS".to_owned());
            self.tell(&order, OrderStatus::Expired, kind);
        }
        let mut split =
            Split { old_shares, new_shares, quantity: 0, cash_paid: Money::ZERO, last_price: None };
        split.last_price = self.last_price.map(|price| split.price(price));
        self.last_price = split.last_price;
        native::with(|answers| {
            answers.positions.resize(1, Position::default());
            apply_split(&mut answers.positions[0], &mut answers.account, &mut split);
        });
        let kind = AccountEventKind::Split(split);
        let event = AccountEvent { ts_event: self.now, instrument: InstrumentIx(0), kind };
        self.runner.account_events([event]);
        self.collect()
    }

    /// Says that no events follow.
    pub fn stop(&mut self) -> Vec<Action> {
        self.runner.stop(self.now);
        self.collect()
    }

    fn tell(&mut self, order: &Order, status: OrderStatus, kind: OrderEventKind) {
        self.runner.order_events([OrderEvent {
            ts_event: self.now,
            client_order_id: order.client_order_id.clone().unwrap_or_default(),
            venue_order_id: Some("R1".to_owned()),
            instrument: order.instrument,
            status,
            kind,
        }]);
    }

    fn collect(&mut self) -> Vec<Action> {
        let actions = self.runner.take_actions();
        for action in &actions {
            if let Action::Submit(order) = action {
                self.working.push(order.clone());
            }
        }
        actions
    }
}

fn apply_fill(position: &mut Position, account: &mut Account, order: &Order, price: Price) {
    let value = price * order.quantity;
    let shares = i64::try_from(order.quantity.shares()).expect("a test order fits");
    match order.side {
        Side::Buy => {
            position.quantity += shares;
            position.cost += value;
            account.cash -= value;
        }
        Side::Sell => {
            let cost = if position.quantity == 0 {
                Money::ZERO
            } else {
                position.cost / position.quantity * shares
            };
            position.quantity -= shares;
            position.cost -= cost;
            position.realised_pnl += value - cost;
            account.cash += value;
        }
    }
}

fn apply_split(position: &mut Position, account: &mut Account, split: &mut Split) {
    let (new, old) = (i64::from(split.new_shares), i64::from(split.old_shares));
    let shares = position.quantity * new;
    let (whole, rest) = (shares / old, shares % old);
    let price = split.last_price.unwrap_or_default();
    let paid = Money::from_units(price.units() * rest / old);
    // The cost of what was no whole share.
    let units = i128::from(position.cost.units()) * i128::from(rest);
    let part = units.checked_div(i128::from(shares)).unwrap_or(0);
    let cost = Money::from_units(i64::try_from(part).expect("a part of a cost fits"));
    (split.quantity, split.cash_paid) = (whole, paid);
    position.quantity = whole;
    position.cost -= cost;
    position.realised_pnl += paid - cost;
    account.realised_pnl += paid - cost;
    account.cash += paid;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::params::Params;

    /// Buys once, sells above a price, and adjusts that price.
    #[derive(Debug)]
    struct Holds {
        sell_above: Price,
        told: Vec<String>,
    }

    impl Strategy for Holds {
        fn new(params: &mut Params) -> Result<Self, ParamError> {
            let sell_above = params.price("sell_above", Price::from_yen(1_000))?;
            Ok(Self { sell_above, told: Vec::new() })
        }

        fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
            let held = context.position(trade.instrument).shares();
            let (side, quantity) = match held {
                Quantity::ZERO => (Side::Buy, Quantity::new(105)),
                held if trade.price > self.sell_above => (Side::Sell, held),
                _ => return,
            };
            if !context.has_working_orders(trade.instrument) {
                context.submit(Order::market(trade.instrument, side, quantity));
            }
        }

        fn on_order_event(&mut self, _: &mut Context, event: &OrderEvent) {
            self.told.push(format!("{:?}", event.status));
        }

        fn on_account_event(&mut self, context: &mut Context, event: &AccountEvent) {
            let AccountEventKind::Split(split) = &event.kind;
            self.sell_above = split.price(self.sell_above);
            let held = context.position(event.instrument).quantity;
            let cash = context.account().cash;
            self.told.push(format!("split {} held {held} cash {cash}", split.quantity));
        }
    }

    #[test]
    fn a_split_ends_orders_changes_the_position_and_is_told() {
        let mut host = TestHost::<Holds>::new("{}").unwrap();
        host.set_cash(1_000_000);
        assert_eq!(host.parameters(), [("sell_above".to_owned(), "\"1000\"".to_owned())]);
        host.trade("900", 100);
        host.fill_all("900");
        assert_eq!(host.trade("1001", 100).len(), 1, "it sells");
        // Ten for one: 10 shares of 10,010 yen and half a share in cash.
        assert_eq!(host.split(10, 1), []);
        assert_eq!(host.strategy().told, ["Filled", "Expired", "split 10 held 10 cash 910505"]);
        assert_eq!(host.position().quantity, 10);
        assert_eq!(host.position().cost, Money::from_yen(90_000));
        assert_eq!(host.trade("9999", 100), [], "the price that it keeps is adjusted");
        assert_eq!(host.trade("10001", 100).len(), 1, "no order works any more");
    }

    #[test]
    fn prices_of_a_split_are_rounded_to_a_ten_thousandth() {
        let price = |old_shares, new_shares, before: &str| {
            let split = Split {
                old_shares,
                new_shares,
                quantity: 0,
                cash_paid: Money::ZERO,
                last_price: None,
            };
            split.price(before.parse().unwrap()).to_string()
        };
        assert_eq!(price(1, 3, "1000"), "333.3333");
        assert_eq!(price(2, 3, "1000"), "666.6667");
        assert_eq!(price(10, 1, "123.4"), "1234");
        assert_eq!(price(1, 1_000, "0.0001"), "0.0001", "never 0");
    }
}
