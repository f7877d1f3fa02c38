//! Commands for orders, as strategies, clients and replays give them to an exchange or a venue.

use serde::{Deserialize, Serialize};

use crate::instrument::InstrumentIx;
use crate::order::{OrderModify, OrderRequest, OrderSide};
use crate::text::ShortText;

/// What somebody wants done with orders (specification 2, "Endpoints").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderCommand {
    /// Send an order.
    Submit(OrderRequest),
    /// Change a working order.
    Modify {
        /// The caller's id of the order, as it was submitted.
        client_order_id: ShortText,
        /// The fields that change.
        change: OrderModify,
    },
    /// Cancel a working order.
    Cancel {
        /// The caller's id of the order, as it was submitted.
        client_order_id: ShortText,
    },
    /// Cancel every working order of the same origin that the filters let through.
    CancelAll {
        /// Only orders of this instrument; `None` for all.
        instrument: Option<InstrumentIx>,
        /// Only orders of this side; `None` for both.
        side: Option<OrderSide>,
    },
}
