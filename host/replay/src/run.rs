//! The loop: hands market events to the strategy, its commands to the exchange, and what happened
//! back to the strategy.
//!
//! At each instant the order is: what is due by itself (arrivals, cancels under way, the end of the
//! day), then our orders against the trade, then the strategy sees the trade. What the strategy asks
//! for is done at once, at the time of the event it was handling.

use std::io;

use domain::instrument::DailyLimits;
use domain::limits::WINDOW_ROWS_MAX;
use domain::strategy::{
    Action, Fault, FaultKind, LogLevel, LogLine, PortfolioView, StrategyRuntime, Trade,
    TradeColumns, Window,
};
use domain::{InstrumentIx, OrderEvent, Price, Quantity, TsNanos};
use thiserror::Error;

use crate::exchange::Exchange;
use crate::options::{OptionsError, ReplayOptions};
use crate::record::{Recorder, RunResult, RunStatus, RunTotals};
use crate::series::{DaySlice, TradingDay};
use crate::sink::{InMemory, RunSink};

/// Rounds of events and commands at one instant; a strategy that answers every refusal with a new
/// order would never let time go on.
const ROUNDS_PER_INSTANT_MAX: u64 = 1_000;
/// Rows between two looks at the outside.
const ROWS_BETWEEN_LOOKS: usize = 16_384;
/// The one instrument of a replay.
const ONLY: InstrumentIx = InstrumentIx(0);
/// The instrument column of the largest window.
static ONLY_COLUMN: [u16; WINDOW_ROWS_MAX as usize] = [ONLY.0; WINDOW_ROWS_MAX as usize];

/// How far a replay is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Trades that the strategy has seen.
    pub trades_seen: u64,
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

/// Replays days of trades through a strategy and keeps everything in memory.
///
/// A fault of the strategy ends the run but not this function: what happened up to there is in the
/// result.
///
/// # Errors
/// When an option makes no sense. Nothing was run then.
pub fn replay<'a>(
    days: impl IntoIterator<Item = TradingDay<'a>>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    look_outside: &mut dyn FnMut(Progress) -> Control,
) -> Result<RunResult, OptionsError> {
    let mut rows = InMemory::default();
    // Memory takes every row, so there is no failure to report.
    let (totals, _) = replay_rows(days, strategy, options, &mut rows, look_outside)?;
    Ok(rows.into_result(totals))
}

/// Replays days of trades through a strategy; the rows of the results go to `sink` as the run goes.
///
/// # Errors
/// When an option makes no sense, or when the sink fails; the run is stopped then.
pub fn replay_into<'a>(
    days: impl IntoIterator<Item = TradingDay<'a>>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    look_outside: &mut dyn FnMut(Progress) -> Control,
) -> Result<RunTotals, ReplayError> {
    match replay_rows(days, strategy, options, sink, look_outside)? {
        (_, Some(failure)) => Err(failure.into()),
        (totals, None) => Ok(totals),
    }
}

