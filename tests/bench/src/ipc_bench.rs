//! `cargo xtask bench ipc`: the engine process under clients over real sockets: answers in an idle replay,
//! four clients that are told every trade, how exactly a replay keeps its pace, what a client that stops
//! reading costs, and what feeding a client costs an unpaced run.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use serde_json::{Value, json};
use tests::built;

use crate::data;
use crate::ipc_client::Client;
use crate::ipc_engine::Engine;
use crate::ipc_feed::{Deviation, Feed};
use crate::ipc_pace::Pace;
use crate::measure::figure;
use crate::rank_bench::or_stop;
use crate::serve_mixed::at;

/// Clients that are told every trade.
const CLIENTS: usize = 4;
/// Rows that each of them is told in a second.
const ROWS_PER_SECOND: f64 = 50_000.0;
/// Commands of each kind in the idle replay.
const COMMANDS: usize = 2_000;
/// What the disk takes by itself, beside the commands.
const DISK: &str = "sync_data_of_the_disk";
/// Repetitions of a run under load.
const ROUNDS: usize = 3;
/// Repetitions of an unpaced run.
const UNPACED_ROUNDS: usize = 7;
/// Milliseconds from queueing to the socket's write, for 99 of 100 rows.
const GOAL_QUEUE_MS: u32 = 5;
/// Milliseconds of a round trip, for 99 of 100 commands.
const GOAL_ROUND_TRIP_MS: u32 = 1;
/// What an unpaced run that feeds a client costs, as times of the run alone.
const GOAL_TIMES_ALONE: u32 = 2;
/// Megabytes that a client which stops reading may cost: the 64 MiB that may wait for it, and half as much
/// again for how they are kept.
const GOAL_STOPPED_MB: u32 = 100;
/// A speed at which people watch.
const WATCHED_SPEED: u32 = 60;
/// Rows of a run at that speed that are looked at.
const WATCHED_ROWS: u64 = 1_500;
/// Rows after which a client stops reading.
const ROWS_BEFORE_STOP: u64 = 10_000;
/// The month of the sample.
const DATES: (&str, &str) = ("2025-06-01", "2025-06-30");

/// Runs all of it.
pub(crate) fn run() {
    let file = data::month();
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let engine = Engine::start(folder);
    let pace = Pace::of(folder, "72030", &engine.cache());
    round_trips(&engine);
    watched(&engine, &pace);
    let speed = pace.speed_of(ROWS_PER_SECOND);
    let schedule = pace.schedule(speed);
    let peak = four_clients(&engine, speed, &schedule);
    one_stops(&engine, speed, &schedule, peak);
    for (name, parameters) in
        [("empty", json!({})), ("sma-cross", json!({ "fast": 45, "slow": 220 }))]
    {
        unpaced(&engine, folder, name, &parameters, pace.rows() as u64);
    }
}

/// Loads the month and starts a strategy over it, told by one client.
fn start(client: &mut Client, strategy: &str, parameters: &Value, speed: Value) {
    let (first, last) = DATES;
    let range = json!({
        "instrument_id": "7203.TSE", "start_date": first, "end_date": last, "granularity": "Trade",
    });
    client.ask("LoadReplayData", range.clone(), "ReplayDataLoaded");
    let mut config = range;
    let path = match strategy {
        "sma-cross" => built::strategy(strategy),
        guest => built::test_guest(guest),
    };
    config["strategy_file"] = json!(path);
    config["strategy_init_kwargs"] = parameters.clone();
    config["initial_cash"] = "10000000".into();
    // As in the benches of replays: the figures count orders, and an order arrives at once.
    config["execution"] =
        json!({ "model": "strict", "latency_ns": 0, "same_day_round_trips": true });
    config["multiplier"] = speed;
    let start = json!({ "engine": "Backtest", "strategy_id": "bench", "config": config });
    client.ask("StartEngine", start, "EngineStarted");
}

fn subscribe(client: &mut Client) {
    client.ask("Subscribe", json!({ "venue": "replay", "ticker": "7203" }), "Subscribed");
}

fn stop(client: &mut Client) {
    client.send("StopEngine", json!({ "strategy_id": "bench" }));
    client.wait("EngineStopped");
}

