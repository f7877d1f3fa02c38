//! The days of a run are the exchange's: orders end and equity is marked on days without rows too.
//!
//! `KUMIKI_SOAK_DAYS` says how many seeds of the property are drawn; the seed is printed on a failure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::common::folder::{Nobody, put};
use crate::common::{
    Market, Script, at, changed, instrument, limit, lives, market, options, stop, until, words,
};
use crate::driver_sessions::parts;
use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::{Bar, BarGranularity, Window};
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    AccountEvent, ExchangeCalendar, Instrument, InstrumentIx, JstDate, Money, OrderCommand,
    OrderEvent, OrderModify, OrderSide, OrderStatus, Price, Quantity, Random, TimeInForce, TsNanos,
};
use exchange::ExecutionModel;
use replay::data_set::{DataRequest, Granularity};
use replay::instruments::InstrumentChoices;
use replay::{MarketDay, ReplayOptions, Unpaced};
use results::RunResult;

use OrderSide::{Buy, Sell};
use TimeInForce::{AtTheClose, AtTheOpen};

const SEEDS: u64 = 20;
const SEEDS_ENV: &str = "KUMIKI_SOAK_DAYS";

fn january(day: u32) -> JstDate {
    JstDate::from_ymd_opt(2025, 1, day).unwrap()
}

/// A trade at 10:00 and one after the close.
fn day_of_trades(day: u32) -> Market {
    Market::default().at_times(day, &[("10:00:00", "1000", 100), ("15:30:00", "1000", 100)])
}

/// The three kinds of rows on days of January 2025.
fn days_of(kind: Option<BarGranularity>, dates: &[u32]) -> Vec<MarketDay<'static>> {
    let bar = |day: u32, seconds: f64, granularity| Bar {
        ts_event: TsNanos::from_nanos(at(day, seconds)),
        instrument: InstrumentIx(0),
        granularity,
        open: Price::from_yen(1_000),
        high: Price::from_yen(1_000),
        low: Price::from_yen(1_000),
        close: Price::from_yen(1_000),
        volume: Quantity::new(1_000),
    };
    let close = 6.5 * 3_600.0;
    let bars = |day: u32| match kind {
        Some(BarGranularity::Day) => vec![bar(day, close, BarGranularity::Day)],
        _ => {
            let minute = |seconds| bar(day, seconds, BarGranularity::Minute);
            vec![minute(3_600.0), minute(close)]
        }
    };
    dates.iter().map(|day| MarketDay::bars(bars(*day))).collect()
}

/// The end of an order that is sent after the close of the 6th, where the next rows are those of the 8th.
fn end_of(kind: Option<BarGranularity>, order: Action) -> (String, String) {
    let monday = if kind == Some(BarGranularity::Day) { 1 } else { 2 };
    let mut script = Script::default().after(monday, order);
    let days = [day_of_trades(6), day_of_trades(8)];
    let result = match kind {
        None => {
            let days = days.iter().map(|day| MarketDay::Trades(parts(std::slice::from_ref(day))));
            crate::common::in_memory(days, &mut script, &options(), &mut Unpaced)
        }
        Some(_) => {
            let days = days_of(kind, &[6, 8]);
            crate::common::in_memory(days, &mut script, &options(), &mut Unpaced)
        }
    };
    (script.told.last().unwrap().clone(), result.orders[0].ts_last.to_string())
}

#[test]
fn f6_an_order_of_a_day_without_rows_ends_with_it() {
    const TUESDAY: &str = "2025-01-07 15:30:00.000000 JST";
    for kind in [None, Some(BarGranularity::Minute), Some(BarGranularity::Day)] {
        let day = end_of(kind, limit("O-1", Buy, 100, "900"));
        assert_eq!(day, ("O-1 EXPIRED DAY t=23400".to_owned(), TUESDAY.to_owned()), "{kind:?}");
        let gtd = end_of(kind, until(7, limit("O-1", Buy, 100, "900")));
        assert_eq!(gtd, ("O-1 EXPIRED GTD t=23400".to_owned(), TUESDAY.to_owned()), "{kind:?}");
        for (life, name) in [(AtTheOpen, "AT_THE_OPEN"), (AtTheClose, "AT_THE_CLOSE")] {
            let (told, time) = end_of(kind, lives(life, market("O-1", Buy, 100)));
            assert!(told.starts_with(&format!("O-1 EXPIRED {name} ")), "{kind:?}: {told}");
            assert!(time.starts_with("2025-01-07 "), "{kind:?} {name}: {time}");
        }
    }
}

