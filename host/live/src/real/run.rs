//! The loop of a run with real orders.

use std::io;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::fault::{Fault, FaultKind};
use domain::market::{Bar, Trade, TradeColumns};
use domain::session::TradingHours;
use domain::strategy::{LogLevel, StrategyRuntime};
use domain::{InstrumentIx, JstDate, Money, OrderEvent, OrderSide, Price, Quantity, TsNanos};
use orders::event::Standing;
use replay::ReplayOptions;
use replay::stream::{MarketStream, StreamStep};
use results::recorder::{DaySlice, RowTimes};
use results::sink::RunSink;
use results::{RunStatus, RunTotals};
use trader::{
    BarRows, LastPrices, OrderGuard, OrderLimits, Pass, Rows, SessionLimits, StrategySession,
};

use super::{Broker, BrokerExecution, BrokerNews, RealOrders};
use crate::feed::{FeedReceiver, FeedStep};
use crate::journal::Journal;

/// How long the end of a run waits for what becomes of its orders: the desk's 30 s (P86), and a little for the desk.
const ENDS_TIME: Duration = Duration::from_secs(35);

/// What a loop begins with.
pub(super) struct Start<'s> {
    pub(super) options: &'s ReplayOptions,
    pub(super) limits: OrderLimits,
    /// The day in Japan on which it begins, by the engine's clock.
    pub(super) first: JstDate,
    pub(super) journal: Journal,
}

/// A run with real orders.
pub(super) struct RealLoop<'s, B> {
    session: StrategySession<'s, BrokerExecution<B>>,
    start: Start<'s>,
    day: Option<JstDate>,
    has_started: bool,
    /// The last row of each instrument in the present minute: its time and its price.
    minute: Vec<(Vec<u64>, Vec<i64>)>,
    minute_end: u64,
    times: RowTimes,
    rows_seen: u64,
    market_volume: u128,
    span: Option<(TsNanos, TsNanos)>,
}

/// How a step leaves the run.
enum Next {
    GoOn,
    Stop,
}

impl<'s, B: Broker> RealLoop<'s, B> {
    pub(super) fn new(
        strategy: &'s mut dyn StrategyRuntime,
        orders: RealOrders<B>,
        start: Start<'s>,
        sink: &'s mut dyn RunSink,
    ) -> Self {
        let options = start.options;
        let clock = orders.clock;
        let ids = options.instruments.iter().map(|instrument| instrument.id.clone()).collect();
        let execution = BrokerExecution::new(orders, ids, options.model.orders_max);
        let count = options.instruments.len();
        let limits = SessionLimits {
            orders: options.model.orders_max,
            warnings: options.warnings_max,
            rejected_bytes: options.rejected_bytes_max,
            folder_bytes: options.folder_bytes_max,
            folder_bytes_per_day: options.folder_bytes_per_day,
        };
        let prices = LastPrices::new(count, &options.base_prices);
        let mut session =
            StrategySession::new(strategy, (execution, ()), sink, (Money::ZERO, prices), limits);
        let mut guard = OrderGuard::new(start.limits);
        guard.clock = Some(clock);
        session.guard = Some(guard);
        Self {
            session,
            start,
            day: None,
            has_started: false,
            minute: vec![(Vec::new(), Vec::new()); count],
            minute_end: 0,
            times: RowTimes::Events,
            rows_seen: 0,
            market_volume: 0,
            span: None,
        }
    }

    /// Runs until the feed or the broker ends it, or the strategy fails.
    pub(super) fn run(mut self, source: &mut FeedReceiver) -> RunTotals {
        let options = self.start.options;
        let mut ended = self.session.init(&options.config_json, &options.instruments);
        if ended.is_ok() {
            source.ready();
            ended = self.steps(source);
            self.note_minute();
            if self.day.is_some() {
                self.session.end_day();
            }
            ended = match ended {
                Ok(()) => self.stop(source),
                Err(fault) => {
                    // The strategy hears no more, but what its orders did is of this run.
                    while let Some(news) = source.news_after_stop(Duration::ZERO) {
                        if let BrokerNews::Order(event) = news {
                            self.take(event);
                        }
                    }
                    Err(fault)
                }
            };
        }
        let name = self.session.fault("stop", FaultKind::Journal(String::new()));
        let (mut totals, failure) = self.finish(match ended {
            Ok(()) => RunStatus::Interrupted,
            Err(fault) => RunStatus::Failed(fault),
        });
        // What nobody can keep has not gone well (P128).
        if let Some(failure) = failure.filter(|_| totals.status == RunStatus::Interrupted) {
            let kind = FaultKind::Journal(format!("cannot write the results: {failure}"));
            totals.status = RunStatus::Failed(Box::new(Fault { kind, ..*name }));
        }
        totals
    }

