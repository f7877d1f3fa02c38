//! Several instruments and bars.

use std::collections::BTreeMap;

use crate::common::paced::Witness;
use crate::common::{
    Market, SECOND, account_words, at, in_memory, instrument, limit, market, options, until, words,
};
use domain::OrderCommand;
use domain::account::PortfolioView;
use domain::adjustment::{Adjustment, ExRights};
use domain::fault::{Fault, FaultKind, Identity};
use domain::market::{Bar, BarGranularity, Trade, Window};
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    AccountEvent, Instrument, InstrumentIx, JstDate, Money, OrderEvent, OrderEventKind, OrderSide,
    Price, Quantity, TsNanos,
};
use marketdata::make_bars;
use proptest::prelude::*;
use replay::{MarketDay, ReplayOptions, TradingDay, Unpaced};
use results::{RunResult, RunStatus};

use OrderSide::{Buy, Sell};

/// Sends what its script says after the row with a number (from 1), and writes down every row.
#[derive(Default)]
struct Scribe {
    steps: BTreeMap<u64, Vec<Action>>,
    rows: Vec<String>,
    told: Vec<String>,
    seen: u64,
    window: Vec<String>,
    in_window: usize,
    /// Traps when it is told of its n-th fill, from 1.
    trap_at_fill: Option<u64>,
    fills: u64,
}

impl Scribe {
    fn after(mut self, row: u64, action: Action) -> Self {
        self.steps.entry(row).or_default().push(action);
        self
    }
}

fn row_of_trade(trade: &Trade) -> String {
    let second = trade.ts_event.jst_nanos_of_day() as f64 / 1e9 - 9.0 * 3_600.0;
    format!("{second} {} {} {}", trade.instrument.0, trade.price, trade.quantity)
}

fn row_of_bar(bar: &Bar) -> String {
    let minute = bar.ts_event.jst_nanos_of_day() / (60 * SECOND) - 9 * 60;
    let Bar { open, high, low, close, volume, .. } = bar;
    format!("{minute} {} {open} {high} {low} {close} {volume}", bar.instrument.0)
}

fn rows_of(window: &Window<'_>) -> Vec<String> {
    match window {
        Window::Resume => vec![],
        Window::OneTrade(trade) => vec![row_of_trade(trade)],
        Window::OneBar(bar) => vec![row_of_bar(bar)],
        Window::Bars(bars) => bars.iter().map(row_of_bar).collect(),
        Window::Trades(rows) => (0..rows.ts_event.len())
            .map(|row| {
                row_of_trade(&Trade {
                    ts_event: TsNanos::from_nanos(rows.ts_event[row]),
                    instrument: InstrumentIx(rows.instrument[row]),
                    price: Price::from_units(rows.price[row]),
                    quantity: Quantity::new(rows.quantity[row]),
                })
            })
            .collect(),
    }
}

