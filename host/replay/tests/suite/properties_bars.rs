//! What must hold for every series of bars and every strategy: drawn at random, the seed is printed
//! on a failure.

use crate::common::{self, limit, lives, market, options, stop, stop_limit};
use domain::Origin;
use domain::execution::ExecutionClient;
use domain::market::{Bar, BarGranularity};
use domain::session::TradingHours;
use domain::strategy::Action;
use domain::{
    Fill, InstrumentIx, JstDate, Money, OrderEventKind, OrderSide, Price, Quantity, TimeInForce,
    TsNanos,
};
use exchange::Exchange;
use exchange::ExecutionModel;
use proptest::prelude::*;

const ONLY: InstrumentIx = InstrumentIx(0);
const UNIT: i64 = 5_000;

fn price(ticks: i64) -> Price {
    Price::from_units(10_000_000 + ticks * UNIT)
}

/// Bars of the minutes from 09:00 on: four prices, of which the highest and lowest are the range.
fn bars() -> impl Strategy<Value = Vec<Bar>> {
    let open = TradingHours::of(JstDate::from_ymd_opt(2025, 1, 6).unwrap()).morning_open;
    let bar = (prop::array::uniform4(-15..=15_i64), 1..30_u64);
    prop::collection::vec(bar, 2..60).prop_map(move |draws| {
        let bar = |(minute, (ticks, lots)): (usize, ([i64; 4], u64))| Bar {
            ts_event: open.plus_nanos((minute as u64 + 1) * 60_000_000_000),
            instrument: ONLY,
            granularity: BarGranularity::Minute,
            open: price(ticks[0]),
            high: price(*ticks.iter().max().unwrap()),
            low: price(*ticks.iter().min().unwrap()),
            close: price(ticks[3]),
            volume: Quantity::new(lots * 70),
        };
        draws.into_iter().enumerate().map(bar).collect()
    })
}

/// One order: after which bar, what, and numbers for it.
type Draw = (usize, u8, bool, u64, i64, i64);

fn action(number: usize, (_, kind, buys, lots, near, far): Draw) -> Action {
    let id = format!("O-{number}");
    let side = if buys { OrderSide::Buy } else { OrderSide::Sell };
    let (shares, near, far) = (lots * 100, price(near).to_string(), price(far).to_string());
    match kind {
        0 | 1 => market(&id, side, shares),
        2 | 3 => limit(&id, side, shares, &near),
        4 => stop(&id, side, shares, &near),
        5 => stop_limit(&id, side, shares, &near, &far),
        _ => lives(TimeInForce::AtTheOpen, limit(&id, side, shares, &near)),
    }
}

/// Sees a bar, its place, the fills on it with their orders' numbers, and the exchange after it.
type Look<'a> = dyn FnMut(&Bar, usize, &[(usize, Fill)], &Exchange) + 'a;

/// Runs orders over bars; `look` sees each bar.
fn run(bars: &[Bar], draws: &[Draw], model: ExecutionModel, look: &mut Look<'_>) {
    let cash = Money::from_yen(2_000_000);
    let mut exchange = Exchange::new(model, &options().instruments, cash);
    exchange.begin_day(TradingHours::of(bars[0].ts_event.jst_date()), ONLY, Some(price(0)));
    let mut now = TsNanos::from_nanos(common::at(6, 0.0) - 1);
    for (place, bar) in bars.iter().enumerate() {
        for (number, draw) in draws.iter().enumerate().filter(|(_, draw)| draw.0 == place) {
            if let Action::Order(command) = action(number, *draw) {
                exchange.execute(now, Origin::Strategy, command);
            }
        }
        while exchange.next_due().is_some_and(|due| due <= bar.ts_event) {
            exchange.run_due();
        }
        exchange.take_events();
        exchange.take_bar(ONLY, bar);
        now = bar.ts_event;
        let fills: Vec<(usize, Fill)> = exchange
            .take_events()
            .into_iter()
            .filter_map(|event| match event.kind {
                OrderEventKind::Filled(fill) => {
                    Some((event.client_order_id[2..].parse().unwrap(), fill))
                }
                _ => None,
            })
            .collect();
        look(bar, place, &fills, &exchange);
    }
}

fn cases() -> impl Strategy<Value = (Vec<Bar>, Vec<Draw>, ExecutionModel)> {
    let draw = (0..40_usize, 0..7_u8, any::<bool>(), 1..6_u64, -16..=16_i64, -16..=16_i64);
    let queue = prop_oneof![Just(None), Just(Some(0))];
    let model = (0..3_u32, 1..=100_u32, queue, prop_oneof![Just("none"), Just("order:900")]);
    let model = model.prop_map(|(slippage_ticks, percent, queue_ahead, fees)| ExecutionModel {
        slippage_ticks,
        participation_percent: percent,
        queue_ahead,
        commission: fees.parse().unwrap(),
        ..ExecutionModel::default()
    });
    (bars(), prop::collection::vec(draw, 1..40), model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn fills_stay_inside_range_or_between_limit_and_range_and_inside_volume_and_cash((bars, draws, model) in cases()) {
        let mut problems = vec![];
        run(&bars, &draws, model, &mut |bar, place, fills, exchange| {
            let taken: u64 = fills.iter().map(|(_, fill)| fill.last_quantity.shares()).sum();
            if taken > model.budget(bar.volume, Quantity::new(100)).shares() {
                problems.push(format!("{taken} shares of {bar:?}"));
            }
            for (number, fill) in fills {
                let draw = draws[*number];
                let sign = fill.side.sign();
                let in_range = bar.low <= fill.last_price && fill.last_price <= bar.high;
                let limit = match draw.1 {
                    2 | 3 | 6 => Some(price(draw.4)),
                    5 => Some(price(draw.5)),
                    _ => None,
                };
                let in_limit = limit.is_none_or(|limit| {
                    (fill.last_price.units() - limit.units()) * sign <= 0
                });
                // A resting order that the bar opens beyond fills at its limit, which lies between
                // itself and the range; in an auction at the open.
                let at_limit = limit == Some(fill.last_price)
                    && (fill.last_price.units() - bar.open.units()) * sign > 0;
                let is_fair = in_range || at_limit && place > 0;
                if draw.0 > place || !is_fair || !in_limit {
                    problems.push(format!("{fill:?} of {draw:?} on {bar:?}"));
                }
            }
            let account = exchange.account();
            if account.account().cash < Money::ZERO || account.held(ONLY) < 0 {
                problems.push(format!("{:?} after {bar:?}", account.account()));
            }
        });
        prop_assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn a_resting_order_never_does_better_than_the_open_and_a_taker_never_better_than_it(
        (bars, draws, model) in cases(),
    ) {
        let mut problems = vec![];
        run(&bars, &draws, model, &mut |bar, _, fills, _| {
            for (number, fill) in fills {
                let draw = draws[*number];
                let better_than_open = (bar.open.units() - fill.last_price.units()) * fill.side.sign();
                let is_limit = matches!(draw.1, 2 | 3 | 5);
                if better_than_open > 0 && (!is_limit || fill.last_price != price(if draw.1 == 5 { draw.5 } else { draw.4 })) {
                    problems.push(format!("{fill:?} of {draw:?} on {bar:?}"));
                }
            }
        });
        prop_assert!(problems.is_empty(), "{problems:#?}");
    }
}
