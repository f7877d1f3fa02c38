//! From orders and their events, as the host knows them, to the messages and lines that tell them.
//! What an event is called and which of its numbers it tells stands here once, for connections and
//! for the log of a run.

use domain::{OrderEvent, OrderEventKind, OrderRecord, OrderRequest, OrderStatus, TsNanos};

use crate::{
    Event, EventLine, OrderAccepted, OrderCanceled, OrderContext, OrderExpired, OrderFilled,
    OrderPendingCancel, OrderPendingUpdate, OrderRecordWire, OrderRejected, OrderSubmitted,
    OrderUpdated, SubmittedOrder, Text,
};

impl<'a> EventLine<'a> {
    /// The line of an order's event; `None` for a change that was taken, which has no line.
    #[must_use]
    pub fn of_order(event: &'a OrderEvent, context: OrderContext<'a>) -> Option<Self> {
        message_of(parts(event), context, None).ok()
    }
}

impl<'a> Event<'a> {
    /// The message of an order's event in a replay.
    #[must_use]
    pub fn of_order(event: &'a OrderEvent, context: OrderContext<'a>) -> Self {
        Self::of_order_parts(parts(event), context, Some(event.ts_event.nanos()))
    }

    /// The message of an order's event, also of an order that was placed elsewhere; with `ts_event_ns` where
    /// fills tell it.
    #[must_use]
    pub fn of_order_parts(
        event: OrderEventParts<'a>,
        context: OrderContext<'a>,
        ts_event_ns: Option<u64>,
    ) -> Self {
        message_of(event, context, ts_event_ns).unwrap_or_else(|(order, context)| {
            Self::OrderUpdated(OrderUpdated {
                client_order_id: event.client_order_id.map(Text::Borrowed),
                venue_order_id: event.venue_order_id.map(Text::Borrowed),
                quantity: order.quantity.into(),
                price: order.price.map(Into::into),
                trigger_price: order.trigger_price.map(Into::into),
                expire_time_ns: order.expire_time.map(TsNanos::nanos),
                ts_event_ms: event.ts_event.millis(),
                context,
            })
        })
    }
}

/// What messages tell of an order's event.
#[derive(Debug, Clone, Copy)]
pub struct OrderEventParts<'a> {
    /// The caller's id; none for an order placed elsewhere.
    pub client_order_id: Option<&'a str>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<&'a str>,
    /// Time of the event.
    pub ts_event: TsNanos,
    /// What happened.
    pub kind: &'a OrderEventKind,
}

fn parts(event: &OrderEvent) -> OrderEventParts<'_> {
    OrderEventParts {
        client_order_id: Some(&event.client_order_id),
        venue_order_id: event.venue_order_id.as_deref(),
        ts_event: event.ts_event,
        kind: &event.kind,
    }
}

/// Both enums take the same events of orders.
macro_rules! from_order_events {
    ($($event:ident),*) => {
        $(impl<'a> From<$event<'a>> for EventLine<'a> {
            fn from(event: $event<'a>) -> Self {
                Self::$event(event)
            }
        }

        impl<'a> From<$event<'a>> for Event<'a> {
            fn from(event: $event<'a>) -> Self {
                Self::$event(event)
            }
        })*

        /// An enum that takes them all.
        trait FromOrderEvents<'a>: $(From<$event<'a>> +)* {}

        impl<'a> FromOrderEvents<'a> for EventLine<'a> {}
        impl<'a> FromOrderEvents<'a> for Event<'a> {}
    };
}

from_order_events!(
    OrderSubmitted,
    OrderAccepted,
    OrderRejected,
    OrderPendingUpdate,
    OrderPendingCancel,
    OrderCanceled,
    OrderExpired,
    OrderFilled
);

