//! A session drives `sma-cross` over the exchange, and over a tape of the exchange's events.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::cell::RefCell;
use std::collections::VecDeque;

use domain::account::PortfolioView;
use domain::digest::Digest;
use domain::execution::{ExecutionClient, Warning};
use domain::market::{Trade, TradeColumns};
use domain::session::TradingHours;
use domain::{
    Instrument, InstrumentIx, JstDate, Money, OrderCommand, OrderEvent, Origin, Price, Quantity,
    TickTable, TsNanos,
};
use exchange::{Exchange, ExecutionModel};
use results::sink::TotalsOnly;
use sandbox::{Limits, Sandbox, SandboxConfig, StrategyInstance};
use trader::{LastPrices, SessionLimits, StrategySession};

/// The commands that an execution client got and the events that it returned, in order.
#[derive(Default)]
struct Tape {
    commands: Vec<(TsNanos, OrderCommand)>,
    events: VecDeque<Vec<OrderEvent>>,
    views: RefCell<VecDeque<PortfolioView>>,
}

/// The exchange, with a tape of its events.
struct Taped(Exchange, Tape);

impl ExecutionClient for Taped {
    fn execute(&mut self, now: TsNanos, origin: Origin, command: OrderCommand) {
        self.1.commands.push((now, command.clone()));
        self.0.execute(now, origin, command);
    }
    fn swap_events(&mut self, events: &mut Vec<OrderEvent>) {
        self.0.swap_events(events);
        self.1.events.push_back(events.clone());
    }
    fn take_warnings(&mut self) -> Vec<Warning> {
        self.0.take_warnings()
    }
    fn view_portfolio(&self, view: &mut PortfolioView, working_orders: bool) {
        self.0.view_portfolio(view, working_orders);
        self.1.views.borrow_mut().push_back(view.clone());
    }
}

/// Plays a tape, whatever the commands are.
impl ExecutionClient for Tape {
    fn execute(&mut self, now: TsNanos, _: Origin, command: OrderCommand) {
        self.commands.push((now, command));
    }
    fn swap_events(&mut self, events: &mut Vec<OrderEvent>) {
        *events = self.events.pop_front().unwrap();
    }
    fn take_warnings(&mut self) -> Vec<Warning> {
        Vec::new()
    }
    fn view_portfolio(&self, view: &mut PortfolioView, _: bool) {
        *view = self.views.borrow_mut().pop_front().unwrap();
    }
}

/// Drives the strategy over 3,000 trades, one by one as a live market gives them; `market` sees each first.
fn drive<E: ExecutionClient>(
    mut strategy: StrategyInstance,
    execution: E,
    market: impl Fn(&mut E, Trade),
) -> (E, Digest) {
    let mut sink = TotalsOnly;
    let limits = SessionLimits {
        orders: 10_000,
        warnings: 100,
        rejected_bytes: 1 << 30,
        folder_bytes: 1 << 30,
        folder_bytes_per_day: 0,
    };
    let begin = (Money::from_yen(10_000_000), LastPrices::new(1, &[]));
    let execution = (execution, ());
    let mut session = StrategySession::new(&mut strategy, execution, &mut sink, begin, limits);
    session.init(r#"{"fast": 3, "slow": 8}"#, &[toyota()]).unwrap();
    session.now = hours().start;
    session.start().unwrap();
    for number in 0..3_000_i64 {
        let yen = 1_000 + (number % 37 - 18).abs() + number % 5;
        let nanos = (9 * 3_600 + number.cast_unsigned()) * 1_000_000_000;
        let trade = Trade {
            ts_event: TsNanos::from_jst(hours().date, nanos).unwrap(),
            instrument: InstrumentIx(0),
            price: Price::from_yen(yen),
            quantity: Quantity::new(1_000),
        };
        session.now = trade.ts_event;
        market(&mut session.execution, trade);
        session.deliver().unwrap();
        let row = TradeColumns {
            ts_event: &[trade.ts_event.nanos()],
            instrument: &[0],
            price: &[trade.price.units()],
            quantity: &[trade.quantity.shares()],
        };
        session.window(row).unwrap();
    }
    session.stop().unwrap();
    session.finish();
    (session.execution, session.recorder.digest.digest())
}

fn hours() -> TradingHours {
    TradingHours::of(JstDate::from_ymd_opt(2025, 1, 6).unwrap())
}

fn toyota() -> Instrument {
    let ticks = TickTable::Fixed(Price::from_yen(1));
    Instrument { id: "7203.TSE".parse().unwrap(), lot: Quantity::new(100), ticks }
}

#[test]
fn a_tape_of_the_exchange_gets_the_same_actions() {
    let test = std::env::current_exe().unwrap();
    let release = test.ancestors().find(|folder| folder.ends_with("release")).unwrap();
    let component = release.join("strategies/sma-cross.wasm");
    if !component.is_file() {
        eprintln!("skipped: {} is missing; run `cargo xtask guests`", component.display());
        return;
    }
    let module = Sandbox::new(SandboxConfig::default()).unwrap().load(&component).unwrap();
    let instance = || module.instantiate(Limits::default()).unwrap();
    let cash = Money::from_yen(10_000_000);
    let mut exchange = Exchange::new(ExecutionModel::default(), &[toyota()], cash);
    exchange.begin_day(hours(), InstrumentIx(0), Some(Price::from_yen(1_000)));
    let taped = Taped(exchange, Tape::default());
    let (taped, digest) = drive(instance(), taped, |taped, trade| taped.0.take_trade(&trade));
    let Tape { commands, events, views } = taped.1;
    assert!(commands.len() > 50, "{} commands", commands.len());
    let tape = Tape { commands: Vec::new(), events, views };
    let (played, again) = drive(instance(), tape, |_, _| ());
    assert_eq!(played.commands, commands);
    assert_eq!(again, digest, "events, signals and decisions");
    assert!(played.events.is_empty() && played.views.borrow().is_empty());
}
