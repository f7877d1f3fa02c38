//! F11, same-day round trips on a cash account: each test carries the rule's name.

use crate::common::{
    Market, Script, changed, in_memory, instrument, limit, market, modify, run, told, with,
};
use crate::driver_sessions::parts;
use domain::strategy::Action;
use domain::{Money, OrderModify, OrderSide, Quantity, TimeInForce};
use exchange::SameDayRoundTrips;
use replay::{MarketDay, ReplayOptions, Unpaced};

use OrderSide::{Buy, Sell};

/// Ten trades at 1,000 yen, ten seconds apart, on each of two days.
fn two_days() -> Market {
    [6, 7].into_iter().fold(Market::default(), |market, day| {
        (1..=10).fold(market, |market, second| {
            market.trade(day, 10.0 * f64::from(second), "1000", 1_000)
        })
    })
}

/// What becomes of limit orders at 1,000 yen, each sent after a trade.
fn hears(cash: i64, orders: &[(u64, OrderSide, u64)]) -> Vec<String> {
    hears_with(cash, orders, |_| {})
}

fn hears_with(
    cash: i64,
    orders: &[(u64, OrderSide, u64)],
    change: impl FnOnce(&mut ReplayOptions),
) -> Vec<String> {
    let script = orders.iter().enumerate().fold(Script::default(), |script, (index, order)| {
        let (after, side, shares) = *order;
        script.after(after, limit(&format!("O-{}", index + 1), side, shares, "1000"))
    });
    let options = changed(|o| {
        o.cash = Money::from_yen(cash);
        change(o);
    });
    told(&two_days(), script, &options)
}

#[track_caller]
fn is_rejected(told: &[String], index: usize, text: &str) {
    let line = &told[index];
    assert!(line.contains("REJECTED VENUE_REJECTED: SAKIN_KESSAI: "), "{told:#?}");
    assert!(line.contains(text), "{text} is not in {line}");
}

#[test]
fn f11_buy_sell_buy_needs_other_money() {
    let trip = [(2, Buy, 100), (3, Sell, 100), (4, Buy, 100)];
    let told = hears(100_000, &trip);
    assert_eq!(told[..2], ["O-1 FILLED 100@1000 t=30", "O-2 FILLED 100@1000 t=40"]);
    let why = "because 100000 yen are from today's sale of its shares that were bought today";
    let pays = |yen: u64| {
        format!(
            "the order needs up to 100000 yen, and {yen} yen can pay for this issue today, {why}"
        )
    };
    is_rejected(&told, 2, &pays(0));
    is_rejected(&hears(199_999, &trip), 2, &pays(99_999));
    assert_eq!(hears(200_000, &trip)[2], "O-3 FILLED 100@1000 t=50", "other cash is free");
}

#[test]
fn f11_the_next_day_is_free() {
    let told = hears(100_000, &[(2, Buy, 100), (3, Sell, 100), (11, Buy, 100)]);
    assert_eq!(told[2], "O-3 FILLED 100@1000 t=20");
    // Sent after the close, an order is for the next day.
    let trades = two_days()
        .at_times(7, &[("15:30:00", "1000", 1_000)])
        .at_times(8, &[("09:00:00", "1000", 1_000), ("09:00:01", "1000", 1_000)]);
    let script = Script::default()
        .after(12, limit("O-1", Buy, 100, "1000"))
        .after(13, limit("O-2", Sell, 100, "1000"))
        .after(21, limit("O-3", Buy, 100, "1001"));
    let told = told_with(&trades, script, 100_100);
    assert_eq!(told[2], "O-3 FILLED 100@1000 t=0");
}

fn told_with(trades: &Market, script: Script, cash: i64) -> Vec<String> {
    told(trades, script, &changed(|o| o.cash = Money::from_yen(cash)))
}

#[test]
fn f11_sell_buy_sell_waits_for_the_next_day() {
    // Bought on the first day; on the second sold, bought with that money, and sold again.
    let trip = [(2, Buy, 100), (12, Sell, 100), (13, Buy, 100), (14, Sell, 100)];
    let told = hears(100_000, &trip);
    assert_eq!(told[1..3], ["O-2 FILLED 100@1000 t=30", "O-3 FILLED 100@1000 t=40"]);
    is_rejected(&told, 3, "100 of 100 shares were bought with the money of today's sale");
    assert_eq!(hears(200_000, &trip)[3], "O-4 FILLED 100@1000 t=50", "bought with other cash");
}

