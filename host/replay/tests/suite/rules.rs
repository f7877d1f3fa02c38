//! The rules of the exchange, each with tests that carry its name.

use crate::common::{self, Market, Script, at, limit, market, options, run, told};
use domain::OrderCommand;
use domain::strategy::Action;
use domain::{Money, OrderModify, OrderSide, OrderStatus, Quantity};
use replay::ReplayOptions;
use results::RunStatus;

use OrderSide::{Buy, Sell};

fn with(change: impl FnOnce(&mut ReplayOptions)) -> ReplayOptions {
    let mut options = options();
    change(&mut options);
    options
}

#[test]
fn f1_an_order_never_fills_on_the_trade_that_triggered_it() {
    let script = Script::default().after(2, market("O-1", Buy, 100));
    let told = told(&Market::of_the_peers(), script, &options());
    assert_eq!(told, ["O-1 FILLED 100@1001 t=3"]);
}

#[test]
fn f1_trades_of_the_same_instant_are_one_sweep() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 500)
        .trade(6, 1.0, "1000.5", 500)
        .trade(6, 1.0, "1001", 500)
        .trade(6, 2.0, "1005", 500);
    let script = Script::default().after(1, market("O-1", Buy, 100));
    assert_eq!(told(&trades, script, &options()), ["O-1 FILLED 100@1005 t=2"]);
}

#[test]
fn f1_latency_delays_the_arrival() {
    let fills_at = |latency_ns| {
        let script = Script::default().after(2, market("O-1", Buy, 100));
        told(&Market::of_the_peers(), script, &with(|o| o.model.latency_ns = latency_ns))
    };
    assert_eq!(fills_at(1_000_000_000), ["O-1 FILLED 100@1001 t=3"], "arrives with the trade");
    assert_eq!(fills_at(1_500_000_000), ["O-1 FILLED 100@1002 t=4"]);
}

#[test]
fn f1_an_answer_to_a_fill_waits_for_the_next_trade() {
    let mut script = Script::default().after(2, market("O-1", Buy, 100));
    script.on_fill.push(market("O-2", Sell, 100));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 FILLED 100@1001 t=3", "O-2 FILLED 100@1002 t=4"]
    );
}

#[test]
fn f2_slippage_is_paid_on_both_sides() {
    let options = with(|o| o.model.slippage_ticks = 2);
    let script =
        Script::default().after(2, market("O-1", Buy, 100)).after(4, market("O-2", Sell, 100));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options),
        ["O-1 FILLED 100@1002 t=3", "O-2 FILLED 100@999 t=5"]
    );
}

#[test]
fn f2_a_fill_stays_inside_the_daily_limits() {
    // Around a base of 1,000 a day ranges from 700 to 1,300.
    let trades = Market::default().trade(6, 1.0, "1000", 100).trade(6, 2.0, "1300", 100);
    let script = Script::default().after(1, market("O-1", Buy, 100));
    let options = with(|o| o.model.slippage_ticks = 5);
    assert_eq!(told(&trades, script, &options), ["O-1 FILLED 100@1300 t=2"]);
}

#[test]
fn f3_an_order_larger_than_the_trade_waits_for_the_next() {
    let script = Script::default().after(2, market("O-1", Buy, 1_000));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        [
            "O-1 PARTIALLY_FILLED 100@1001 t=3",
            "O-1 PARTIALLY_FILLED 500@1002 t=4",
            "O-1 FILLED 400@1000 t=5"
        ]
    );
}

#[test]
fn f3_no_share_of_a_trade_is_used_twice() {
    let script =
        Script::default().after(3, market("O-1", Buy, 300)).after(3, market("O-2", Buy, 400));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 FILLED 300@1002 t=4", "O-2 PARTIALLY_FILLED 200@1002 t=4", "O-2 FILLED 200@1000 t=5"]
    );
}

#[test]
fn f3_participation_limits_our_share_in_whole_lots() {
    let options = with(|o| o.model.participation_percent = 30);
    let script = Script::default().after(3, market("O-1", Buy, 300));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options),
        [
            "O-1 PARTIALLY_FILLED 100@1002 t=4",
            "O-1 PARTIALLY_FILLED 100@1000 t=5",
            "O-1 FILLED 100@997 t=7"
        ],
        "150, 120, 90 and 300 shares are 1, 1, 0 and 3 lots"
    );
}

