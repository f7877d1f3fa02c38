//! Look-ahead against matching: orders of every kind and of both sides are walked through trades and
//! bars, with modifies and cancels on the way, and no row that is skipped moves anything.

use domain::execution::ExecutionClient;
use domain::market::BarGranularity;
use domain::session::TradingHours;
use domain::time::NANOS_PER_MINUTE;
use domain::{
    Instrument, InstrumentIx, JstDate, Money, OrderCommand, OrderModify, OrderRequest, OrderSide,
    OrderType, Origin, Price, Quantity, TickTable, TimeInForce,
};
use proptest::prelude::*;

use super::*;
use crate::ExecutionModel;
use crate::price_range::ANY;

const TOYOTA: InstrumentIx = InstrumentIx(0);

/// Shares held before the first order, so that orders sell as well as buy.
const HELD: u64 = 5_000;

/// Milliseconds after midnight in Japan: shortly before an open, both auctions that close, and in
/// the middle of a session.
const STARTS: [u64; 4] = [32_399_980, 34_200_000, 41_399_980, 55_799_980];

/// Kind, sells, price in yen, lots, and the step before which it is sent.
type Draw = (u8, bool, i64, u64, usize);

/// A time so many milliseconds after midnight in Japan on a weekday.
fn at(weekday: u32, ms: u64) -> TsNanos {
    let date = JstDate::from_ymd_opt(2025, 1, 6 + weekday).unwrap();
    TsNanos::from_jst(date, ms * 1_000_000).unwrap()
}

/// An exchange before its first day, with cash and shares.
fn quiet(queue_ahead: Option<u64>, latency_ns: u64) -> Exchange {
    let instrument = Instrument {
        id: "7203.TSE".parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Fixed(Price::from_yen(1)),
    };
    let model = ExecutionModel { queue_ahead, latency_ns, ..ExecutionModel::default() };
    let cash = Money::from_yen(1_000_000_000);
    let mut exchange = Exchange::new(model, &[instrument], cash);
    let price = Price::from_yen(1_000);
    exchange.account.book(TOYOTA, OrderSide::Buy, price, Quantity::new(HELD), Money::ZERO);
    exchange
}

fn begin(exchange: &mut Exchange, hours: TradingHours) {
    exchange.begin_day(hours, TOYOTA, Some(Price::from_yen(1_000)));
}

/// The order of a draw: every kind that the exchange takes.
fn submit(number: usize, (kind, sells, yen, lots, _): Draw) -> OrderCommand {
    let (order_type, time_in_force) = [
        (OrderType::Market, TimeInForce::Day),
        (OrderType::Limit, TimeInForce::Day),
        (OrderType::StopMarket, TimeInForce::Day),
        (OrderType::StopLimit, TimeInForce::Day),
        (OrderType::Limit, TimeInForce::AtTheClose),
        (OrderType::Market, TimeInForce::AtTheOpen),
        (OrderType::Limit, TimeInForce::AtTheOpen),
        (OrderType::Limit, TimeInForce::AtTheClose),
    ][usize::from(kind) % 8];
    let price = Price::from_yen(yen);
    let is_stop = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
    let has_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
    let is_funari = kind % 8 == 7;
    OrderCommand::Submit(OrderRequest {
        client_order_id: format!("O-{number}").into(),
        instrument: TOYOTA,
        side: if sells { OrderSide::Sell } else { OrderSide::Buy },
        order_type,
        quantity: Quantity::new(lots * 100),
        price: has_limit.then_some(price),
        trigger_price: is_stop.then_some(price),
        trigger_type: None,
        time_in_force,
        expire_time: None,
        post_only: false,
        reduce_only: false,
        tags: is_funari.then(|| "close_strategy=funari".to_owned()).into_iter().collect(),
    })
}

