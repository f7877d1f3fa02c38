//! A run over a stream gives what a replay of the same rows gives, and its days end as they should.

use crate::common::feed::Feed;
use crate::common::{
    Script, at, in_memory, instrument, limit, lives, market, options, stop, stop_limit, tagged,
    until, with,
};
use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind, Identity};
use domain::limits::MINUTE_ROWS_MAX;
use domain::market::{Bar, BarGranularity, Trade, Window};
use domain::strategy::{
    Action, Capabilities, LogLevel, LogLine, Outcome, Signal, SignalKind, StrategyRuntime,
};
use domain::{
    Instrument, InstrumentIx, Money, OrderCommand, OrderEvent, OrderModify, OrderSide, OrderStatus,
    Price, Quantity, TimeInForce, TsNanos,
};
use exchange::ExecutionModel;
use marketdata::make_bars;
use proptest::prelude::*;
use replay::driver::{PositionKey, Scripted};
use replay::stream::StreamStep;
use replay::{MarketDay, ReplayError, ReplayOptions, RunCommand, TradingDay};
use results::{RunResult, RunStatus};
use trader::OrderLimits;

use OrderSide::{Buy, Sell};

/// Times of a trading day in seconds after 09:00, in every session and auction.
const TIMES: [(f64, f64); 5] = [
    (0.0, 60.0),
    (8_990.0, 9_010.0),
    (12_600.0, 12_640.0),
    (23_050.0, 23_100.0),
    (23_390.0, 23_400.0),
];
/// Seconds from 09:00 to the close.
const CLOSE: f64 = 23_400.0;
/// Days with rows, and a business day after them.
const DAYS: [u32; 3] = [6, 7, 9];
const AFTER: u32 = 10;

/// Rows of all days and instruments: day, time, instrument, price, shares.
#[derive(Debug, Clone)]
struct Rows {
    instruments: usize,
    /// Whether they are given as bars of a minute.
    of_bars: bool,
    rows: Vec<(u32, Trade)>,
}

/// What a strategy does: after which row, what, and some numbers for it.
type Draw = (u64, u8, bool, u64, i64, i64, u16);

fn trade(day: u32, second: f64, of: u16, price: i64, quantity: u64) -> Trade {
    Trade {
        ts_event: TsNanos::from_nanos(at(day, second)),
        instrument: InstrumentIx(of),
        price: Price::from_units(price),
        quantity: Quantity::new(quantity),
    }
}

/// Half seconds, so that some trades share an instant. Of one instrument the close may be late (F6). Of several no row
/// is later than the close, because nobody knows then that the others have ended.
fn rows() -> impl Strategy<Value = Rows> {
    let row = (0..3_usize, 0..TIMES.len(), 0..40_u32, -12..=12_i64, 1..12_u64, 0..3_u16);
    let kinds = (any::<bool>(), any::<bool>());
    (1..=3_usize, prop::collection::vec(row, 5..70), kinds).prop_map(
        |(instruments, draws, (is_late, of_bars))| {
            let mut rows: Vec<(u32, Trade)> = draws
                .into_iter()
                .map(|(day, time, step, ticks, lots, of)| {
                    let (from, to) = TIMES[time];
                    let to = match instruments {
                        1 if is_late => to + 3.0,
                        // The bar of a trade at the close ends after it.
                        2.. if of_bars => to.min(CLOSE - 1.0),
                        _ => to,
                    };
                    let second = (from + f64::from(step) * 0.5).min(to);
                    let of = of % instruments as u16;
                    let price = 10_000_000 + ticks * 5_000;
                    (DAYS[day], trade(DAYS[day], second, of, price, lots * 60))
                })
                .collect();
            // The run has its first and its last day.
            rows.extend([DAYS[0], DAYS[2]].map(|day| (day, trade(day, 0.0, 0, 10_000_000, 500))));
            rows.sort_by_key(|(_, row)| (row.ts_event, row.instrument));
            Rows { instruments, of_bars, rows }
        },
    )
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0..60_u64, 0..13_u8, any::<bool>(), 1..8_u64, -10..=10_i64, -10..=10_i64, 0..3_u16);
    prop::collection::vec(draw, 1..40)
}

fn models() -> impl Strategy<Value = ExecutionModel> {
    let latency = prop_oneof![Just(0), 1..3_000_000_000_u64, 0..9_000_000_000_000_u64];
    let queue = prop_oneof![Just(None), (0..2_000_u64).prop_map(Some)];
    (latency, 0..4_u32, 1..=100_u32, queue).prop_map(
        |(latency_ns, slippage_ticks, participation_percent, queue_ahead)| ExecutionModel {
            latency_ns,
            slippage_ticks,
            participation_percent,
            queue_ahead,
            commission: "450ppm,min=50,max=2000".parse().unwrap(),
            ..ExecutionModel::default()
        },
    )
}