/// From sending a command to its answer, while a replay waits for its next row.
fn round_trips(engine: &Engine) {
    let mut client = engine.client();
    start(&mut client, "empty", &json!({}), json!(1));
    let low = client.ask("GetSession", json!({}), "Session");
    let price = low["last_trades"][0]["trades"][0]["price"].as_str().map(str::to_owned);
    let price: f64 = price.and_then(|text| text.parse().ok()).unwrap_or(1_000.0);
    let venue = || json!({ "venue": "replay" });
    let order = |number: usize| {
        json!({ "venue": "replay", "order": {
            "client_order_id": format!("order-{number}"), "instrument_id": "7203.TSE",
            "order_side": "BUY", "order_type": "LIMIT", "quantity": "100",
            "price": (price * 0.9).floor().to_string(), "time_in_force": "DAY",
            "post_only": false, "reduce_only": false,
        } })
    };
    let cancel =
        |number: usize| json!({ "venue": "replay", "client_order_id": format!("order-{number}") });
    let mut ping = Vec::with_capacity(COMMANDS);
    let mut balance = ping.clone();
    let (mut submitted, mut cancelled) = (ping.clone(), ping.clone());
    // What the disk takes by itself for the line that has to be there before an order is sent.
    let mut synced = ping.clone();
    let mut log = or_stop(File::create(engine.cache().join("bench-sync.log")));
    for number in 0..COMMANDS {
        let watch = Stopwatch::start();
        or_stop(log.write_all(&[b'x'; 400]).and_then(|()| log.sync_data()));
        synced.push(watch.elapsed().as_secs_f64() * 1e3);
        let mut timed = |list: &mut Vec<f64>, op: &str, fields: Value, answer: &str| {
            let watch = Stopwatch::start();
            client.ask(op, fields, answer);
            list.push(watch.elapsed().as_secs_f64() * 1e3);
        };
        timed(&mut ping, "Ping", json!({}), "Pong");
        timed(&mut balance, "GetBuyingPower", venue(), "ReplayBuyingPower");
        timed(&mut submitted, "SubmitOrder", order(number), "SubmitOrderResult");
        timed(&mut cancelled, "CancelOrder", cancel(number), "OrderCanceled");
    }
    stop(&mut client);
    drop(client);
    engine.waits();
    for (name, mut times) in [
        ("Ping", ping),
        ("GetBuyingPower", balance),
        ("SubmitOrder", submitted),
        ("CancelOrder", cancelled),
        (DISK, synced),
    ] {
        times.sort_by(f64::total_cmp);
        let mut more = json!({
            "commands": times.len(), "p99_ms": at(&times, 0.99), "max_ms": at(&times, 1.0),
        });
        if name != DISK {
            more["goal_p99_max_ms"] = json!(GOAL_ROUND_TRIP_MS);
        }
        let name = format!("ipc/round_trip/{name}");
        figure(&name, "ms", at(&times, 0.5), at(&times, 0.0), &more);
    }
}

/// How exactly rows come at a speed at which people watch.
fn watched(engine: &Engine, pace: &Pace) {
    let schedule = pace.schedule(WATCHED_SPEED);
    let mut client = engine.client();
    subscribe(&mut client);
    start(&mut client, "empty", &json!({}), json!(WATCHED_SPEED));
    let feed = Feed::read(&mut client, Stopwatch::start(), WATCHED_ROWS);
    stop(&mut client);
    drop(client);
    engine.waits();
    pacing("ipc/pacing_error/watched", WATCHED_SPEED, &feed, feed.deviation(&schedule));
}

fn pacing(name: &str, speed: u32, feed: &Feed, deviation: Deviation) {
    let Deviation { median, p99, max, drift_percent } = deviation;
    let more = json!({
        "speed": speed, "rows": feed.rows, "p99_ms": p99, "max_ms": max,
        "drift_percent": drift_percent,
    });
    figure(name, "ms", median, median, &more);
}

/// Clients that subscribe, the first of which starts a paced run.
fn subscribed(engine: &Engine, speed: u32) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| engine.client()).collect();
    clients.iter_mut().for_each(subscribe);
    start(&mut clients[0], "empty", &json!({}), json!(speed));
    clients
}