#[test]
fn f6_another_instrument_s_rows_make_no_difference_to_a_day() {
    let order = || Script::default().after(2, limit("O-1", Buy, 100, "900"));
    let (mut alone, mut beside) = (order(), order());
    let days = [[day_of_trades(6)], [day_of_trades(8)]];
    let days = days.iter().map(|day| MarketDay::Trades(parts(day)));
    crate::common::in_memory(days, &mut alone, &options(), &mut Unpaced);
    let none = Market::default;
    let tuesday = [none(), day_of_trades(7)];
    let days = [[day_of_trades(6), none()], tuesday, [day_of_trades(8), none()]];
    let days = days.iter().map(|day| MarketDay::Trades(parts(day)));
    let two = changed(|options| options.instruments.push(instrument("9984.TSE")));
    crate::common::in_memory(days, &mut beside, &two, &mut Unpaced);
    assert_eq!(alone.told.last().unwrap(), "O-1 EXPIRED DAY t=23400");
    assert_eq!(alone.told, beside.told);
}

#[test]
fn f6_a_cancel_comes_too_late_after_the_instrument_s_own_end() {
    let cancel = || Action::Order(OrderCommand::Cancel { client_order_id: "O-1".into() });
    let script = || Script::default().after(1, limit("O-1", Buy, 100, "900")).after(2, cancel());
    let (mut alone, mut beside) = (script(), script());
    let own = [[day_of_trades(6)], [day_of_trades(7)]];
    let own = own.iter().map(|day| MarketDay::Trades(parts(day)));
    let slow = changed(|options| options.model.latency_ns = 1_000_000_000);
    crate::common::in_memory(own, &mut alone, &slow, &mut Unpaced);
    let late = Market::default().at_times(6, &[("15:30:02", "1000", 100)]);
    let both = [[day_of_trades(6), late], [day_of_trades(7), Market::default()]];
    let both = both.iter().map(|day| MarketDay::Trades(parts(day)));
    let two =
        ReplayOptions { instruments: vec![instrument("7203.TSE"), instrument("9984.TSE")], ..slow };
    crate::common::in_memory(both, &mut beside, &two, &mut Unpaced);
    let ends = ["O-1 PENDING_CANCEL t=23400", "O-1 EXPIRED DAY t=23400"];
    assert_eq!(alone.told[2..], ends);
    assert_eq!(beside.told[2..], ends);
}

#[test]
fn equity_is_marked_on_days_without_rows() {
    for kind in [BarGranularity::Minute, BarGranularity::Day] {
        let mut script = Script::default().after(1, market("O-1", Buy, 100));
        let days = days_of(Some(kind), &[6, 7, 10]);
        let options = changed(|options| options.dates = Some((january(3), january(15))));
        let result = crate::common::in_memory(days, &mut script, &options, &mut Unpaced);
        let marked: Vec<_> = result.days.iter().map(|row| row.ts_event.jst_date()).collect();
        // The 13th is a holiday.
        assert_eq!(marked, [6, 7, 8, 9, 10, 14, 15].map(january), "{kind:?}");
        assert_eq!(result.days[2].ts_event.to_string(), "2025-01-08 15:30:00.000000 JST");
        assert_eq!(result.totals.position_end, 100);
        let (before, after) = (&result.days[1], &result.days[2]);
        assert_eq!((before.cash, before.equity), (after.cash, after.equity), "{kind:?}");
        assert!(after.cash < after.equity, "{kind:?}");
    }
}

