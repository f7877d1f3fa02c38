//! The rules for times in force, sessions, auctions and days, each with tests that carry its name.

use crate::common::{
    self, Market, Script, after_two, changed, limit, lives, market, modify, options, run, stop,
    tagged, told, until,
};
use domain::{Money, OrderModify, OrderSide, TimeInForce};
use replay::{TradingDay, Unpaced};

use OrderSide::Buy;
use TimeInForce::{AtTheClose, AtTheOpen};

/// Two days with opening, lunch and closing auctions.
fn two_days() -> Market {
    Market::default()
        .at_times(
            6,
            &[
                ("09:00:00.5", "1000", 1_000),
                ("10:00:00", "1001", 300),
                ("11:30:00.25", "1002", 800),
                ("12:30:00.75", "1003", 700),
                ("14:00:00", "1004", 300),
                ("15:30:00.5", "1005", 900),
            ],
        )
        .at_times(
            7,
            &[("09:00:00.5", "1010", 600), ("11:00:00", "1011", 300), ("15:30:00", "1012", 500)],
        )
}

#[test]
fn f6_at_the_open_takes_part_in_the_next_opening_auction_only() {
    let hears = |after, action| {
        let script = Script::default().after(after, lives(AtTheOpen, action));
        let options = changed(|o| o.model.slippage_ticks = 3);
        told(&two_days(), script, &options)
    };
    // The auction's own price, no slippage.
    assert_eq!(hears(0, market("O-1", Buy, 100)), ["O-1 FILLED 100@1000 t=0.5"]);
    assert_eq!(hears(2, market("O-1", Buy, 100)), ["O-1 FILLED 100@1003 t=12600.75"]);
    assert_eq!(hears(5, market("O-1", Buy, 100)), ["O-1 FILLED 100@1010 t=0.5"]);
    assert_eq!(hears(6, market("O-1", Buy, 100)), ["O-1 FILLED 100@1010 t=0.5"]);
}

#[test]
fn f6_what_an_auction_leaves_expires_right_after_it() {
    let script = Script::default()
        .after(0, lives(AtTheOpen, market("O-1", Buy, 1_500)))
        .after(0, lives(AtTheOpen, limit("O-2", Buy, 100, "1000")))
        .after(0, lives(AtTheOpen, limit("O-3", Buy, 100, "990")));
    assert_eq!(
        told(&two_days(), script, &options()),
        [
            "O-1 PARTIALLY_FILLED 1000@1000 t=0.5",
            "O-1 EXPIRED AT_THE_OPEN t=0.5",
            "O-2 EXPIRED AT_THE_OPEN t=0.5",
            "O-3 EXPIRED AT_THE_OPEN t=0.5"
        ],
        "a limit at the auction's price is not better than it"
    );
}

#[test]
fn f6_at_the_close_takes_part_in_the_closing_auction_of_its_session() {
    let hears = |after, action| {
        told(&two_days(), Script::default().after(after, lives(AtTheClose, action)), &options())
    };
    assert_eq!(hears(1, market("O-1", Buy, 100)), ["O-1 FILLED 100@1002 t=9000.25"]);
    assert_eq!(hears(3, market("O-1", Buy, 100)), ["O-1 FILLED 100@1005 t=23400.5"]);
    assert_eq!(hears(4, limit("O-1", Buy, 100, "1006")), ["O-1 FILLED 100@1005 t=23400.5"]);
    assert_eq!(hears(4, limit("O-1", Buy, 100, "1005")), ["O-1 EXPIRED AT_THE_CLOSE t=23400.5"]);
}

#[test]
fn f6_an_auction_that_does_not_happen_ends_its_orders_at_a_time_of_its_own() {
    // On the second day nothing trades between 11:00 and 15:30.
    let script = Script::default()
        .after(8, lives(AtTheClose, market("O-1", Buy, 100)))
        .after(8, lives(AtTheOpen, market("O-2", Buy, 100)));
    assert_eq!(
        told(&two_days(), script, &options()),
        ["O-1 EXPIRED AT_THE_CLOSE t=9300", "O-2 FILLED 100@1012 t=23400"],
        "the afternoon's first trade is its closing auction"
    );
}

#[test]
fn f6_funari_works_as_a_limit_order_and_is_a_market_order_at_the_close() {
    let funari = |price| {
        tagged(lives(AtTheClose, limit("O-1", Buy, 400, price)), &["close_strategy=funari"])
    };
    let hears = |price| told(&two_days(), Script::default().after(4, funari(price)), &options());
    assert_eq!(hears("990"), ["O-1 FILLED 400@1005 t=23400.5"]);
    assert_eq!(
        hears("1004"),
        ["O-1 PARTIALLY_FILLED 300@1004 t=18000", "O-1 FILLED 100@1005 t=23400.5"]
    );
    // Money for the close's worst price is reserved, not for the limit only.
    let poor = changed(|o| o.cash = Money::from_yen(400_000));
    let told = told(&two_days(), Script::default().after(4, funari("990")), &poor);
    assert!(told[0].contains("CASH: needs up to 520000 yen at 1300 a share"), "{told:?}");
}