/// Reads what comes on a thread for each client, and gives what each has got.
fn read_all(clients: Vec<Client>) -> Vec<Feed> {
    let watch = Stopwatch::start();
    let reading: Vec<_> = clients
        .into_iter()
        .map(|mut client| thread::spawn(move || Feed::read(&mut client, watch, u64::MAX)))
        .collect();
    reading.into_iter().filter_map(|one| one.join().ok()).collect()
}

/// The longest of the clients' waits, in milliseconds.
fn longest(waits: &[Value], name: &str) -> f64 {
    waits.iter().filter_map(|told| told[name].as_f64()).fold(0.0, f64::max) / 1e3
}

/// Four clients that are told every row; gives the most memory that it took, in megabytes.
fn four_clients(engine: &Engine, speed: u32, schedule: &[f64]) -> Option<f64> {
    let (mut p99s, mut deviations, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peaks, mut worst, mut middle) = (Vec::new(), 0.0_f64, 0.0_f64);
    let used = engine.processor_seconds();
    for _ in 0..ROUNDS {
        engine.reset_peak();
        let feeds = read_all(subscribed(engine, speed));
        let waits: Vec<Value> = (0..CLIENTS).map(|_| engine.waits()).collect();
        peaks.extend(engine.memory("VmHWM:"));
        for feed in &feeds {
            assert_eq!(feed.rows, schedule.len() as u64, "a client was not told every row");
            rates.push(feed.rate());
        }
        deviations.push((feeds[0].deviation(schedule), feeds[0].rows));
        p99s.push(longest(&waits, "p99_us"));
        middle = middle.max(longest(&waits, "p50_us"));
        worst = worst.max(longest(&waits, "max_us"));
    }
    p99s.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    let used = engine.processor_seconds().zip(used).map(|(after, before)| after - before);
    let seconds = schedule.last().copied().unwrap_or_default() * ROUNDS as f64;
    let more = json!({
        "clients": CLIENTS, "speed": speed, "rows_per_s_each": rates[rates.len() / 2],
        "p50_ms": middle, "max_ms": worst, "processors_busy": used.map(|used| used / seconds),
        "goal_max": GOAL_QUEUE_MS,
    });
    figure("ipc/4_clients/queue_to_socket_p99", "ms", p99s[ROUNDS / 2], p99s[0], &more);
    deviations.sort_by(|(one, _), (other, _)| one.median.total_cmp(&other.median));
    let (Deviation { median, p99, max, drift_percent }, rows) = deviations[ROUNDS / 2];
    let more = json!({
        "speed": speed, "rows": rows, "p99_ms": p99, "max_ms": max, "drift_percent": drift_percent,
    });
    figure("ipc/pacing_error/4_clients", "ms", median, deviations[0].0.median, &more);
    peaks.into_iter().reduce(f64::max)
}

/// The same with one client that stops reading: what it costs until it is sent away, and the others.
fn one_stops(engine: &Engine, speed: u32, schedule: &[f64], without: Option<f64>) {
    engine.reset_peak();
    let mut clients = subscribed(engine, speed);
    let watch = Stopwatch::start();
    let stopped = clients.pop().map(|mut client| {
        thread::spawn(move || {
            let feed = Feed::read(&mut client, watch, ROWS_BEFORE_STOP);
            (feed.arrivals.last().map(|_| watch.elapsed()), client)
        })
    });
    let others = thread::spawn(move || read_all(clients));
    // The waits of a client are told just before why it was sent away.
    let of_stopped = engine.waits();
    let away = engine.told("the engine disconnects a client");
    let (away_at, peak) = (watch.elapsed(), engine.memory("VmHWM:"));
    assert_eq!(away["reason"], "too_slow", "{away}");
    let Ok(feeds) = others.join() else { panic!("a client failed") };
    let waits: Vec<Value> = feeds.iter().map(|_| engine.waits()).collect();
    for feed in &feeds {
        assert_eq!(feed.rows, schedule.len() as u64, "another client was not told every row");
    }
    let held = stopped.and_then(|stopped| stopped.join().ok());
    let stopped_at = held.and_then(|(at, _)| at).unwrap_or_default();
    let (Some(without), Some(peak)) = (without, peak) else {
        eprintln!("ipc/one_stops: this system does not tell a process's peak memory");
        return;
    };
    let above = (peak - without).max(0.0);
    let more = json!({
        "peak_mb": peak, "without_mb": without, "at_the_end_mb": engine.memory("VmRSS:"),
        "sent_away_after_s": (away_at - stopped_at).as_secs_f64(), "told_before": of_stopped["told"],
        "others_queue_to_socket_p99_ms": longest(&waits, "p99_us"), "goal_max": GOAL_STOPPED_MB,
    });
    figure("ipc/one_stops/memory", "MB", above, above, &more);
}

