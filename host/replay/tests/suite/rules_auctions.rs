//! Auctions (Itayose) and gaps: F4 and F6-AUCTION, each with tests that carry their name.

use crate::common::{
    self, Market, Script, changed, in_memory, limit, lives, market, options, run, told, until,
};
use domain::market::{Bar, BarGranularity};
use domain::strategy::Action;
use domain::time::NANOS_PER_MINUTE;
use domain::{InstrumentIx, Money, OrderSide, Price, Quantity, TickTable, TimeInForce, TsNanos};
use proptest::prelude::*;
use replay::{MarketDay, ReplayOptions, Unpaced};
use results::RunResult;

use OrderSide::{Buy, Sell};

/// A day that opens at 1,000 with 1,000 shares and goes on at 1,003.
fn opening() -> Market {
    Market::default().at_times(
        6,
        &[
            ("09:00:00.5", "1000", 1_000),
            ("09:00:01", "1003", 300),
            ("09:00:02", "1000", 300),
            ("11:30:00", "990", 500),
        ],
    )
}

/// What becomes of orders that are there before the open.
fn hears(orders: &[Action], change: impl FnOnce(&mut ReplayOptions)) -> Vec<String> {
    let script = |script: Script, order: &Action| script.after(0, order.clone());
    told(&opening(), orders.iter().fold(Script::default(), script), &changed(change))
}

#[test]
fn f6_auction_orders_of_the_day_fill_at_its_price_and_without_slippage() {
    let slips = |o: &mut ReplayOptions| o.model.slippage_ticks = 3;
    assert_eq!(hears(&[market("O-1", Buy, 100)], slips), ["O-1 FILLED 100@1000 t=0.5"]);
    assert_eq!(hears(&[limit("O-1", Buy, 100, "1010")], slips), ["O-1 FILLED 100@1000 t=0.5"]);
    let resting = limit("O-1", Buy, 100, "992");
    assert_eq!(hears(&[resting], slips), ["O-1 FILLED 100@990 t=9000"], "the morning's close");
}

#[test]
fn f6_auction_an_order_that_rests_from_an_earlier_day_gets_the_opening_price() {
    let trades = Market::default()
        .at_times(6, &[("10:00:00", "1000", 100), ("10:01:00", "1000", 100)])
        .at_times(7, &[("09:00:00", "980", 100), ("09:01:00", "970", 100)]);
    let script = Script::default().after(1, until(7, limit("O-1", Buy, 200, "990")));
    assert_eq!(
        told(&trades, script, &options()),
        ["O-1 PARTIALLY_FILLED 100@980 t=0", "O-1 FILLED 100@990 t=60"],
        "and its own price in the session"
    );
}

#[test]
fn f6_auction_a_limit_equal_to_its_price_fills_from_what_the_queue_leaves() {
    let equal = |queue_ahead| {
        hears(&[limit("O-1", Buy, 500, "1000")], |o| o.model.queue_ahead = queue_ahead)
    };
    assert_eq!(equal(None), ["O-1 FILLED 500@990 t=9000"], "never at a touch");
    assert_eq!(
        equal(Some(700)),
        ["O-1 PARTIALLY_FILLED 300@1000 t=0.5", "O-1 FILLED 200@1000 t=2"]
    );
    assert_eq!(equal(Some(500)), ["O-1 FILLED 500@1000 t=0.5"]);
    let better = limit("O-2", Buy, 600, "1001");
    assert_eq!(
        hears(&[limit("O-1", Buy, 500, "1000"), better], |o| o.model.queue_ahead = Some(200)),
        [
            "O-2 FILLED 600@1000 t=0.5",
            "O-1 PARTIALLY_FILLED 200@1000 t=0.5",
            "O-1 FILLED 300@1000 t=2"
        ],
        "the better limit comes first and takes from the same volume"
    );
}

#[test]
fn f3_an_auction_goes_by_price_then_by_age() {
    let orders = [
        limit("O-1", Buy, 200, "1001"),
        limit("O-2", Buy, 200, "1005"),
        lives(TimeInForce::AtTheOpen, limit("O-3", Buy, 200, "1005")),
        market("O-4", Buy, 200),
    ];
    assert_eq!(
        hears(&orders, |o| o.model.participation_percent = 50),
        [
            "O-4 FILLED 200@1000 t=0.5",
            "O-2 FILLED 200@1000 t=0.5",
            "O-3 PARTIALLY_FILLED 100@1000 t=0.5",
            "O-3 EXPIRED AT_THE_OPEN t=0.5",
            "O-1 PARTIALLY_FILLED 100@1001 t=2",
            "O-1 FILLED 100@990 t=9000"
        ],
        "half of 1,000 shares; what is left of a limit goes on in the session"
    );
}

