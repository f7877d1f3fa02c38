//! Rows that come one by one. A day is known only when it is over, so it ends when something says so; the minutes of the
//! account are valued as they pass. All else is as in a replay.

use domain::fault::{Fault, FaultKind};
use domain::limits::MINUTE_ROWS_MAX;
use domain::market::TradeColumns;
use domain::session::TradingHours;
use domain::strategy::LogLevel;
use domain::{InstrumentIx, JstDate, OrderCommand, Price, Quantity, TsNanos};
use results::recorder::RowTimes;
use results::{RunStatus, RunTotals};
use trader::{BarRows, OrderGuard, OrderLimits, Pass};

use super::columns::Columns;
use super::{Control, ReplayError, Run};
use crate::days::RunDays;
use crate::rows::MarketRows;
use crate::series::hours_of;
use crate::stream::{MarketStream, StreamStep};

/// A run over a stream.
pub(crate) struct StreamRun<'s> {
    run: Run<'s>,
    /// The present day; none before the first row.
    day: Option<StreamDay>,
    /// The rows of the present minute, and what their times say.
    minute: Columns,
    times: RowTimes,
    minute_end: u64,
    /// Orders that are executed again, of a day that has not begun.
    waiting: Vec<(TsNanos, OrderCommand)>,
}

/// A day whose rows come one by one.
#[derive(Debug)]
struct StreamDay {
    hours: TradingHours,
    /// The close, or the last row where that is later.
    end: TsNanos,
    /// Whether its orders have ended.
    is_over: bool,
}

/// What a run notes of a row.
#[derive(Debug, Clone, Copy)]
struct Row {
    ts_event: TsNanos,
    instrument: InstrumentIx,
    highest: Price,
    last: Price,
    volume: Quantity,
    times: RowTimes,
}

impl<'s> StreamRun<'s> {
    /// A run that holds the strategy's orders against limits.
    pub(crate) fn new(mut run: Run<'s>, limits: OrderLimits) -> Self {
        run.session.guard = Some(OrderGuard::new(limits));
        let minute = Columns::new(run.listed.len());
        let waiting = Vec::new();
        Self { run, day: None, minute, times: RowTimes::Events, minute_end: 0, waiting }
    }

    /// Runs to the end of the stream.
    pub(crate) fn run(mut self, source: &mut dyn MarketStream) -> Result<RunTotals, ReplayError> {
        let mut ended = self.run.init();
        if ended.is_ok() {
            source.ready();
            ended = self.steps(source);
        }
        if !self.run.session.check.is_beyond() {
            // Noted also when the strategy failed in the middle of the day.
            self.note_day();
            ended = ended.and_then(|()| self.stop());
        }
        let name = self.run.session.fault("stop", FaultKind::Journal(String::new()));
        let (mut totals, failure) = self.run.into_totals(ended.map(|()| Control::Stop))?;
        if let Some(failure) = failure.filter(|_| totals.status == RunStatus::Interrupted) {
            let kind = FaultKind::Journal(format!("cannot write the results: {failure}"));
            totals.status = RunStatus::Failed(Box::new(Fault { kind, ..*name }));
        }
        Ok(totals)
    }

    /// P86: the strategy's orders are cancelled, which it hears of, and it stops.
    fn stop(&mut self) -> Result<(), Box<Fault>> {
        self.run.session.check_folder()?;
        self.run.cancel_open()?;
        self.run.end_of_data()
    }

    /// Takes steps until the stream ends or the results cannot be kept.
    fn steps(&mut self, source: &mut dyn MarketStream) -> Result<(), Box<Fault>> {
        loop {
            if self.step(source.next())? == Control::Stop {
                return Ok(());
            }
            // Whoever looks on sees lines at once.
            self.run.session.record_log();
            self.run.session.check_folder()?;
        }
    }

    fn step(&mut self, step: StreamStep) -> Result<Control, Box<Fault>> {
        let session = &mut self.run.session;
        match step {
            StreamStep::Trade { mut trade, aggressor } => {
                trade.ts_event = trade.ts_event.max(session.now);
                session.set_aggressor(aggressor);
                let row = Row {
                    ts_event: trade.ts_event,
                    instrument: trade.instrument,
                    highest: trade.price,
                    last: trade.price,
                    volume: trade.quantity,
                    times: RowTimes::Events,
                };
                let columns = TradeColumns {
                    ts_event: &[trade.ts_event.nanos()],
                    instrument: &[trade.instrument.0],
                    price: &[trade.price.units()],
                    quantity: &[trade.quantity.shares()],
                };
                return self.row(row, columns);
            }
            StreamStep::Bar(mut bar) => {
                bar.ts_event = bar.ts_event.max(session.now);
                let row = Row {
                    ts_event: bar.ts_event,
                    instrument: bar.instrument,
                    highest: bar.high,
                    last: bar.close,
                    volume: bar.volume,
                    times: RowTimes::SpanEnds,
                };
                return self.row(row, BarRows { bars: &[bar], matched: false });
            }
            StreamStep::EndOfDay => self.end_orders()?,
            StreamStep::Note(text) => session.note(LogLevel::Warn, text),
            StreamStep::MarketDataLost(lost) => {
                if let Some(guard) = &mut session.guard {
                    guard.market_data_lost = lost;
                }
            }
            StreamStep::Order { ts_event, command } => self.order(ts_event, command)?,
            StreamStep::ReportBuyingPower => session.report_buying_power(),
            StreamStep::Stop => return Ok(Control::Stop),
            StreamStep::Fail(kind) => return Err(session.fault("advance", kind)),
        }
        Ok(Control::Continue)
    }

