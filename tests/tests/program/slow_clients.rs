//! Clients that ask for much and take nothing: the service keeps to its memory, and all others are
//! answered.

#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use tests::built;
use tests::http::{self, Connection, JSON};
use tests::serving::Serving;

/// Clients that stop reading.
const CLIENTS: usize = 64;
/// Most memory of the service above that of an idle one, in bytes.
const MORE_MAX: u64 = 700_000_000;
/// Below this an answer is one that says why there is none.
const LARGE_BYTES: usize = 10_000_000;

const FIELDS: &str = "{ date code close prevClose sortValue volume rank }";

fn ranking(name: &str, from: &str, to: &str, limit: u32) -> String {
    format!(
        "{name}: stockRankingRange(fromDate: \"{from}\", toDate: \"{to}\", limit: {limit}, \
         sortBy: \"Volume / Volume[-{limit}]\") {FIELDS}"
    )
}

/// Four rankings of ten years, which are too much together; of ten years; of two years, and four of a
/// quarter.
fn body(client: usize) -> String {
    let all = |name: &str| ranking(name, "2000-01-01", "2030-01-01", 500);
    let fields = match client % 4 {
        0 => ["a", "b", "c", "d"].map(all).join(" "),
        1 => all("a"),
        2 => ranking("a", "2016-01-01", "2017-12-31", 499),
        _ => ["a", "b", "c", "d"]
            .map(|name| ranking(name, "2016-01-01", "2016-03-31", 400))
            .join(" "),
    };
    json!({ "query": format!("{{ {fields} }}") }).to_string()
}

#[test]
fn clients_that_take_nothing_cost_no_more_than_their_share() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let sizes = ["--issues", "500", "--days", "2450", "--seed", "3", "--prices", data.as_str()];
    let mut command = Command::new(built::kumiki());
    assert!(command.args(["data", "sample", "--daily"]).args(sizes).status().unwrap().success());
    let serving = Serving::start(folder.path(), &["--timeout", "12s"]);
    let address = serving.address;
    let small =
        json!({ "query": format!("{{ {} }}", ranking("a", "2016-02-01", "2016-02-01", 20)) });
    let small = small.to_string();
    let first = http::graphql(address, &small);
    assert!(first.text().contains("\"rank\":20"), "{}", first.text());
    let idle = serving.peak_memory();
    let ended = AtomicBool::new(false);
    let (large, others) = thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut answered = 0;
            while !ended.load(Ordering::Acquire) {
                assert_eq!(http::graphql(address, &small).body, first.body);
                answered += 1;
            }
            answered
        });
        // Each waits for the head of its answer and then stays, without taking more.
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let mut connection = Connection::open(address).unwrap();
                    connection.send("POST /graphql", &[JSON], body(client).as_bytes()).unwrap();
                    let head = connection.receive_head().unwrap();
                    let length = head.header("content-length").and_then(|text| text.parse().ok());
                    (connection, length.unwrap_or(0_usize))
                })
            })
            .collect();
        let clients: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        ended.store(true, Ordering::Release);
        let large = clients.iter().filter(|(_, length)| *length > LARGE_BYTES).count();
        (large, others.join().unwrap())
    });
    // Those that fit, and after a while those that fit when the first are given up.
    assert!(large >= 4, "only {large} large answers were begun");
    assert!(others >= 20, "only {others} requests of others were answered");
    let given_up = serving.metric("kumiki_ranking_answers_given_up_total").unwrap();
    assert_ne!(given_up, "0", "nobody was given up");
    println!("{large} large answers begun, {given_up} given up, {others} of others answered");
    match (idle, serving.peak_memory()) {
        (Some(idle), Some(peak)) => {
            let more = peak - idle;
            println!("{more} bytes more than when idle");
            assert!(more <= MORE_MAX, "{more} bytes more than when idle");
        }
        _ => println!("skipped: this system does not tell the memory of a process"),
    }
}
