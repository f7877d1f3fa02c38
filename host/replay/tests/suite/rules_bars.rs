//! The rules for bars (F10), each with tests that carry its name.

use crate::common::{
    SECOND, changed, limit, lives, market, options, stop, stop_limit, with, words,
};
use domain::Origin;
use domain::execution::ExecutionClient;
use domain::market::{Bar, BarGranularity};
use domain::session::TradingHours;
use domain::strategy::Action;
use domain::{
    Instrument, InstrumentIx, JstDate, Money, OrderEventKind, OrderSide, Price, Quantity,
    TickTable, TimeInForce, TsNanos,
};
use exchange::Exchange;
use exchange::ExecutionModel;
use replay::ReplayOptions;

use BarGranularity::{Day, Minute};
use OrderSide::{Buy, Sell};

/// An exchange that is fed bars of a Monday and hears commands between them.
struct Bench {
    exchange: Exchange,
    told: Vec<String>,
    now: TsNanos,
}

fn clock(day: u32, time: &str) -> TsNanos {
    let (hour, minute) = time.split_once(':').unwrap();
    let of_day = (hour.parse::<u64>().unwrap() * 60 + minute.parse::<u64>().unwrap()) * 60;
    TsNanos::from_jst(JstDate::from_ymd_opt(2025, 1, day).unwrap(), of_day * SECOND).unwrap()
}

impl Bench {
    fn new(change: impl FnOnce(&mut ExecutionModel)) -> Self {
        let mut options = options();
        change(&mut options.model);
        Self::with(options)
    }

    fn with(options: ReplayOptions) -> Self {
        let other =
            Instrument { id: "6758.TSE".parse().unwrap(), ..options.instruments[0].clone() };
        let instruments = [options.instruments[0].clone(), other];
        let exchange = Exchange::new(options.model, &instruments, Money::from_yen(10_000_000));
        let bench = Self { exchange, told: vec![], now: clock(6, "08:00") };
        bench.begin(TradingHours::of(JstDate::from_ymd_opt(2025, 1, 6).unwrap()), 1_000)
    }

    /// A day that is known as one bar.
    fn day(self, day: u32, base: i64) -> Self {
        let hours = TradingHours::of(JstDate::from_ymd_opt(2025, 1, day).unwrap());
        self.begin(hours.in_one_session(), base)
    }

    fn begin(mut self, hours: TradingHours, base: i64) -> Self {
        for instrument in [InstrumentIx(0), InstrumentIx(1)] {
            self.exchange.begin_day(hours, instrument, Some(Price::from_yen(base)));
        }
        self
    }

    fn send(mut self, action: Action) -> Self {
        match action {
            Action::Order(command) => self.exchange.execute(self.now, Origin::Strategy, command),
            other => panic!("{other:?}"),
        }
        self.listen()
    }

    fn listen(mut self) -> Self {
        let wanted = |kind: &OrderEventKind| {
            matches!(kind, OrderEventKind::Filled(_) | OrderEventKind::Expired(_))
                || matches!(kind, OrderEventKind::Rejected(_))
        };
        let events = self.exchange.take_events();
        self.told.extend(events.iter().filter(|event| wanted(&event.kind)).map(words));
        self
    }

    fn take(mut self, bar: Bar) -> Self {
        while self.exchange.next_due().is_some_and(|due| due <= bar.ts_event) {
            self.exchange.run_due();
        }
        self.exchange.take_bar(bar.instrument, &bar);
        self.now = bar.ts_event;
        self.listen()
    }

    /// A bar with prices open, high, low, close.
    fn bar(self, span: BarGranularity, end: TsNanos, prices: [i64; 4], volume: u64) -> Self {
        let [open, high, low, close] = prices.map(Price::from_yen);
        self.take(Bar {
            ts_event: end,
            instrument: InstrumentIx(0),
            granularity: span,
            open,
            high,
            low,
            close,
            volume: Quantity::new(volume),
        })
    }

    fn minute(self, end: &str, prices: [i64; 4], volume: u64) -> Self {
        self.bar(Minute, clock(6, end), prices, volume)
    }

    fn close(mut self) -> Self {
        self.exchange.end_day(clock(6, "15:30"));
        self.now = clock(6, "15:30");
        self.listen()
    }

