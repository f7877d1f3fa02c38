//! The memory of answers: bounded, small answers first, and nobody holds it for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::JstDate;
use ranking::service::{Backend, ServiceLimits};
use ranking::{CancelToken, RankError, RankQuery, RankRow, Ranking, SnapshotInfo};
use serde_json::json;
use tests::http::{self, Connection, JSON, Reply};

use crate::common::{Served, day};

const MEMORY: &str = "kumiki_ranking_answer_memory_bytes";
const GIVEN_UP: &str = "kumiki_ranking_answers_given_up_total";
const SLOW: &str = "kumiki_ranking_clients_slow_total";

/// A thousand days of a thousand codes.
struct Wide;

fn days() -> Vec<JstDate> {
    day("2020-01-01").iter_days().take(1_000).collect()
}

impl Backend for Wide {
    fn rank(&self, query: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
        let days: Vec<JstDate> =
            days().into_iter().filter(|day| (query.from..=query.to).contains(day)).collect();
        let row = |day: usize, rank: u32| RankRow {
            day: u32::try_from(day).unwrap(),
            code: rank,
            close: 1_000.5 + f64::from(rank),
            volume: Some(f64::from(rank) * 100.0),
            sort_value: Some(1.0 / f64::from(rank)),
            rank,
        };
        let rows =
            (0..days.len()).flat_map(|day| (1..=query.limit).map(move |rank| row(day, rank)));
        Ok(Ranking {
            rows: rows.collect(),
            days,
            codes: (1_000..2_000).map(|code| code.to_string().into()).collect(),
            snapshot: 1,
            splits: None,
        })
    }

