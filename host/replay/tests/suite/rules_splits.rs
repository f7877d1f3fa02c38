//! F12, splits: each test carries the rule's name. And the warning where no daily file tells of one.

use crate::common::{Market, Script, changed, limit, market, run, until};
use domain::adjustment::{Adjustment, ExRights};
use domain::{InstrumentIx, JstDate, Money, OrderSide, Price, Quantity, Random, TickTable};
use replay::{ReplayOptions, UnitChange};
use results::summary::Summary;

use OrderSide::{Buy, Sell};

/// A split of the only instrument on a day of January 2025.
fn split(day: u32, factor: &str) -> impl FnOnce(&mut ReplayOptions) + use<> {
    let adjustment = Adjustment::of_price_factor(factor).unwrap();
    let date = JstDate::from_ymd_opt(2025, 1, day).unwrap();
    move |options| {
        options.ex_rights = vec![ExRights { date, instrument: InstrumentIx(0), adjustment }];
    }
}

/// 1,000 yen on the first day, and the same share at half of it on the second.
fn halved() -> Market {
    Market::default()
        .trade(6, 1.0, "1000", 500)
        .trade(6, 2.0, "1000", 500)
        .trade(6, 61.0, "1002", 500)
        .trade(7, 1.0, "501", 900)
        .trade(7, 2.0, "502", 900)
        .trade(7, 61.0, "500", 900)
}

#[test]
fn f12_a_position_is_split_before_the_open_and_equity_does_not_jump() {
    let script =
        Script::default().after(1, market("O-1", Buy, 200)).after(4, market("O-2", Sell, 400));
    let (result, told) = run(&halved(), script, &changed(split(7, "0.5")));
    assert_eq!(told.last().unwrap(), "O-2 FILLED 400@502 t=2");
    let equity: Vec<_> = result.equity.iter().map(|row| row.equity.to_string()).collect();
    // 200 shares at 1,000, then at 1,002; 400 sold for 502 each.
    assert_eq!(equity, ["10000000", "10000400", "10000800", "10000800"]);
    assert_eq!(result.totals.realised_pnl, Money::from_yen(800));
    let [trip] = &result.round_trips[..] else { panic!("{:?}", result.round_trips) };
    assert_eq!((trip.quantity, trip.quantity_max, trip.pnl), (400, 400, Money::from_yen(800)));
    assert_eq!((trip.buy_price, trip.sell_price), (Price::from_yen(500), Price::from_yen(502)));
    assert_eq!(result.totals.warnings, [""; 0]);
    let log: Vec<_> = result.log.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(
        log,
        ["ex-rights: 2 for 1 shares of 7203.TSE from 2025-01-07 on; its last price becomes 501"]
    );
}

#[test]
fn f12_open_orders_expire_before_the_open() {
    let script = Script::default()
        .after(1, market("O-1", Buy, 100))
        .after(2, until(8, limit("O-2", Buy, 100, "900")))
        .after(3, until(8, limit("O-3", Sell, 100, "1100")));
    let (result, told) = run(&halved(), script, &changed(split(7, "0.5")));
    assert_eq!(
        told[told.len() - 3..],
        [
            "O-2 EXPIRED EX_RIGHTS t=-32400",
            "O-3 EXPIRED EX_RIGHTS t=-32400",
            "SPLIT 2 for 1: 200 held, 0 paid, last 501 t=-32400",
        ],
        "what became of its orders comes first"
    );
    assert_eq!(result.orders[1].ts_last.to_string(), "2025-01-07 00:00:00.000000 JST");
}

#[test]
fn f12_the_day_s_limits_are_around_the_adjusted_close_to_the_nearest_tick() {
    // 1,000 for three becomes 333.3333, which is 333.5 with ticks of half a yen; 80 up and down.
    let trades = Market::default()
        .trade(6, 1.0, "1000", 500)
        .trade(7, 1.0, "334", 500)
        .trade(7, 2.0, "334", 500)
        .trade(7, 3.0, "334", 500);
    let hears = |price| {
        let script = Script::default().after(2, limit("O-1", Buy, 100, price));
        run(&trades, script, &changed(split(7, "0.33333333"))).1.last().unwrap().clone()
    };
    assert_eq!(hears("413.5"), "O-1 FILLED 100@334 t=2");
    assert!(hears("414").contains("PRICE_LIMIT: 414 is outside the day's range 253.5 to 413.5"));
}