fn action(number: usize, draws: &[Draw], instruments: usize) -> Action {
    let (_, kind, buys, lots, near, far, of) = draws[number];
    let id = format!("O-{number}");
    let side = if buys { Buy } else { Sell };
    let shares = lots * 100;
    let price = |ticks: i64| Price::from_units(10_000_000 + ticks * 5_000).to_string();
    let earlier = number.saturating_sub(near.unsigned_abs() as usize);
    let named = || format!("O-{earlier}").into();
    let action = match kind {
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
        10 => until(9, limit(&id, side, shares, &price(near))),
        11 => Action::Signal(Signal {
            instrument: InstrumentIx(0),
            kind: SignalKind::Annotate,
            side: Some(side),
            price: None,
            tag: Some(id),
            note: None,
        }),
        _ if far > 3 => Action::Order(OrderCommand::Cancel { client_order_id: named() }),
        // A sell of more shares is another matter (P114).
        _ => Action::Order(OrderCommand::Modify {
            client_order_id: named(),
            change: OrderModify {
                quantity: (far % 2 == 0 && draws[earlier].2).then(|| Quantity::new(shares)),
                price: (far % 3 == 0).then(|| price(far).parse().unwrap()),
                ..OrderModify::default()
            },
        }),
    };
    match action {
        Action::Order(OrderCommand::Submit(_)) => {
            with(action, |order| order.instrument = InstrumentIx(of % instruments as u16))
        }
        other => other,
    }
}

/// Sends orders whatever happens, and takes its profit where it was filled.
fn busy(draws: &[Draw], instruments: usize) -> Script {
    let mut script = (0..draws.len()).fold(Script::default(), |script, number| {
        script.after(draws[number].0, action(number, draws, instruments))
    });
    let exits = (0..3).map(|number| limit(&format!("X-{number}"), Sell, 100, "1002"));
    script.on_fill = exits.collect();
    script
}

/// Holds 100 shares while the last price is above the mean of the last three.
#[derive(Default)]
struct Cross {
    seen: Vec<i64>,
    holds: bool,
    orders: u32,
}