#[test]
fn f4_a_touch_does_not_fill_a_resting_order_but_a_trade_through_does() {
    let script = Script::default().after(4, limit("O-1", Buy, 300, "1000"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 FILLED 300@1000 t=6"],
        "400 at 1,000 touch it, 300 at 998 go through, and it fills at its own price"
    );
}

#[test]
fn f4_a_trade_too_small_for_an_order_shows_that_the_price_has_left_it() {
    let mut trades = Market::default().trade(6, 1.0, "1000", 10_000);
    for second in 2..30_u32 {
        trades = trades.trade(6, f64::from(second), "1003", 900);
    }
    let trades = trades.trade(6, 30.0, "990", 50_000).trade(6, 31.0, "985", 50_000);
    for participation in [1, 10, 12, 100] {
        let script = Script::default().after(1, limit("O-1", Buy, 100, "1000"));
        let told = told(&trades, script, &with(|o| o.model.participation_percent = participation));
        assert_eq!(told, ["O-1 FILLED 100@1000 t=30"], "{participation} %");
        // One that nothing has left takes what it finds.
        let script = Script::default().after(1, limit("O-1", Buy, 100, "1005"));
        let told =
            common::told(&trades, script, &with(|o| o.model.participation_percent = participation));
        let expected =
            if participation < 12 { "O-1 FILLED 100@990 t=30" } else { "O-1 FILLED 100@1003 t=2" };
        assert_eq!(told, [expected], "{participation} %");
    }
}

#[test]
fn f4_a_marketable_limit_never_pays_more_than_its_limit() {
    let options = with(|o| o.model.slippage_ticks = 4);
    let script = Script::default().after(2, limit("O-1", Buy, 600, "1001.5"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options),
        [
            "O-1 PARTIALLY_FILLED 100@1001.5 t=3",
            "O-1 PARTIALLY_FILLED 400@1001.5 t=5",
            "O-1 FILLED 100@1001.5 t=6"
        ],
        "at 1,002 the price has left it, so from then on it rests at its price"
    );
}

#[test]
fn f4_a_sell_rests_until_a_trade_above_it() {
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(5, limit("O-2", Sell, 100, "1002.5"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 FILLED 100@1000.5 t=2", "O-2 FILLED 100@1002.5 t=8"]
    );
}

#[test]
fn f6_a_day_order_ends_with_its_day_at_its_own_time() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1001", 100)
        .trade(7, 1.0, "900", 100)
        .trade(7, 2.0, "900", 100);
    let script = Script::default().after(1, limit("O-1", Buy, 100, "950"));
    let close = 6.5 * 3_600.0;
    assert_eq!(told(&trades, script, &options()), [format!("O-1 EXPIRED DAY t={close}")]);
}

#[test]
fn f6_an_order_on_its_way_when_the_day_ends_expires_too() {
    let close = 6.5 * 3_600.0;
    let trades = Market::default().trade(6, close - 0.5, "1000", 100).trade(7, 1.0, "1000", 100);
    let script = Script::default().after(1, market("O-1", Buy, 100));
    let options = with(|o| o.model.latency_ns = 1_000_000_000);
    assert_eq!(told(&trades, script, &options), [format!("O-1 EXPIRED DAY t={close}")]);
}

fn refused(action: Action, change: impl FnOnce(&mut ReplayOptions)) -> String {
    let script = Script::default().after(2, action);
    let (result, _) = run(&Market::of_the_peers(), script, &with(change));
    assert_eq!(result.orders[0].status, OrderStatus::Rejected);
    assert!(result.fills.is_empty());
    result.orders[0].rejection.as_ref().unwrap().to_string()
}

#[test]
fn f7_orders_are_checked_like_a_broker_would() {
    assert_eq!(
        refused(market("O-1", Buy, 150), |_| {}),
        "VALIDATION_ERROR: QUANTITY: 150 is not a multiple of the lot 100"
    );
    assert_eq!(
        refused(market("O-1", Buy, 100), |o| o.cash = Money::from_yen(129_999)),
        "INSUFFICIENT_FUNDS: CASH: needs up to 130000 yen at 1300 a share, 129999 yen are free"
    );
    assert_eq!(
        refused(limit("O-1", Buy, 100, "1300.5"), |_| {}),
        "VENUE_REJECTED: PRICE_LIMIT: 1300.5 is outside the day's range 700 to 1300"
    );
    assert_eq!(
        refused(market("O-1", Sell, 100), |_| {}),
        "VENUE_REJECTED: SHORT_SALE: 100 to sell, 0 held, 0 of them in other sell orders"
    );
    assert_eq!(
        refused(market("", Buy, 100), |_| {}),
        "VALIDATION_ERROR: CLIENT_ORDER_ID: must be 1 to 36 printable ASCII characters"
    );
}

#[test]
fn f7_a_limit_off_the_grid_is_rounded_away_from_the_market() {
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "990.3"))
        .after(1, market("O-2", Buy, 100))
        .after(3, limit("O-3", Sell, 100, "1010.3"));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    let price = |index: usize| result.orders[index].request.price.unwrap().to_string();
    assert_eq!((price(0).as_str(), price(2).as_str()), ("990", "1010.5"));
}

