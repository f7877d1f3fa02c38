//! Rule F7's prices: base price, daily range, reserves and ticks, from nothing but what has traded before.

use crate::common::{Market, Script, changed, limit, lives, market, run, stop, told, until};
use domain::{InstrumentIx, JstDate, Money, OrderSide, Price, Quantity, TickTable, TimeInForce};
use replay::{ReplayOptions, UnitChange};

use OrderSide::{Buy, Sell};

/// Nothing is known of the days before.
fn unknown(change: impl FnOnce(&mut ReplayOptions)) -> ReplayOptions {
    changed(|options| {
        options.base_prices = vec![];
        change(options);
    })
}

#[test]
fn f7_a_market_order_before_any_price_is_known_is_rejected() {
    let trades = Market::of_the_peers();
    for life in [TimeInForce::Day, TimeInForce::AtTheOpen] {
        let script = Script::default().after(0, lives(life, market("O-1", Buy, 100)));
        let heard = told(&trades, script, &unknown(|_| {}));
        assert!(
            heard[0]
                .starts_with("O-1 REJECTED VENUE_REJECTED: NO_REFERENCE_PRICE: nothing has traded"),
            "{heard:?}"
        );
    }
    // A limit says itself what it may cost, and a close of a day before says it for the market.
    let script = Script::default().after(0, limit("O-1", Buy, 100, "1001"));
    assert_eq!(told(&trades, script, &unknown(|_| {})), ["O-1 FILLED 100@1000 t=1"]);
    let script = Script::default().after(0, market("O-1", Buy, 100));
    assert_eq!(told(&trades, script, &changed(|_| {})), ["O-1 FILLED 100@1000 t=1"]);
}

#[test]
fn f7_without_a_base_price_no_range_is_checked_and_no_text_tells_the_future() {
    let trades = Market::of_the_peers();
    let script = Script::default().after(1, limit("O-1", Buy, 100, "5000"));
    assert_eq!(told(&trades, script, &unknown(|_| {})), ["O-1 FILLED 100@1000.5 t=2"]);
    // The usual range around the last trade seen, which is the one at 1,000.
    let script = Script::default().after(1, market("O-1", Buy, 100));
    let poor = unknown(|options| options.cash = Money::from_yen(129_999));
    assert_eq!(
        told(&trades, script, &poor),
        [
            "O-1 REJECTED INSUFFICIENT_FUNDS: CASH: needs up to 130000 yen at 1300 a share, 129999 yen \
          are free t=1"
        ]
    );
}

#[test]
fn f7_a_rally_beyond_the_reserve_takes_more_cash_or_ends_the_order() {
    let trades = Market::default().trade(6, 1.0, "1000", 100).trade(6, 2.0, "1400", 100);
    let heard = |yen: i64| {
        let script = Script::default().after(1, market("O-1", Buy, 100));
        told(&trades, script, &unknown(|options| options.cash = Money::from_yen(yen)))
    };
    // Around 1,400 the usual range ends at 1,700.
    assert_eq!(heard(170_000), ["O-1 FILLED 100@1400 t=2"]);
    assert_eq!(
        heard(169_999),
        [
            "O-1 REJECTED INSUFFICIENT_FUNDS: CASH: needs up to 170000 yen at 1700 a share, 169999 yen \
          are free t=2"
        ]
    );
}

#[test]
fn f7_the_base_is_the_last_close_across_days_without_trades() {
    // The second instrument is silent on the 7th; both have a range on the 8th.
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("15:30:00", "720", 100)])
        .at_times(8, &[("10:00:00", "730", 100), ("10:01:00", "731", 100)]);
    let script = Script::default().after(3, limit("O-1", Buy, 100, "870.5"));
    let heard = told(&trades, script, &unknown(|_| {}));
    // 720 is below 1,000: 150 on both sides, whatever the first trade of the day was.
    assert_eq!(
        heard,
        [
            "O-1 REJECTED VENUE_REJECTED: PRICE_LIMIT: 870.5 is outside the day's range 570 to 870 t=3600"
        ]
    );
}

#[test]
fn f7_the_limits_stand_on_ticks_inside_the_range() {
    let trades = Market::of_the_peers();
    let options = changed(|options| {
        options.instruments[0].ticks = TickTable::Normal;
        options.base_prices = vec![Some("1000.5".parse().unwrap())];
    });
    let heard = |price| {
        let script = Script::default().after(1, limit("O-1", Buy, 100, price));
        told(&trades, script, &options)[0].clone()
    };
    let outside = "is outside the day's range 701 to 1300 t=1";
    assert!(
        heard("1301").ends_with(outside) && heard("700").ends_with(outside),
        "{}",
        heard("700")
    );
    assert!(heard("1300").contains("FILLED") && heard("701").contains("EXPIRED"));
}

