//! Turns windows of market events into callbacks. One loop, for wasm and for native runs.

use crate::context::Context;
use crate::host;
use crate::model::{
    AccountEvent, Bar, Instrument, InstrumentIx, Narrative, Order, OrderChange, OrderEvent, Signal,
    Timestamp, Trade,
};
use crate::params::{ParamError, Params};
use crate::strategy::Strategy;
use crate::trades::Trades;

/// What a strategy asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send an order; its client order id is set.
    Submit(Order),
    /// Change an order.
    Modify {
        /// The order.
        client_order_id: String,
        /// The change.
        change: OrderChange,
    },
    /// Cancel an order.
    Cancel {
        /// The order.
        client_order_id: String,
    },
    /// Cancel all working orders.
    CancelAll {
        /// Of this instrument; `None` for all.
        instrument: Option<InstrumentIx>,
    },
    /// Set a mark.
    EmitSignal(Signal),
    /// Keep a decision.
    Narrate(Narrative),
}

/// Trades as columns of equal length, in the contract's integers.
#[derive(Debug, Clone, Copy)]
pub struct TradeSlices<'a> {
    /// Nanoseconds since 1970 in UTC.
    pub ts_event: &'a [u64],
    /// Index of the instrument.
    pub instrument: &'a [u16],
    /// 1/10,000 yen.
    pub price: &'a [i64],
    /// Shares of each trade.
    pub quantity: &'a [u64],
}

/// A strategy and its context, ready for events.
#[derive(Debug)]
pub struct Runner<S> {
    strategy: S,
    context: Context,
}

impl<S: Strategy> Runner<S> {
    /// Makes the strategy, and reports the parameters that it runs with.
    ///
    /// # Errors
    /// When it refuses its parameters, or does not know one of them.
    pub fn new(config: &str, instruments: Vec<Instrument>) -> Result<Self, ParamError> {
        let mut params = Params::from_json(config)?;
        let strategy = S::new(&mut params)?;
        params.finish()?;
        for (name, value) in params.in_effect() {
            host::report(name, &value.to_string());
        }
        Ok(Self { strategy, context: Context::new(instruments) })
    }

    /// The strategy itself, for tests.
    pub fn strategy(&self) -> &S {
        &self.strategy
    }

    /// What was asked for since the last call.
    #[inline]
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.context.actions)
    }

    /// Whether something was asked for since the last call of [`Runner::drain_actions`].
    #[inline]
    pub fn has_actions(&self) -> bool {
        !self.context.actions.is_empty()
    }

    /// Hands over what was asked for where it is one order and `take` takes it. Tells whether it was.
    pub fn hand_over_one(&mut self, take: impl FnOnce(&Order) -> bool) -> bool {
        let [Action::Submit(order)] = self.context.actions.as_slice() else { return false };
        let is_taken = take(order);
        if is_taken {
            self.context.actions.clear();
        }
        is_taken
    }

    /// What was asked for since the last call; the memory that it was in is used again.
    pub fn drain_actions(&mut self) -> impl Iterator<Item = Action> + '_ {
        self.context.actions.drain(..)
    }

    /// Events follow.
    pub fn start(&mut self, now: Timestamp) {
        self.context.set_now(now);
        self.strategy.on_start(&mut self.context);
    }

    /// No events follow.
    pub fn stop(&mut self, now: Timestamp) {
        self.context.set_now(now);
        self.strategy.on_stop(&mut self.context);
    }

    /// One trade.
    #[inline]
    pub fn one_trade(&mut self, trade: &Trade) {
        self.context.forget();
        self.context.set_now(trade.ts_event);
        self.strategy.on_trade_tick(&mut self.context, trade);
    }

    /// One bar.
    #[inline]
    pub fn one_bar(&mut self, bar: &Bar) {
        self.context.forget();
        self.context.set_now(bar.ts_event);
        self.strategy.on_bar(&mut self.context, bar);
    }

    /// The rows of a window from `from` up to `limit`, or up to the first at which the strategy
    /// asks for something. Tells how many rows of the window are handled.
    ///
    /// # Panics
    /// When the strategy is offered trades and takes none.
    pub fn trades(&mut self, rows: TradeSlices<'_>, from: u32, limit: u32) -> u32 {
        self.context.forget();
        let mut trades = Trades::new(rows, from, limit, &self.context);
        while trades.row() < limit && !self.has_actions() {
            let before = trades.row();
            self.strategy.on_trade_ticks(&mut self.context, &mut trades);
            assert!(trades.row() > before, "on_trade_ticks took none of the trades");
        }
        trades.row()
    }

    /// Like [`Runner::trades`], for bars.
    pub fn bars(&mut self, bars: &[Bar], from: u32, limit: u32) -> u32 {
        for row in from..limit {
            self.one_bar(&bars[row as usize]);
            if !self.context.actions.is_empty() {
                return row + 1;
            }
        }
        limit
    }

    /// What happened to the strategy's orders, in order.
    pub fn order_events(&mut self, events: impl IntoIterator<Item = OrderEvent>) {
        events.into_iter().for_each(|event| self.order_event(&event));
    }

    /// What happened to one of the strategy's orders.
    #[inline]
    pub fn order_event(&mut self, event: &OrderEvent) {
        self.context.take_notice(event);
        self.strategy.on_order_event(&mut self.context, event);
    }

    /// What happened to the account without an order, in order.
    pub fn account_events(&mut self, events: impl IntoIterator<Item = AccountEvent>) {
        for event in events {
            self.context.take_account_notice(&event);
            self.strategy.on_account_event(&mut self.context, &event);
        }
    }
}
