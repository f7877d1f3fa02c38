//! The whole engine over real sockets: a gateway that pushes as fast as it is listened to, `kumiki serve
//! --mode live`, and one client that is subscribed to everything. `--frames N` sets how many frames the
//! engine's memory is watched for.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use serde_json::{Value, json};
use sim::local_broker::{Config, Server};

use crate::ipc_client::Client;
use crate::ipc_engine::Engine;
use crate::measure::figure;
use crate::push_bench::{FRAMES, GOAL_P99_MS, GOAL_PER_SECOND, PACE_PER_SECOND};
use crate::push_frames::{Frames, SYMBOLS, symbol};
use crate::rank_bench::or_stop;
use crate::serve_mixed::at;

/// Rounds of all frames, pushed as fast as they are taken, and the seconds at the steady pace.
const ROUNDS: usize = 10;
const PACED_SECONDS: u32 = 10;
/// Frames that memory is watched for, and those before the first look.
const MEMORY_FRAMES: u64 = 10_000_000;
const MEMORY_FIRST: u64 = 1_000_000;
/// What memory may grow by, as a ratio.
const GOAL_MEMORY_RATIO: f64 = 1.05;
/// How long the login and the subscriptions may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client got.
#[derive(Debug, Default)]
struct Got {
    boards: u64,
    trades: u64,
    bytes: u64,
    /// Seconds of the last event.
    last: f64,
}

/// A client that reads on a thread of its own until it has so many trades.
fn reading(mut client: Client, watch: Stopwatch, trades: u64) -> thread::JoinHandle<Got> {
    thread::spawn(move || {
        let mut got = Got::default();
        while got.trades < trades {
            let Some(text) = client.next() else {
                panic!("the engine has sent the client away after {got:?}");
            };
            if text.starts_with("{\"event\":\"DepthSnapshot\"") {
                got.boards += 1;
            } else if text.starts_with("{\"event\":\"Trades\"") {
                got.trades += text.matches("\"sequence_id\":").count() as u64;
            }
            got.bytes += text.len() as u64;
            got.last = watch.elapsed().as_secs_f64();
        }
        got
    })
}

/// A client that is subscribed to all symbols.
fn subscribed(engine: &Engine) -> Client {
    let mut client = engine.live_client();
    for number in 0..SYMBOLS {
        let fields = json!({ "venue": "local_broker", "ticker": symbol(number) });
        client.ask("Subscribe", fields, "Subscribed");
    }
    client
}

/// Waits until the stream is open and all of its symbols are registered.
fn wait_for_stream(engine: &Engine, gateway: &Server) {
    let watch = Stopwatch::start();
    let mut client = engine.live_client();
    loop {
        let state = client.ask("GetVenueState", json!({ "venue": "local_broker" }), "VenueState");
        let registered = gateway.view()["registered"].as_array().map_or(0, Vec::len);
        if state["push"] == "Streaming" && registered == SYMBOLS {
            return;
        }
        assert!(watch.elapsed() < PATIENCE, "the stream does not open: {state}");
        sleep(Duration::from_millis(50));
    }
}

/// Runs both: as fast as it goes, and at the steady pace.
pub(crate) fn report(frames: &Frames) {
    let gateway = or_stop(Server::start(Config { any_symbol: true, ..Config::default() }));
    let engine = Engine::live(&gateway.base_url());
    let per_round = frames.trades;
    let push = |text: &str| or_stop(gateway.push_text(text.to_owned()));
    let client = engine_is_ready(&engine, &gateway);
    for text in &frames.texts[..SYMBOLS] {
        push(text);
    }
    let (watch, used) = (Stopwatch::start(), engine.processor_seconds());
    let reader = reading(client, watch, per_round * ROUNDS as u64);
    for _ in 0..ROUNDS {
        // The first frame of each symbol makes its volume fall, which begins it anew.
        frames.texts.iter().for_each(|text| push(text));
    }
    let Ok(got) = reader.join() else { panic!("the client failed") };
    let used = engine.processor_seconds().zip(used).map(|(after, before)| after - before);
    let count = (FRAMES * ROUNDS) as f64;
    let more = json!({
        "frames": count, "trades": got.trades, "boards_told": got.boards,
        "boards_per_frame": got.boards as f64 / count, "client_mb": got.bytes as f64 / 1e6,
        "frames_per_processor_s": used.map(|used| count / used),
        "engine_processors_busy": used.map(|used| used / got.last), "goal_min": GOAL_PER_SECOND,
        "engine_mb": engine.memory("VmRSS:"),
    });
    let rate = count / got.last;
    figure("push/engine/frames_to_one_client", "frames/s", rate, rate, &more);
    engine.waits();
    paced(&engine, &gateway, frames);
    memory(&engine, &gateway, frames);
}

/// A client that is subscribed to all symbols, over a stream that is open.
fn engine_is_ready(engine: &Engine, gateway: &Server) -> Client {
    let client = subscribed(engine);
    wait_for_stream(engine, gateway);
    // The other client's waits.
    engine.waits();
    client
}

