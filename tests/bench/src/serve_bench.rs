//! The ranking service under load: short queries beside long ones, clients that take nothing, one large
//! answer alone, then 200 clients with mixed queries.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;
use marketdata::sample::daily::DailySample;
use pricestore::DataDir;
use pricestore::sample::make_daily_sample;
use ranking::service::{Service, ServiceOptions};
use ranking::{EngineOptions, RankEngine};
use serde_json::json;
use tests::http::{Connection, JSON};

use crate::measure::{figure, seconds};

/// Clients at the same time.
const CLIENTS: usize = 200;
/// How long they ask.
const LOAD: Duration = Duration::from_secs(60);
/// Where the sample is kept between runs, from the folder of the built programs; the bench of the
/// engine uses the same.
const SAMPLE: &str = "../bench-data/daily-4000x2450-2";

/// Runs all of it.
pub(crate) fn run() {
    let sample = sample();
    crate::serve_mixed::run(sample.path());
    crate::serve_stalled::run(sample.path());
    let engine = RankEngine::open(sample.path(), EngineOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let idle = memory("VmRSS:");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = Service::bind(listen, Arc::new(engine), ServiceOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let (address, stop) = (service.address(), service.stop());
    let running = std::thread::spawn(move || service.run());
    ten_years(address);
    load(address, idle);
    stop.stop();
    if let Ok(Err(error)) = running.join() {
        panic!("{error}");
    }
}

fn sample() -> DataDir {
    let data = DataDir::new(tests::built::release_folder().join(PathBuf::from(SAMPLE)));
    if !data.current_file().is_file() {
        eprintln!("making a sample of 4,000 issues on 2,450 days");
        make_daily_sample(&data, &DailySample::default()).unwrap_or_else(|error| panic!("{error}"));
    }
    data
}

/// A request of all fields over a range of years from 2016 on. The lag differs each time, so that
/// no answer comes from the result cache.
fn body(years: u32, lag: u64, limit: u32) -> String {
    let last = 2016 + years;
    let query = format!(
        "{{ stockRankingRange(fromDate: \"2016-01-01\", toDate: \"{last}-01-01\", sortBy: \"(Close - \
         Close[-{lag}]) / Close[-{lag}] * 100\", limit: {limit}) {{ date code close prevClose \
         sortValue volume rank }} }}"
    );
    json!({ "query": query }).to_string()
}

/// Request to last byte of a ten-year answer, for each packing.
fn ten_years(address: SocketAddr) {
    let mut lag = 0;
    for packing in ["identity", "zstd", "gzip", "br"] {
        let headers = [JSON, ("Accept-Encoding", packing)];
        let mut bytes = 0;
        let mut connection = open(address);
        let taken = seconds(|| {
            lag += 1;
            let body = body(10, lag, 20);
            let reply = connection
                .send("POST /graphql", &headers, body.as_bytes())
                .and_then(|()| connection.receive())
                .unwrap_or_else(|error| panic!("{error}"));
            bytes = reply.body.len();
        });
        let more = json!({ "bytes": bytes, "goal_max": 130 });
        let name = format!("serve/ten_years/{packing}");
        figure(&name, "ms", taken.median * 1e3, taken.best * 1e3, &more);
    }
}

fn open(address: SocketAddr) -> Connection {
    Connection::open(address).unwrap_or_else(|error| panic!("{error}"))
}

/// What all clients saw.
#[derive(Default)]
struct Seen {
    times: Mutex<Vec<f64>>,
    errors: AtomicU64,
    bytes: AtomicU64,
}

fn load(address: SocketAddr, idle: Option<u64>) {
    let (seen, over) = (Seen::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (seen, over) = (&seen, &over);
            scope.spawn(move || ask_until(address, client, seen, over));
        }
        std::thread::sleep(LOAD);
        over.store(true, Ordering::Relaxed);
    });
    let mut times = seen.times.into_inner().unwrap_or_else(PoisonError::into_inner);
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let errors = seen.errors.load(Ordering::Relaxed);
    let more = json!({
        "requests": times.len(), "errors": errors, "seconds": LOAD.as_secs(),
        "p99_ms": at(0.99) * 1e3, "max_ms": at(1.0 - f64::EPSILON) * 1e3,
        "mb_sent": seen.bytes.load(Ordering::Relaxed) as f64 / 1e6,
    });
    figure("serve/200_clients", "ms", at(0.5) * 1e3, at(0.0) * 1e3, &more);
    if let (Some(idle), Some(peak)) = (idle, memory("VmHWM:")) {
        let above = peak.saturating_sub(idle) as f64 / 1e6;
        figure(
            "serve/200_clients/memory_above_idle",
            "MB",
            above,
            above,
            &json!({ "idle_mb": idle as f64 / 1e6 }),
        );
    }
    assert_eq!(errors, 0, "some requests failed");
}

/// Asks for a day, a year and ten years, in turns that differ between clients.
fn ask_until(address: SocketAddr, client: usize, seen: &Seen, over: &AtomicBool) {
    let mut connection = open(address);
    let headers = [JSON, ("Accept-Encoding", "zstd")];
    let mut round = client as u64;
    while !over.load(Ordering::Relaxed) {
        round += 1;
        let body = match round % 10 {
            0 => body(10, 1 + round % 200, 20),
            1..=3 => body(1, 1 + round % 200, 50),
            _ => {
                body(0, 1 + round % 200, 20).replace("2016-01-01\", sortBy", "2016-01-15\", sortBy")
            }
        };
        let watch = Stopwatch::start();
        let answer = connection
            .send("POST /graphql", &headers, body.as_bytes())
            .and_then(|()| connection.receive());
        match answer {
            Ok(reply) if reply.has_data() => {
                let taken = watch.elapsed().as_secs_f64();
                seen.bytes.fetch_add(reply.body.len() as u64, Ordering::Relaxed);
                seen.times.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
            }
            other => {
                if seen.errors.fetch_add(1, Ordering::Relaxed) == 0 {
                    let said = other.map(|reply| format!("{}: {}", reply.status, reply.text()));
                    eprintln!("the first request that failed: {said:?} to {body}");
                }
                connection = open(address);
            }
        }
    }
}

/// A line of this process's status in bytes, where the system tells it.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
}
