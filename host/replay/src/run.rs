//! The loop: hands market events to the strategy, its commands to the exchange, and what happened
//! back to the strategy.
//!
//! At each instant the order is: what is due by itself (arrivals, cancels under way, the end of the
//! day), then our orders against the trade, then the strategy sees the trade. What the strategy asks
//! for is done at once, at the time of the event it was handling.

mod day;

use std::io;

use domain::instrument::DailyLimits;
use domain::strategy::{
    Action, Bar, Fault, FaultKind, LogLevel, LogLine, PortfolioView, StrategyRuntime,
};
use domain::{InstrumentIx, OrderEvent, OrderEventKind, TsNanos};
use thiserror::Error;

use crate::drive::{Drive, SelfRunning};
use crate::exchange::Exchange;
use crate::merge::{Merge, seen_of_each};
use crate::options::{OptionsError, ReplayOptions};
use crate::record::{RunResult, RunStatus, RunTotals};
use crate::recorder::{Recorder, RowTimes};
use crate::rows::LastPrices;
use crate::series::{DaySlice, MarketDay, TradingDay};
use crate::sink::{InMemory, RunSink};

/// Rounds of events and commands at one instant; a strategy that answers every refusal with a new
/// order would never let time go on.
const ROUNDS_PER_INSTANT_MAX: u64 = 1_000;

/// How far a replay is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Trades or bars that the strategy has seen.
    pub trades_seen: u64,
    /// Days that are done.
    pub days_done: u64,
    /// The virtual time.
    pub now: TsNanos,
}

/// What the outside wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop here and keep what there is.
    Stop,
}

/// Why a replay has no result.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// An option makes no sense. Nothing was run.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The results cannot be kept. The run was stopped.
    #[error("the results cannot be kept: {0}")]
    Results(#[from] io::Error),
}

/// What a run ends with: its totals, and the first failure of the sink.
pub(crate) type Ended = (RunTotals, Option<io::Error>);

/// Replays days of the market through a strategy and keeps everything in memory: trades
/// ([`crate::TradingDay`]) of one instrument, or trades or bars of all instruments of the options
/// ([`MarketDay`]).
///
/// A fault of the strategy ends the run but not this function: what happened up to there is in the
/// result.
///
/// # Errors
/// When an option makes no sense. Nothing was run then.
///
/// # Panics
/// When a day has more instruments than the options.
pub fn replay<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    look_outside: &mut dyn FnMut(Progress) -> Control,
) -> Result<RunResult, OptionsError> {
    let mut rows = InMemory::default();
    // Memory takes every row, so there is no failure to report.
    let (totals, _) = run(days, strategy, options, &mut rows, look_outside, SelfRunning)?;
    Ok(rows.into_result(totals))
}

/// Like [`replay`], but the rows of the results go to `sink` as the run goes.
///
/// # Errors
/// When an option makes no sense, or when the sink fails; the run is stopped then.
///
/// # Panics
/// When a day has more instruments than the options.
pub fn replay_into<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    look_outside: &mut dyn FnMut(Progress) -> Control,
) -> Result<RunTotals, ReplayError> {
    kept(run(days, strategy, options, sink, look_outside, SelfRunning)?)
}

/// The totals, if everything could be kept.
pub(crate) fn kept((totals, failure): Ended) -> Result<RunTotals, ReplayError> {
    failure.map_or(Ok(totals), |failure| Err(failure.into()))
}