impl StrategyRuntime for Cross {
    fn identity(&self) -> Identity {
        Identity { component: "cross".into(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn advance(&mut self, window: Window<'_>, _: u32) -> Result<Outcome, Box<Fault>> {
        let price = match window {
            Window::OneTrade(trade) => trade.price,
            Window::OneBar(bar) => bar.close,
            other => panic!("one by one, not {other:?}"),
        };
        self.seen.push(price.units());
        let last = &self.seen[self.seen.len().saturating_sub(3)..];
        let is_above = price.units() * last.len() as i64 > last.iter().sum::<i64>();
        let mut actions = vec![];
        if is_above != self.holds {
            self.orders += 1;
            self.holds = is_above;
            let side = if is_above { Buy } else { Sell };
            actions.push(market(&format!("C-{}", self.orders), side, 100));
            actions.push(Action::Signal(Signal {
                instrument: InstrumentIx(0),
                kind: if is_above { SignalKind::EntryLong } else { SignalKind::Exit },
                side: Some(side),
                price: Some(price),
                tag: None,
                note: None,
            }));
        }
        Ok(Outcome { reached: 1, actions })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        if events.iter().any(|event| event.status == OrderStatus::Rejected) {
            self.holds = false;
        }
        Ok(vec![])
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![]
    }
}

type Columns = (Vec<u64>, Vec<i64>, Vec<u64>);

fn day_of(columns: &[Columns]) -> MarketDay<'_> {
    let trades = columns.iter().map(|(ts, price, shares)| {
        TradingDay::split(ts, price, shares).next().unwrap_or(TradingDay::empty())
    });
    MarketDay::Trades(trades.collect())
}

impl Rows {
    fn of_day(&self, day: u32) -> Vec<Trade> {
        self.rows.iter().filter(|(of, _)| *of == day).map(|(_, row)| *row).collect()
    }

    /// Times, prices and shares of a day, by instrument.
    fn columns(&self, day: u32) -> Vec<Columns> {
        let mut columns = vec![Columns::default(); self.instruments];
        for row in self.of_day(day) {
            let (ts, price, shares) = &mut columns[usize::from(row.instrument.0)];
            ts.push(row.ts_event.nanos());
            price.push(row.price.units());
            shares.push(row.quantity.shares());
        }
        columns
    }

    /// The minute bars of a day.
    fn bars(&self, day: u32) -> Vec<Bar> {
        let mut bars = vec![];
        for (index, (ts, price, shares)) in self.columns(day).iter().enumerate() {
            let mut made = vec![];
            let of = InstrumentIx(index as u16);
            make_bars(BarGranularity::Minute, of, ts, price, shares, &mut made);
            bars.extend(made.into_iter().map(|made| made.bar));
        }
        let MarketDay::Bars(bars) = MarketDay::bars(bars) else { panic!() };
        bars
    }

    /// A run over the rows one by one, which is stopped after the last. `ends` says after which days before that
    /// somebody says that they are over.
    fn streamed(
        &self,
        ends: [bool; 2],
        strategy: &mut dyn StrategyRuntime,
        options: &ReplayOptions,
    ) -> RunResult {
        let mut feed = Feed::default();
        for (day, ends) in DAYS.into_iter().zip(ends.into_iter().chain([false])) {
            if self.of_bars {
                feed = self.bars(day).into_iter().map(StreamStep::Bar).fold(feed, Feed::step);
            } else {
                let step = |trade| StreamStep::Trade { trade, aggressor: None };
                feed = self.of_day(day).into_iter().map(step).fold(feed, Feed::step);
            }
            if ends {
                feed = feed.step(StreamStep::EndOfDay);
            }
        }
        feed.run(strategy, options, OrderLimits::default()).unwrap()
    }

    /// A replay of the rows that is stopped after the last of them. There is a day after it, else it would be complete.
    fn replayed(&self, strategy: &mut dyn StrategyRuntime, options: &ReplayOptions) -> RunResult {
        let mut all = self.clone();
        let after = trade(AFTER, 0.0, 0, 10_000_000, 100);
        all.rows.push((AFTER, after));
        let dates = || DAYS.into_iter().chain([AFTER]);
        let columns: Vec<Vec<Columns>> = dates().map(|day| all.columns(day)).collect();
        let days: Vec<MarketDay<'_>> = match self.of_bars {
            true => dates().map(|day| MarketDay::bars(all.bars(day))).collect(),
            false => columns.iter().map(|day| day_of(day)).collect(),
        };
        let rows_done = days.iter().rev().skip(1).map(|day| day.len() as u64).sum();
        let position = PositionKey { rows_done, is_before_row: false };
        let mut driver = Scripted::new(vec![(position, RunCommand::Stop)]);
        in_memory(days, strategy, options, &mut driver)
    }
}

/// Whether somebody sold what was not held: refused before it left (P114), or sent and rejected (F7).
fn is_short(result: &RunResult) -> bool {
    let is_short = |text: &str| text.starts_with("POSITION") || text.starts_with("SHORT_SALE");
    let rejections = result.orders.iter().filter_map(|order| order.rejection.as_ref());
    rejections.into_iter().any(|rejection| is_short(&rejection.text))
}

/// The same orders, fills, signals, minutes and days; where nothing was refused, the same events altogether.
fn assert_same(live: &RunResult, replayed: &RunResult) -> Result<(), TestCaseError> {
    let (one, other) = (&live.totals, &replayed.totals);
    prop_assert_eq!(&live.fills, &replayed.fills);
    prop_assert_eq!(&live.signals, &replayed.signals);
    prop_assert_eq!(&live.round_trips, &replayed.round_trips);
    prop_assert_eq!(&live.equity, &replayed.equity);
    prop_assert_eq!(&live.marks, &replayed.marks);
    prop_assert_eq!(&live.days, &replayed.days);
    prop_assert_eq!(&live.log, &replayed.log);
    let orders = |result: &RunResult| -> Vec<String> {
        let shown = result.orders.iter().map(|order| match &order.rejection {
            // The texts of what is refused may differ.
            Some(_) => format!("{} rejected", order.request.client_order_id),
            None => format!("{order:?}"),
        });
        shown.collect()
    };
    prop_assert_eq!(orders(live), orders(replayed));
    prop_assert_eq!(&one.performance, &other.performance);
    prop_assert_eq!(
        (one.cash_end, one.equity_end, one.position_end, one.our_volume),
        (other.cash_end, other.equity_end, other.position_end, other.our_volume)
    );
    prop_assert_eq!(
        (one.trades_seen, one.market_volume, one.span),
        (other.trades_seen, other.market_volume, other.span)
    );
    prop_assert_eq!((&one.notes, &one.warnings), (&other.notes, &other.warnings));
    if !is_short(live) {
        prop_assert_eq!(one.digest, other.digest);
        prop_assert_eq!(&live.order_events, &replayed.order_events);
    }
    Ok(())
}

/// Options for so many instruments.
fn options_of(instruments: usize, model: ExecutionModel) -> ReplayOptions {
    let ids = ["7203.TSE", "6758.TSE", "9984.TSE"];
    let instruments = ids[..instruments].iter().map(|id| instrument(id)).collect();
    ReplayOptions { instruments, model, cash: Money::from_yen(2_000_000), ..options() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// P120: one row after the other, as a replay of them all.
    #[test]
    fn p120_a_busy_strategy_trades_as_in_a_replay(
        (rows, draws, model) in (rows(), draws(), models()),
        ends in any::<[bool; 2]>(),
    ) {
        let options = options_of(rows.instruments, model);
        let busy = || busy(&draws, rows.instruments);
        let live = rows.streamed(ends, &mut busy(), &options);
        assert_same(&live, &rows.replayed(&mut busy(), &options))?;
    }

    #[test]
    fn p120_a_crossover_trades_as_in_a_replay(
        (rows, model) in (rows(), models()),
        ends in any::<[bool; 2]>(),
    ) {
        let options = options_of(rows.instruments, model);
        let live = rows.streamed(ends, &mut Cross::default(), &options);
        assert_same(&live, &rows.replayed(&mut Cross::default(), &options))?;
    }
}

/// Runs a script over steps without limits.
fn run(feed: Feed, script: Script) -> (RunResult, Vec<String>) {
    let mut script = script;
    let result = feed.run(&mut script, &options(), OrderLimits::default()).unwrap();
    (result, script.told)
}

fn ends(told: &[String]) -> Vec<&str> {
    let is_end = |line: &&String| !line.contains("SUBMITTED") && !line.contains("ACCEPTED");
    told.iter().filter(is_end).map(String::as_str).collect()
}

#[test]
fn p119_a_day_ends_5_minutes_after_its_close_with_the_close_as_its_time() {
    let far = || Script::default().after(1, limit("O-1", Buy, 100, "900"));
    let first = || Feed::default().trade(6, 1.0, "1000", 100);
    let (_, told) = run(first().step(StreamStep::EndOfDay), far());
    assert_eq!(ends(&told), ["O-1 EXPIRED DAY t=23400"]);
    // Told twice it ends once, and a row of a later day ends it as well.
    let feed = first().step(StreamStep::EndOfDay).step(StreamStep::EndOfDay);
    let (result, told) = run(feed.trade(7, 1.0, "1000", 100), far());
    assert_eq!(ends(&told), ["O-1 EXPIRED DAY t=23400"]);
    assert_eq!(result.days.len(), 2);
    let (result, told) = run(first().trade(7, 1.0, "1000", 100), far());
    assert_eq!(ends(&told), ["O-1 EXPIRED DAY t=23400"]);
    assert_eq!(result.days.len(), 2);
}

#[test]
fn p119_a_late_row_moves_the_end_of_its_day() {
    let feed = Feed::default().trade(6, 1.0, "1000", 100).trade(6, CLOSE + 2.0, "1000", 100);
    let far = Script::default().after(1, limit("O-1", Buy, 100, "900"));
    let (_, told) = run(feed.step(StreamStep::EndOfDay), far);
    assert_eq!(ends(&told), ["O-1 EXPIRED DAY t=23402"]);
}

#[test]
fn p119_a_row_after_the_end_of_its_day_is_a_row_of_that_day() {
    let feed = Feed::default()
        .trade(6, 1.0, "1000", 100)
        .step(StreamStep::EndOfDay)
        .trade(6, CLOSE + 400.0, "1010", 100)
        .trade(7, 1.0, "1020", 100);
    let lasting = Script::default().after(1, until(7, limit("O-1", Sell, 100, "1005")));
    let bought = lasting.after(0, market("B-1", Buy, 100));
    let (result, _) = run(feed, bought);
    assert_eq!(result.totals.trades_seen, 3);
    assert_eq!(result.days.len(), 2, "one for each date");
    let equity: Vec<String> = result.days.iter().map(|day| day.equity.to_string()).collect();
    let (last, before) = (&result.equity[1], &result.days[0]);
    assert_eq!((last.ts_event, last.equity), (before.ts_event, before.equity), "{equity:?}");
}

#[test]
fn business_days_without_rows_go_by() {
    let feed = Feed::default().trade(6, 1.0, "1000", 100).trade(9, 1.0, "1000", 100);
    let lasting = Script::default().after(1, until(8, limit("O-1", Buy, 100, "900")));
    let (result, told) = run(feed, lasting);
    assert_eq!(ends(&told), ["O-1 EXPIRED GTD t=23400"]);
    assert_eq!(result.days.len(), 4);
}

#[test]
fn p86_a_stop_cancels_tells_and_stops_the_strategy_at_the_last_row_s_time() {
    let feed = Feed::default().trade(6, 1.0, "1000", 100).trade(6, 2.0, "1000", 100);
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "900"))
        .after(u64::MAX, market("O-2", Buy, 100));
    let (result, told) = run(feed, script);
    assert_eq!(ends(&told), ["O-1 CANCELED t=2"]);
    assert!(matches!(result.totals.status, RunStatus::Interrupted));
    assert_eq!(result.days.len(), 1);
    let last = result.order_events.last().unwrap();
    assert_eq!((&*last.client_order_id, last.status), ("O-2", OrderStatus::Rejected));
}

