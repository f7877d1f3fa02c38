//! Events of orders and refusals of commands (specification 2, "Events"; specification 4, P9, P14, P17).

use std::sync::Arc;

use domain::order_mapping::BrokerRow;
use domain::{
    Fill, OrderEventKind, Origin, Price, Quantity, ReasonCode, Rejection, ShortText, TsNanos,
};

use super::{Desk, Now, Out, Recipient, RequestContext};
use crate::book::{DeskOrder, OrderKey};
use crate::event::{
    CommandFailed, CommandRefused, DeskEvent, DeskOrderEvent, FailureCode, Reply, SessionEvent,
};

/// A fill as it is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportedFill<'a> {
    pub(crate) trade_id: &'a ShortText,
    pub(crate) quantity: Quantity,
    pub(crate) price: Price,
    pub(crate) ts: TsNanos,
    /// False where it could not be written (P128).
    pub(crate) is_written: bool,
}

impl Desk {
    pub(super) fn ids(&self, key: OrderKey) -> (Option<ShortText>, Option<ShortText>) {
        let order = self.book.get(key);
        let id = order.and_then(|order| order.client_order_id.clone());
        (id, order.and_then(|order| order.venue_order_id.clone()))
    }

    pub(crate) fn broadcast(&mut self, event: DeskEvent) {
        self.out.push(Out::Emit(Recipient::All, Box::new(event)));
    }

    pub(crate) fn reply(&mut self, client: u64, reply: Reply) {
        let event = Box::new(DeskEvent::Reply(reply));
        self.out.push(Out::Emit(Recipient::Client(client), event));
    }

    pub(crate) fn report_session(&mut self, event: SessionEvent) {
        self.broadcast(DeskEvent::Session(event));
    }

    /// Reports an event of an order with its present state; `request_id` is the command that caused it.
    fn report_order(
        &mut self,
        key: OrderKey,
        request_id: Option<String>,
        ts_event: TsNanos,
        kind: impl FnOnce(&DeskOrder) -> OrderEventKind,
    ) {
        self.report_written(key, request_id, (ts_event, true), kind);
    }

    /// The same for a fill that may not be in the log.
    fn report_written(
        &mut self,
        key: OrderKey,
        request_id: Option<String>,
        (ts_event, is_written): (TsNanos, bool),
        kind: impl FnOnce(&DeskOrder) -> OrderEventKind,
    ) {
        let Some(order) = self.book.get(key) else { return };
        let event = DeskOrderEvent {
            request_id,
            origin: order.origin.clone(),
            client_order_id: order.client_order_id.clone(),
            venue_order_id: order.venue_order_id.clone(),
            instrument: order.instrument,
            instrument_id: order.instrument_id.clone(),
            side: order.order.side,
            ts_event,
            status: order.status,
            is_written,
            kind: kind(order),
        };
        self.broadcast(DeskEvent::Order(event));
    }

    /// The command that sent an order; none of a strategy's order (P91).
    fn sender_of(&self, key: OrderKey) -> Option<String> {
        let order = self.book.get(key).filter(|order| order.strategy_id().is_none());
        order.and_then(|order| order.request_id.clone())
    }

    fn pending_request_of(&self, key: OrderKey) -> Option<String> {
        let pending = self.book.get(key).and_then(|order| order.pending.as_ref());
        pending.and_then(|pending| pending.request_id.clone())
    }

    /// Refuses a command; `order` is the one whose id it names.
    fn refuse_command(
        &mut self,
        request_id: Option<String>,
        client_order_id: Option<String>,
        order: Option<OrderKey>,
        rejection: &Rejection,
        now: Now,
    ) {
        let order = order.and_then(|key| self.book.get(key));
        let refused = CommandRefused {
            request_id,
            client_order_id,
            instrument_id: order.map(|order| order.instrument_id.clone()),
            side: order.map(|order| order.order.side),
            origin: order.and_then(|order| order.origin.clone()),
            rejection: with_prefix(rejection),
            ts: now.wall,
        };
        self.broadcast(DeskEvent::Reply(Reply::Refused(refused)));
    }

    /// Refuses a command without an order, or whose order was not made.
    pub(crate) fn report_refused(&mut self, request_id: String, rejection: &Rejection, now: Now) {
        self.refuse_command(Some(request_id), None, None, rejection, now);
    }

    /// Refuses a command about the order of an id; the order itself, if there is one, stays.
    pub(crate) fn report_order_refused(
        &mut self,
        context: &RequestContext,
        (origin, client_order_id): (Origin, &str),
        rejection: &Rejection,
        now: Now,
    ) {
        let order = self.book.by_id(origin, client_order_id);
        let (request_id, id) = (context.request_id.clone(), client_order_id.to_owned());
        self.refuse_command(Some(request_id), Some(id), order, rejection, now);
    }

