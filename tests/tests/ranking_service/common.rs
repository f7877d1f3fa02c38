//! Services to ask, and engines that do what a test needs.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::JstDate;
use domain::adjustment::Adjustment;
use pricestore::grid::{Split, Splits};
use ranking::service::{Backend, Service, ServiceLimits, ServiceOptions, ServiceStop};
use ranking::{CancelToken, RankError, RankQuery, RankRow, Ranking, SnapshotInfo, SplitReach};
use serde_json::{Value, json};
use tests::{events, http};

/// A running service; ends with the test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) stop: ServiceStop,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(backend: impl Backend, options: ServiceOptions) -> Self {
        events::collect();
        let address = "127.0.0.1:0".parse().unwrap();
        let service = Service::bind(address, Arc::new(backend), options).unwrap();
        let (address, stop) = (service.address(), service.stop());
        let thread = Some(std::thread::spawn(move || service.run().unwrap()));
        Self { address, stop, thread }
    }

    /// What the operator was told, an event a line, without the requests.
    pub(crate) fn log(&self) -> Vec<String> {
        let is_access = |line: &String| line.contains("ranking::access");
        events::of(self.address).into_iter().filter(|line| !is_access(line)).collect()
    }

    /// The requests that the operator was told of, one a line.
    pub(crate) fn accesses(&self) -> Vec<String> {
        let is_access = |line: &String| line.contains("ranking::access");
        events::of(self.address).into_iter().filter(is_access).collect()
    }

    pub(crate) fn limited(backend: impl Backend, change: impl FnOnce(&mut ServiceLimits)) -> Self {
        let mut options = ServiceOptions::default();
        change(&mut options.limits);
        Self::start(backend, options)
    }

    pub(crate) fn ask(&self, query: &str) -> Value {
        self.ask_with(query, json!({}))
    }

    pub(crate) fn ask_with(&self, query: &str, variables: Value) -> Value {
        let body = json!({ "query": query, "variables": variables }).to_string();
        let reply = http::graphql(self.address, &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// The code of the answer's first error.
    pub(crate) fn code(&self, query: &str) -> String {
        let answer = self.ask(query);
        assert!(answer["data"].is_null(), "{answer}");
        answer["errors"][0]["extensions"]["code"].as_str().unwrap_or("none").to_owned()
    }

    pub(crate) fn metric(&self, name: &str) -> String {
        let text = http::request(self.address, "GET /metrics", &[], &[]).text();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or("none");
        line.rsplit(' ').next().unwrap().to_owned()
    }

    /// Waits until a number is what it should become.
    pub(crate) fn wait_for(&self, name: &str, value: &str) {
        for _ in 0..12_000 {
            if self.metric(name) == value {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} is {} and never became {value}", self.metric(name));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub(crate) fn day(text: &str) -> JstDate {
    text.parse().unwrap()
}

pub(crate) fn known() -> SnapshotInfo {
    let (first, last) = (day("2024-01-04"), day("2024-01-05"));
    SnapshotInfo { number: 3, days: 2, codes: 3, first, last, refused: None }
}

/// A split of the second issue on the second day.
fn splits() -> SplitReach {
    let split = Split { day: 1, code: 1, adjustment: Adjustment::of_factor(0.5) };
    let splits = Splits::new(vec![split], Vec::new(), Vec::new()).unwrap();
    SplitReach::new(Arc::new(splits), 0, 1)
}

/// Answers each query with two days of `limit` rows.
pub(crate) struct Steady;

impl Backend for Steady {
    fn rank(&self, query: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
        let rows = (0..2).flat_map(|day| {
            (1..=query.limit).map(move |rank| RankRow {
                day,
                code: rank % 3,
                close: 1_000.5 + f64::from(rank),
                volume: (rank % 2 == 0).then_some(f64::from(rank) * 100.0),
                sort_value: (rank % 5 != 0).then_some(1.0 / f64::from(rank)),
                rank,
            })
        });
        Ok(Ranking {
            days: vec![day("2024-01-04"), day("2024-01-05")],
            codes: ["1301", "130A", "7203"].map(Box::from).into(),
            rows: rows.collect(),
            snapshot: 3,
            splits: Some(splits()),
        })
    }

    fn snapshot(&self) -> SnapshotInfo {
        known()
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

/// Holds each query until it is cancelled or let go, and tells what happens.
pub(crate) struct Held {
    tell: Mutex<Sender<&'static str>>,
    go: Mutex<Receiver<()>>,
}

impl Held {
    pub(crate) fn new() -> (Self, Receiver<&'static str>, Sender<()>) {
        let (tell, told) = channel();
        let (let_go, go) = channel();
        (Self { tell: Mutex::new(tell), go: Mutex::new(go) }, told, let_go)
    }

    pub(crate) fn tell(&self, what: &'static str) {
        // A test that has seen enough may be gone.
        let _ = self.tell.lock().unwrap().send(what);
    }
}

impl Backend for Held {
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        self.tell("started");
        loop {
            if cancel.is_cancelled() {
                self.tell("cancelled");
                return Err(RankError::Cancelled);
            }
            let go = self.go.lock().unwrap().recv_timeout(Duration::from_millis(1));
            if go.is_ok() {
                self.tell("answered");
                return Steady.rank(query, cancel);
            }
        }
    }

    fn snapshot(&self) -> SnapshotInfo {
        known()
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

/// What a [`Held`] tells next. The wait is long so that it only ends early on a fault.
pub(crate) fn next(told: &Receiver<&'static str>) -> &'static str {
    told.recv_timeout(Duration::from_secs(60)).unwrap_or("nothing")
}

pub(crate) const RANGE: &str = "fromDate: \"2024-01-01\", toDate: \"2024-12-31\"";

pub(crate) fn ranking(arguments: &str, fields: &str) -> String {
    format!("{{ stockRankingRange({RANGE}{arguments}) {{ {fields} }} }}")
}
