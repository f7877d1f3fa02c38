//! Many short queries beside a few long ones: one-day rankings at a fixed rate, whatever the answers
//! take, while others ask for ten years over and over. The service is a process of its own, so that
//! its memory is only its own. Times are those of the clients, from the first byte sent to the last
//! one received, which is what the service needs from reading to writing and a little more.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::JstDate;
use domain::clock::{Stopwatch, sleep};
use ranking::service::{Service, ServiceOptions};
use ranking::{EngineOptions, RankEngine};
use serde_json::json;
use tests::http::{Connection, JSON};
use tests::serving::Serving;

use crate::data::path_argument;
use crate::measure::figure;
use crate::rank_bench::or_stop;

/// Name of the child's task.
pub(crate) const TASK: &str = "serve-of";

/// Clients that ask for one day at a time.
const SHORT_CLIENTS: u32 = 190;
/// Requests of all of them in a second.
const SHORT_RATE: u32 = 200;
/// Clients that ask for ten years, again as soon as they have them.
const LONG_CLIENTS: u64 = 10;
/// How long they ask.
const LOAD: Duration = Duration::from_secs(60);
/// Milliseconds in which 99 of 100 short answers must be there.
const GOAL_P99_MS: u32 = 50;
/// Megabytes that the service may use above those of the idle one.
const GOAL_MB: u32 = 200;
/// Lags that are asked for in turn, so that no answer comes from the result cache.
const LAGS: u64 = 1_200;

/// What clients of one kind saw.
#[derive(Default)]
struct Seen {
    /// Seconds from sending to the last byte.
    times: Mutex<Vec<f64>>,
    /// Seconds from the time at which a request was due to the last byte.
    since_due: Mutex<Vec<f64>>,
    errors: AtomicU64,
}

impl Seen {
    fn push(list: &Mutex<Vec<f64>>, seconds: f64) {
        list.lock().unwrap_or_else(PoisonError::into_inner).push(seconds);
    }

    /// Times in milliseconds, ascending.
    fn sorted(list: &Mutex<Vec<f64>>) -> Vec<f64> {
        let list = list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<f64> = list.iter().map(|seconds| seconds * 1e3).collect();
        list.sort_by(f64::total_cmp);
        list
    }
}

