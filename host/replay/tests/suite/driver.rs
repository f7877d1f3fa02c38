//! Paced runs, clients' orders in them, and runs made again from what clients did.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::paced::{TestClock, Witness};
use crate::common::{self, Market, SECOND, Script, at, in_memory, limit, market, options};
use domain::market::{Bar, BarGranularity};
use domain::strategy::{Action, Signal, SignalKind};
use domain::{
    InstrumentIx, Money, OrderCommand, OrderSide, OrderStatus, Origin, Price, Quantity, ReasonCode,
    TsNanos,
};
use replay::driver::{Paced, PositionKey, Scripted, Unpaced, Watched};
use replay::{MarketDay, Multiplier, ReplayOptions, RunCommand, RunPosition, TradingDay};
use results::{RunResult, RunStatus};

use OrderSide::{Buy, Sell};

fn days(market: &Market) -> Vec<MarketDay<'_>> {
    TradingDay::split(&market.ts, &market.price, &market.quantity).map(Into::into).collect()
}

/// A client's command out of a strategy's action.
fn client(action: Action) -> RunCommand {
    match action {
        Action::Order(command) => RunCommand::Order(command),
        other => panic!("no command: {other:?}"),
    }
}

fn cancel(id: &str) -> RunCommand {
    RunCommand::Order(OrderCommand::Cancel { client_order_id: id.into() })
}

fn before_row(rows_done: u64) -> PositionKey {
    PositionKey { rows_done, is_before_row: true }
}

fn scripted(
    market: &Market,
    strategy: Script,
    options: &ReplayOptions,
    commands: Vec<(PositionKey, RunCommand)>,
) -> (RunResult, Witness, Vec<String>) {
    let (mut strategy, mut witness) = (strategy, Witness::default());
    let mut driver = Scripted::new(commands);
    let result = witness.run(days(market), &mut strategy, options, &mut driver);
    (result, witness, strategy.told)
}

#[test]
fn a_paced_run_waits_and_tells() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 300)
        .trade(6, 1.125, "1001", 300)
        .trade(6, 1.125, "1002", 300)
        .trade(6, 60.0, "1003", 300)
        .trade(7, 1.0, "1010", 300);
    let mark = Action::Signal(Signal {
        instrument: InstrumentIx(0),
        kind: SignalKind::Exit,
        side: None,
        price: None,
        tag: None,
        note: None,
    });
    let mut strategy = Script::default().after(1, market("A", Buy, 200)).after(4, mark);
    let (mut clock, mut witness) = (TestClock::default(), Witness::default());
    let (_sender, commands) = channel();
    let mut driver = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    let options = ReplayOptions { window: 64, ..options() };
    let result = witness.run(days(&trades), &mut strategy, &options, &mut driver);
    assert_eq!(result.totals.status, RunStatus::Completed);
    // 125 ms, 1 ms for the row of the same instant, 58.9 s cut to 200 ms, the night for nothing.
    assert_eq!(clock.waits, [125, 1, 200].map(Duration::from_millis));
    assert_eq!(
        witness.events,
        [
            "A SUBMITTED t=1",
            "A ACCEPTED t=1",
            "A FILLED 200@1001 t=1.125",
            "marker A 1 BUY 200@1001",
            &format!("signal Exit {}", at(6, 60.0)),
        ]
    );
    // At once on the fill: the price of the row before is the last that is known then.
    assert_eq!(witness.buying_power, [(at(6, 1.125), "9799800".into(), "9999800".into())]);
    let prices: Vec<&str> = witness.market.iter().map(|row| row.2.as_str()).collect();
    assert_eq!(prices, ["1000", "1001", "1002", "1003", "1010"], "each row once, in order");
}

#[test]
fn buying_power_is_told_once_a_second_of_the_wall_clock() {
    let trades = (0..250)
        .fold(Market::default(), |market, row| market.trade(6, f64::from(row) * 0.25, "1000", 100));
    let mut witness = Witness::default();
    witness.paced(days(&trades), &mut Script::default(), &options(), "2");
    // 249 gaps of 125 ms.
    assert_eq!(witness.buying_power.len(), 31);
    let gaps = witness.buying_power.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.into_iter().all(|gap| gap == 2 * SECOND), "2 s of the market are 1 s of ours");
}

