//! Commands of the strategy and of clients: new orders, changes, cancels, and their way to the exchange.

use std::sync::Arc;

use domain::execution::Warning;
use domain::guest_limit::{text_cost, text_page_cost};
use domain::order::OrderTrigger;
use domain::{
    InstrumentIx, OrderEvent, OrderEventKind, OrderModify, OrderRecord, OrderRequest, OrderSide,
    OrderStatus, Origin, Quantity, ReasonCode, Rejection, TsNanos,
};

use crate::order::{Order, OrderIx, Standing};
use crate::round_trips::is_round_trip;
use crate::store::{IdState, origin_of};
use crate::{Exchange, Scheduled, checks, numbered};

/// What a rejected order leaves in a run's folder without its texts: its row and its events.
const REJECTED_ORDER_BYTES: u64 = 1_200;
/// Files of a run that have an order's texts as JSON or CSV spell them, besides the page.
const TEXT_COPIES: u64 = 3;
/// Orders which a command to cancel all cannot cancel that it names in warnings; more are only counted.
const UNCANCELLED_NAMED_MAX: usize = 16;

/// What a rejected order's text leaves in a run's folder.
fn text_bytes(text: &str) -> u64 {
    TEXT_COPIES * text_cost(text) as u64 + text_page_cost(text) as u64
}