    #[track_caller]
    fn tells(self, wanted: &[&str]) -> Self {
        assert_eq!(self.told, wanted);
        Self { told: vec![], ..self }
    }
}

fn quiet() -> Bench {
    Bench::new(|_| {}).minute("10:00", [1000, 1000, 1000, 1000], 1_000)
}

fn holding(shares: u64) -> Bench {
    let bench = Bench::new(|_| {}).send(market("O-0", Buy, shares));
    let bench = bench.minute("10:00", [1000, 1000, 1000, 1000], 10_000);
    Bench { told: vec![], ..bench }
}

#[test]
fn f10_what_is_decided_on_a_bar_fills_from_the_next_open() {
    quiet()
        .send(market("O-1", Buy, 100))
        .minute("10:01", [1005, 1010, 1001, 1002], 1_000)
        .tells(&["O-1 FILLED 100@1005 t=3660"]);
}

#[test]
fn f10_slippage_stays_inside_the_bar_s_range() {
    Bench::new(|model| model.slippage_ticks = 4)
        .minute("10:00", [1000, 1000, 1000, 1000], 1_000)
        .send(market("O-1", Buy, 100))
        .minute("10:01", [1005, 1010, 1001, 1002], 1_000)
        .send(market("O-2", Buy, 100))
        .minute("10:02", [1005, 1006, 1004, 1004], 1_000)
        .send(market("O-3", Sell, 100))
        .minute("10:03", [1005, 1006, 1004, 1004], 1_000)
        .tells(&[
            "O-1 FILLED 100@1007 t=3660",
            "O-2 FILLED 100@1006 t=3720",
            "O-3 FILLED 100@1004 t=3780",
        ]);
}

#[test]
fn f10_all_orders_share_the_participation_of_the_bar() {
    Bench::new(|model| model.participation_percent = 10)
        .minute("10:00", [1000, 1000, 1000, 1000], 1_000)
        .send(market("O-1", Buy, 200))
        .send(limit("O-2", Buy, 200, "995"))
        .minute("10:01", [1000, 1000, 990, 990], 3_990)
        .minute("10:02", [990, 991, 990, 990], 1_000)
        .tells(&[
            "O-1 FILLED 200@1000 t=3660",
            "O-2 PARTIALLY_FILLED 100@995 t=3660",
            "O-2 FILLED 100@995 t=3720",
        ]);
}

#[test]
fn f10_a_resting_order_needs_a_trade_through_it_and_fills_at_its_own_price() {
    quiet()
        .send(limit("O-1", Buy, 100, "995"))
        .minute("10:01", [1000, 1001, 995, 1000], 1_000)
        .tells(&[])
        .minute("10:02", [1000, 1001, 994, 1000], 1_000)
        .tells(&["O-1 FILLED 100@995 t=3720"])
        .send(limit("O-2", Sell, 100, "1010"))
        .minute("10:03", [1015, 1020, 1012, 1012], 1_000)
        .tells(&["O-2 FILLED 100@1010 t=3780"]);
    Bench::new(|model| model.queue_ahead = Some(0))
        .minute("10:00", [1000, 1000, 1000, 1000], 1_000)
        .send(limit("O-1", Buy, 100, "995"))
        .minute("10:01", [1000, 1001, 995, 1000], 1_000)
        .tells(&["O-1 FILLED 100@995 t=3660"]);
}

#[test]
fn f10_a_marketable_limit_whose_price_is_left_rests() {
    quiet()
        .send(limit("O-1", Buy, 100, "1001"))
        .minute("10:01", [1003, 1004, 1002, 1003], 1_000)
        .tells(&[])
        .minute("10:02", [1002, 1002, 1000, 1000], 1_000)
        .tells(&["O-1 FILLED 100@1001 t=3720"]);
}

