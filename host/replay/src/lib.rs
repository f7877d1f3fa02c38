//! Replays market data through a strategy: a virtual clock, a simulated exchange that states its
//! rules, a cash account, and the results as tables, files and a page.
//!
//! Nothing here reads a clock or draws a random number: the same data, the same strategy and the
//! same options give the same bytes, whatever the size of the windows handed to the strategy.
//!
//! - [`exchange`]: orders, matching, checks; the rules F1 to F10 in words ([`exchange::RULES`]).
//! - [`account`]: money and positions.
//! - [`series`]: what is replayed: trades or bars of up to four instruments, day by day.
//! - [`run`]: the loop that hands market events to the strategy and its commands to the exchange.
//! - [`streaming`]: the same loop, paced by the wall clock and watched; the one part with a clock.
//! - [`record`]: what a run leaves behind; [`sink`]: where it goes while the run goes on.
//! - [`statistics`]: what a run is worth, in numbers.
//! - [`output`]: the run's folder.
//! - [`sweep`]: many runs over combinations of parameters.

pub mod account;
mod drive;
pub mod exchange;
mod merge;
pub mod options;
pub mod output;
pub mod record;
mod recorder;
pub mod report;
mod rows;
pub mod run;
pub mod series;
pub mod sink;
pub mod statistics;
pub mod streaming;
pub mod sweep;

pub use exchange::ExecutionModel;
pub use options::{OptionsError, ReplayOptions, check_instruments};
pub use record::{RunResult, RunStatus, RunTotals};
pub use run::{Control, Progress, ReplayError, replay, replay_into};
pub use series::{BarSeries, MarketDay, MarketSeries, TradeSeries, TradingDay};
pub use streaming::{Multiplier, ReplayObserver, SpeedDial, stream, stream_into};
