//! Replays market data through a strategy: a virtual clock, a simulated exchange that states its
//! rules, a cash account, and the results as tables, files and a page.
//!
//! Nothing here reads a clock or draws a random number: the same data, the same strategy and the
//! same options give the same bytes, whatever the size of the windows handed to the strategy.
//!
//! - [`exchange`]: orders, matching, checks; the rules F1 to F10 in words ([`exchange::RULES`]).
//! - [`account`]: money and positions.
//! - [`run`]: the loop that hands market events to the strategy and its commands to the exchange.
//! - [`record`]: what a run leaves behind; [`sink`]: where it goes while the run goes on.
//! - [`statistics`]: what a run is worth, in numbers.
//! - [`output`]: the run's folder.

pub mod account;
pub mod exchange;
pub mod options;
pub mod output;
pub mod record;
mod recorder;
pub mod report;
pub mod run;
pub mod series;
pub mod sink;
pub mod statistics;

pub use exchange::ExecutionModel;
pub use options::{OptionsError, ReplayOptions};
pub use record::{RunResult, RunStatus, RunTotals};
pub use run::{Control, Progress, ReplayError, replay, replay_into};
pub use series::{TradeSeries, TradingDay};
