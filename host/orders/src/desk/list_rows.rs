//! Lists of orders as clients are told them: the broker's rows with the ids of their senders (specification
//! 2, `OrderRecordWire`, `OrderListFilter`).

use domain::order_mapping::BrokerRow;
use domain::{JstDate, OrderStatus, Rejection, TriggerType, TsNanos};
use ipc::{Event, OrderListFilter, OrderListUpdated, OrderRecordWire};
use venues::{ListFilter, OrderQuery};

use super::{Desk, Recipient};
use crate::book::Seen;
use crate::check::symbol_of;
use crate::limits::LIST_ROWS_TOLD_MAX;

/// Reads a filter on a date in Japan. All that the broker lists is of today: what was placed today, or works
/// today.
pub(crate) fn read_filter(
    filter: &OrderListFilter,
    today: JstDate,
) -> Result<ListFilter, Rejection> {
    let OrderListFilter { status, instrument_id, date } = filter.clone();
    let mut read = ListFilter::read(&OrderQuery { status, instrument_id, date })?;
    filter.instrument_id.as_deref().map(symbol_of).transpose()?;
    read.date = read.date.filter(|date| *date != today);
    Ok(read)
}

/// Whether a client wants a row.
fn takes(filter: &ListFilter, row: &OrderRecordWire<'_>) -> bool {
    let placed = TsNanos::from_nanos(row.ts_event_ms.saturating_mul(1_000_000));
    filter.takes(row.status, &row.instrument_id, placed)
}

impl Desk {
    /// Tells the newest list, in messages of limited size.
    pub(crate) fn tell_list(&mut self, client: u64, request_id: &str, filter: Option<&ListFilter>) {
        let rows = self.resync.rows.iter().map(|row| self.wire(row));
        let rows: Vec<OrderRecordWire<'static>> =
            rows.filter(|row| filter.is_none_or(|filter| takes(filter, row))).collect();
        let mut parts: Vec<Vec<OrderRecordWire<'static>>> =
            rows.chunks(LIST_ROWS_TOLD_MAX).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        let last = parts.len() - 1;
        let mut told = 0_u64;
        for (index, orders) in parts.into_iter().enumerate() {
            told += orders.len() as u64;
            let more = index < last;
            let event = OrderListUpdated {
                request_id: request_id.to_owned().into(),
                orders,
                more: (last > 0).then_some(more),
                next: more.then_some(told),
            };
            self.tell(Recipient::Client(client), Event::OrderListUpdated(event));
        }
    }

    /// A row as clients see it: what the broker says, with the id that its sender gave the order. A partial
    /// fill is ACCEPTED there (specification 2, "Order status mapping").
    fn wire(&self, row: &BrokerRow) -> OrderRecordWire<'static> {
        let seen = Seen::row(row, row.time.jst_date());
        let key = self.book.by_number(&row.venue_order_id, seen);
        let order = key.and_then(|key| self.book.get(key));
        let id = order.and_then(|order| order.client_order_id.as_deref());
        let expire_time = order
            .filter(|order| order.order.expire_date == row.expire_date)
            .and_then(|order| order.expire_time)
            .or_else(|| row.expire_date.and_then(crate::book::last_moment));
        let status = match row.status {
            OrderStatus::PartiallyFilled => OrderStatus::Accepted,
            status => status,
        };
        OrderRecordWire {
            client_order_id: id.map(|id| id.to_owned().into()),
            venue_order_id: row.venue_order_id.to_string().into(),
            instrument_id: format!("{}.TSE", row.symbol).into(),
            order_side: row.side,
            order_type: row.order_type,
            quantity: row.quantity.into(),
            filled_qty: row.filled.into(),
            leaves_qty: row.leaves.into(),
            price: row.price.map(Into::into),
            trigger_price: row.trigger_price.map(Into::into),
            time_in_force: row.time_in_force,
            expire_time_ns: expire_time.map(TsNanos::nanos),
            status,
            ts_event_ms: row.time.millis(),
            trigger_type: row.trigger_price.map(|_| TriggerType::Last),
            tags: row.tags.iter().map(|tag| tag.clone().into()).collect(),
            extra: None,
            origin: None,
        }
    }
}