#[test]
fn f6_an_order_sent_outside_the_sessions_waits_for_the_next_one() {
    let hears =
        |after, action| told(&two_days(), Script::default().after(after, action), &options());
    // After the closing auction: the order belongs to the next day.
    assert_eq!(hears(6, market("O-1", Buy, 100)), ["O-1 FILLED 100@1010 t=0.5"]);
    assert_eq!(
        hears(6, limit("O-1", Buy, 100, "900")),
        ["O-1 EXPIRED END_OF_DATA t=23400"],
        "it does not end with the day on which it was sent"
    );
    // After the morning's closing auction.
    assert_eq!(hears(3, market("O-1", Buy, 100)), ["O-1 FILLED 100@1003 t=12600.75"]);
}

#[test]
fn f6_an_order_that_comes_after_the_close_gets_no_late_print_of_the_auction() {
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("11:30:00", "1001", 100)])
        .at_times(6, &[("11:30:00.5", "1002", 100), ("12:30:00", "1003", 100)])
        .at_times(6, &[("15:30:00", "1004", 100), ("15:30:00.5", "1005", 100)])
        .at_times(7, &[("09:00:00", "1006", 100)]);
    let script =
        Script::default().after(2, market("O-1", Buy, 100)).after(5, market("O-2", Buy, 100));
    assert_eq!(
        told(&trades, script, &options()),
        ["O-1 FILLED 100@1003 t=12600", "O-2 FILLED 100@1006 t=0"]
    );
}

#[test]
fn f6_data_that_trades_after_the_official_close_keeps_its_hours() {
    // 2013 closed at 15:00; these trades were moved there from a longer day.
    let mut trades = two_days();
    let shift = common::at(6, 0.0) - 1_381_104_000_000_000_000;
    trades.ts.iter_mut().for_each(|ts| *ts -= shift);
    let script = Script::default().after(4, lives(AtTheClose, market("O-1", Buy, 100)));
    let (result, told) = run(&trades, script, &options());
    assert_eq!(told.last().unwrap(), "O-1 FILLED 100@1005 t=23400.5");
    assert_eq!(result.orders[0].ts_last.jst_date().to_string(), "2013-10-07");
}

#[test]
fn f6_longer_hours_are_known_from_the_day_before() {
    let mut trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("15:20:00", "1001", 100)])
        .at_times(6, &[("15:21:00", "1002", 100)])
        .at_times(7, &[("10:00:00", "1003", 100), ("15:20:00", "1004", 100)])
        .at_times(7, &[("15:21:00", "1005", 100)]);
    let shift = common::at(6, 0.0) - 1_381_104_000_000_000_000;
    trades.ts.iter_mut().for_each(|ts| *ts -= shift);
    // On the first day 15:20 is after the official close of 2013, on the second it is not.
    let script =
        Script::default().after(2, market("O-1", Buy, 100)).after(5, market("O-2", Buy, 100));
    assert_eq!(
        told(&trades, script, &options()),
        ["O-1 FILLED 100@1003 t=3600", "O-2 FILLED 100@1005 t=22860"]
    );
}

#[test]
fn f6_gtd_lives_over_days_and_ends_with_its_date_at_its_own_time() {
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("10:01:00", "1000", 100)])
        .at_times(7, &[("10:00:00", "980", 100)])
        .at_times(9, &[("10:00:00", "1000", 100)])
        .at_times(10, &[("10:00:00", "900", 100)]);
    let hears = |action| {
        let (result, told) = run(&trades, Script::default().after(1, action), &options());
        (told.last().unwrap().clone(), result.orders[0].ts_last.to_string())
    };
    let order = |price| limit("O-1", Buy, 100, price);
    assert_eq!(hears(until(7, order("990"))).0, "O-1 FILLED 100@980 t=3600", "an auction's price");
    assert_eq!(
        hears(until(7, order("950"))).1,
        "2025-01-07 15:30:00.000000 JST",
        "with the day, not at the next trade"
    );
    // The 8th is a day although nothing trades.
    assert_eq!(hears(until(8, order("950"))).1, "2025-01-08 15:30:00.000000 JST");
    assert_eq!(hears(until(10, order("950"))).0, "O-1 FILLED 100@900 t=3600");
}

#[test]
fn f6_gtd_reaches_ten_business_days() {
    let refusal = |day| {
        let action = until(day, limit("O-1", Buy, 100, "900"));
        let told = after_two(action);
        told[0].strip_prefix("O-1 REJECTED VALIDATION_ERROR: EXPIRE_TIME_NS: ").map(str::to_owned)
    };
    assert_eq!(refusal(6), None);
    // The 13th is a holiday.
    assert_eq!(refusal(21), None);
    assert_eq!(refusal(22).unwrap(), "2025-01-22 is more than 10 business days ahead t=2");
    assert_eq!(refusal(13).unwrap(), "2025-01-13 is no business day of the exchange t=2");
    assert_eq!(refusal(5).unwrap(), "the trading day 2025-01-05 is over t=2");
    assert_eq!(refusal(11).unwrap(), "2025-01-11 is no business day of the exchange t=2");
}

