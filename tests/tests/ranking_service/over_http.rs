//! GraphQL over HTTP: GET queries, the media type whose status says what happened, and one snapshot
//! for all of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ranking::service::{Backend, BearerToken, ServiceOptions};
use ranking::{CancelToken, RankError, RankQuery, RankRow, Ranking, SnapshotInfo};
use serde_json::{Value, json};
use tests::http::{self, JSON, Reply};

use crate::common::{Served, Steady, known, ranking};

const GRAPHQL: &str = "application/graphql-response+json";

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn get(served: &Served, parameters: &str, headers: &[(&str, &str)]) -> Reply {
    http::request(served.address, &format!("GET /graphql?{parameters}"), headers, &[])
}

fn value(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

fn code(reply: &Reply) -> String {
    value(reply)["errors"][0]["extensions"]["code"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn queries_come_by_get_too() {
    let served = Served::start(Steady, ServiceOptions::default());
    let query = "query A($n: Int!) { stockRankingRange(fromDate: \"2024-01-01\", toDate: \
                 \"2024-12-31\", limit: $n) { rank } } query B { schemaVersion }";
    let body = json!({ "query": query, "operationName": "A", "variables": { "n": 3 } });
    let posted = http::graphql(served.address, &body.to_string());
    let parameters = format!(
        "query={}&operationName=A&variables={}&extensions=%7B%7D",
        encoded(query),
        encoded("{\"n\":3}")
    );
    let got = get(&served, &parameters, &[]);
    assert_eq!((got.status, &got.body), (200, &posted.body));
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let refused = get(&served, &format!("query={}", encoded("mutation { a }")), &[]);
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    assert_eq!(code(&refused), "METHOD");
    for wrong in ["", "variables=%7B%7D", "query=%7Ba%7D&variables=5", "query=a&query=b"] {
        let reply = get(&served, wrong, &[]);
        assert_eq!((reply.status, code(&reply).as_str()), (400, "REQUEST_INVALID"), "{wrong}");
    }
}

#[test]
fn pages_of_other_sites_cannot_make_work() {
    let origins = vec!["https://ours.example".to_owned()];
    let served = Served::start(Steady, ServiceOptions { origins, ..ServiceOptions::default() });
    let query = "query=%7BschemaVersion%7D";
    for site in ["cross-site", "same-site"] {
        let reply = get(&served, query, &[("Sec-Fetch-Site", site)]);
        assert_eq!((reply.status, code(&reply).as_str()), (403, "FORBIDDEN"), "{site}");
        let named = [("Sec-Fetch-Site", site), ("Origin", "https://ours.example")];
        assert_eq!(get(&served, query, &named).status, 200);
        let other = [("Sec-Fetch-Site", site), ("Origin", "https://other.example")];
        assert_eq!(get(&served, query, &other).status, 403);
    }
    for site in ["same-origin", "none"] {
        assert_eq!(get(&served, query, &[("Sec-Fetch-Site", site)]).status, 200, "{site}");
    }
}

#[test]
fn a_token_is_asked_for_by_get_too() {
    let token = Some(BearerToken::new("a-secret-for-tests-only").unwrap());
    let served = Served::start(Steady, ServiceOptions { token, ..ServiceOptions::default() });
    let query = "query=%7BschemaVersion%7D";
    let refused = get(&served, query, &[("Accept", GRAPHQL)]);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    let good = [("Authorization", "Bearer a-secret-for-tests-only")];
    assert_eq!(get(&served, query, &good).status, 200);
}

#[test]
fn statuses_say_what_happened_when_asked() {
    let served = Served::limited(Steady, |limits| limits.aliases = 1);
    let ask = |body: &str, accept: &str| {
        let headers = [JSON, ("Accept", accept)];
        http::request(served.address, "POST /graphql", &headers, body.as_bytes())
    };
    let query = |text: &str| json!({ "query": text }).to_string();
    let two = "{ a: stockRankingRange { rank } b: stockRankingRange { rank } }";
    for (body, status, of_json, has_data) in [
        (query("{ schemaVersion }"), 200, 200, true),
        (query(&ranking("", "rank")), 200, 200, true),
        // A field that fails takes the data away, and that it was asked is said with null.
        (query(&ranking(", sortBy: \"Clos\"", "rank")), 294, 200, true),
        (query("{ nothing }"), 400, 200, false),
        (query("{"), 400, 200, false),
        (query(two), 400, 200, false),
        (
            query(
                "query($n: Int!) { stockRankingRange(fromDate: \"a\", toDate: \"a\", limit: $n) \
                { rank } }",
            ),
            400,
            200,
            false,
        ),
        ("{".to_owned(), 400, 400, false),
    ] {
        let reply = ask(&body, GRAPHQL);
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        let name = "application/graphql-response+json; charset=utf-8";
        assert_eq!(reply.header("content-type"), Some(name), "{body}");
        assert_eq!(value(&reply).get("data").is_some(), has_data, "{body}: {}", reply.text());
        let reply = ask(&body, "application/json");
        assert_eq!(reply.status, of_json, "{body}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"), "{body}");
        assert_eq!(value(&reply).get("data").is_some(), has_data, "{body}: {}", reply.text());
    }
    let long = ask(&" ".repeat(65_537), GRAPHQL);
    assert_eq!((long.status, code(&long).as_str()), (413, "BODY_TOO_LARGE"));
}

/// A new snapshot after every query: its number is the close of its only row.
struct Restless {
    number: AtomicU64,
}

/// One of them.
struct Kept {
    all: Arc<Restless>,
    number: u64,
}

impl Restless {
    fn info(number: u64) -> SnapshotInfo {
        SnapshotInfo { number, ..known() }
    }
}

impl Backend for Restless {
    fn rank(&self, _: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
        Err(RankError::NoData("a request must stay with one snapshot".to_owned()))
    }

    fn snapshot(&self) -> SnapshotInfo {
        Self::info(self.number.load(Ordering::SeqCst))
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        let number = self.number.load(Ordering::SeqCst);
        Arc::new(Kept { all: self, number })
    }
}

impl Backend for Kept {
    fn rank(&self, _: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
        self.all.number.fetch_add(1, Ordering::SeqCst);
        let info = known();
        let close = self.number as f64;
        let row = RankRow { day: 0, code: 0, close, volume: None, sort_value: None, rank: 1 };
        Ok(Ranking {
            days: vec![info.first],
            codes: ["1301"].map(Box::from).into(),
            rows: vec![row],
            snapshot: self.number,
            splits: None,
        })
    }

    fn snapshot(&self) -> SnapshotInfo {
        Restless::info(self.number)
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

#[test]
fn all_of_a_request_is_of_one_snapshot() {
    let served = Served::start(Restless { number: AtomicU64::new(7) }, ServiceOptions::default());
    let one = "stockRankingRange(fromDate: \"2024-01-01\", toDate: \"2024-12-31\") { close }";
    let query = format!("{{ a: {one} b: {one} dataset {{ snapshot }} c: {one} }}");
    for number in [7, 10, 13] {
        let data = served.ask(&query)["data"].clone();
        let close = json!([{ "close": number }]);
        let told = number.to_string();
        let expected =
            json!({ "a": close, "b": close, "dataset": { "snapshot": told }, "c": close });
        assert_eq!(data, expected);
    }
}
