//! Memory of a long run on paper: after its first hour of trading, the 12th and the 24th, in a process of its own. The market
//! goes as fast as the strategy takes it; rows come straight from memory, without a gateway.

#![expect(clippy::expect_used, reason = "a bench ends where something is missing")]

use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use domain::clock::sleep;
use domain::{OrderEventKind, TsNanos};
use live::feed::{FeedLimits, FeedRows, FeedSender, feed};
use live::paper::PaperOutcome;
use results::sink::{Record, RunSink};
use serde_json::json;
use tests::built;

use crate::live_bench::{OPEN_MS, OpensAtOnce, Quiet, frame, paper, wait_for};
use crate::measure::figure;
use crate::memory::resident_bytes;

/// The word that starts the process of its own.
pub(crate) const TASK: &str = "live-memory";
/// Instruments, and trades of all of them in a second.
const INSTRUMENTS: u64 = 4;
const TRADES_PER_SECOND: u64 = 8;
/// Hours of trading that are measured.
const HOURS: [u64; 3] = [1, 12, LAST];
const LAST: u64 = 24;
/// A day's sessions, in seconds after 09:00.
const SESSIONS: [(u64, u64); 2] = [(0, 9_000), (12_600, 23_400)];
const SECONDS_OF_DAY: u64 = 86_400;
/// Rows that may wait for the strategy while the market goes on.
const WAITING_MAX: usize = 1_000;
/// The journal and what waits for a disk are given this time before memory is read.
const REST: Duration = Duration::from_secs(3);

/// Prints how memory has grown from the first hour to the 24th.
pub(crate) fn report() {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg(TASK).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [first, middle, last, trades, orders] = numbers[..] else {
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the run failed: {told}");
        eprintln!("live/memory_24h: this system does not tell a process its memory");
        return;
    };
    let ratio = last / first;
    let more = json!({
        "after_1h_mb": first / 1e6, "after_12h_mb": middle / 1e6, "after_24h_mb": last / 1e6, "trades": trades, "orders": orders,
        "goal_max": 1.1,
    });
    figure("live/memory_24h_to_1h", "ratio", ratio, ratio, &more);
}

/// Counts the orders that are sent.
struct Orders(u64);

impl RunSink for Orders {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        if let Record::OrderEvent { event, .. } = record {
            self.0 += u64::from(matches!(event.kind, OrderEventKind::Submitted(_)));
        }
        Ok(())
    }
}

/// Seconds of trading since 1970, day by day.
fn seconds() -> impl Iterator<Item = u64> {
    let open = OPEN_MS / 1_000;
    let of_day = move |day: u64| {
        let sessions = SESSIONS.into_iter().flat_map(|(begin, end)| begin..end);
        sessions.map(move |second| open + day * SECONDS_OF_DAY + second)
    };
    (0..).flat_map(of_day)
}

/// Pushes all hours. Gives the memory after each of [`HOURS`], and the number of trades.
fn push(feed: &FeedSender) -> Option<Vec<u64>> {
    let session: Arc<str> = "bench".into();
    let (mut number, mut told) = (0, Vec::new());
    for (count, second) in (1..=LAST * 3_600).zip(seconds()) {
        for part in 0..TRADES_PER_SECOND {
            let ms = second * 1_000 + part * 1_000 / TRADES_PER_SECOND;
            feed.update(&frame(number, INSTRUMENTS, ms, &session));
            number += 1;
        }
        feed.clock(TsNanos::from_nanos((second + 1) * 1_000_000_000));
        feed.report_buying_power();
        while feed.waiting() > WAITING_MAX {
            sleep(Duration::from_micros(100));
        }
        if count % 3_600 == 0 && HOURS.contains(&(count / 3_600)) {
            told.push(at_rest(feed)?);
        }
    }
    told.push(number);
    Some(told)
}

/// Memory once nothing is under way.
fn at_rest(feed: &FeedSender) -> Option<u64> {
    while feed.waiting() > 0 {
        sleep(Duration::from_millis(1));
    }
    sleep(REST);
    resident_bytes()
}

/// Makes the run, and prints the memories, trades and orders.
pub(crate) fn child() {
    let home = tempfile::tempdir().expect("a folder");
    let strategy = built::strategy("sma-cross");
    let parameters = [("fast", json!(5)), ("slow", json!(20))];
    let parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value));
    let paper = paper(home.path(), &strategy, parameters.collect(), INSTRUMENTS);
    let instruments = paper.instruments.clone();
    let ready = paper.prepare(&mut Quiet).expect("the strategy loads");
    let is_open = Arc::new(Mutex::new(false));
    let observer = Box::new(OpensAtOnce(Arc::clone(&is_open)));
    let (sender, mut source) =
        feed(&instruments, FeedRows::Trades, FeedLimits::default(), observer);
    let pusher = thread::spawn(move || {
        wait_for(&is_open);
        let pushed = push(&sender);
        sender.stop();
        pushed
    });
    let mut orders = Orders(0);
    let outcome = ready.run(&mut source, &mut orders).expect("the run has results");
    let PaperOutcome::Ended(ended) = outcome else { panic!("{outcome:?}") };
    assert_eq!(ended.manifest.status, "interrupted", "{ended:?}");
    assert!(orders.0 > 0, "the strategy trades");
    if let Some(mut told) = pusher.join().expect("all is pushed") {
        told.push(orders.0);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        println!("{}", told.join(" "));
    }
}
