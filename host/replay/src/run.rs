//! The loop: hands market events to the strategy, its commands to the exchange, and the events of its
//! orders back to the strategy.
//!
//! At each instant the order is: what is due by itself (arrivals, cancels under way, the end of the
//! day), then our orders against the trade, then the strategy sees the trade. What the strategy asks
//! for is done at once, at the time of the event it was handling.

mod day;
mod ex_rights;
mod worth;
mod written;

use std::collections::BTreeMap;
use std::io;

use domain::account::PortfolioView;
use domain::adjustment::ExRights;
use domain::fault::{Fault, FaultKind};
use domain::limits::INSTRUMENTS_MAX;
use domain::market::Bar;
use domain::session::TradingHours;
use domain::strategy::{Action, LogLevel, LogLine, StrategyRuntime};
use domain::{
    GuestLimit, Instrument, InstrumentIx, OrderCommand, OrderEvent, OrderEventKind, Origin, Price,
    TsNanos,
};
use thiserror::Error;

use crate::days::RunDays;
use crate::driver::{
    COMMANDS_PER_POSITION_MAX, PositionKey, ROWS_BETWEEN_POLLS_MAX, RunCommand, RunDriver,
    RunPosition,
};
use crate::merge::{Merge, seen_of_each};
use crate::options::{OptionsError, ReplayOptions, UnitChange};
use crate::rows::LastPrices;
use crate::series::{MarketDay, TradingDay, hours_of};
use exchange::{Exchange, Warning};
use results::recorder::{DaySlice, Recorder, RowTimes};
use results::rows::{BuyingPowerRow, ClientCommand};
use results::sink::{LiveRecords, Record, RunSink};
use results::{RunStatus, RunTotals};
use worth::Worth;
pub use worth::WorthError;
use written::Written;

/// Rounds of events and commands at one instant; a strategy that answers every rejection with a new
/// order would never let time go on.
const ROUNDS_PER_INSTANT_MAX: u64 = 1_000;
/// Finished orders that stay in memory until the day ends; more go to the sink at once, about
/// 10 MB of them.
const DONE_ORDERS_MAX: usize = 16_384;

/// Why a replay has no result.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// An option makes no sense. Nothing was run.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The results cannot be kept. The run was stopped.
    #[error("cannot write the results: {0}")]
    Results(#[from] io::Error),
    /// The data make the account worth more than is counted. The run was stopped, and there is no result of it.
    #[error(transparent)]
    Worth(#[from] Box<WorthError>),
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    Continue,
    /// The driver wants an end, or the sink has failed.
    Stop,
}

/// Replays days of the market through a strategy: trades ([`crate::TradingDay`]) of one instrument, or
/// trades or bars of all instruments of the options ([`MarketDay`]). Business days without rows are
/// days of the run too ([`RunDays`]). Every record goes to `sink` in order; `driver` paces the run,
/// gives the commands of clients and may end it.
///
/// A fault of the strategy ends the run but not this function: what came before it was told. A stop
/// at the end of the last day ends nothing: such a run is complete.
///
/// # Errors
/// [`ReplayError::Options`] when an option makes no sense, and nothing was run;
/// [`ReplayError::Results`] when the sink fails, and the run was stopped; or [`ReplayError::Worth`] when prices or
/// splits of the data make the account worth more than is counted.
///
/// # Panics
/// When a day has more instruments than the options.
pub fn replay<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    driver: &mut dyn RunDriver,
) -> Result<RunTotals, ReplayError> {
    options.check()?;
    let instruments = &options.instruments;
    let window = options.window as usize;
    // With window 1 the strategy gets one trade at a time, whoever gives it to it.
    let batch = if window == 1 { strategy.batch_rows() as usize } else { window };
    let mut run = Run {
        strategy,
        exchange: Exchange::new(options.model, instruments, options.cash)
            .with_calendar(options.calendar.clone()),
        live: sink.live_records(),
        recorder: Recorder::new(sink, options.cash, instruments.len()),
        events: Vec::new(),
        portfolio: PortfolioView::default(),
        driver,
        windows: Windows { trades: batch, bars: window },
        orders_max: options.model.orders_max,
        warnings_max: options.warnings_max,
        rejected_bytes_max: options.rejected_bytes_max,
        written: Written::new(options.folder_bytes_max, options.folder_bytes_per_day),
        warnings: 0,
        client_warnings: 0,
        merge: Merge::new(batch),
        instruments: instruments.len(),
        now: TsNanos::default(),
        last_prices: LastPrices::new(instruments.len()),
        started: false,
        had_longer_hours: false,
        trades_seen: 0,
        market_volume: 0,
        span: None,
        rows_done: 0,
        days_done: 0,
        rows_until_poll: 0,
        ex_rights: &options.ex_rights,
        unit_changes: &options.unit_changes,
        base_prices: base_prices(options),
        split_prices: [None; INSTRUMENTS_MAX],
        listed: &options.instruments,
        parameters: BTreeMap::new(),
        worth: Worth::default(),
    };
    let ended = run.all(days, options);
    if let Some(error) = run.worth.take_error() {
        return Err(error.into());
    }
    let status = match ended {
        Ok(Control::Continue) => RunStatus::Completed,
        Ok(Control::Stop) => RunStatus::Interrupted,
        Err(fault) => RunStatus::Failed(fault),
    };
    let (totals, failure) = run.finish(status, options);
    failure.map_or(Ok(totals), |failure| Err(failure.into()))
}