#[test]
fn commands_act_in_the_middle_of_a_sleep() {
    let trades = Market::of_the_peers();
    let mut clock = TestClock::default();
    // Seven gaps of 1 s, each cut to 200 ms: the third row's turn is at 400 ms.
    clock.commands.push((Duration::from_millis(450), RunCommand::Stop));
    clock.commands.push((Duration::from_millis(250), client(market("P", Buy, 100))));
    let (_sender, commands) = channel();
    let mut driver = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    let mut witness = Witness::default();
    let result = witness.run(days(&trades), &mut Script::default(), &options(), &mut driver);
    assert_eq!((result.totals.status, result.totals.trades_seen), (RunStatus::Interrupted, 3));
    assert_eq!(clock.waits, [200, 50, 150, 50].map(Duration::from_millis));
    // Sent at the time of the row handled last, and filled by the next one.
    let told: Vec<&str> = witness.events.iter().map(String::as_str).collect();
    assert!(told[0].starts_with("P SUBMITTED t="), "{told:?}");
    assert!(told[2].starts_with("P FILLED 100@"), "{told:?}");
}

#[test]
fn the_speed_may_be_changed_while_it_runs() {
    let trades = Market::of_the_peers();
    let mut clock = TestClock::default();
    clock.commands.push((Duration::from_millis(500), RunCommand::SetSpeed("100".parse().unwrap())));
    let (_sender, commands) = channel();
    let mut driver = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    in_memory(days(&trades), &mut Script::default(), &options(), &mut driver);
    // Two sleeps at the cap; of the third 100 ms were slept already, which is more than 10 ms; then
    // gaps of 1 s at 100 times.
    let waits: Vec<u128> = clock.waits.iter().map(Duration::as_millis).collect();
    assert_eq!(waits[..3], [200, 200, 100]);
    assert!(waits[3..].iter().all(|wait| *wait <= 10), "{waits:?}");
}

/// Daily bars, one a day.
fn daily_bars(count: u32) -> Vec<MarketDay<'static>> {
    let bar = |day: u32| Bar {
        ts_event: TsNanos::from_nanos(at(6 + day, 6.5 * 3_600.0)),
        instrument: InstrumentIx(0),
        granularity: BarGranularity::Day,
        open: Price::from_yen(1_000),
        high: Price::from_yen(1_010),
        low: Price::from_yen(990),
        close: Price::from_yen(1_000),
        volume: Quantity::new(10_000),
    };
    (0..count).map(|day| MarketDay::bars(vec![bar(day)])).collect()
}

#[test]
fn a_run_over_daily_bars_is_heard_at_the_end_of_each_day() {
    let mut days_done = Vec::new();
    let watch = |at: RunPosition| {
        if at.next_row.is_none() {
            days_done.push((at.days_done, at.rows_done));
        }
        (at.days_done == 3 && at.next_row.is_none()).then_some(RunCommand::Stop)
    };
    let mut driver = Watched::new(Unpaced, watch);
    let bars = daily_bars(5);
    let result = in_memory(bars, &mut Script::default(), &options(), &mut driver);
    assert_eq!(days_done, [(1, 1), (2, 2), (3, 3)], "progress is told, day by day");
    assert_eq!((result.totals.status, result.totals.trades_seen), (RunStatus::Interrupted, 3));
}

#[test]
fn a_long_day_is_heard_too() {
    let rows = 40_000_u32;
    let trades = (0..rows)
        .fold(Market::default(), |market, row| market.trade(6, f64::from(row) * 0.25, "1000", 100));
    for window in [1, 1_000, 65_536] {
        let mut polls = Vec::new();
        let watch = |at: RunPosition| {
            polls.push(at.rows_done);
            None
        };
        let options = ReplayOptions { window, ..options() };
        in_memory(
            days(&trades),
            &mut Script::default(),
            &options,
            &mut Watched::new(Unpaced, watch),
        );
        assert_eq!(polls, [0, 16_384, 32_768, 40_000], "window {window}");
    }
}

