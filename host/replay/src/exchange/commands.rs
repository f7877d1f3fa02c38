//! Commands of the strategy: new orders, changes, cancels, and their way to the exchange.

use std::sync::Arc;

use domain::limits::WORKING_ORDERS_MAX;
use domain::order::OrderTrigger;
use domain::{
    InstrumentIx, OrderEventKind, OrderModify, OrderRequest, OrderStatus, Quantity, ReasonCode,
    Rejection, TsNanos,
};

use super::order::{Order, OrderIx, Place};
use super::store::Known;
use super::{Due, Exchange, checks, numbered};

impl Exchange {
    /// Takes an order. What becomes of it is told as events.
    pub fn submit(&mut self, now: TsNanos, mut request: OrderRequest) {
        if self.orders.sent() >= self.model.orders_max {
            self.exhausted = true;
            return;
        }
        if let Some(market) = self.markets.get(usize::from(request.instrument.0)) {
            checks::round_to_tick(&mut request, market.instrument.ticks);
        }
        let number = self.orders.sent();
        let arrival = now.plus_nanos(self.model.latency_ns);
        let is_new = self.orders.push(Order::new(request, now, arrival));
        if let Err(rejection) = self.refusal_of(number, now, is_new) {
            self.reject(number, now, rejection);
            return;
        }
        let after_close = self.hours.is_some_and(|hours| now >= hours.close);
        let (sequence, queue) = (self.next_sequence(), self.model.queue_ahead.unwrap_or_default());
        let order = &mut self.orders[number];
        order.sequence = sequence;
        order.queue_left = Quantity::new(queue);
        order.next_day = after_close;
        self.open.insert(number);
        self.hold_back(number);
        self.happen(number, OrderTrigger::Send, now, |order| {
            OrderEventKind::Submitted(Arc::clone(&order.request))
        });
        if let Err(rejection) = self.venue_refusal_of(number) {
            self.reject(number, now, rejection);
        } else {
            self.after_latency(now, Due::Arrival(number));
        }
    }

    /// Takes a cancel.
    pub fn cancel(&mut self, now: TsNanos, client_order_id: &str) {
        if let Some(number) = self.find(client_order_id, "cancel") {
            self.cancel_order(now, number);
        }
    }

    /// Cancels every open order, of one instrument or of all, in the order of their sending.
    pub fn cancel_all(&mut self, now: TsNanos, instrument: Option<InstrumentIx>) {
        let wanted = |number: &OrderIx| {
            instrument.is_none_or(|only| self.orders[*number].request.instrument == only)
        };
        let all: Vec<OrderIx> = self.open.iter().copied().filter(wanted).collect();
        for number in all {
            self.cancel_order(now, number);
        }
    }

    /// Takes a change.
    pub fn modify(&mut self, now: TsNanos, client_order_id: &str, change: OrderModify) {
        let Some(number) = self.find(client_order_id, "modify") else { return };
        if self.can_take(number, OrderTrigger::SendModify, "modify") {
            self.happen(number, OrderTrigger::SendModify, now, |_| {
                OrderEventKind::PendingUpdate(change)
            });
            self.after_latency(now, Due::Modify(number, change));
        }
    }

    /// Does what is due first, and all else that is due at the same instant.
    pub fn run_due(&mut self) {
        let Some(now) = self.next_due() else { return };
        while self.next_due() == Some(now) {
            if let Some((_, due)) = self.due.pop_first() {
                self.do_due(now, due);
            }
        }
    }

    /// Lets something happen when it arrives at the exchange: now, or later where there is latency.
    fn after_latency(&mut self, now: TsNanos, due: Due) {
        if self.model.latency_ns == 0 {
            self.do_due(now, due);
        } else {
            self.put_due(now.plus_nanos(self.model.latency_ns), due);
        }
    }

    fn do_due(&mut self, now: TsNanos, due: Due) {
        match due {
            Due::Arrival(number) => self.arrive(number, now),
            Due::Cancel(number) => self.finish_cancel(number, now),
            Due::Modify(number, change) => self.finish_modify(number, now, change),
            Due::Lapse(number) => {
                self.orders[number].lapse = None;
                self.expire(number, now, None);
            }
            Due::CarryOver => self.carry_over(now),
        }
    }

