//! One strategy with its rows, its orders and their events, its budgets and its records.
//!
//! The owner of a session has the time and the market. It passes rows up to the next point at which something
//! else happens. The strategy's commands are executed at once, at the time of the event that it was handling.

use std::collections::BTreeMap;
use std::ops::Range;

use domain::account::PortfolioView;
use domain::execution::{ExecutionClient, Warning};
use domain::fault::{Fault, FaultKind};
use domain::market::Window;
use domain::strategy::{Action, LogLevel, LogLine, StrategyRuntime};
use domain::{
    AccountEvent, GuestLimit, Instrument, JstDate, Money, OrderCommand, OrderEvent, OrderEventKind,
    OrderSide, Origin, TsNanos,
};
use results::recorder::Recorder;
use results::rows::BuyingPowerRow;
use results::sink::{LiveRecords, Record, RunSink};

use crate::account_check::AccountCheck;
use crate::order_guard::OrderGuard;
use crate::output_budget::OutputBudget;
use crate::rows::{LastPrices, Pass, Rows};

/// Rounds of events and commands at one instant; a strategy that answers every rejection with a new
/// order would never let time go on.
const ROUNDS_PER_INSTANT_MAX: u64 = 1_000;
/// Ended orders that stay in memory until the day ends; more go to the sink at once, about 10 MB of them.
const DONE_ORDERS_MAX: usize = 16_384;

/// Limits of a strategy's output.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Orders of the strategy.
    pub orders: u32,
    /// Warnings in the log; further ones are only counted.
    pub warnings: u64,
    /// Bytes of rejected orders.
    pub rejected_bytes: u64,
    /// Bytes of all records on the first day.
    pub folder_bytes: u64,
    /// So many more on each later day.
    pub folder_bytes_per_day: u64,
}

/// A strategy with what executes its orders, and with a check of the account.
pub struct StrategySession<'s, E, C = ()> {
    /// Executes its orders.
    pub execution: E,
    /// Checks the account.
    pub check: C,
    /// Holds its orders back before they leave; none in a replay.
    pub guard: Option<OrderGuard>,
    /// Records what happens.
    pub recorder: Recorder<'s>,
    /// The time of the last event handled.
    pub now: TsNanos,
    /// The last prices that the strategy has seen.
    pub prices: LastPrices,
    /// The parameters that the strategy reported: values as JSON by their names.
    pub parameters: BTreeMap<String, String>,
    strategy: &'s mut dyn StrategyRuntime,
    /// Records that the sink takes besides the rows of tables.
    live: LiveRecords,
    /// The events of the present instant. The memory is used again.
    events: Vec<OrderEvent>,
    /// The answer to portfolio queries. The memory is used again.
    portfolio: PortfolioView,
    limits: SessionLimits,
    /// What the strategy's records leave in the folder.
    budget: OutputBudget,
    /// Warnings so far; the log has the first ones.
    warnings: u64,
    /// Warnings of clients' commands, which do not count against the strategy's limit.
    client_warnings: u64,
}

impl<'s, E: ExecutionClient, C: AccountCheck<E>> StrategySession<'s, E, C> {
    /// A session that begins with `cash` and these prices; `sink` takes what happens.
    pub fn new(
        strategy: &'s mut dyn StrategyRuntime,
        (execution, check): (E, C),
        sink: &'s mut dyn RunSink,
        (cash, prices): (Money, LastPrices),
        limits: SessionLimits,
    ) -> Self {
        Self {
            execution,
            check,
            guard: None,
            live: sink.live_records(),
            recorder: Recorder::new(sink, cash, prices.count()),
            now: TsNanos::default(),
            prices,
            parameters: BTreeMap::new(),
            strategy,
            events: Vec::new(),
            portfolio: PortfolioView::default(),
            limits,
            budget: OutputBudget::new(limits.folder_bytes, limits.folder_bytes_per_day),
            warnings: 0,
            client_warnings: 0,
        }
    }

    /// Hands the configuration (a JSON object) and the instruments to the strategy.
    ///
    /// # Errors
    /// A fault.
    pub fn init(
        &mut self,
        config_json: &str,
        instruments: &[Instrument],
    ) -> Result<(), Box<Fault>> {
        let made = self.strategy.init(config_json, instruments);
        self.parameters = self.strategy.take_parameters();
        self.budget.parameters(&self.parameters);
        made
    }

    /// Starts the strategy at the present instant.
    ///
    /// # Errors
    /// A fault.
    pub fn start(&mut self) -> Result<(), Box<Fault>> {
        self.push_portfolio();
        let actions = self.strategy.start(self.now)?;
        self.execute(actions);
        self.deliver()
    }

    /// Begins a day, and adds its budget.
    pub fn begin_day(&mut self) {
        self.budget.begin_day();
        if let Some(guard) = &mut self.guard {
            guard.begin_day(&self.execution);
        }
    }

