//! What drives a run: itself, as fast as it can, or the streaming path with its pace and observer.

use domain::strategy::Signal;
use domain::{Money, OrderEvent, TsNanos};

/// The hooks of a run. The self-running path has none of them, and no clock behind them.
pub(crate) trait Drive {
    /// Whether each row is a window of its own.
    const ONE_BY_ONE: bool;

    /// Comes before the row at `moment`, in nanoseconds; tells whether to look outside now.
    fn before(&mut self, moment: u64) -> bool;

    /// Whether [`Drive::power`] should be told now; asked after each row.
    fn wants_power(&mut self) -> bool;

    /// An event of an order.
    fn order_event(&mut self, event: &OrderEvent);

    /// A mark of the strategy.
    fn signal(&mut self, now: TsNanos, signal: &Signal);

    /// Cash and equity; also told at once on fills.
    fn power(&mut self, now: TsNanos, cash: Money, equity: Money);
}

/// As fast as it can, with nobody watching.
pub(crate) struct SelfRunning;

impl Drive for SelfRunning {
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn before(&mut self, _: u64) -> bool {
        false
    }

    #[inline(always)]
    fn wants_power(&mut self) -> bool {
        false
    }

    #[inline(always)]
    fn order_event(&mut self, _: &OrderEvent) {}

    #[inline(always)]
    fn signal(&mut self, _: TsNanos, _: &Signal) {}

    #[inline(always)]
    fn power(&mut self, _: TsNanos, _: Money, _: Money) {}
}
