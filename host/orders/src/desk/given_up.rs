//! Orders that were told as not at the broker (specification 4, P20), and whose rows a later list has: the
//! broker's lists may lag. Their ids are free, so they stay rejected; but whoever sent them must know.

use domain::Discrepancy;
use domain::order_mapping::BrokerRow;

use super::{Desk, Now};
use crate::book::OrderKey;
use crate::limits::GIVEN_UP_KNOWN_MAX;
use crate::reconcile::fits;

impl Desk {
    /// Remembers an order that is about to be told as not at the broker.
    pub(crate) fn give_up(&mut self, key: OrderKey) {
        let Some(order) = self.book.get(key) else { return };
        if self.given_up.len() >= GIVEN_UP_KNOWN_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(order.clone());
    }

    /// A row counts as placed elsewhere: tells which order that was given up it may be.
    pub(crate) fn find_given_up(&mut self, row: &BrokerRow, now: Now) {
        let Some(place) = self.given_up.iter().position(|order| fits(order, row)) else { return };
        let Some(order) = self.given_up.remove(place) else { return };
        let number = &row.venue_order_id;
        let text = format!(
            "the engine reported it as rejected, NOT_AT_BROKER; a later list has an order that \
             fits, number {number}, {}, shown as placed elsewhere",
            row.status
        );
        let (id, number) = (order.client_order_id, Some(number.clone()));
        self.push_discrepancy(id, number, Discrepancy::EndedButWorking, text, now);
    }
}
