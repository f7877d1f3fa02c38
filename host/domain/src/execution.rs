//! Where the orders of a strategy go: a simulated exchange, later a broker, behind one small trait.

use crate::account::PortfolioView;
use crate::command::OrderCommand;
use crate::event::OrderEvent;
use crate::instrument::InstrumentIx;
use crate::money::Money;
use crate::order::{OrderRecord, OrderRequest, Origin, Rejection};
use crate::price::Price;
use crate::text::ShortText;
use crate::time::TsNanos;

/// A command without effect although nothing is wrong with its order: the order has ended, or was never sent.
/// A fill may always come first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Who gave the command.
    pub origin: Origin,
    /// The id that it named.
    pub client_order_id: ShortText,
    /// Which command it was and why it had no effect; for logs.
    pub text: String,
}

/// Executes commands, and gives back what became of the orders.
pub trait ExecutionClient {
    /// Executes a command of `origin`, which reaches its own orders only.
    fn execute(&mut self, now: TsNanos, origin: Origin, command: OrderCommand);

    /// Tells that a command of the strategy was refused before it was sent: a new order is rejected without having
    /// been submitted, and an order that was to change stays as it is. Other commands are never refused.
    fn refuse(&mut self, now: TsNanos, command: OrderCommand, rejection: Rejection);

    /// Tells what an order is worth at most: at its limit, else at the highest price that can be expected.
    ///
    /// # Errors
    /// Why that cannot be told, so that the order cannot be sent where its worth counts.
    fn order_value(&self, request: &OrderRequest) -> Result<Money, Rejection>;

    /// Puts the events since the last call into `events`, in order; its old content goes, its memory is used again.
    fn swap_events(&mut self, events: &mut Vec<OrderEvent>);

    /// Takes the warnings since the last call.
    fn take_warnings(&mut self) -> Vec<Warning>;

    /// Writes the account and the positions into `view`, and with `working_orders` the strategy's open orders.
    fn view_portfolio(&self, view: &mut PortfolioView, working_orders: bool);

    /// Counts the shares of an instrument that may be sold for cash; none where all of a position may be, by default.
    fn cash_shares(&self, instrument: InstrumentIx) -> Option<i64> {
        let _ = instrument;
        None
    }

    /// Says whether the reserved cash has changed without an event since the last call; never, by default.
    fn take_reserved_again(&mut self) -> bool {
        false
    }

    /// Takes the last price of an instrument and the end of its trades, before commands that follow it; by default
    /// it does nothing, as where a broker knows the market.
    fn set_last_price(&mut self, instrument: InstrumentIx, price: Price, over: TsNanos) {
        let _ = (instrument, price, over);
    }

    /// Counts the ended orders that were not taken out yet; none by default.
    fn done(&self) -> usize {
        0
    }

    /// Takes out the ended orders and shows each once more, by origin and in the order of their sending.
    fn take_done(&mut self, take: impl FnMut(&OrderRecord)) {
        let _ = take;
    }

    /// Says whether the strategy has sent more orders than it may, so that its run must end; never, by default.
    fn is_exhausted(&self) -> bool {
        false
    }

    /// Counts the bytes that the strategy's rejected orders leave in the results; none by default.
    fn rejected_bytes(&self) -> u64 {
        0
    }
}
