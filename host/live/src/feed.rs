//! Brings the live market from the venue's thread to the strategy's thread: one queue, which delays nobody.
//!
//! | pin | what holds |
//! |---|---|
//! | P88 | each trade of the instruments comes once, in the venue's order; what a gap left out is a line of the log |
//! | P90 | or minute bars, made by [`MinuteBars`] |
//! | P115 | lost market data are told once per outage |
//! | P116 | who waits is watched; a queue that is too long or too old ends the run |
//! | P117 | times never fall |
//! | P118 | the aggressor of a trade, as `side` judges it |

mod minutes;
mod receiver;
mod side;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::market::Trade;
use domain::market_update::{MarketUpdate, Symbol, TradePrint};
use domain::price::UNITS_PER_YEN;
use domain::{InstrumentId, InstrumentIx, Price, Quantity, TsNanos, session};
use marketdata::MadeBar;
use replay::stream::StreamStep;

use crate::real::BrokerNews;

pub use minutes::{BAR_WAIT, MinuteBars, TakenIntoBar};
pub use receiver::FeedReceiver;
use side::Trail;

/// Events that may wait for the strategy (P116).
pub const WAITING_MAX: usize = 65_536;
/// An event that waits longer makes the strategy slow (P116).
pub const SLOW_FROM: Duration = Duration::from_secs(2);
/// While none waits longer, the strategy is slow no more (P116).
pub const IN_TIME_UP_TO: Duration = Duration::from_secs(1);
/// An event that waits longer ends the run (P116).
pub const TOO_SLOW_FROM: Duration = Duration::from_secs(10);
/// A market whose times are farther from the engine's clock than this plays another time: a simulated one, in the
/// evening. The engine's clock is taken to be as far from it then, so that minutes and days end as they should.
pub const OTHER_TIME_FROM_NANOS: u64 = 60 * 1_000_000_000;
/// So long after the close a day ends by the engine's clock (P119).
pub const DAY_END_WAIT_NANOS: u64 = 5 * 60 * 1_000_000_000;

/// The engine's clock for a market that may play another time. It follows the newest trade of all instruments: one that
/// comes late, after newer ones of others, says nothing of the time.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarketClock {
    /// The time of the newest trade.
    newest: TsNanos,
    /// Nanoseconds by which the engine's clock is ahead of such a market; else 0.
    ahead: i128,
}

impl MarketClock {
    /// Takes the time of a trade and that of its coming (see [`OTHER_TIME_FROM_NANOS`]).
    pub fn see(&mut self, print: &TradePrint) {
        let time = time_of(print);
        if time < self.newest {
            return;
        }
        self.newest = time;
        let ahead = i128::from(print.received.nanos()) - i128::from(time.nanos());
        let is_other = ahead.unsigned_abs() > u128::from(OTHER_TIME_FROM_NANOS);
        self.ahead = if is_other { ahead } else { 0 };
    }

    /// The market's time at a time of the engine's clock; never before the newest trade.
    #[must_use]
    pub fn at(&self, now: TsNanos) -> TsNanos {
        let nanos = i128::from(now.nanos()) - self.ahead;
        let time = u64::try_from(nanos.max(0)).map_or(TsNanos::MAX, TsNanos::from_nanos);
        time.max(self.newest)
    }
}

/// What may wait, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// The run ends when so many events wait.
    pub waiting: usize,
    /// See [`SLOW_FROM`].
    pub slow_from: Duration,
    /// See [`IN_TIME_UP_TO`].
    pub in_time_up_to: Duration,
    /// See [`TOO_SLOW_FROM`].
    pub too_slow_from: Duration,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self {
            waiting: WAITING_MAX,
            slow_from: SLOW_FROM,
            in_time_up_to: IN_TIME_UP_TO,
            too_slow_from: TOO_SLOW_FROM,
        }
    }
}

/// What the strategy gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedRows {
    /// Every trade.
    Trades,
    /// 1-minute bars in place of trades (P90).
    Minutes,
}

