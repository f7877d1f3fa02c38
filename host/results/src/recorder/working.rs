//! Which orders have been sent and are not done, with the limit price that counts now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::{OrderEvent, OrderEventKind, Origin, Price, ReasonCode, ShortText};

/// Orders that were sent and are not done; as many as may work at the same time.
#[derive(Debug, Default)]
pub(super) struct WorkingOrders(BTreeMap<Key, Working>);

/// Ids are unique in one origin.
type Key = (Origin, ShortText);

#[derive(Debug, Clone, Copy)]
struct Working {
    limit: Option<Price>,
    /// The limit of a change under way.
    wanted: Option<Price>,
    accepted: bool,
}

/// What is known of the order of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noted {
    /// It had been sent.
    pub(super) sent: bool,
    /// Its limit price, if it works.
    pub(super) limit: Option<Price>,
}

impl WorkingOrders {
    /// Notes an event. An order that is done with it is forgotten.
    pub(super) fn note(&mut self, event: &OrderEvent) -> Noted {
        if let OrderEventKind::Submitted(request) = &event.kind {
            let working = Working { limit: request.price, wanted: None, accepted: false };
            self.0.insert(key_of(event), working);
            return Noted { sent: true, limit: request.price };
        }
        let Entry::Occupied(mut found) = self.0.entry(key_of(event)) else {
            return Noted::default();
        };
        let working = found.get_mut();
        let sent = working.take(event);
        let limit = working.limit;
        if sent && event.status.is_final() {
            found.remove();
        }
        Noted { sent, limit }
    }
}

impl Working {
    /// Takes an event; tells whether its order had been sent.
    fn take(&mut self, event: &OrderEvent) -> bool {
        match &event.kind {
            OrderEventKind::Accepted => self.accepted = true,
            OrderEventKind::PendingUpdate(change) => self.wanted = change.price,
            OrderEventKind::Updated(_) => {
                self.limit = self.wanted.take().or(self.limit);
            }
            OrderEventKind::Rejected(rejection) => {
                // A second order with the id of one that works is rejected before it is sent. It
                // has no number of the venue, and its fault is one of form.
                let in_flight = event.venue_order_id.is_none() && !self.accepted;
                let of_form = rejection.code == ReasonCode::ValidationError;
                return event.venue_order_id.is_some() || (in_flight && !of_form);
            }
            _ => {}
        }
        true
    }
}

fn key_of(event: &OrderEvent) -> Key {
    (event.origin, event.client_order_id.clone())
}
