//! Which orders have been sent and are not done, with the limit price that counts now.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{OrderEvent, OrderEventKind, Price, ReasonCode};

/// Orders that were sent and are not done; as many as may work at the same time.
#[derive(Debug, Default)]
pub(super) struct WorkingOrders(BTreeMap<Arc<str>, Working>);

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
            self.0.insert(Arc::clone(&event.client_order_id), working);
            return true;
        }
        let Some(working) = self.0.get_mut(&event.client_order_id) else { return false };
        match &event.kind {
            OrderEventKind::Accepted => working.accepted = true,
            OrderEventKind::PendingUpdate(change) => working.wanted = change.price,
            OrderEventKind::Updated => {
                working.limit = working.wanted.take().or(working.limit);
            }
            OrderEventKind::Rejected(rejection) => {
                // A second order with the id of one that works is refused before it is sent. It has
                // no number of the venue, and its fault is one of form.
                let in_flight = event.venue_order_id.is_none() && !working.accepted;
                let of_form = rejection.code == ReasonCode::ValidationError;
                return event.venue_order_id.is_some() || (in_flight && !of_form);
            }
            _ => {}
        }
        true
    }

    /// The limit price of an order that works.
    pub(super) fn limit_of(&self, client_order_id: &str) -> Option<Price> {
        self.0.get(client_order_id)?.limit
    }

    /// Forgets an order that is done.
    pub(super) fn forget(&mut self, client_order_id: &str) {
        self.0.remove(client_order_id);
    }
}
