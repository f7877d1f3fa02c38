//! Orders for tests.

use domain::{InstrumentIx, OrderRequest, OrderSide, OrderType, Quantity, TimeInForce};

/// The smallest order that every phase takes.
pub(crate) fn market_buy(id: &str) -> OrderRequest {
    OrderRequest {
        client_order_id: id.into(),
        instrument: InstrumentIx(0),
        side: OrderSide::Buy,
        order_type: OrderType::Market,
        quantity: Quantity::new(100),
        price: None,
        trigger_price: None,
        trigger_type: None,
        time_in_force: TimeInForce::Day,
        expire_time: None,
        post_only: false,
        reduce_only: false,
        tags: Vec::new(),
    }
}