/// Rows that are handed over at once.
#[derive(Debug, Clone, Copy)]
struct Windows {
    trades: usize,
    bars: usize,
}

struct Run<'s> {
    strategy: &'s mut dyn StrategyRuntime,
    exchange: Exchange,
    /// What the sink wants besides the rows of tables.
    live: LiveRecords,
    recorder: Recorder<'s>,
    /// The exchange's events of the present instant; kept, because every order needs the memory.
    events: Vec<OrderEvent>,
    /// What portfolio queries answer; kept for the same reason.
    portfolio: PortfolioView,
    driver: &'s mut dyn RunDriver,
    windows: Windows,
    orders_max: u32,
    warnings_max: u64,
    rejected_bytes_max: u64,
    /// What the strategy's records leave in the folder.
    written: Written,
    /// Warnings so far, of which the log has the first `warnings_max`.
    warnings: u64,
    /// The same of clients, which take nothing of what the strategy may.
    client_warnings: u64,
    merge: Merge,
    instruments: usize,
    now: TsNanos,
    last_prices: LastPrices,
    started: bool,
    /// A day before had trades long after its official close, as data has that was moved to other
    /// dates; the days after it have today's hours.
    had_longer_hours: bool,
    trades_seen: u64,
    market_volume: u128,
    span: Option<(TsNanos, TsNanos)>,
    /// Rows that the strategy has seen in windows that are done.
    rows_done: u64,
    days_done: u64,
    /// Rows that may be handed over before the driver is asked again.
    rows_until_poll: u64,
    /// Splits that are not taken in yet.
    ex_rights: &'s [ExRights],
    /// Changes of lots and price steps that are not taken in yet.
    unit_changes: &'s [UnitChange],
    /// The last close of each instrument before the first day, as shares are counted now.
    base_prices: [Option<Price>; INSTRUMENTS_MAX],
    /// Of each instrument the price that its last split made.
    split_prices: [Option<Price>; INSTRUMENTS_MAX],
    /// The instruments.
    listed: &'s [Instrument],
    /// What the strategy reported of its parameters: values as JSON by their names.
    parameters: BTreeMap<String, String>,
    /// What the account may be worth on the present day.
    worth: Worth,
}

/// The last close of each instrument before the first day.
fn base_prices(options: &ReplayOptions) -> [Option<Price>; INSTRUMENTS_MAX] {
    std::array::from_fn(|index| options.base_prices.get(index).copied().flatten())
}

/// How a day or a part of it went: the rows of it that the strategy has seen, and how it ended.
type Seen = (usize, Result<Control, Box<Fault>>);

