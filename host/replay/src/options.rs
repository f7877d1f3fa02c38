//! What a replay can be told.

use domain::limits::WINDOW_ROWS_MAX;
use domain::{Instrument, Money};
use thiserror::Error;

use crate::exchange::{ExecutionModel, ModelError};

/// What a replay can be told.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// What is traded.
    pub instrument: Instrument,
    /// Money in the account at the start.
    pub cash: Money,
    /// How the exchange fills orders.
    pub model: ExecutionModel,
    /// Trades handed to the strategy at once, 1 to 65,536. Results do not depend on it; 1 (the
    /// default) never lets a trade into the strategy's memory before its time.
    pub window: u32,
    /// Configuration of the strategy: a JSON object.
    pub config_json: String,
}

/// An option that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// The window.
    #[error("the window is {0} trades; it must be 1 to {WINDOW_ROWS_MAX}")]
    Window(u32),
    /// A parameter of the exchange.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The lot.
    #[error("the lot is 0 shares; it must be at least 1")]
    Lot,
    /// The cash.
    #[error("the cash is {0} yen; it must not be negative")]
    Cash(Money),
}

impl ReplayOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The first option that makes no sense.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !(1..=WINDOW_ROWS_MAX).contains(&self.window) {
            return Err(OptionsError::Window(self.window));
        }
        self.model.check()?;
        if self.instrument.lot.is_zero() {
            return Err(OptionsError::Lot);
        }
        if self.cash < Money::ZERO {
            return Err(OptionsError::Cash(self.cash));
        }
        Ok(())
    }
}