/// A change of an earlier order, or its cancel; what it may not change is rejected.
fn change(number: usize, (kind, sells, yen, lots, _): Draw) -> OrderCommand {
    let client_order_id = format!("O-{}", number / 2).into();
    if kind % 8 == 0 {
        return OrderCommand::Cancel { client_order_id };
    }
    let price = Some(Price::from_yen(yen));
    OrderCommand::Modify {
        client_order_id,
        change: OrderModify {
            quantity: (kind % 3 == 0).then(|| Quantity::new(lots * 100)),
            price: if sells { None } else { price },
            trigger_price: if sells { price } else { None },
            expire_time: None,
        },
    }
}

fn origin(number: usize) -> Origin {
    if number.is_multiple_of(3) { Origin::Client } else { Origin::Strategy }
}

/// Sends what is drawn for a step: orders, and a change of an earlier order for each but the first.
fn send(exchange: &mut Exchange, now: TsNanos, draws: &[Draw], step: usize) {
    for (number, draw) in draws.iter().enumerate() {
        if draw.4 == step {
            exchange.execute(now, origin(number), submit(number, *draw));
        }
        if number > 0 && draw.4 + usize::from(draw.0) % 4 == step {
            exchange.execute(now, origin(number / 2), change(number, *draw));
        }
    }
    // Only what moves from here on counts.
    exchange.take_events();
}

fn run_due(exchange: &mut Exchange, until: TsNanos) {
    while exchange.next_due().is_some_and(|due| due <= until) {
        exchange.run_due();
    }
    exchange.take_events();
}

/// Rows as columns.
#[derive(Default)]
struct Trades {
    ts_event: Vec<u64>,
    instrument: Vec<u16>,
    price: Vec<i64>,
    quantity: Vec<u64>,
}

impl Trades {
    fn of(start: u64, rows: &[(u64, i64, u64)]) -> Self {
        let mut trades = Self::default();
        let mut now = start;
        for (step, yen, half_lots) in rows {
            now += step;
            trades.ts_event.push(at(0, now).nanos());
            trades.instrument.push(0);
            trades.price.push(Price::from_yen(*yen).units());
            trades.quantity.push(half_lots * 50);
        }
        trades
    }

    fn columns(&self) -> TradeColumns<'_> {
        let Self { ts_event, instrument, price, quantity } = self;
        TradeColumns { ts_event, instrument, price, quantity }
    }
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let draw = (any::<u8>(), any::<bool>(), 990..1_010_i64, 1..5_u64, 0..12_usize);
    prop::collection::vec(draw, 1..10)
}

fn models() -> impl Strategy<Value = (Option<u64>, u64)> {
    let queues = prop::sample::select(vec![None, Some(0), Some(300)]);
    (queues, prop::sample::select(vec![0, 3_000_000]))
}

/// Open, and how far high, low and close lie from it.
fn bars(granularity: BarGranularity) -> impl Strategy<Value = Vec<Bar>> {
    let drawn = (0..4_u64, 985..1_015_i64, 0..8_i64, 0..8_i64, 0..20_u64);
    prop::collection::vec(drawn, 1..16).prop_flat_map(move |rows| {
        let bars = move |start: u64| {
            let mut minutes = 0;
            let made = rows.iter().enumerate().map(|(row, (gap, yen, up, down, lots))| {
                minutes += 1 + gap;
                let ts_event = match granularity {
                    BarGranularity::Minute => at(0, start).plus_nanos(minutes * NANOS_PER_MINUTE),
                    BarGranularity::Day => at(row as u32, 55_800_000),
                };
                let close = if lots % 2 == 0 { yen + up } else { yen - down };
                Bar {
                    ts_event,
                    instrument: TOYOTA,
                    granularity,
                    open: Price::from_yen(*yen),
                    high: Price::from_yen(yen + up),
                    low: Price::from_yen(yen - down),
                    close: Price::from_yen(close),
                    volume: Quantity::new(lots * 100),
                }
            });
            made.collect::<Vec<Bar>>()
        };
        // Minutes that begin before a session's begin or end.
        prop::sample::select(vec![32_280_000, 34_200_000, 41_280_000, 55_680_000]).prop_map(bars)
    })
}