#[test]
fn f7_a_trade_outside_the_range_widens_it_to_four_times_from_then_on() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1300", 100)
        .trade(6, 3.0, "1301", 100)
        .trade(6, 4.0, "1310", 100);
    let heard = |after| {
        let script = Script::default().after(after, limit("O-1", Buy, 100, "2200"));
        run(&trades, script, &changed(|_| {}))
    };
    let (_, before) = heard(2);
    assert!(before[1].contains("2200 is outside the day's range 700 to 1300"), "{before:?}");
    let (result, after) = heard(3);
    assert_eq!(after.last().unwrap(), "O-1 FILLED 100@1310 t=4");
    assert_eq!(
        result.totals.notes,
        [
            "7203.TSE, 2025-01-06 09:00:03.000000 JST: a trade at 1301 lies outside 700 to 1300: the \
          range is 700 to 2200 from then on",
            "same-day round trips (F11): 0 orders were rejected"
        ]
    );
    let (_, beyond) = run(
        &trades,
        Script::default().after(3, limit("O-1", Buy, 100, "2200.5")),
        &changed(|_| {}),
    );
    assert!(beyond[1].contains("2200.5 is outside the day's range 700 to 2200"), "{beyond:?}");
    // The other side stays as it was.
    let script = Script::default().after(3, limit("O-1", Buy, 100, "699.5"));
    assert!(told(&trades, script, &changed(|_| {}))[0].contains("699.5 is outside"));
}

#[test]
fn f7_a_market_order_in_a_range_that_widens_needs_the_cash_for_it() {
    let trades = Market::default().trade(6, 1.0, "1000", 100).trade(6, 2.0, "1301", 100);
    let heard = |yen: i64| {
        let script = Script::default().after(1, market("O-1", Buy, 100));
        told(&trades, script, &changed(|options| options.cash = Money::from_yen(yen)))
    };
    assert_eq!(heard(220_000), ["O-1 FILLED 100@1301 t=2"]);
    assert!(heard(219_999)[0].contains("needs up to 220000 yen at 2200 a share"));
}

#[test]
fn f7_a_close_that_is_no_base_leaves_the_day_without_limits() {
    // A reverse split of ten shares to one.
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(7, 1.0, "10000", 100)
        .trade(7, 2.0, "10010", 100);
    let script = Script::default().after(2, limit("O-1", Buy, 100, "10020"));
    let (result, heard) = run(&trades, script, &changed(|_| {}));
    assert_eq!(heard.last().unwrap(), "O-1 FILLED 100@10010 t=2");
    assert!(result.totals.notes[0].contains("1000 is no base price"), "{:?}", result.totals.notes);
}

#[test]
fn f7_price_steps_change_on_their_day() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1000", 100)
        .trade(7, 1.0, "1000", 100)
        .trade(7, 2.0, "1000", 100);
    let date = JstDate::from_ymd_opt(2025, 1, 7).unwrap();
    let options = changed(|options| {
        let (lot, ticks) = (Quantity::new(100), TickTable::Normal);
        options.unit_changes = vec![UnitChange { date, instrument: InstrumentIx(0), lot, ticks }];
    });
    let script = Script::default()
        .after(1, until(8, limit("O-1", Buy, 100, "900.5")))
        .after(1, until(8, limit("O-2", Buy, 100, "900")))
        .after(1, until(8, stop("O-3", Buy, 100, "1200.5")))
        .after(3, limit("O-4", Buy, 100, "900.5"));
    let (result, heard) = run(&trades, script, &options);
    let prices: Vec<_> =
        result.orders.iter().filter_map(|order| Some(order.request.price?.to_string())).collect();
    assert_eq!(prices, ["900.5", "900", "900"]);
    // Before the open; what is a price on both grids goes on.
    let expired: Vec<_> = heard.iter().filter(|line| line.contains("EXPIRED")).collect();
    assert_eq!(
        expired,
        [
            "O-1 EXPIRED TICK_CHANGE t=-32400",
            "O-3 EXPIRED TICK_CHANGE t=-32400",
            "O-2 EXPIRED END_OF_DATA t=23400",
            "O-4 EXPIRED END_OF_DATA t=23400",
        ]
    );
    let log: Vec<_> = result.log.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(log, ["7203.TSE: lot 100, ticks normal from 2025-01-07 on"]);
}

