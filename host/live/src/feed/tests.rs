//! Frames and what comes of them on the strategy's side, pin by pin.

use std::thread;

use domain::OrderSide;
use domain::fault::FaultKind;
use domain::market_update::{AggressorSide, Board, SideRule, TimeSource};
use domain::random::Random;
use domain::time::NANOS_PER_MINUTE;
use replay::stream::MarketStream;

use super::*;

/// What the observer heard.
type Heard = Arc<Mutex<Vec<String>>>;

struct Hears(Heard);

impl FeedObserver for Hears {
    fn ready(&mut self, opening: Opening) {
        self.0.lock().unwrap().push("ready".to_owned());
        drop(opening);
    }

    fn slow(&mut self, is_slow: bool) {
        self.0.lock().unwrap().push(format!("slow {is_slow}"));
    }
}

fn ids() -> Vec<InstrumentId> {
    ["7203.TSE", "6758.TSE"].iter().map(|text| text.parse().unwrap()).collect()
}

fn with_limits(rows: FeedRows, limits: FeedLimits) -> (FeedSender, FeedReceiver, Heard) {
    let heard = Heard::default();
    let (sender, receiver) = feed(&ids(), rows, limits, Box::new(Hears(Arc::clone(&heard))));
    (sender, receiver, heard)
}

fn opened(rows: FeedRows) -> (FeedSender, FeedReceiver) {
    let (sender, mut receiver, _) = with_limits(rows, FeedLimits::default());
    receiver.ready();
    (sender, receiver)
}

/// The time of day in Japan on 2025-01-06, in milliseconds since 1970.
fn at(hour: u64, minute: u64, millis: u64) -> u64 {
    let of_day = (hour * 60 + minute) * NANOS_PER_MINUTE + millis * 1_000_000;
    TsNanos::from_jst("2025-01-06".parse().unwrap(), of_day).unwrap().millis()
}

fn print(symbol: &str, ms: u64, yen: i64, shares: i64, rule: SideRule) -> TradePrint {
    TradePrint {
        symbol: Symbol::new(symbol).unwrap(),
        stream_session_id: "s".into(),
        sequence_id: 2,
        received: TsNanos::from_nanos(ms * 1_000_000),
        timestamp_ms: ms,
        price: yen * UNITS_PER_YEN,
        quantity: shares * UNITS_PER_YEN,
        side: AggressorSide::Unknown,
        side_rule: Some(rule),
        after_gap: rule == SideRule::AfterGap,
    }
}

fn update(trade: TradePrint) -> MarketUpdate {
    let board = Board {
        symbol: trade.symbol,
        stream_session_id: "s".into(),
        sequence_id: 1,
        received: trade.received,
        timestamp_ms: trade.timestamp_ms,
        timestamp_source: TimeSource::Venue,
        last_price: Some(trade.price),
        bids: Vec::new(),
        asks: Vec::new(),
    };
    MarketUpdate { board, trade: Some(trade), gap: false }
}

pub(crate) fn trade(symbol: &str, ms: u64, yen: i64, shares: i64) -> MarketUpdate {
    update(print(symbol, ms, yen, shares, SideRule::AtAsk))
}

/// A step in short: of a trade or bar the time of day in milliseconds.
fn words(step: StreamStep) -> String {
    let of_day = |ts: TsNanos| ts.millis() - at(0, 0, 0);
    match step {
        StreamStep::Trade { trade, aggressor } => {
            let Trade { ts_event, instrument, price, quantity } = trade;
            let side = aggressor.map_or("none", OrderSide::as_str);
            format!("{} #{} {price} x {quantity} {side}", of_day(ts_event), instrument.0)
        }
        StreamStep::Bar(bar) => format!(
            "{} #{} {} {} {} {} x {}",
            of_day(bar.ts_event),
            bar.instrument.0,
            bar.open,
            bar.high,
            bar.low,
            bar.close,
            bar.volume
        ),
        StreamStep::EndOfDay => "end of day".to_owned(),
        StreamStep::Note(text) => text,
        StreamStep::MarketDataLost(is_lost) => format!("lost {is_lost}"),
        StreamStep::ReportBuyingPower => "buying power".to_owned(),
        StreamStep::Stop => "stop".to_owned(),
        StreamStep::Fail(kind) => kind.to_string(),
        StreamStep::Order { .. } => panic!("a market gives no orders"),
    }
}

