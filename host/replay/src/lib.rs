//! Replays market data through a strategy: a virtual clock and the loop between the market, the
//! simulated exchange, the strategy and the results.
//!
//! Nothing here draws a random number: the same data, the same strategy and the same options give the
//! same bytes, whatever the size of the windows handed to the strategy.
//!
//! - [`series`]: what is replayed: trades or bars of up to four instruments, day by day.
//! - [`RunDays`]: which days a run has.
//! - [`run`]: the loop that hands market events to the strategy and its commands to the exchange.
//! - [`mod@stream`]: the same loop over rows that come one by one, as a live market gives them.
//! - [`request`]: the use case "run a replay", from data and strategy to the folder of results, with
//!   [`data_set`]; the only modules that name the sandbox or files of data.
//! - [`verify`]: a run made again from its folder, to see whether the same comes out.
//! - [`driver`]: what paces a run, commands it and ends it; [`driver::Paced`] has the one clock.

pub mod data_set;
mod days;
pub mod driver;
pub mod error;
pub mod instruments;
mod manifest;
mod merge;
pub mod observer;
pub mod options;
pub mod request;
mod rows;
pub mod run;
pub mod series;
pub mod stream;
pub mod verify;

pub use days::RunDays;
pub use driver::{Multiplier, RunCommand, RunDriver, RunPosition, Unpaced};
pub use error::RequestError;
pub use manifest::{json_values, limit_values, manifest};
pub use observer::RunObserver;
pub use options::{OptionsError, ReplayOptions, UnitChange, check_instruments};
pub use request::RunRequest;
pub use run::{ReplayError, WorthError, replay};
pub use series::{BarSeries, MarketDay, MarketSeries, TradeSeries, TradingDay};
pub use stream::{MarketStream, StreamStep, stream};
