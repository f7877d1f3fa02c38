//! Streams of rows that were written down before, and runs over them.

use std::collections::VecDeque;

use domain::market::Trade;
use domain::strategy::StrategyRuntime;
use domain::{InstrumentIx, Price, Quantity, TsNanos};
use replay::stream::{MarketStream, StreamStep, stream};
use replay::{ReplayError, ReplayOptions};
use results::RunResult;
use results::sink::InMemory;
use trader::OrderLimits;

use super::at;

/// Gives its steps one by one, then stops the run.
#[derive(Default)]
pub(crate) struct Feed {
    steps: VecDeque<StreamStep>,
    is_ready: bool,
}

impl MarketStream for Feed {
    fn ready(&mut self) {
        assert!(!self.is_ready, "told twice");
        self.is_ready = true;
    }

    fn next(&mut self) -> StreamStep {
        assert!(self.is_ready, "a step before the strategy was ready");
        self.steps.pop_front().unwrap_or(StreamStep::Stop)
    }
}

impl Feed {
    /// Adds a step.
    pub(crate) fn step(mut self, step: StreamStep) -> Self {
        self.steps.push_back(step);
        self
    }

    /// Adds a trade of the first instrument, its time in seconds after 09:00 on a day of January 2025.
    pub(crate) fn trade(self, day: u32, seconds: f64, price: &str, quantity: u64) -> Self {
        let trade = Trade {
            ts_event: TsNanos::from_nanos(at(day, seconds)),
            instrument: InstrumentIx(0),
            price: price.parse::<Price>().unwrap(),
            quantity: Quantity::new(quantity),
        };
        self.step(StreamStep::Trade { trade, aggressor: None })
    }

    /// Runs a strategy over the steps and keeps everything.
    pub(crate) fn run(
        mut self,
        strategy: &mut dyn StrategyRuntime,
        options: &ReplayOptions,
        limits: OrderLimits,
    ) -> Result<RunResult, ReplayError> {
        let mut rows = InMemory::default();
        let totals = stream(&mut self, strategy, options, limits, &mut rows)?;
        Ok(rows.into_result(totals))
    }
}
