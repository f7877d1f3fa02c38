//! The loop: hands market events to the strategy, its commands to the exchange, and the events of its
//! orders back to the strategy.
//!
//! At each instant the order is: what is due by itself (arrivals, cancels under way, the end of the
//! day), then our orders against the trade, then the strategy sees the trade. What the strategy asks
//! for is done at once, at the time of the event it was handling.

mod columns;
mod day;
mod ex_rights;
mod stream;
mod worth;

use std::io;

use domain::adjustment::ExRights;
use domain::fault::Fault;
use domain::limits::INSTRUMENTS_MAX;
use domain::market::Bar;
use domain::session::TradingHours;
use domain::strategy::StrategyRuntime;
use domain::{Instrument, InstrumentIx, OrderCommand, Price, TsNanos};
use thiserror::Error;

use crate::days::RunDays;
use crate::driver::{
    COMMANDS_PER_POSITION_MAX, PositionKey, ROWS_BETWEEN_POLLS_MAX, RunCommand, RunDriver,
    RunPosition,
};
use crate::merge::{Merge, seen_of_each};
use crate::options::{OptionsError, ReplayOptions, UnitChange};
use crate::series::{MarketDay, TradingDay, hours_of};
use columns::Columns;
use exchange::Exchange;
use results::recorder::{DaySlice, RowTimes};
use results::rows::ClientCommand;
use results::sink::{Record, RunSink};
use results::{RunStatus, RunTotals};
pub(crate) use stream::StreamRun;
use trader::{LastPrices, SessionLimits, StrategySession};
use worth::Worth;
pub use worth::WorthError;

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
    let mut run = Run::new(strategy, options, sink, driver);
    let ended = run.all(days);
    run.into_result(ended)
}

/// Rows that are handed over at once.
#[derive(Debug, Clone, Copy)]
struct Windows {
    trades: usize,
    bars: usize,
}

pub(crate) struct Run<'s> {
    session: StrategySession<'s, Exchange, Worth<'s>>,
    driver: &'s mut dyn RunDriver,
    windows: Windows,
    merge: Merge,
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
    /// Rows that may be handed over before the driver is polled again.
    rows_until_poll: u64,
    /// Splits that are not taken in yet.
    ex_rights: &'s [ExRights],
    /// Changes of lots and price steps that are not taken in yet.
    unit_changes: &'s [UnitChange],
    /// Of each instrument the price that its last split made.
    split_prices: [Option<Price>; INSTRUMENTS_MAX],
    /// The instruments.
    listed: &'s [Instrument],
    options: &'s ReplayOptions,
}

/// How a day or a part of it went: the rows of it that the strategy has seen, and how it ended.
type Seen = (usize, Result<Control, Box<Fault>>);

impl<'s> Run<'s> {
    /// A run that has not begun, with options that were checked.
    pub(crate) fn new(
        strategy: &'s mut dyn StrategyRuntime,
        options: &'s ReplayOptions,
        sink: &'s mut dyn RunSink,
        driver: &'s mut dyn RunDriver,
    ) -> Self {
        let instruments = &options.instruments;
        let window = options.window as usize;
        // With window 1 the strategy gets one trade at a time, whoever gives it to it.
        let batch = if window == 1 { strategy.batch_rows() as usize } else { window };
        let exchange = Exchange::new(options.model, instruments, options.cash)
            .with_calendar(options.calendar.clone());
        let prices = LastPrices::new(instruments.len(), &options.base_prices);
        let limits = SessionLimits {
            orders: options.model.orders_max,
            warnings: options.warnings_max,
            rejected_bytes: options.rejected_bytes_max,
            folder_bytes: options.folder_bytes_max,
            folder_bytes_per_day: options.folder_bytes_per_day,
        };
        Self {
            session: StrategySession::new(
                strategy,
                (exchange, Worth::new(instruments)),
                sink,
                (options.cash, prices),
                limits,
            ),
            driver,
            windows: Windows { trades: batch, bars: window },
            merge: Merge::new(batch),
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
            split_prices: [None; INSTRUMENTS_MAX],
            listed: instruments,
            options,
        }
    }

    /// The account holds shares from before the run.
    pub(crate) fn hold(&mut self, held: &[(InstrumentIx, i64)]) {
        for &(instrument, shares) in held {
            self.session.execution.hold(instrument, shares);
            self.session.recorder.hold(instrument, shares);
        }
    }

    /// What the run comes to, however it ended.
    fn into_result(self, ended: Result<Control, Box<Fault>>) -> Result<RunTotals, ReplayError> {
        let (totals, failure) = self.into_totals(ended)?;
        failure.map_or(Ok(totals), |failure| Err(failure.into()))
    }

    /// The same, with what the sink has failed by.
    fn into_totals(
        mut self,
        ended: Result<Control, Box<Fault>>,
    ) -> Result<(RunTotals, Option<io::Error>), ReplayError> {
        if let Some(error) = self.session.check.take_error() {
            return Err(error.into());
        }
        let status = match ended {
            Ok(Control::Continue) => RunStatus::Completed,
            Ok(Control::Stop) => RunStatus::Interrupted,
            Err(fault) => RunStatus::Failed(fault),
        };
        Ok(self.finish(status))
    }
}