    fn steps(&mut self, source: &mut FeedReceiver) -> Result<(), Box<Fault>> {
        loop {
            let next = match source.next_step() {
                FeedStep::Market(step) => {
                    self.start.journal.step(&step);
                    self.market(step)?
                }
                FeedStep::Broker(news) => {
                    self.news(news)?;
                    Next::GoOn
                }
            };
            if let Some(text) = self.start.journal.failure() {
                let kind = FaultKind::Journal(text);
                return Err(self.session.fault("advance", kind));
            }
            if matches!(next, Next::Stop) || self.session.recorder.has_failed() {
                return Ok(());
            }
            self.session.record_log();
            self.session.check_folder()?;
        }
    }

    fn market(&mut self, step: StreamStep) -> Result<Next, Box<Fault>> {
        match step {
            StreamStep::Trade { trade, aggressor } => self.trade(trade, aggressor)?,
            StreamStep::Bar(bar) => self.bar(bar)?,
            StreamStep::Note(text) => self.session.note(LogLevel::Warn, text),
            StreamStep::MarketDataLost(lost) => {
                if let Some(guard) = &mut self.session.guard {
                    guard.market_data_lost = lost;
                }
            }
            // The broker ends the day's orders, and tells of the account.
            StreamStep::EndOfDay
            | StreamStep::ReportBuyingPower
            // A live market gives no orders.
            | StreamStep::Order { .. } => {}
            StreamStep::Stop => return Ok(Next::Stop),
            StreamStep::Fail(kind) => return Err(self.session.fault("advance", kind)),
        }
        Ok(Next::GoOn)
    }

    /// Takes news of the broker.
    fn news(&mut self, news: BrokerNews) -> Result<(), Box<Fault>> {
        match news {
            BrokerNews::Standing(standing) => {
                self.take_over(standing);
                Ok(())
            }
            BrokerNews::Order(event) => {
                if !self.has_started {
                    // An order of an earlier run: the strategy starts before it hears of anything.
                    self.begin_day(self.start.first)?;
                }
                self.take(event);
                self.session.deliver()
            }
            BrokerNews::Cash(cash) => {
                self.session.execution.set_cash(cash);
                Ok(())
            }
            // Who waits for it takes it.
            BrokerNews::Left(_) => Ok(()),
            BrokerNews::Fail(kind) => Err(self.session.fault("advance", kind)),
        }
    }

    /// Books an event of one of the strategy's orders.
    fn take(&mut self, event: OrderEvent) {
        let StrategySession { guard, execution, now, .. } = &mut self.session;
        if let Some(guard) = guard {
            guard.look_at_clock(execution);
        }
        execution.take(*now, event);
    }

    /// The strategy has its position from here on (P103).
    fn take_over(&mut self, standing: Standing) {
        let at = TradingHours::of(self.start.first).start;
        for (instrument, quantity, cost) in self.session.execution.take_over(&standing) {
            self.session.recorder.carry(at, (instrument, quantity, cost));
        }
        for correction in &standing.corrections {
            self.session.note(LogLevel::Warn, format!("ADJUSTED: {correction}"));
        }
        if let Some(guard) = &mut self.session.guard {
            guard.look_at_clock(&self.session.execution);
            guard.add_realised(standing.realised_today);
        }
    }

    fn trade(&mut self, mut trade: Trade, aggressor: Option<OrderSide>) -> Result<(), Box<Fault>> {
        trade.ts_event = trade.ts_event.max(self.session.now);
        self.session.set_aggressor(aggressor);
        let columns = TradeColumns {
            ts_event: &[trade.ts_event.nanos()],
            instrument: &[trade.instrument.0],
            price: &[trade.price.units()],
            quantity: &[trade.quantity.shares()],
        };
        let row = (trade.ts_event, trade.instrument, trade.price, trade.quantity);
        self.row(row, RowTimes::Events, columns)
    }

    fn bar(&mut self, mut bar: Bar) -> Result<(), Box<Fault>> {
        bar.ts_event = bar.ts_event.max(self.session.now);
        let row = (bar.ts_event, bar.instrument, bar.close, bar.volume);
        self.row(row, RowTimes::SpanEnds, BarRows { bars: &[bar], matched: false })
    }

