//! Events of orders as clients are told them (specification 2, "Events"; specification 4, P9, P14, P17).

use domain::order_mapping::BrokerRow;
use domain::{Price, Quantity, ReasonCode, Rejection};
use ipc::{
    Error, Event, OrderAccepted, OrderCanceled, OrderContext, OrderExpired, OrderFilled,
    OrderPendingCancel, OrderPendingUpdate, OrderRejected, OrderSubmitted, OrderUpdated, Text,
};

use super::{Asked, Desk, Now, Recipient, VENUE};
use crate::book::{DeskOrder, OrderKey};

pub(super) fn owned(text: Option<&str>) -> Option<Text<'static>> {
    text.map(|text| Text::Owned(text.to_owned()))
}

fn context(order: Option<&DeskOrder>, request_id: Option<String>) -> OrderContext<'static> {
    OrderContext {
        request_id: request_id.map(Text::Owned),
        venue: Some(VENUE.into()),
        instrument_id: order.map(|order| Text::Owned(order.instrument_id.to_string())),
        order_side: order.map(|order| order.order.side),
        ..OrderContext::default()
    }
}

/// A fill as it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldFill<'a> {
    pub(crate) trade_id: &'a str,
    pub(crate) quantity: Quantity,
    pub(crate) price: Price,
    pub(crate) ts_ms: u64,
}

impl Desk {
    pub(super) fn ids(&self, key: OrderKey) -> (Option<Text<'static>>, Option<Text<'static>>) {
        let order = self.book.get(key);
        let id = order.and_then(|order| owned(order.client_order_id.as_deref()));
        let number = order.and_then(|order| owned(order.venue_order_id.as_deref()));
        (id, number)
    }

