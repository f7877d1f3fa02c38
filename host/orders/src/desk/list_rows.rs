//! Lists of orders as clients get them: the broker's rows with the ids of their senders.
//!
//! Specification 2, `OrderRecordWire` and `OrderListFilter`.

use domain::order_mapping::BrokerRow;
use domain::{JstDate, OrderFilter, OrderStatus, Rejection};

use super::Desk;
use crate::book::Seen;
use crate::check::symbol_of;
use crate::event::{ListedOrder, OrderListPart, Reply};
use crate::limits::LIST_ROWS_SENT_MAX;

/// Checks a filter and resolves it on a date in Japan. All rows of the broker are of today: placed today, or
/// working today.
pub(crate) fn filter_of(mut filter: OrderFilter, today: JstDate) -> Result<OrderFilter, Rejection> {
    filter.instrument_id.as_deref().map(symbol_of).transpose()?;
    filter.date = filter.date.filter(|date| *date != today);
    Ok(filter)
}

impl Desk {
    /// Sends the newest list, in messages of limited size.
    pub(crate) fn report_list(
        &mut self,
        client: u64,
        request_id: &str,
        filter: Option<&OrderFilter>,
    ) {
        let rows = self.reconciliation.lists.rows.iter().map(|row| self.listed(row));
        let is_wanted = |order: &ListedOrder| {
            let ListedOrder { instrument_id, row, .. } = order;
            filter.is_none_or(|filter| filter.takes(row.status, instrument_id, row.time))
        };
        let mut rows: Vec<ListedOrder> = rows.filter(is_wanted).collect();
        let is_split = rows.len() > LIST_ROWS_SENT_MAX;
        let mut reported = 0_u64;
        loop {
            let rest = rows.split_off(rows.len().min(LIST_ROWS_SENT_MAX));
            let orders = std::mem::replace(&mut rows, rest);
            reported += orders.len() as u64;
            let more = !rows.is_empty();
            let part = OrderListPart {
                request_id: request_id.to_owned(),
                orders,
                more: is_split.then_some(more),
                next: more.then_some(reported),
            };
            self.reply(client, Reply::OrderList(part));
            if !more {
                return;
            }
        }
    }

    /// A row with the id that its sender gave the order. A partial fill is ACCEPTED there (specification 2,
    /// "Order status mapping").
    fn listed(&self, row: &BrokerRow) -> ListedOrder {
        let seen = Seen::row(row, row.time.jst_date());
        let key = self.book.by_number(&row.venue_order_id, seen);
        let order = key.and_then(|key| self.book.get(key));
        let expire_time = order
            .filter(|order| order.order.expire_date == row.expire_date)
            .and_then(|order| order.expire_time)
            .or_else(|| row.expire_date.and_then(crate::book::last_moment));
        let mut row = row.clone();
        if row.status == OrderStatus::PartiallyFilled {
            row.status = OrderStatus::Accepted;
        }
        ListedOrder {
            origin: order.and_then(|order| order.origin.clone()),
            client_order_id: order.and_then(|order| order.client_order_id.clone()),
            instrument_id: format!("{}.TSE", row.symbol).into(),
            expire_time,
            row,
        }
    }
}