    fn arrive(&mut self, number: OrderIx, now: TsNanos) {
        // The day may have ended while the order was on its way.
        if !self.is_in_state(number, OrderStatus::Submitted) {
            return;
        }
        if let Err(rejection) = self.check_trigger(&self.orders[number].request) {
            return self.reject(number, now, rejection);
        }
        self.venue_numbers += 1;
        self.orders[number].venue_order_id = Some(numbered(b'V', self.venue_numbers));
        self.happen(number, OrderTrigger::VenueAccepts, now, |_| OrderEventKind::Accepted);
        self.enter(number, now);
    }

    fn cancel_order(&mut self, now: TsNanos, number: OrderIx) {
        if self.can_take(number, OrderTrigger::SendCancel, "cancel") {
            self.happen(number, OrderTrigger::SendCancel, now, |_| OrderEventKind::PendingCancel);
            self.after_latency(now, Due::Cancel(number));
        }
    }

    fn finish_cancel(&mut self, number: OrderIx, now: TsNanos) {
        // A fill or the end of the day may have come first.
        if self.is_in_state(number, OrderStatus::PendingCancel) {
            self.happen(number, OrderTrigger::CancelDone, now, |_| OrderEventKind::Canceled);
            self.close(number);
        }
    }

    fn finish_modify(&mut self, number: OrderIx, now: TsNanos, change: OrderModify) {
        if !self.is_in_state(number, OrderStatus::PendingUpdate) {
            return;
        }
        let changed = match self.changed_request(number, now, change) {
            Ok(changed) => changed,
            Err(rejection) => return self.reject(number, now, rejection),
        };
        self.let_go(number);
        let before = &self.orders[number].request;
        // More shares, another price or trigger lose the place in time; fewer shares keep it.
        let keeps_place = changed.price == before.price
            && changed.trigger_price == before.trigger_price
            && changed.quantity <= before.quantity;
        let is_at_exchange = self.orders[number].place != Place::Nowhere;
        let must_move = is_at_exchange && (!keeps_place || change.expire_time.is_some());
        if must_move {
            self.leave_place(number);
        }
        let (sequence, queue) = (self.next_sequence(), self.model.queue_ahead.unwrap_or_default());
        let order = &mut self.orders[number];
        order.request = Arc::new(changed);
        order.after = order.after.max(now);
        let partly_filled = !order.filled.is_zero();
        if !keeps_place {
            order.sequence = sequence;
            order.queue_left = Quantity::new(queue);
        }
        self.hold_back(number);
        self.happen(number, OrderTrigger::ModifyDone { partly_filled }, now, |_| {
            OrderEventKind::Updated
        });
        if must_move {
            self.enter(number, now);
        }
    }

    /// Refuses an order that is not done.
    pub(super) fn reject(&mut self, number: OrderIx, now: TsNanos, rejection: Rejection) {
        self.orders[number].rejection = Some(rejection.clone());
        self.happen(number, OrderTrigger::Refuse, now, |_| OrderEventKind::Rejected(rejection));
        self.close(number);
    }

    /// Takes a finished order out of everything.
    pub(super) fn close(&mut self, number: OrderIx) {
        if self.open.remove(&number) {
            self.let_go(number);
            self.leave_place(number);
        }
        self.orders.finish(number);
    }

    fn is_in_state(&self, number: OrderIx, status: OrderStatus) -> bool {
        self.orders.get(number).is_some_and(|order| order.status == status)
    }

    /// Finds the order of a command; a command that finds none is only a warning, because a fill
    /// may always come first.
    fn find(&mut self, client_order_id: &str, command: &str) -> Option<OrderIx> {
        match self.orders.find(client_order_id) {
            Known::Here(number) => return Some(number),
            Known::Gone(status) => self.warn_too_late(command, client_order_id, status),
            Known::Never => {
                let code = ReasonCode::OrderStatusUnknown;
                let shown: String = client_order_id.chars().take(40).collect();
                let text = format!("{code}: {command} of `{shown}`, which was never sent");
                self.warnings.push(text);
            }
        }
        None
    }

    fn can_take(&mut self, number: OrderIx, trigger: OrderTrigger, command: &str) -> bool {
        let order = &self.orders[number];
        let possible = order.status.next(trigger).is_ok();
        if !possible {
            let (id, status) = (Arc::clone(&order.request.client_order_id), order.status);
            self.warn_too_late(command, &id, status);
        }
        possible
    }

    fn warn_too_late(&mut self, command: &str, client_order_id: &str, status: OrderStatus) {
        let text = format!("{command} of `{client_order_id}` came to nothing: it is {status}");
        self.warnings.push(text);
    }

    /// Whether one order too many is open; the newest is among them already.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() > WORKING_ORDERS_MAX
    }
}
