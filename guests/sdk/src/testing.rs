//! Tests of a strategy's logic without wasm and without an exchange: give it trades, look at what
//! it asks for, tell it what became of its orders.
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
    Account, Bar, Fill, Instrument, InstrumentIx, Order, OrderEvent, OrderEventKind, OrderStatus,
    Position, Side, TickBand, Timestamp, Trade,
};
use crate::number::{Money, Price, Quantity};
use crate::params::ParamError;
use crate::runner::{Action, Runner};
use crate::strategy::Strategy;

/// Answers to a strategy's questions when it runs natively. One set for each thread.
pub mod native {
    use std::cell::RefCell;

    use crate::model::{
        Account, AggressorSide, InstrumentIx, LogLevel, Position, Timestamp, WorkingOrder,
    };

    /// What the questions are answered with.
    #[derive(Debug, Clone, Default)]
    pub struct Answers {
        /// The cash account.
        pub account: Account,
        /// What is held of each instrument; nothing where there is no entry.
        pub positions: Vec<Position>,
        /// Orders that are not done.
        pub working_orders: Vec<WorkingOrder>,
        /// Lines that the strategy wrote.
        pub log: Vec<(LogLevel, String)>,
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
        Ok(Self { runner, working: Vec::new(), fills: 0, now: Timestamp(0) })
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
        self.runner.one_trade(&Trade {
            ts_event: self.now,
            instrument: InstrumentIx(0),
            price: price.parse().expect("the price of a test trade is a number"),
            quantity: Quantity::new(shares),
            row: 0,
        });
        self.collect()
    }

    /// A bar ends.
    pub fn bar(&mut self, bar: &Bar) -> Vec<Action> {
        self.now = bar.ts_event;
        self.runner.one_bar(bar);
        self.collect()
    }

    /// Fills every working order wholly at a price, and tells what the strategy does then.
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
                trade_id: format!("T-{}", self.fills),
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

    /// Lets every working order expire, and tells what the strategy does then.
    pub fn expire_all(&mut self) -> Vec<Action> {
        for order in std::mem::take(&mut self.working) {
            let kind = OrderEventKind::Expired("DAY".to_owned());
            self.tell(&order, OrderStatus::Expired, kind);
        }
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
            venue_order_id: Some("V-1".to_owned()),
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
