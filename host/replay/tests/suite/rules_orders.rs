//! The rules for stops, queues, fees, tags and limits, each with tests that carry its name.

use crate::common::{
    self, Market, Script, after_two, changed, limit, lives, market, modify, options, run, stop,
    stop_limit, tagged, told, with,
};
use domain::execution::ExecutionClient;
use domain::limits::WORKING_ORDERS_MAX;
use domain::session::TradingHours;
use domain::strategy::{Action, LogLevel};
use domain::{
    InstrumentIx, JstDate, Money, OrderCommand, OrderModify, OrderSide, OrderStatus, Origin, Price,
    TimeInForce, TriggerType, TsNanos,
};
use exchange::{Commission, Exchange};
use results::RunStatus;

use OrderSide::{Buy, Sell};
use TimeInForce::AtTheClose;

// F5: stops.

#[test]
fn f5_a_stop_fills_on_a_later_trade_than_the_one_that_triggers_it() {
    let script = Script::default().after(2, stop("O-1", Buy, 300, "1001.5"));
    let (result, told) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(told.last().unwrap(), "O-1 FILLED 300@1000 t=5", "1,002 at t=4 triggers it");
    assert_eq!(result.orders[0].ts_triggered.unwrap().nanos(), common::at(6, 4.0));
}

#[test]
fn f5_a_gap_beyond_the_trigger_is_paid() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1000", 100)
        .trade(6, 3.0, "950", 100)
        .trade(6, 4.0, "940", 100);
    let script =
        Script::default().after(1, market("O-1", Buy, 100)).after(2, stop("O-2", Sell, 100, "990"));
    assert_eq!(
        told(&trades, script, &options()),
        ["O-1 FILLED 100@1000 t=2", "O-2 FILLED 100@940 t=4"]
    );
}

#[test]
fn f5_a_trigger_needs_no_volume_for_us() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1002", 1)
        .trade(6, 3.0, "1001", 100);
    let script = Script::default().after(1, stop("O-1", Buy, 100, "1002"));
    assert_eq!(told(&trades, script, &options()), ["O-1 FILLED 100@1001 t=3"]);
}

#[test]
fn f5_trades_of_the_trigger_s_instant_do_not_fill_it() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1002", 500)
        .trade(6, 2.0, "1002.5", 500)
        .trade(6, 3.0, "1004", 100);
    let script = Script::default().after(1, stop("O-1", Buy, 100, "1002"));
    assert_eq!(told(&trades, script, &options()), ["O-1 FILLED 100@1004 t=3"]);
}

#[test]
fn f5_a_stop_limit_never_pays_more_than_its_limit() {
    // Triggered at 1,002 (t=4), which is past its limit: it rests at 1,001.5 then.
    assert_eq!(
        after_two(stop_limit("O-1", Buy, 300, "1001.5", "1001.5")),
        ["O-1 FILLED 300@1001.5 t=5"]
    );
    assert_eq!(
        after_two(stop_limit("O-1", Buy, 300, "1002", "995")),
        ["O-1 EXPIRED END_OF_DATA t=23400"]
    );
}

#[test]
fn f5_a_stop_that_is_reached_already_is_refused() {
    assert_eq!(
        after_two(stop("O-1", Buy, 100, "1000.5")),
        [
            "O-1 REJECTED VENUE_REJECTED: STOP_TRIGGER: 1000.5 is reached already, the last price is \
          1000.5; the trigger of a BUY must be above it t=2"
        ]
    );
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(3, stop("O-2", Sell, 100, "1001"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options())[1],
        "O-2 REJECTED VENUE_REJECTED: STOP_TRIGGER: 1001 is reached already, the last price is \
         1001; the trigger of a SELL must be below it t=3"
    );
}

/// Before the first trade of a run the last price is the close before it, here 1,000.
#[test]
fn f5_before_the_first_trade_the_close_before_it_is_the_last_price() {
    let sent = |trigger| {
        let script = Script::default().after(0, stop("O-1", Buy, 100, trigger));
        told(&Market::of_the_peers(), script, &options()).remove(0)
    };
    assert!(sent("990").contains("STOP_TRIGGER: 990 is reached already, the last price is 1000"));
    assert_eq!(sent("1001.5"), "O-1 FILLED 100@1000 t=5");
    let script = Script::default().after(0, stop("O-1", Buy, 100, "990"));
    let unknown = changed(|o| o.base_prices = vec![None; 4]);
    let told = told(&Market::of_the_peers(), script, &unknown).remove(0);
    assert!(told.contains("NO_REFERENCE_PRICE"), "{told}");
}

