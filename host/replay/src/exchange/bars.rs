//! Bars at the exchange (F10): an order decided on one bar matches the next at the earliest, from
//! its open on.

use domain::strategy::Bar;
use domain::{InstrumentIx, Quantity};

use super::Exchange;

impl Exchange {
    /// Lets our orders match a bar of the market: as trades at its open, its low, its high and its
    /// close, each with a quarter of its volume and all at its end.
    pub fn take_bar(&mut self, instrument: InstrumentIx, bar: &Bar) {
        let quarter = Quantity::new(bar.volume.shares() / 4);
        for price in [bar.open, bar.low, bar.high, bar.close] {
            self.take_trade(instrument, bar.ts_event, price, quarter);
        }
    }

    /// The first bar of `from..to` before which or at which something can happen here; like
    /// [`Exchange::next_stop`].
    #[must_use]
    #[inline]
    pub fn next_bar_stop(&self, _bars: &[Bar], from: usize, to: usize) -> usize {
        if self.open.is_empty() && self.timed.is_empty() { to } else { from }
    }
}
