//! Drives one strategy, whatever executes its orders.
//!
//! - [`StrategySession`]: hands rows and events of orders to the strategy, executes what it wants, and holds its
//!   records against its budgets.
//! - [`rows`]: the rows that a session takes: many trades or bars of a replay, or one of a live market.
//! - [`strategies`]: finds strategies and makes them ready to run.
//! - [`trial`]: tries a strategy without a market: its parameters, and what an event costs.

mod account_check;
mod order_guard;
mod output_budget;
pub mod rows;
mod session;
pub mod strategies;
pub mod trial;

pub use account_check::AccountCheck;
pub use order_guard::{OrderGuard, OrderLimits};
pub use rows::{BarRows, LastPrices, Pass, Rows};
pub use session::{SessionLimits, StrategySession};
pub use strategies::{Loading, Strategies, StrategyError, component_identity, config_json};
