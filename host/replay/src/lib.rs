//! Replays market data through a strategy: a virtual clock, a simulated exchange that states its
//! rules, a cash account, and the results as tables, files and a page.
//!
//! Nothing here reads a clock or draws a random number: the same data, the same strategy and the
//! same options give the same bytes, whatever the size of the windows handed to the strategy.
//!
//! - [`exchange`]: orders, matching, checks; the rules F1 to F9 in words ([`exchange::RULES`]).
//! - [`account`]: money and positions.
//! - [`run`]: the loop that hands market events to the strategy and its commands to the exchange.
//! - [`record`]: what a run leaves behind.
//! - [`output`]: the run's folder.
//! - [`sweep`]: many runs over combinations of parameters.

pub mod account;
pub mod exchange;
pub mod options;
pub mod output;
pub mod record;
pub mod report;
pub mod run;
pub mod series;
pub mod sweep;

pub use exchange::ExecutionModel;
pub use options::{OptionsError, ReplayOptions};
pub use record::{RunResult, RunStatus};
pub use run::{Control, Progress, replay};
pub use series::{TradeSeries, TradingDay};