impl Exchange {
    /// Takes a new order, or with a reason the one that was `refused` before it was sent.
    pub(crate) fn submit(
        &mut self,
        now: TsNanos,
        origin: Origin,
        mut request: OrderRequest,
        refused: Option<Rejection>,
    ) {
        if self.orders.sent(origin) >= self.model.orders_max {
            return self.take_no_more(now, origin, &request);
        }
        if let Some(market) = self.markets.get(usize::from(request.instrument.0)) {
            checks::round_to_tick(&mut request, market.instrument.ticks);
        }
        let request = self.orders.place(origin, request);
        let record = OrderRecord::new(origin, self.orders.sent(origin), request, now);
        let arrival = now.plus_nanos(self.model.latency_ns);
        let (number, is_new) = self.orders.push(Order::new(record, arrival));
        let refused = refused.or_else(|| self.rejection_of(number, now, is_new).err());
        if let Some(rejection) = refused {
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
        *self.orders.open_mut(origin) += 1;
        self.reserve(number);
        let mut refused = self.venue_rejection_of(number).err();
        if refused.is_none() {
            refused = self.round_trip_rejection_of(number).err();
        }
        // A person is told before anything counts as sent (specification 4, P72).
        if refused.is_none() || origin == Origin::Strategy {
            self.transition(number, OrderTrigger::Send, now, |record| {
                OrderEventKind::Submitted(Arc::clone(&record.request))
            });
        }
        match refused {
            Some(rejection) => self.reject(number, now, rejection),
            None => self.after_latency(now, Scheduled::Arrival(number)),
        }
    }

    /// The run is stopped: every open order is cancelled at once, whoever sent it and whatever is under
    /// way (specification 4, P67), and no order is taken any more.
    pub fn cancel_open(&mut self, now: TsNanos) {
        self.closed = true;
        let all: Vec<OrderIx> = self.open.iter().copied().collect();
        for number in all {
            self.transition(number, OrderTrigger::CancelDone, now, |_| OrderEventKind::Canceled);
            self.close(number);
        }
    }

    /// One order more than an origin may send in a run. A strategy's run must end; a client is told
    /// and nothing of its order is kept.
    fn take_no_more(&mut self, now: TsNanos, origin: Origin, request: &OrderRequest) {
        if origin == Origin::Strategy {
            self.exhausted = true;
            return;
        }
        let is_new = self.orders.find(origin, &request.client_order_id) == IdState::Unused;
        let rejection = if is_new {
            let text = format!("TOO_MANY_ORDERS: a run takes {} orders", self.model.orders_max);
            Rejection::new(ReasonCode::VenueRejected, text)
        } else {
            // The order that has the id goes on.
            Rejection::new(ReasonCode::ValidationError, checks::USED_BEFORE)
        };
        self.events.push(OrderEvent {
            ts_event: now,
            origin,
            client_order_id: request.client_order_id.clone(),
            venue_order_id: None,
            instrument: request.instrument,
            side: request.side,
            status: OrderStatus::Rejected,
            kind: OrderEventKind::Rejected(rejection),
        });
    }

    /// Cancels the open orders of an origin, in the order of their sending: all that can be cancelled. Those whose
    /// cancel is on its way are left alone; the others that cannot be are told.
    pub(crate) fn cancel_all(
        &mut self,
        now: TsNanos,
        origin: Origin,
        instrument: Option<InstrumentIx>,
        side: Option<OrderSide>,
    ) {
        let wanted = |number: &OrderIx| {
            let record = &self.orders[*number].record;
            record.origin == origin
                && record.status != OrderStatus::PendingCancel
                && instrument.is_none_or(|only| record.request.instrument == only)
                && side.is_none_or(|only| record.request.side == only)
        };
        let all: Vec<OrderIx> = self.open.iter().copied().filter(wanted).collect();
        let mut uncancelled = 0;
        let mut first_unnamed = None;
        for number in all {
            let status = self.orders[number].record.status;
            if status.transition(OrderTrigger::SendCancel).is_err() {
                uncancelled += 1;
                if uncancelled > UNCANCELLED_NAMED_MAX {
                    first_unnamed.get_or_insert(number);
                    continue;
                }
            }
            self.cancel_order(now, number);
        }
        if let Some(number) = first_unnamed {
            let id = self.orders[number].record.request.client_order_id.clone();
            let more = uncancelled - UNCANCELLED_NAMED_MAX;
            self.warn(origin, &id, format!("{more} more orders were not cancelled"));
        }
    }

    pub(crate) fn modify(&mut self, now: TsNanos, origin: Origin, id: &str, change: OrderModify) {
        let Some(number) = self.find(origin, id, "modify") else { return };
        if self.can_take(number, OrderTrigger::SendModify, "modify") {
            self.transition(number, OrderTrigger::SendModify, now, |_| {
                OrderEventKind::PendingUpdate(change)
            });
            self.after_latency(now, Scheduled::Modify(number, change));
        }
    }

    /// Whether a change of a person's working order could be, as the exchange stands now: what is refused
    /// here was never sent, and the order stays as it is (specification 4, P72).
    ///
    /// # Errors
    /// The [`Rejection`] that the person is told.
    pub fn check_change(
        &self,
        now: TsNanos,
        client_order_id: &str,
        change: OrderModify,
    ) -> Result<(), Rejection> {
        let IdState::Held(number) = self.orders.find(Origin::Client, client_order_id) else {
            return Ok(());
        };
        if self.orders[number].record.status.transition(OrderTrigger::SendModify).is_err() {
            return Ok(());
        }
        self.changed_request(number, now, change).map(drop)
    }

    /// Does what is due first, and all else that is due with it. Tells the time at which it happens.
    pub fn run_due(&mut self) -> Option<TsNanos> {
        let (now, after_rows, _) = *self.schedule.first_key_value()?.0;
        while let Some(entry) = self.schedule.first_entry()
            && (entry.key().0, entry.key().1) == (now, after_rows)
        {
            let event = entry.remove();
            self.execute_scheduled(now, event);
        }
        Some(now)
    }

    /// Executes what arrives at the exchange: now, or later where there is latency.
    fn after_latency(&mut self, now: TsNanos, event: Scheduled) {
        if self.model.latency_ns == 0 {
            self.execute_scheduled(now, event);
        } else {
            self.schedule_at(now.plus_nanos(self.model.latency_ns), event);
        }
    }

    fn execute_scheduled(&mut self, now: TsNanos, event: Scheduled) {
        match event {
            Scheduled::Arrival(number) => self.arrive(number, now),
            Scheduled::Cancel(number) => self.finish_cancel(number, now),
            Scheduled::Modify(number, change) => self.finish_modify(number, now, change),
            Scheduled::Expiry(number) => {
                self.orders[number].expiry = None;
                self.expire(number, now, None);
            }
            Scheduled::CarryOver => self.carry_over(now),
            Scheduled::DayEnd(instrument, why) => self.end_day_of(instrument, now, why),
        }
    }

    fn arrive(&mut self, number: OrderIx, now: TsNanos) {
        // The day may have ended while the order was on its way.
        if !self.is_in_state(number, OrderStatus::Submitted) {
            return;
        }
        if let Err(rejection) = self.check_trigger(&self.orders[number].record.request) {
            return self.reject(number, now, rejection);
        }
        self.venue_numbers += 1;
        self.orders[number].record.venue_order_id = Some(numbered(Some(b'R'), self.venue_numbers));
        self.transition(number, OrderTrigger::VenueAccepts, now, |_| OrderEventKind::Accepted);
        self.enter(number, now);
    }

    pub(crate) fn cancel_order(&mut self, now: TsNanos, number: OrderIx) {
        if self.can_take(number, OrderTrigger::SendCancel, "cancel") {
            self.transition(number, OrderTrigger::SendCancel, now, |_| {
                OrderEventKind::PendingCancel
            });
            self.after_latency(now, Scheduled::Cancel(number));
        }
    }

    fn finish_cancel(&mut self, number: OrderIx, now: TsNanos) {
        // A fill or the end of the day may have come first.
        if self.is_in_state(number, OrderStatus::PendingCancel) {
            self.transition(number, OrderTrigger::CancelDone, now, |_| OrderEventKind::Canceled);
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
        self.release(number);
        if let Ok(worst) = self.worst_prices(&changed, self.orders[number].funari) {
            self.orders[number].worst = worst;
        }
        let before = &self.orders[number].record.request;
        // More shares, another price or trigger lose the place in time; fewer shares and another date keep it.
        let keeps_place = changed.price == before.price
            && changed.trigger_price == before.trigger_price
            && changed.quantity <= before.quantity;
        let is_at_exchange = self.orders[number].standing != Standing::Nowhere;
        let must_move = is_at_exchange && !keeps_place;
        if must_move {
            self.leave_book(number);
        }
        let (sequence, queue) = (self.next_sequence(), self.model.queue_ahead.unwrap_or_default());
        let order = &mut self.orders[number];
        order.record.request = Arc::new(changed);
        order.after = order.after.max(now);
        let partly_filled = !order.record.filled.is_zero();
        if !keeps_place {
            order.sequence = sequence;
            order.queue_left = Quantity::new(queue);
        }
        self.reserve(number);
        self.transition(number, OrderTrigger::ModifyDone { partly_filled }, now, |record| {
            OrderEventKind::Updated(Arc::clone(&record.request))
        });
        if must_move {
            self.enter(number, now);
        } else if is_at_exchange && change.expire_time.is_some() {
            self.move_end_of_date(number);
        }
    }

    /// Rejects an order that is not done.
    pub(crate) fn reject(&mut self, number: OrderIx, now: TsNanos, rejection: Rejection) {
        self.round_trips_rejected += u64::from(is_round_trip(&rejection));
        self.count_rejected(number, &rejection);
        let record = &self.orders[number].record;
        if record.origin == Origin::Client && record.venue_order_id.is_none() {
            // The venue does not have it, so a person may mend the order and send it (specification 4, P11, P21).
            self.orders.free_id(number);
        }
        self.orders[number].record.rejection = Some(rejection.clone());
        self.transition(number, OrderTrigger::Reject, now, |_| OrderEventKind::Rejected(rejection));
        self.close(number);
    }

    /// Counts what a rejection of an order, or of a change of it, leaves in a run's folder.
    pub(crate) fn count_rejected(&mut self, number: OrderIx, rejection: &Rejection) {
        let request = &self.orders[number].record.request;
        let tags: u64 = request.tags.iter().map(|tag| text_bytes(tag)).sum();
        let texts =
            text_bytes(request.client_order_id.as_str()) + tags + text_bytes(&rejection.text);
        if origin_of(number) == Origin::Strategy {
            self.rejected_bytes += REJECTED_ORDER_BYTES + texts;
        }
    }

    /// Takes a finished order out of everything.
    pub(crate) fn close(&mut self, number: OrderIx) {
        if self.open.remove(&number) {
            *self.orders.open_mut(origin_of(number)) -= 1;
            self.release(number);
            self.leave_book(number);
        }
        self.orders.finish(number);
    }

    fn is_in_state(&self, number: OrderIx, status: OrderStatus) -> bool {
        self.orders.get(number).is_some_and(|order| order.record.status == status)
    }

    /// Finds the order of a command; a command that finds none is only a warning, because a fill
    /// may always come first.
    pub(crate) fn find(
        &mut self,
        origin: Origin,
        client_order_id: &str,
        command: &str,
    ) -> Option<OrderIx> {
        match self.orders.find(origin, client_order_id) {
            IdState::Held(number) => return Some(number),
            IdState::Retired(status) => {
                self.warn_too_late(origin, command, client_order_id, status)
            }
            IdState::Unused => {
                let code = ReasonCode::OrderStatusUnknown;
                let shown: String = client_order_id.chars().take(40).collect();
                let text = format!(
                    "{code}: {command} of `{shown}` has no effect: no order with \
                     this id was sent"
                );
                self.warn(origin, client_order_id, text);
            }
        }
        None
    }

    fn can_take(&mut self, number: OrderIx, trigger: OrderTrigger, command: &str) -> bool {
        let record = &self.orders[number].record;
        let possible = record.status.transition(trigger).is_ok();
        if !possible {
            let (id, status) = (record.request.client_order_id.clone(), record.status);
            self.warn_too_late(record.origin, command, &id, status);
        }
        possible
    }

    fn warn_too_late(&mut self, origin: Origin, command: &str, id: &str, status: OrderStatus) {
        let what = if command == "cancel" { "cancelled" } else { "changed" };
        let advice = match (status.is_final(), command) {
            (false, _) => "; try again after its next event",
            (true, "modify") => "; an order that has ended takes no change, so send a new one",
            (true, _) => "",
        };
        let text = format!("`{id}` was not {what}: it is {status}{advice}");
        self.warn(origin, id, text);
    }

    pub(crate) fn warn(&mut self, origin: Origin, client_order_id: &str, text: String) {
        self.warnings.push(Warning { origin, client_order_id: client_order_id.into(), text });
    }
}
