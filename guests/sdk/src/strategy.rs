//! The one trait that a strategy implements.

use crate::context::Context;
use crate::model::{AccountEvent, Bar, OrderEvent, Trade};
use crate::params::{ParamError, Params};
use crate::trades::Trades;

/// A trading strategy. Every callback but [`Strategy::new`] does nothing unless written.
////// The host calls one callback at a time, in the order of the virtual clock. It does the actions of a callback
///right after the callback returns. At one instant, the events of the strategy's orders come before the trade that
///caused them.
pub trait Strategy: Sized {
    /// Makes the strategy from its parameters. The SDK refuses parameters that it does not read.
    ///
    /// # Errors
    /// A message for the user; it ends the run before the first event.
    fn new(params: &mut Params) -> Result<Self, ParamError>;

    /// Events follow. No price is known yet.
    fn on_start(&mut self, context: &mut Context) {
        let _ = context;
    }

    /// A trade happened on the market.
    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        let _ = (context, trade);
    }

    /// Trades happened, one after the other. Unless written, each goes to [`Strategy::on_trade_tick`].
    ///
    /// A strategy that does little for each trade may take them here in a loop of its own, which saves
    /// the call for each: [`Trades::next`] gives them until it has asked for something, and
    /// [`Trades::prices`] many prices at once. It takes at least one. In live trading and in strict replays trades come one by one to `on_trade_tick`
    /// alone, so both must do the same.
    fn on_trade_ticks(&mut self, context: &mut Context, trades: &mut Trades<'_>) {
        while let Some(trade) = trades.next(context) {
            self.on_trade_tick(context, &trade);
        }
    }

    /// A bar is complete.
    fn on_bar(&mut self, context: &mut Context, bar: &Bar) {
        let _ = (context, bar);
    }

    /// Something happened to one of the strategy's orders.
    fn on_order_event(&mut self, context: &mut Context, event: &OrderEvent) {
        let _ = (context, event);
    }

    /// /// Something happened to the account without an order: shares were split. It comes at the first time of a
    /// day, before its first trade, after the change of the positions and the events of the orders. A strategy
    /// adjusts prices and numbers of shares that it remembers here; else the next price looks like a crash.
    /// [`crate::Split::price`] helps.
    fn on_account_event(&mut self, context: &mut Context, event: &AccountEvent) {
        let _ = (context, event);
    }

    /// No events follow. The host takes no more orders.
    fn on_stop(&mut self, context: &mut Context) {
        let _ = context;
    }
}