#[test]
fn f5_with_latency_the_trigger_is_checked_at_arrival() {
    let script = Script::default().after(2, stop("O-1", Buy, 100, "1001.5"));
    let options = changed(|o| o.model.latency_ns = 2_500_000_000);
    assert!(
        told(&Market::of_the_peers(), script, &options)[0].contains("the last price is 1002"),
        "at t=4.5 the market is at 1,002"
    );
}

#[test]
fn f5_triggers_are_rounded_away_from_the_market_and_only_stops_have_a_type() {
    let with_type = |action| with(action, |order| order.trigger_type = Some(TriggerType::Last));
    let script = Script::default().after(2, with_type(stop("O-1", Buy, 100, "1001.3")));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(result.orders[0].request.trigger_price.unwrap().to_string(), "1001.5");
    assert_eq!(
        after_two(with_type(market("O-1", Buy, 100))),
        ["O-1 REJECTED VENUE_UNSUPPORTED: TRIGGER_TYPE: only stop orders have one t=2"]
    );
}

#[test]
fn f5_the_trigger_can_be_changed_until_it_is_reached() {
    let to = |trigger: &str| {
        modify(OrderModify {
            trigger_price: Some(trigger.parse().unwrap()),
            ..OrderModify::default()
        })
    };
    let script = Script::default().after(2, stop("O-1", Buy, 100, "1010")).after(3, to("1002"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 ACCEPTED updated t=3", "O-1 FILLED 100@1000 t=5"]
    );
    let script =
        Script::default().after(2, stop_limit("O-1", Buy, 100, "1002", "990")).after(5, to("1005"));
    assert_eq!(
        told(&Market::of_the_peers(), script, &options()),
        ["O-1 REJECTED VENUE_REJECTED: STOP_TRIGGER: the stop was triggered, its trigger cannot \
          change t=5"]
    );
}

#[test]
fn f5_stops_take_no_part_in_auctions() {
    assert_eq!(
        after_two(lives(AtTheClose, stop("O-1", Buy, 100, "1010"))),
        [
            "O-1 REJECTED VENUE_UNSUPPORTED: STOP_MARKET: a stop cannot be AT_THE_CLOSE; it takes DAY \
          or GTD t=2"
        ]
    );
}

// F4: the queue.

#[test]
fn f4_a_touch_fills_once_the_queue_ahead_has_traded() {
    let trades = Market::default()
        .trade(6, 1.0, "1001", 100)
        .trade(6, 2.0, "1000", 300)
        .trade(6, 3.0, "1000", 350)
        .trade(6, 4.0, "1000", 500);
    let hears = |queue_ahead| {
        let script = Script::default().after(1, limit("O-1", Buy, 400, "1000"));
        told(&trades, script, &changed(|o| o.model.queue_ahead = queue_ahead))
    };
    assert_eq!(hears(None), ["O-1 EXPIRED END_OF_DATA t=23400"]);
    assert_eq!(
        hears(Some(500)),
        ["O-1 PARTIALLY_FILLED 100@1000 t=3", "O-1 FILLED 300@1000 t=4"],
        "150 of the second trade are left, in whole lots"
    );
    assert_eq!(hears(Some(0)), ["O-1 PARTIALLY_FILLED 300@1000 t=2", "O-1 FILLED 100@1000 t=3"]);
}

#[test]
fn f4_a_trade_through_the_price_clears_the_queue() {
    let trades = Market::default()
        .trade(6, 1.0, "1001", 100)
        .trade(6, 2.0, "999.5", 100)
        .trade(6, 3.0, "1000", 300);
    let script = Script::default().after(1, limit("O-1", Buy, 300, "1000"));
    let options = changed(|o| o.model.queue_ahead = Some(10_000));
    assert_eq!(
        told(&trades, script, &options),
        ["O-1 PARTIALLY_FILLED 100@1000 t=2", "O-1 FILLED 200@1000 t=3"]
    );
}

#[test]
fn f4_two_orders_at_a_touch_share_the_trade() {
    let trades = Market::default().trade(6, 1.0, "1001", 100).trade(6, 2.0, "1000", 500);
    let script = Script::default()
        .after(1, limit("O-1", Buy, 300, "1000"))
        .after(1, limit("O-2", Buy, 300, "1000"));
    let options = changed(|o| o.model.queue_ahead = Some(100));
    assert_eq!(
        told(&trades, script, &options),
        [
            "O-1 FILLED 300@1000 t=2",
            "O-2 PARTIALLY_FILLED 100@1000 t=2",
            "O-2 EXPIRED END_OF_DATA t=23400"
        ]
    );
}

// Fees.

#[test]
fn fee_an_order_pays_by_the_value_of_all_its_fills() {
    let options = changed(|o| {
        o.model.commission = "tiers:150000=100,350000=250,900".parse().unwrap();
    });
    let script = Script::default().after(2, market("O-1", Buy, 400));
    let (result, _) = run(&Market::of_the_peers(), script, &options);
    let fees: Vec<_> = result.fills.iter().map(|fill| fill.commission.to_string()).collect();
    // 100 at 1,001 are 100,100 yen; 300 more at 1,002 make it 400,700 yen.
    assert_eq!(fees, ["100", "800"]);
    assert_eq!(result.orders[0].commission, Money::from_yen(900));
    assert_eq!(result.totals.cash_end, Money::from_yen(10_000_000 - 400_700 - 900));
}

#[test]
fn fee_the_cash_check_counts_the_highest_fee() {
    let order = |cash| {
        let options = changed(|o| {
            o.model.commission = Commission::PerOrder(Money::from_yen(500));
            o.cash = Money::from_yen(cash);
        });
        told(&Market::of_the_peers(), Script::default().after(2, market("O-1", Buy, 100)), &options)
    };
    assert_eq!(order(130_500), ["O-1 FILLED 100@1001 t=3"]);
    assert_eq!(
        order(130_499),
        ["O-1 REJECTED INSUFFICIENT_FUNDS: CASH: needs up to 130500 yen at 1300 a share and the \
          fee, 130499 yen are free t=2"]
    );
}

#[test]
fn fee_a_sale_that_brings_less_than_its_fee_needs_cash() {
    let trades = Market::default()
        .trade(6, 1.0, "2", 100)
        .trade(6, 2.0, "2", 100)
        .trade(6, 3.0, "2", 100)
        .trade(6, 4.0, "2", 100);
    let options = changed(|o| {
        o.model.commission = Commission::PerOrder(Money::from_yen(300));
        o.cash = Money::from_yen(3_500);
    });
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "32"))
        .after(3, limit("O-2", Buy, 100, "26"))
        .after(3, market("O-3", Sell, 100));
    let (result, told) = run(&trades, script, &options);
    // 3,500 less 200 and a fee of 300 are 3,000; the second order reserves 2,900 of them.
    assert_eq!(told.last().unwrap(), "O-2 FILLED 100@2 t=4");
    assert_eq!(
        result.orders[2].rejection.as_ref().unwrap().to_string(),
        "INSUFFICIENT_FUNDS: CASH: the fee may be up to 250 yen more than the sale brings, 100 \
         yen are free"
    );
}

