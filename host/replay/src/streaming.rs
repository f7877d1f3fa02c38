//! The streaming replay (specification 2): the same loop as [`crate::replay`], fed row by row, paced
//! by the wall clock and watched by an observer. Only the pace depends on the wall clock; what the
//! strategy sees and what becomes of its orders does not, so the event log is the same on both paths.
//!
//! Between two rows the run sleeps `min(max(dt, 1 ms) / multiplier, 200 ms)`. Over the lunch break,
//! after the close and between business days it does not sleep. Sleeps that are shorter than a
//! system can keep are saved up, see [`SHORTEST_SLEEP`].

mod pace;

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{self, Stopwatch};
use domain::strategy::{Signal, StrategyRuntime};
use domain::{
    InstrumentIx, Money, OrderEvent, OrderEventKind, OrderSide, Price, Quantity, TsNanos,
};

use crate::drive::Drive;
use crate::options::{OptionsError, ReplayOptions};
use crate::record::{RunResult, RunTotals};
use crate::run::{Control, Progress, ReplayError, kept, run};
use crate::series::MarketDay;
use crate::sink::{InMemory, RunSink};

use pace::Pace;
pub use pace::{Multiplier, SHORTEST_SLEEP, SLEEP_CAP, SpeedDial};

/// How often cash and equity are told on the wall clock.
const POWER_EVERY: Duration = Duration::from_secs(1);
/// Rows without a sleep between two looks at the wall clock.
const ROWS_BETWEEN_READINGS: u32 = 1_024;

/// The time of the outside.
pub trait WallClock {
    /// Lets the run wait.
    fn sleep(&mut self, duration: Duration);

    /// Time since some moment before the run.
    fn elapsed(&mut self) -> Duration;
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock(Stopwatch);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Stopwatch::start())
    }
}

impl WallClock for SystemClock {
    fn sleep(&mut self, duration: Duration) {
        clock::sleep(duration);
    }

    fn elapsed(&mut self) -> Duration {
        self.0.elapsed()
    }
}

/// A mark at a fill, for charts (specification 2, `ExecutionMarker`); told with each `OrderFilled`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionMarker {
    /// When the fill happened.
    pub ts_event: TsNanos,
    /// What was traded.
    pub instrument: InstrumentIx,
    /// Which way.
    pub side: OrderSide,
    /// At which price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
    /// The caller's id of the order.
    pub client_order_id: Arc<str>,
    /// The fill's own number.
    pub trade_id: Arc<str>,
}

/// Cash and equity of the replay's account (specification 2, `ReplayBuyingPower`). The strategy's id
/// is known to whoever forwards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayBuyingPower {
    /// The virtual time.
    pub ts_event: TsNanos,
    /// Money in the account.
    pub cash: Money,
    /// Money to buy with; only cash is modelled, so it equals the cash.
    pub buying_power: Money,
    /// Cash and the value of what is held at the last prices.
    pub equity: Money,
}

/// Watches a streaming replay. Every method does nothing unless it is written.
pub trait ReplayObserver {
    /// Something happened to an order.
    fn order_event(&mut self, event: &OrderEvent) {
        let _ = event;
    }

    /// The strategy set a mark.
    fn signal(&mut self, ts_event: TsNanos, signal: &Signal) {
        let _ = (ts_event, signal);
    }

    /// An order was filled; comes after its order event.
    fn execution_marker(&mut self, marker: &ExecutionMarker) {
        let _ = marker;
    }

    /// Cash and equity: once a second of the wall clock, and at once on fills.
    fn buying_power(&mut self, power: &ReplayBuyingPower) {
        let _ = power;
    }
}

/// Watches nothing.
impl ReplayObserver for () {}

/// Replays days of the market through a strategy at the speed of `dial`. Like [`crate::replay`]
/// otherwise, with a window of one row.
///
/// # Errors
/// When an option makes no sense. Nothing was run then.
///
/// # Panics
/// When a day has more instruments than the options.
pub fn stream<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    look_outside: &mut dyn FnMut(Progress) -> Control,
    dial: &SpeedDial,
    clock: &mut dyn WallClock,
    observer: &mut dyn ReplayObserver,
) -> Result<RunResult, OptionsError> {
    let mut rows = InMemory::default();
    let drive = Streaming::new(dial, clock, observer);
    // Memory takes every row, so there is no failure to report.
    let (totals, _) = run(days, strategy, options, &mut rows, look_outside, drive)?;
    Ok(rows.into_result(totals))
}

/// Like [`stream`], but the rows of the results go to `sink` as the run goes.
///
/// # Errors
/// When an option makes no sense, or when the sink fails; the run is stopped then.
///
/// # Panics
/// When a day has more instruments than the options.
#[expect(clippy::too_many_arguments, reason = "what a run needs, and what paces and watches it")]
pub fn stream_into<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    look_outside: &mut dyn FnMut(Progress) -> Control,
    dial: &SpeedDial,
    clock: &mut dyn WallClock,
    observer: &mut dyn ReplayObserver,
) -> Result<RunTotals, ReplayError> {
    let drive = Streaming::new(dial, clock, observer);
    kept(run(days, strategy, options, sink, look_outside, drive)?)
}

/// The hooks of the streaming path.
struct Streaming<'s> {
    pace: Pace,
    clock: &'s mut dyn WallClock,
    observer: &'s mut dyn ReplayObserver,
    /// When cash and equity were told last, on the wall clock.
    told_power: Duration,
    rows_since_reading: u32,
    /// Whether the wall clock is to be read after this row.
    read_clock: bool,
}

impl<'s> Streaming<'s> {
    fn new(
        dial: &SpeedDial,
        clock: &'s mut dyn WallClock,
        observer: &'s mut dyn ReplayObserver,
    ) -> Self {
        Self {
            pace: Pace::new(dial.clone()),
            told_power: clock.elapsed(),
            clock,
            observer,
            rows_since_reading: 0,
            read_clock: false,
        }
    }
}

impl Drive for Streaming<'_> {
    const ONE_BY_ONE: bool = true;

    #[inline]
    fn before(&mut self, moment: u64) -> bool {
        let due = self.pace.before(moment);
        self.rows_since_reading += 1;
        if due.is_zero() {
            self.read_clock = self.rows_since_reading >= ROWS_BETWEEN_READINGS;
            return false;
        }
        self.clock.sleep(due);
        self.read_clock = true;
        true
    }

    #[inline]
    fn wants_power(&mut self) -> bool {
        if !self.read_clock {
            return false;
        }
        self.read_clock = false;
        self.rows_since_reading = 0;
        let now = self.clock.elapsed();
        let wanted = now >= self.told_power + POWER_EVERY;
        if wanted {
            self.told_power = now;
        }
        wanted
    }

    fn order_event(&mut self, event: &OrderEvent) {
        self.observer.order_event(event);
        if let OrderEventKind::Filled(fill) = &event.kind {
            self.observer.execution_marker(&ExecutionMarker {
                ts_event: event.ts_event,
                instrument: event.instrument,
                side: fill.side,
                price: fill.last_price,
                quantity: fill.last_quantity,
                client_order_id: Arc::clone(&event.client_order_id),
                trade_id: Arc::clone(&fill.trade_id),
            });
        }
    }

    fn signal(&mut self, now: TsNanos, signal: &Signal) {
        self.observer.signal(now, signal);
    }

    fn power(&mut self, now: TsNanos, cash: Money, equity: Money) {
        self.observer.buying_power(&ReplayBuyingPower {
            ts_event: now,
            cash,
            buying_power: cash,
            equity,
        });
    }
}
