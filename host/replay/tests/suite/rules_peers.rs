//! What other engines get wrong when they have trades only, row by row: each test names the row and
//! shows what happens here.

use crate::common::{self, Market, Script, limit, market, options, run, stop, stop_limit, told};
use domain::OrderSide;
use domain::Origin;
use domain::execution::ExecutionClient;
use domain::market::{Bar, BarGranularity};
use domain::strategy::Action;
use domain::{InstrumentIx, Money, OrderEventKind, Price, Quantity, TsNanos};
use exchange::Exchange;

use OrderSide::{Buy, Sell};

fn after(trade: u64, action: Action) -> Vec<String> {
    told(&Market::of_the_peers(), Script::default().after(trade, action), &options())
}

#[test]
fn a_market_order_does_not_fill_on_the_trade_that_triggered_it() {
    assert_eq!(after(2, market("O-1", Buy, 100)), ["O-1 FILLED 100@1001 t=3"]);
}

#[test]
fn an_order_larger_than_the_trade_gets_no_more_than_was_traded() {
    assert_eq!(
        after(2, market("O-1", Buy, 1_000))[0],
        "O-1 PARTIALLY_FILLED 100@1001 t=3",
        "and the other 900 shares are not sold to us one tick worse"
    );
}

#[test]
fn two_orders_do_not_share_the_same_shares() {
    let script =
        Script::default().after(3, market("O-1", Buy, 500)).after(3, market("O-2", Buy, 500));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 FILLED 500@1002 t=4", "O-2 PARTIALLY_FILLED 400@1000 t=5", "O-2 FILLED 100@998 t=6"]
    );
}

#[test]
fn an_order_that_arrives_after_the_last_trade_is_accounted_for() {
    let mut options = options();
    options.model.latency_ns = 10_000_000_000;
    let script = Script::default().after(7, market("O-1", Buy, 100));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options),
        ["O-1 EXPIRED END_OF_DATA t=23400"],
        "it is not left SUBMITTED for ever"
    );
}

#[test]
fn a_touched_limit_order_is_not_first_in_the_queue() {
    let trades = Market::default()
        .trade(6, 1.0, "1001", 100)
        .trade(6, 2.0, "1000", 400)
        .trade(6, 3.0, "1001", 100);
    let script = Script::default().after(1, limit("O-1", Buy, 300, "1000"));
    assert_eq!(told(&trades, script, &options()), ["O-1 EXPIRED END_OF_DATA t=23400"]);
}

#[test]
fn a_resting_order_gets_no_more_than_each_trade_has() {
    assert_eq!(
        after(4, limit("O-1", Buy, 1_000, "1000")),
        ["O-1 PARTIALLY_FILLED 300@1000 t=6", "O-1 FILLED 700@1000 t=7"]
    );
}

#[test]
fn a_marketable_limit_order_gets_no_more_than_was_traded() {
    assert_eq!(after(2, limit("O-1", Buy, 5_000, "1005"))[0], "O-1 PARTIALLY_FILLED 100@1001 t=3");
}

#[test]
fn a_stop_does_not_fill_on_the_trade_that_triggers_it() {
    assert_eq!(after(2, stop("O-1", Buy, 600, "1001.5"))[0], "O-1 PARTIALLY_FILLED 400@1000 t=5");
}

#[test]
fn a_stop_limit_does_not_fill_at_an_untraded_trigger() {
    assert_eq!(
        after(2, stop_limit("O-1", Buy, 100, "1001.5", "1005")),
        ["O-1 FILLED 100@1000 t=5"],
        "nobody traded at 1,001.5"
    );
}

#[test]
fn a_day_order_does_not_live_on_the_next_day() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(7, 1.0, "990", 100)
        .trade(7, 2.0, "900", 100);
    let script = Script::default().after(1, limit("O-1", Buy, 100, "950"));
    assert_eq!(told(&trades, script, &options()), ["O-1 EXPIRED DAY t=23400"]);
}