// F7: tags.

#[test]
fn tags_of_margin_are_refused_by_name_and_unknown_ones_are_told() {
    let refusal = |action: Action, tag: &str| after_two(tagged(action, &[tag]))[0].clone();
    let buy = || market("O-1", Buy, 100);
    assert_eq!(
        refusal(buy(), "cash_margin=margin_credit_new"),
        "O-1 REJECTED VENUE_UNSUPPORTED: MARGIN: `cash_margin=margin_credit_new` needs a margin \
         account; this one has cash t=2"
    );
    assert!(refusal(buy(), "tategyoku=A-1").contains("MARGIN: `tategyoku=A-1`"));
    assert!(refusal(buy(), "close_action=physical_settle_buy").contains("MARGIN: `close_action"));
    assert!(refusal(buy(), "account_type=nisa").contains("`nisa` only sells since 2024"));
    assert!(refusal(buy(), "account_type=nisa_growth").contains("not supported yet"));
    assert!(refusal(buy(), "close_strategy=funari").contains("CONFLICTING_TAGS: `close_strategy"));
    let funari = refusal(lives(AtTheClose, buy()), "close_strategy=funari");
    assert!(funari.contains("CONFLICTING_TAGS: `close_strategy=funari` needs a LIMIT"), "{funari}");
    let two = tagged(buy(), &["cash_margin=cash", "cash_margin=margin_credit_new"]);
    assert!(after_two(two)[0].contains("CONFLICTING_TAGS: `cash_margin` is given twice"));
    let once = tagged(buy(), &["account_type=specific", "account_type=specific"]);
    assert!(!after_two(once).iter().any(|told| told.contains("REJECTED")));

    let tags = ["cash_margin=cash", "account_type=specific", "colour=blue", "mood=calm"];
    let script = Script::default().after(2, tagged(buy(), &tags));
    let (result, _) = run(&Market::of_the_peers(), script, &options());
    assert_eq!(result.orders[0].status, OrderStatus::Filled);
    assert_eq!(result.log.len(), 1);
    assert_eq!(result.log[0].level, LogLevel::Warn);
    assert_eq!(
        result.log[0].message,
        "tag `colour=blue` and 1 more of `O-1` is not in the registry: ignored"
    );
}