impl StrategyRuntime for Scribe {
    fn identity(&self) -> Identity {
        Identity { component: "scribe".into(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(self.steps.remove(&0).unwrap_or_default())
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        if !matches!(window, Window::Resume) {
            self.window = rows_of(&window);
            self.in_window = 0;
        }
        while self.in_window < limit as usize {
            self.rows.push(self.window[self.in_window].clone());
            self.in_window += 1;
            self.seen += 1;
            if let Some(actions) = self.steps.remove(&self.seen) {
                return Ok(Outcome { reached: self.in_window as u32, actions });
            }
        }
        Ok(Outcome { reached: self.in_window as u32, actions: vec![] })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        for event in events {
            self.told.push(words(event));
            self.fills += u64::from(matches!(event.kind, OrderEventKind::Filled(_)));
        }
        if self.trap_at_fill.is_some_and(|limit| self.fills >= limit) {
            return Err(Box::new(Fault {
                component: "scribe".into(),
                sha256: String::new(),
                export: "on-order-events",
                ts_event: Some(events[0].ts_event),
                kind: FaultKind::Panic("as asked".into()),
                backtrace: vec![],
            }));
        }
        Ok(vec![])
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.told.extend(
            events.iter().map(|event| format!("{}: {}", event.instrument.0, account_words(event))),
        );
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

const IDS: [&str; 4] = ["7203.TSE", "9984.TSE", "130A.TSE", "25935.TSE"];

fn options_for(count: usize, window: u32) -> ReplayOptions {
    let instruments = IDS[..count].iter().map(|id| instrument(id)).collect();
    ReplayOptions { instruments, window, ..options() }
}

/// The days of several instruments, each with trades on the same days or none.
fn days_of<'a>(markets: &'a [Market]) -> Vec<MarketDay<'a>> {
    let split = |market: &'a Market| TradingDay::split(&market.ts, &market.price, &market.quantity);
    let parts: Vec<Vec<TradingDay<'a>>> =
        markets.iter().map(|market| split(market).collect()).collect();
    let mut dates: Vec<u64> = parts.iter().flatten().map(|day| day.ts_at(0).jst_day()).collect();
    dates.sort_unstable();
    dates.dedup();
    let of_date = |days: &[TradingDay<'a>], date| {
        let found = days.iter().find(|day| day.ts_at(0).jst_day() == date);
        found.map_or(TradingDay::empty(), TradingDay::clone)
    };
    dates
        .into_iter()
        .map(|date| MarketDay::Trades(parts.iter().map(|days| of_date(days, date)).collect()))
        .collect()
}

fn run(days: Vec<MarketDay<'_>>, scribe: &mut Scribe, options: &ReplayOptions) -> RunResult {
    in_memory(days, scribe, options, &mut Unpaced)
}

/// The action for another instrument than the first.
fn on(instrument: u16, action: Action) -> Action {
    match action {
        Action::Order(OrderCommand::Submit(mut request)) => {
            request.instrument = InstrumentIx(instrument);
            Action::Order(OrderCommand::Submit(request))
        }
        other => other,
    }
}

fn two_markets() -> [Market; 2] {
    [
        Market::default()
            .trade(6, 1.0, "1000", 300)
            .trade(6, 3.0, "1001", 300)
            .trade(6, 3.0, "1002", 300)
            .trade(8, 1.0, "1003", 300),
        Market::default()
            .trade(6, 1.0, "500", 300)
            .trade(6, 2.0, "501", 300)
            .trade(6, 3.0, "502", 300)
            .trade(7, 1.0, "503", 300),
    ]
}

#[test]
fn instruments_are_merged_by_time_instrument_and_row() {
    for window in [1, 2, 3, 64] {
        let markets = two_markets();
        let mut scribe = Scribe::default();
        let result = run(days_of(&markets), &mut scribe, &options_for(2, window));
        assert_eq!(
            scribe.rows,
            [
                "1 0 1000 300",
                "1 1 500 300",
                "2 1 501 300",
                "3 0 1001 300",
                "3 0 1002 300",
                "3 1 502 300",
                "1 1 503 300",
                "1 0 1003 300",
            ]
        );
        assert_eq!((result.totals.trades_seen, result.totals.market_volume), (8, 2_400));
        let (first, last) = result.totals.span.unwrap();
        assert_eq!((first.nanos(), last.nanos()), (at(6, 1.0), at(8, 1.0)));
    }
}

#[test]
fn each_instrument_has_its_own_price_and_position() {
    let markets = two_markets();
    let mut scribe = Scribe::default()
        .after(1, market("A", Buy, 100))
        .after(2, on(1, market("B", Buy, 200)))
        .after(5, market("C", Sell, 100));
    let result = run(days_of(&markets), &mut scribe, &options_for(2, 1));
    let fills: Vec<_> = scribe.told.iter().filter(|line| line.contains("FILLED")).collect();
    // C waits for a trade of its own instrument, two days later, and ends with its day.
    assert_eq!(fills, ["B FILLED 200@501 t=2", "A FILLED 100@1001 t=3"]);
    assert!(scribe.told.iter().any(|line| line.starts_with("C EXPIRED DAY")), "{:?}", scribe.told);
    // Cash, and what is held at the last price of each: 1,003 and 503.
    let cash = 10_000_000 - 200 * 501 - 100 * 1_001;
    assert_eq!(result.totals.cash_end, Money::from_yen(cash));
    assert_eq!(result.totals.equity_end, Money::from_yen(cash + 100 * 1_003 + 200 * 503));
    assert_eq!(result.equity.last().unwrap().equity, result.totals.equity_end);
}

#[test]
fn limits_of_the_day_follow_each_instruments_own_close() {
    let markets = [
        Market::default().trade(6, 1.0, "1000", 300).trade(7, 1.0, "1200", 300),
        Market::default().trade(6, 1.0, "100", 300).trade(7, 2.0, "120", 300),
    ];
    let mut scribe = Scribe::default()
        // Around a close of 1,000 a day ranges from 700 to 1,300; around 100 from 50 to 150.
        .after(3, limit("A", Buy, 100, "1300"))
        .after(3, limit("B", Buy, 100, "1300.5"))
        .after(3, on(1, limit("C", Buy, 100, "150")))
        .after(3, on(1, limit("D", Buy, 100, "150.5")));
    run(days_of(&markets), &mut scribe, &options_for(2, 1));
    let rejected: Vec<_> = scribe.told.iter().filter(|line| line.contains("REJECTED")).collect();
    assert_eq!(rejected.len(), 2, "{:?}", scribe.told);
    assert!(rejected[0].starts_with("B ") && rejected[1].starts_with("D "), "{rejected:?}");
}

#[test]
fn five_instruments_and_one_twice_are_refused() {
    let mut five = options_for(4, 1);
    five.instruments.push(instrument("6758.TSE"));
    let error = five.check().unwrap_err();
    assert_eq!(error.to_string(), "5 instruments asked for; one replay takes 1 to 4");
    let none = ReplayOptions { instruments: vec![], ..options() };
    assert!(none.check().unwrap_err().to_string().starts_with("0 instruments"));
    let twice = ReplayOptions {
        instruments: vec![instrument(IDS[0]), instrument(IDS[1]), instrument(IDS[0])],
        ..options()
    };
    assert_eq!(
        twice.check().unwrap_err().to_string(),
        "the instrument 7203.TSE is given twice; give each once"
    );
    assert!(options_for(4, 1).check().is_ok());
}

/// Bars of one minute each: (minute after 09:00, instrument, open, high, low, close, volume).
fn bar(minute: u64, index: u16, prices: [&str; 4], volume: u64) -> Bar {
    let [open, high, low, close] = prices.map(|text| text.parse().unwrap());
    Bar {
        ts_event: TsNanos::from_nanos(at(6, minute as f64 * 60.0)),
        instrument: InstrumentIx(index),
        granularity: BarGranularity::Minute,
        open,
        high,
        low,
        close,
        volume: Quantity::new(volume),
    }
}

#[test]
fn bars_come_in_order_and_fill_from_the_next_bar_on() {
    let bars = || {
        MarketDay::bars(vec![
            bar(1, 0, ["1000", "1010", "990", "1005"], 4_000),
            bar(2, 0, ["1006", "1006", "1001", "1002"], 4_000),
            bar(4, 0, ["1003", "1020", "1003", "1020"], 4_000),
            bar(1, 1, ["500", "500", "500", "500"], 4_000),
            bar(3, 1, ["501", "501", "501", "501"], 4_000),
        ])
    };
    for window in [1, 2, 64] {
        let mut scribe = Scribe::default()
            .after(1, market("A", Buy, 100))
            .after(2, on(1, market("B", Buy, 100)))
            .after(3, limit("C", Sell, 100, "1019.5"));
        let result = run(vec![bars()], &mut scribe, &options_for(2, window));
        assert_eq!(
            scribe.rows,
            [
                "1 0 1000 1010 990 1005 4000",
                "1 1 500 500 500 500 4000",
                "2 0 1006 1006 1001 1002 4000",
                "3 1 501 501 501 501 4000",
                "4 0 1003 1020 1003 1020 4000",
            ]
        );
        let fills: Vec<_> = scribe.told.iter().filter(|line| line.contains("FILLED")).collect();
        assert_eq!(
            fills,
            ["A FILLED 100@1006 t=120", "B FILLED 100@501 t=180", "C FILLED 100@1019.5 t=240"],
            "window {window}"
        );
        assert_eq!((result.totals.trades_seen, result.totals.market_volume), (5, 20_000));
        // A bar is valued at its own end, with the fills that it brought.
        let cash = |seconds: f64| {
            let row = result.equity.iter().find(|row| row.ts_event.nanos() == at(6, seconds));
            row.map(|row| row.cash.to_string())
        };
        assert_eq!(
            [60.0, 120.0, 180.0, 240.0, 300.0].map(cash),
            [Some("10000000"), Some("9899400"), Some("9849300"), Some("9951250"), None]
                .map(|text| text.map(str::to_owned)),
        );
    }
}

#[test]
fn an_order_of_a_daily_bar_fills_on_the_next_day_or_ends_with_it() {
    let day = |date: u32, index, price: &str| Bar {
        ts_event: TsNanos::from_nanos(at(date, 6.5 * 3_600.0)),
        granularity: BarGranularity::Day,
        ..bar(0, index, [price; 4], 4_000)
    };
    let days = || -> Vec<MarketDay<'_>> {
        [(6, "100", "50"), (7, "101", "51"), (8, "102", "52"), (9, "103", "53")]
            .into_iter()
            .map(|(date, first, second)| {
                MarketDay::bars(vec![day(date, 0, first), day(date, 1, second)])
            })
            .collect()
    };
    for window in [1, 2] {
        let mut scribe = Scribe::default()
            .after(1, market("A", Buy, 100))
            .after(1, on(1, market("B", Buy, 100)))
            .after(3, on(1, limit("C", Buy, 100, "40")));
        run(days(), &mut scribe, &options_for(2, window));
        let ends =
            scribe.told.iter().filter(|line| line.contains("FILLED") || line.contains("DAY"));
        assert_eq!(
            ends.collect::<Vec<_>>(),
            ["A FILLED 100@101 t=23400", "B FILLED 100@51 t=23400", "C EXPIRED DAY t=23400",],
            "window {window}"
        );
    }
}

#[test]
fn a_run_over_bars_made_from_trades_sees_those_bars() {
    let trades = Market::default()
        .trade(6, 1.0, "1000", 100)
        .trade(6, 30.0, "1002", 200)
        .trade(6, 61.0, "1001", 300);
    let mut made = Vec::new();
    let only = InstrumentIx(0);
    make_bars(BarGranularity::Minute, only, &trades.ts, &trades.price, &trades.quantity, &mut made);
    let mut scribe = Scribe::default();
    let day = MarketDay::bars(made.into_iter().map(|made| made.bar).collect());
    run(vec![day], &mut scribe, &options_for(1, 1));
    assert_eq!(scribe.rows, ["1 0 1000 1002 1000 1002 300", "2 0 1001 1001 1001 1001 300"]);
}

/// Trades and commands of a small market that never repeats itself.
fn any_markets() -> impl Strategy<Value = Vec<Market>> {
    let row = (0..4_u32, 0..3_u32, 95..106_i64, 1..8_u64);
    let market = prop::collection::vec(row, 1..40).prop_map(|rows| {
        let mut second = 0.0;
        let mut day = 6;
        rows.into_iter().fold(Market::default(), |market, (step, next_day, price, lots)| {
            if next_day == 0 && day < 9 {
                (day, second) = (day + 1, 0.0);
            }
            second += f64::from(step);
            market.trade(day, second, &price.to_string(), lots * 100)
        })
    });
    prop::collection::vec(market, 1..=3)
}

fn any_actions() -> impl Strategy<Value = Vec<(u64, u16, bool, Option<i64>, u64)>> {
    let price = prop::option::of(94..107_i64);
    prop::collection::vec((0..80_u64, 0..3_u16, any::<bool>(), price, 1..6_u64), 0..25)
}

proptest! {
    #[test]
    fn windows_and_paths_agree(
        markets in any_markets(),
        actions in any_actions(),
        latency_ms in prop::sample::select(vec![0_u64, 700, 2_500]),
        window in 2..50_u32,
    ) {
        let script = || {
            let mut scribe = Scribe::default();
            for (number, (row, index, buys, price, lots)) in actions.iter().enumerate() {
                let side = if *buys { Buy } else { Sell };
                let (id, quantity) = (format!("O-{number}"), lots * 100);
                let action = match price {
                    Some(price) => limit(&id, side, quantity, &price.to_string()),
                    None => market(&id, side, quantity),
                };
                let index = index % markets.len() as u16;
                scribe = scribe.after(*row, on(index, action));
            }
            scribe
        };
        let with = |window| {
            let mut options = options_for(markets.len(), window);
            options.model.latency_ns = latency_ms * 1_000_000;
            options
        };
        let mut strict = script();
        let first = run(days_of(&markets), &mut strict, &with(1));
        prop_assert_eq!(&first.totals.status, &RunStatus::Completed);
        let mut in_windows = script();
        let second = run(days_of(&markets), &mut in_windows, &with(window));
        let mut one_by_one = script();
        let mut witness = Witness::default();
        let third = witness.paced(days_of(&markets), &mut one_by_one, &with(window), "60");
        for (other, scribe) in [(second, in_windows), (third, one_by_one)] {
            prop_assert_eq!(first.totals.digest, other.totals.digest);
            prop_assert_eq!(&first.fills, &other.fills);
            prop_assert_eq!(&first.equity, &other.equity);
            prop_assert_eq!(first.totals.span, other.totals.span);
            prop_assert_eq!(&strict.rows, &scribe.rows);
            prop_assert_eq!(&strict.told, &scribe.told);
        }
        let equity = first.equity.last().map(|row| row.equity);
        prop_assert_eq!(equity, Some(first.totals.equity_end));
        let events = witness.events.iter().filter(|line| !line.starts_with("marker"));
        prop_assert!(events.eq(&strict.told), "subscribers are told what the strategy is told");
    }
}

#[test]
fn splits_of_one_day_are_told_together_also_of_what_has_not_traded() {
    let markets = [
        Market::default().trade(6, 1.0, "1000", 500).trade(7, 1.0, "500", 500),
        Market::default().trade(7, 5.0, "2000", 500),
    ];
    let ex_rights = |instrument, factor| ExRights {
        date: JstDate::from_ymd_opt(2025, 1, 7).unwrap(),
        instrument: InstrumentIx(instrument),
        adjustment: Adjustment::of_price_factor(factor).unwrap(),
    };
    let options = ReplayOptions {
        ex_rights: vec![ex_rights(0, "0.5"), ex_rights(1, "2")],
        ..options_for(2, 64)
    };
    let order = on(1, until(8, limit("O-1", Buy, 100, "990")));
    let mut scribe = Scribe::default().after(1, order);
    let result = run(days_of(&markets), &mut scribe, &options);
    assert_eq!(result.totals.status, RunStatus::Completed);
    assert_eq!(
        scribe.told[scribe.told.len() - 3..],
        [
            "O-1 EXPIRED EX_RIGHTS t=-32400",
            "0: SPLIT 2 for 1: 0 held, 0 paid, last 500 t=-32400",
            "1: SPLIT 1 for 2: 0 held, 0 paid, last none t=-32400",
        ]
    );
}