#[test]
fn f12_the_rest_of_a_reverse_split_is_paid_in_cash() {
    let trades = Market::default()
        .trade(6, 1.0, "100", 500)
        .trade(6, 2.0, "100", 500)
        .trade(7, 1.0, "1010", 900)
        .trade(7, 2.0, "1020", 900);
    let bought = |shares, lot| {
        let options = changed(|options| {
            split(7, "10")(options);
            options.instruments[0].lot = Quantity::new(lot);
        });
        run(&trades, Script::default().after(1, market("O-1", Buy, shares)), &options).0
    };
    let result = bought(105, 5);
    // Ten shares of 1,000 yen, and 500 yen for the half.
    assert_eq!(result.totals.position_end, 10);
    assert_eq!(result.totals.cash_end, Money::from_yen(10_000_000 - 10_500 + 500));
    assert_eq!(result.totals.equity_end, Money::from_yen(10_000_200));
    assert_eq!(result.equity[0].equity, Money::from_yen(10_000_000));
    // Less than one new share: the position is gone, and its round trip with it.
    let result = bought(5, 5);
    assert_eq!((result.totals.position_end, result.round_trips.len()), (0, 1));
    assert_eq!(result.totals.equity_end, Money::from_yen(10_000_000));
    let trip = &result.round_trips[0];
    assert_eq!((trip.quantity, trip.sell_price), (5, Price::from_yen(100)));
    let summary = Summary::new(&result.totals);
    assert_eq!((summary.round_trips, summary.position_end), (1, 0));
}

#[test]
fn f12_the_strategy_is_told_and_trades_in_the_new_day() {
    let mut script = Script::default().after(1, market("O-1", Buy, 200));
    // 501 is far outside the range of the day before, which was around 1,000.
    script.on_account = vec![limit("O-2", Buy, 100, "501"), limit("O-3", Buy, 100, "800")];
    let (result, told) = run(&halved(), script, &changed(split(7, "0.5")));
    let at = told.iter().position(|words| words.starts_with("SPLIT")).unwrap();
    assert_eq!(told[at], "SPLIT 2 for 1: 400 held, 0 paid, last 501 t=-32400");
    let after = &told[at + 1..];
    assert_eq!(after[0], "O-2 SUBMITTED t=-32400");
    let rejected = after.iter().find(|words| words.starts_with("O-3 REJECTED")).unwrap();
    assert!(rejected.contains("PRICE_LIMIT: 800 is outside the day's range"), "{rejected}");
    assert!(after.iter().any(|words| words.starts_with("O-2 FILLED")), "{after:?}");
    assert_eq!(result.orders[1].ts_submitted.to_string(), "2025-01-07 00:00:00.000000 JST");
}

#[test]
fn f12_cash_for_a_rest_is_told() {
    let trades = Market::default()
        .trade(6, 1.0, "100", 500)
        .trade(6, 2.0, "100", 500)
        .trade(7, 1.0, "1010", 900);
    let options = changed(|options| {
        split(7, "10")(options);
        options.instruments[0].lot = Quantity::new(5);
    });
    let script = Script::default().after(1, market("O-1", Buy, 105));
    let (_, told) = run(&trades, script, &options);
    assert_eq!(told.last().unwrap(), "SPLIT 1 for 10: 10 held, 500 paid, last 1000 t=-32400");
    let (_, told) = run(&trades, Script::default(), &options);
    assert_eq!(told, ["SPLIT 1 for 10: 0 held, 0 paid, last 1000 t=-32400"], "with nothing held");
}

#[test]
fn f12_nothing_is_told_of_splits_up_to_the_first_day() {
    let (_, told) = run(&halved(), Script::default(), &changed(split(6, "0.5")));
    assert_eq!(told, [""; 0]);
}

#[test]
fn f12_results_do_not_depend_on_the_window() {
    let run_with = |window| {
        let script = Script::default()
            .after(1, market("O-1", Buy, 200))
            .after(2, until(8, limit("O-2", Buy, 100, "900")))
            .after(5, market("O-3", Sell, 300));
        let options = changed(|options| {
            split(7, "0.5")(options);
            options.window = window;
        });
        run(&halved(), script, &options).0.totals.digest
    };
    assert!([7, 64, 1_024].into_iter().all(|window| run_with(window) == run_with(1)));
    let without = run(&halved(), Script::default(), &changed(|_| {})).0.totals.digest;
    let with = run(&halved(), Script::default(), &changed(split(7, "0.5"))).0.totals.digest;
    assert_ne!(with, without, "a split is part of what happened");
}

#[test]
fn f12_a_split_up_to_the_first_day_changes_nothing() {
    let script = || Script::default().after(1, market("O-1", Buy, 200));
    let (plain, _) = run(&halved(), script(), &changed(|_| {}));
    let (split, _) = run(&halved(), script(), &changed(split(6, "0.5")));
    assert_eq!(plain.totals.digest, split.totals.digest);
}