    fn context_of(&self, key: OrderKey, request_id: Option<String>) -> OrderContext<'static> {
        context(self.book.get(key), request_id)
    }

    fn sender_of(&self, key: OrderKey) -> Option<String> {
        self.book.get(key).and_then(|order| order.request_id.clone())
    }

    /// A command without an order, or whose order was never made, is refused.
    pub(crate) fn tell_refused(&mut self, request_id: String, rejection: &Rejection, now: Now) {
        let event = rejected(None, rejection, now, context(None, Some(request_id)));
        self.tell(Recipient::All, event);
    }

    /// A command about the order of an id is refused; the order itself, if there is one, stays.
    pub(crate) fn tell_order_refused(
        &mut self,
        asked: &Asked,
        client_order_id: &str,
        rejection: &Rejection,
        now: Now,
    ) {
        let order = self.book.by_id(client_order_id).and_then(|key| self.book.get(key));
        let context = context(order, Some(asked.request_id.clone()));
        let event = rejected(owned(Some(client_order_id)), rejection, now, context);
        self.tell(Recipient::All, event);
    }

    /// The cancel of a row that no order of the book has is refused.
    pub(crate) fn tell_row_refused(
        &mut self,
        row: &BrokerRow,
        request_id: Option<String>,
        rejection: &Rejection,
        now: Now,
    ) {
        let mut context = context(None, request_id);
        context.instrument_id = Some(format!("{}.TSE", row.symbol).into());
        context.order_side = Some(row.side);
        self.tell(Recipient::All, rejected(None, rejection, now, context));
    }

    pub(crate) fn tell_error(
        &mut self,
        asked: &Asked,
        code: &str,
        message: String,
        venue_order_id: Option<String>,
    ) {
        let event = Event::Error(Error {
            request_id: Some(asked.request_id.clone().into()),
            code: code.to_owned().into(),
            message: message.into(),
            venue_order_id: venue_order_id.map(Into::into),
        });
        self.tell(Recipient::Client(asked.client), event);
    }

    pub(crate) fn tell_submitted(&mut self, key: OrderKey, now: Now) {
        let event = Event::OrderSubmitted(OrderSubmitted {
            client_order_id: self.ids(key).0,
            ts_event_ms: now.wall.millis(),
            context: self.context_of(key, self.sender_of(key)),
        });
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_accepted(&mut self, key: OrderKey, now: Now) {
        let (client_order_id, venue_order_id) = self.ids(key);
        let event = Event::OrderAccepted(OrderAccepted {
            client_order_id,
            venue_order_id,
            ts_event_ms: now.wall.millis(),
            context: self.context_of(key, self.sender_of(key)),
        });
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_rejected(
        &mut self,
        key: OrderKey,
        request_id: Option<String>,
        rejection: &Rejection,
        now: Now,
    ) {
        let id = self.ids(key).0;
        let event = rejected(id, rejection, now, self.context_of(key, request_id));
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_pending(&mut self, key: OrderKey, is_update: bool, now: Now) {
        let client_order_id = self.ids(key).0;
        let order = self.book.get(key);
        let pending = order.and_then(|order| order.pending.as_ref());
        let request_id = pending.and_then(|pending| pending.request_id.clone());
        let context = self.context_of(key, request_id);
        let ts_event_ms = now.wall.millis();
        let event = if is_update {
            Event::OrderPendingUpdate(OrderPendingUpdate { client_order_id, ts_event_ms, context })
        } else {
            Event::OrderPendingCancel(OrderPendingCancel { client_order_id, ts_event_ms, context })
        };
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_updated(&mut self, key: OrderKey, request_id: Option<String>, now: Now) {
        let (client_order_id, venue_order_id) = self.ids(key);
        let context = self.context_of(key, request_id);
        let Some(order) = self.book.get(key) else { return };
        let event = Event::OrderUpdated(OrderUpdated {
            client_order_id,
            venue_order_id,
            quantity: order.order.quantity.into(),
            price: order.order.price.map(Into::into),
            trigger_price: order.order.trigger_price.map(Into::into),
            expire_time_ns: order.expire_time.map(domain::TsNanos::nanos),
            ts_event_ms: now.wall.millis(),
            context,
        });
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_canceled(&mut self, key: OrderKey, ts_ms: u64) {
        let (client_order_id, venue_order_id) = self.ids(key);
        let pending = self.book.get(key).and_then(|order| order.pending.as_ref());
        let request_id = pending.and_then(|pending| pending.request_id.clone());
        let context = self.context_of(key, request_id);
        let event = Event::OrderCanceled(OrderCanceled {
            client_order_id,
            venue_order_id,
            ts_event_ms: ts_ms,
            context,
        });
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_expired(&mut self, key: OrderKey, ts_ms: u64) {
        let (client_order_id, venue_order_id) = self.ids(key);
        let event = Event::OrderExpired(OrderExpired {
            client_order_id,
            venue_order_id,
            ts_event_ms: ts_ms,
            context: self.context_of(key, None),
        });
        self.tell(Recipient::All, event);
    }

    pub(crate) fn tell_filled(&mut self, key: OrderKey, fill: ToldFill<'_>) {
        let (client_order_id, venue_order_id) = self.ids(key);
        let Some(order) = self.book.get(key) else { return };
        let event = Event::OrderFilled(OrderFilled {
            client_order_id,
            venue_order_id,
            trade_id: fill.trade_id.to_owned().into(),
            last_qty: fill.quantity.into(),
            last_price: fill.price.into(),
            cumulative_qty: Quantity::new(order.cumulative).into(),
            leaves_qty: Quantity::new(order.leaves()).into(),
            ts_event_ms: fill.ts_ms,
            ts_event_ns: None,
            context: self.context_of(key, None),
        });
        self.tell(Recipient::All, event);
    }
}

fn rejected(
    client_order_id: Option<Text<'static>>,
    rejection: &Rejection,
    now: Now,
    context: OrderContext<'static>,
) -> Event<'static> {
    let Rejection { code, text } = rejection;
    Event::OrderRejected(OrderRejected {
        client_order_id,
        reason_code: *code,
        reason_text: Text::Owned(reason_text(*code, text)),
        ts_event_ms: now.wall.millis(),
        context,
    })
}

/// A reason text: one line of at most 512 characters, with a prefix (specification 2, "reason_text
/// format"). What comes from a broker may have no prefix; then the code is one.
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