/// Walks trades as a run does: what is due comes first, then the trade, then commands. Tells how
/// many trades were skipped while orders were open.
fn walk_trades(exchange: &mut Exchange, start: u64, trades: &Trades, draws: &[Draw]) -> usize {
    let (columns, mut skipped) = (trades.columns(), 0);
    let rows = columns.ts_event.len();
    begin(exchange, TradingHours::of(at(0, start).jst_date()));
    exchange.set_last_price(TOYOTA, Price::from_yen(1_000), at(0, start));
    send(exchange, at(0, start), draws, 0);
    for row in 0..rows {
        let stop = exchange.next_stop(columns, row, rows);
        exchange.assert_unmoved_by(columns, row, stop);
        skipped += if exchange.open.is_empty() { 0 } else { stop - row };
        let trade = columns.trade(row);
        run_due(exchange, trade.ts_event);
        exchange.take_trade(&trade);
        exchange.set_last_price(TOYOTA, trade.price, trade.ts_event);
        send(exchange, trade.ts_event, draws, row + 1);
    }
    skipped
}

/// Walks bars in the same way. A day's bars each have a day of their own.
fn walk_bars(exchange: &mut Exchange, bars: &[Bar], draws: &[Draw]) {
    for (row, bar) in bars.iter().enumerate() {
        let is_day = bar.granularity == BarGranularity::Day;
        if is_day || row == 0 {
            let hours = TradingHours::of(bar.ts_event.jst_date());
            begin(exchange, if is_day { hours.in_one_session() } else { hours });
        }
        if row == 0 && !is_day {
            let before = bar.ts_event.nanos().saturating_sub(2 * NANOS_PER_MINUTE);
            send(exchange, TsNanos::from_nanos(before), draws, 0);
        }
        let to = if is_day { row + 1 } else { bars.len() };
        let stop = exchange.next_bar_stop(bars, row, to);
        for bar in &bars[row..stop] {
            exchange.assert_unmoved(|copy| copy.take_bar(TOYOTA, bar), bar.ts_event);
        }
        run_due(exchange, bar.ts_event);
        exchange.take_bar(TOYOTA, bar);
        exchange.set_last_price(TOYOTA, bar.close, bar.last_nanosecond());
        if is_day {
            exchange.end_day(bar.ts_event);
        }
        send(exchange, bar.ts_event, draws, row + 1);
    }
}

proptest! {
    /// The rule of look-ahead, also where debug assertions are off.
    #[test]
    fn a_skipped_trade_would_have_changed_nothing(
        draws in draws(),
        (queue_ahead, latency_ns) in models(),
        start in prop::sample::select(STARTS.to_vec()),
        rows in prop::collection::vec((0..4_u64, 985..1_015_i64, 1..9_u64), 1..40),
    ) {
        let trades = Trades::of(start, &rows);
        walk_trades(&mut quiet(queue_ahead, latency_ns), start, &trades, &draws);
    }

    #[test]
    fn a_skipped_minute_would_have_changed_nothing(
        draws in draws(),
        (queue_ahead, latency_ns) in models(),
        bars in bars(BarGranularity::Minute),
    ) {
        walk_bars(&mut quiet(queue_ahead, latency_ns), &bars, &draws);
    }

    #[test]
    fn a_skipped_day_would_have_changed_nothing(
        draws in draws(),
        (queue_ahead, latency_ns) in models(),
        bars in bars(BarGranularity::Day),
    ) {
        walk_bars(&mut quiet(queue_ahead, latency_ns), &bars, &draws);
    }
}

/// Prices that swing around 1,000 yen by ten, a millisecond or a bar each.
fn swings() -> impl Iterator<Item = i64> {
    (0..60_i64).map(|step| 1_000 + [0, 4, 8, 10, 6, 2, -2, -6, -10, -8, -4][step as usize % 11])
}

/// An order of a kind that the swings fill.
fn fillable(kind: u8, sells: bool) -> Draw {
    let away = match kind {
        1..=3 => 5,
        _ => -15,
    };
    // A limit waits on the one side of the price, a stop on the other.
    let is_above = sells != matches!(kind, 2 | 3);
    (kind, sells, if is_above { 1_000 + away } else { 1_000 - away }, 1, 0)
}