/// Runs a replay with the hooks of `drive`.
pub(crate) fn run<'a, M: Into<MarketDay<'a>>, D: Drive>(
    days: impl IntoIterator<Item = M>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    look_outside: &mut dyn FnMut(Progress) -> Control,
    drive: D,
) -> Result<Ended, OptionsError> {
    options.check()?;
    let instruments = &options.instruments;
    let window = if D::ONE_BY_ONE { 1 } else { options.window as usize };
    let mut run = Run {
        strategy,
        exchange: Exchange::new(options.model, instruments, options.cash),
        recorder: Recorder::new(sink, options.cash, instruments.len()),
        drive,
        window,
        orders_max: options.model.orders_max,
        merge: Merge::new(window),
        instruments: instruments.len(),
        now: TsNanos::default(),
        last_prices: LastPrices::new(instruments.len()),
        started: false,
        trades_seen: 0,
        market_volume: 0,
        span: None,
        rows_handed: 0,
        days_done: 0,
        rows_since_look: 0,
        look_outside,
    };
    let status = match run.all(days, options) {
        Ok(Control::Continue) => RunStatus::Completed,
        Ok(Control::Stop) => RunStatus::Interrupted,
        Err(fault) => RunStatus::Failed(fault),
    };
    Ok(run.finish(status, options))
}

struct Run<'s, D> {
    strategy: &'s mut dyn StrategyRuntime,
    exchange: Exchange,
    recorder: Recorder<'s>,
    drive: D,
    window: usize,
    orders_max: u32,
    merge: Merge,
    instruments: usize,
    now: TsNanos,
    last_prices: LastPrices,
    started: bool,
    trades_seen: u64,
    market_volume: u128,
    span: Option<(TsNanos, TsNanos)>,
    rows_handed: u64,
    days_done: u64,
    rows_since_look: usize,
    look_outside: &'s mut dyn FnMut(Progress) -> Control,
}

/// How a day or a part of it went: the rows of it that the strategy has seen, and how it ended.
type Seen = (usize, Result<Control, Box<Fault>>);