    fn snapshot(&self) -> SnapshotInfo {
        let days = days();
        let (first, last) = (days[0], days[days.len() - 1]);
        SnapshotInfo { number: 1, days: 1_000, codes: 1_000, first, last, refused: None }
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

fn field(name: &str, to: &str, limit: u32) -> String {
    format!(
        "{name}: stockRankingRange(fromDate: \"2020-01-01\", toDate: \"{to}\", limit: {limit}) \
         {{ date code close volume sortValue rank }}"
    )
}

fn body(fields: &[String]) -> String {
    json!({ "query": format!("{{ {} }}", fields.join(" ")) }).to_string()
}

/// All days: 28 MB as text, and 65 MB while it is made.
fn large() -> String {
    body(&[field("all", "2030-01-01", 300)])
}

fn small() -> String {
    body(&[field("one", "2020-01-01", 5)])
}

fn code(reply: &Reply) -> String {
    let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    answer["errors"][0]["extensions"]["code"].as_str().unwrap_or("none").to_owned()
}

/// Asks and reads the head of the answer, no more.
fn lazy(served: &Served, body: &str) -> (Connection, usize) {
    let mut connection = Connection::open(served.address).unwrap();
    connection.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    let head = connection.receive_head().unwrap();
    let length = head.header("content-length").unwrap().parse().unwrap();
    (connection, length)
}

/// Bytes that still come, up to so many.
fn rest(connection: &mut Connection, most: usize) -> usize {
    let mut bytes = vec![0; 1 << 20];
    let mut got = 0;
    while got < most
        && let Ok(count @ 1..) = connection.read(&mut bytes)
    {
        got += count;
    }
    got
}

fn bounded(change: impl FnOnce(&mut ServiceLimits)) -> Served {
    Served::limited(Wide, |limits| {
        limits.answer_memory = 256 << 20;
        change(limits);
    })
}

#[test]
fn what_nobody_takes_is_given_up_when_others_need_the_memory() {
    let served = bounded(|limits| limits.stalled_after = Duration::from_millis(50));
    let mut clients: Vec<(Connection, usize)> = (0..14).map(|_| lazy(&served, &large())).collect();
    let given_up: usize = served.metric(GIVEN_UP).parse().unwrap();
    assert!(given_up >= 3, "{given_up} of 14 were given up");
    let held: u64 = served.metric(MEMORY).parse().unwrap();
    assert!(held > 20_000_000 && held <= 256 << 20, "{held} bytes are held");
    // The first was asked for the longest time ago.
    let (first, told) = &mut clients[0];
    assert!(*told > 25_000_000, "{told} bytes fit into the sockets");
    let got = rest(first, *told);
    assert!(got < *told, "all {told} bytes came");
    // One that reads gets all.
    let reply = http::graphql(served.address, &large());
    assert_eq!(reply.body.len(), clients[1].1);
    assert!(reply.text().ends_with("}]}}"));
    drop(clients);
    served.wait_for(MEMORY, "0");
}

/// A client that takes a little all the time is never idle, and holds nobody up for ten minutes.
#[test]
fn who_takes_too_little_is_given_up_when_others_need_the_memory() {
    let served = bounded(|limits| limits.stalled_after = Duration::from_millis(300));
    let slow: Vec<(Connection, usize)> = (0..3).map(|_| lazy(&served, &large())).collect();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = slow.into_iter().map(|(mut connection, told)| {
            let ended = &ended;
            scope.spawn(move || {
                let (mut bytes, mut got) = (vec![0; 2 * 1_024], 0);
                while let Ok(count @ 1..) = connection.read(&mut bytes) {
                    got += count;
                    if !ended.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
                (got, told)
            })
        });
        let readers: Vec<_> = readers.collect();
        // More than there is beside what they hold.
        let reply = http::graphql(
            served.address,
            &body(&[field("a", "2030-01-01", 500), field("b", "2030-01-01", 320)]),
        );
        ended.store(true, Ordering::Release);
        assert!(reply.body.len() > 60_000_000, "{}", reply.text());
        let got: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(got.iter().any(|(got, told)| got < told), "{got:?}");
    });
    assert_ne!(served.metric(GIVEN_UP), "0");
}

#[test]
fn small_answers_do_not_wait_for_large_ones() {
    let served = bounded(|limits| {
        limits.stalled_after = Duration::from_secs(3_600);
        limits.request_timeout = Duration::from_millis(1_500);
    });
    let mut clients = Vec::new();
    // As many as there is room for; the next one is told that its time is over.
    let told = loop {
        let mut connection = Connection::open(served.address).unwrap();
        connection.send("POST /graphql", &[JSON], large().as_bytes()).unwrap();
        let mut head = connection.receive_head().unwrap();
        let length: usize = head.header("content-length").unwrap().parse().unwrap();
        if length < 10_000 {
            head.body = vec![0; length];
            let mut got = 0;
            while got < length {
                got += connection.read(&mut head.body[got..]).unwrap();
            }
            break head;
        }
        clients.push(connection);
        assert!(clients.len() < 20, "nothing bounds the memory");
    };
    assert_eq!(code(&told), "TIMEOUT");
    assert!(clients.len() >= 2, "{} fit", clients.len());
    for _ in 0..20 {
        let reply = http::graphql(served.address, &small());
        assert!(reply.text().starts_with("{\"data\":{\"one\":[{\"date\":"), "{}", reply.text());
    }
    assert_eq!(served.metric(GIVEN_UP), "0");
}

#[test]
fn all_rankings_of_a_request_count_together() {
    let served = Served::limited(Wide, |limits| limits.answer_memory = 100 << 20);
    let one = |name: &str| field(name, "2030-01-01", 300);
    let reply = http::graphql(served.address, &body(&[one("a"), one("b")]));
    assert_eq!((reply.status, code(&reply).as_str()), (200, "RESULT_TOO_LARGE"));
    assert!(reply.text().contains("and 75 MB are allowed"), "{}", reply.text());
    let reply = http::graphql(served.address, &body(&[one("a")]));
    assert!(reply.body.len() > 25_000_000);
    let half = |name: &str| field(name, "2030-01-01", 150);
    let reply = http::graphql(served.address, &body(&[half("a"), half("b")]));
    assert!(reply.body.len() > 25_000_000);
    // Names of the client are part of every row.
    let long = format!(
        "{{ stockRankingRange(fromDate: \"2020-01-01\", toDate: \"2030-01-01\", limit: 300) \
         {{ {}: rank }} }}",
        "x".repeat(10_000)
    );
    assert_eq!(served.code(&long), "RESULT_TOO_LARGE");
    served.wait_for(MEMORY, "0");
}

#[test]
fn a_client_has_so_long_for_a_whole_answer() {
    let served = bounded(|limits| limits.answer_timeout = Duration::from_millis(300));
    let (mut connection, told) = lazy(&served, &large());
    // It takes something all the time, but would need a minute for all of it.
    let (mut bytes, mut got) = (vec![0; 16 * 1024], 0);
    let mut ended = false;
    while !ended {
        match connection.read(&mut bytes) {
            Ok(count @ 1..) => got += count,
            _ => ended = true,
        }
        if served.metric(SLOW) == "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(got < told, "all {told} bytes came");
    assert_eq!(served.metric(SLOW), "1");
    let reply = http::graphql(served.address, &large());
    assert_eq!(reply.body.len(), told, "one that reads gets all");
    served.wait_for(MEMORY, "0");
}
