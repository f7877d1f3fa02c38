//! Tries a strategy without a market: whether it starts, its parameters, and what an event costs.
//!
//! It gets trades one by one, as in a strict replay. Its orders get no answer.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::account::{PortfolioView, Position};
use domain::clock::Stopwatch;
use domain::fault::Fault;
use domain::market::{Trade, Window};
use domain::strategy::StrategyRuntime;
use domain::{Instrument, InstrumentIx, Price, Quantity, TickTable, TsNanos};
use sandbox::{Limits, SandboxError, StrategyInstance, StrategyModule};

/// Trades of a measurement, and how many of them pass between two looks at the clock.
const TRADES: u64 = 20_000;
const TRADES_BETWEEN: u64 = 100;
/// A slow strategy is measured with fewer trades.
const TIME: Duration = Duration::from_millis(500);
/// 2025-01-06 09:00 JST.
const FIRST: u64 = 1_736_121_600_000_000_000;

/// The mean over the trades that were handed over.
#[derive(Debug, Clone, Copy)]
pub struct EventCost {
    /// Trades.
    pub trades: u64,
    /// Wall time of each in nanoseconds.
    pub nanoseconds: u64,
    /// Fuel of each; the same on every machine.
    pub fuel: u64,
}

/// The result of a trial.
#[derive(Debug)]
pub struct Trial {
    /// Fuel of `init`.
    pub init_fuel: u64,
    /// The parameters in effect: values as JSON by their names.
    pub parameters: BTreeMap<String, String>,
    /// The parameters without a configuration; `None` if the strategy does not start without one.
    pub defaults: Option<BTreeMap<String, String>>,
    /// What an event costs, or the fault that came first.
    pub cost: Result<EventCost, Box<Fault>>,
}

/// Tries a strategy with a configuration (a JSON object) and these instruments.
///
/// # Errors
/// When the sandbox cannot start it.
pub fn trial(
    module: &StrategyModule,
    limits: Limits,
    config_json: &str,
    instruments: &[Instrument],
) -> Result<Trial, SandboxError> {
    let mut instance = module.instantiate(limits)?;
    let init = instance.init(config_json, instruments);
    let init_fuel = instance.fuel_used();
    let parameters = instance.take_parameters();
    let defaults = reported_parameters(module, limits, "{}", instruments)?;
    let cost = init.and_then(|()| measure(&mut instance));
    Ok(Trial { init_fuel, parameters, defaults, cost })
}

/// The instrument of a trial: 7203 in lots of 100, with steps of 1 yen.
#[must_use]
pub fn instrument() -> Instrument {
    #[expect(clippy::expect_used, reason = "the id is one")]
    let id = "7203.TSE".parse().expect("an instrument");
    Instrument { id, lot: Quantity::new(100), ticks: TickTable::Fixed(Price::from_yen(1)) }
}

/// The parameters that a strategy reports with a configuration; `None` if it does not start with it.
///
/// # Errors
/// When the sandbox cannot start it.
pub fn reported_parameters(
    module: &StrategyModule,
    limits: Limits,
    config_json: &str,
    instruments: &[Instrument],
) -> Result<Option<BTreeMap<String, String>>, SandboxError> {
    let mut instance = module.instantiate(limits)?;
    let init = instance.init(config_json, instruments);
    Ok(init.is_ok().then(|| instance.take_parameters()))
}

/// Measures a strategy that has taken its configuration for one instrument.
///
/// # Errors
/// Its fault.
fn measure(strategy: &mut StrategyInstance) -> Result<EventCost, Box<Fault>> {
    let positions = vec![Position::default()];
    strategy.set_portfolio(&PortfolioView { positions, ..PortfolioView::default() });
    strategy.start(TsNanos::from_nanos(FIRST))?;
    let fuel_before = strategy.fuel_used();
    let watch = Stopwatch::start();
    let mut trades = 0;
    while trades < TRADES && watch.elapsed() < TIME {
        for number in trades..trades + TRADES_BETWEEN {
            strategy.advance(Window::OneTrade(trade(number)), 1)?;
        }
        trades += TRADES_BETWEEN;
        // No reader gets the log, and it would only grow.
        drop(strategy.take_log());
    }
    let elapsed = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let fuel = strategy.fuel_used() - fuel_before;
    Ok(EventCost { trades, nanoseconds: elapsed / trades, fuel: fuel / trades })
}

/// One trade a second around 1,000 yen.
fn trade(number: u64) -> Trade {
    Trade {
        ts_event: TsNanos::from_nanos(FIRST + number * 1_000_000_000),
        instrument: InstrumentIx(0),
        price: Price::from_yen(997 + (number % 7).cast_signed()),
        quantity: Quantity::new(100),
    }
}