#[test]
fn f8_the_data_ends_with_the_last_date_asked_for() {
    let ends = |order| {
        let mut script = Script::default().after(2, order);
        let options = changed(|options| options.dates = Some((january(6), january(12))));
        let monday = [day_of_trades(6)];
        let days = [MarketDay::Trades(parts(&monday))];
        let result = crate::common::in_memory(days, &mut script, &options, &mut Unpaced);
        (script.told.last().unwrap().clone(), result.orders[0].ts_last.to_string())
    };
    let is =
        |told: &str, time: &str| (told.to_owned(), format!("2025-01-{time} 15:30:00.000000 JST"));
    let order = || limit("O-1", Buy, 100, "900");
    assert_eq!(ends(order()), is("O-1 EXPIRED DAY t=23400", "07"));
    assert_eq!(ends(until(9, order())), is("O-1 EXPIRED GTD t=23400", "09"));
    assert_eq!(ends(until(14, order())), is("O-1 EXPIRED END_OF_DATA t=23400", "10"));
}

#[test]
fn a_calendar_of_the_exchange_says_which_days_there_are() {
    let closed = [(6, true), (7, false), (8, true), (9, true), (10, true)];
    let calendar =
        ExchangeCalendar::listed(closed.map(|(day, is_open)| (january(day), is_open))).unwrap();
    let options = changed(|options| options.calendar = calendar);
    let mut script = Script::default().after(2, limit("O-1", Buy, 100, "900"));
    let days = days_of(Some(BarGranularity::Minute), &[6, 9]);
    let result = crate::common::in_memory(days, &mut script, &options, &mut Unpaced);
    // The 7th is no day, though the law has it open.
    assert_eq!(result.orders[0].ts_last.to_string(), "2025-01-08 15:30:00.000000 JST");
    assert_eq!(result.days.len(), 3);
}

/// The codes; nothing is ever done on the second.
const CODES: [&str; 2] = ["72030", "99840"];
const IDS: [&str; 2] = ["7203.TSE", "9984.TSE"];

/// The business days of the property, and one that only a calendar of the exchange closes.
const DATES: [u32; 13] = [6, 7, 8, 9, 10, 14, 15, 16, 17, 20, 21, 22, 23];
const CLOSED: u32 = 16;

/// Seconds after the open, price and shares.
type Print = (f64, i64, u64);

