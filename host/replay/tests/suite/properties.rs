//! What must hold for every market and every strategy: drawn at random, the seed is printed on a
//! failure.

use std::collections::BTreeMap;

use crate::common::{
    self, Market, Script, limit, lives, market, options, run, stop, stop_limit, tagged, until,
};
use domain::OrderCommand;
use domain::OrderRecord;
use domain::Origin;
use domain::execution::ExecutionClient;
use domain::market::Trade;
use domain::market::TradeColumns;
use domain::strategy::Action;
use domain::{
    InstrumentIx, Money, OrderModify, OrderSide, OrderStatus, OrderType, Price, Quantity,
    TimeInForce, TsNanos,
};
use exchange::ExecutionModel;
use exchange::{Commission, Exchange};
use proptest::prelude::*;
use replay::{MarketDay, ReplayOptions, TradingDay};
use results::RunResult;
use results::rows::FillRow;

/// A command: after which trade, what, and some numbers for it.
type Draw = (u64, u8, bool, u64, i64, i64);

/// Times of a trading day in seconds after 09:00, in every session and auction.
const TIMES: [(f64, f64); 5] = [
    (0.0, 60.0),
    (8_990.0, 9_010.0),
    (12_600.0, 12_640.0),
    (23_050.0, 23_100.0),
    (23_400.0, 23_401.0),
];

/// A market of two days: half seconds, so that some trades share an instant.
fn markets() -> impl Strategy<Value = Market> {
    let trade = (0..2_usize, 0..TIMES.len(), 0..40_u32, -12..=12_i64, 1..12_u64);
    prop::collection::vec(trade, 5..60).prop_map(|draws| {
        let mut rows: Vec<_> = draws
            .into_iter()
            .map(|(day, time, step, ticks, lots)| {
                let (from, to) = TIMES[time];
                let second = (from + f64::from(step) * 0.5).min(to);
                (common::at([6, 7][day], second), 10_000_000 + ticks * 5_000, lots * 60)
            })
            .collect();
        rows.sort_by_key(|row| row.0);
        let mut market = Market::default();
        for (ts, price, quantity) in rows {
            market.ts.push(ts);
            market.price.push(price);
            market.quantity.push(quantity);
        }
        market
    })
}

fn models() -> impl Strategy<Value = ExecutionModel> {
    let latency = prop_oneof![Just(0), 1..3_000_000_000_u64, 0..9_000_000_000_000_u64];
    let queue = prop_oneof![Just(None), (0..2_000_u64).prop_map(Some)];
    let fees = prop_oneof![
        Just("none"),
        Just("450ppm,min=50,max=2000"),
        Just("order:3000"),
        Just("tiers:100000=99,200000=1500,90000")
    ];
    (latency, 0..4_u32, 1..=100_u32, queue, fees).prop_map(
        |(latency_ns, slippage_ticks, participation_percent, queue_ahead, fees)| ExecutionModel {
            latency_ns,
            slippage_ticks,
            participation_percent,
            queue_ahead,
            commission: fees.parse::<Commission>().unwrap(),
            ..ExecutionModel::default()
        },
    )
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0..50_u64, 0..12_u8, any::<bool>(), 1..8_u64, -10..=10_i64, -10..=10_i64);
    prop::collection::vec(draw, 1..40)
}

fn price(ticks: i64) -> String {
    Price::from_units(10_000_000 + ticks * 5_000).to_string()
}

fn action(number: usize, (_, kind, buys, lots, near, far): Draw) -> Action {
    let id = format!("O-{number}");
    let side = if buys { OrderSide::Buy } else { OrderSide::Sell };
    let shares = lots * 100;
    let earlier = |back: i64| format!("O-{}", number.saturating_sub(back.unsigned_abs() as usize));
    match kind {
        0..=2 => market(&id, side, shares),
        3 | 4 => limit(&id, side, shares, &price(near)),
        5 => stop(&id, side, shares, &price(near)),
        6 => stop_limit(&id, side, shares, &price(near), &price(far)),
        7 => lives(TimeInForce::AtTheOpen, limit(&id, side, shares, &price(near))),
        8 => lives(TimeInForce::AtTheClose, market(&id, side, shares)),
        9 => {
            let order = lives(TimeInForce::AtTheClose, limit(&id, side, shares, &price(near)));
            tagged(order, &["close_strategy=funari"])
        }
        10 => until(7, limit(&id, side, shares, &price(near))),
        _ if far > 3 => {
            Action::Order(OrderCommand::Cancel { client_order_id: earlier(near).into() })
        }
        _ => Action::Order(OrderCommand::Modify {
            client_order_id: earlier(near).into(),
            change: OrderModify {
                quantity: (far % 2 == 0).then(|| Quantity::new(shares)),
                price: (far % 3 == 0).then(|| price(far).parse().unwrap()),
                ..OrderModify::default()
            },
        }),
    }
}

fn script(draws: &[Draw]) -> Script {
    draws.iter().enumerate().fold(Script::default(), |script, (number, draw)| {
        script.after(draw.0, action(number, *draw))
    })
}