#[test]
fn f11_shares_held_from_before_are_sold_first_and_are_free() {
    // 200 from the day before; 100 are bought with other cash. The first 200 sold are the old ones,
    // so their money buys again; the next 100 are today's.
    let orders = [
        (2, Buy, 200),
        (11, Buy, 100),
        (13, Sell, 200),
        (14, Buy, 200),
        (15, Sell, 100),
        (16, Sell, 100),
        (17, Buy, 100),
    ];
    let told = hears(300_000, &orders);
    assert_eq!(told[3], "O-4 FILLED 200@1000 t=50");
    assert_eq!(told[4], "O-5 FILLED 100@1000 t=60");
    is_rejected(&told, 5, "200 of 200 shares");
    is_rejected(
        &told,
        6,
        "0 yen can pay for this issue today, because 100000 yen are from today's",
    );
}

#[test]
fn f11_other_issues_are_free() {
    let other = |id: &str, side| with(limit(id, side, 100, "1000"), |order| order.instrument.0 = 1);
    let script = Script::default()
        .after(2, limit("O-1", Buy, 100, "1000"))
        .after(3, limit("O-2", Sell, 100, "1000"))
        .after(4, other("O-3", Buy));
    let options = changed(|o| {
        o.cash = Money::from_yen(100_000);
        o.instruments.push(instrument("6758.TSE"));
    });
    // The other issue has no trades here; what counts is that its order works.
    let told = told(&two_days(), script, &options);
    assert!(told[2].starts_with("O-3 EXPIRED"), "{told:#?}");
}

#[test]
fn f11_what_another_issue_has_spent_is_gone_and_its_sale_is_other_money() {
    // Of the second issue 100 shares are held from the day before. The first one goes in and out, what
    // that brings buys the second one, and the sale of its old shares pays for the first one again.
    let of_second =
        |id: &str, side| with(limit(id, side, 100, "1000"), |order| order.instrument.0 = 1);
    let day = |day, first| {
        (1..=10).fold(Market::default(), |market, trade| {
            market.trade(day, first + 10.0 * f64::from(trade), "1000", 1_000)
        })
    };
    // Odd trades are of the first issue, even ones of the second.
    let days = [6, 7].map(|date| [day(date, 0.0), day(date, 5.0)]);
    let mut script = Script::default()
        .after(3, of_second("O-1", Buy))
        .after(22, limit("O-2", Buy, 100, "1000"))
        .after(24, limit("O-3", Sell, 100, "1000"))
        .after(26, of_second("O-4", Buy))
        .after(29, of_second("O-5", Sell))
        .after(32, limit("O-6", Buy, 100, "1000"));
    let options = changed(|o| {
        o.cash = Money::from_yen(200_000);
        o.instruments.push(instrument("6758.TSE"));
    });
    let days = days.iter().map(|markets| MarketDay::Trades(parts(markets)));
    in_memory(days, &mut script, &options, &mut Unpaced);
    for id in ["O-1", "O-2", "O-3", "O-4", "O-5", "O-6"] {
        let filled = format!("{id} FILLED");
        assert!(
            script.told.iter().any(|line| line.starts_with(&filled)),
            "{id}: {:#?}",
            script.told
        );
    }
}

#[test]
fn f11_a_change_is_checked_like_an_order_and_a_cheaper_one_never_rejected() {
    let change = |quantity| OrderModify {
        quantity: Some(Quantity::new(quantity)),
        ..OrderModify::default()
    };
    let script = |quantity| {
        Script::default()
            .after(1, limit("O-1", Buy, 200, "900"))
            .after(2, market("O-2", Buy, 100))
            .after(3, market("O-3", Sell, 100))
            .after(4, modify(change(quantity)))
    };
    // 180,000 are reserved at first, up to 130,000 for the market order.
    let hears = |quantity| told_with(&two_days(), script(quantity), 310_000);
    is_rejected(
        &hears(300),
        2,
        "the order needs up to 270000 yen, and 210000 yen can pay for this issue",
    );
    assert_eq!(hears(100)[2], "O-1 ACCEPTED updated t=40");
    // It is among those that were rejected.
    let options = changed(|o| o.cash = Money::from_yen(310_000));
    let counted = |quantity| run(&two_days(), script(quantity), &options).0.totals.notes;
    let count = |count: &str| vec![format!("same-day round trips (F11): {count} rejected")];
    assert_eq!(counted(300), count("1 order was"));
    assert_eq!(counted(100), count("0 orders were"));
}