/// What comes, until the feed is stopped.
fn all(sender: FeedSender, mut receiver: FeedReceiver) -> Vec<String> {
    // A stop goes before what waits.
    let waiting = sender.waiting();
    let mut steps: Vec<String> = (0..waiting).map(|_| words(receiver.next())).collect();
    drop(sender);
    steps.push(words(receiver.next()));
    assert_eq!(steps.pop().unwrap(), "stop");
    steps
}

#[test]
fn p88_each_trade_of_the_instruments_comes_once_from_the_start_on() {
    let (sender, mut receiver, heard) = with_limits(FeedRows::Trades, FeedLimits::default());
    sender.update(&trade("7203", at(9, 0, 1), 2_400, 100));
    receiver.ready();
    assert_eq!(*heard.lock().unwrap(), ["ready"]);
    sender.update(&trade("7203", at(9, 0, 5), 2_401, 200));
    sender.update(&trade("9984", at(9, 0, 6), 8_000, 100));
    let silent = MarketUpdate { trade: None, ..trade("7203", at(9, 0, 6), 2_402, 100) };
    sender.update(&silent);
    sender.update(&trade("6758", at(9, 0, 7), 3_300, 300));
    assert_eq!(all(sender, receiver), ["32400005 #0 2401 x 200 BUY", "32400007 #1 3300 x 300 BUY"]);
}

#[test]
fn p88_what_a_gap_left_out_is_a_line_of_the_log_and_no_trade() {
    let (sender, receiver) = opened(FeedRows::Trades);
    sender.update(&update(print("7203", at(9, 1, 2), 2_400, 12_300, SideRule::AfterGap)));
    let told = "GAP: 7203.TSE market data were lost; 12300 shares traded until 2025-01-06 \
                09:01:00.002000 JST, now at 2400, are missing here";
    assert_eq!(all(sender, receiver), [told]);
}

#[test]
fn p88_parts_of_a_share_are_left_out_and_counted() {
    let (sender, receiver) = opened(FeedRows::Trades);
    for part in 1..=4 {
        let mut trade = trade("7203", at(9, 0, part), 2_400, 100);
        trade.trade.as_mut().unwrap().quantity += 1;
        sender.update(&trade);
    }
    let told = |count: u64| {
        format!(
            "PARTS: 7203.TSE trades that are no whole number of shares at a price are left out: {count} so far"
        )
    };
    assert_eq!(all(sender, receiver), [told(1), told(2), told(4)]);
}

#[test]
fn p86_no_row_comes_after_a_stop_and_the_last_sender_stops() {
    let (sender, mut receiver) = opened(FeedRows::Trades);
    sender.update(&trade("7203", at(9, 0, 1), 2_400, 100));
    sender.stop();
    sender.update(&trade("7203", at(9, 0, 2), 2_400, 100));
    assert_eq!(words(receiver.next()), "stop");
    let (sender, mut receiver) = opened(FeedRows::Trades);
    let other = sender.clone();
    drop(sender);
    other.report_buying_power();
    assert_eq!(words(receiver.next()), "buying power");
    let waits = thread::spawn(move || words(receiver.next()));
    drop(other);
    assert_eq!(waits.join().unwrap(), "stop");
}