fn cases() -> impl Strategy<Value = (Market, Vec<Draw>, ReplayOptions)> {
    let cash = prop_oneof![Just(400_000), Just(2_000_000), Just(100_000_000)];
    (markets(), draws(), models(), cash).prop_map(|(market, draws, model, cash)| {
        let options = ReplayOptions { model, cash: Money::from_yen(cash), ..options() };
        (market, draws, options)
    })
}

fn order_of<'a>(result: &'a RunResult, fill: &FillRow) -> &'a OrderRecord {
    let same = |order: &&OrderRecord| order.venue_order_id.as_ref() == Some(&fill.venue_order_id);
    result.orders.iter().find(same).unwrap()
}

/// The limits that an order had: the first, and those of every change that names it.
fn limits_of(order: &OrderRecord, draws: &[Draw]) -> Vec<Price> {
    let of = |(number, draw): (usize, &Draw)| match action(number, *draw) {
        Action::Order(OrderCommand::Submit(request)) => {
            let is_it = request.client_order_id == order.request.client_order_id;
            request.price.filter(|_| is_it)
        }
        Action::Order(OrderCommand::Modify { client_order_id, change }) => {
            change.price.filter(|_| client_order_id == order.request.client_order_id)
        }
        _ => None,
    };
    draws.iter().enumerate().filter_map(of).collect()
}

/// Whether a row is an auction: the first from an open or a close on, by the clock alone.
fn is_auction(market: &Market, row: usize) -> bool {
    let of_day = |row: usize| {
        let ts = TsNanos::from_nanos(market.ts[row]);
        (ts.jst_date(), ts.jst_nanos_of_day() / common::SECOND)
    };
    let (date, second) = of_day(row);
    let before = row.checked_sub(1).map(of_day).filter(|(other, _)| *other == date);
    let passed = |second: u64| {
        [32_400, 41_400, 45_000, 55_800].iter().filter(|auction| second >= **auction).count()
    };
    passed(second) > before.map_or(0, |(_, second)| passed(second))
}

fn value(fill: &FillRow) -> i64 {
    fill.price.units() * fill.quantity.shares().cast_signed() * fill.side.sign()
}