fn replay_rows<'a>(
    days: impl IntoIterator<Item = TradingDay<'a>>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    look_outside: &mut dyn FnMut(Progress) -> Control,
) -> Result<(RunTotals, Option<io::Error>), OptionsError> {
    options.check()?;
    let instruments = std::slice::from_ref(&options.instrument);
    let exchange = Exchange::new(options.model, instruments, options.cash);
    let mut run = Run {
        strategy,
        exchange,
        recorder: Recorder::new(sink, options.cash, instruments.len()),
        window: options.window as usize,
        orders_max: options.model.orders_max,
        now: TsNanos::default(),
        last_price: None,
        trades_seen: 0,
        market_volume: 0,
        span: None,
        rows_handed: 0,
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

struct Run<'s> {
    strategy: &'s mut dyn StrategyRuntime,
    exchange: Exchange,
    recorder: Recorder<'s>,
    window: usize,
    orders_max: u32,
    now: TsNanos,
    last_price: Option<Price>,
    trades_seen: u64,
    market_volume: u128,
    span: Option<(TsNanos, TsNanos)>,
    rows_handed: u64,
    rows_since_look: usize,
    look_outside: &'s mut dyn FnMut(Progress) -> Control,
}

impl Run<'_> {
    fn all<'a>(
        &mut self,
        days: impl IntoIterator<Item = TradingDay<'a>>,
        options: &ReplayOptions,
    ) -> Result<Control, Box<Fault>> {
        let instruments = std::slice::from_ref(&options.instrument);
        self.strategy.init(&options.config_json, instruments)?;
        let mut days = days.into_iter().peekable();
        let mut control = Control::Continue;
        while let Some(day) = days.next() {
            self.begin_day(&day)?;
            let (seen, ended) = self.day(&day);
            // Noted also when the strategy failed in the middle of the day.
            self.note_day(&day, seen);
            control = ended?;
            if control == Control::Stop {
                break;
            }
            if days.peek().is_some() {
                self.end_day(day.end())?;
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

    fn begin_day(&mut self, day: &TradingDay<'_>) -> Result<(), Box<Fault>> {
        let first = day.price_at(0);
        let Some(close) = self.last_price else {
            // The day's first moment: before every trade, so nothing is known of it.
            self.exchange.begin_day(day.hours(), ONLY, first);
            self.now = TsNanos::from_jst(day.ts_at(0).jst_date(), 0).unwrap_or_default();
            self.push_portfolio();
            let actions = self.strategy.start(self.now)?;
            self.obey(actions);
            return self.deliver();
        };
        // F7: around the previous close, unless the day opens outside that range, as it does after
        // a split; then around its first trade.
        let in_range = DailyLimits::around(close).contains(first);
        self.exchange.begin_day(day.hours(), ONLY, if in_range { close } else { first });
        Ok(())
    }

    /// Replays one day; tells how many of its rows the strategy has seen.
    fn day(&mut self, day: &TradingDay<'_>) -> (usize, Result<Control, Box<Fault>>) {
        let mut from = 0;
        while from < day.len() {
            let to = day.len().min(from + self.window);
            let rows = TradeColumns {
                ts_event: &day.ts_event[from..to],
                instrument: &ONLY_COLUMN[..to - from],
                price: &day.price[from..to],
                quantity: &day.quantity[from..to],
            };
            let mut reached = 0;
            if let Err(fault) = self.window(rows, &mut reached) {
                return (from + reached, Err(fault));
            }
            self.rows_since_look += to - from;
            self.rows_handed += (to - from) as u64;
            from = to;
            if self.rows_since_look >= ROWS_BETWEEN_LOOKS && self.look() == Control::Stop {
                return (from, Ok(Control::Stop));
            }
        }
        (from, Ok(Control::Continue))
    }

    /// Lets the strategy handle the rows of one window, with stops wherever the exchange acts.
    #[inline]
    fn window(&mut self, rows: TradeColumns<'_>, reached: &mut usize) -> Result<(), Box<Fault>> {
        let length = rows.ts_event.len();
        let mut next = if self.window == 1 {
            Window::OneTrade(trade_at(rows, 0))
        } else {
            Window::Trades(rows)
        };
        while *reached < length {
            let mut stop = self.exchange.next_stop(rows, *reached, length);
            if stop == *reached {
                self.at_row(rows, *reached)?;
                stop = self.exchange.next_stop(rows, *reached + 1, length);
            }
            // A window has at most 65,536 rows.
            let outcome = self.strategy.advance(next, stop as u32)?;
            next = Window::Resume;
            *reached = outcome.reached as usize;
            self.now = TsNanos::from_nanos(rows.ts_event[*reached - 1]);
            self.last_price = Some(Price::from_units(rows.price[*reached - 1]));
            if !outcome.actions.is_empty() {
                self.tell_last_price();
                self.obey(outcome.actions);
                self.deliver()?;
            }
        }
        Ok(())
    }

    /// What is due by itself up to a row, and the row against our orders.
    fn at_row(&mut self, rows: TradeColumns<'_>, row: usize) -> Result<(), Box<Fault>> {
        let trade = trade_at(rows, row);
        self.tell_last_price();
        self.run_due(trade.ts_event)?;
        self.now = trade.ts_event;
        self.recorder.print(ONLY, trade.price);
        self.exchange.take_trade(ONLY, trade.ts_event, trade.price, trade.quantity);
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
        self.tell_last_price();
        self.run_due(end)?;
        self.now = end;
        self.exchange.end_day(end);
        self.deliver()
    }

    fn tell_last_price(&mut self) {
        if let Some(price) = self.last_price {
            self.exchange.set_last_price(ONLY, price);
        }
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
        for event in &events {
            self.recorder.order_event(event);
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

    fn note_day(&mut self, day: &TradingDay<'_>, seen: usize) {
        // Orders that are done leave memory day by day.
        self.recorder.orders(&self.exchange.take_done());
        let Some(last) = seen.checked_sub(1) else { return };
        let slice = DaySlice { ts_event: &day.ts_event[..seen], price: &day.price[..seen] };
        self.recorder.end_day(&[slice]);
        self.trades_seen += seen as u64;
        let volume = day.quantity[..seen].iter().map(|shares| u128::from(*shares));
        self.market_volume += volume.sum::<u128>();
        let first = self.span.map_or(day.ts_at(0), |(first, _)| first);
        self.span = Some((first, day.ts_at(last)));
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
        (self.look_outside)(Progress { trades_seen: self.rows_handed, now: self.now })
    }

    fn finish(
        mut self,
        status: RunStatus,
        options: &ReplayOptions,
    ) -> (RunTotals, Option<io::Error>) {
        self.note_events();
        self.recorder.log(self.strategy.take_log());
        let account = self.exchange.account();
        let price = self.last_price.unwrap_or_default();
        let (held, equity) = (account.held(ONLY), account.equity(&[price]));
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

fn trade_at(rows: TradeColumns<'_>, row: usize) -> Trade {
    Trade {
        ts_event: TsNanos::from_nanos(rows.ts_event[row]),
        instrument: ONLY,
        price: Price::from_units(rows.price[row]),
        quantity: Quantity::new(rows.quantity[row]),
    }
}
