//! What good requests get.

use std::io::Read;

use ranking::service::ServiceOptions;
use serde_json::{Value, json};
use tests::http::{self, JSON};

use crate::common::{Held, RANGE, Served, Steady, ranking};

#[test]
fn fields_come_in_the_order_and_under_the_names_asked_for() {
    let served = Served::start(Steady, ServiceOptions::default());
    let body = json!({ "query": ranking(", limit: 1", "rank issue: code ...Rest __typename")
        + " fragment Rest on DailyRankingItem { prevClose v: volume sortValue rank close date }" });
    let reply = http::graphql(served.address, &body.to_string());
    let row = |date: &str| {
        format!(
            "{{\"rank\":1,\"issue\":\"130A\",\"prevClose\":null,\"v\":null,\"sortValue\":1,\
             \"close\":1001.5,\"date\":\"{date}\",\"__typename\":\"DailyRankingItem\"}}"
        )
    };
    let expected = format!(
        "{{\"data\":{{\"stockRankingRange\":[{},{}]}}}}",
        row("2024-01-04"),
        row("2024-01-05")
    );
    assert_eq!(reply.text(), expected);
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let served = Served::start(Steady, ServiceOptions::default());
    let answer = served.ask(&ranking("", "rank"));
    assert_eq!(answer["data"]["stockRankingRange"].as_array().unwrap().len(), 40);
    let same = served.ask(&ranking(", sortBy: null, order: null, limit: null", "rank"));
    assert_eq!(same, answer);
    assert_eq!(served.ask("{ schemaVersion }")["data"]["schemaVersion"], "1.0");
}

#[test]
fn the_writer_and_the_library_agree() {
    let served = Served::start(Steady, ServiceOptions::default());
    let fields = "date code close prevClose sortValue volume rank spansSplit";
    let written = served.ask(&ranking(", limit: 7", fields));
    // Asked for in two pieces under one name, the library has to merge them.
    let pieces = format!(
        "{{ stockRankingRange({RANGE}, limit: 7) {{ date code close prevClose }} \
         stockRankingRange({RANGE}, limit: 7) {{ sortValue volume rank spansSplit }} }}"
    );
    let merged = served.ask(&pieces);
    let written_rows = written["data"]["stockRankingRange"].as_array().unwrap();
    let marked = written_rows.iter().filter(|row| row["spansSplit"] == true).count();
    assert_eq!((written_rows.len(), marked), (14, 3));
    let rows = |answer: &Value| -> Vec<Vec<(String, Option<f64>, String)>> {
        let rows = answer["data"]["stockRankingRange"].as_array().unwrap();
        let cell = |(name, value): (&String, &Value)| {
            let text = if value.is_number() { String::new() } else { value.to_string() };
            (name.clone(), value.as_f64(), text)
        };
        rows.iter().map(|row| row.as_object().unwrap().iter().map(cell).collect()).collect()
    };
    assert_eq!(rows(&merged), rows(&written));
}

#[test]
fn aliases_variables_directives_and_operation_names_work() {
    let served = Served::start(Steady, ServiceOptions::default());
    let query = "query Other { schemaVersion } \
        query Mine($from: String!, $to: String!, $n: Int = 2, $no: Boolean!) { \
          few: stockRankingRange(fromDate: $from, toDate: $to, limit: $n) { rank date @skip(if: $no) } \
          version: schemaVersion \
          more: stockRankingRange(fromDate: $from, toDate: $to, limit: 3) { rank } }";
    let variables = json!({ "from": "2024-01-01", "to": "2024-02-01", "no": true });
    let body = json!({ "query": query, "variables": variables, "operationName": "Mine" });
    let text = http::graphql(served.address, &body.to_string()).text();
    assert_eq!(
        text,
        "{\"data\":{\"few\":[{\"rank\":1},{\"rank\":2},{\"rank\":1},{\"rank\":2}],\
         \"version\":\"1.0\",\"more\":[{\"rank\":1},{\"rank\":2},{\"rank\":3},{\"rank\":1},\
         {\"rank\":2},{\"rank\":3}]}}"
    );
}