#[test]
fn a_gtd_order_ends_at_its_own_close_and_not_at_the_next_trade() {
    let trades = Market::default().trade(6, 1.0, "1000", 100).trade(8, 1.0, "900", 100);
    let order = common::until(7, limit("O-1", Buy, 100, "950"));
    let (result, _) = run(&trades, Script::default().after(1, order), &options());
    assert_eq!(result.orders[0].ts_last.to_string(), "2025-01-07 15:30:00.000000 JST");
    assert!(result.fills.is_empty());
}

#[test]
fn lots_and_ticks_are_checked() {
    assert!(after(2, market("O-1", Buy, 150))[0].contains("150 is not a multiple of the lot 100"));
    let script = Script::default().after(2, limit("O-1", Buy, 100, "999.8"));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(result.orders[0].request.price.unwrap().to_string(), "999.5");
}

/// A bar of the day's first minutes.
fn bar(minute: u64, prices: [i64; 4], volume: u64) -> Bar {
    let [open, high, low, close] = prices.map(Price::from_yen);
    Bar {
        ts_event: TsNanos::from_nanos(common::at(6, 60.0 * (minute + 1) as f64)),
        instrument: InstrumentIx(0),
        granularity: BarGranularity::Minute,
        open,
        high,
        low,
        close,
        volume: Quantity::new(volume),
    }
}

/// Sends orders at the end of the first bar and tells the fills on the second.
fn on_bars(bars: [Bar; 2], held: u64, orders: &[Action]) -> Vec<String> {
    let options = options();
    let mut exchange =
        Exchange::new(options.model, &options.instruments, Money::from_yen(10_000_000));
    let hours = domain::session::TradingHours::of(bars[0].ts_event.jst_date());
    exchange.begin_day(hours, InstrumentIx(0), Some(bars[0].open));
    let send = |exchange: &mut Exchange, now, action: &Action| match action {
        Action::Order(command) => exchange.execute(now, Origin::Strategy, command.clone()),
        other => panic!("{other:?}"),
    };
    if held > 0 {
        send(&mut exchange, hours.start, &market("O-0", Buy, held));
    }
    exchange.take_bar(InstrumentIx(0), &bars[0]);
    exchange.take_events();
    for action in orders {
        send(&mut exchange, bars[0].ts_event, action);
    }
    exchange.take_bar(InstrumentIx(0), &bars[1]);
    let events = exchange.take_events();
    let fills = events.iter().filter(|event| matches!(event.kind, OrderEventKind::Filled(_)));
    fills.map(common::words).collect()
}

#[test]
fn on_bars_the_stop_comes_before_the_profit_and_nothing_is_sold_twice() {
    // One share lot for each; the bar reaches both, and has volume for one only.
    let bars = [bar(0, [1000, 1000, 1000, 1000], 1_000), bar(1, [1000, 1020, 980, 1000], 100)];
    let orders = [limit("O-1", Sell, 100, "1010"), stop("O-2", Sell, 100, "990")];
    assert_eq!(on_bars(bars, 200, &orders), ["O-2 FILLED 100@990 t=120"]);
    let orders = [limit("O-1", Sell, 200, "1010"), stop("O-2", Sell, 200, "990")];
    let told = on_bars(bars, 200, &orders);
    assert_eq!(told, ["O-1 PARTIALLY_FILLED 100@1010 t=120"], "the second sale was refused");
}

#[test]
fn on_bars_an_order_fills_at_the_next_open_and_not_at_the_close_it_was_decided_on() {
    let bars = [bar(0, [1000, 1005, 1000, 1005], 1_000), bar(1, [1010, 1020, 1008, 1015], 300)];
    assert_eq!(
        on_bars(bars, 0, &[market("O-1", Buy, 500)]),
        ["O-1 PARTIALLY_FILLED 300@1010 t=120"],
        "and no more than the bar has"
    );
}