    fn row<'w>(
        &mut self,
        (ts_event, instrument, price, volume): (TsNanos, InstrumentIx, Price, Quantity),
        times: RowTimes,
        rows: impl Rows<'w>,
    ) -> Result<(), Box<Fault>> {
        let date = ts_event.jst_date();
        if self.day.is_none_or(|day| day < date) {
            self.begin_day(date)?;
        }
        if times.minute_end(ts_event.nanos()) != self.minute_end {
            self.note_minute();
        }
        self.rows_seen += 1;
        self.market_volume += u128::from(volume.shares());
        self.span = Some((self.span.map_or(ts_event, |(first, _)| first), ts_event));
        self.session.record_market(rows, 0..1);
        let (last_times, prices) = &mut self.minute[usize::from(instrument.0)];
        (*last_times, *prices) = (vec![ts_event.nanos()], vec![price.units()]);
        (self.minute_end, self.times) = (times.minute_end(ts_event.nanos()), times);
        let mut pass = Pass::new(rows, 0..1);
        pass.set_recorded(1);
        self.session.advance(&mut pass, 1)
    }

    fn begin_day(&mut self, date: JstDate) -> Result<(), Box<Fault>> {
        if self.day.is_some() {
            self.note_minute();
            self.session.recorder.end_day(&self.slices(), self.times);
            self.session.end_day();
        }
        self.day = Some(date);
        self.session.begin_day();
        if self.has_started {
            return Ok(());
        }
        self.has_started = true;
        // Before every trade, so nothing is known of it.
        self.session.now = self.session.now.max(TradingHours::of(date).start);
        self.session.start()
    }

    fn slices(&self) -> Vec<DaySlice<'static>> {
        self.minute.iter().map(|_| DaySlice { ts_event: &[], price: &[] }).collect()
    }

    /// The minute that has passed is valued.
    fn note_minute(&mut self) {
        let slices: Vec<_> =
            self.minute.iter().map(|(ts_event, price)| DaySlice { ts_event, price }).collect();
        self.session.recorder.minutes(&slices, self.times);
        for (times, prices) in &mut self.minute {
            times.clear();
            prices.clear();
        }
    }

    /// P86: the strategy's orders are cancelled or left, their events up to then are still given to it, and it stops. It
    /// sends nothing new from here on.
    fn stop(&mut self, source: &mut FeedReceiver) -> Result<(), Box<Fault>> {
        self.session.execution.close();
        if self.session.execution.end_own() {
            let watch = Stopwatch::start();
            while let Some(left) = ENDS_TIME.checked_sub(watch.elapsed()) {
                match source.news_after_stop(left) {
                    Some(BrokerNews::Left(_)) | None => break,
                    Some(news) => self.news(news)?,
                }
            }
        }
        self.session.stop()
    }

    fn finish(mut self, status: RunStatus) -> (RunTotals, Option<io::Error>) {
        self.session.finish();
        let StrategySession { mut execution, mut recorder, now, prices, parameters, .. } =
            self.session;
        use domain::execution::ExecutionClient;
        execution.take_done(|order| recorder.order(order));
        execution.take_open().for_each(|order| recorder.order(order));
        let account = execution.account();
        let mut last = prices.or_zero();
        for position in account.positions() {
            let index = usize::from(position.instrument.0);
            if last[index] == Price::default() && position.quantity != 0 {
                // Without a trade it is worth what it cost (P87).
                last[index] = Price::from_units(position.cost.units() / position.quantity);
            }
        }
        let held = account.positions().iter().map(|position| position.quantity).sum();
        let equity = account.equity(&last);
        let account = *account.account();
        recorder.digest.end_of_run(now, account.cash, equity);
        let (digest, digest_records) = (recorder.digest.digest(), recorder.digest.records());
        let our_volume = u64::try_from(execution.shares_traded()).unwrap_or(u64::MAX);
        let recorded = recorder.finish();
        let totals = RunTotals {
            status,
            digest,
            digest_records,
            order_counts: recorded.order_counts,
            fill_count: recorded.fill_count,
            trades_seen: self.rows_seen,
            market_volume: self.market_volume,
            our_volume: Quantity::new(our_volume),
            cash_start: Money::ZERO,
            cash_end: account.cash,
            equity_end: equity,
            position_end: held,
            positions: recorded.positions,
            realised_pnl: account.realised_pnl,
            commission: account.commission,
            notes: Vec::new(),
            span: self.span,
            warnings: Vec::new(),
            performance: recorded.performance,
            parameters,
        };
        (totals, recorded.failure)
    }
}