#[test]
fn f7_money_of_working_orders_is_not_used_twice() {
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "900"))
        .after(1, limit("O-2", Buy, 100, "900"));
    let (result, _) =
        run(&Market::of_the_peers(), script, &with(|o| o.cash = Money::from_yen(179_999)));
    assert_eq!(result.orders[0].status, OrderStatus::Expired);
    assert_eq!(
        result.orders[1].rejection.as_ref().unwrap().to_string(),
        "INSUFFICIENT_FUNDS: CASH: needs up to 90000 yen at 900 a share, 89999 yen are free"
    );
}

#[test]
fn f7_shares_in_a_sell_order_are_not_sold_twice() {
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(3, limit("O-2", Sell, 100, "1200"))
        .after(3, market("O-3", Sell, 100));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(
        result.orders[2].rejection.as_ref().unwrap().to_string(),
        "VENUE_REJECTED: SHORT_SALE: 100 to sell, 100 held, 100 of them in other sell orders"
    );
    assert_eq!(result.totals.position_end, 100);
}

#[test]
fn f7_after_a_split_the_range_is_around_the_first_trade() {
    let trades = Market::default()
        .trade(6, 1.0, "5000", 100)
        .trade(7, 1.0, "1000", 100)
        .trade(7, 2.0, "1001", 100);
    let script = Script::default().after(2, market("O-1", Buy, 100));
    assert_eq!(told(&trades, script, &options()), ["O-1 FILLED 100@1001 t=2"]);
}

#[test]
fn f8_open_orders_expire_when_the_data_ends_and_positions_are_valued() {
    let script =
        Script::default().after(1, market("O-1", Buy, 200)).after(8, market("O-2", Sell, 200));
    let (result, told) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(told.last().unwrap(), "O-2 EXPIRED END_OF_DATA t=23400");
    assert_eq!(result.totals.position_end, 200);
    // 200 shares bought at 1,000.5 are worth 1,003 each.
    assert_eq!(result.totals.equity_end, Money::from_yen(10_000_500));
    assert_eq!(result.totals.status, RunStatus::Completed);
}

#[test]
fn f8_no_order_is_taken_after_the_data() {
    let script = Script::default().after(u64::MAX, market("O-1", Buy, 100));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(
        result.orders[0].rejection.as_ref().unwrap().to_string(),
        "MARKET_CLOSED: END_OF_DATA: the replay's data has ended"
    );
}

#[test]
fn a_cancel_ends_an_order_and_frees_its_money() {
    let cancel = Action::Order(OrderCommand::Cancel { client_order_id: "O-1".into() });
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "900"))
        .after(2, cancel)
        .after(3, limit("O-2", Buy, 100, "900"));
    let options = with(|o| o.cash = Money::from_yen(90_000));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options),
        ["O-1 CANCELED t=2", "O-2 EXPIRED END_OF_DATA t=23400"]
    );
}

#[test]
fn a_fill_may_come_before_a_cancel_arrives() {
    let cancel = Action::Order(OrderCommand::Cancel { client_order_id: "O-1".into() });
    let script = Script::default().after(1, market("O-1", Buy, 200)).after(3, cancel);
    let options = with(|o| o.model.latency_ns = 1_500_000_000);
    let (result, told) = run(&Market::of_the_peers(), script, &options);
    assert_eq!(result.orders[0].status, OrderStatus::Filled);
    assert!(told.contains(&"O-1 PENDING_CANCEL t=3".to_owned()), "{told:?}");
}