    /// Sets the aggressor of the trade that the next window is.
    pub fn set_aggressor(&mut self, side: Option<OrderSide>) {
        self.strategy.set_aggressor(side);
    }

    /// Passes all rows to the strategy as one window.
    ///
    /// # Errors
    /// A fault.
    pub fn window<'w>(&mut self, rows: impl Rows<'w>) -> Result<(), Box<Fault>> {
        let mut pass = Pass::new(rows, 0..rows.len());
        while !pass.is_done() {
            self.advance(&mut pass, rows.len())?;
        }
        Ok(())
    }

    /// Passes the rows of a window before `stop`, up to the row at which the strategy sends commands, and
    /// executes these.
    ///
    /// # Errors
    /// A fault.
    #[inline]
    pub fn advance<'w, R: Rows<'w>>(
        &mut self,
        pass: &mut Pass<'w, R>,
        stop: usize,
    ) -> Result<(), Box<Fault>> {
        let (rows, from) = (pass.rows, pass.reached);
        let next = std::mem::replace(&mut pass.next, Window::Resume);
        // A window has at most 65,536 rows.
        let outcome = self.strategy.advance(next, (stop - pass.start) as u32)?;
        pass.reached = pass.start + outcome.reached as usize;
        self.now = TsNanos::from_nanos(rows.timestamp(pass.reached - 1));
        rows.note_last(from..pass.reached, &mut self.prices);
        self.record_market(rows, pass.recorded..pass.reached);
        pass.recorded = pass.reached;
        if !outcome.actions.is_empty() {
            self.prices.hand_to(&mut self.execution);
            self.execute(outcome.actions);
            self.deliver()?;
        }
        Ok(())
    }

    /// Records rows of the market, for a sink that takes them. Records of a row have a fixed order: what is due
    /// before it, the row, its effects on orders, the strategy's commands.
    #[inline]
    pub fn record_market<'w>(&mut self, rows: impl Rows<'w>, which: Range<usize>) {
        if self.live.market {
            which.for_each(|row| rows.record(row, &mut self.recorder));
        }
    }

    /// Executes a client's command at the present instant.
    ///
    /// # Errors
    /// A fault.
    pub fn client_command(&mut self, command: OrderCommand) -> Result<(), Box<Fault>> {
        self.execution.execute(self.now, Origin::Client, command);
        self.deliver()
    }

    /// Executes a command of the strategy that was made before, at the present instant. Its guard is not asked.
    ///
    /// # Errors
    /// A fault.
    pub fn strategy_command(&mut self, command: OrderCommand) -> Result<(), Box<Fault>> {
        self.execution.execute(self.now, Origin::Strategy, command);
        self.deliver()
    }

    /// Passes events of the account to the strategy at the present instant, and executes its commands.
    ///
    /// # Errors
    /// A fault.
    pub fn account_events(&mut self, events: &[AccountEvent]) -> Result<(), Box<Fault>> {
        if events.is_empty() {
            return Ok(());
        }
        self.push_portfolio();
        let actions = self.strategy.on_account_events(events)?;
        self.execute(actions);
        self.deliver()
    }

    /// Executes the strategy's commands and records its marks and decisions, in order, at the present instant.
    fn execute(&mut self, mut actions: Vec<Action>) {
        for action in actions.drain(..) {
            match action {
                Action::Order(command) => self.command(command),
                Action::Signal(signal) => {
                    self.budget.signal(&signal);
                    self.recorder.signal(self.now, &signal);
                }
                Action::Narrative(record) => {
                    self.budget.narrative(&record);
                    self.recorder.narrative(self.now, &record);
                }
            }
        }
        self.strategy.take_back(actions);
    }

    /// Executes a command of the strategy, unless its guard refuses it.
    #[inline]
    fn command(&mut self, command: OrderCommand) {
        let Self { now, execution, prices, guard, .. } = self;
        match guard.as_mut().map(|guard| guard.check(*now, &command, execution, prices)) {
            None | Some(Ok(())) => execution.execute(*now, Origin::Strategy, command),
            Some(Err(rejection)) => execution.refuse(*now, command, rejection),
        }
    }

    /// Passes the events of its orders to the strategy and executes its commands, until there are no more
    /// events.
    ///
    /// # Errors
    /// A fault.
    pub fn deliver(&mut self) -> Result<(), Box<Fault>> {
        for _ in 0..ROUNDS_PER_INSTANT_MAX {
            self.check_orders().map_err(|kind| self.fault("submit", kind))?;
            self.record_events();
            if !self.events.is_empty() {
                self.check_account(self.now.jst_date())?;
            }
            self.check_folder()?;
            if self.execution.done() >= DONE_ORDERS_MAX {
                self.execution.take_done(|order| self.recorder.order(order));
            }
            let has_reserved_again = self.execution.take_reserved_again();
            if self.events.is_empty() {
                if has_reserved_again {
                    self.push_portfolio();
                }
                return Ok(());
            }
            // Orders of clients change the account; the strategy does not get their events.
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

    /// Checks that the number of orders and the bytes of rejected ones are within their limits.
    fn check_orders(&self) -> Result<(), FaultKind> {
        if self.execution.is_exhausted() {
            let allowed = u64::from(self.limits.orders);
            let (limit, used) = (GuestLimit::Orders, allowed + 1);
            return Err(FaultKind::Budget { limit, used, allowed });
        }
        let (used, allowed) = (self.execution.rejected_bytes(), self.limits.rejected_bytes);
        if used > allowed {
            return Err(FaultKind::Budget { limit: GuestLimit::Rejected, used, allowed });
        }
        Ok(())
    }

    /// Checks the account.
    ///
    /// # Errors
    /// Why the session ends.
    pub fn check_account(&mut self, date: JstDate) -> Result<(), Box<Fault>> {
        let checked = self.check.check(date, &self.execution, &self.prices);
        checked.map_err(|kind| self.fault("advance", kind))
    }

    /// Checks that the records so far have room in the folder.
    ///
    /// # Errors
    /// A fault.
    pub fn check_folder(&self) -> Result<(), Box<Fault>> {
        let checked = self.budget.check(self.execution.rejected_bytes());
        checked.map_err(|kind| self.fault("submit", kind))
    }

    /// A fault of the strategy at the present instant.
    pub fn fault(&self, export: &'static str, kind: FaultKind) -> Box<Fault> {
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

    /// Takes the events of the present instant into `events`, and records them and the warnings.
    fn record_events(&mut self) {
        self.execution.swap_events(&mut self.events);
        let mut filled = false;
        for event in &self.events {
            if let OrderEventKind::Filled(fill) = &event.kind {
                if !self.check.fill(fill) {
                    // The session ends, and its results are not used.
                    return;
                }
                filled = true;
            }
            self.budget.order_event(event);
            self.recorder.order_event(event);
        }
        if filled && self.live.buying_power {
            self.report_buying_power();
        }
        let warnings = self.execution.take_warnings();
        if !warnings.is_empty() {
            self.record_log();
            self.record_warnings(warnings);
        }
    }

    /// Records warnings in the log; the client gets those of its commands, too.
    fn record_warnings(&mut self, warnings: Vec<Warning>) {
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
            if *so_far > self.limits.warnings {
                continue;
            }
            let line = LogLine { ts_event: Some(now), level: LogLevel::Warn, message };
            if warning.origin == Origin::Strategy {
                self.budget.log_line(&line);
            }
            self.recorder.log([line]);
        }
    }

    /// Records the strategy's lines of the log so far.
    pub fn record_log(&mut self) {
        let lines = self.strategy.take_log();
        lines.iter().for_each(|line| self.budget.log_line(line));
        self.recorder.log(lines);
    }

    /// Writes a line of the host into the log.
    pub fn note(&mut self, level: LogLevel, message: String) {
        // Before the first event there is no time.
        let ts_event = Some(self.now).filter(|now| *now != TsNanos::default());
        self.recorder.log([LogLine { ts_event, level, message }]);
    }

    /// Ends a day: its ended orders and lines of the log leave memory.
    pub fn end_day(&mut self) {
        self.execution.take_done(|order| self.recorder.order(order));
        self.record_log();
    }

    /// Records cash and equity at the last prices.
    pub fn report_buying_power(&mut self) {
        self.execution.view_portfolio(&mut self.portfolio, false);
        let cash = self.portfolio.account.cash;
        let equity = self.portfolio.equity(&self.prices.or_zero());
        // Only cash is modelled.
        let row = BuyingPowerRow { ts_event: self.now, cash, buying_power: cash, equity };
        self.recorder.tell(Record::BuyingPower(&row));
    }

    /// Updates the answer to portfolio queries, for strategies that use them.
    fn push_portfolio(&mut self) {
        let used = self.strategy.capabilities();
        if used.portfolio || used.working_orders {
            self.execution.view_portfolio(&mut self.portfolio, used.working_orders);
            self.strategy.set_portfolio(&self.portfolio);
        }
    }

    /// Stops the strategy at the present instant. Its last commands are executed, and it gets no further
    /// events.
    ///
    /// # Errors
    /// A fault.
    pub fn stop(&mut self) -> Result<(), Box<Fault>> {
        let actions = self.strategy.stop(self.now)?;
        self.execute(actions);
        self.record_events();
        Ok(())
    }

    /// Records the remaining events and lines, and the number of warnings that the log lacks.
    pub fn finish(&mut self) {
        self.record_events();
        self.record_log();
        for (so_far, whose) in [(self.warnings, ""), (self.client_warnings, "client: ")] {
            let more = so_far.saturating_sub(self.limits.warnings);
            if more == 0 {
                continue;
            }
            let advice = GuestLimit::Warnings.advice(self.limits.warnings);
            let message = format!(
                "{whose}{more} more commands had no effect; the log keeps no more, {advice}"
            );
            self.note(LogLevel::Warn, message);
        }
    }
}