/// At the steady pace: how long what is told waits for the client's socket, and how long a trade takes from the
/// moment at which the gateway is given its frame to that at which the client has it. Trades are never left out,
/// so that the one of a symbol that comes next is that of its next frame with one.
fn paced(engine: &Engine, gateway: &Server, frames: &Frames) {
    let client = engine_is_ready(engine, gateway);
    let count = u64::from(PACE_PER_SECOND * PACED_SECONDS);
    let used = engine.processor_seconds();
    let watch = Stopwatch::start();
    // The rounds that are whole have all of their trades.
    let count = count - count % FRAMES as u64;
    let reader = timing(client, watch, frames.trades * count / FRAMES as u64);
    let mut sent: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for number in 0..count as usize {
        let due = Duration::from_secs(1) / PACE_PER_SECOND * number as u32;
        sleep(due.saturating_sub(watch.elapsed()));
        if frames.has_trade[number % FRAMES] {
            let now = watch.elapsed().as_secs_f64();
            sent.entry(symbol(number % FRAMES % SYMBOLS)).or_default().push(now);
        }
        or_stop(gateway.push_text(frames.texts[number % FRAMES].clone()));
    }
    let Ok((boards, came)) = reader.join() else { panic!("the client failed") };
    let seconds = watch.elapsed().as_secs_f64();
    let used = engine.processor_seconds().zip(used).map(|(after, before)| after - before);
    let waits = engine.waits();
    let milliseconds = |name: &str| waits[name].as_f64().unwrap_or(f64::NAN) / 1e3;
    let more = json!({
        "frames_per_s": PACE_PER_SECOND, "seconds": seconds, "boards_told": boards,
        "p50_ms": milliseconds("p50_us"), "max_ms": milliseconds("max_us"),
        "engine_processors_busy": used.map(|used| used / seconds), "goal_max": GOAL_P99_MS,
    });
    let p99 = milliseconds("p99_us");
    figure("push/engine/queue_to_socket_p99", "ms", p99, p99, &more);
    assert_eq!(sent.len(), came.len(), "issues with trades");
    let mut all = Vec::new();
    for (symbol, sent) in &sent {
        let came = &came[symbol];
        assert_eq!(sent.len(), came.len(), "trades of {symbol}");
        all.extend(sent.iter().zip(came).map(|(sent, came)| (came - sent) * 1e3));
    }
    all.sort_by(f64::total_cmp);
    let more = json!({
        "trades": all.len(), "frames_per_s": PACE_PER_SECOND, "p50_ms": at(&all, 0.5),
        "p95_ms": at(&all, 0.95), "max_ms": at(&all, 1.0), "goal_max": GOAL_P99_MS,
    });
    figure("push/engine/gateway_to_client_p99", "ms", at(&all, 0.99), at(&all, 0.0), &more);
}

/// A client that reads on a thread of its own until it has so many trades: how many boards it got, and the
/// seconds at which each trade of a symbol came.
fn timing(
    mut client: Client,
    watch: Stopwatch,
    trades: u64,
) -> thread::JoinHandle<(u64, BTreeMap<String, Vec<f64>>)> {
    thread::spawn(move || {
        let (mut boards, mut count) = (0, 0);
        let mut came: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        while count < trades {
            let Some(text) = client.next() else { panic!("the engine has sent the client away") };
            if text.starts_with("{\"event\":\"DepthSnapshot\"") {
                boards += 1;
            } else if text.starts_with("{\"event\":\"Trades\"") {
                let now = watch.elapsed().as_secs_f64();
                let event: Value = or_stop(serde_json::from_str(&text));
                let rows = event["trades"].as_array().map_or(0, Vec::len);
                let ticker = event["ticker"].as_str().unwrap_or_default().to_owned();
                came.entry(ticker).or_default().extend(std::iter::repeat_n(now, rows));
                count += rows as u64;
            }
        }
        (boards, came)
    })
}

/// How many frames memory is watched for.
fn memory_frames() -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--frames").skip(1);
    let asked = arguments.next().map(|text| text.parse::<u64>());
    asked.map_or(MEMORY_FRAMES, |count| or_stop(count).max(2 * MEMORY_FIRST))
}

/// The engine's memory after a million frames and at the end, with a client that takes everything.
fn memory(engine: &Engine, gateway: &Server, frames: &Frames) {
    let rounds = |frames: u64| frames.div_ceil(FRAMES as u64);
    let (first, all) = (rounds(MEMORY_FIRST), rounds(memory_frames()));
    let client = engine_is_ready(engine, gateway);
    let watch = Stopwatch::start();
    let reader = reading(client, watch, frames.trades * all);
    let mut sizes = Vec::new();
    for round in 1..=all {
        for text in &frames.texts {
            or_stop(gateway.push_text(text.clone()));
        }
        if round == first || round == all {
            sizes.push(engine.memory("VmRSS:"));
        }
    }
    let Ok(got) = reader.join() else { panic!("the client failed") };
    let [Some(first), Some(last)] = sizes[..] else {
        eprintln!("push/engine/memory: this system does not tell a process's memory");
        return;
    };
    let count = all * FRAMES as u64;
    let more = json!({
        "frames": count, "after_1m_mb": first, "ratio": last / first, "boards_told": got.boards,
        "frames_per_s": count as f64 / got.last, "goal_ratio_max": GOAL_MEMORY_RATIO,
    });
    figure("push/engine/memory", "MB", last, first.min(last), &more);
}
