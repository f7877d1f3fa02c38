//! What wrong requests get, and who may ask.

use std::sync::Arc;

use ranking::service::{Backend, BearerToken, ServiceOptions};
use ranking::{CancelToken, RankError, RankQuery, Ranking, SnapshotInfo};
use serde_json::{Value, json};
use tests::http::{self, JSON};

use crate::common::{RANGE, Served, Steady, known, ranking};

#[test]
fn errors_have_codes_and_places() {
    let served = Served::start(Steady, ServiceOptions::default());
    let alias = |count: usize| {
        let one = |index| format!("a{index}: stockRankingRange({RANGE}) {{ rank }}");
        format!("{{ {} }}", (0..count).map(one).collect::<Vec<_>>().join(" "))
    };
    for (query, code) in [
        (ranking(", sortBy: \"Close; drop\"", "rank"), "FORMULA_INVALID"),
        (ranking(", order: \"up\"", "rank"), "ORDER_INVALID"),
        (ranking(", limit: 0", "rank"), "LIMIT_INVALID"),
        (ranking(", limit: 501", "rank"), "LIMIT_INVALID"),
        (ranking(", limit: 4294967296", "rank"), "GRAPHQL_INVALID"),
        (ranking("", "turnover"), "GRAPHQL_INVALID"),
        (ranking("", ""), "GRAPHQL_INVALID"),
        (
            "{ stockRankingRange(fromDate: \"x\", toDate: \"2024-01-01\") { rank } }".into(),
            "DATE_INVALID",
        ),
        (
            "{ stockRankingRange(fromDate: \"1990-01-01\", toDate: \"2024-01-01\") { rank } }"
                .into(),
            "RANGE_INVALID",
        ),
        ("{ stockRankingRange(toDate: \"2024-01-01\") { rank } }".into(), "GRAPHQL_INVALID"),
        ("mutation { stockRankingRange { rank } }".into(), "GRAPHQL_INVALID"),
        (alias(5), "ALIASES_EXCEEDED"),
        (format!("{{ {} }}", "schemaVersion ".repeat(1_001)), "QUERY_TOO_LARGE"),
        (format!("{}a{}", "{ a ".repeat(21), "}".repeat(21)), "QUERY_TOO_DEEP"),
        ("[".repeat(30_000), "QUERY_TOO_LARGE"),
        ("{".to_owned(), "GRAPHQL_INVALID"),
    ] {
        assert_eq!(served.code(&query), code, "{}", &query[..query.len().min(200)]);
    }
    assert_eq!(served.ask(&alias(4))["data"]["a3"].as_array().unwrap().len(), 40);
    let answer = served.ask(&ranking(", sortBy: \"Close * 1;2\"", "rank"));
    let error = &answer["errors"][0];
    assert_eq!(error["extensions"]["position"], 10, "{answer}");
    assert_eq!(error["path"], json!(["stockRankingRange"]));
    assert!(
        error["message"].as_str().unwrap().contains("unexpected `;` at character 10"),
        "{answer}"
    );
}

#[test]
fn what_is_no_request_is_told_so() {
    let served = Served::start(Steady, ServiceOptions::default());
    let code = |reply: &http::Reply| {
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        answer["errors"][0]["extensions"]["code"].as_str().unwrap_or("none").to_owned()
    };
    for body in ["x", "{}", "[]", "{\"query\":1}", "{\"query\":\"{a}\",\"variables\":[]}", "\u{0}"]
    {
        let reply = http::graphql(served.address, body);
        assert_eq!((reply.status, code(&reply).as_str()), (400, "REQUEST_INVALID"), "{body}");
    }
    let fits = format!("{{\"query\":\"{{ schemaVersion }}{}\"}}", " ".repeat(65_536 - 29));
    assert_eq!(fits.len(), 65_536);
    assert!(http::graphql(served.address, &fits).text().contains("1.0"));
    let reply = http::graphql(served.address, &format!("{fits} "));
    assert_eq!((reply.status, code(&reply).as_str()), (413, "BODY_TOO_LARGE"));
    let plain = [("Content-Type", "text/plain")];
    let reply = http::request(served.address, "POST /graphql", &plain, b"{}");
    assert_eq!((reply.status, code(&reply).as_str()), (415, "MEDIA_TYPE"));
    assert_eq!(http::request(served.address, "GET /graphql", &[], &[]).status, 400);
    assert_eq!(http::request(served.address, "GET /nothing", &[], &[]).status, 404);
}

#[test]
fn large_rankings_are_refused() {
    let served = Served::limited(Steady, |limits| limits.answer_rows = 200);
    assert_eq!(served.ask(&ranking(", limit: 100", "rank"))["errors"], Value::Null);
    assert_eq!(served.code(&ranking(", limit: 101", "rank")), "RESULT_TOO_LARGE");
}

/// Fails inside, with a cause that names a file.
struct Broken;

impl Backend for Broken {
    fn rank(&self, query: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
        assert!(query.limit != 13, "a fault of the engine");
        let source = "cannot read some/file.db: SELECT broken".into();
        Err(RankError::Internal { doing: "reading the data", source })
    }