impl<D: Drive> Run<'_, D> {
    fn all<'a, M: Into<MarketDay<'a>>>(
        &mut self,
        days: impl IntoIterator<Item = M>,
        options: &ReplayOptions,
    ) -> Result<Control, Box<Fault>> {
        self.strategy.init(&options.config_json, &options.instruments)?;
        // The end of the day before, which is due once it is known that another day follows.
        let mut end_before = None;
        let mut control = Control::Continue;
        for day in days {
            let day: MarketDay<'a> = day.into();
            let Some(end) = day.end() else { continue };
            let end = (!day.is_of_daily_bars()).then_some(end);
            if let Some(end_before) = std::mem::replace(&mut end_before, end) {
                self.end_day(end_before)?;
            }
            self.begin_day(&day)?;
            let (seen, ended) = self.day(&day);
            // Noted also when the strategy failed in the middle of the day.
            self.note_day(&day, seen);
            control = ended?;
            if control == Control::Stop {
                break;
            }
        }
        self.exchange.end_of_data(self.now);
        self.deliver()?;
        let actions = self.strategy.stop(self.now)?;
        // Orders sent now are refused, and there is nobody left to tell.
        self.obey(actions);
        self.note_events();
        Ok(control)
    }

    fn begin_day(&mut self, day: &MarketDay<'_>) -> Result<(), Box<Fault>> {
        let Some(hours) = day.hours() else { return Ok(()) };
        for index in 0..self.instruments {
            // There are at most 4 instruments.
            let instrument = InstrumentIx(index as u16);
            let Some(first) = day.first_price(instrument) else { continue };
            // F7: around the previous close, unless the day opens outside that range, as it does
            // after a split; then around its first trade, as on the first day.
            let close = self.last_prices.of(instrument);
            let base = close.filter(|close| DailyLimits::around(*close).contains(first));
            self.exchange.begin_day(hours, instrument, base.unwrap_or(first));
        }
        if self.started {
            return Ok(());
        }
        self.started = true;
        // The day's first moment: before every trade, so nothing is known of it.
        self.now = hours.start;
        self.push_portfolio();
        let actions = self.strategy.start(self.now)?;
        self.obey(actions);
        self.deliver()
    }

    /// Everything that is due up to `until`, instant by instant.
    fn run_due(&mut self, until: TsNanos) -> Result<(), Box<Fault>> {
        while let Some(due) = self.exchange.next_due().filter(|due| *due <= until) {
            self.now = due;
            self.exchange.run_due();
            self.deliver()?;
        }
        Ok(())
    }

    fn end_day(&mut self, end: TsNanos) -> Result<(), Box<Fault>> {
        self.last_prices.tell(&mut self.exchange);
        self.run_due(end)?;
        self.now = end;
        self.exchange.end_day(end);
        self.deliver()
    }

    /// Does what the strategy asked for, in order, at the present instant.
    fn obey(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Submit(request) => self.exchange.submit(self.now, request),
                Action::Modify { client_order_id, change } => {
                    self.exchange.modify(self.now, &client_order_id, change);
                }
                Action::Cancel { client_order_id } => {
                    self.exchange.cancel(self.now, &client_order_id);
                }
                Action::CancelAll { instrument } => {
                    self.exchange.cancel_all(self.now, instrument);
                }
                Action::Signal(signal) => {
                    self.drive.signal(self.now, &signal);
                    self.recorder.signal(self.now, &signal);
                }
                Action::Narrative(record) => {
                    self.recorder.narrative(self.now, &record);
                }
            }
        }
    }

    /// Tells the strategy what happened, does what it asks for then, until nothing happens any more.
    fn deliver(&mut self) -> Result<(), Box<Fault>> {
        for _ in 0..ROUNDS_PER_INSTANT_MAX {
            if self.exchange.is_exhausted() {
                let allowed = u64::from(self.orders_max);
                return Err(self.limit_fault("submit", "orders in one run", allowed + 1, allowed));
            }
            let events = self.note_events();
            if events.is_empty() {
                return Ok(());
            }
            self.push_portfolio();
            let actions = self.strategy.on_order_events(&events)?;
            self.obey(actions);
        }
        let what = "or more rounds of events and commands at one instant";
        let (used, allowed) = (ROUNDS_PER_INSTANT_MAX, ROUNDS_PER_INSTANT_MAX);
        Err(self.limit_fault("on-order-events", what, used, allowed))
    }

    fn limit_fault(
        &self,
        export: &'static str,
        what: &'static str,
        used: u64,
        allowed: u64,
    ) -> Box<Fault> {
        let identity = self.strategy.identity();
        Box::new(Fault {
            component: identity.component,
            sha256: identity.sha256,
            export,
            ts_event: Some(self.now),
            kind: FaultKind::Limit { what, used, allowed },
            backtrace: Vec::new(),
        })
    }

    /// Takes the exchange's events and warnings into the record.
    fn note_events(&mut self) -> Vec<OrderEvent> {
        let events = self.exchange.take_events();
        let mut filled = false;
        for event in &events {
            self.recorder.order_event(event);
            self.drive.order_event(event);
            filled |= matches!(event.kind, OrderEventKind::Filled(_));
        }
        if D::ONE_BY_ONE && filled {
            self.tell_power();
        }
        let warnings = self.exchange.take_warnings();
        if !warnings.is_empty() {
            self.recorder.log(self.strategy.take_log());
            let now = Some(self.now);
            self.recorder.log(warnings.into_iter().map(|message| LogLine {
                ts_event: now,
                level: LogLevel::Warn,
                message,
            }));
        }
        events
    }

    fn note_day(&mut self, day: &MarketDay<'_>, seen: usize) {
        // Orders that are done leave memory day by day.
        self.recorder.orders(&self.exchange.take_done());
        self.days_done += 1;
        if seen == 0 {
            return;
        }
        self.trades_seen += seen as u64;
        match day {
            MarketDay::Trades(parts) => self.note_trades(parts, seen),
            MarketDay::Bars(bars) => self.note_bars(&bars[..seen]),
        }
    }

    fn note_trades(&mut self, parts: &[TradingDay<'_>], seen: usize) {
        let all: usize = parts.iter().map(TradingDay::len).sum();
        let seen_of = if seen == all {
            parts.iter().map(TradingDay::len).collect()
        } else {
            seen_of_each(parts, seen).to_vec()
        };
        let mut slices = vec![DaySlice { ts_event: &[], price: &[] }; self.instruments];
        for ((slice, part), seen) in slices.iter_mut().zip(parts).zip(seen_of) {
            *slice = DaySlice { ts_event: &part.ts_event()[..seen], price: &part.price()[..seen] };
            let volume = part.quantity()[..seen].iter().map(|shares| u128::from(*shares));
            self.market_volume += volume.sum::<u128>();
        }
        self.note_slices(&slices, RowTimes::Moments);
    }

    fn note_bars(&mut self, bars: &[Bar]) {
        let mut columns = vec![(Vec::new(), Vec::new()); self.instruments];
        for bar in bars {
            let (ts_event, price) = &mut columns[usize::from(bar.instrument.0)];
            ts_event.push(bar.ts_event.nanos());
            price.push(bar.close.units());
            self.market_volume += u128::from(bar.volume.shares());
        }
        let slices: Vec<_> =
            columns.iter().map(|(ts_event, price)| DaySlice { ts_event, price }).collect();
        self.note_slices(&slices, RowTimes::Ends);
    }

    fn note_slices(&mut self, slices: &[DaySlice<'_>], times: RowTimes) {
        self.recorder.end_day(slices, times);
        let first = slices.iter().filter_map(|slice| slice.ts_event.first()).min();
        let last = slices.iter().filter_map(|slice| slice.ts_event.last()).max();
        if let (Some(first), Some(last)) = (first, last) {
            let start = self.span.map_or(TsNanos::from_nanos(*first), |(start, _)| start);
            self.span = Some((start, TsNanos::from_nanos(*last)));
        }
    }

    /// Cash and equity at the last prices, for whoever watches.
    fn tell_power(&mut self) {
        let account = self.exchange.account();
        let equity = account.equity(&self.last_prices.or_zero());
        self.drive.power(self.now, account.account().cash, equity);
    }

    /// Renews what portfolio queries answer, for strategies that ask.
    fn push_portfolio(&mut self) {
        let asked = self.strategy.capabilities();
        if !asked.portfolio && !asked.working_orders {
            return;
        }
        let account = self.exchange.account();
        let working_orders =
            if asked.working_orders { self.exchange.working_orders() } else { Vec::new() };
        self.strategy.set_portfolio(&PortfolioView {
            account: *account.account(),
            positions: account.positions().to_vec(),
            working_orders,
        });
    }

    fn look(&mut self) -> Control {
        self.rows_since_look = 0;
        if self.recorder.has_failed() {
            return Control::Stop;
        }
        (self.look_outside)(Progress {
            trades_seen: self.rows_handed,
            days_done: self.days_done,
            now: self.now,
        })
    }

    fn finish(mut self, status: RunStatus, options: &ReplayOptions) -> Ended {
        self.note_events();
        self.recorder.log(self.strategy.take_log());
        let account = self.exchange.account();
        let held = account.positions().iter().map(|position| position.quantity).sum();
        let equity = account.equity(&self.last_prices.or_zero());
        let account = *account.account();
        self.recorder.digest.end_of_run(self.now, account.cash, equity);
        let (digest, digest_records) =
            (self.recorder.digest.digest(), self.recorder.digest.records());
        let our_volume = self.exchange.our_volume();
        self.recorder.orders(&self.exchange.into_orders());
        let notes = self.recorder.finish();
        let totals = RunTotals {
            status,
            digest,
            digest_records,
            order_counts: notes.order_counts,
            fill_count: notes.fill_count,
            trades_seen: self.trades_seen,
            market_volume: self.market_volume,
            our_volume,
            cash_start: options.cash,
            cash_end: account.cash,
            equity_end: equity,
            position_end: held,
            positions: notes.positions,
            realised_pnl: account.realised_pnl,
            commission: account.commission,
            span: self.span,
            performance: notes.performance,
        };
        (totals, notes.failure)
    }
}