#[test]
fn p90_a_bar_comes_at_a_later_trade_or_3_seconds_after_its_end() {
    let (sender, receiver) = opened(FeedRows::Minutes);
    let clock = |hour, minute, millis| {
        sender.clock(TsNanos::from_nanos(at(hour, minute, millis) * 1_000_000));
    };
    sender.update(&trade("7203", at(9, 0, 0), 2_400, 100));
    sender.update(&trade("7203", at(9, 0, 59_999), 2_410, 200));
    sender.update(&trade("6758", at(9, 0, 30_000), 3_300, 100));
    // The first trade of a later minute, of the same instrument.
    sender.update(&trade("7203", at(9, 1, 0), 2_405, 100));
    clock(9, 1, 2_999);
    assert_eq!(sender.waiting(), 1);
    clock(9, 1, 3_000);
    assert_eq!(sender.waiting(), 2);
    // After its bar was given a trade is in no bar; of an empty minute there is none.
    sender.update(&trade("6758", at(9, 0, 59_000), 3_333, 100));
    clock(9, 2, 3_000);
    sender.update(&trade("7203", at(9, 4, 0), 2_404, 100));
    sender.update(&trade("7203", at(9, 3, 0), 2_403, 100));
    clock(9, 5, 3_000);
    let late =
        |id| format!("LATE: {id} trades that came after their minute are in no bar: 1 so far");
    let expected = [
        "32460000 #0 2400 2410 2400 2410 x 300".to_owned(),
        "32460000 #1 3300 3300 3300 3300 x 100".to_owned(),
        late("6758.TSE"),
        "32520000 #0 2405 2405 2405 2405 x 100".to_owned(),
        late("7203.TSE"),
        "32700000 #0 2404 2404 2404 2404 x 100".to_owned(),
    ];
    assert_eq!(all(sender, receiver), expected);
}

#[test]
fn p115_lost_data_are_told_once_an_outage_and_end_with_a_frame() {
    let (sender, mut receiver) = opened(FeedRows::Trades);
    sender.lost();
    sender.lost();
    assert_eq!(words(receiver.next()), "lost true");
    // A frame of any symbol says that the stream is back; that goes before the rows.
    sender.update(&trade("9984", at(9, 0, 1), 8_000, 100));
    sender.update(&trade("7203", at(9, 0, 2), 2_400, 100));
    assert_eq!(words(receiver.next()), "lost false");
    assert_eq!(all(sender, receiver).len(), 1);
}

#[test]
fn p116_a_slow_strategy_is_told_once_until_it_is_in_time_again() {
    let (_sender, mut receiver, heard) = with_limits(FeedRows::Trades, FeedLimits::default());
    for millis in [0, 2_000, 2_001, 9_000, 1_500, 1_001, 1_000, 1_500, 2_000, 2_001] {
        receiver.watch(Duration::from_millis(millis));
    }
    assert_eq!(*heard.lock().unwrap(), ["slow true", "slow false", "slow true"]);
}

#[test]
fn p116_an_empty_queue_ends_being_slow() {
    let limits = FeedLimits { slow_from: Duration::ZERO, ..FeedLimits::default() };
    let (sender, mut receiver, heard) = with_limits(FeedRows::Trades, limits);
    receiver.ready();
    sender.update(&trade("7203", at(9, 0, 1), 2_400, 100));
    thread::sleep(Duration::from_millis(1));
    receiver.next();
    assert_eq!(*heard.lock().unwrap(), ["ready", "slow true"]);
    let waits = thread::spawn(move || words(receiver.next()));
    while heard.lock().unwrap().len() < 3 {
        thread::yield_now();
    }
    sender.stop();
    assert_eq!(waits.join().unwrap(), "stop");
    assert_eq!(heard.lock().unwrap()[2], "slow false");
}

#[test]
fn p116_an_event_that_waits_too_long_ends_the_run() {
    let limits = FeedLimits { too_slow_from: Duration::ZERO, ..FeedLimits::default() };
    let (sender, mut receiver, _) = with_limits(FeedRows::Trades, limits);
    receiver.ready();
    sender.update(&trade("7203", at(9, 0, 1), 2_400, 100));
    sender.update(&trade("7203", at(9, 0, 1), 2_400, 100));
    thread::sleep(Duration::from_millis(1));
    let StreamStep::Fail(FaultKind::TooSlow(text)) = receiver.next() else {
        panic!("it goes on");
    };
    assert!(text.ends_with("ms for the strategy; 0 ms are allowed"), "{text}");
    assert_eq!(words(receiver.next()), "stop");
}

