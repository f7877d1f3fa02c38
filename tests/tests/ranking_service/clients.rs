//! Many clients, slow ones, and those that go away.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ranking::service::{Backend, ServiceLimits, ServiceOptions};
use ranking::{CancelToken, RankError, RankQuery, Ranking, SnapshotInfo};
use serde_json::json;
use tests::http::{self, Connection, JSON};

use crate::common::{Held, Served, Steady, known, next, ranking};

#[test]
fn a_client_that_goes_away_frees_its_query() {
    let (held, told, let_go) = Held::new();
    let served = Served::limited(held, |limits| {
        limits.concurrent_answers = 1;
        limits.queue = 1;
    });
    let body = json!({ "query": ranking("", "rank") }).to_string();
    let mut first = Connection::open(served.address).unwrap();
    first.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    assert_eq!(next(&told), "started");
    drop(first);
    assert_eq!(next(&told), "cancelled");
    // The turn is free again.
    let mut second = Connection::open(served.address).unwrap();
    second.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    assert_eq!(next(&told), "started");
    let_go.send(()).unwrap();
    assert_eq!(second.receive().unwrap().status, 200);
    assert_eq!(served.metric("kumiki_ranking_clients_gone_total"), "1");
    assert_eq!(served.metric("kumiki_ranking_rankings_active"), "0");
}

#[test]
fn a_full_queue_says_so() {
    let (held, told, let_go) = Held::new();
    let served = Served::limited(held, |limits| {
        limits.concurrent_answers = 1;
        limits.queue = 0;
    });
    let body = json!({ "query": ranking("", "rank") }).to_string();
    let mut first = Connection::open(served.address).unwrap();
    first.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    assert_eq!(next(&told), "started");
    assert_eq!(served.code(&ranking("", "rank")), "BUSY");
    assert_eq!(served.ask("{ schemaVersion }")["data"]["schemaVersion"], "1.0");
    let_go.send(()).unwrap();
    assert!(first.receive().unwrap().text().starts_with("{\"data\":{\"stockRankingRange\":["));
}

#[test]
fn a_query_that_takes_too_long_is_ended() {
    let (held, told, _let_go) = Held::new();
    let short = |limits: &mut ServiceLimits| limits.request_timeout = Duration::from_millis(20);
    let served = Served::limited(held, short);
    assert_eq!(served.code(&ranking("", "rank")), "TIMEOUT");
    assert_eq!((next(&told), next(&told)), ("started", "cancelled"));
}

#[test]
fn what_runs_may_end_when_the_service_stops() {
    let (held, told, let_go) = Held::new();
    let served = Served::start(held, ServiceOptions::default());
    let body = json!({ "query": ranking("", "rank") }).to_string();
    let mut connection = Connection::open(served.address).unwrap();
    connection.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    assert_eq!(next(&told), "started");
    served.stop.stop();
    let_go.send(()).unwrap();
    assert_eq!(connection.receive().unwrap().status, 200);
}

#[test]
fn connections_have_a_limit() {
    let served = Served::limited(Steady, |limits| limits.connections = 1);
    let mut first = Connection::open(served.address).unwrap();
    first.send("GET /health", &[], &[]).unwrap();
    assert_eq!(first.receive().unwrap().status, 200);
    // The second is accepted when the first is gone.
    let mut second = Connection::open(served.address).unwrap();
    second.send("GET /health", &[], &[]).unwrap();
    first.send("GET /metrics", &[], &[]).unwrap();
    let text = first.receive().unwrap().text();
    assert!(text.contains("kumiki_ranking_connections 1\n"), "{text}");
    drop(first);
    assert_eq!(second.receive().unwrap().status, 200);
}

/// Answers with more than any socket holds.
struct Bulky;

impl Backend for Bulky {
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        let query = RankQuery { limit: 250_000, ..query.clone() };
        Steady.rank(&query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        known()
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

#[test]
fn a_client_that_does_not_read_its_answer_is_dropped() {
    let short = |limits: &mut ServiceLimits| limits.write_timeout = Duration::from_millis(100);
    let served = Served::limited(Bulky, short);
    let body = json!({ "query": ranking("", "date code close volume sortValue rank") }).to_string();
    let mut lazy = Connection::open(served.address).unwrap();
    lazy.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
    served.wait_for("kumiki_ranking_clients_slow_total", "1");
    let reply = lazy.receive_head().unwrap();
    let told: usize = reply.header("content-length").unwrap().parse().unwrap();
    assert!(told > 30_000_000, "{told} bytes fit into the sockets");
    let mut rest = vec![0; told];
    let mut got = 0;
    while let Ok(count @ 1..) = lazy.read(&mut rest) {
        got += count;
    }
    assert!(got < told, "all {told} bytes came");
    // One that reads gets all, even with little patience.
    let reply = http::graphql(served.address, &body);
    assert_eq!(reply.body.len(), told);
    assert_eq!(served.metric("kumiki_ranking_clients_slow_total"), "1");
}

#[test]
fn two_hundred_clients_at_once_are_all_answered() {
    let served = Served::start(Steady, ServiceOptions::default());
    let queries = [
        ranking(", limit: 50", "date code rank sortValue"),
        ranking(", sortBy: \"Volume\"", "code"),
        "{ schemaVersion dataset { days } }".to_owned(),
    ];
    let address = served.address;
    let clients: Vec<JoinHandle<()>> = (0..200)
        .map(|client: usize| {
            let body = json!({ "query": queries[client % queries.len()] }).to_string();
            std::thread::spawn(move || {
                let mut connection = Connection::open(address).unwrap();
                for _ in 0..5 {
                    connection.send("POST /graphql", &[JSON], body.as_bytes()).unwrap();
                    let reply = connection.receive().unwrap();
                    assert!(reply.text().starts_with("{\"data\":{\""), "{}", reply.text());
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(served.metric("kumiki_ranking_requests_total{code=\"OK\"}"), "1000");
}