#[test]
fn f4_a_gap_through_a_resting_limit_fills_at_the_limit_with_the_volume_beyond_it() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 2.0, "1000", 900)
        .trade(6, 3.0, "985", 200)
        .trade(6, 4.0, "1000", 900)
        .trade(6, 5.0, "994", 100);
    let script = Script::default().after(1, limit("O-1", Buy, 500, "995"));
    assert_eq!(
        told(&trades, script, &options()),
        [
            "O-1 PARTIALLY_FILLED 200@995 t=3",
            "O-1 PARTIALLY_FILLED 100@995 t=5",
            "O-1 EXPIRED END_OF_DATA t=23400"
        ]
    );
}

#[test]
fn f2_slippage_steps_along_the_tick_table() {
    let trades = Market::default()
        .trade(6, 1.0, "2999", 100)
        .trade(6, 2.0, "3000", 100)
        .trade(6, 3.0, "3005", 100);
    let hears = |slippage_ticks| {
        let options = changed(|o| {
            o.instruments[0].ticks = TickTable::Normal;
            o.model.slippage_ticks = slippage_ticks;
        });
        let script =
            Script::default().after(1, market("O-1", Buy, 100)).after(2, market("O-2", Sell, 100));
        told(&trades, script, &options)
    };
    assert_eq!(hears(1), ["O-1 FILLED 100@3005 t=2", "O-2 FILLED 100@3000 t=3"]);
    assert_eq!(hears(3), ["O-1 FILLED 100@3015 t=2", "O-2 FILLED 100@2998 t=3"]);
}

/// Minutes with one trade each, in every session and auction.
const MINUTES: [u64; 16] =
    [540, 541, 542, 543, 545, 548, 550, 560, 690, 750, 751, 752, 755, 760, 770, 930];

/// One trade in the middle of each minute, and the bars that the trades make.
fn both(rows: &[(i64, u64)]) -> (Market, MarketDay<'static>) {
    let mut market = Market::default();
    let mut bars = vec![];
    for (minute, (ticks, lots)) in MINUTES.iter().zip(rows) {
        let start = common::at(6, 0.0) - 540 * NANOS_PER_MINUTE + minute * NANOS_PER_MINUTE;
        let price = Price::from_units(10_000_000 + ticks * 5_000);
        market.ts.push(start + NANOS_PER_MINUTE / 2);
        market.price.push(price.units());
        market.quantity.push(lots * 60);
        bars.push(Bar {
            ts_event: TsNanos::from_nanos(start + NANOS_PER_MINUTE),
            instrument: InstrumentIx(0),
            granularity: BarGranularity::Minute,
            open: price,
            high: price,
            low: price,
            close: price,
            volume: Quantity::new(lots * 60),
        });
    }
    (market, MarketDay::bars(bars))
}

/// Trades at prices in yen, each minute's one after the other, and the bars that they make.
fn minutes(rows: &[(u64, &[i64])]) -> (Market, MarketDay<'static>) {
    let mut market = Market::default();
    let mut bars = vec![];
    for (minute, yen) in rows {
        let start = common::at(6, 0.0) - 540 * NANOS_PER_MINUTE + minute * NANOS_PER_MINUTE;
        let prices: Vec<Price> = yen.iter().map(|yen| Price::from_yen(*yen)).collect();
        for (second, price) in (1..).zip(&prices) {
            market.ts.push(start + second * common::SECOND);
            market.price.push(price.units());
            market.quantity.push(1_000);
        }
        bars.push(Bar {
            ts_event: TsNanos::from_nanos(start + NANOS_PER_MINUTE),
            instrument: InstrumentIx(0),
            granularity: BarGranularity::Minute,
            open: prices[0],
            high: *prices.iter().max().unwrap(),
            low: *prices.iter().min().unwrap(),
            close: *prices.last().unwrap(),
            volume: Quantity::new(1_000 * prices.len() as u64),
        });
    }
    (market, MarketDay::bars(bars))
}

