//! What a run did, as its strategy saw it: commands, signals, events of orders, and the strategy's own fault.

use std::collections::BTreeMap;

use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, Signal, StrategyRuntime};
use domain::{
    AccountEvent, Instrument, OrderCommand, OrderEvent, OrderEventKind, OrderSide, TsNanos,
};
use serde::Serialize;

use crate::journal::{Call, FaultRecord, Input, Row};

/// What a strategy did, or what became of an order of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldKind {
    /// It asked for something about orders.
    Command(OrderCommand),
    /// It set a mark.
    Signal(Signal),
    /// An event of its orders, as it was given it.
    Event(OrderEvent),
    /// It failed.
    Fault(FaultRecord),
}

/// The same with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The time of the event that the strategy was handling, UTC nanoseconds; none in `init`.
    pub ts_event: Option<TsNanos>,
    /// What it was.
    pub told: ToldKind,
}

impl Told {
    /// Whether both are the same to the millisecond (specification 4, P120). Numbers that a venue gives, and what its
    /// answers leave out, do not count.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let millis = |told: &Self| told.ts_event.map(TsNanos::millis);
        let is_same = match (&self.told, &other.told) {
            (ToldKind::Event(one), ToldKind::Event(other)) => essence(one) == essence(other),
            (ToldKind::Fault(one), ToldKind::Fault(other)) => one.is_same(other),
            (one, other) => one == other,
        };
        is_same && millis(self) == millis(other)
    }
}

/// An event without the numbers of its venue, and without what one venue tells and another one does not.
fn essence(event: &OrderEvent) -> OrderEvent {
    let mut event = event.clone();
    // Its time is compared apart.
    event.ts_event = TsNanos::default();
    event.venue_order_id = None;
    if let OrderEventKind::Filled(fill) = &mut event.kind {
        fill.trade_id = event.client_order_id.clone();
        fill.market_price = fill.last_price;
        fill.commission = None;
    }
    event
}

/// Collects what a run did. The limits of the strategy's output are those of the list.
#[derive(Debug, Default)]
pub(super) struct Tale {
    pub(super) told: Vec<Told>,
}

impl Tale {
    pub(super) fn events(&mut self, events: &[OrderEvent]) {
        let told = |event: &OrderEvent| Told {
            ts_event: Some(event.ts_event),
            told: ToldKind::Event(event.clone()),
        };
        self.told.extend(events.iter().map(told));
    }

    fn actions(&mut self, ts_event: Option<TsNanos>, actions: &[Action]) {
        let told = |action: &Action| match action {
            Action::Order(command) => Some(ToldKind::Command(command.clone())),
            Action::Signal(signal) => Some(ToldKind::Signal(signal.clone())),
            // A text: it does not count (P120).
            Action::Narrative(_) => None,
        };
        let told = actions.iter().filter_map(told).map(|told| Told { ts_event, told });
        self.told.extend(told);
    }

    fn fault(&mut self, ts_event: Option<TsNanos>, fault: FaultRecord) {
        self.told.push(Told { ts_event, told: ToldKind::Fault(fault) });
    }

    /// Takes a recorded call; `row` is the last row before it.
    pub(super) fn call(&mut self, call: &Call<'_>, row: Option<Row>) {
        let ts_event = call.input.ts_event_after(row);
        if let Input::OrderEvents(events) = &call.input {
            self.events(events);
        }
        self.actions(ts_event, &call.answer.actions);
        if let Some(fault) = call.answer.fault.as_ref().filter(|fault| !fault.is_hosts()) {
            self.fault(ts_event, fault.clone());
        }
    }
}

/// A strategy that is run again, with the tale of it.
pub(super) struct Retold<'s> {
    strategy: &'s mut dyn StrategyRuntime,
    pub(super) tale: Tale,
}

impl<'s> Retold<'s> {
    pub(super) fn new(strategy: &'s mut dyn StrategyRuntime) -> Self {
        Self { strategy, tale: Tale::default() }
    }

    /// Notes what a call gave.
    fn noted<R>(
        &mut self,
        ts_event: Option<TsNanos>,
        given: Result<R, Box<Fault>>,
        actions: impl FnOnce(&R) -> &[Action],
    ) -> Result<R, Box<Fault>> {
        match &given {
            Ok(given) => self.tale.actions(ts_event, actions(given)),
            Err(fault) => self.tale.fault(ts_event, FaultRecord::from(fault.as_ref())),
        }
        given
    }
}

/// The time of the row that a window has.
fn time_of(window: &Window<'_>) -> Option<TsNanos> {
    match window {
        Window::OneTrade(trade) => Some(trade.ts_event),
        Window::OneBar(bar) => Some(bar.ts_event),
        Window::Trades(columns) => columns.ts_event.last().copied().map(TsNanos::from_nanos),
        Window::Bars(bars) => bars.last().map(|bar| bar.ts_event),
        Window::Resume => None,
    }
}

impl StrategyRuntime for Retold<'_> {
    fn identity(&self) -> Identity {
        self.strategy.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.strategy.capabilities()
    }

    fn init(&mut self, config_json: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        let given = self.strategy.init(config_json, instruments);
        self.noted(None, given, |()| &[])
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        let given = self.strategy.start(now);
        self.noted(Some(now), given, Vec::as_slice)
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        let ts_event = time_of(&window);
        let given = self.strategy.advance(window, limit);
        self.noted(ts_event, given, |outcome| &outcome.actions)
    }

    fn set_aggressor(&mut self, side: Option<OrderSide>) {
        self.strategy.set_aggressor(side);
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.tale.events(events);
        let given = self.strategy.on_order_events(events);
        self.noted(events.first().map(|event| event.ts_event), given, Vec::as_slice)
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let given = self.strategy.on_account_events(events);
        self.noted(events.first().map(|event| event.ts_event), given, Vec::as_slice)
    }

    fn take_back(&mut self, actions: Vec<Action>) {
        self.strategy.take_back(actions);
    }

    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        let given = self.strategy.stop(now);
        self.noted(Some(now), given, Vec::as_slice)
    }

    fn take_parameters(&mut self) -> BTreeMap<String, String> {
        self.strategy.take_parameters()
    }

    fn set_portfolio(&mut self, view: &PortfolioView) {
        self.strategy.set_portfolio(view);
    }

    fn take_log(&mut self) -> Vec<LogLine> {
        self.strategy.take_log()
    }
}
