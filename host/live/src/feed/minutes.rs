//! When a minute bar of the live market is final (P90). The bars themselves are [`GrowingBar`]'s.

use std::time::Duration;

use domain::TsNanos;
use domain::market::{BarGranularity, Trade};
use domain::time::NANOS_PER_MINUTE;
use marketdata::{GrowingBar, MadeBar};

/// So long after its end by the engine's clock a bar is final, whether a later trade came or not (P90).
pub const BAR_WAIT: Duration = Duration::from_secs(3);

/// The minute bars of one instrument, in time order. A minute without a trade has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct MinuteBars {
    growing: Option<GrowingBar>,
    /// When the last bar that is final ended.
    given: Option<TsNanos>,
}

/// What became of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenIntoBar {
    /// It is in the bar that grows now. The bar before it is final, if it has ended by this trade.
    Growing(Option<MadeBar>),
    /// Its minute is over: it is in no bar.
    Late,
}

impl MinuteBars {
    /// Takes the instrument's next trade.
    pub fn take(&mut self, trade: &Trade) -> TakenIntoBar {
        let begin = self.growing.map(|bar| end_of(&bar.so_far()).nanos() - NANOS_PER_MINUTE);
        let over = begin.map(TsNanos::from_nanos).max(self.given);
        if over.is_some_and(|over| trade.ts_event < over) {
            return TakenIntoBar::Late;
        }
        let ended = GrowingBar::take(&mut self.growing, BarGranularity::Minute, trade);
        self.given = ended.as_ref().map(end_of).max(self.given);
        TakenIntoBar::Growing(ended)
    }

    /// The bar that is final at this time of the engine's clock, if there is one.
    pub fn clock(&mut self, now: TsNanos) -> Option<MadeBar> {
        // It is 3 s.
        let wait = BAR_WAIT.as_nanos() as u64;
        let ended = |bar: &mut GrowingBar| end_of(&bar.so_far()).plus_nanos(wait) <= now;
        self.growing.take_if(ended).map(|bar| self.give(bar))
    }

    /// The bar that grows is final, because no trade is to come.
    pub fn end(&mut self) -> Option<MadeBar> {
        self.growing.take().map(|bar| self.give(bar))
    }

    /// The bar that grows, as it is so far.
    #[must_use]
    pub fn so_far(&self) -> Option<MadeBar> {
        self.growing.as_ref().map(GrowingBar::so_far)
    }

    fn give(&mut self, bar: GrowingBar) -> MadeBar {
        let made = bar.so_far();
        self.given = Some(end_of(&made)).max(self.given);
        made
    }
}

const fn end_of(made: &MadeBar) -> TsNanos {
    made.bar.ts_event
}