impl Run<'_> {
    fn all<'a, M: Into<MarketDay<'a>>>(
        &mut self,
        days: impl IntoIterator<Item = M>,
    ) -> Result<Control, Box<Fault>> {
        let options = self.options;
        self.init()?;
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
            let is_last = days.peek().is_none();
            let hours = hours_of(date, self.had_longer_hours, is_daily);
            let Some(day) = rows else {
                end = (!is_daily).then_some(hours.close);
                self.day_without_rows(hours, is_last)?;
                continue;
            };
            end = (!is_daily).then(|| day.end(hours).unwrap_or(hours.close));
            self.begin_day(hours, Some((&day, is_last)))?;
            let (seen, ended) = self.day(&day);
            if self.session.check.is_beyond() {
                // What the day would be valued at cannot be counted.
                return ended;
            }
            // Noted also when the strategy failed in the middle of the day.
            self.note_day(&day, seen);
            self.had_longer_hours |=
                day.last_timestamp().is_some_and(|last| hours.are_exceeded_by(last));
            control = ended?;
            // The day's log was noted just now.
            self.session.check_folder()?;
            if control == Control::Continue {
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
            self.cancel_open()?;
        } else if let Some(end) = end {
            // The instruments' days end after the rows of that time.
            self.hand_prices();
            self.run_due(end.plus_nanos(1))?;
        }
        self.end_of_data()?;
        Ok(control)
    }

    /// Hands its configuration and instruments to the strategy.
    fn init(&mut self) -> Result<(), Box<Fault>> {
        self.session.init(&self.options.config_json, &self.options.instruments)
    }

    /// The run is stopped: open orders are cancelled, and the strategy hears of it.
    fn cancel_open(&mut self) -> Result<(), Box<Fault>> {
        self.session.execution.cancel_open(self.session.now);
        self.session.deliver()
    }

    /// There is no more data: orders expire, and the strategy stops.
    fn end_of_data(&mut self) -> Result<(), Box<Fault>> {
        self.session.execution.end_of_data(self.session.now);
        self.session.deliver()?;
        // The exchange rejects orders that are sent now.
        self.session.stop()
    }

    /// Hands the last prices to the exchange, before it is to act.
    #[inline]
    fn hand_prices(&mut self) {
        self.session.prices.hand_to(&mut self.session.execution);
    }

    /// A day on which nothing trades. It has no position of its own, where a command could be given again.
    fn day_without_rows(&mut self, hours: TradingHours, is_last: bool) -> Result<(), Box<Fault>> {
        self.begin_day(hours, Some((&MarketDay::bars(Vec::new()), is_last)))?;
        if hours.is_one_session() {
            // Daily bars end their day, here there are none.
            self.run_due(hours.close)?;
            self.session.now = hours.close;
            self.session.execution.end_day(hours.close);
            self.session.deliver()?;
        }
        self.end_day();
        self.session.recorder.end_day_without_rows(hours.close);
        self.session.check_folder()
    }

    /// A day begins. Where its rows are `known`, the days of its instruments end with them, and their data on the last
    /// one.
    fn begin_day(
        &mut self,
        hours: TradingHours,
        known: Option<(&MarketDay<'_>, bool)>,
    ) -> Result<(), Box<Fault>> {
        // What was due before the day keeps its own time, and meets the day before.
        self.hand_prices();
        self.run_due(TsNanos::from_nanos(hours.start.nanos().saturating_sub(1)))?;
        let account_events = self.take_ex_rights(hours)?;
        self.session.check.begin_day(known.map(|(day, _)| day));
        self.session.check_account(hours.date)?;
        self.session.begin_day();
        let units_changed = self.take_unit_changes(hours);
        for index in 0..self.listed.len() {
            // There are at most 4 instruments.
            let instrument = InstrumentIx(index as u16);
            // F7: around the last close before the day, whatever the day will bring.
            let base = self.session.prices.known(instrument);
            // A price that a split made is no price of the day's grid.
            let base = match base {
                Some(price) if base == self.split_prices[index] => {
                    Some(self.session.execution.ticks(instrument).nearest(price))
                }
                _ => base,
            };
            self.session.execution.begin_day(hours, instrument, base);
            let splits_known = self.are_splits_known(instrument, hours.date);
            let exchange = &mut self.session.execution;
            exchange.set_splits_known(instrument, splits_known);
            // Daily bars end their day themselves.
            if let Some((day, is_last)) = known
                && !hours.is_one_session()
            {
                exchange.end_day_at(day.end_of(instrument, hours), instrument, is_last);
            }
        }
        if self.started {
            if units_changed || !account_events.is_empty() {
                // Orders go into the new day first, so that the strategy hears of those which it ends too.
                self.run_due(self.session.now)?;
                self.session.deliver()?;
            }
            return self.session.account_events(&account_events);
        }
        self.started = true;
        // The day's first timestamp: before every trade, so nothing is known of it.
        self.session.now = hours.start;
        self.session.start()
    }

    /// Everything that is due up to `until`, instant by instant.
    fn run_due(&mut self, until: TsNanos) -> Result<(), Box<Fault>> {
        let session = &mut self.session;
        while session.execution.next_due().is_some_and(|due| due <= until) {
            session.now = session.execution.run_due().unwrap_or(session.now);
            session.deliver()?;
        }
        Ok(())
    }

    /// Polls the driver, and executes what it wants at the present instant.
    fn poll(&mut self, next_row: Option<TsNanos>) -> Result<Control, Box<Fault>> {
        let Self { rows_done, days_done, .. } = *self;
        let position = RunPosition { rows_done, days_done, now: self.session.now, next_row };
        for _ in 0..COMMANDS_PER_POSITION_MAX {
            // Commands that come after a failure stay where they are.
            if self.session.recorder.has_failed() {
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
                    self.hand_prices();
                    if self.is_possible(&command) {
                        self.session.client_command(command)?;
                    }
                }
                Some(RunCommand::SetSpeed(_)) => {}
                Some(RunCommand::ReportBuyingPower) => self.session.report_buying_power(),
            }
        }
        // The first row of a day is a position of its own, whatever the end of the day before was.
        let rows = |_| self.driver.rows_until_poll(position).clamp(1, ROWS_BETWEEN_POLLS_MAX);
        self.rows_until_poll = next_row.map_or(0, rows);
        Ok(Control::Continue)
    }

    /// Whether a client's command can be sent; of a change that cannot the client gets the reason.
    fn is_possible(&mut self, command: &OrderCommand) -> bool {
        let OrderCommand::Modify { client_order_id, change } = command else { return true };
        let ts_event = self.session.now;
        let checked = self.session.execution.check_change(ts_event, client_order_id, *change);
        let Err(rejection) = checked else { return true };
        self.session.recorder.tell(Record::ClientRejection {
            ts_event,
            client_order_id,
            rejection: &rejection,
        });
        false
    }

    fn note_command(&mut self, position: RunPosition, command: Option<&OrderCommand>) {
        let PositionKey { rows_done, is_before_row } = position.key();
        let ts_event = position.now;
        self.session.recorder.tell(Record::ClientCommand(&ClientCommand {
            rows_done,
            is_before_row,
            ts_event,
            command,
        }));
    }

    /// A day has ended; what is known of its rows is noted next.
    fn end_day(&mut self) {
        self.session.end_day();
        self.days_done += 1;
    }

    fn note_day(&mut self, day: &MarketDay<'_>, seen: usize) {
        self.end_day();
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
        let mut slices = vec![DaySlice { ts_event: &[], price: &[] }; self.listed.len()];
        for ((slice, part), seen) in slices.iter_mut().zip(parts).zip(seen_of) {
            *slice = DaySlice { ts_event: &part.ts_event()[..seen], price: &part.price()[..seen] };
            self.market_volume += part.volume(seen);
        }
        self.session.recorder.end_day(&slices, RowTimes::Events);
        let first = slices.iter().filter_map(|slice| slice.ts_event.first()).min();
        let last = slices.iter().filter_map(|slice| slice.ts_event.last()).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.note_span(TsNanos::from_nanos(*first), TsNanos::from_nanos(*last));
        }
    }

    fn note_bars(&mut self, bars: &[Bar]) {
        let mut columns = Columns::new(self.listed.len());
        for bar in bars {
            columns.push(bar.instrument, bar.ts_event, bar.close);
            self.market_volume += u128::from(bar.volume.shares());
        }
        self.session.recorder.end_day(&columns.slices(), RowTimes::SpanEnds);
        if let (Some(first), Some(last)) = (bars.first(), bars.last()) {
            self.note_span(first.ts_event, last.ts_event);
        }
    }

    fn note_span(&mut self, first: TsNanos, last: TsNanos) {
        self.span = Some((self.span.map_or(first, |(start, _)| start), last));
    }

    fn finish(mut self, status: RunStatus) -> (RunTotals, Option<io::Error>) {
        self.session.finish();
        let StrategySession { execution: exchange, mut recorder, now, prices, parameters, .. } =
            self.session;
        let account = exchange.account();
        let held = account.positions().iter().map(|position| position.quantity).sum();
        let equity = account.equity(&prices.or_zero());
        let account = *account.account();
        recorder.digest.end_of_run(now, account.cash, equity);
        let (digest, digest_records) = (recorder.digest.digest(), recorder.digest.records());
        let our_volume = exchange.our_volume();
        let mut notes = exchange.range_notes();
        notes.extend(exchange.round_trips_note());
        let mut warnings = exchange.gap_warnings();
        warnings.extend(exchange.tick_warnings());
        exchange.into_orders().iter().for_each(|order| recorder.order(order));
        let recorded = recorder.finish();
        let totals = RunTotals {
            status,
            digest,
            digest_records,
            order_counts: recorded.order_counts,
            fill_count: recorded.fill_count,
            trades_seen: self.trades_seen,
            market_volume: self.market_volume,
            our_volume,
            cash_start: self.options.cash,
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
            parameters,
        };
        (totals, recorded.failure)
    }
}