/// The walks meet what they are for: every kind of order fills, on both sides, on trades and on
/// bars, and trades are skipped while orders are open.
#[test]
fn every_kind_of_order_fills_and_trades_are_skipped_meanwhile() {
    let mut skipped = 0;
    for (kind, sells) in (0..8).flat_map(|kind| [(kind, false), (kind, true)]) {
        let start = STARTS[match kind {
            5 | 6 => 0,
            4 => 2,
            _ => 1,
        }];
        let rows: Vec<_> = swings().map(|yen| (1, yen, 4)).collect();
        let trades = Trades::of(start, &rows);
        let mut exchange = quiet(None, 0);
        let draw = fillable(kind, sells);
        skipped += walk_trades(&mut exchange, start, &trades, &[draw]);
        assert!(has_filled(exchange), "{draw:?} on trades");

        let bar = |(row, yen): (usize, i64)| Bar {
            ts_event: at(row as u32, 55_800_000),
            instrument: TOYOTA,
            granularity: BarGranularity::Day,
            open: Price::from_yen(yen),
            high: Price::from_yen(yen + 3),
            low: Price::from_yen(yen - 3),
            close: Price::from_yen(yen),
            volume: Quantity::new(1_000),
        };
        let days: Vec<Bar> = swings().take(20).enumerate().map(bar).collect();
        let again: Vec<Draw> = (0..20).map(|step| (kind, sells, draw.2, 1, step)).collect();
        let mut exchange = quiet(None, 0);
        walk_bars(&mut exchange, &days, &again);
        assert!(has_filled(exchange), "{draw:?} on bars");
    }
    assert!(skipped > 100, "{skipped} trades were skipped");
}

fn has_filled(exchange: Exchange) -> bool {
    exchange.into_orders().iter().any(|order| !order.filled.is_zero())
}

#[test]
#[should_panic(expected = "was skipped and moves something")]
fn a_row_that_moves_something_is_seen() {
    let mut exchange = quiet(None, 0);
    begin(&mut exchange, TradingHours::of(at(0, 0).jst_date()));
    exchange.set_last_price(TOYOTA, Price::from_yen(1_000), at(0, STARTS[1]));
    send(&mut exchange, at(0, STARTS[1]), &[(1, false, 1_000, 1, 0)], 0);
    let trades = Trades::of(STARTS[1], &[(5, 990, 2)]);
    exchange.assert_unmoved_by(trades.columns(), 0, 1);
}

#[test]
fn what_matters_depends_on_the_kind_of_order() {
    let mut book = Book::default();
    let hit_before = |auction: u64, book: &Book, touches, price: i64, quantity| {
        let reach = reach(book, touches, TsNanos::from_nanos(auction), ANY);
        reach.is_hit_by(5, Price::from_yen(price).units(), quantity, 100)
    };
    let hit = |book: &Book, touches, price, quantity| hit_before(6, book, touches, price, quantity);
    assert!(!hit(&book, false, 10, 100), "nobody is there");
    book.buys.add(Price::from_yen(10), 1, 1);
    assert!(!hit(&book, false, 10, 100) && hit(&book, true, 10, 100));
    assert!(hit(&book, false, 9, 100) && !hit(&book, false, 9, 99));
    book.stop_buys.add(Price::from_yen(20), 2, 2);
    assert!(hit(&book, false, 20, 1), "a stop needs no volume");
    book.add_taker(3, 3, TsNanos::from_nanos(5), false);
    assert!(!hit(&book, false, 15, 100), "the same instant");
    book.add_taker(4, 4, TsNanos::from_nanos(4), true);
    assert!(hit(&book, false, 15, 100) && book.has_limit_takers);
    book.remove_taker(4);
    assert!(!book.has_limit_takers);
    assert!(!hit(&book, false, 15, 100));
    assert!(hit_before(5, &book, false, 15, 1), "an auction matters at every price");
}
