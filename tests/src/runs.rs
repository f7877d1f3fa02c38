//! Replays that keep everything in memory, unpaced or paced by a clock that lets nobody wait.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use domain::strategy::StrategyRuntime;
use replay::driver::{Paced, WallClock};
use replay::{MarketDay, Multiplier, ReplayOptions, RunCommand, RunDriver, Unpaced, replay};
use results::RunResult;
use results::sink::InMemory;

/// A clock that stands still and lets nobody wait.
#[derive(Debug, Default)]
pub struct NoWait;

impl WallClock for NoWait {
    fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }

    fn wait(&mut self, _: &Receiver<RunCommand>, _: Duration) -> Option<RunCommand> {
        None
    }
}

/// Replays with a driver and keeps everything.
///
/// # Panics
/// When an option makes no sense.
pub fn in_memory<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    driver: &mut dyn RunDriver,
) -> RunResult {
    let mut rows = InMemory::default();
    let totals = replay(days, strategy, options, &mut rows, driver);
    let totals = totals.unwrap_or_else(|error| panic!("{error}"));
    rows.into_result(totals)
}

/// Replays as fast as it can and keeps everything.
pub fn unpaced<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunResult {
    in_memory(days, strategy, options, &mut Unpaced)
}

/// Replays row by row at the highest speed, without any wait, and keeps everything.
pub fn paced<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunResult {
    let (_sender, commands) = channel();
    let mut clock = NoWait;
    in_memory(days, strategy, options, &mut Paced::new(Multiplier::UNPACED, commands, &mut clock))
}