#[test]
fn f10_a_stop_fills_inside_the_bar_at_the_worse_of_trigger_and_open() {
    let stops = |open, slippage| {
        let bench = holding(100);
        let bench = if slippage == 0 {
            bench
        } else {
            let bench =
                Bench::new(|model| model.slippage_ticks = slippage).send(market("O-0", Buy, 100));
            let bench = bench.minute("10:00", [1000, 1000, 1000, 1000], 10_000);
            Bench { told: vec![], ..bench }
        };
        bench.send(stop("O-1", Sell, 100, "990")).minute("10:01", [open, 1000, 985, 995], 1_000)
    };
    stops(1000, 0).tells(&["O-1 FILLED 100@990 t=3660"]);
    stops(987, 0).tells(&["O-1 FILLED 100@987 t=3660"]);
    stops(1000, 4).tells(&["O-1 FILLED 100@988 t=3660"]);
    stops(986, 4).tells(&["O-1 FILLED 100@985 t=3660"]);
}

#[test]
fn f10_path_a_stop_comes_before_a_target_in_the_same_bar() {
    holding(200)
        .send(limit("O-1", Sell, 100, "1010"))
        .send(stop("O-2", Sell, 100, "990"))
        .minute("10:01", [1000, 1020, 980, 1000], 100)
        .tells(&["O-2 FILLED 100@990 t=3660"])
        .minute("10:02", [1000, 1020, 1000, 1000], 100)
        .tells(&["O-1 FILLED 100@1010 t=3720"]);
}

#[test]
fn f10_what_a_triggered_stop_leaves_is_a_market_order_for_the_next_bar() {
    holding(300)
        .send(stop("O-1", Sell, 300, "990"))
        .minute("10:01", [1000, 1000, 980, 985], 100)
        .minute("10:02", [983, 984, 980, 984], 1_000)
        .tells(&["O-1 PARTIALLY_FILLED 100@990 t=3660", "O-1 FILLED 200@983 t=3720"]);
}

#[test]
fn f10_a_bar_too_small_for_an_order_shows_that_the_price_has_left_it() {
    for participation in [10, 12] {
        Bench::new(|model| model.participation_percent = participation)
            .minute("10:00", [1000; 4], 10_000)
            .send(limit("O-1", Buy, 100, "1000"))
            .minute("10:01", [1003; 4], 900)
            .tells(&[])
            .minute("10:02", [990; 4], 50_000)
            .tells(&["O-1 FILLED 100@1000 t=3720"]);
    }
}

#[test]
fn f10_path_a_stop_limit_fills_only_where_the_path_is_certain() {
    let buys = |trigger, price, prices| {
        quiet().send(stop_limit("O-1", Buy, 100, trigger, price)).minute("10:01", prices, 1_000)
    };
    // Triggered inside the bar and within its limit.
    buys("1010", "1012", [1000, 1020, 995, 1000]).tells(&["O-1 FILLED 100@1010 t=3660"]);
    // The limit is below the trigger: whether the low came before is unknown.
    let bench = buys("1010", "1000", [1000, 1020, 990, 1015]).tells(&[]);
    bench.minute("10:02", [1015, 1015, 990, 990], 100).tells(&["O-1 FILLED 100@1000 t=3720"]);
    // Opened beyond the limit and came back to it afterwards.
    buys("1010", "1012", [1015, 1020, 1005, 1010]).tells(&["O-1 FILLED 100@1012 t=3660"]);
    buys("1010", "1012", [1015, 1020, 1012, 1013]).tells(&[]);
}

#[test]
fn f10_an_order_that_arrives_inside_a_bar_takes_part_in_the_next() {
    Bench::new(|model| model.latency_ns = 1)
        .minute("10:00", [1000, 1000, 1000, 1000], 1_000)
        .send(market("O-1", Buy, 100))
        .minute("10:01", [1005, 1005, 1005, 1005], 1_000)
        .tells(&[])
        .minute("10:02", [1006, 1006, 1006, 1006], 1_000)
        .tells(&["O-1 FILLED 100@1006 t=3720"]);
}

#[test]
fn f10_bars_of_another_instrument_fill_nothing() {
    let bench = quiet().send(with(market("O-1", Buy, 100), |order| order.instrument.0 = 1));
    let bench = bench.minute("10:01", [1005, 1005, 1005, 1005], 1_000).tells(&[]);
    let yen = Price::from_yen(1_010);
    bench
        .take(Bar {
            ts_event: clock(6, "10:01"),
            instrument: InstrumentIx(1),
            granularity: Minute,
            open: yen,
            high: yen,
            low: yen,
            close: yen,
            volume: Quantity::new(100),
        })
        .tells(&["O-1 FILLED 100@1010 t=3660"]);
}