#[test]
fn a_price_gap_with_a_position_warns_in_the_results() {
    let script = || Script::default().after(1, market("O-1", Buy, 200));
    let (result, _) = run(&halved(), script(), &changed(|_| {}));
    let [warning] = &result.totals.warnings[..] else { panic!("{:?}", result.totals.warnings) };
    assert!(warning.starts_with("PRICE GAP: 7203.TSE, 2025-01-07"), "{warning}");
    assert!(warning.contains("a trade at 501 lies outside"), "{warning}");
    let why = "; 200 shares were held over night. A split that is missing from the vendor's daily files \
               looks like this; profit and loss are then wrong";
    assert!(warning.ends_with(why), "{warning}");
    let (flat, _) = run(&halved(), Script::default(), &changed(|_| {}));
    assert!(flat.totals.warnings.is_empty(), "nothing is held");
}

#[test]
fn f12_a_factor_that_the_first_price_does_not_fit_warns_in_the_results() {
    // 1,002 yen becomes 100.2 by the factor, and the next trade is at 501.
    let wrong = warnings(&halved(), split(7, "0.1"));
    let [warning] = &wrong[..] else { panic!("{wrong:?}") };
    assert!(warning.starts_with("SPLIT FACTOR: 7203.TSE, 2025-01-07"), "{warning}");
    assert!(warning.contains("a trade at 501 lies outside"), "{warning}");
    assert!(
        warning.ends_with(
            "the vendor's factor of that day, 10 for 1 shares, does not fit these prices; if it is \
             wrong, profit and loss are wrong too"
        ),
        "{warning}"
    );
    let (flat, _) = run(&halved(), Script::default(), &changed(split(7, "0.1")));
    assert_eq!(flat.totals.warnings.len(), 1, "a strategy that holds nothing saw wrong prices too");
    assert_eq!(warnings(&halved(), split(7, "0.5")), [""; 0]);
    // A factor of the day before says nothing of today's range.
    let later = halved().trade(8, 1.0, "2000", 900);
    assert_eq!(
        warnings(&later, |options| {
            split(7, "0.5")(options);
            options.split_dates_known = vec![vec![JstDate::from_ymd_opt(2025, 1, 8).unwrap()]];
        }),
        [""; 0]
    );
}

/// What a run says of price gaps with 200 shares held from the first day on.
fn warnings(trades: &Market, change: impl FnOnce(&mut ReplayOptions)) -> Vec<String> {
    let script = Script::default().after(1, market("O-1", Buy, 200));
    run(trades, script, &changed(change)).0.totals.warnings
}

#[test]
fn a_range_that_is_left_inside_a_day_is_no_price_gap() {
    let first = Market::default().trade(6, 1.0, "1000", 500).trade(6, 2.0, "1000", 500);
    let later = first.clone().trade(6, 3.0, "2000", 500).trade(7, 1.0, "2000", 500);
    assert_eq!(warnings(&later, |_| {}), [""; 0]);
    let opens_inside = first.clone().trade(7, 1.0, "1000", 500).trade(7, 2.0, "500", 500);
    assert_eq!(warnings(&opens_inside, |_| {}), [""; 0]);
    let opens_outside = first.trade(7, 1.0, "500", 500).trade(7, 2.0, "2500", 500);
    assert_eq!(warnings(&opens_outside, |_| {}).len(), 1, "and only once");
}

#[test]
fn a_day_whose_factor_is_known_has_no_price_gap() {
    let day = |day: u32| JstDate::from_ymd_opt(2025, 1, day).unwrap();
    let known = |days: &[u32]| {
        let dates = days.iter().map(|of| day(*of)).collect();
        move |options: &mut ReplayOptions| options.split_dates_known = vec![dates]
    };
    assert_eq!(warnings(&halved(), known(&[7])), [""; 0]);
    assert_eq!(warnings(&halved(), known(&[6, 8])).len(), 1, "of other days");
    // Nothing trades on Tuesday the 7th, where the split may have been.
    let trades = Market::default()
        .trade(6, 1.0, "1000", 500)
        .trade(6, 2.0, "1000", 500)
        .trade(8, 1.0, "500", 500);
    assert_eq!(warnings(&trades, known(&[8])).len(), 1);
    assert_eq!(warnings(&trades, known(&[7, 8])), [""; 0]);
    // From Friday over a holiday to Tuesday.
    let trades = Market::default()
        .trade(10, 1.0, "1000", 500)
        .trade(10, 2.0, "1000", 500)
        .trade(14, 1.0, "500", 500);
    assert_eq!(warnings(&trades, known(&[14])), [""; 0], "there was no day between");
}