#[test]
fn checks_of_formulas_compute_nothing() {
    let (held, told, _let_go) = Held::new();
    let served = Served::start(held, ServiceOptions::default());
    let check = |text: &str| {
        let query = "query($f: String!) { checkFormula(sortBy: $f) { valid canonical lags message position } }";
        served.ask_with(query, json!({ "f": text }))["data"]["checkFormula"].clone()
    };
    let good = check("close".replace('c', "C").as_str());
    assert_eq!(
        good,
        json!({ "valid": true, "canonical": "Close", "lags": [], "message": null, "position": null })
    );
    assert_eq!(check("Close[-3]/Close[-1]")["lags"], json!([1, 3]));
    let bad = check("Close + Turnover");
    assert_eq!((&bad["valid"], &bad["position"]), (&json!(false), &json!(9)));
    assert!(told.try_recv().is_err(), "the engine was asked");
}

#[test]
fn answers_are_packed_as_the_client_likes() {
    let served = Served::start(Steady, ServiceOptions::default());
    let body = json!({ "query": ranking(", limit: 100", "date code rank") }).to_string();
    let get = |accepted: &str| {
        let headers = [JSON, ("Accept-Encoding", accepted)];
        http::request(served.address, "POST /graphql", &headers, body.as_bytes())
    };
    let plain = get("identity");
    assert_eq!(
        (plain.header("content-encoding"), plain.header("vary")),
        (None, Some("accept, accept-encoding"))
    );
    let gzip = get("gzip");
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    assert!(gzip.body.len() < plain.body.len() / 4);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.body);
    assert_eq!(get("zstd, gzip, br").header("content-encoding"), Some("zstd"));
    assert_eq!(get("zstd").body[..4], [0x28, 0xb5, 0x2f, 0xfd], "the magic number of zstd");
    assert_eq!(get("br").header("content-encoding"), Some("br"));
    let small = json!({ "query": "{ schemaVersion }" }).to_string();
    let headers = [JSON, ("Accept-Encoding", "zstd")];
    let reply = http::request(served.address, "POST /graphql", &headers, small.as_bytes());
    assert_eq!(reply.header("content-encoding"), None);
}

#[test]
fn where_there_is_nothing_no_origin_is_served() {
    let origins = vec!["https://a.example".to_owned()];
    let served = Served::start(Steady, ServiceOptions { origins, ..ServiceOptions::default() });
    let asked = |path: &str| {
        let headers = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")];
        http::request(served.address, &format!("OPTIONS {path}"), &headers, &[])
    };
    for path in ["/", "/health", "/metrics", "/graphql"] {
        let name = "access-control-allow-origin";
        assert_eq!((asked(path).status, asked(path).header(name).is_some()), (200, true), "{path}");
    }
    for path in ["/nothing", "/graphql/more", "/health/"] {
        let reply = asked(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control")));
    }
}

#[test]
fn a_method_of_the_client_is_not_repeated() {
    let served = Served::start(Steady, ServiceOptions::default());
    let method = "X".repeat(4_000);
    let reply = http::request(served.address, &format!("{method} /nothing"), &[], &[]);
    assert_eq!(reply.status, 404);
    assert!(!reply.text().contains("XX"), "{}", reply.text());
    assert!(reply.text().contains("nothing here for another method"), "{}", reply.text());
}

#[test]
fn other_origins_are_served_when_named() {
    let ours = ("Origin", "https://ours.example");
    let ask = |served: &Served, origin: (&str, &str)| {
        http::request(served.address, "OPTIONS /graphql", &[origin], &[])
    };
    let name = "access-control-allow-origin";
    let closed = Served::start(Steady, ServiceOptions::default());
    assert_eq!(ask(&closed, ours).header(name), None);
    let origins = vec!["https://ours.example".to_owned()];
    let open = Served::start(Steady, ServiceOptions { origins, ..ServiceOptions::default() });
    assert_eq!(ask(&open, ours).header(name), Some("https://ours.example"));
    assert_eq!(ask(&open, ("Origin", "https://other.example")).header(name), None);
}

#[test]
fn pages_are_self_contained() {
    let graphiql = ServiceOptions { graphiql: true, ..ServiceOptions::default() };
    let served = Served::start(Steady, graphiql);
    for path in ["GET /", "GET /graphql"] {
        let page = http::request(served.address, path, &[], &[]);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
        let text = page.text();
        for outside in ["src=\"http", "href=\"http", "@import", "url(", "innerHTML"] {
            assert!(!text.contains(outside), "{path} holds {outside}");
        }
    }
    let query = "{ __schema { types { name fields { name args { name } } } } }";
    let types = served.ask(query)["data"]["__schema"]["types"].to_string();
    assert!(types.contains("DailyRankingItem") && types.contains("sortBy"), "{types}");
}