#[test]
fn p116_too_many_events_end_the_run() {
    assert_eq!(FeedLimits::default().waiting, 65_536);
    let (sender, mut receiver) = opened(FeedRows::Trades);
    let one = trade("7203", at(9, 0, 1), 2_400, 100);
    (1..WAITING_MAX).for_each(|_| sender.update(&one));
    assert_eq!(words(receiver.next()), "32400001 #0 2400 x 100 BUY");
    sender.update(&one);
    sender.update(&one);
    sender.update(&one);
    let told = "TOO_SLOW: 65536 events waited for the strategy; fewer than 65536 may wait";
    assert_eq!(words(receiver.next()), told);
    assert_eq!(sender.0.lock().waiting.capacity(), 0, "what waited leaves memory");
}

#[test]
fn p117_times_never_fall_over_instruments() {
    let (sender, receiver) = opened(FeedRows::Trades);
    sender.update(&trade("7203", at(9, 0, 5), 2_400, 100));
    sender.update(&trade("6758", at(9, 0, 2), 3_300, 100));
    sender.update(&trade("7203", at(9, 0, 9), 2_400, 100));
    let expected =
        ["32400005 #0 2400 x 100 BUY", "32400005 #1 3300 x 100 BUY", "32400009 #0 2400 x 100 BUY"];
    assert_eq!(all(sender, receiver), expected);
}

#[test]
fn p118_the_quote_decides_then_the_last_different_price() {
    let (sender, receiver) = opened(FeedRows::Trades);
    let rows = [
        (100, SideRule::Midpoint, "none"),
        (100, SideRule::InsideNearer, "none"),
        (101, SideRule::Midpoint, "BUY"),
        // Against the last different price, not the last one.
        (101, SideRule::InsideNearer, "BUY"),
        (100, SideRule::InsideNearer, "SELL"),
        (100, SideRule::AtAsk, "BUY"),
        (101, SideRule::AtBid, "SELL"),
        (99, SideRule::Crossed, "BUY"),
        (99, SideRule::OneSided, "none"),
        (99, SideRule::Auction, "none"),
        (99, SideRule::Midpoint, "SELL"),
    ];
    for (millis, (yen, rule, _)) in (0..).zip(rows) {
        sender.update(&update(print("7203", at(9, 0, millis), yen, 100, rule)));
    }
    let expected = rows.map(|row| row.2.to_owned());
    let side = |step: &String| step.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(all(sender, receiver).iter().map(side).collect::<Vec<_>>(), expected);
}

#[test]
fn p119_the_day_ends_5_minutes_after_the_close_by_the_engines_clock() {
    let (sender, receiver) = opened(FeedRows::Minutes);
    let clock = |minute, millis| {
        sender.clock(TsNanos::from_nanos(at(15, minute, millis) * 1_000_000));
    };
    clock(36, 0);
    sender.update(&trade("7203", at(15, 30, 12), 2_400, 100));
    clock(34, 59_999);
    clock(35, 0);
    clock(35, 1);
    sender.end_of_day();
    sender.update(&trade("7203", at(15, 36, 0), 2_401, 100));
    sender.end_of_day();
    let expected = [
        "55860000 #0 2400 2400 2400 2400 x 100",
        "end of day",
        // Of a day that has ended a row comes all the same.
        "56220000 #0 2401 2401 2401 2401 x 100",
    ];
    assert_eq!(all(sender, receiver), expected);
}