    /// Refuses the cancel of a row that no order of the book has.
    pub(crate) fn report_row_refused(
        &mut self,
        row: &BrokerRow,
        request_id: Option<String>,
        rejection: &Rejection,
        now: Now,
    ) {
        let refused = CommandRefused {
            request_id,
            client_order_id: None,
            instrument_id: Some(format!("{}.TSE", row.symbol).into()),
            side: Some(row.side),
            origin: None,
            rejection: with_prefix(rejection),
            ts: now.wall,
        };
        self.broadcast(DeskEvent::Reply(Reply::Refused(refused)));
    }

    pub(crate) fn report_error(
        &mut self,
        context: &RequestContext,
        code: impl Into<FailureCode>,
        message: String,
        venue_order_id: Option<ShortText>,
    ) {
        let request_id = context.request_id.clone();
        let failed = CommandFailed { request_id, code: code.into(), message, venue_order_id };
        self.reply(context.client, Reply::Failed(failed));
    }

    pub(crate) fn report_submitted(&mut self, key: OrderKey, now: Now) {
        let request_id = self.sender_of(key);
        self.report_order(key, request_id, now.wall, |order| {
            OrderEventKind::Submitted(Arc::new(order.request()))
        });
    }

    pub(crate) fn report_accepted(&mut self, key: OrderKey, now: Now) {
        let request_id = self.sender_of(key);
        self.report_order(key, request_id, now.wall, |_| OrderEventKind::Accepted);
    }

    pub(crate) fn report_rejected(
        &mut self,
        key: OrderKey,
        request_id: Option<String>,
        rejection: &Rejection,
        now: Now,
    ) {
        if self.book.get(key).is_none() {
            return self.refuse_command(request_id, None, None, rejection, now);
        }
        let rejection = with_prefix(rejection);
        self.report_order(key, request_id, now.wall, |_| OrderEventKind::Rejected(rejection));
    }

    /// Reports that a change or a cancel has been sent.
    pub(crate) fn report_pending(&mut self, key: OrderKey, kind: OrderEventKind, now: Now) {
        let request_id = self.pending_request_of(key);
        self.report_order(key, request_id, now.wall, |_| kind);
    }

    pub(crate) fn report_updated(&mut self, key: OrderKey, request_id: Option<String>, now: Now) {
        self.report_order(key, request_id, now.wall, |order| {
            OrderEventKind::Updated(Arc::new(order.request()))
        });
    }

    pub(crate) fn report_canceled(&mut self, key: OrderKey, ts: TsNanos) {
        let request_id = self.pending_request_of(key);
        self.report_order(key, request_id, ts, |_| OrderEventKind::Canceled);
    }

    pub(crate) fn report_expired(&mut self, key: OrderKey, ts: TsNanos) {
        self.report_order(key, None, ts, |order| {
            OrderEventKind::Expired(order.order.time_in_force.as_str())
        });
    }

    pub(crate) fn report_filled(&mut self, key: OrderKey, fill: ReportedFill<'_>) {
        self.report_written(key, None, (fill.ts, fill.is_written), |order| {
            OrderEventKind::Filled(Fill {
                side: order.order.side,
                trade_id: fill.trade_id.clone(),
                last_quantity: fill.quantity,
                last_price: fill.price,
                market_price: fill.price,
                cumulative_quantity: Quantity::new(order.cumulative),
                leaves_quantity: Quantity::new(order.leaves()),
                commission: None,
            })
        });
    }
}

/// The rejection with a prefix in its text.
pub(super) fn with_prefix(rejection: &Rejection) -> Rejection {
    let Rejection { code, text } = rejection;
    Rejection { code: *code, text: reason_text(*code, text) }
}

/// A reason text: one line of at most 512 characters, with a prefix (specification 2, "reason_text format"). A
/// broker's text may lack a prefix; then the code becomes one.
fn reason_text(code: ReasonCode, text: &str) -> String {
    let has_prefix = text.split_once(": ").is_some_and(|(prefix, _)| is_prefix(prefix));
    let text = if has_prefix { text.to_owned() } else { format!("{code}: {text}") };
    Rejection::new(code, text).text
}

fn is_prefix(text: &str) -> bool {
    let is_known = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    !text.is_empty() && text.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_texts_have_a_prefix_and_one_line() {
        let text = |text: &str| reason_text(ReasonCode::VenueRejected, text);
        assert_eq!(text("11304: 誤り"), "11304: 誤り");
        assert_eq!(text("no prefix: here"), "VENUE_REJECTED: no prefix: here");
        assert_eq!(text("A: b\nc\u{1}d"), "A: b c d");
        let long = text(&format!("A: {}", "あ".repeat(900)));
        assert_eq!(long.chars().count(), 512);
    }
}