/// What an unpaced run took.
#[derive(Default)]
struct Unpaced {
    /// Seconds from its start to its end, as its client saw them, where it was not sent away.
    seconds: Vec<f64>,
    /// Processor seconds of the engine.
    used: f64,
}

impl Unpaced {
    /// Runs once more, with a client that must be told so many rows.
    fn again(&mut self, engine: &Engine, strategy: &str, parameters: &Value, rows: u64) {
        let mut client = engine.client();
        if rows > 0 {
            subscribe(&mut client);
        }
        let before = engine.processor_seconds();
        start(&mut client, strategy, parameters, json!("max"));
        let feed = Feed::read(&mut client, Stopwatch::start(), u64::MAX);
        let mut other = engine.client();
        while other.ask("GetSession", json!({}), "Session")["state"] != "Idle" {
            sleep(Duration::from_millis(10));
        }
        let used = engine.processor_seconds().zip(before).map(|(after, before)| after - before);
        self.used += used.unwrap_or(f64::NAN);
        assert!(feed.ended.is_none() || feed.rows == rows, "the client was not told every row");
        self.seconds.extend(feed.ended);
        drop((client, other));
        engine.waits();
        engine.waits();
    }

    fn sorted(&mut self) -> &[f64] {
        self.seconds.sort_by(f64::total_cmp);
        &self.seconds
    }
}

/// What feeding one client costs an unpaced run, beside the same run without and beside the program alone.
fn unpaced(engine: &Engine, folder: &Path, strategy: &str, parameters: &Value, rows: u64) {
    let (mut fed, mut unfed, mut alone) =
        (Unpaced::default(), Unpaced::default(), Unpaced::default());
    // In turns, so that a busy moment hits all of them.
    for _ in 0..UNPACED_ROUNDS {
        fed.again(engine, strategy, parameters, rows);
        unfed.again(engine, strategy, parameters, 0);
        alone.seconds.push(program_alone(engine, folder, strategy, parameters));
    }
    let used = fed.used / unfed.used;
    let [fed, unfed, alone] = [&mut fed, &mut unfed, &mut alone].map(Unpaced::sorted);
    let more = json!({
        "rows": rows, "sent_away": UNPACED_ROUNDS - fed.len(), "unfed_s": at(unfed, 0.5),
        "program_alone_s": at(alone, 0.5), "times_unfed": at(fed, 0.5) / at(unfed, 0.5),
        "times_unfed_best": at(fed, 0.0) / at(unfed, 0.0),
        "times_program_alone": at(fed, 0.5) / at(alone, 0.5), "processor_times_unfed": used,
        "goal_times_max": GOAL_TIMES_ALONE,
    });
    figure(&format!("ipc/unpaced_fed/{strategy}"), "s", at(fed, 0.5), at(fed, 0.0), &more);
}

/// Seconds of the same run by `kumiki replay run`, with its folder.
fn program_alone(engine: &Engine, folder: &Path, strategy: &str, parameters: &Value) -> f64 {
    let path = match strategy {
        "sma-cross" => built::strategy(strategy),
        guest => built::test_guest(guest),
    };
    let out = data::scratch();
    let mut command = std::process::Command::new(built::kumiki());
    command.args(["replay", "run"]).arg(path).args(["--instrument", "7203.TSE", "--quiet"]);
    command.args(["--execution", "strict", "--latency", "0ms", "--same-day-round-trips", "allow"]);
    command.arg("--data").arg(folder).arg("--cache-dir").arg(engine.cache());
    command.arg("--out").arg(out.path().join("run"));
    for (name, value) in parameters.as_object().into_iter().flatten() {
        command.arg("--param").arg(format!("{name}={value}"));
    }
    let watch = Stopwatch::start();
    let output = or_stop(command.output());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    watch.elapsed().as_secs_f64()
}
