//! What the owner of a session checks of the account as fills come.

use domain::fault::FaultKind;
use domain::{Fill, JstDate};

use crate::rows::LastPrices;

/// Checks the account of a session; what it refuses ends the session. `()` checks nothing.
pub trait AccountCheck<E> {
    /// Sees a fill before it is recorded. After `false` nothing of the instant is recorded any more, and
    /// [`Self::check`] must fail.
    fn fill(&mut self, fill: &Fill) -> bool;

    /// Checks the account after events of orders were recorded.
    ///
    /// # Errors
    /// Why the session ends.
    fn check(&mut self, date: JstDate, execution: &E, prices: &LastPrices)
    -> Result<(), FaultKind>;
}

impl<E> AccountCheck<E> for () {
    fn fill(&mut self, _: &Fill) -> bool {
        true
    }

    fn check(&mut self, _: JstDate, _: &E, _: &LastPrices) -> Result<(), FaultKind> {
        Ok(())
    }
}
