//! A run whose rows come one by one, as a live market gives them. It is a replay otherwise: the same loop, exchange
//! and records, so what it does over some rows a replay does over the same.

use domain::fault::FaultKind;
use domain::market::{Bar, Trade};
use domain::strategy::StrategyRuntime;
use domain::{InstrumentIx, OrderCommand, OrderSide, TsNanos};
use results::RunTotals;
use results::sink::RunSink;
use trader::OrderLimits;

use crate::driver::Unpaced;
use crate::options::ReplayOptions;
use crate::run::{ReplayError, Run, StreamRun};

/// What comes next in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamStep {
    /// A trade. Times never fall.
    Trade {
        /// The trade.
        trade: Trade,
        /// Who was its aggressor, where that is known (specification 4, P118).
        aggressor: Option<OrderSide>,
    },
    /// A bar of one minute.
    Bar(Bar),
    /// The trading day is over: 5 minutes after the close by the engine's clock (specification 4, P119).
    EndOfDay,
    /// A line for the run's log, as a warning: `GAP: 7203.TSE ...`.
    Note(String),
    /// Market data are lost, or back (specification 4, P115).
    MarketDataLost(bool),
    /// An order of the strategy, or a change or cancel of one, that was made before and is executed again. No guard is
    /// asked. It waits for the first row of its day.
    Order {
        /// When it was made.
        ts_event: TsNanos,
        /// What was wanted.
        command: OrderCommand,
    },
    /// Cash and equity are wanted now.
    ReportBuyingPower,
    /// The run ends (specification 4, P86).
    Stop,
    /// The run ends with this fault.
    Fail(FaultKind),
}

/// Where the steps of a stream come from.
pub trait MarketStream {
    /// The strategy's init went well, so that steps may come. Called once, before the first step.
    fn ready(&mut self);

    /// The next step. Waits until there is one.
    fn next(&mut self) -> StreamStep;
}

/// Runs a strategy over a stream of trades or bars until the stream stops it or it fails. Orders are held against
/// `limits`, every record goes to `sink` in order.
///
/// A day begins with its first row. It ends at [`StreamStep::EndOfDay`], at the first row of a later day or at
/// [`StreamStep::Stop`]; DAY orders then end at the close, or at the last row where that is later (F6).
///
/// A sink that fails ends the run with [`FaultKind::Journal`]: what is not kept is not done.
///
/// # Errors
/// As [`crate::replay`], but for a sink that fails.
///
/// # Panics
/// When a row has another instrument than the options.
pub fn stream(
    source: &mut dyn MarketStream,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    limits: OrderLimits,
    sink: &mut dyn RunSink,
) -> Result<RunTotals, ReplayError> {
    options.check()?;
    let options = ReplayOptions { window: 1, ..options.clone() };
    let mut driver = Unpaced;
    StreamRun::new(Run::new(strategy, &options, sink, &mut driver), limits).run(source)
}

/// Executes the orders of a stream again ([`StreamStep::Order`]) and tells `strategy`, which asks for nothing itself. The
/// account holds so many shares of each instrument from before.
///
/// # Errors
/// As [`stream`].
///
/// # Panics
/// When a row, or shares that are held, have another instrument than the options.
pub fn execute_again(
    source: &mut dyn MarketStream,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    held: &[(InstrumentIx, i64)],
    sink: &mut dyn RunSink,
) -> Result<RunTotals, ReplayError> {
    options.check()?;
    let options = ReplayOptions { window: 1, ..options.clone() };
    let mut driver = Unpaced;
    let mut run = Run::new(strategy, &options, sink, &mut driver);
    run.hold(held);
    StreamRun::new(run, OrderLimits::default()).run(source)
}