/// A lot of 1,000 shares that becomes 100 on 7 January.
fn smaller_lot(options: &mut ReplayOptions) {
    options.instruments[0].lot = Quantity::new(1_000);
    let date = JstDate::from_ymd_opt(2025, 1, 7).unwrap();
    let (lot, ticks) = (Quantity::new(100), options.instruments[0].ticks);
    options.unit_changes = vec![UnitChange { date, instrument: InstrumentIx(0), lot, ticks }];
}

#[test]
fn f7_the_lot_is_that_of_the_day() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 5_000)
        .trade(6, 2.0, "1000", 1_700)
        .trade(6, 3.0, "1000", 900)
        .trade(7, 1.0, "1000", 500)
        .trade(7, 2.0, "1000", 350)
        .trade(7, 3.0, "1000", 350);
    let script = || {
        Script::default()
            .after(1, market("O-1", Buy, 2_000))
            .after(1, market("O-2", Buy, 100))
            .after(2, until(8, limit("O-3", Buy, 1_000, "900")))
            .after(4, market("O-4", Sell, 500))
            .after(4, until(8, limit("O-5", Buy, 100, "900")))
    };
    let (result, heard) = run(&trades, script(), &changed(smaller_lot));
    let quiet = [" SUBMITTED", " ACCEPTED t"];
    let heard: Vec<_> =
        heard.iter().filter(|line| !quiet.iter().any(|word| line.contains(word))).collect();
    assert_eq!(
        heard,
        [
            "O-2 REJECTED VALIDATION_ERROR: QUANTITY: 100 is not a multiple of the lot 1000 t=1",
            "O-1 PARTIALLY_FILLED 1000@1000 t=2",
            "O-1 EXPIRED DAY t=23400",
            "O-3 EXPIRED LOT_CHANGE t=-32400",
            "O-4 PARTIALLY_FILLED 300@1000 t=2",
            "O-4 FILLED 200@1000 t=3",
            "O-5 EXPIRED END_OF_DATA t=23400",
        ]
    );
    for window in [7, 1_024] {
        let options = changed(|options| {
            smaller_lot(options);
            options.window = window;
        });
        assert_eq!(run(&trades, script(), &options).0.totals.digest, result.totals.digest);
    }
}

#[test]
fn f7_a_sale_needs_no_reference_that_a_holding_has_not() {
    let trades = Market::of_the_peers();
    let script =
        Script::default().after(1, market("O-1", Buy, 100)).after(3, market("O-2", Sell, 100));
    assert_eq!(
        told(&trades, script, &unknown(|_| {})),
        ["O-1 FILLED 100@1000.5 t=2", "O-2 FILLED 100@1002 t=4"]
    );
}

#[test]
fn f2_ticks_that_do_not_fit_the_prices_make_no_fill_better_than_the_market_and_are_told() {
    let trades = (1..=8).fold(Market::default(), |market, second| {
        market.trade(6, f64::from(second), if second % 2 == 0 { "2990" } else { "2995" }, 1_000)
    });
    for yen in [7, 300, 700, 2_000, 3_001, 10_000, 1_000_000] {
        for base in [None, Some(Price::from_yen(2_990)), Some(Price::from_yen(2_000))] {
            let options = changed(|options| {
                options.instruments[0].ticks = TickTable::Fixed(Price::from_yen(yen));
                options.base_prices = vec![base];
                options.model.slippage_ticks = 1;
            });
            let script = Script::default()
                .after(1, market("O-1", Buy, 200))
                .after(3, market("O-2", Sell, 100))
                .after(6, market("O-3", Sell, 100));
            let (result, told) = run(&trades, script, &options);
            assert_eq!(result.fills.len(), 3, "{yen}: {told:?}");
            for fill in &result.fills {
                let worse = fill.price.units() - fill.market_price.units();
                assert!(worse * fill.side.sign() >= 0, "{yen}: {fill:?}");
            }
            let warnings = result.totals.warnings.join("; ");
            let wanted = format!(
                "TICKS: 7203.TSE: there are fills of market prices that the tick table `fixed {yen}` does not \
                 have"
            );
            assert!(warnings.contains(&wanted), "{warnings}");
        }
    }
    let (result, _) = run(
        &trades,
        Script::default().after(1, market("O-1", Buy, 100)),
        &changed(|options| options.instruments[0].ticks = TickTable::Normal),
    );
    assert!(result.totals.warnings.is_empty(), "{:?}", result.totals.warnings);
}