/// Hears what becomes of a feed, on the strategy's thread.
pub trait FeedObserver: Send {
    /// The strategy has accepted its configuration. Trades count from when `opening` is dropped: whoever tells of the
    /// start drops it in the same breath.
    fn ready(&mut self, opening: Opening);

    /// The strategy is slow, or is in time again (P116).
    fn slow(&mut self, is_slow: bool);
}

/// Opens a feed when it is dropped: trades of later frames are given, those of earlier ones are not (P88).
#[derive(Debug)]
pub struct Opening(Arc<Shared>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.lock().is_open = true;
    }
}

/// A feed of `instruments`: the end for the venue's thread, and the end for the strategy's thread.
#[must_use]
pub fn feed(
    instruments: &[InstrumentId],
    rows: FeedRows,
    limits: FeedLimits,
    observer: Box<dyn FeedObserver>,
) -> (FeedSender, FeedReceiver) {
    let series = instruments.iter().enumerate().map(|(index, id)| Series {
        id: id.clone(),
        // A run has at most 4 instruments.
        instrument: InstrumentIx(index as u16),
        symbol: Symbol::new(id.symbol()),
        trail: Trail::default(),
        minutes: MinuteBars::default(),
        not_whole: 0,
        late: 0,
    });
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            rows,
            waiting_max: limits.waiting,
            series: series.collect(),
            waiting: VecDeque::new(),
            newest: None,
            last_trade: None,
            clock: MarketClock::default(),
            ended_day: None,
            senders: 1,
            is_open: false,
            is_lost: false,
            told_lost: false,
            wants_buying_power: false,
            is_stopped: false,
            has_overflowed: false,
        }),
        changed: Condvar::new(),
    });
    (FeedSender(Arc::clone(&shared)), FeedReceiver::new(shared, limits, observer))
}

