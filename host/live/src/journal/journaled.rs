//! A strategy whose calls go into a journal.

use std::borrow::Cow;
use std::collections::BTreeMap;

use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind, Identity};
use domain::market::{Bar, Trade, Window};
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{AccountEvent, Instrument, OrderEvent, OrderSide, TsNanos};

use super::record::{Answer, Call, FaultRecord, Input, Record, Row};
use super::writer::Journal;

/// A strategy whose calls go into a journal, each with its answer, before anybody acts on the answer. Where the
/// journal fails, the strategy fails with [`FaultKind::Journal`] (specification 4, P112).
pub struct Journaled<S> {
    strategy: S,
    journal: Journal,
    /// Who was the aggressor of the next trade.
    aggressor: Option<OrderSide>,
    /// What queries answer; none until it is set.
    portfolio: Option<PortfolioView>,
    /// Lines that are in the journal, and were not taken by the host yet.
    log: Vec<LogLine>,
}

impl<S: StrategyRuntime> Journaled<S> {
    /// A strategy that was not called yet, with a journal.
    #[must_use]
    pub const fn new(strategy: S, journal: Journal) -> Self {
        Self { strategy, journal, aggressor: None, portfolio: None, log: Vec::new() }
    }

    /// Fails where the journal has failed.
    fn check(&self, export: &'static str, ts_event: Option<TsNanos>) -> Result<(), Box<Fault>> {
        self.journal.failure().map_or(Ok(()), |text| Err(self.fault(export, ts_event, text)))
    }

    #[cold]
    fn fault(&self, export: &'static str, ts_event: Option<TsNanos>, text: String) -> Box<Fault> {
        let Identity { component, sha256 } = self.strategy.identity();
        let kind = FaultKind::Journal(text);
        Box::new(Fault { component, sha256, export, ts_event, kind, backtrace: Vec::new() })
    }

    /// Makes a call and records it; `actions` of what it gave are its answer.
    fn call<R>(
        &mut self,
        export: &'static str,
        (row, input): (Option<Row>, Input<'_>),
        act: impl FnOnce(&mut S) -> Result<R, Box<Fault>>,
        actions: impl FnOnce(&R) -> &[Action],
    ) -> Result<R, Box<Fault>> {
        let ts_event = row.map(|row| row.ts_event()).or_else(|| input.ts_event());
        self.check(export, ts_event)?;
        let given = act(&mut self.strategy);
        let lines = self.strategy.take_log();
        let (wanted, fault) = match &given {
            Ok(given) => (actions(given), None),
            Err(fault) => (&[][..], Some(FaultRecord::from(fault.as_ref()))),
        };
        let answer = Answer { actions: Cow::Borrowed(wanted), log: Cow::Borrowed(&lines), fault };
        let call = Record::Call(Box::new(Call { input, answer }));
        self.journal.records(row, ts_event, &[call]);
        match self.log.is_empty() {
            true => self.log = lines,
            false => self.log.extend(lines),
        }
        let given = given?;
        // What is not in the journal is not done.
        self.check(export, ts_event)?;
        Ok(given)
    }

    fn row(&mut self, row: Row, window: Window<'_>) -> Result<Outcome, Box<Fault>> {
        self.call(
            "advance",
            (Some(row), Input::Row),
            |strategy| strategy.advance(window, 1),
            |outcome| &outcome.actions,
        )
    }

    fn trade(&mut self, trade: Trade) -> Result<Outcome, Box<Fault>> {
        let aggressor = self.aggressor.take();
        self.row(Row::Trade { trade, aggressor }, Window::OneTrade(trade))
    }

    fn bar(&mut self, bar: Bar) -> Result<Outcome, Box<Fault>> {
        self.row(Row::Bar(bar), Window::OneBar(bar))
    }
}

impl<S: StrategyRuntime> StrategyRuntime for Journaled<S> {
    fn identity(&self) -> Identity {
        self.strategy.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.strategy.capabilities()
    }

    fn init(&mut self, config_json: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        let (config, instruments_of) = (Cow::Borrowed(config_json), Cow::Borrowed(instruments));
        let capabilities = self.strategy.capabilities();
        let input = Input::Init { config, instruments: instruments_of, capabilities };
        let init = |strategy: &mut S| strategy.init(config_json, instruments);
        self.call("init", (None, input), init, |()| &[])
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        let input = (None, Input::Start(now));
        self.call("start", input, |strategy| strategy.start(now), Vec::as_slice)
    }

    /// Takes one row: live runs hand over no more at once.
    fn advance(&mut self, window: Window<'_>, _limit: u32) -> Result<Outcome, Box<Fault>> {
        match window {
            Window::OneTrade(trade) => self.trade(trade),
            Window::Trades(columns) if columns.ts_event.len() == 1 => self.trade(columns.trade(0)),
            Window::OneBar(bar) => self.bar(bar),
            Window::Bars(&[bar]) => self.bar(bar),
            Window::Resume | Window::Trades(_) | Window::Bars(_) => {
                let text = "it takes one row of the market at a time".to_owned();
                Err(self.fault("advance", None, text))
            }
        }
    }

    fn set_aggressor(&mut self, side: Option<OrderSide>) {
        self.aggressor = side;
        self.strategy.set_aggressor(side);
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let input = (None, Input::OrderEvents(Cow::Borrowed(events)));
        let act = |strategy: &mut S| strategy.on_order_events(events);
        self.call("on-order-events", input, act, Vec::as_slice)
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let input = (None, Input::AccountEvents(Cow::Borrowed(events)));
        let act = |strategy: &mut S| strategy.on_account_events(events);
        self.call("on-account-events", input, act, Vec::as_slice)
    }

    fn take_back(&mut self, actions: Vec<Action>) {
        self.strategy.take_back(actions);
    }

    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        let input = (None, Input::Stop(now));
        self.call("stop", input, |strategy| strategy.stop(now), Vec::as_slice)
    }

    fn take_parameters(&mut self) -> BTreeMap<String, String> {
        self.strategy.take_parameters()
    }

    fn set_portfolio(&mut self, view: &PortfolioView) {
        if self.portfolio.as_ref() != Some(view) {
            self.journal.records(None, None, &[Record::Portfolio(Cow::Borrowed(view))]);
            match &mut self.portfolio {
                Some(known) => known.clone_from(view),
                unknown => *unknown = Some(view.clone()),
            }
        }
        self.strategy.set_portfolio(view);
    }

    fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.log)
    }
}