/// What becomes of orders on trades and on the bars that these make, which is the same.
#[track_caller]
fn both_tell(rows: &[(u64, &[i64])], yen: i64, orders: &[(u64, Action)], wanted: &[&str]) {
    let script = || {
        let after = |script: Script, order: &(u64, Action)| script.after(order.0, order.1.clone());
        orders.iter().fold(Script::default(), after)
    };
    let options = changed(|o| o.cash = Money::from_yen(yen));
    let (trades, day) = minutes(rows);
    let (of_trades, _) = run(&trades, script(), &options);
    let of_bars = in_memory([day], &mut script(), &options, &mut Unpaced);
    assert_eq!(fills(&of_trades), wanted, "on trades");
    assert_eq!(fills(&of_bars), wanted, "on bars");
}

/// Whoever fills at a bar's open needs no cash for the range that the bar's later prices make, and no other money
/// for a same-day round trip.
#[test]
fn f10_a_bar_s_open_comes_before_the_prices_that_leave_the_range() {
    let quiet: &[i64] = &[1_000];
    for left in [[1_000, 1_310], [1_000, 690]] {
        let rows = [(540, quiet), (541, quiet), (542, &left[..]), (543, &left[1..])];
        // Up to 1,300 yen a share are expected when it is sent, and up to 2,200 above that.
        both_tell(&rows, 135_000, &[(2, market("O-1", Buy, 100))], &["O-1 100@1000"]);
    }
    let mut rows: Vec<(u64, &[i64])> = (540..545).map(|minute| (minute, quiet)).collect();
    rows.push((545, &[1_000, 1_310]));
    let orders = [
        (1, limit("O-1", Buy, 100, "1000")),
        (3, market("O-2", Sell, 100)),
        (5, market("O-3", Buy, 100)),
    ];
    let wanted = ["O-1 100@1000", "O-2 100@1000", "O-3 100@1000"];
    both_tell(&rows, 235_000, &orders, &wanted);
    // An auction at the open is no other.
    let rows = [(540, quiet), (690, quiet), (750, &[1_000, 1_310][..])];
    both_tell(&rows, 135_000, &[(2, market("O-1", Buy, 100))], &["O-1 100@1000"]);
    // Where the open itself leaves the range, nothing came before.
    let rows = [(540, quiet), (541, quiet), (542, &[1_310, 1_000][..])];
    both_tell(&rows, 135_000, &[(2, market("O-1", Buy, 100))], &[]);
}

fn script(draws: &[(u64, bool, bool, u64, i64)]) -> Script {
    draws.iter().enumerate().fold(Script::default(), |script, (number, draw)| {
        let (after, buys, has_limit, lots, ticks) = *draw;
        let (id, side) = (format!("O-{number}"), if buys { Buy } else { Sell });
        let price = Price::from_units(10_000_000 + ticks * 5_000).to_string();
        let order = if has_limit {
            limit(&id, side, lots * 100, &price)
        } else {
            market(&id, side, lots * 100)
        };
        script.after(after, order)
    })
}

fn fills(result: &RunResult) -> Vec<String> {
    let words = |fill: &results::rows::FillRow| {
        format!("{} {}@{}", fill.client_order_id, fill.quantity, fill.price)
    };
    result.fills.iter().map(words).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Where a bar is one trade, both ways of replaying it fill the same orders at the same prices.
    #[test]
    fn trades_and_bars_agree(
        rows in prop::collection::vec((-9..=9_i64, 1..9_u64), 16),
        draws in prop::collection::vec((0..15_u64, any::<bool>(), any::<bool>(), 1..5_u64, -9..=9_i64), 1..20),
        queue_ahead in prop::sample::select(vec![None, Some(0)]),
        participation_percent in 20..=100_u32,
    ) {
        let options = changed(|o| {
            o.model.queue_ahead = queue_ahead;
            o.model.participation_percent = participation_percent;
        });
        let (market, day) = both(&rows);
        let (of_trades, _) = run(&market, script(&draws), &options);
        let of_bars = in_memory([day], &mut script(&draws), &options, &mut Unpaced);
        prop_assert_eq!(fills(&of_trades), fills(&of_bars));
    }
}