/// The end of a feed for the venue's thread. Nothing here waits for the strategy. When the last one is dropped, the
/// run stops.
#[derive(Debug)]
pub struct FeedSender(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// Nothing under the lock panics, and nothing is left half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes next for a strategy with real orders: of the market, or of the broker.
#[derive(Debug)]
pub enum FeedStep {
    /// Of the market.
    Market(StreamStep),
    /// Of the broker. A run on paper gets none.
    Broker(BrokerNews),
}

/// One step on its way to the strategy.
#[derive(Debug)]
struct Waiting {
    since: Stopwatch,
    step: FeedStep,
}

#[derive(Debug)]
struct State {
    rows: FeedRows,
    waiting_max: usize,
    series: Vec<Series>,
    waiting: VecDeque<Waiting>,
    /// The time of the newest row, and of the day's end once that was given.
    newest: Option<TsNanos>,
    /// The time of the last trade, be it in a bar that grows.
    last_trade: Option<TsNanos>,
    clock: MarketClock,
    /// The last day that has ended, in days since 1970 in Japan.
    ended_day: Option<u64>,
    senders: usize,
    is_open: bool,
    /// Market data are lost now, and whether the strategy's run knows that they are.
    is_lost: bool,
    told_lost: bool,
    wants_buying_power: bool,
    /// The run is to stop, or has ended: nothing is taken any more.
    is_stopped: bool,
    has_overflowed: bool,
}

/// What is known of one instrument.
#[derive(Debug)]
struct Series {
    id: InstrumentId,
    instrument: InstrumentIx,
    symbol: Option<Symbol>,
    trail: Trail,
    minutes: MinuteBars,
    /// Trades of parts of a share.
    not_whole: u64,
    /// Trades that came after their bar.
    late: u64,
}

impl FeedSender {
    /// Takes what a frame tells: of an instrument of the feed its trade, if any; of every other one only that market
    /// data come.
    pub fn update(&self, update: &MarketUpdate) {
        self.change(|state, came| {
            // P115: an outage ends with the first frame after it.
            state.is_lost = false;
            let Some(trade) = &update.trade else { return };
            let of_symbol = |series: &Series| series.symbol == Some(trade.symbol);
            if let Some(place) = state.series.iter().position(of_symbol) {
                state.take(place, trade, came);
            }
        });
    }

    /// Market data are lost, until the next frame (P115).
    pub fn lost(&self) {
        self.change(|state, _| state.is_lost = true);
    }

    /// Tells the engine's time, a few times per second: it ends minutes (P90), and the day 5 minutes after its close
    /// (P119).
    pub fn clock(&self, now: TsNanos) {
        self.change(|state, came| {
            let now = state.clock.at(now);
            let ends = |trade| session::close_after(trade).plus_nanos(DAY_END_WAIT_NANOS);
            if state.last_trade.is_some_and(|trade| ends(trade) <= now) {
                return state.end_day(came);
            }
            for place in 0..state.series.len() {
                let made = state.series[place].minutes.clock(now);
                state.give_bar(made, came);
            }
        });
    }

    /// The trading day is over. Without a row since the last such call it says nothing.
    pub fn end_of_day(&self) {
        self.change(State::end_day);
    }

    /// Cash and equity are wanted now.
    pub fn report_buying_power(&self) {
        self.change(|state, _| state.wants_buying_power = true);
    }

    /// Rows and notes that wait for the strategy.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// Brings news of the broker, in the order in which they happened. They come also after the run was stopped,
    /// until the strategy's thread has ended the feed.
    pub fn broker(&self, news: BrokerNews) {
        let since = Stopwatch::start();
        let mut state = self.0.lock();
        let step = FeedStep::Broker(news);
        if state.is_stopped {
            state.waiting.push_back(Waiting { since, step });
        } else {
            state.push(step, since);
        }
        drop(state);
        self.0.changed.notify_one();
    }

    /// Stops the run: the strategy gets no row any more (P86), also none that waits.
    pub fn stop(&self) {
        self.change(|state, _| state.stop());
    }

    /// Changes the state, unless the run is over. Wakes the strategy's thread where there is something for it: most
    /// frames tell of no trade.
    fn change(&self, change: impl FnOnce(&mut State, Stopwatch)) {
        let came = Stopwatch::start();
        let mut state = self.0.lock();
        if state.is_stopped {
            return;
        }
        change(&mut state, came);
        if state.has_news() {
            drop(state);
            self.0.changed.notify_one();
        }
    }
}

impl Clone for FeedSender {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for FeedSender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders == 0 {
            state.stop();
            drop(state);
            self.0.changed.notify_one();
        }
    }
}

impl State {
    /// Whether there is something for the strategy's thread.
    fn has_news(&self) -> bool {
        !self.waiting.is_empty()
            || self.is_stopped
            || self.is_lost != self.told_lost
            || self.wants_buying_power
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.waiting.retain(|waiting| matches!(waiting.step, FeedStep::Broker(_)));
        self.waiting.shrink_to_fit();
    }

    /// Takes a trade of an instrument.
    fn take(&mut self, place: usize, print: &TradePrint, came: Stopwatch) {
        let series = &mut self.series[place];
        // What a gap left out has a price too.
        let aggressor = series.trail.judge(print);
        if !self.is_open {
            return;
        }
        if print.after_gap {
            let note = series.gap(print);
            return self.push_row(StreamStep::Note(note), came);
        }
        let Some(trade) = whole_trade(print, series.instrument) else {
            series.not_whole += 1;
            let note = series.of_parts();
            return self.note(note, came);
        };
        self.clock.see(print);
        self.last_trade = self.last_trade.max(Some(trade.ts_event));
        match self.rows {
            FeedRows::Trades => {
                let trade = Trade { ts_event: self.risen(trade.ts_event), ..trade };
                self.push_row(StreamStep::Trade { trade, aggressor }, came);
            }
            FeedRows::Minutes => match series.minutes.take(&trade) {
                TakenIntoBar::Late => {
                    series.late += 1;
                    let note = series.after_bar();
                    self.note(note, came);
                }
                TakenIntoBar::Growing(ended) => self.give_bar(ended, came),
            },
        }
    }