#[test]
fn f10_auctions_on_minute_bars() {
    Bench::new(|model| model.slippage_ticks = 3)
        .send(lives(TimeInForce::AtTheOpen, market("O-1", Buy, 1_500)))
        .minute("09:01", [1000, 1010, 990, 1005], 1_000)
        .tells(&["O-1 PARTIALLY_FILLED 1000@1000 t=60", "O-1 EXPIRED AT_THE_OPEN t=60"])
        .send(lives(TimeInForce::AtTheClose, market("O-2", Sell, 100)))
        .minute("11:30", [1001, 1002, 1000, 1000], 1_000)
        .tells(&[])
        .minute("11:31", [1003, 1003, 1003, 1003], 1_000)
        .tells(&["O-2 FILLED 100@1003 t=9060"])
        .send(lives(TimeInForce::AtTheClose, market("O-3", Sell, 100)))
        .minute("15:25", [1001, 1002, 1000, 1000], 1_000)
        .minute("15:31", [1004, 1004, 1004, 1004], 1_000)
        .tells(&["O-3 FILLED 100@1004 t=23460"]);
}

#[test]
fn f10_a_bar_that_opens_with_an_auction_fills_at_its_price() {
    Bench::new(|model| model.slippage_ticks = 3)
        .send(limit("O-1", Buy, 100, "1010"))
        .send(limit("O-2", Buy, 100, "1000"))
        .send(market("O-3", Buy, 100))
        .minute("09:01", [1000, 1010, 1000, 1005], 1_000)
        .tells(&["O-3 FILLED 100@1000 t=60", "O-1 FILLED 100@1000 t=60"])
        .minute("09:02", [998, 999, 997, 997], 1_000)
        .tells(&["O-2 FILLED 100@1000 t=120"]);
}

#[test]
fn f10_on_day_bars_orders_are_for_the_next_day() {
    let day = |bench: Bench, day, prices| bench.bar(Day, clock(day, "15:30"), prices, 100_000);
    let bench = day(Bench::new(|_| {}).day(6, 1_000), 6, [1000, 1010, 990, 1005]);
    let open = lives(TimeInForce::AtTheOpen, market("O-1", Buy, 100));
    let close = lives(TimeInForce::AtTheClose, market("O-2", Buy, 100));
    let bench = bench.send(open).send(close).send(market("O-3", Buy, 100));
    let bench = bench.send(limit("O-4", Buy, 100, "960")).close().tells(&[]).day(7, 1_005);
    let bench = day(bench, 7, [1020, 1030, 1001, 1002]).tells(&[
        "O-1 FILLED 100@1020 t=23400",
        "O-3 FILLED 100@1020 t=23400",
        "O-2 FILLED 100@1002 t=23400",
    ]);
    let mut bench = bench;
    bench.exchange.end_day(clock(7, "15:30"));
    bench.listen().tells(&["O-4 EXPIRED DAY t=23400"]);
}

#[test]
fn f10_funari_on_day_bars_is_a_market_order_at_the_close() {
    let funari = with(lives(TimeInForce::AtTheClose, limit("O-1", Buy, 100, "980")), |order| {
        order.tags = vec!["close_strategy=funari".to_owned()];
    });
    let first = Bench::new(|_| {}).day(6, 1_000);
    let first = first.bar(Day, clock(6, "15:30"), [1000, 1010, 990, 1005], 10_000);
    let bench = first.send(funari).close().day(7, 1_005);
    bench
        .bar(Day, clock(7, "15:30"), [1000, 1010, 990, 1008], 10_000)
        .tells(&["O-1 FILLED 100@1008 t=23400"]);
}

#[test]
fn f10_a_bar_outside_the_day_s_range_widens_it() {
    quiet()
        .send(market("O-1", Buy, 100))
        .send(limit("O-2", Buy, 100, "1400"))
        .minute("10:01", [1000, 1301, 1000, 1000], 1_000)
        .send(limit("O-3", Buy, 100, "1400"))
        .minute("10:02", [1000, 1001, 1000, 1000], 1_000)
        .tells(&[
            "O-2 REJECTED VENUE_REJECTED: PRICE_LIMIT: 1400 is outside the day's range 700 to 1300 \
             t=3600",
            "O-1 FILLED 100@1000 t=3660",
            "O-3 FILLED 100@1000 t=3720",
        ]);
}