impl Run<'_> {
    fn all<'a, M: Into<MarketDay<'a>>>(
        &mut self,
        days: impl IntoIterator<Item = M>,
        options: &ReplayOptions,
    ) -> Result<Control, Box<Fault>> {
        let made = self.strategy.init(&options.config_json, &options.instruments);
        self.parameters = self.strategy.take_parameters();
        self.written.parameters(&self.parameters);
        made?;
        // When the rows of the last day and its orders end.
        let mut end = None;
        let mut control = Control::Continue;
        let with_rows = days.into_iter().map(Into::<MarketDay<'a>>::into);
        let with_rows = with_rows.filter_map(|day| Some((day.date()?, day)));
        let mut days = RunDays::new(with_rows, options.dates, &options.calendar);
        // Rows of a run are all of one kind.
        let is_daily = days.next_rows().is_some_and(MarketDay::is_of_daily_bars);
        let mut days = days.peekable();
        while let Some((date, rows)) = days.next() {
            let has_rows = rows.is_some();
            let day = rows.unwrap_or_else(|| MarketDay::bars(Vec::new()));
            let hours = hours_of(date, self.had_longer_hours, is_daily);
            end = (!is_daily).then(|| day.end(hours).unwrap_or(hours.close));
            self.begin_day(&day, hours, days.peek().is_none(), options)?;
            if is_daily && !has_rows {
                // Daily bars end their day, here there are none.
                self.run_due(hours.close)?;
                self.now = hours.close;
                self.exchange.end_day(hours.close);
                self.deliver()?;
            }
            let (seen, ended) = self.day(&day);
            if self.worth.is_beyond() {
                // What the day would be valued at cannot be counted.
                return ended;
            }
            // Noted also when the strategy failed in the middle of the day.
            self.note_day(&day, seen);
            if !has_rows {
                self.recorder.end_day_without_rows(hours.close);
            }
            self.had_longer_hours |=
                day.last_timestamp().is_some_and(|last| hours.are_exceeded_by(last));
            control = ended?;
            // The day's log was noted just now.
            self.check_folder()?;
            // Without rows it has no position of its own, where a command could be given again.
            if control == Control::Continue && has_rows {
                control = self.poll(None)?;
                if control == Control::Stop && days.next().is_none() {
                    // Nothing was left to do.
                    control = Control::Continue;
                }
            }
            if control == Control::Stop {
                break;
            }
        }
        if control == Control::Stop {
            self.exchange.cancel_open(self.now);
            self.deliver()?;
        } else if let Some(end) = end {
            // The instruments' days end after the rows of that time.
            self.last_prices.tell(&mut self.exchange);
            self.run_due(end.plus_nanos(1))?;
        }
        self.exchange.end_of_data(self.now);
        self.deliver()?;
        let actions = self.strategy.stop(self.now)?;
        // Orders sent now are rejected, and there is nobody left to tell.
        self.execute(actions);
        self.note_events();
        Ok(control)
    }

    fn begin_day(
        &mut self,
        day: &MarketDay<'_>,
        hours: TradingHours,
        is_last: bool,
        options: &ReplayOptions,
    ) -> Result<(), Box<Fault>> {
        // What was due before the day keeps its own time, and meets the day before.
        self.last_prices.tell(&mut self.exchange);
        self.run_due(TsNanos::from_nanos(hours.start.nanos().saturating_sub(1)))?;
        let account_events = self.take_ex_rights(hours)?;
        self.worth.begin_day(day);
        self.check_worth(hours.date)?;
        self.written.begin_day();
        let units_changed = self.take_unit_changes(hours);
        for index in 0..self.instruments {
            // There are at most 4 instruments.
            let instrument = InstrumentIx(index as u16);
            // F7: around the last close before the day, whatever the day will bring.
            let base = self.last_prices.of(instrument).or(self.base_prices[index]);
            // A price that a split made is no price of the day's grid.
            let base = match base {
                Some(price) if base == self.split_prices[index] => {
                    Some(self.exchange.ticks(instrument).nearest(price))
                }
                _ => base,
            };
            self.exchange.begin_day(hours, instrument, base);
            let known = self.are_splits_known(instrument, hours.date, options);
            self.exchange.set_splits_known(instrument, known);
            // Daily bars end their day themselves.
            if !hours.is_one_session() {
                self.exchange.end_day_at(day.end_of(instrument, hours), instrument, is_last);
            }
        }
        if self.started {
            if units_changed || !account_events.is_empty() {
                // Orders go into the new day first, so that those which it ends are told too.
                self.run_due(self.now)?;
                self.deliver()?;
            }
            return self.tell_account_events(&account_events);
        }
        self.started = true;
        // The day's first timestamp: before every trade, so nothing is known of it.
        self.now = hours.start;
        self.push_portfolio();
        let actions = self.strategy.start(self.now)?;
        self.execute(actions);
        self.deliver()
    }

    /// Everything that is due up to `until`, instant by instant.
    fn run_due(&mut self, until: TsNanos) -> Result<(), Box<Fault>> {
        while self.exchange.next_due().is_some_and(|due| due <= until) {
            self.now = self.exchange.run_due().unwrap_or(self.now);
            self.deliver()?;
        }
        Ok(())
    }

    /// Asks the driver, and executes what it wants at the present instant.
    fn poll(&mut self, next_row: Option<TsNanos>) -> Result<Control, Box<Fault>> {
        let Self { rows_done, days_done, now, .. } = *self;
        let position = RunPosition { rows_done, days_done, now, next_row };
        for _ in 0..COMMANDS_PER_POSITION_MAX {
            // Commands that come after a failure stay where they are.
            if self.recorder.has_failed() {
                return Ok(Control::Stop);
            }
            match self.driver.poll(position) {
                None => break,
                Some(RunCommand::Stop) => {
                    self.note_command(position, None);
                    return Ok(Control::Stop);
                }
                Some(RunCommand::Order(command)) => {
                    self.note_command(position, Some(&command));
                    self.last_prices.tell(&mut self.exchange);
                    if self.is_possible(&command) {
                        self.exchange.execute(now, Origin::Client, command);
                        self.deliver()?;
                    }
                }
                Some(RunCommand::SetSpeed(_)) => {}
                Some(RunCommand::ReportBuyingPower) => self.report_buying_power(),
            }
        }
        // The first row of a day is a position of its own, whatever the end of the day before was.
        let rows = |_| self.driver.rows_until_poll(position).clamp(1, ROWS_BETWEEN_POLLS_MAX);
        self.rows_until_poll = next_row.map_or(0, rows);
        Ok(Control::Continue)
    }

    /// Whether a client's command can be sent; a change that cannot is told to the client.
    fn is_possible(&mut self, command: &OrderCommand) -> bool {
        let OrderCommand::Modify { client_order_id, change } = command else { return true };
        let checked = self.exchange.check_change(self.now, client_order_id, *change);
        let Err(rejection) = checked else { return true };
        let ts_event = self.now;
        self.recorder.tell(Record::ClientRejection {
            ts_event,
            client_order_id,
            rejection: &rejection,
        });
        false
    }

    fn note_command(&mut self, position: RunPosition, command: Option<&OrderCommand>) {
        let PositionKey { rows_done, is_before_row } = position.key();
        let ts_event = position.now;
        self.recorder.tell(Record::ClientCommand(&ClientCommand {
            rows_done,
            is_before_row,
            ts_event,
            command,
        }));
    }

    /// Does what the strategy asked for, in order, at the present instant.
    fn execute(&mut self, mut actions: Vec<Action>) {
        for action in actions.drain(..) {
            match action {
                Action::Order(command) => {
                    self.exchange.execute(self.now, Origin::Strategy, command);
                }
                Action::Signal(signal) => {
                    self.written.signal(&signal);
                    self.recorder.signal(self.now, &signal);
                }
                Action::Narrative(record) => {
                    self.written.narrative(&record);
                    self.recorder.narrative(self.now, &record);
                }
            }
        }
        self.strategy.take_back(actions);
    }

    /// Tells the strategy the events of its orders, does what it asks for then, until there are no
    /// events any more.
    fn deliver(&mut self) -> Result<(), Box<Fault>> {
        for _ in 0..ROUNDS_PER_INSTANT_MAX {
            self.check_orders().map_err(|kind| self.fault("submit", kind))?;
            self.note_events();
            if !self.events.is_empty() {
                self.check_worth(self.now.jst_date())?;
            }
            self.check_folder()?;
            if self.exchange.done() >= DONE_ORDERS_MAX {
                self.exchange.take_done(|order| self.recorder.order(order));
            }
            let has_reserved_again = self.exchange.take_reserved_again();
            if self.events.is_empty() {
                if has_reserved_again {
                    self.push_portfolio();
                }
                return Ok(());
            }
            // Orders of clients change the account, but are none of the strategy's business.
            self.push_portfolio();
            self.events.retain(|event| event.origin == Origin::Strategy);
            if self.events.is_empty() {
                continue;
            }
            let actions = self.strategy.on_order_events(&self.events)?;
            self.execute(actions);
        }
        let what = "or more rounds of events and commands at one instant";
        let (used, allowed) = (ROUNDS_PER_INSTANT_MAX, ROUNDS_PER_INSTANT_MAX);
        Err(self.fault("on-order-events", FaultKind::Limit { what, used, allowed }))
    }

    /// The run may have as many orders, and as many rejected ones, as it has.
    fn check_orders(&self) -> Result<(), FaultKind> {
        if self.exchange.is_exhausted() {
            let allowed = u64::from(self.orders_max);
            let (limit, used) = (GuestLimit::Orders, allowed + 1);
            return Err(FaultKind::Budget { limit, used, allowed });
        }
        let (used, allowed) = (self.exchange.rejected_bytes(), self.rejected_bytes_max);
        if used > allowed {
            return Err(FaultKind::Budget { limit: GuestLimit::Rejected, used, allowed });
        }
        Ok(())
    }

    /// The records so far have room in the folder.
    fn check_folder(&self) -> Result<(), Box<Fault>> {
        let checked = self.written.check(self.exchange.rejected_bytes());
        checked.map_err(|kind| self.fault("submit", kind))
    }

    fn fault(&self, export: &'static str, kind: FaultKind) -> Box<Fault> {
        let identity = self.strategy.identity();
        Box::new(Fault {
            component: identity.component,
            sha256: identity.sha256,
            export,
            ts_event: Some(self.now),
            kind,
            backtrace: Vec::new(),
        })
    }

    /// Takes the exchange's events, which are `events` then, and its warnings into the record.
    fn note_events(&mut self) {
        self.exchange.swap_events(&mut self.events);
        let mut filled = false;
        for event in &self.events {
            if let OrderEventKind::Filled(fill) = &event.kind {
                if !self.worth.fill(fill) {
                    // The run ends, and there is no result.
                    return;
                }
                filled = true;
            }
            self.written.order_event(event);
            self.recorder.order_event(event);
        }
        if filled && self.live.buying_power {
            self.report_buying_power();
        }
        let warnings = self.exchange.take_warnings();
        if !warnings.is_empty() {
            self.note_log();
            self.note_warnings(warnings);
        }
    }

    /// Warnings go to the log; what a client's command came to is told to the client besides.
    fn note_warnings(&mut self, warnings: Vec<Warning>) {
        let now = self.now;
        for warning in warnings {
            let message = match warning.origin {
                Origin::Strategy => warning.text,
                Origin::Client => {
                    self.recorder.tell(Record::ClientWarning {
                        ts_event: now,
                        client_order_id: &warning.client_order_id,
                        text: &warning.text,
                    });
                    format!("client: {}", warning.text)
                }
            };
            let so_far = match warning.origin {
                Origin::Strategy => &mut self.warnings,
                Origin::Client => &mut self.client_warnings,
            };
            *so_far += 1;
            if *so_far > self.warnings_max {
                continue;
            }
            let line = LogLine { ts_event: Some(now), level: LogLevel::Warn, message };
            if warning.origin == Origin::Strategy {
                self.written.log_line(&line);
            }
            self.recorder.log([line]);
        }
    }

    /// Takes the strategy's lines into the record.
    fn note_log(&mut self) {
        let lines = self.strategy.take_log();
        lines.iter().for_each(|line| self.written.log_line(line));
        self.recorder.log(lines);
    }

    /// Says how many warnings the log does not have.
    fn note_dropped_warnings(&mut self) {
        let dropped = [(self.warnings, ""), (self.client_warnings, "client: ")];
        for (so_far, whose) in dropped {
            let more = so_far.saturating_sub(self.warnings_max);
            if more == 0 {
                continue;
            }
            let advice = GuestLimit::Warnings.advice(self.warnings_max);
            let message = format!(
                "{whose}{more} more commands had no effect; the log keeps no more, {advice}"
            );
            let ts_event = Some(self.now);
            self.recorder.log([LogLine { ts_event, level: LogLevel::Warn, message }]);
        }
    }

    fn note_day(&mut self, day: &MarketDay<'_>, seen: usize) {
        // Orders that are done and lines of the log leave memory day by day.
        self.exchange.take_done(|order| self.recorder.order(order));
        self.note_log();
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
            self.market_volume += part.volume(seen);
        }
        self.note_slices(&slices, RowTimes::Events);
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
        self.note_slices(&slices, RowTimes::SpanEnds);
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

    /// Tells cash and equity at the last prices.
    fn report_buying_power(&mut self) {
        let account = self.exchange.account();
        let cash = account.account().cash;
        let equity = account.equity(&self.last_prices.or_zero());
        // Only cash is modelled.
        let row = BuyingPowerRow { ts_event: self.now, cash, buying_power: cash, equity };
        self.recorder.tell(Record::BuyingPower(&row));
    }

    /// Renews what portfolio queries answer, for strategies that ask.
    fn push_portfolio(&mut self) {
        let asked = self.strategy.capabilities();
        if !asked.portfolio && !asked.working_orders {
            return;
        }
        let account = self.exchange.account();
        self.portfolio.account = *account.account();
        self.portfolio.positions.clear();
        self.portfolio.positions.extend_from_slice(account.positions());
        if asked.working_orders {
            self.portfolio.working_orders = self.exchange.working_orders();
        }
        self.strategy.set_portfolio(&self.portfolio);
    }

    fn finish(
        mut self,
        status: RunStatus,
        options: &ReplayOptions,
    ) -> (RunTotals, Option<io::Error>) {
        self.note_events();
        self.note_log();
        self.note_dropped_warnings();
        let account = self.exchange.account();
        let held = account.positions().iter().map(|position| position.quantity).sum();
        let equity = account.equity(&self.last_prices.or_zero());
        let account = *account.account();
        self.recorder.digest.end_of_run(self.now, account.cash, equity);
        let (digest, digest_records) =
            (self.recorder.digest.digest(), self.recorder.digest.records());
        let our_volume = self.exchange.our_volume();
        let mut notes = self.exchange.range_notes();
        notes.extend(self.exchange.round_trips_note());
        let mut warnings = self.exchange.gap_warnings();
        warnings.extend(self.exchange.tick_warnings());
        self.exchange.into_orders().iter().for_each(|order| self.recorder.order(order));
        let recorded = self.recorder.finish();
        let totals = RunTotals {
            status,
            digest,
            digest_records,
            order_counts: recorded.order_counts,
            fill_count: recorded.fill_count,
            trades_seen: self.trades_seen,
            market_volume: self.market_volume,
            our_volume,
            cash_start: options.cash,
            cash_end: account.cash,
            equity_end: equity,
            position_end: held,
            positions: recorded.positions,
            realised_pnl: account.realised_pnl,
            commission: account.commission,
            notes,
            span: self.span,
            warnings,
            performance: recorded.performance,
            parameters: self.parameters,
        };
        (totals, recorded.failure)
    }
}