/// The message or the line of an event; of a change that was taken, the order as it is now and the context.
fn message_of<'a, T: FromOrderEvents<'a>>(
    event: OrderEventParts<'a>,
    context: OrderContext<'a>,
    ts_event_ns: Option<u64>,
) -> Result<T, (&'a OrderRequest, OrderContext<'a>)> {
    let client_order_id = event.client_order_id.map(Text::Borrowed);
    let venue_order_id = event.venue_order_id.map(Text::Borrowed);
    let ts_event_ms = event.ts_event.millis();
    Ok(match event.kind {
        OrderEventKind::Submitted(_) => {
            OrderSubmitted { client_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Accepted => {
            OrderAccepted { client_order_id, venue_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Rejected(rejection) => OrderRejected {
            client_order_id,
            reason_code: rejection.code,
            reason_text: Text::Borrowed(&rejection.text),
            ts_event_ms,
            context,
        }
        .into(),
        OrderEventKind::PendingUpdate(_) => {
            OrderPendingUpdate { client_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Updated(order) => return Err((order, context)),
        OrderEventKind::PendingCancel => {
            OrderPendingCancel { client_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Canceled => {
            OrderCanceled { client_order_id, venue_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Expired(_) => {
            OrderExpired { client_order_id, venue_order_id, ts_event_ms, context }.into()
        }
        OrderEventKind::Filled(fill) => OrderFilled {
            client_order_id,
            venue_order_id,
            trade_id: Text::Borrowed(&fill.trade_id),
            last_qty: fill.last_quantity.into(),
            last_price: fill.last_price.into(),
            cumulative_qty: fill.cumulative_quantity.into(),
            leaves_qty: fill.leaves_quantity.into(),
            ts_event_ns,
            ts_event_ms,
            context,
        }
        .into(),
    })
}

impl<'a> OrderRecordWire<'a> {
    /// A row of a replay's list of orders. `None` for an order without a number of the venue: it has
    /// not reached the venue, whose orders the list tells. Its time is that of the sending.
    #[must_use]
    pub fn of_record(record: &'a OrderRecord, instrument_id: &'a str) -> Option<Self> {
        let request = &*record.request;
        Some(Self {
            client_order_id: Some(Text::Borrowed(&*request.client_order_id)),
            venue_order_id: Text::Borrowed(record.venue_order_id.as_deref()?),
            instrument_id: Text::Borrowed(instrument_id),
            order_side: request.side,
            order_type: request.order_type,
            quantity: request.quantity.into(),
            filled_qty: record.filled.into(),
            leaves_qty: record.leaves().into(),
            price: request.price.map(Into::into),
            trigger_price: request.trigger_price.map(Into::into),
            time_in_force: request.time_in_force,
            expire_time_ns: request.expire_time.map(TsNanos::nanos),
            status: listed(record.status),
            ts_event_ms: record.ts_submitted.millis(),
            trigger_type: None,
            tags: Vec::new(),
            extra: None,
            origin: Some(record.origin),
            strategy_id: None,
        })
    }
}

impl<'a> SubmittedOrder<'a> {
    /// An order of a replay that has no number of the venue; `None` for one that has.
    #[must_use]
    pub fn of_record(record: &'a OrderRecord, instrument_id: &'a str) -> Option<Self> {
        if record.venue_order_id.is_some() {
            return None;
        }
        let request = &*record.request;
        Some(Self {
            client_order_id: Text::Borrowed(&*request.client_order_id),
            origin: record.origin,
            instrument_id: Text::Borrowed(instrument_id),
            order_side: request.side,
            order_type: request.order_type,
            quantity: request.quantity.into(),
            price: request.price.map(Into::into),
            trigger_price: request.trigger_price.map(Into::into),
            time_in_force: request.time_in_force,
            expire_time_ns: request.expire_time.map(TsNanos::nanos),
            status: record.status,
            ts_event_ms: record.ts_submitted.millis(),
        })
    }
}

/// Lists show an order that is partly filled as accepted (specification 2, "States and transitions").
const fn listed(status: OrderStatus) -> OrderStatus {
    match status {
        OrderStatus::PartiallyFilled => OrderStatus::Accepted,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::{
        Fill, InstrumentIx, Money, OrderModify, OrderSide, OrderType, Origin, Price, Quantity,
        ReasonCode, Rejection, TimeInForce,
    };
    use serde_json::{Value, json};

    use super::*;

    const NOW: TsNanos = TsNanos::from_nanos(1_736_121_600_123_456_000);

    fn request() -> OrderRequest {
        OrderRequest {
            client_order_id: "O-1".into(),
            instrument: InstrumentIx(0),
            side: OrderSide::Buy,
            order_type: OrderType::Limit,
            quantity: Quantity::new(300),
            price: Some(Price::from_units(16_741_000)),
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: Vec::new(),
        }
    }

    /// An event as a line and as a message.
    fn both(kind: OrderEventKind) -> (Option<Value>, Value) {
        let event = OrderEvent {
            ts_event: NOW,
            origin: Origin::Client,
            client_order_id: "O-1".into(),
            venue_order_id: Some("R1".into()),
            instrument: InstrumentIx(0),
            side: OrderSide::Buy,
            status: OrderStatus::Accepted,
            kind,
        };
        let context = || OrderContext { venue: Some("replay".into()), ..OrderContext::default() };
        let line = EventLine::of_order(&event, context());
        let line = line.map(|line| serde_json::to_value(line).unwrap());
        let message = Event::of_order(&event, context());
        (line, serde_json::to_value(message).unwrap())
    }

    #[test]
    fn a_line_and_a_message_of_an_event_are_the_same() {
        let rejection = Rejection::new(ReasonCode::VenueRejected, "PRICE_LIMIT: too high");
        for (kind, name, more) in [
            (OrderEventKind::Submitted(Arc::new(request())), "OrderSubmitted", json!({})),
            (OrderEventKind::Accepted, "OrderAccepted", json!({"venue_order_id": "R1"})),
            (
                OrderEventKind::Rejected(rejection),
                "OrderRejected",
                json!({"reason_code": "VENUE_REJECTED", "reason_text": "PRICE_LIMIT: too high"}),
            ),
            (
                OrderEventKind::PendingUpdate(OrderModify::default()),
                "OrderPendingUpdate",
                json!({}),
            ),
            (OrderEventKind::PendingCancel, "OrderPendingCancel", json!({})),
            (OrderEventKind::Canceled, "OrderCanceled", json!({"venue_order_id": "R1"})),
            (OrderEventKind::Expired("DAY"), "OrderExpired", json!({"venue_order_id": "R1"})),
        ] {
            let mut expected = json!({
                "event": name,
                "client_order_id": "O-1",
                "ts_event_ms": 1_736_121_600_123_u64,
                "venue": "replay",
            });
            expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(both(kind), (Some(expected.clone()), expected), "{name}");
        }
    }

    #[test]
    fn a_fill_tells_its_nanoseconds_to_clients_only() {
        let (line, mut message) = both(OrderEventKind::Filled(Fill {
            side: OrderSide::Buy,
            trade_id: "9".into(),
            last_quantity: Quantity::new(100),
            last_price: Price::from_units(16_740_000),
            market_price: Price::from_units(16_739_000),
            cumulative_quantity: Quantity::new(200),
            leaves_quantity: Quantity::new(100),
            commission: Some(Money::from_yen(55)),
        }));
        let nanos = message.as_object_mut().unwrap().remove("ts_event_ns");
        assert_eq!(nanos, Some(json!(1_736_121_600_123_456_000_u64)));
        assert_eq!(line.as_ref(), Some(&message));
        let expected = json!({
            "event": "OrderFilled", "client_order_id": "O-1", "venue_order_id": "R1",
            "trade_id": "9", "last_qty": "100", "last_price": "1674", "cumulative_qty": "200",
            "leaves_qty": "100", "ts_event_ms": 1_736_121_600_123_u64, "venue": "replay",
        });
        assert_eq!(message, expected);
    }

    #[test]
    fn a_change_that_was_taken_tells_the_order_to_clients_only() {
        let (line, message) = both(OrderEventKind::Updated(Arc::new(request())));
        assert_eq!(line, None);
        let expected = json!({
            "event": "OrderUpdated", "client_order_id": "O-1", "venue_order_id": "R1",
            "quantity": "300", "price": "1674.1", "trigger_price": null, "expire_time_ns": null,
            "ts_event_ms": 1_736_121_600_123_u64, "venue": "replay",
        });
        assert_eq!(message, expected);
    }

    #[test]
    fn a_row_of_a_list_is_the_order() {
        let mut record = OrderRecord::new(Origin::Client, 0, request(), NOW);
        assert_eq!(OrderRecordWire::of_record(&record, "7203.TSE"), None, "no number yet");
        let under_way = SubmittedOrder::of_record(&record, "7203.TSE").unwrap();
        assert_eq!((&*under_way.client_order_id, under_way.status), ("O-1", record.status));
        record.venue_order_id = Some("R1".into());
        record.status = OrderStatus::PartiallyFilled;
        record.filled = Quantity::new(100);
        record.ts_last = TsNanos::from_nanos(NOW.nanos() * 2);
        let row = OrderRecordWire::of_record(&record, "7203.TSE").unwrap();
        let expected = json!({
            "client_order_id": "O-1", "venue_order_id": "R1", "instrument_id": "7203.TSE",
            "order_side": "BUY", "order_type": "LIMIT", "quantity": "300", "filled_qty": "100",
            "leaves_qty": "200", "price": "1674.1", "trigger_price": null, "time_in_force": "DAY",
            "expire_time_ns": null, "status": "ACCEPTED", "ts_event_ms": 1_736_121_600_123_u64,
            "origin": serde_json::to_value(Origin::Client).unwrap(),
        });
        assert_eq!(serde_json::to_value(row).unwrap(), expected);
        for status in [OrderStatus::Filled, OrderStatus::PendingCancel, OrderStatus::Expired] {
            assert_eq!(listed(status), status);
        }
    }
}