#[test]
fn f7_a_change_is_refused_with_the_same_words_as_an_order() {
    let change = |change: OrderModify| {
        let script =
            Script::default().after(1, limit("O-1", Buy, 100, "900")).after(2, modify(change));
        told(&Market::of_the_peers(), script, &options())[0].clone()
    };
    assert_eq!(
        change(OrderModify { price: Some("1300.5".parse().unwrap()), ..OrderModify::default() }),
        "O-1 REJECTED VENUE_REJECTED: PRICE_LIMIT: 1300.5 is outside the day's range 700 to 1300 \
         t=2"
    );
    let script = Script::default()
        .after(1, market("O-0", Buy, 200))
        .after(3, limit("O-1", Sell, 100, "1200"))
        .after(3, limit("O-2", Sell, 100, "1200"))
        .after(
            4,
            modify(OrderModify {
                quantity: Some(domain::Quantity::new(200)),
                ..OrderModify::default()
            }),
        );
    assert_eq!(
        told(&Market::of_the_peers(), script, &options())[1],
        "O-1 REJECTED VENUE_REJECTED: SHORT_SALE: 200 to sell, 200 held, 100 of them in other sell \
         orders t=4"
    );
}

// Limits.

#[test]
fn limits_a_run_that_sends_too_many_orders_ends_with_a_fault() {
    let options = changed(|o| o.model.orders_max = 2);
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(2, market("O-2", Buy, 100))
        .after(3, market("O-3", Buy, 100));
    let (result, _) = run(&Market::of_the_peers(), script, &options);
    match &result.totals.status {
        RunStatus::Failed(fault) => assert!(
            fault.to_string().contains("in `submit`")
                && fault.to_string().contains("produced 3 orders in one run; 2 are allowed"),
            "{fault}"
        ),
        other => panic!("{other:?}"),
    }
    assert_eq!(result.orders.len(), 2, "the order too many is not kept");
    assert_eq!(result.fills.len(), 2);
}

/// A cancel of all means all that can be cancelled: thousands of orders that cannot be leave no thousands of texts.
#[test]
fn limits_a_cancel_of_all_leaves_few_warnings() {
    let options = changed(|options| options.model.latency_ns = common::SECOND);
    let cash = Money::from_yen(1_000_000_000);
    let mut exchange = Exchange::new(options.model, &options.instruments, cash);
    let hours = TradingHours::of(JstDate::from_ymd_opt(2025, 1, 6).unwrap());
    exchange.begin_day(hours, InstrumentIx(0), Some(Price::from_yen(1_000)));
    let sent = TsNanos::from_nanos(common::at(6, 1.0));
    for number in 0..WORKING_ORDERS_MAX {
        let Action::Order(order) = limit(&format!("O-{number}"), Buy, 100, "700") else { continue };
        exchange.execute(sent, Origin::Strategy, order);
    }
    let all = OrderCommand::CancelAll { instrument: None, side: None };
    // None has arrived.
    exchange.execute(sent, Origin::Strategy, all.clone());
    let warnings = exchange.take_warnings();
    assert_eq!(warnings.len(), 17);
    assert!(warnings[15].text.starts_with("`O-15` was not cancelled: it is "));
    let more = format!("{} more orders were not cancelled", WORKING_ORDERS_MAX - 16);
    assert_eq!(warnings[16].text, more);
    exchange.run_due();
    assert_eq!(exchange.working_orders().len(), WORKING_ORDERS_MAX);
    // Their cancels are on their way once the first of so many is.
    for _ in 0..256 {
        exchange.execute(sent.plus_nanos(common::SECOND), Origin::Strategy, all.clone());
    }
    assert_eq!(exchange.take_warnings().len(), 0);
    exchange.run_due();
    assert!(exchange.working_orders().is_empty());
}