/// A data folder and the runs over it, drawn from a seed.
struct Case {
    seed: u64,
    granularity: Granularity,
    model: ExecutionModel,
    has_calendar: bool,
    /// Bars of the vendor, with rows that have no prices and without rows, in place of trades.
    has_bars: bool,
    /// Trades of each code on each date: seconds after 09:00, yen, shares.
    trades: BTreeMap<(u32, usize), Vec<Print>>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 46]);
        let granularity =
            [Granularity::Trade, Granularity::Minute, Granularity::Day][seed as usize % 3];
        let latency_ns = [0, 0, 700_000_000][random.below(3) as usize];
        let has_calendar = random.chance(0.5);
        let has_bars = granularity == Granularity::Day && random.chance(0.5);
        let mut trades = BTreeMap::new();
        for code in 0..CODES.len() {
            let mut dates: Vec<u32> = DATES.into_iter().filter(|_| random.chance(0.55)).collect();
            dates.push(DATES[random.place(DATES.len())]);
            dates.retain(|day| !has_calendar || *day != CLOSED);
            if dates.is_empty() {
                dates.push(DATES[0]);
            }
            for day in dates {
                let rows = (0..1 + random.below(12)).map(|_| {
                    let second = random.below(4 * 23_400) as f64 / 4.0;
                    // Nothing trades at noon.
                    let second = if (9_000.0..12_600.0).contains(&second) { 0.5 } else { second };
                    (second, 990 + random.below(21) as i64, 100 * (1 + random.below(8)))
                });
                let mut rows: Vec<_> = rows.collect();
                // What is on its way then meets rows of another that are later than the own last one.
                if random.chance(0.5) {
                    rows.push((23_400.0 + random.below(8) as f64 / 4.0, 1_000, 500));
                }
                rows.sort_by(|one, other| one.0.total_cmp(&other.0));
                trades.insert((day, code), rows);
            }
        }
        let model = ExecutionModel { latency_ns, ..ExecutionModel::default() };
        Self { seed, granularity, model, has_calendar, has_bars, trades }
    }

    fn write(&self, folder: &Path) {
        let mut random = Random::new(&[self.seed, 47]);
        for day in DATES {
            let date = january(day);
            let rows = |code| self.trades.get(&(day, code)).map_or(&[][..], Vec::as_slice);
            let mut text = if self.has_bars {
                "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n".to_owned()
            } else {
                "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n".to_owned()
            };
            for (index, name) in CODES.into_iter().enumerate() {
                let rows = rows(index);
                if !self.has_bars {
                    for (id, (second, price, shares)) in rows.iter().enumerate() {
                        let session = if *second < 10_800.0 { 1 } else { 2 };
                        let time = clock(*second);
                        writeln!(
                            text,
                            "{date},{name},{time},0{session},{price},{shares},{:012}",
                            id + 1
                        )
                        .unwrap();
                    }
                } else if let [(_, open, _), ..] = rows {
                    let prices = || rows.iter().map(|(_, price, _)| *price);
                    let (high, low) = (prices().max().unwrap(), prices().min().unwrap());
                    let close = prices().next_back().unwrap();
                    writeln!(text, "{date},{name},{open},{high},{low},{close},0,0,9000,1,1")
                        .unwrap();
                } else if random.chance(0.5) && !(self.has_calendar && day == CLOSED) {
                    writeln!(text, "{date},{name},,,,,0,0,0,0.0,1").unwrap();
                }
            }
            let kind = if self.has_bars { "bars_daily" } else { "trades" };
            put(folder, &format!("equities_{kind}_{}", date.format("%Y%m%d")), &text);
        }
        if self.has_calendar {
            let by_law = ExchangeCalendar::default();
            let mut text = "Date,HolDiv\n".to_owned();
            for date in january(1).iter_days().take(50) {
                let is_open = by_law.is_business_day(date) && date != january(CLOSED);
                writeln!(text, "{date},{}", u8::from(is_open)).unwrap();
            }
            std::fs::write(folder.join("markets_calendar.csv"), text).unwrap();
        }
    }

    fn request(&self, folder: &Path, ids: &[&str], dates: (u32, u32)) -> DataRequest {
        DataRequest {
            folder: folder.join("data"),
            cache: folder.join("cache"),
            instruments: ids.iter().map(|id| id.parse().unwrap()).collect(),
            start: Some(january(dates.0)),
            end: Some(january(dates.1)),
            granularity: self.granularity,
            choices: InstrumentChoices::default(),
        }
    }

    /// The last date asked for: one that may have rows, or one on a weekend after a day without any.
    fn last(&self) -> u32 {
        if self.seed.is_multiple_of(2) { 26 } else { 23 }
    }

    /// The run of the first code among these instruments, in windows of so many rows.
    fn run(&self, folder: &Path, ids: &[&str], window: u32) -> RunResult {
        let data = self.request(folder, ids, (4, self.last())).load(&mut Nobody).unwrap();
        let options = ReplayOptions {
            instruments: data.instruments.clone(),
            model: self.model,
            cash: Money::from_yen(1_000_000),
            base_prices: data.base_prices.clone(),
            unit_changes: data.unit_changes.clone(),
            split_dates_known: data.split_dates_known.clone(),
            ex_rights: data.ex_rights.clone(),
            calendar: data.calendar.clone(),
            dates: Some(data.range),
            window,
            ..options()
        };
        let place = ids.iter().position(|id| *id == IDS[0]).unwrap();
        let mut strategy = OnOne {
            instrument: InstrumentIx(place as u16),
            random: Random::new(&[self.seed, 48]),
            sent: 0,
            rows: vec![],
            done: 0,
        };
        crate::common::in_memory(data.series.days(), &mut strategy, &options, &mut Unpaced)
    }
}