/// The time that such a share of all did not exceed.
pub(crate) fn at(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Runs it over a data folder.
pub(crate) fn run(folder: &Path) {
    let mut command = Command::new(or_stop(std::env::current_exe()));
    command.arg(TASK).arg(folder);
    let service = Serving::of(command);
    let process = Path::new("/proc").join(service.child.id().to_string());
    // The first request of each kind makes what every later one uses.
    let mut connection = open(service.address);
    for body in [short_body(0), long_body(0)] {
        assert!(ask(&mut connection, &body), "the service does not answer");
    }
    // Sets the peak back to the present size.
    let is_reset = std::fs::write(process.join("clear_refs"), "5").is_ok();
    let idle = status(&process, "VmRSS:").filter(|_| is_reset);
    let (short, long) = (Seen::default(), Seen::default());
    let (over, lag) = (AtomicBool::new(false), AtomicU64::new(1));
    let watch = Stopwatch::start();
    std::thread::scope(|scope| {
        for client in 0..SHORT_CLIENTS {
            let (short, watch) = (&short, &watch);
            scope.spawn(move || ask_when_due(service.address, client, watch, short));
        }
        for _ in 0..LONG_CLIENTS {
            scope.spawn(|| ask_until(service.address, &lag, &over, &long));
        }
        sleep(LOAD);
        over.store(true, Ordering::Relaxed);
    });
    report(&short, &long);
    let peak = status(&process, "VmHWM:");
    match (idle, peak) {
        (Some(idle), Some(peak)) => {
            let above = (peak - idle).max(0.0);
            let more = json!({ "idle_mb": idle, "goal_max": GOAL_MB });
            figure("serve/mixed/memory_above_idle", "MB", above, above, &more);
        }
        _ => eprintln!("serve/mixed: this system does not tell a process's peak memory"),
    }
    let errors = [&short, &long].map(|seen| seen.errors.load(Ordering::Relaxed));
    assert_eq!(errors, [0, 0], "some requests failed");
}

fn report(short: &Seen, long: &Seen) {
    let (times, since_due) = (Seen::sorted(&short.times), Seen::sorted(&short.since_due));
    let more = json!({
        "requests": times.len(), "errors": short.errors.load(Ordering::Relaxed),
        "per_second": times.len() as f64 / LOAD.as_secs_f64(), "clients": SHORT_CLIENTS,
        "p99_ms": at(&times, 0.99), "max_ms": at(&times, 1.0),
        "p99_since_due_ms": at(&since_due, 0.99), "goal_p99_max": GOAL_P99_MS,
    });
    figure("serve/mixed/one_day", "ms", at(&times, 0.5), at(&times, 0.0), &more);
    let times = Seen::sorted(&long.times);
    let more = json!({
        "requests": times.len(), "errors": long.errors.load(Ordering::Relaxed),
        "clients": LONG_CLIENTS, "max_ms": at(&times, 1.0),
    });
    figure("serve/mixed/ten_years", "ms", at(&times, 0.5), at(&times, 0.0), &more);
}

/// Serves the folder that is named, until it is killed.
pub(crate) fn child() {
    let engine = or_stop(RankEngine::open(&path_argument(2), EngineOptions::default()));
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = or_stop(Service::bind(listen, Arc::new(engine), ServiceOptions::default()));
    println!("http://{}", service.address());
    or_stop(service.run());
}

/// Asks at fixed times, the client's share of the rate, whether or not the last answer came early.
fn ask_when_due(address: SocketAddr, client: u32, watch: &Stopwatch, seen: &Seen) {
    let mut connection = open(address);
    let between = Duration::from_secs(1) / SHORT_RATE;
    for turn in 0.. {
        let number = turn * SHORT_CLIENTS + client;
        let due = between * number;
        if due >= LOAD {
            return;
        }
        sleep(due.saturating_sub(watch.elapsed()));
        let sent = watch.elapsed();
        let is_answered = ask(&mut connection, &short_body(u64::from(number)));
        let done = watch.elapsed();
        if is_answered {
            Seen::push(&seen.times, (done - sent).as_secs_f64());
            Seen::push(&seen.since_due, done.saturating_sub(due).as_secs_f64());
        } else {
            seen.errors.fetch_add(1, Ordering::Relaxed);
            connection = open(address);
        }
    }
}

fn ask_until(address: SocketAddr, lag: &AtomicU64, over: &AtomicBool, seen: &Seen) {
    let mut connection = open(address);
    while !over.load(Ordering::Relaxed) {
        let body = long_body(lag.fetch_add(1, Ordering::Relaxed));
        let watch = Stopwatch::start();
        if ask(&mut connection, &body) {
            Seen::push(&seen.times, watch.elapsed().as_secs_f64());
        } else {
            seen.errors.fetch_add(1, Ordering::Relaxed);
            connection = open(address);
        }
    }
}

fn open(address: SocketAddr) -> Connection {
    or_stop(Connection::open(address))
}

/// Asks once; whether the answer is a ranking.
fn ask(connection: &mut Connection, body: &str) -> bool {
    let headers = [JSON, ("Accept-Encoding", "zstd")];
    let answer = connection
        .send("POST /graphql", &headers, body.as_bytes())
        .and_then(|()| connection.receive());
    answer.is_ok_and(|reply| reply.has_data())
}

/// A day of the sample, another one each time.
fn short_body(number: u64) -> String {
    let first = JstDate::from_ymd_opt(2017, 1, 4).unwrap_or_default();
    let weeks = usize::try_from(number % 400).unwrap_or(0);
    let day = first.iter_weeks().nth(weeks).unwrap_or(first);
    body(&day.to_string(), &day.to_string(), 1 + number / 400 % 200)
}

fn long_body(number: u64) -> String {
    body("2016-01-01", "2026-01-01", 1 + number % LAGS)
}

fn body(from: &str, to: &str, lag: u64) -> String {
    let query = format!(
        "{{ stockRankingRange(fromDate: \"{from}\", toDate: \"{to}\", sortBy: \"(Close - \
         Close[-{lag}]) / Close[-{lag}] * 100\", limit: 20) {{ date code close prevClose \
         sortValue volume rank }} }}"
    );
    json!({ "query": query }).to_string()
}

/// A size of a process in megabytes.
pub(crate) fn status(process: &Path, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(process.join("status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1_024.0 / 1e6)
}
