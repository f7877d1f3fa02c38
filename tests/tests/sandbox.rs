//! What the sandbox does with strategies that misbehave: one tiny guest for each kind.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::Duration;

use domain::fault::FaultKind;
use domain::market::{Trade, TradeColumns, Window};
use domain::strategy::{Outcome, StrategyRuntime};
use domain::{
    GuestLimit, Instrument, InstrumentIx, OrderCommand, Price, Quantity, TickTable, TsNanos,
};
use sandbox::{Limits, Sandbox, SandboxConfig, StrategyInstance, StrategyModule};
use tests::built;

fn module(name: &str) -> StrategyModule {
    let path = if name == "sma-cross" { built::strategy(name) } else { built::test_guest(name) };
    Sandbox::new(built::keeping_sandbox()).unwrap().load(&path).unwrap()
}

fn instrument() -> Instrument {
    Instrument {
        id: "7203.TSE".parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Normal,
    }
}

fn started(name: &str, config: &str, limits: Limits) -> StrategyInstance {
    let mut instance = module(name).instantiate(limits).unwrap();
    instance.init(config, &[instrument()]).unwrap();
    instance.set_portfolio(&domain::account::PortfolioView {
        positions: vec![domain::account::Position::default()],
        ..Default::default()
    });
    instance.start(TsNanos::from_nanos(1)).unwrap();
    instance
}

fn budget(limit: GuestLimit, used: u64, allowed: u64) -> FaultKind {
    FaultKind::Budget { limit, used, allowed }
}

fn trade(number: u64) -> Trade {
    Trade {
        ts_event: TsNanos::from_nanos(1_736_121_600_000_000_000 + number * 1_000_000_000),
        instrument: InstrumentIx(0),
        price: Price::from_yen(1_000 + (number % 7).cast_signed()),
        quantity: Quantity::new(100),
    }
}

fn one(instance: &mut StrategyInstance, number: u64) -> Result<Outcome, Box<domain::fault::Fault>> {
    instance.advance(Window::OneTrade(trade(number)), 1)
}

/// Trades until a fault; tells which trade and the fault.
fn until_fault(instance: &mut StrategyInstance) -> (u64, Box<domain::fault::Fault>) {
    for number in 1..=100_000 {
        if let Err(fault) = one(instance, number) {
            return (number, fault);
        }
    }
    panic!("no fault in 100,000 trades");
}

#[test]
fn an_endless_loop_ends_at_the_same_point_every_time() {
    let run = || until_fault(&mut started("loops-forever", "{}", Limits::default()));
    let (number, fault) = run();
    assert_eq!(number, 3);
    assert_eq!(fault.kind, FaultKind::Fuel { budget: 100_000_000, per_event: 100_000_000 });
    assert_eq!(fault.export, "advance");
    assert_eq!(fault.ts_event, Some(trade(3).ts_event));
    assert_eq!(fault.sha256.len(), 64);
    let text = fault.to_string();
    assert!(text.starts_with("strategy `loops-forever` ("), "{text}");
    assert!(
        text.contains("look for an endless loop; `--guest-limit fuel=200000000` allows more"),
        "{text}"
    );
    assert!(text.contains("at kumiki:strategy/guest@1.0.0#advance"), "{text}");
    assert_eq!(run(), (number, fault), "the whole fault is reproducible");
}

#[test]
fn an_endless_loop_is_ended_by_the_watchdog_in_live_use() {
    let limits = Limits {
        watchdog: Some(Duration::from_millis(30)),
        fuel_per_event: u64::MAX,
        ..Limits::live()
    };
    let (number, fault) = until_fault(&mut started("loops-forever", "{}", limits));
    assert_eq!((number, fault.kind), (3, FaultKind::Watchdog { allowed_ms: 30 }));
}

#[test]
fn a_watchdog_does_not_disturb_those_who_behave() {
    let mut instance = started("empty", "{}", Limits::live());
    for number in 1..1_000 {
        one(&mut instance, number).unwrap();
    }
}