#[test]
fn f12_the_base_price_is_rounded_to_the_steps_of_its_day() {
    // 333.3333 is 333 with the steps that the issue has from the ex-date on, and not 333.5.
    let trades = Market::default()
        .trade(6, 1.0, "1000", 500)
        .trade(7, 1.0, "334", 500)
        .trade(7, 2.0, "334", 500)
        .trade(7, 3.0, "334", 500);
    let hears = |price| {
        let options = changed(|options| {
            split(7, "0.33333333")(options);
            let date = JstDate::from_ymd_opt(2025, 1, 7).unwrap();
            let (lot, ticks) = (Quantity::new(100), TickTable::Normal);
            let instrument = InstrumentIx(0);
            options.unit_changes = vec![UnitChange { date, instrument, lot, ticks }];
        });
        let script = Script::default().after(2, limit("O-1", Buy, 100, price));
        run(&trades, script, &options).1.last().unwrap().clone()
    };
    assert_eq!(hears("413"), "O-1 FILLED 100@334 t=2");
    assert!(hears("414").contains("PRICE_LIMIT: 414 is outside the day's range 253 to 413"));
}

#[test]
fn f12_a_reverse_split_comes_with_a_smaller_lot() {
    // As most issues did until October 2018: ten shares become one, and the lot 100 instead of 1,000.
    let trades = Market::default()
        .trade(6, 1.0, "100", 5_000)
        .trade(6, 2.0, "100", 5_000)
        .trade(7, 1.0, "1000", 500)
        .trade(7, 2.0, "1010", 500);
    let options = changed(|options| {
        split(7, "10")(options);
        options.instruments[0].lot = Quantity::new(1_000);
        let date = JstDate::from_ymd_opt(2025, 1, 7).unwrap();
        let (lot, ticks) = (Quantity::new(100), options.instruments[0].ticks);
        options.unit_changes = vec![UnitChange { date, instrument: InstrumentIx(0), lot, ticks }];
    });
    let script = Script::default()
        .after(1, market("O-1", Buy, 2_000))
        .after(2, until(8, limit("O-2", Buy, 1_000, "90")))
        .after(3, market("O-3", Sell, 200));
    let (result, told) = run(&trades, script, &options);
    assert!(told.contains(&"O-2 EXPIRED EX_RIGHTS t=-32400".to_owned()), "{told:#?}");
    assert_eq!(told.last().unwrap(), "O-3 FILLED 200@1010 t=2");
    assert_eq!(result.totals.realised_pnl, Money::from_yen(2_000));
}

#[test]
fn f12_equity_does_not_jump_with_a_split_whatever_its_terms() {
    let (mut paid, mut reverse) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::new(&[seed, 12]);
        let terms = [10, 1_000][random.place(2)];
        let (new, old) = (1 + random.below(terms), 1 + random.below(terms));
        let factor = format!("{:.8}", old as f64 / new as f64);
        let adjustment = Adjustment::of_price_factor(&factor).unwrap();
        let price = Price::from_units(5_000 * (200 + random.below(4_000)) as i64);
        let shares = 1 + random.below(3_000);
        let after = adjustment.price(price);
        let trades = Market::default()
            .trade(6, 1.0, &price.to_string(), 10_000)
            .trade(6, 2.0, &price.to_string(), 10_000)
            .trade(7, 1.0, &after.to_string(), 10_000);
        let options = changed(|options| {
            split(7, &factor)(options);
            options.instruments[0].lot = Quantity::new(1);
            options.base_prices = vec![Some(price)];
        });
        let (result, _) =
            run(&trades, Script::default().after(1, market("O-1", Buy, shares)), &options);
        assert_eq!(result.totals.fill_count, 1, "seed {seed}");
        let equity: Vec<Money> = result.equity.iter().map(|row| row.equity).collect();
        let [before, .., on_ex_date] = equity[..] else { panic!("seed {seed}: {equity:?}") };
        // The price is rounded by half a unit for each share, and the cash for a rest is cut off.
        let most = result.totals.position_end / 2 + 2;
        let jump = (on_ex_date - before).units().abs();
        let what = format!("seed {seed}: {shares} at {price}, {adjustment} ({factor})");
        assert!(jump <= most, "{what}: {before} before, {on_ex_date} after");
        assert_eq!(result.totals.warnings, [""; 0], "{what}");
        paid += usize::from(adjustment.shares(shares as i64).rest > 0);
        reverse += usize::from(old > new);
    }
    assert!(paid > 50 && reverse > 50, "{paid} with a rest, {reverse} reverse");
}