    /// Executes an order that was made before, or keeps it until its day begins.
    fn order(&mut self, ts_event: TsNanos, command: OrderCommand) -> Result<(), Box<Fault>> {
        let has_begun = self.day.as_ref().is_some_and(|day| ts_event.jst_date() <= day.hours.date);
        if !has_begun {
            self.waiting.push((ts_event, command));
            return Ok(());
        }
        let run = &mut self.run;
        run.hand_prices();
        run.run_due(ts_event)?;
        run.session.now = run.session.now.max(ts_event);
        run.session.strategy_command(command)
    }

    /// Takes a row, as a replay takes it with window 1.
    fn row<'w>(&mut self, row: Row, rows: impl MarketRows<'w>) -> Result<Control, Box<Fault>> {
        assert!(
            usize::from(row.instrument.0) < self.run.listed.len(),
            "a row of another instrument"
        );
        let date = row.ts_event.jst_date();
        if self.day.as_ref().is_none_or(|day| day.hours.date < date) {
            self.begin_day(date)?;
            for (ts_event, command) in std::mem::take(&mut self.waiting) {
                self.order(ts_event, command)?;
            }
        }
        if row.times.minute_end(row.ts_event.nanos()) != self.minute_end {
            self.note_minute();
        } else if self.minute.len() >= MINUTE_ROWS_MAX {
            let allowed = MINUTE_ROWS_MAX as u64;
            let (what, used) = ("rows of the market in one minute", allowed + 1);
            return Err(self
                .run
                .session
                .fault("advance", FaultKind::Limit { what, used, allowed }));
        }
        if self.run.session.check.raise(row.instrument, row.highest) {
            self.run.session.check_account(date)?;
        }
        if self.run.session.recorder.has_failed() {
            return Ok(Control::Stop);
        }
        // Recorded before the strategy gets it, so that the row with which it fails counts too (P87).
        self.run.at_row(rows, 0)?;
        let mut pass = Pass::new(rows, 0..1);
        pass.set_recorded(1);
        self.run.session.advance(&mut pass, 1)?;
        self.run.rows_done += 1;
        self.note_row(row);
        Ok(Control::Continue)
    }

    fn note_row(&mut self, row: Row) {
        self.minute.push(row.instrument, row.ts_event, row.last);
        self.times = row.times;
        self.minute_end = row.times.minute_end(row.ts_event.nanos());
        self.run.trades_seen += 1;
        self.run.market_volume += u128::from(row.volume.shares());
        self.run.note_span(row.ts_event, row.ts_event);
        if let Some(day) = &mut self.day {
            day.end = day.end.max(row.ts_event);
        }
    }

    /// The first row of a day has come: the day before ends, business days without rows go by, and the day begins.
    fn begin_day(&mut self, date: JstDate) -> Result<(), Box<Fault>> {
        let options = self.run.options;
        let before = self.note_day();
        if let Some(day) = before.as_ref().filter(|day| !day.is_over) {
            self.run.end_orders(day.end)?;
        }
        let from = before.and_then(|day| day.hours.date.succ_opt());
        let dates = from.map(|from| (from, date));
        for (date, row) in RunDays::new([(date, ())], dates, &options.calendar) {
            let hours = hours_of(date, self.run.had_longer_hours, false);
            if row.is_none() {
                self.run.day_without_rows(hours, false)?;
                continue;
            }
            self.run.begin_day(hours, None)?;
            self.day = Some(StreamDay { hours, end: hours.close, is_over: false });
        }
        Ok(())
    }

    /// P119: the orders of the present day end. Rows of its date may still come, and are its rows.
    fn end_orders(&mut self) -> Result<(), Box<Fault>> {
        match self.day.as_mut().filter(|day| !day.is_over) {
            Some(day) => {
                day.is_over = true;
                let end = day.end;
                self.run.end_orders(end)
            }
            None => Ok(()),
        }
    }

    /// The minute that has passed is valued.
    fn note_minute(&mut self) {
        self.run.session.recorder.minutes(&self.minute.slices(), self.times);
        self.minute.clear();
    }

    /// The present day is noted, and there is none any more.
    fn note_day(&mut self) -> Option<StreamDay> {
        let day = self.day.take()?;
        self.run.end_day();
        self.run.session.recorder.end_day(&self.minute.slices(), self.times);
        self.minute.clear();
        self.run.had_longer_hours |= day.hours.are_exceeded_by(day.end);
        Some(day)
    }
}

impl Run<'_> {
    /// The day's orders end with a time that nobody could know before, so that no time falls: of all instruments.
    fn end_orders(&mut self, end: TsNanos) -> Result<(), Box<Fault>> {
        for index in 0..self.listed.len() {
            // There are at most 4 instruments.
            self.session.execution.end_day_at(end, InstrumentIx(index as u16), false);
        }
        self.hand_prices();
        // They end after the rows of that time.
        self.run_due(end.plus_nanos(1))
    }
}