#[test]
fn memory_has_a_limit() {
    let (number, fault) = until_fault(&mut started("grows-memory", "{}", Limits::default()));
    assert!((50..64).contains(&number), "a megabyte each, 64 allowed: {number}");
    match fault.kind {
        FaultKind::Memory { asked, allowed } => assert!(asked > allowed && allowed == 64 << 20),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_stack_has_a_limit() {
    let (number, fault) = until_fault(&mut started("recurses", "{}", Limits::default()));
    assert_eq!((number, fault.kind), (1, FaultKind::Stack { allowed: 1 << 20 }));
    assert!(fault.backtrace.iter().any(|frame| frame.contains("recurses::deeper")));

    // Rust keeps larger frames in linear memory, where they run over its edge.
    let (_, fault) = until_fault(&mut started("recurses", r#"{"large": true}"#, Limits::default()));
    let text = fault.to_string();
    assert!(
        text.contains("out of bounds memory access; endless recursion ends like this"),
        "{text}"
    );
}

#[test]
fn a_panic_tells_its_message() {
    let mut instance = module("panics-in-init").instantiate(Limits::default()).unwrap();
    let fault = instance.init("{}", &[instrument()]).unwrap_err();
    match &fault.kind {
        FaultKind::Panic(text) => assert!(text.contains("this strategy cannot be made"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fault.export, "init");

    let (number, fault) = until_fault(&mut started("panics-in-event", "{}", Limits::default()));
    assert_eq!(number, 3);
    let text = fault.to_string();
    assert!(text.contains("the price 1003 was too much for me"), "{text}");
    assert!(text.contains("at 2025-01-06 09:00:03.000000 JST"), "{text}");
}

#[test]
fn a_panic_inside_a_window_names_its_event() {
    let rows: Vec<Trade> = (1..=10).map(trade).collect();
    let column = |pick: fn(&Trade) -> u64| rows.iter().map(pick).collect::<Vec<_>>();
    let (ts_event, quantity) =
        (column(|row| row.ts_event.nanos()), column(|row| row.quantity.shares()));
    let price: Vec<i64> = rows.iter().map(|row| row.price.units()).collect();
    let columns = TradeColumns {
        ts_event: &ts_event,
        instrument: &[0; 10],
        price: &price,
        quantity: &quantity,
    };
    let mut instance = started("panics-in-event", r#"{"at": 7}"#, Limits::default());
    let outcome = instance.advance(Window::Trades(columns), 10).unwrap();
    assert_eq!((outcome.reached, outcome.actions.len()), (1, 1), "it stops where it buys");
    let fault = instance.advance(Window::Resume, 10).unwrap_err();
    assert_eq!(fault.ts_event, Some(trade(7).ts_event));
}

#[test]
fn nothing_runs_after_a_fault() {
    let mut instance = started("panics-in-event", "{}", Limits::default());
    let (number, _) = until_fault(&mut instance);
    let fault = one(&mut instance, number + 1).unwrap_err();
    assert!(fault.to_string().contains("it was called after it had failed"), "{fault}");
}

#[test]
fn a_call_may_not_ask_for_too_much() {
    let config = r#"{"count": 200}"#;
    let limits = Limits { result_bytes: 1 << 14, ..Limits::default() };
    let (number, fault) = until_fault(&mut started("returns-huge-lists", config, limits));
    assert_eq!(number, 1);
    let text = fault.to_string();
    let expected = "bytes in one call; 16384 are allowed; `--guest-limit result=32KiB` allows more";
    assert!(text.contains(expected), "{text}");

    let config = r#"{"count": 257}"#;
    let (_, fault) = until_fault(&mut started("returns-huge-lists", config, Limits::default()));
    assert_eq!(fault.kind, budget(GuestLimit::Actions, 257, 256));

    let mut instance = started("returns-huge-lists", r#"{"count": 256}"#, Limits::default());
    assert_eq!(one(&mut instance, 1).unwrap().actions.len(), 256);
}

#[test]
fn the_log_has_limits() {
    let config = r#"{"line_bytes": 16385}"#;
    let (_, fault) = until_fault(&mut started("floods-log", config, Limits::default()));
    assert_eq!(fault.kind, budget(GuestLimit::LogLine, 16_385, 16_384));

    let mut instance = started("floods-log", r#"{"line_bytes": 16344}"#, Limits::default());
    let (number, fault) = until_fault(&mut instance);
    assert_eq!(number, 193, "192 lines that cost 16 KiB each are the 3 MiB allowed");
    assert_eq!(fault.kind, budget(GuestLimit::Log, 193 * 16_384, 3 << 20));
    assert_eq!(instance.take_log().len(), 192, "what was written before is kept");
}

#[test]
fn narrative_has_limits() {
    let limits = Limits { output_bytes: 10_000, ..Limits::default() };
    let config = r#"{"narrative_bytes": 4000}"#;
    let (number, fault) = until_fault(&mut started("floods-log", config, limits));
    assert_eq!(number, 3);
    // The title is `flood`.
    let cost = 4_000 + 5 + domain::guest_limit::NARRATIVE_COST as u64;
    assert_eq!(fault.kind, budget(GuestLimit::Output, 3 * cost, 10_000));

    let config = r#"{"narrative_bytes": 65537}"#;
    let (_, fault) = until_fault(&mut started("floods-log", config, Limits::default()));
    assert_eq!(fault.kind, budget(GuestLimit::Body, 65_537, 65_536));
}

#[test]
fn init_has_fuel_of_its_own() {
    let limits = Limits { fuel_per_lifecycle_call: 100, ..Limits::default() };
    let fault =
        module("empty").instantiate(limits).unwrap().init("{}", &[instrument()]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Fuel { budget: 100, per_event: 100_000_000 });
    let text = fault.to_string();
    assert!(text.contains("`--guest-limit lifecycle-fuel=200` allows more"), "{text}");
}

#[test]
fn parts_of_a_component_have_limits() {
    let module = module("empty");
    let begun = |limits: Limits| {
        let begun = module.instantiate(limits).unwrap().init("{}", &[instrument()]);
        begun.map_err(|fault| fault.to_string())
    };
    assert_eq!(begun(Limits::default()), Ok(()));
    for (limits, flag) in [
        (Limits { instances: 0, ..Limits::default() }, "instances"),
        (Limits { table_entries: 0, ..Limits::default() }, "table"),
        (Limits { memory_bytes: 1 << 16, ..Limits::default() }, "memory"),
    ] {
        let fault = begun(limits).unwrap_err();
        assert!(fault.contains(&format!("--guest-limit {flag}=")), "{fault}");
    }
}

#[test]
fn the_configuration_has_a_limit_and_refusals_are_shown() {
    let init = |name: &str, config: &str| {
        let mut instance = module(name).instantiate(Limits::default()).unwrap();
        instance.init(config, &[instrument()]).unwrap_err().kind
    };
    let long = format!(r#"{{"x": "{}"}}"#, "y".repeat(1 << 20));
    assert!(matches!(
        init("empty", &long),
        FaultKind::Limit { what: "bytes of configuration", .. }
    ));
    assert_eq!(
        init("sma-cross", r#"{"fast": "x"}"#),
        FaultKind::Refused(
            r#"parameter `fast` is "x"; it must be a whole number from 1 to 100000"#.to_owned()
        )
    );
}

#[test]
fn imports_show_what_a_strategy_uses() {
    let imports = |name: &str| module(name).artefact().imports().join(" ");
    assert!(!imports("empty").contains("aggressor"), "{}", imports("empty"));
    assert!(!imports("empty").contains("portfolio"), "{}", imports("empty"));
    assert!(!module("empty").capabilities().portfolio);
    assert!(module("sma-cross").capabilities().portfolio);
    assert!(!module("sma-cross").capabilities().working_orders);
    assert!(module("asks-aggressor").capabilities().aggressor);
    assert!(imports("asks-aggressor").contains("kumiki:strategy/aggressor@1.0.0"));
    assert!(module("trades-at-random").capabilities().working_orders);
}

#[test]
fn replay_never_knows_the_aggressor() {
    let mut instance = started("asks-aggressor", "{}", Limits::default());
    one(&mut instance, 1).unwrap();
    let log = instance.take_log();
    assert_eq!(log[0].message, "NoAggressor");
    assert_eq!(log[0].ts_event, Some(trade(1).ts_event));
}

#[test]
fn orders_come_out_as_they_were_sent() {
    let mut instance = started("orders-every-tick", "{}", Limits::default());
    let actions = one(&mut instance, 1).unwrap().actions;
    match &actions[..] {
        [domain::strategy::Action::Order(OrderCommand::Submit(order))] => {
            assert_eq!(order.client_order_id.as_str(), "O-1");
            assert_eq!(order.quantity, Quantity::new(100));
            assert_eq!(order.side, domain::OrderSide::Buy);
        }
        other => panic!("{other:?}"),
    }
}

/// What the tests of real orders tell their strategy by prices.
#[test]
fn a_guest_does_what_the_last_yen_of_a_price_says() {
    let mut instance = started("acts-by-price", "{}", Limits::default());
    for number in 1..=4 {
        let actions = one(&mut instance, number).unwrap().actions;
        let sides: Vec<_> = actions
            .iter()
            .map(|action| match action {
                domain::strategy::Action::Order(OrderCommand::Submit(order)) => Some(order.side),
                _ => None,
            })
            .collect();
        let expected = match number {
            1 | 3 => Some(domain::OrderSide::Buy),
            2 => Some(domain::OrderSide::Sell),
            _ => None,
        };
        assert_eq!(sides, [expected], "the trade at {} yen", 1_000 + number);
    }
}

/// Fuel is a meter without noise: the same on every machine. These bounds hold a little room for
/// other versions of the compiler.
#[test]
fn fuel_for_each_trade_stays_small() {
    let strict = |name: &str| {
        let mut instance = started(name, "{}", Limits::default());
        (1..=200).for_each(|number| drop(one(&mut instance, number).unwrap()));
        let before = instance.fuel_used();
        // The price falls slowly, so that the crossover never wants to buy.
        (201..=1_200).for_each(|number| drop(one(&mut instance, number).unwrap()));
        (instance.fuel_used() - before) / 1_000
    };
    let (empty, sma) = (strict("empty"), strict("sma-cross"));
    assert!(empty <= 280, "an empty strategy uses {empty} units a trade");
    assert!(sma <= 450, "sma-cross uses {sma} units a trade");
    assert_eq!(empty, strict("empty"));
}

#[test]
fn a_core_module_becomes_a_component() {
    let target = built::release_folder().join("../guests/wasm32-unknown-unknown/release");
    let module = target.join("empty.wasm");
    assert!(module.is_file(), "{} is missing; run `cargo xtask guests`", module.display());
    let module = Sandbox::new(SandboxConfig::default()).unwrap().load(&module).unwrap();
    let mut instance = module.instantiate(Limits::default()).unwrap();
    instance.init("{}", &[instrument()]).unwrap();
    assert_eq!(one(&mut instance, 1).unwrap().reached, 1);
}