#[test]
fn a_command_that_comes_too_late_is_a_warning() {
    let cancel = |id: &str| Action::Order(OrderCommand::Cancel { client_order_id: id.into() });
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(3, cancel("O-1"))
        .after(3, cancel("O-9"));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    let lines: Vec<_> = result.log.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(
        lines,
        [
            "`O-1` was not cancelled: it is FILLED",
            "ORDER_STATUS_UNKNOWN: cancel of `O-9` has no effect: no order with this id was sent"
        ]
    );
}

#[test]
fn a_change_of_price_loses_the_place_and_is_checked() {
    let modify = |price: Option<&str>, quantity: Option<u64>| {
        Action::Order(OrderCommand::Modify {
            client_order_id: "O-1".into(),
            change: OrderModify {
                price: price.map(|price| price.parse().unwrap()),
                quantity: quantity.map(Quantity::new),
                ..OrderModify::default()
            },
        })
    };
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "900"))
        .after(2, modify(Some("999"), Some(200)));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 ACCEPTED updated t=2", "O-1 FILLED 200@999 t=6"]
    );
    let script =
        Script::default().after(1, limit("O-1", Buy, 100, "900")).after(2, modify(None, Some(50)));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 REJECTED VALIDATION_ERROR: QUANTITY: 50 is not a multiple of the lot 100 t=2"]
    );
}

#[test]
fn an_id_is_never_used_twice() {
    let script =
        Script::default().after(1, market("O-1", Buy, 100)).after(3, market("O-1", Sell, 100));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(result.orders[0].status, OrderStatus::Filled);
    assert_eq!(
        result.orders[1].rejection.as_ref().unwrap().to_string(),
        "VALIDATION_ERROR: CLIENT_ORDER_ID: was used before in this run"
    );
    assert_eq!(result.totals.position_end, 100);
}

#[test]
fn working_orders_have_a_limit() {
    let allowed = domain::limits::WORKING_ORDERS_MAX;
    let mut script = Script::default();
    for number in 0..=allowed {
        script = script.after(1, limit(&format!("O-{number}"), Buy, 100, "900"));
    }
    let options = with(|o| o.cash = Money::from_yen(1_000_000_000_000));
    let (result, _) = run(&Market::of_the_peers(), script, &options);
    assert_eq!(result.orders[allowed - 1].status, OrderStatus::Expired);
    let refusal = result.orders[allowed].rejection.as_ref().unwrap().to_string();
    assert!(refusal.starts_with("VENUE_REJECTED: TOO_MANY_ORDERS: "), "{refusal}");
}

#[test]
fn what_the_exchange_does_not_model_is_refused_by_name() {
    let order = |change: fn(&mut domain::OrderRequest)| match market("O-1", Buy, 100) {
        Action::Order(OrderCommand::Submit(mut request)) => {
            change(&mut request);
            refused(Action::Order(OrderCommand::Submit(request)), |_| {})
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        order(|o| o.time_in_force = domain::TimeInForce::Ioc),
        "VENUE_UNSUPPORTED: IOC: this exchange takes DAY, GTD, AT_THE_OPEN and AT_THE_CLOSE"
    );
    assert_eq!(
        order(|o| o.order_type = domain::OrderType::MarketIfTouched),
        "VENUE_UNSUPPORTED: MARKET_IF_TOUCHED: this exchange takes MARKET, LIMIT, STOP_MARKET and \
         STOP_LIMIT"
    );
    assert!(
        order(|o| o.instrument.0 = 3).contains("INSTRUMENT: index 3 is unknown; this run has 1")
    );
}

#[test]
fn the_account_is_valued_at_the_end_of_each_minute() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1001", 100)
        .trade(6, 61.0, "1003", 100)
        .trade(6, 200.0, "1002", 100);
    let script = Script::default().after(1, market("O-1", Buy, 100));
    let (result, _) = run(&trades, script, &options());
    let rows: Vec<_> = result
        .equity
        .iter()
        .zip(&result.marks)
        .map(|(row, mark)| (row.ts_event.nanos(), mark.quantity, row.equity.to_string()))
        .collect();
    assert_eq!(
        rows,
        [
            (at(6, 60.0), 100, "10000000".to_owned()),
            (at(6, 120.0), 100, "10000200".to_owned()),
            (at(6, 240.0), 100, "10000100".to_owned())
        ]
    );
}