#[test]
fn a_stop_before_the_first_row_is_a_run_without_days() {
    let (result, told) = run(Feed::default(), Script::default());
    assert_eq!((result.days.len(), told.len()), (0, 0));
    assert!(matches!(result.totals.status, RunStatus::Interrupted));
}

#[test]
fn p117_time_never_falls() {
    let feed = Feed::default()
        .trade(6, 5.0, "1000", 100)
        .trade(6, 4.0, "1000", 100)
        .step(StreamStep::EndOfDay)
        .trade(6, 6.0, "1000", 100);
    let script = (1..=3).fold(Script::default(), |script, row| {
        script.after(row, limit(&format!("O-{row}"), Buy, 100, "900"))
    });
    let (_, told) = run(feed, script);
    let sent: Vec<&String> = told.iter().filter(|line| line.contains("SUBMITTED")).collect();
    assert_eq!(sent, ["O-1 SUBMITTED t=5", "O-2 SUBMITTED t=5", "O-3 SUBMITTED t=23400"]);
}

#[test]
fn p116_a_fault_of_the_stream_ends_the_run_with_what_came_before() {
    let slow = FaultKind::TooSlow("an event waited 11 s".to_owned());
    let feed = Feed::default().trade(6, 1.0, "1000", 100).step(StreamStep::Fail(slow.clone()));
    let (result, told) = run(feed, Script::default().after(1, limit("O-1", Buy, 100, "900")));
    let RunStatus::Failed(fault) = &result.totals.status else { panic!() };
    assert_eq!(fault.kind, slow);
    assert_eq!(ends(&told), Vec::<&str>::new(), "nothing is cancelled (P110)");
    assert_eq!((result.days.len(), result.orders.len()), (1, 1));
}