fn clock(second: f64) -> String {
    let micros = (second * 1e6) as u64;
    let seconds = 9 * 3_600 + micros / 1_000_000;
    let (hour, minute, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{rest:02}.{:06}", micros % 1_000_000)
}

/// Sends, changes and cancels orders of all kinds when it sees a row of one instrument or hears that an order
/// of it ends, and never else.
struct OnOne {
    instrument: InstrumentIx,
    random: Random,
    sent: u32,
    /// The rows of the window, and how many of them it has seen.
    rows: Vec<(InstrumentIx, TsNanos)>,
    done: usize,
}

impl OnOne {
    fn command(&mut self, now: TsNanos) -> Action {
        let client_order_id = format!("O-{}", self.sent).as_str().into();
        let price = Some(Price::from_yen(985 + self.random.below(31) as i64));
        match self.random.below(8) {
            0 => Action::Order(OrderCommand::Cancel { client_order_id }),
            1 => {
                let change = OrderModify { price, ..OrderModify::default() };
                Action::Order(OrderCommand::Modify { client_order_id, change })
            }
            _ => self.order(now),
        }
    }

    fn order(&mut self, now: TsNanos) -> Action {
        self.sent += 1;
        let id = format!("O-{}", self.sent);
        let side = if self.random.chance(0.6) { Buy } else { Sell };
        let price = (985 + self.random.below(31)).to_string();
        let days = self.random.below(8);
        let action = match self.random.below(7) {
            0 => market(&id, side, 100),
            1 => lives(AtTheOpen, market(&id, side, 100)),
            2 => lives(AtTheClose, limit(&id, side, 100, &price)),
            3 => stop(&id, side, 100, &price),
            4 | 5 => limit(&id, side, 100, &price),
            _ => lives(TimeInForce::Gtd, limit(&id, side, 100, &price)),
        };
        crate::common::with(action, |order| {
            order.instrument = self.instrument;
            if order.time_in_force == TimeInForce::Gtd {
                order.expire_time = Some(now.plus_nanos(days * domain::time::NANOS_PER_DAY));
            }
        })
    }
}

impl StrategyRuntime for OnOne {
    fn identity(&self) -> Identity {
        Identity { component: "on one".into(), sha256: String::new() }
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

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        let rows = match window {
            Window::Resume => None,
            Window::OneTrade(trade) => Some(vec![(trade.instrument, trade.ts_event)]),
            Window::OneBar(bar) => Some(vec![(bar.instrument, bar.ts_event)]),
            Window::Bars(bars) => {
                Some(bars.iter().map(|bar| (bar.instrument, bar.ts_event)).collect())
            }
            Window::Trades(rows) => {
                let times = rows.ts_event.iter().copied().map(TsNanos::from_nanos);
                Some(rows.instrument.iter().copied().map(InstrumentIx).zip(times).collect())
            }
        };
        if let Some(rows) = rows {
            (self.rows, self.done) = (rows, 0);
        }
        let mut actions = vec![];
        while actions.is_empty() && self.done < limit as usize {
            let (instrument, now) = self.rows[self.done];
            self.done += 1;
            // Nothing is drawn for rows of another.
            if instrument == self.instrument && self.random.chance(0.7) {
                actions.push(self.command(now));
            }
        }
        Ok(Outcome { reached: self.done as u32, actions })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let ends = events.iter().filter(|event| event.status == OrderStatus::Expired);
        let mut actions = vec![];
        for event in ends {
            if self.random.chance(0.3) {
                actions.push(self.order(event.ts_event));
            }
        }
        Ok(actions)
    }

    fn on_account_events(&mut self, _: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
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

/// What is the same of a run alone and beside another instrument.
fn told(result: &RunResult) -> Vec<String> {
    let mut lines = Vec::new();
    for event in &result.order_events {
        lines.push(format!("{} {}", event.ts_event, words(event)));
    }
    for order in &result.orders {
        let (id, status) = (&order.request.client_order_id, order.status);
        lines.push(format!("{id} {status} {} at {}", order.filled, order.ts_last));
    }
    for fill in &result.fills {
        let (id, quantity, price) = (&fill.client_order_id, fill.quantity, fill.price);
        lines.push(format!("{id} {quantity}@{price} {} {}", fill.commission, fill.ts_event));
    }
    for row in &result.position_events {
        lines.push(format!("position at {}", row.ts_event));
    }
    for row in &result.days {
        lines.push(format!("{} {} {}", row.ts_event.jst_date(), row.cash, row.equity));
    }
    lines.push(format!("{} held", result.totals.position_end));
    lines
}

#[test]
fn a_run_alone_and_beside_another_instrument_is_the_same() {
    let seeds = std::env::var(SEEDS_ENV).ok().map_or(SEEDS, |text| text.parse().unwrap());
    let (mut fills, mut ends, mut quiet_days) = ([0; 3], 0, 0);
    for seed in 0..seeds {
        let case = Case::new(seed);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        case.write(&folder.path().join("data"));
        let alone = case.run(folder.path(), &IDS[..1], 1);
        let what = format!(
            "seed {seed}, {:?}, calendar {}, bars {}",
            case.granularity, case.has_calendar, case.has_bars
        );
        for ids in [[IDS[0], IDS[1]], [IDS[1], IDS[0]]] {
            let beside = case.run(folder.path(), &ids, 1);
            let (one, other) = (told(&alone), told(&beside));
            let differs = one.iter().zip(&other).find(|(one, other)| one != other);
            assert!(differs.is_none(), "{what}, {ids:?}: {differs:?}");
            assert_eq!(one.len(), other.len(), "{what}, {ids:?}");
            for window in [64, 1_024] {
                let windows = case.run(folder.path(), &ids, window);
                assert_eq!(told(&beside), told(&windows), "{what}, {ids:?}, window {window}");
                let (one, other) = (&beside.totals, &windows.totals);
                assert_eq!(one.digest, other.digest, "{what}, {ids:?}, window {window}");
            }
            let times = beside.order_events.iter().map(|event| event.ts_event);
            assert!(times.is_sorted(), "{what}, {ids:?}: time goes on");
        }
        // Every business day of the dates asked for is there: the 4th and the 26th are on weekends.
        let business_days =
            DATES.len() + usize::from(case.last() == 26) - usize::from(case.has_calendar);
        assert_eq!(alone.days.len(), business_days, "{what}");
        fills[seed as usize % 3] += alone.fills.len();
        let with_rows = |day: JstDate| {
            DATES.iter().any(|of| january(*of) == day && case.trades.contains_key(&(*of, 0)))
        };
        for order in &alone.orders {
            ends += u64::from(
                order.status == OrderStatus::Expired && !with_rows(order.ts_last.jst_date()),
            );
        }
        let days = alone.days.iter().map(|row| row.ts_event.jst_date());
        quiet_days += days.filter(|day| !with_rows(*day)).count() as u64;
    }
    assert!(fills.iter().all(|fills| *fills > 0), "{fills:?} fills");
    assert!(
        ends > seeds / 4 && quiet_days > seeds,
        "{ends} ends on {quiet_days} days without rows"
    );
    println!("{seeds} seeds, {fills:?} fills, {ends} orders ended on a day without rows");
}

#[test]
fn an_instrument_that_is_halted_on_all_dates_runs_beside_one_that_trades() {
    let folder = tempfile::tempdir().unwrap();
    let trade = || vec![(0.5, 1_000, 100)];
    let trades = BTreeMap::from([((6, 0), trade()), ((6, 1), trade()), ((7, 1), trade())]);
    let (granularity, model) = (Granularity::Trade, ExecutionModel::default());
    let case = Case { seed: 1, granularity, model, has_calendar: false, has_bars: false, trades };
    std::fs::create_dir(folder.path().join("data")).unwrap();
    case.write(&folder.path().join("data"));
    let load = |ids: &[&str]| case.request(folder.path(), ids, (7, 7)).load(&mut Nobody);
    let data = load(&IDS).unwrap();
    assert_eq!((data.days, data.total), (vec![january(7)], 1));
    assert_eq!(data.base_prices, [Some(Price::from_yen(1_000)); 2]);
    // Alone it has nothing to show, and a wrong name has no earlier price.
    for ids in [&IDS[..1], &[IDS[1], "9999.TSE"]] {
        let error = load(ids).unwrap_err().to_string();
        assert!(error.contains(&format!("no trades of {}", ids[ids.len() - 1])), "{error}");
    }
}
