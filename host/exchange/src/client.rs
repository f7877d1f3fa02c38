//! The exchange as an [`ExecutionClient`]: commands in, events, warnings and the portfolio out.

use domain::account::PortfolioView;
use domain::execution::{ExecutionClient, Warning};
use domain::{
    InstrumentIx, Money, OrderCommand, OrderEvent, OrderEventKind, OrderRecord, OrderRequest,
    Origin, Price, Rejection, TsNanos,
};

use crate::Exchange;

impl ExecutionClient for Exchange {
    fn execute(&mut self, now: TsNanos, origin: Origin, command: OrderCommand) {
        match command {
            OrderCommand::Submit(request) => self.submit(now, origin, request, None),
            OrderCommand::Modify { client_order_id, change } => {
                self.modify(now, origin, &client_order_id, change);
            }
            OrderCommand::Cancel { client_order_id } => {
                if let Some(number) = self.find(origin, &client_order_id, "cancel") {
                    self.cancel_order(now, number);
                }
            }
            OrderCommand::CancelAll { instrument, side } => {
                self.cancel_all(now, origin, instrument, side);
            }
        }
    }

    fn refuse(&mut self, now: TsNanos, command: OrderCommand, rejection: Rejection) {
        match command {
            OrderCommand::Submit(request) => {
                self.submit(now, Origin::Strategy, request, Some(rejection));
            }
            OrderCommand::Modify { client_order_id, .. } => {
                if let Some(number) = self.find(Origin::Strategy, &client_order_id, "modify") {
                    self.count_rejected(number, &rejection);
                    self.tell(number, now, OrderEventKind::Rejected(rejection));
                }
            }
            OrderCommand::Cancel { .. } | OrderCommand::CancelAll { .. } => {}
        }
    }

    fn order_value(&self, request: &OrderRequest) -> Result<Money, Rejection> {
        self.value_of(request)
    }

    #[inline]
    fn swap_events(&mut self, events: &mut Vec<OrderEvent>) {
        events.clear();
        std::mem::swap(&mut self.events, events);
    }

    #[inline]
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn view_portfolio(&self, view: &mut PortfolioView, working_orders: bool) {
        view.account = *self.account.account();
        view.positions.clear();
        view.positions.extend_from_slice(self.account.positions());
        if working_orders {
            view.working_orders = self.working_orders();
        }
    }

    /// A new day and prices outside of the range reserve anew.
    #[inline]
    fn take_reserved_again(&mut self) -> bool {
        std::mem::replace(&mut self.has_reserved_again, false)
    }

    /// Trades are over at the time of the last one, or with the last nanosecond of the last bar.
    #[inline]
    fn set_last_price(&mut self, instrument: InstrumentIx, price: Price, over: TsNanos) {
        self.markets[usize::from(instrument.0)].last_price = Some(price);
        self.pass_auction(instrument, over);
    }

    #[inline]
    fn done(&self) -> usize {
        self.orders.done()
    }

    /// The ids stay taken, and nothing else changes. A long run calls this from time to time, so that its memory
    /// stays flat.
    fn take_done(&mut self, take: impl FnMut(&OrderRecord)) {
        self.orders.take_done(take);
    }

    #[inline]
    fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    #[inline]
    fn rejected_bytes(&self) -> u64 {
        self.rejected_bytes
    }
}