/// A bar tells its own prices, whatever of them an order fills at: a limit is always one of the tick table, and what
/// takes liquidity fills inside the bar.
#[test]
fn f2_fills_on_bars_off_the_tick_table_are_told() {
    let thirds = |order: fn() -> Action, prices: [i64; 4]| {
        let ticks = TickTable::Fixed(Price::from_yen(3));
        let bench = Bench::with(changed(|options| options.instruments[0].ticks = ticks));
        let bench = bench.minute("10:00", [999, 999, 999, 999], 1_000).send(order());
        bench.minute("10:01", prices, 1_000).exchange.tick_warnings()
    };
    let resting: fn() -> Action = || limit("O-1", Buy, 100, "990");
    let triggered: fn() -> Action = || stop_limit("O-1", Buy, 100, "1002", "1005");
    let taking: fn() -> Action = || market("O-1", Buy, 100);
    let stopped: fn() -> Action = || stop("O-1", Buy, 100, "1002");
    for (order, prices, is_told) in [
        (resting, [999, 999, 988, 999], true),
        (resting, [999, 999, 987, 999], false),
        (resting, [1_000, 1_000, 987, 1_000], true),
        // It filled nothing.
        (resting, [1_000, 1_000, 991, 1_000], false),
        (taking, [999, 1_000, 999, 999], true),
        (taking, [999, 1_002, 998, 999], true),
        (taking, [999, 1_002, 996, 1_001], true),
        (taking, [999, 1_002, 996, 999], false),
        (stopped, [999, 1_003, 999, 999], true),
        (stopped, [999, 1_005, 999, 999], false),
        (resting, [999, 999, 991, 999], false),
        (triggered, [1_008, 1_008, 1_001, 1_008], true),
        (triggered, [1_008, 1_008, 1_002, 1_008], false),
    ] {
        let told = thirds(order, prices);
        assert_eq!(told.len(), usize::from(is_told), "{prices:?}: {told:?}");
        assert!(told.iter().all(|line| line.starts_with("TICKS: 7203.TSE: ")), "{told:?}");
    }
}

#[test]
fn f10_the_look_ahead_finds_the_bars_that_matter() {
    let bar = |minute: u64, instrument| Bar {
        ts_event: TsNanos::from_nanos(clock(6, "10:00").nanos() + minute * 60 * SECOND),
        instrument: InstrumentIx(instrument),
        granularity: Minute,
        open: Price::from_yen(1_000),
        high: Price::from_yen(1_000),
        low: Price::from_yen(1_000),
        close: Price::from_yen(1_000),
        volume: Quantity::new(100),
    };
    let bars = [bar(1, 0), bar(1, 1), bar(2, 0), bar(2, 1)];
    let bench = quiet();
    assert_eq!(bench.exchange.next_bar_stop(&bars, 0, 4), 4, "nothing works");
    let bench = bench.send(with(limit("O-1", Buy, 100, "900"), |order| order.instrument.0 = 1));
    assert_eq!(bench.exchange.next_bar_stop(&bars, 0, 4), 1);
    assert_eq!(bench.exchange.next_bar_stop(&bars, 2, 3), 3);
    let mut late = Bench::new(|model| model.latency_ns = 90 * SECOND);
    late.now = clock(6, "10:00");
    let late = late.send(market("O-1", Buy, 100));
    assert_eq!(late.exchange.next_bar_stop(&bars, 0, 4), 2, "the order arrives inside that bar");
}

#[test]
fn only_a_bar_that_opens_outside_the_range_is_a_price_gap() {
    let warned = |open, low| {
        let bench = holding(100).day(7, 1_000);
        let bench = bench.bar(Day, clock(7, "15:30"), [open, 1_000, low, 800], 1_000);
        bench.exchange.gap_warnings()
    };
    assert_eq!(warned(1_000, 600), [""; 0], "it left the range later on");
    let [warning] = &warned(600, 600)[..] else { panic!("the day began outside") };
    assert!(warning.starts_with("PRICE GAP: 7203.TSE, 2025-01-07 15:30"), "{warning}");
}
