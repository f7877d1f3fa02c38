//! What a run is worth, in numbers: returns, risk, round trips, costs.
//!
//! The numbers are built while the run goes on ([`Performance`]); the only thing that grows is one
//! value for each trading day. [`crate::Summary`] names each of
//! them, and [`crate::summary::DEFINITIONS`] holds the one text
//! that the page, the documentation and these docs show for it.
//!
//! Conventions: the daily return is the change of the equity from one trading day's last minute to
//! the next (the first day: from the cash at the start); 252 trading days make a year; the risk-free
//! rate is 0.

mod drawdown;
mod returns;
mod trips;

pub use drawdown::{Drawdown, DrawdownTracker};
pub use returns::{DAYS_PER_YEAR, Returns, sharpe_of};
pub use trips::TripTotals;

use domain::Money;

use crate::rows::{EquityRow, FillRow, RoundTrip};

/// What the statistics of a run are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Performance {
    /// Money at the start.
    pub cash_start: Money,
    /// Equity at the end of each trading day.
    pub days: Vec<EquityRow>,
    /// The deepest drawdown of the equity, at the ends of minutes with trades.
    pub drawdown: DrawdownTracker,
    /// Minutes with trades.
    pub minutes: u64,
    /// Those at whose end shares were held.
    pub minutes_held: u64,
    /// Ways from flat to flat.
    pub trips: TripTotals,
    /// Value of everything bought and sold.
    pub turnover: Money,
    /// What fills cost against the price of the market's trade.
    pub slippage: Money,
}

impl Performance {
    /// Nothing yet, with money at the start.
    #[must_use]
    pub fn new(cash_start: Money) -> Self {
        Self {
            cash_start,
            days: Vec::new(),
            drawdown: DrawdownTracker::new(cash_start),
            minutes: 0,
            minutes_held: 0,
            trips: TripTotals::default(),
            turnover: Money::ZERO,
            slippage: Money::ZERO,
        }
    }

    /// Takes in a fill.
    pub fn fill(&mut self, fill: &FillRow) {
        // The account has booked the same value, so it fits.
        self.turnover += Money::checked_notional(fill.price, fill.quantity).unwrap_or_default();
        self.slippage += fill.slippage;
    }

    /// Takes in the end of a minute.
    pub fn minute(&mut self, row: &EquityRow, holds_shares: bool) {
        self.minutes += 1;
        self.minutes_held += u64::from(holds_shares);
        self.drawdown.take(row.ts_event, row.equity);
    }

    /// Takes in the end of a day.
    pub fn day(&mut self, row: &EquityRow) {
        self.days.push(*row);
    }

    /// Takes in a way from flat to flat.
    pub fn round_trip(&mut self, trip: &RoundTrip) {
        self.trips.take(trip.pnl);
    }

    /// The returns of the days.
    #[must_use]
    pub fn returns(&self) -> Returns {
        Returns::new(self.cash_start, self.days.iter().map(|day| day.equity))
    }

    /// The mean of the equity at the ends of the days, in yen.
    #[must_use]
    pub fn mean_equity(&self) -> Option<f64> {
        let sum: f64 = self.days.iter().map(|day| day.equity.approximate_yen()).sum();
        (!self.days.is_empty()).then(|| sum / returns::as_number(self.days.len()))
    }
}