#[test]
fn f11_can_be_allowed() {
    let orders = [(2, Buy, 100), (3, Sell, 100), (4, Buy, 100), (5, Sell, 100)];
    let allow = |o: &mut ReplayOptions| o.model.same_day_round_trips = SameDayRoundTrips::Allow;
    let told = hears_with(100_000, &orders, allow);
    assert!(told.iter().all(|line| line.contains("FILLED")), "{told:#?}");
    assert_eq!(told.len(), 4);
}

#[test]
fn f11_an_order_for_a_later_auction_is_for_its_own_day() {
    let open = |action: Action| with(action, |order| order.time_in_force = TimeInForce::AtTheOpen);
    let trades =
        two_days().at_times(8, &[("12:31:00", "1000", 1_000), ("12:32:00", "1000", 1_000)]);
    let trades = trades
        .at_times(8, &[("12:33:00", "1000", 1_000), ("12:34:00", "1000", 1_000)])
        .at_times(9, &[("09:00:00", "1000", 1_000)]);
    let script = Script::default()
        .after(21, limit("O-1", Buy, 100, "1000"))
        .after(22, limit("O-2", Sell, 100, "1000"))
        .after(23, open(limit("O-3", Buy, 100, "1001")));
    assert_eq!(told_with(&trades, script, 100_100)[2], "O-3 FILLED 100@1000 t=0");
}

/// What becomes of 1,800 shares that are bought at 500 yen and sold again, and of 100 more that are to be bought at the
/// market after a trade; the day's range ends at 600, and at 900 once a trade has left it.
fn hears_around_500(trades: &Market, (after, life): (u64, TimeInForce), cash: i64) -> Vec<String> {
    let script = Script::default()
        .after(1, limit("O-1", Buy, 1_800, "500"))
        .after(2, market("O-2", Sell, 1_800))
        .after(after, with(market("O-3", Buy, 100), |order| order.time_in_force = life));
    let options = changed(|o| {
        o.cash = Money::from_yen(cash);
        o.base_prices = vec![Some(domain::Price::from_yen(500))];
    });
    told(trades, script, &options)
}

/// Trades at 500 yen at these times.
fn at_500(times: &[&str]) -> Market {
    let trades: Vec<_> = times.iter().map(|time| (*time, "500", 10_000)).collect();
    Market::default().at_times(6, &trades)
}

#[test]
fn f11_holds_when_the_day_s_range_widens() {
    let trades = at_500(&["09:00:00", "09:01:00", "09:02:00", "09:03:00", "12:30:00"])
        .at_times(6, &[("14:00:00", "650", 10_000), ("15:30:00", "850", 10_000)]);
    let hears = |cash| hears_around_500(&trades, (5, TimeInForce::AtTheClose), cash);
    // 900,000 yen are from shares bought today: what is beyond them pays for the order.
    let rejected = hears(989_999);
    is_rejected(&rejected, 2, "the order needs up to 90000 yen, and 89999 yen can pay");
    assert!(rejected[2].ends_with("t=18000"), "when the range widens: {rejected:#?}");
    assert_eq!(hears(990_000)[2], "O-3 FILLED 100@850 t=23400");
}

#[test]
fn f11_holds_when_an_auction_s_own_price_widens_the_range() {
    let morning = ["09:00:00", "09:01:00", "09:02:00", "09:03:00", "11:30:00"];
    let afternoon = [&morning[..], &["12:31:00"]].concat();
    // The next price is that of an auction.
    for (life, before, time, seconds) in [
        (TimeInForce::AtTheClose, &afternoon[..], "15:30:00", 23_400),
        (TimeInForce::AtTheOpen, &morning[..], "12:30:00", 12_600),
        (TimeInForce::Day, &morning[..], "12:30:00", 12_600),
    ] {
        let trades = at_500(before).at_times(6, &[(time, "850", 10_000)]);
        let hears = |cash| hears_around_500(&trades, (before.len() as u64, life), cash);
        let rejected = hears(965_000);
        is_rejected(&rejected, 2, "the order needs up to 90000 yen, and 65000 yen can pay");
        assert_eq!(hears(990_000)[2], format!("O-3 FILLED 100@850 t={seconds}"), "{life:?}");
    }
}