#[test]
fn ids_of_clients_and_of_the_strategy_do_not_collide() {
    let trades = Market::of_the_peers();
    let strategy = || Script::default().after(1, market("A", Buy, 100));
    let commands =
        vec![(before_row(2), client(limit("A", Buy, 100, "900"))), (before_row(4), cancel("A"))];
    let (result, witness, told) = scripted(&trades, strategy(), &options(), commands);
    let ended: Vec<(Origin, &str, OrderStatus)> = result
        .orders
        .iter()
        .map(|order| (order.origin, &*order.request.client_order_id, order.status))
        .collect();
    let both = [
        (Origin::Strategy, "A", OrderStatus::Filled),
        (Origin::Client, "A", OrderStatus::Canceled),
    ];
    assert_eq!(ended, both);
    let numbers: Vec<_> = result.orders.iter().map(|order| order.venue_order_id.clone()).collect();
    assert_ne!(numbers[0], numbers[1], "the venue's numbers are unique over both");
    // The strategy hears of its own order only.
    let (_, alone) = common::run(&trades, strategy(), &options());
    assert_eq!(told, alone);
    assert!(witness.events.iter().any(|line| line.starts_with("A CANCELED")));
}

#[test]
fn a_strategy_s_cancel_all_leaves_clients_alone_and_the_other_way_round() {
    let trades = Market::of_the_peers();
    let all = || OrderCommand::CancelAll { instrument: None, side: None };
    let resting = |id: &str| limit(id, Buy, 100, "900");
    let status_of = |result: &RunResult, origin| {
        result.orders.iter().find(|order| order.origin == origin).map(|order| order.status)
    };
    let by_strategy = Script::default().after(1, resting("S")).after(4, Action::Order(all()));
    let commands = vec![(before_row(2), client(resting("P")))];
    let (result, ..) = scripted(&trades, by_strategy, &options(), commands);
    assert_eq!(status_of(&result, Origin::Strategy), Some(OrderStatus::Canceled));
    assert_eq!(status_of(&result, Origin::Client), Some(OrderStatus::Expired));
    let commands =
        vec![(before_row(2), client(resting("P"))), (before_row(4), RunCommand::Order(all()))];
    let strategy = Script::default().after(1, resting("S"));
    let (result, ..) = scripted(&trades, strategy, &options(), commands);
    assert_eq!(status_of(&result, Origin::Strategy), Some(OrderStatus::Expired));
    assert_eq!(status_of(&result, Origin::Client), Some(OrderStatus::Canceled));
}

#[test]
fn a_cancel_all_of_one_side_leaves_the_other() {
    let trades = Market::of_the_peers();
    let sells = OrderCommand::CancelAll { instrument: None, side: Some(Sell) };
    let commands = vec![
        (before_row(1), client(market("B", Buy, 100))),
        (before_row(2), client(limit("P", Buy, 100, "900"))),
        (before_row(3), client(limit("Q", Sell, 100, "1100"))),
        (before_row(4), RunCommand::Order(sells)),
    ];
    let (result, ..) = scripted(&trades, Script::default(), &options(), commands);
    let ended: Vec<_> = result.orders.iter().map(|order| order.status).collect();
    assert_eq!(ended, [OrderStatus::Filled, OrderStatus::Expired, OrderStatus::Canceled]);
}

#[test]
fn a_client_over_a_limit_is_rejected_and_the_strategy_goes_on() {
    let trades = Market::of_the_peers();
    let mut options = options();
    options.model.orders_max = 2;
    let commands = (0..5)
        .map(|number| (before_row(1), client(limit(&format!("P-{number}"), Buy, 100, "900"))))
        .collect();
    let strategy = Script::default().after(5, market("S", Buy, 100));
    let (result, witness, told) = scripted(&trades, strategy, &options, commands);
    assert_eq!(result.totals.status, RunStatus::Completed);
    assert!(told.iter().any(|line| line.starts_with("S FILLED")), "{told:?}");
    let rejected = |line: &&String| line.contains("VENUE_REJECTED: TOO_MANY_ORDERS");
    assert_eq!(witness.events.iter().filter(rejected).count(), 3, "{:?}", witness.events);
}

#[test]
fn what_a_client_s_command_came_to_is_told_to_clients_and_logged() {
    let trades = Market::of_the_peers();
    let strategy = Script::default().after(1, limit("S", Buy, 100, "900"));
    let commands = vec![(before_row(3), cancel("S"))];
    let (result, witness, told) = scripted(&trades, strategy, &options(), commands);
    let code = ReasonCode::OrderStatusUnknown;
    let text = format!("{code}: cancel of `S` has no effect: no order with this id was sent");
    assert!(witness.events.contains(&format!("warning S: {text}")), "{:?}", witness.events);
    let logged: Vec<&str> = result.log.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(logged, [format!("client: {text}")]);
    assert!(!told.iter().any(|line| line.contains("CANCEL")), "{told:?}");
}

