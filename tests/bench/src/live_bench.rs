//! `bench live`: from a trade of the live market to the order that a strategy sends on seeing it, with the journal on
//! and 46 other symbols beside (specification 4, P88, P112).

#![expect(clippy::expect_used, reason = "a bench ends where something is missing")]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use domain::market_update::{
    AggressorSide, Board, Level, MarketUpdate, SideRule, Symbol, TimeSource, TradePrint,
};
use domain::{GuestLimit, Money, OrderEventKind, TsNanos};
use exchange::Preset;
use live::feed::{FeedLimits, FeedObserver, FeedRows, FeedSender, Opening, feed};
use live::paper::{PaperOutcome, PaperRun};
use replay::RunObserver;
use replay::instruments::InstrumentChoices;
use results::sink::{Record, RunSink};
use sandbox::Limits;
use serde_json::{Value, json};
use tests::built;
use trader::{OrderLimits, Strategies};

use crate::{live_memory, measure};

/// Frames of all symbols, and how many come in a second.
const FRAMES: u64 = 50_000;
const FRAMES_PER_SECOND: u64 = 5_000;
/// Symbols that are pushed; the strategy trades the first four.
const SYMBOLS: u64 = 50;
const TRADED: u64 = 4;
/// 2026-11-30 09:00 in Japan.
pub(crate) const OPEN_MS: u64 = 1_795_996_800_000;
/// Sends one order for each trade.
const STRATEGY: &str = "orders-every-tick";

/// Opens the feed as soon as the strategy is ready.
pub(crate) struct OpensAtOnce(pub(crate) Arc<Mutex<bool>>);

impl FeedObserver for OpensAtOnce {
    fn ready(&mut self, opening: Opening) {
        drop(opening);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn slow(&mut self, _: bool) {}
}

pub(crate) struct Quiet;

impl RunObserver for Quiet {}

/// Notes when each order was handed over.
struct Orders {
    clock: Stopwatch,
    at: Vec<Duration>,
}

impl RunSink for Orders {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        // An order that the exchange refuses was handed over too.
        if let Record::OrderEvent { event, sent } = record
            && (!sent || matches!(event.kind, OrderEventKind::Submitted(_)))
        {
            self.at.push(self.clock.elapsed());
        }
        Ok(())
    }
}

pub(crate) fn symbol(number: u64) -> String {
    format!("{}", 7_203 + number)
}

/// Waits until the strategy gets what is pushed.
pub(crate) fn wait_for(is_open: &Mutex<bool>) {
    while !*is_open.lock().unwrap_or_else(PoisonError::into_inner) {
        sleep(Duration::from_millis(1));
    }
}

/// The frame of a number: a trade at a time, of one of so many symbols in turn.
pub(crate) fn frame(
    number: u64,
    symbols: u64,
    timestamp_ms: u64,
    session: &Arc<str>,
) -> MarketUpdate {
    let symbol = Symbol::new(&symbol(number % symbols)).expect("four digits");
    let received = TsNanos::from_nanos(timestamp_ms * 1_000_000);
    let price = 28_500_000 + 10_000 * i64::try_from(number % 7).unwrap_or_default();
    let level = |price| Level { price, quantity: 10_000_000 };
    let board = Board {
        symbol,
        stream_session_id: Arc::clone(session),
        sequence_id: 2 * number + 1,
        received,
        timestamp_ms,
        timestamp_source: TimeSource::Venue,
        last_price: Some(price),
        bids: vec![level(price - 10_000)],
        asks: vec![level(price + 10_000)],
    };
    let trade = TradePrint {
        symbol,
        stream_session_id: Arc::clone(session),
        sequence_id: 2 * number + 2,
        received,
        timestamp_ms,
        price,
        quantity: 1_000 * 10_000,
        side: AggressorSide::Buy,
        side_rule: Some(SideRule::AtAsk),
        after_gap: false,
    };
    MarketUpdate { board, trade: Some(trade), gap: false }
}

