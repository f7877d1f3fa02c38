//! Rows as the recorder values them.

use domain::{InstrumentIx, Price, TsNanos};
use results::recorder::DaySlice;

/// Times and prices of rows, by instrument.
#[derive(Debug)]
pub(super) struct Columns(Vec<(Vec<u64>, Vec<i64>)>);

impl Columns {
    /// No rows yet, for so many instruments.
    pub(super) fn new(instruments: usize) -> Self {
        Self(vec![(Vec::new(), Vec::new()); instruments])
    }

    /// Adds a row with its last price.
    pub(super) fn push(&mut self, instrument: InstrumentIx, ts_event: TsNanos, price: Price) {
        let (times, prices) = &mut self.0[usize::from(instrument.0)];
        times.push(ts_event.nanos());
        prices.push(price.units());
    }

    /// Rows of all instruments together.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|(times, _)| times.len()).sum()
    }

    /// The rows of each instrument.
    pub(super) fn slices(&self) -> Vec<DaySlice<'_>> {
        self.0.iter().map(|(ts_event, price)| DaySlice { ts_event, price }).collect()
    }

    /// Forgets the rows and keeps their memory.
    pub(super) fn clear(&mut self) {
        for (times, prices) in &mut self.0 {
            times.clear();
            prices.clear();
        }
    }
}