/// Everything that happens when the exchange sees every trade, or only those that it asks for.
fn events_of(market: &Market, draws: &[Draw], options: &ReplayOptions, every: bool) -> Vec<String> {
    const ONLY: InstrumentIx = InstrumentIx(0);
    let instruments = &options.instruments[..];
    let mut exchange = Exchange::new(options.model, instruments, options.cash);
    let mut heard = vec![];
    let mut steps = script(draws).steps;
    for day in TradingDay::split(&market.ts, &market.price, &market.quantity) {
        let whole = MarketDay::from(day.clone());
        let hours = whole.hours(false).unwrap();
        exchange.begin_day(hours, ONLY, heard.last().map(|_| day.price_at(0)));
        let instrument = vec![0; day.len()];
        let (ts_event, price, quantity) = (day.ts_event(), day.price(), day.quantity());
        let rows = TradeColumns { ts_event, instrument: &instrument, price, quantity };
        for (row, shares) in quantity.iter().copied().map(Quantity::new).enumerate() {
            if every || exchange.next_stop(rows, row, row + 1) == row {
                while exchange.next_due().is_some_and(|due| due <= day.ts_at(row)) {
                    exchange.run_due();
                }
                let (ts_event, price) = (day.ts_at(row), day.price_at(row));
                exchange.take_trade(&Trade { ts_event, instrument: ONLY, price, quantity: shares });
            }
            exchange.set_last_price(ONLY, day.price_at(row), day.ts_at(row));
            for action in steps.remove(&(heard.len() as u64)).unwrap_or_default() {
                let now = day.ts_at(row);
                match action {
                    Action::Order(command) => exchange.execute(now, Origin::Strategy, command),
                    other => panic!("{other:?}"),
                }
            }
            heard.push(exchange.take_events().iter().map(common::words).collect::<String>());
        }
        exchange.end_day(whole.end(hours).unwrap());
    }
    heard
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn results_do_not_depend_on_the_window((market, draws, options) in cases()) {
        let (one, told) = run(&market, script(&draws), &options);
        for window in [7, 64, 1_024] {
            let (other, other_told) =
                run(&market, script(&draws), &ReplayOptions { window, ..options.clone() });
            prop_assert_eq!(&told, &other_told);
            prop_assert_eq!(one.totals.digest, other.totals.digest);
            prop_assert_eq!(&one.fills, &other.fills);
            prop_assert_eq!(&one.log, &other.log);
        }
    }

    #[test]
    fn looking_ahead_skips_no_trade_that_matters((market, draws, options) in cases()) {
        let all = events_of(&market, &draws, &options, true);
        prop_assert_eq!(all, events_of(&market, &draws, &options, false));
    }

    #[test]
    fn cash_and_shares_are_conserved_and_cash_is_never_negative((market, draws, options) in cases()) {
        let (result, _) = run(&market, script(&draws), &options);
        let (mut cash, mut held) = (options.cash, 0);
        for fill in &result.fills {
            cash -= Money::from_units(value(fill)) + fill.commission;
            held += fill.quantity.shares().cast_signed() * fill.side.sign();
            prop_assert!(cash >= Money::ZERO, "{cash} yen after {fill:?}");
            prop_assert!(held >= 0, "{held} shares after {fill:?}");
        }
        prop_assert_eq!(cash, result.totals.cash_end);
        prop_assert_eq!(held, result.totals.position_end);
        for order in &result.orders {
            let fills: Vec<_> =
                result.fills.iter().filter(|fill| order.venue_order_id.as_ref() == Some(&fill.venue_order_id)).collect();
            let shares: u64 = fills.iter().map(|fill| fill.quantity.shares()).sum();
            prop_assert_eq!(order.filled.shares(), shares);
            prop_assert!(order.filled <= order.request.quantity || order.rejection.is_some());
            let worth: i64 = fills.iter().map(|fill| value(fill).abs()).sum();
            prop_assert_eq!(order.filled_value, Money::from_units(worth));
            let fee: Money = fills.iter().map(|fill| fill.commission).sum();
            prop_assert_eq!(fee, options.model.commission.fee(order.filled_value));
            prop_assert!(fills.iter().all(|fill| fill.commission >= Money::ZERO));
            prop_assert!(order.status.is_final() || order.status == OrderStatus::Initialized);
        }
    }

    #[test]
    fn no_share_of_a_print_is_used_twice((market, draws, options) in cases()) {
        let (result, _) = run(&market, script(&draws), &options);
        let lot = options.instruments[0].lot;
        let mut printed: BTreeMap<u64, u64> = BTreeMap::new();
        for (ts, shares) in market.ts.iter().zip(&market.quantity) {
            *printed.entry(*ts).or_default() += options.model.budget(Quantity::new(*shares), lot).shares();
        }
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        for fill in &result.fills {
            *taken.entry(fill.ts_event.nanos()).or_default() += fill.quantity.shares();
            prop_assert_eq!(fill.quantity.floor_to(lot), fill.quantity, "whole lots");
        }
        for (ts, shares) in taken {
            prop_assert!(shares <= printed[&ts], "{shares} of {} at {ts}", printed[&ts]);
        }
    }

    #[test]
    fn every_fill_price_was_traded_that_instant_or_lies_between_limit_and_trade((market, draws, options) in cases()) {
        let (result, _) = run(&market, script(&draws), &options);
        let ticks = options.instruments[0].ticks;
        for fill in &result.fills {
            let order = order_of(&result, fill);
            let now = fill.ts_event;
            prop_assert!(now > order.ts_submitted);
            prop_assert!(now >= order.ts_submitted.plus_nanos(options.model.latency_ns));
            prop_assert!(order.ts_triggered.is_none_or(|timestamp| now > timestamp));
            let is_stop = matches!(order.request.order_type, OrderType::StopMarket | OrderType::StopLimit);
            prop_assert_eq!(is_stop, order.ts_triggered.is_some());
            let sign = fill.side.sign();
            let has_limit = order.request.price.is_some();
            let limits = if has_limit { limits_of(order, &draws) } else { vec![] };
            let funari = !order.request.tags.is_empty();
            let slip = sign * i64::from(options.model.slippage_ticks);
            // Worse than a print of that instant by the slippage at most; where the print is through
            // a limit, between the two: at the limit. In an auction at its very price.
            let fits = (0..market.ts.len()).filter(|row| market.ts[*row] == now.nanos()).any(|row| {
                let print = Price::from_units(market.price[row]);
                let worst = if is_auction(&market, row) { print } else { ticks.moved(print, slip) };
                let is_slipped = (fill.price.units() - print.units()) * sign >= 0
                    && (worst.units() - fill.price.units()) * sign >= 0;
                let through = |limit: &Price| (limit.units() - print.units()) * sign > 0;
                let at_limit = !is_auction(&market, row) && limits.contains(&fill.price) && through(&fill.price);
                is_slipped || at_limit
            });
            prop_assert!(fits, "{fill:?} of {order:?}");
            let in_limit = |limit: &Price| (fill.price.units() - limit.units()) * sign <= 0;
            prop_assert!(limits.is_empty() || funari || limits.iter().any(in_limit), "{fill:?} of {order:?}");
        }
    }

    #[test]
    fn market_orders_of_one_side_fill_in_the_order_of_their_sending((market, draws, options) in cases()) {
        let draws: Vec<Draw> = draws.into_iter().map(|draw| (draw.0, 0, draw.2, draw.3, 0, 0)).collect();
        let (result, _) = run(&market, script(&draws), &options);
        for side in [OrderSide::Buy, OrderSide::Sell] {
            let accepted = |order: &&OrderRecord| order.request.side == side && order.venue_order_id.is_some();
            let mine: Vec<&OrderRecord> = result.orders.iter().filter(accepted).collect();
            let first_fill = |order: &OrderRecord| {
                result.fills.iter().position(|fill| order.venue_order_id.as_ref() == Some(&fill.venue_order_id))
            };
            let mut last = 0;
            for place in mine.into_iter().filter_map(first_fill) {
                prop_assert!(place >= last, "a later order was filled first");
                last = place;
            }
        }
    }
}
