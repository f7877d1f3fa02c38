//! What a strategy's events cost: it is handed trades one by one, as in a strict replay, and nobody
//! answers its orders.

use std::time::Duration;

use domain::account::{PortfolioView, Position};
use domain::clock::Stopwatch;
use domain::fault::Fault;
use domain::market::{Trade, Window};
use domain::strategy::StrategyRuntime;
use domain::{InstrumentIx, Price, Quantity, TsNanos};
use sandbox::StrategyInstance;

/// Trades that are handed over, and how many of them go by between two looks at the clock.
const TRADES: u64 = 20_000;
const TRADES_BETWEEN: u64 = 100;
/// A slow strategy is measured with fewer trades.
const TIME: Duration = Duration::from_millis(500);
/// 2025-01-06 09:00 JST.
const FIRST: u64 = 1_736_121_600_000_000_000;

/// The mean over the trades that were handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventCost {
    /// Trades.
    pub(crate) trades: u64,
    /// Wall time of each in nanoseconds.
    pub(crate) nanoseconds: u64,
    /// Fuel of each; the same on every machine.
    pub(crate) fuel: u64,
}

/// Measures a strategy that has taken its configuration for one instrument.
///
/// # Errors
/// Its fault.
pub(crate) fn measure(strategy: &mut StrategyInstance) -> Result<EventCost, Box<Fault>> {
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
        // Nobody reads it; it would only grow.
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