/// Pushes all frames at their pace. Gives when each trade of the strategy's was pushed.
fn push(feed: &FeedSender, clock: Stopwatch) -> Vec<Duration> {
    let session: Arc<str> = "bench".into();
    let begin = clock.elapsed();
    let mut pushed = Vec::new();
    for number in 0..FRAMES {
        let update = frame(number, SYMBOLS, OPEN_MS + number / 5, &session);
        let due = begin + Duration::from_nanos(number * 1_000_000_000 / FRAMES_PER_SECOND);
        sleep(due.saturating_sub(clock.elapsed()));
        if number % SYMBOLS < TRADED {
            pushed.push(clock.elapsed());
        }
        feed.update(&update);
    }
    pushed
}

/// Limits that a day of orders at every chance does not reach.
fn roomy() -> Limits {
    [GuestLimit::Folder, GuestLimit::FolderDay]
        .into_iter()
        .try_fold(Limits::default(), |limits, limit| limits.with(limit, limit.most()))
        .expect("limits")
}

/// A run of a strategy on paper over so many instruments, in a folder below `home`.
pub(crate) fn paper(
    home: &Path,
    strategy: &Path,
    parameters: BTreeMap<String, Value>,
    instruments: u64,
) -> PaperRun {
    let folder = strategy.parent().expect("a folder").to_owned();
    let cache = home.join("cache");
    let ids = (0..instruments).map(|number| format!("{}.TSE", symbol(number)));
    PaperRun {
        kind: live::journal::RunKind::Paper,
        run_id: "bench".to_owned(),
        strategy_id: "bench".to_owned(),
        strategy: strategy.to_string_lossy().into_owned(),
        strategies: Strategies { folder, cache, shipped: None },
        parameters,
        instruments: ids.map(|id| id.parse().expect("an id")).collect(),
        data: None,
        choices: InstrumentChoices::default(),
        rows: FeedRows::Trades,
        first: TsNanos::from_nanos(OPEN_MS * 1_000_000).jst_date(),
        cash: Money::from_yen(1_000_000_000_000),
        model: Preset::Realistic.model(),
        limits: roomy(),
        orders: OrderLimits::default(),
        folder: home.join("run"),
    }
}

pub(crate) fn run() {
    let home = tempfile::tempdir().expect("a folder");
    let strategy = built::test_guest(STRATEGY);
    let paper = paper(home.path(), &strategy, BTreeMap::new(), TRADED);
    let instruments = paper.instruments.clone();
    let ready = paper.prepare(&mut Quiet).expect("the strategy loads");
    let is_open = Arc::new(Mutex::new(false));
    let observer = Box::new(OpensAtOnce(Arc::clone(&is_open)));
    let (sender, mut source) =
        feed(&instruments, FeedRows::Trades, FeedLimits::default(), observer);
    let clock = Stopwatch::start();
    let pusher = thread::spawn(move || {
        wait_for(&is_open);
        let pushed = push(&sender, clock);
        while sender.waiting() > 0 {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(100));
        sender.stop();
        pushed
    });
    let mut orders = Orders { clock, at: Vec::new() };
    let outcome = ready.run(&mut source, &mut orders).expect("the run has results");
    assert!(matches!(outcome, PaperOutcome::Ended(_)), "{outcome:?}");
    let pushed = pusher.join().expect("all frames are pushed");
    assert_eq!(pushed.len(), orders.at.len(), "an order for each trade");
    let mut took: Vec<f64> = pushed
        .iter()
        .zip(&orders.at)
        .map(|(from, to)| to.saturating_sub(*from).as_secs_f64() * 1e6)
        .collect();
    took.sort_by(f64::total_cmp);
    let part = |percent: usize| took[(took.len() - 1) * percent / 100];
    let more = json!({
        "frames_per_s": FRAMES_PER_SECOND, "symbols": SYMBOLS, "traded": TRADED, "orders": took.len(),
        "p99_us": part(99), "max_us": part(100), "goal_p50_max_us": 100, "goal_p99_max_us": 1_000,
    });
    measure::figure("live/trade_to_order", "us", part(50), part(0), &more);
    live_memory::report();
}