#[test]
fn a_strategy_that_never_lets_time_go_on_is_stopped() {
    /// Answers every event with a new order, which is refused.
    struct Restless;
    impl domain::strategy::StrategyRuntime for Restless {
        fn identity(&self) -> domain::fault::Identity {
            domain::fault::Identity { component: "restless".into(), sha256: String::new() }
        }
        fn capabilities(&self) -> domain::strategy::Capabilities {
            domain::strategy::Capabilities::default()
        }
        fn init(
            &mut self,
            _: &str,
            _: &[domain::Instrument],
        ) -> Result<(), Box<domain::fault::Fault>> {
            Ok(())
        }
        fn start(&mut self, _: domain::TsNanos) -> Result<Vec<Action>, Box<domain::fault::Fault>> {
            Ok(vec![market("", Buy, 100)])
        }
        fn advance(
            &mut self,
            _: domain::market::Window<'_>,
            limit: u32,
        ) -> Result<domain::strategy::Outcome, Box<domain::fault::Fault>> {
            Ok(domain::strategy::Outcome { reached: limit, actions: vec![] })
        }
        fn on_order_events(
            &mut self,
            _: &[domain::OrderEvent],
        ) -> Result<Vec<Action>, Box<domain::fault::Fault>> {
            Ok(vec![market("", Buy, 100)])
        }
        fn stop(&mut self, _: domain::TsNanos) -> Result<Vec<Action>, Box<domain::fault::Fault>> {
            Ok(vec![])
        }
        fn set_portfolio(&mut self, _: &domain::account::PortfolioView) {}
        fn take_log(&mut self) -> Vec<domain::strategy::LogLine> {
            vec![]
        }
    }
    let trades = Market::of_the_peers();
    let days = replay::TradingDay::split(&trades.ts, &trades.price, &trades.quantity);
    let result = common::in_memory(days, &mut Restless, &options(), &mut replay::Unpaced);
    match &result.totals.status {
        RunStatus::Failed(fault) => {
            assert!(fault.to_string().contains("rounds of events and commands"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn f9_money_is_exact_and_a_run_repeats_itself() {
    // A tenth of a yen has no float of its own; a hundred trips add up to the last one.
    let trades = (0..200).fold(Market::default(), |market, second| {
        let price = if second % 2 == 0 { "1000.1" } else { "1000.3" };
        market.trade(6, f64::from(second), price, 1_000)
    });
    let options = with(|o| {
        o.instruments[0].ticks = domain::TickTable::Fixed("0.1".parse().unwrap());
        o.model.same_day_round_trips = exchange::SameDayRoundTrips::Allow;
    });
    let again = || {
        let script = (0..99).fold(Script::default(), |script, trip| {
            let (buy, sell) = (format!("B-{trip}"), format!("S-{trip}"));
            // Bought at the next even second, sold at the odd one after it.
            script
                .after(2 * trip + 2, market(&buy, Buy, 300))
                .after(2 * trip + 3, market(&sell, Sell, 300))
        });
        run(&trades, script, &options).0
    };
    let (one, other) = (again(), again());
    assert_eq!(one.fills.len(), 198);
    let won = one.totals.cash_end - one.totals.cash_start;
    assert_eq!(won, Money::from_units(99 * 300 * 2_000), "{won} yen");
    assert_eq!((one.totals.digest, one.order_events), (other.totals.digest, other.order_events));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let message = |change: fn(&mut ReplayOptions)| with(change).check().unwrap_err().to_string();
    assert_eq!(message(|o| o.window = 0), "the window is 0 trades; it must be 1 to 65536");
    assert_eq!(message(|o| o.window = 65_537), "the window is 65537 trades; it must be 1 to 65536");
    assert_eq!(
        message(|o| o.model.participation_percent = 101),
        "the participation is 101 percent; it must be 1 to 100"
    );
    assert_eq!(
        message(|o| o.instruments[0].lot = Quantity::ZERO),
        "the lot is 0 shares; it must be at least 1"
    );
    assert_eq!(
        message(|o| o.cash = Money::from_yen(-1)),
        "the cash is -1 yen; it must be 0 to 100000000000000"
    );
}