#[test]
fn notes_are_warnings_of_the_log() {
    let gap = || StreamStep::Note("GAP: 7203.TSE".to_owned());
    let feed = Feed::default().step(gap()).trade(6, 1.0, "1000", 100).step(gap());
    let (result, _) = run(feed, Script::default());
    let lines: Vec<_> = result.log.iter().map(|line| (line.level, line.ts_event)).collect();
    let time = TsNanos::from_nanos(at(6, 1.0));
    assert_eq!(lines, [(LogLevel::Warn, None), (LogLevel::Warn, Some(time))]);
    assert_eq!(result.log[1].message, "GAP: 7203.TSE");
}

#[test]
fn a_minute_has_a_most_of_rows() {
    let step = |number: usize| {
        let mut trade = trade(6, 0.0, 0, 10_000_000, 100);
        trade.ts_event = trade.ts_event.plus_nanos(number as u64);
        StreamStep::Trade { trade, aggressor: None }
    };
    let feed = |rows: usize| (0..rows).map(step).fold(Feed::default(), Feed::step);
    let (result, _) = run(feed(MINUTE_ROWS_MAX), Script::default());
    assert!(matches!(result.totals.status, RunStatus::Interrupted));
    let (result, _) = run(feed(MINUTE_ROWS_MAX + 1), Script::default());
    let RunStatus::Failed(fault) = &result.totals.status else { panic!() };
    assert!(
        matches!(fault.kind, FaultKind::Limit { allowed, .. } if allowed == MINUTE_ROWS_MAX as u64)
    );
    assert_eq!(result.totals.trades_seen, MINUTE_ROWS_MAX as u64);
    // The next minute is another one.
    let next = feed(MINUTE_ROWS_MAX).trade(6, 60.0, "1000", 100);
    assert!(matches!(run(next, Script::default()).0.totals.status, RunStatus::Interrupted));
}

#[test]
fn prices_that_cannot_be_counted_end_the_run() {
    let feed = Feed::default().trade(6, 1.0, "100000000000001", 100);
    let ended = feed.run(&mut Script::default(), &options(), OrderLimits::default());
    assert!(matches!(ended, Err(ReplayError::Worth(_))), "{ended:?}");
}