    fn snapshot(&self) -> SnapshotInfo {
        SnapshotInfo { days: 0, ..known() }
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

#[test]
fn causes_go_to_the_log_and_not_to_the_client() {
    let served = Served::start(Broken, ServiceOptions::default());
    let answer = served.ask(&ranking("", "rank"));
    assert_eq!(answer["errors"][0]["extensions"]["code"], "INTERNAL");
    let text = answer.to_string();
    assert!(!text.contains("file.db") && !text.contains("SELECT"), "{text}");
    let log = served.log().join("");
    assert!(log.contains("cannot read <path> <statement>"), "{log}");
    assert!(!log.contains("file.db") && !log.contains("SELECT"), "{log}");
    // A panic takes one query with it, not the service.
    assert_eq!(served.code(&ranking(", limit: 13", "rank")), "INTERNAL");
    let health = http::request(served.address, "GET /health", &[], &[]);
    assert_eq!((health.status, health.text().contains("no data")), (503, true));
}

#[test]
fn a_token_is_asked_for() {
    let secret = "a-secret-for-tests-only";
    let token = Some(BearerToken::new(secret).unwrap());
    let served = Served::start(Steady, ServiceOptions { token, ..ServiceOptions::default() });
    let body = json!({ "query": "{ schemaVersion }" }).to_string();
    let refused = http::graphql(served.address, &body);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert!(refused.text().contains("UNAUTHORIZED"));
    let bearer = format!("Bearer {secret}");
    let good = [JSON, ("Authorization", bearer.as_str())];
    assert_eq!(http::request(served.address, "POST /graphql", &good, body.as_bytes()).status, 200);
    let wrong = [JSON, ("Authorization", "Bearer a-secret-for-tests-onlx")];
    assert_eq!(http::request(served.address, "POST /graphql", &wrong, body.as_bytes()).status, 401);
    assert_eq!(http::request(served.address, "GET /metrics", &[], &[]).status, 401);
    assert_eq!(http::request(served.address, "GET /metrics", &good, &[]).status, 200);
    assert_eq!(http::request(served.address, "GET /health", &[], &[]).status, 200);
}

#[test]
fn each_request_is_a_line_of_the_log() {
    let served = Served::start(Steady, ServiceOptions::default());
    served.ask("{ schemaVersion }");
    let asked = http::request(served.address, "GET /graphql?query=secret", &[], &[]);
    assert_eq!(http::request(served.address, "GET /private/path", &[], &[]).status, 404);
    let lines = served.accesses();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, parts) in lines.iter().zip([
        ["method=\"POST\" route=\"/graphql\"", "status=200", "bytes="],
        ["method=\"GET\" route=\"/graphql\"", "status=200", "bytes="],
        ["method=\"GET\" route=\"none\"", "status=404", "client=127.0.0.1:"],
    ]) {
        for part in parts {
            assert!(line.contains(part), "`{part}` is not in {line}");
        }
        assert!(line.contains("duration_ms="), "{line}");
        assert!(!line.contains("secret") && !line.contains("private"), "{line}");
    }
    let bytes = format!("bytes={} ", asked.body.len());
    assert!(lines[1].contains(&bytes), "`{bytes}` is not in {}", lines[1]);
}

#[test]
fn other_names_than_those_of_this_machine_are_refused() {
    let hosts = vec!["rank.example".to_owned()];
    let named = Served::start(Steady, ServiceOptions { hosts, ..ServiceOptions::default() });
    let served = Served::start(Steady, ServiceOptions::default());
    let ask = |served: &Served, path: &str, host: &str| {
        http::request(served.address, path, &[("Host", host)], &[]).status
    };
    for path in ["GET /", "GET /health", "GET /metrics", "GET /jp/listed_info.db", "GET /nothing"] {
        assert_eq!(ask(&served, path, "evil.example"), 421, "{path}");
        assert_eq!(ask(&served, path, "rank.example:8080"), 421, "{path}");
        for good in ["localhost:8080", "127.0.0.1", "[::1]:5"] {
            assert_ne!(ask(&served, path, good), 421, "{path} {good}");
        }
        assert_ne!(ask(&named, path, "rank.example:8080"), 421, "{path}");
        assert_eq!(ask(&named, path, "evil.example"), 421, "{path}");
    }
    // Two names are no name, whichever a proxy in front goes by.
    let two = [("Host", "localhost"), ("Host", "127.0.0.1")];
    assert_eq!(http::request(served.address, "GET /health", &two, &[]).status, 400);
    // Nor is none (RFC 9112, 3.2).
    let mut nameless = std::net::TcpStream::connect(served.address).unwrap();
    std::io::Write::write_all(&mut nameless, b"GET /health HTTP/1.1\r\n\r\n").unwrap();
    let mut status = [0; 12];
    std::io::Read::read_exact(&mut nameless, &mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 400");
    let headers = [JSON, ("Host", "evil.example")];
    let body = json!({ "query": "{ schemaVersion }" }).to_string();
    let reply = http::request(served.address, "POST /graphql", &headers, body.as_bytes());
    assert_eq!(reply.status, 421);
    assert!(reply.text().contains("--allow-host") && !reply.text().contains("evil"));
    assert_eq!(reply.header("access-control-allow-origin"), None);
}