/// A simulated market plays its morning in the evening, or before the engine's day begins. A frame that is late is none.
#[test]
fn p90_p119_a_market_that_plays_another_time_ends_its_minutes_and_days_by_its_own() {
    let hours = 3_600_000;
    for ahead in [11 * hours, -8 * hours, 61_000, 60_000, 0] {
        let (sender, receiver) = opened(FeedRows::Minutes);
        let by_engine = |ms: u64| TsNanos::from_nanos(ms.strict_add_signed(ahead) * 1_000_000);
        let moved = |ms, yen| {
            let mut trade = print("7203", ms, yen, 100, SideRule::AtAsk);
            trade.received = by_engine(ms);
            update(trade)
        };
        sender.update(&moved(at(9, 0, 10_000), 2_400));
        let is_late = ahead == 60_000;
        sender.clock(by_engine(at(9, 0, 11_000)));
        assert_eq!(sender.waiting(), usize::from(is_late), "{ahead}");
        sender.update(&moved(at(9, 0, 59_000), 2_401));
        sender.clock(by_engine(at(9, 1, 2_999)));
        assert_eq!(sender.waiting(), if is_late { 2 } else { 0 }, "{ahead}");
        sender.clock(by_engine(at(9, 1, 3_000)));
        sender.clock(by_engine(at(15, 33, 59_999)));
        assert_eq!(sender.waiting(), if is_late { 2 } else { 1 }, "{ahead}");
        sender.clock(by_engine(at(15, 35, 0)));
        assert_eq!(all(sender, receiver).last().unwrap(), "end of day", "{ahead}");
    }
}

/// P117: a late row of one instrument, after newer ones of another, neither turns the clock back nor holds it up.
#[test]
fn p117_the_clock_follows_the_newest_trade_of_all_instruments() {
    let (sender, receiver) = opened(FeedRows::Minutes);
    let came = |symbol, second: u64, came: u64, yen| {
        let mut trade = print(symbol, at(9, 0, second * 1_000), yen, 100, SideRule::AtAsk);
        trade.received = TsNanos::from_nanos(at(9, 0, came * 1_000) * 1_000_000);
        sender.update(&update(trade));
    };
    let clock = |second: u64| {
        sender.clock(TsNanos::from_nanos(at(9, 0, second * 1_000) * 1_000_000));
    };
    came("7203", 250, 250, 2_400);
    // Two minutes late, which would be the time of another market if it were the newest.
    came("6758", 130, 251, 3_300);
    clock(252);
    assert_eq!(sender.waiting(), 1, "the minute of the late row is over");
    clock(303);
    assert_eq!(sender.waiting(), 2, "3 s after its end by the engine's clock");
    // A market that is ahead of the engine's clock by less than a minute shows the time too.
    came("7203", 400, 360, 2_401);
    came("6758", 423, 363, 3_301);
    clock(364);
    let expected = [
        "32580000 #1 3300 3300 3300 3300 x 100".to_owned(),
        "32700000 #0 2400 2400 2400 2400 x 100".to_owned(),
        "32820000 #0 2401 2401 2401 2401 x 100".to_owned(),
    ];
    assert_eq!(all(sender, receiver)[..3], expected);
}

/// Whatever comes, in whatever order: times never fall, and every whole trade is given or told.
#[test]
fn p117_holds_for_frames_in_any_order() {
    for seed in 0..50 {
        for rows in [FeedRows::Trades, FeedRows::Minutes] {
            let mut random = Random::new(&[seed]);
            let (sender, mut receiver) = opened(rows);
            let (mut shares, mut now) = (0, at(9, 0, 0));
            for _ in 0..400 {
                now += random.below(2_000);
                let symbol = ["7203", "6758"][random.below(2) as usize];
                let ms = now - random.below(5_000);
                sender.update(&trade(symbol, ms, 2_400 + random.below(9) as i64, 100));
                if random.below(3) == 0 {
                    sender.clock(TsNanos::from_nanos(now * 1_000_000));
                }
            }
            sender.end_of_day();
            let mut newest = TsNanos::default();
            let waiting = sender.waiting();
            for _ in 0..waiting {
                let (ts, volume) = match receiver.next() {
                    StreamStep::Trade { trade, .. } => (trade.ts_event, trade.quantity.shares()),
                    StreamStep::Bar(bar) => (bar.ts_event, bar.volume.shares()),
                    _ => continue,
                };
                assert!(newest <= ts, "seed {seed}");
                newest = ts;
                shares += volume;
            }
            let late: u64 = sender.0.lock().series.iter().map(|series| series.late).sum();
            assert_eq!(shares + late * 100, 40_000, "seed {seed}");
        }
    }
}