    fn give_bar(&mut self, made: Option<MadeBar>, came: Stopwatch) {
        if let Some(MadeBar { mut bar, .. }) = made {
            bar.ts_event = self.risen(bar.ts_event);
            self.push_row(StreamStep::Bar(bar), came);
        }
    }

    /// The time that a row has for the strategy: never before the newest one (P117).
    fn risen(&mut self, ts_event: TsNanos) -> TsNanos {
        *self.newest.insert(self.newest.map_or(ts_event, |newest| newest.max(ts_event)))
    }

    fn end_day(&mut self, came: Stopwatch) {
        for place in 0..self.series.len() {
            let made = self.series[place].minutes.end();
            self.give_bar(made, came);
        }
        let Some(last) = self.last_trade else { return };
        let day = Some(last.jst_day());
        if day > self.ended_day {
            self.ended_day = day;
            // What still comes of the day comes after its close.
            self.risen(session::close_after(last));
            self.push_row(StreamStep::EndOfDay, came);
        }
    }

    fn note(&mut self, note: Option<String>, came: Stopwatch) {
        if let Some(note) = note {
            self.push_row(StreamStep::Note(note), came);
        }
    }

    fn push_row(&mut self, step: StreamStep, came: Stopwatch) {
        self.push(FeedStep::Market(step), came);
    }

    fn push(&mut self, step: FeedStep, came: Stopwatch) {
        self.waiting.push_back(Waiting { since: came, step });
        if self.waiting.len() >= self.waiting_max {
            // The run ends, so nothing is given any more.
            self.stop();
            self.has_overflowed = true;
        }
    }
}

impl Series {
    /// P88: what was missed is told and never given.
    fn gap(&self, print: &TradePrint) -> String {
        let (shares, price) = (Shares(print.quantity), Price::from_units(print.price));
        let until = time_of(print);
        format!(
            "GAP: {} market data were lost; {shares} shares traded until {until}, now at {price}, are missing here",
            self.id
        )
    }

    fn of_parts(&self) -> Option<String> {
        self.not_whole.is_power_of_two().then(|| {
            let Self { id, not_whole, .. } = self;
            format!("PARTS: {id} trades that are no whole number of shares at a price are left out: {not_whole} so far")
        })
    }

    fn after_bar(&self) -> Option<String> {
        self.late.is_power_of_two().then(|| {
            let Self { id, late, .. } = self;
            format!("LATE: {id} trades that came after their minute are in no bar: {late} so far")
        })
    }
}

/// A trade as strategies see it; none where it is no whole number of shares at a price.
#[must_use]
pub fn whole_trade(print: &TradePrint, instrument: InstrumentIx) -> Option<Trade> {
    let quantity = whole_shares(print.quantity).filter(|_| print.price > 0)?;
    let price = Price::from_units(print.price);
    Some(Trade { ts_event: time_of(print), instrument, price, quantity })
}

fn time_of(print: &TradePrint) -> TsNanos {
    TsNanos::from_nanos(print.timestamp_ms.saturating_mul(1_000_000))
}

/// Shares of a quantity in 1/10,000 share; none where it is no whole number of them, or 0.
fn whole_shares(units: i64) -> Option<Quantity> {
    let units = u64::try_from(units).ok().filter(|units| *units > 0)?;
    let per_share = UNITS_PER_YEN.unsigned_abs();
    units.is_multiple_of(per_share).then(|| Quantity::new(units / per_share))
}

/// Shares in 1/10,000, as a decimal number.
struct Shares(i64);

impl std::fmt::Display for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The same form as an amount.
        Price::from_units(self.0).fmt(f)
    }
}

#[cfg(test)]
pub(crate) mod tests;
