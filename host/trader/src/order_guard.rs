//! What holds a strategy's orders back before they leave: its own limits, its position, and lost market data.

use domain::{Money, Quantity};

/// The most that a strategy's orders may be; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderLimits {
    /// Shares of an order (specification 4, P95).
    pub max_qty: Option<Quantity>,
    /// What an order is worth (specification 4, P95).
    pub max_notional: Option<Money>,
    /// Orders sent within 60 s (specification 4, P96).
    pub max_orders_per_minute: Option<u32>,
    /// Orders that work at the same time (specification 4, P96).
    pub max_open_orders: Option<u32>,
    /// The day's loss from which on it buys no more (specification 4, P96).
    pub max_daily_loss: Option<Money>,
    /// Shares of an instrument that are held and that working orders would buy (specification 4, P123).
    pub max_position_qty: Option<Quantity>,
}
