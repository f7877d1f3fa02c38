//! Which orders have been sent and are not done, with the limit price that counts now.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{OrderEvent, OrderEventKind, Origin, Price, ReasonCode};

/// Orders that were sent and are not done; as many as may work at the same time.
#[derive(Debug, Default)]
pub(super) struct WorkingOrders(BTreeMap<Key, Working>);

/// Ids are unique in one origin.
type Key = (Origin, Arc<str>);

#[derive(Debug, Clone, Copy)]
struct Working {
    limit: Option<Price>,
    /// The limit of a change under way.
    wanted: Option<Price>,
    accepted: bool,
}

impl WorkingOrders {
    /// Notes an event; tells whether its order had been sent.
    pub(super) fn note(&mut self, event: &OrderEvent) -> bool {
        if let OrderEventKind::Submitted(request) = &event.kind {
            let working = Working { limit: request.price, wanted: None, accepted: false };
            self.0.insert(key_of(event), working);
            return true;
        }
        let Some(working) = self.0.get_mut(&key_of(event)) else { return false };
        match &event.kind {
            OrderEventKind::Accepted => working.accepted = true,
            OrderEventKind::PendingUpdate(change) => working.wanted = change.price,
            OrderEventKind::Updated(_) => {
                working.limit = working.wanted.take().or(working.limit);
            }
            OrderEventKind::Rejected(rejection) => {
                // A second order with the id of one that works is rejected before it is sent. It
                // has no number of the venue, and its fault is one of form.
                let in_flight = event.venue_order_id.is_none() && !working.accepted;
                let of_form = rejection.code == ReasonCode::ValidationError;
                return event.venue_order_id.is_some() || (in_flight && !of_form);
            }
            _ => {}
        }
        true
    }

    /// The limit price of the order of an event, if it works.
    pub(super) fn limit_of(&self, event: &OrderEvent) -> Option<Price> {
        self.0.get(&key_of(event))?.limit
    }

    /// Forgets the order of an event: it is done.
    pub(super) fn forget(&mut self, event: &OrderEvent) {
        self.0.remove(&key_of(event));
    }
}

fn key_of(event: &OrderEvent) -> Key {
    (event.origin, Arc::clone(&event.client_order_id))
}