#[test]
fn f6_the_end_of_a_gtd_order_can_be_changed() {
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("10:01:00", "1000", 100)])
        .at_times(7, &[("10:00:00", "1000", 100)])
        .at_times(8, &[("10:00:00", "900", 100)]);
    let end = domain::TsNanos::from_nanos(common::at(8, 0.0));
    let change = OrderModify { expire_time: Some(end), ..OrderModify::default() };
    let script = Script::default()
        .after(1, until(7, limit("O-1", Buy, 100, "950")))
        .after(2, modify(change));
    assert_eq!(
        told(&trades, script, &options()),
        ["O-1 ACCEPTED updated t=3660", "O-1 FILLED 100@900 t=3600"]
    );
    let script = Script::default().after(1, limit("O-1", Buy, 100, "950")).after(2, modify(change));
    assert!(told(&trades, script, &options())[0].contains("EXPIRE_TIME_NS: is needed for GTD"));
}

#[test]
fn f4_another_date_keeps_the_place_of_a_gtd_order() {
    let trades = (3..=7).fold(
        Market::default().trade(6, 1.0, "1005", 100).trade(6, 2.0, "1004", 100),
        |market, second| market.trade(6, f64::from(second), "1000", 1_000),
    );
    let hears = |change: Option<OrderModify>| {
        let script = Script::default().after(2, until(8, limit("O-1", Buy, 100, "1000")));
        let script = match change {
            Some(change) => script.after(4, modify(change)),
            None => script,
        };
        told(&trades, script, &options()).last().unwrap().clone()
    };
    // Nothing trades through its limit, so it never fills; the last price is its limit when it is changed.
    assert_eq!(hears(None), "O-1 EXPIRED END_OF_DATA t=23400");
    for day in [8, 9] {
        let end = Some(domain::TsNanos::from_nanos(common::at(day, 0.0)));
        let change = OrderModify { expire_time: end, ..OrderModify::default() };
        assert_eq!(hears(Some(change)), "O-1 EXPIRED END_OF_DATA t=23400");
    }
    // A new place is that of a new order, which is marketable now.
    let change =
        OrderModify { quantity: Some(domain::Quantity::new(200)), ..OrderModify::default() };
    assert_eq!(hears(Some(change)), "O-1 FILLED 200@1000 t=5");
}

#[test]
fn f7_orders_that_live_on_are_checked_against_each_new_day() {
    // Around 1,000 the range is 700 to 1,300; around 720 it is 570 to 870.
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("10:01:00", "720", 100)])
        .at_times(7, &[("10:00:00", "730", 100), ("10:01:00", "870", 1_000)]);
    let script = Script::default().after(1, until(7, stop("O-1", Buy, 100, "1200")));
    let (result, told) = run(&trades, script, &options());
    assert_eq!(told.last().unwrap(), "O-1 EXPIRED PRICE_LIMIT t=-32400");
    assert_eq!(result.orders[0].ts_last.to_string(), "2025-01-07 00:00:00.000000 JST");
    // A market order for the next day, whose highest price is above today's.
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "860", 100), ("15:30:00", "999", 100)])
        .at_times(7, &[("10:00:00", "1000", 100), ("10:01:00", "1000", 1_000)]);
    let script = Script::default().after(2, market("O-1", Buy, 100));
    let options = changed(|o| {
        o.cash = Money::from_yen(114_000);
        o.base_prices = vec![Some(domain::Price::from_yen(860))];
    });
    assert_eq!(
        common::told(&trades, script, &options),
        ["O-1 REJECTED INSUFFICIENT_FUNDS: CASH: needs up to 114900 yen at 1149 a share, 114000 \
          yen are free t=-32400"]
    );
}

#[test]
fn what_a_new_day_holds_back_is_in_the_account_before_its_first_trade() {
    // A stop above everything: cash for it is held back at the upper limit of each day, 300 and then 400 yen above
    // the last close.
    let market = Market::default()
        .at_times(6, &[("09:00:00.5", "1000", 100), ("15:30:00", "1190", 100)])
        .at_times(7, &[("09:00:00.5", "1190", 100), ("15:30:00", "1185", 100)]);
    let order = until(8, stop("O-1", Buy, 100, "1250"));
    let mut script = Script::default().after(1, order);
    script.asks = true;
    let days = TradingDay::split(&market.ts, &market.price, &market.quantity);
    let result = common::in_memory(days, &mut script, &options(), &mut Unpaced);
    assert_eq!(result.totals.order_counts.rejected, 0);
    let yen = |yen: i64| Money::from_yen(yen);
    let seen = [yen(0), yen(130_000), yen(149_000), yen(149_000)];
    assert_eq!(script.reserved_seen, seen);
}
