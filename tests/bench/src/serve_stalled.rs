//! Clients that ask for the largest rankings and take nothing: what the service holds for them, and what
//! others wait meanwhile. The service is a process of its own, so that its memory is only its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use domain::clock::Stopwatch;
use serde_json::json;
use tests::http::{Connection, JSON};
use tests::serving::Serving;

use crate::measure::figure;
use crate::rank_bench::or_stop;
use crate::serve_mixed::{TASK, at, status};

/// Clients that stop reading.
const CLIENTS: usize = 64;
/// Rankings of one of their requests.
const ALIASES: u32 = 4;
/// Rows of a day in each, the most that may be asked for.
const ROWS: u32 = 500;
/// The days of each: all rankings of a request take no more than one request may.
const DAYS: [&str; 2] = ["2016-01-01", "2017-12-31"];
/// Below this an answer is one that says why there is none.
const LARGE_BYTES: u64 = 10_000_000;
/// Megabytes that the service may use above those of the idle one.
const GOAL_MB: u32 = 700;

/// Runs it over a data folder.
pub(crate) fn run(folder: &Path) {
    let mut command = Command::new(or_stop(std::env::current_exe()));
    command.arg(TASK).arg(folder);
    let service = Serving::of(command);
    let process = Path::new("/proc").join(service.child.id().to_string());
    let small = body(0, "2016-02-01", "2016-02-01", 20);
    assert!(ask(&mut or_stop(Connection::open(service.address)), &small) == 200);
    // Sets the peak back to the present size.
    let is_reset = std::fs::write(process.join("clear_refs"), "5").is_ok();
    let idle = status(&process, "VmRSS:").filter(|_| is_reset);
    let over = AtomicBool::new(false);
    let (begun, mut times) = thread::scope(|scope| {
        let others = scope.spawn(|| ask_until(service.address, &small, &over));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || stall(service.address, client)))
            .collect();
        let held: Vec<_> = clients.into_iter().filter_map(|client| client.join().ok()).collect();
        over.store(true, Ordering::Release);
        let begun = held.iter().flatten().filter(|(_, bytes)| *bytes > LARGE_BYTES).count();
        (begun, others.join().unwrap_or_default())
    });
    assert!(begun > 0, "no large answer was begun, so nothing was held");
    times.sort_by(f64::total_cmp);
    let given_up = service.metric("kumiki_ranking_answers_given_up_total");
    let more = json!({
        "clients": CLIENTS, "answers_begun": begun, "answers_given_up": given_up,
        "requests": times.len(), "p99_ms": at(&times, 0.99), "max_ms": at(&times, 1.0),
    });
    figure("serve/stalled/others", "ms", at(&times, 0.5), at(&times, 0.0), &more);
    match (idle, status(&process, "VmHWM:")) {
        (Some(idle), Some(peak)) => {
            let above = (peak - idle).max(0.0);
            let more = json!({ "idle_mb": idle, "goal_max": GOAL_MB });
            figure("serve/stalled/memory_above_idle", "MB", above, above, &more);
        }
        _ => eprintln!("serve/stalled: this system does not tell a process's peak memory"),
    }
}

/// Waits for the head of the largest answer and then stays, without taking more; with the bytes of the
/// answer. None where the connection ended before.
fn stall(address: SocketAddr, client: usize) -> Option<(Connection, u64)> {
    let mut connection = Connection::open(address).ok()?;
    let [first, last] = DAYS;
    let body = body(client, first, last, ROWS);
    connection.send("POST /graphql", &[JSON], body.as_bytes()).ok()?;
    let head = connection.receive_head().ok()?;
    let bytes = head.header("content-length").and_then(|text| text.parse().ok());
    Some((connection, bytes.unwrap_or_default()))
}

/// Milliseconds of each small request until it is over.
fn ask_until(address: SocketAddr, body: &str, over: &AtomicBool) -> Vec<f64> {
    let mut connection = or_stop(Connection::open(address));
    let mut times = Vec::new();
    while !over.load(Ordering::Acquire) {
        let watch = Stopwatch::start();
        assert!(ask(&mut connection, body) == 200, "a small request was not answered");
        times.push(watch.elapsed().as_secs_f64() * 1e3);
    }
    times
}

/// The status of an answer.
fn ask(connection: &mut Connection, body: &str) -> u16 {
    or_stop(connection.send("POST /graphql", &[JSON], body.as_bytes()));
    or_stop(connection.receive()).status
}

/// Rankings of other formulas for each client, so that none comes from the result cache.
fn body(client: usize, from: &str, to: &str, rows: u32) -> String {
    let aliases = if rows == ROWS { ALIASES } else { 1 };
    let one = |alias: u32| {
        let lag = 1 + client as u32 * ALIASES + alias;
        format!(
            "a{alias}: stockRankingRange(fromDate: \"{from}\", toDate: \"{to}\", limit: {rows}, \
             sortBy: \"Volume / Volume[-{lag}]\") {{ date code close prevClose sortValue volume \
             rank }}"
        )
    };
    let fields: Vec<String> = (0..aliases).map(one).collect();
    json!({ "query": format!("{{ {} }}", fields.join(" ")) }).to_string()
}