#[test]
fn clients_and_the_strategy_share_the_account() {
    let trades = Market::of_the_peers();
    let mut options = options();
    options.cash = Money::from_yen(150_000);
    let commands = vec![(before_row(1), client(market("P", Buy, 100)))];
    let strategy = Script::default().after(3, market("S", Buy, 100));
    let (result, ..) = scripted(&trades, strategy, &options, commands);
    let strategy = result.orders.iter().find(|order| order.origin == Origin::Strategy).unwrap();
    let code = strategy.rejection.as_ref().map(|rejection| rejection.code);
    assert_eq!(code, Some(ReasonCode::InsufficientFunds));
}

#[test]
fn a_stop_at_the_end_of_the_last_day_leaves_the_run_complete() {
    let trades = Market::of_the_peers();
    let mut empty_day_follows = days(&trades);
    empty_day_follows.push(MarketDay::Bars(Vec::new()));
    for (data, last_day) in [(days(&trades), 1), (empty_day_follows, 1), (daily_bars(3), 3)] {
        let rows: usize = data.iter().map(MarketDay::len).sum();
        let watch = |at: RunPosition| {
            let is_end = at.days_done == last_day && at.next_row.is_none();
            is_end.then_some(RunCommand::Stop)
        };
        let mut driver = Watched::new(Unpaced, watch);
        let result = in_memory(data, &mut Script::default(), &options(), &mut driver);
        assert_eq!(result.totals.status, RunStatus::Completed, "nothing was left to do");
        assert_eq!(result.totals.trades_seen, rows as u64);
    }
    // A row before the end there is something left.
    let stop = vec![(before_row(7), RunCommand::Stop)];
    let (result, ..) = scripted(&trades, Script::default(), &options(), stop);
    assert_eq!((result.totals.status, result.totals.trades_seen), (RunStatus::Interrupted, 7));
}

/// What subscribers are told, without the times of orders.
fn told_in_order(witness: &Witness) -> Vec<&str> {
    witness.stream.iter().map(|line| line.split(" t=").next().unwrap_or(line)).collect()
}

#[test]
fn a_row_is_told_before_what_it_does_to_orders() {
    let strategy = || {
        let resting = limit("B", Buy, 100, "900");
        Script::default().after(1, market("A", Buy, 100)).after(1, resting)
    };
    let sent = ["A SUBMITTED", "A ACCEPTED", "B SUBMITTED", "B ACCEPTED"];
    let filled = ["A FILLED 100@1000", "marker A 1 BUY 100@1000"];
    let mut witness = Witness::default();
    witness.run(daily_bars(2), &mut strategy(), &options(), &mut Unpaced);
    // The day's orders meet its bar and expire with it, both after the bar.
    let expected = [&["row 1000"][..], &sent, &["row 1000"], &filled, &["B EXPIRED DAY"]].concat();
    assert_eq!(told_in_order(&witness), expected);

    let trades = Market::default().trade(6, 1.0, "1000", 300).trade(6, 2.0, "1000", 300);
    for window in [1, 64] {
        let mut witness = Witness::default();
        let options = ReplayOptions { window, ..options() };
        witness.run(days(&trades), &mut strategy(), &options, &mut Unpaced);
        let end = &["B EXPIRED END_OF_DATA"][..];
        let expected = [&["row 1000"][..], &sent, &["row 1000"], &filled, end].concat();
        assert_eq!(told_in_order(&witness), expected, "window {window}");
    }
}

#[test]
fn what_is_due_before_a_row_is_told_before_it() {
    let trades = Market::default().trade(6, 1.0, "1000", 300).trade(6, 2.0, "1000", 300);
    let mut options = options();
    options.model.latency_ns = 500_000_000;
    let mut strategy = Script::default().after(1, market("A", Buy, 100));
    let mut witness = Witness::default();
    witness.run(days(&trades), &mut strategy, &options, &mut Unpaced);
    let told = told_in_order(&witness);
    assert_eq!(told[..4], ["row 1000", "A SUBMITTED", "A ACCEPTED", "row 1000"]);
}
