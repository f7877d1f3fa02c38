//! The job with its real sources against a server on this machine, and the search for keys in
//! everything that a run leaves behind.

use std::path::Path;
use std::time::Duration;

use http_client::{Network, RequestPolicy, checked_address};
use serde_json::json;
use update::source::{PublicSource, VendorSource, WebBrokerAccess, WebBrokerSource};
use update::{DayCache, DayOutcome, Ending, SourceKind, SourceSlot, SourceState};
use venues::web_broker::{Credentials, Environment, WebBrokerConfig};
use wiremock::matchers::{path, path_regex, query_param};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::events;
use crate::fixture::{Fixture, code};

const KEYS: [&str; 3] = ["vendor-key-47110815", "session-48220926", "public-key-49331037"];

fn policy() -> RequestPolicy {
    let pause = Duration::from_millis(1);
    RequestPolicy { back_off: pause, back_off_too_many: pause, ..RequestPolicy::default() }
}

fn sources(fixture: &Fixture, address: &str) -> Vec<SourceSlot> {
    let network = Network::new(fixture.cancel.clone()).unwrap();
    let url = |path: &str| checked_address(&format!("{address}{path}")).unwrap();
    let [vendor, session, public] = KEYS;
    let cache = DayCache::new(&fixture.folder.path().join("cache"), SourceKind::Vendor);
    let today = fixture.options.now.jst_date();
    let key = vendor.to_owned().into();
    let vendor =
        VendorSource::new(&network, &url("/v2"), &key, 60_000, policy(), Some(cache), today);
    let config = WebBrokerConfig {
        environment: Environment::Demo,
        base_url: Some(format!("{address}/e_api/")),
        dialect: "web-broker-spec".to_owned(),
        production_allowed: false,
        connect_timeout: Duration::from_secs(5),
        answer_timeout: Duration::from_secs(5),
        state_dir: fixture.folder.path().join("engine"),
        cache_dir: fixture.folder.path().join("cache"),
    };
    let (user, password) = ("demo".to_owned().into(), session.to_owned().into());
    let credentials = Credentials::Password { user, password };
    let access = WebBrokerAccess { config, credentials };
    let broker = WebBrokerSource::new(&network, access, 60_000, policy());
    let key = Some(public.to_owned().into());
    let public = PublicSource::new(&network, &url("/q/"), key, 60_000, policy());
    vec![
        SourceSlot::Ready(Box::new(vendor.unwrap())),
        SourceSlot::Ready(Box::new(broker)),
        SourceSlot::Ready(Box::new(public.unwrap())),
    ]
}

fn vendor_row(date: &str, code: &str) -> serde_json::Value {
    json!({ "Date": date, "Code": code, "O": 1, "H": 2, "L": 1, "C": 2, "Vo": 100, "Va": 150,
            "AdjFactor": 1 })
}

/// A login at a broker whose addresses hold the same secret as the password.
fn logged_in(request: &Request) -> ResponseTemplate {
    let port = request.url.port().unwrap();
    let url = |scheme: &str| format!("{scheme}://127.0.0.1:{port}/price/{}/", KEYS[1]);
    ResponseTemplate::new(200).set_body_json(json!({
        "p_errno": "0", "sResultCode": "0", "sUrlRequest": url("http"), "sUrlMaster": url("http"),
        "sUrlPrice": url("http"), "sUrlEvent": url("http"), "sUrlEventWebSocket": url("ws"),
    }))
}

fn start(rules: Vec<Mock>) -> (tokio::runtime::Runtime, MockServer) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        for rule in rules {
            server.register(rule).await;
        }
        server
    });
    (runtime, server)
}

/// Every file below a folder that holds a text.
fn files_with(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn each_day_comes_from_the_first_source_that_has_it() {
    let day = |day: &str, rows: serde_json::Value| {
        Mock::given(path("/v2/equities/bars/daily"))
            .and(query_param("date", day))
            .respond_with(ResponseTemplate::new(200).set_body_json(json!({ "data": rows })))
    };
    let rows = |date| json!([vendor_row(date, "72030"), vendor_row(date, "130A0")]);
    let refusal = "This date cannot be had.";
    let refused = ResponseTemplate::new(400).set_body_json(json!({ "message": refusal }));
    let broker = json!({ "p_errno": "2", "p_err": KEYS[1] }).to_string();
    let csv = "Date,Open,High,Low,Close,Volume\r\n2026-01-09,1,2,1,1.5,100\r\n";
    let (_runtime, server) = start(vec![
        day("20260107", rows("2026-01-07")),
        day("20260108", rows("2026-01-08")),
        Mock::given(query_param("date", "20260109")).respond_with(refused),
        Mock::given(path("/e_api/auth/")).respond_with(logged_in),
        Mock::given(path_regex("^/price/"))
            .respond_with(ResponseTemplate::new(200).set_body_string(broker)),
        Mock::given(query_param("s", "7203.jp"))
            .respond_with(ResponseTemplate::new(200).set_body_string(csv)),
        Mock::given(query_param("s", "130a.jp"))
            .respond_with(ResponseTemplate::new(500).set_body_string(KEYS[2])),
    ]);
    let mut fixture = Fixture::new(3);
    let slots = sources(&fixture, &server.uri());
    let (report, told) = events::told(|| fixture.run(slots));
    let stored = fixture.stored();
    assert_eq!(stored.len(), 5);
    assert_eq!(stored[4], "2026-01-09 7203 public");
    assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 1));
    assert_eq!(report.issues[0].code, code("130A"));
    let day = &report.days[2];
    assert_eq!(day.outcome, DayOutcome::Failed);
    assert_eq!(day.reasons[0].reason, format!("refused (HTTP 400): {refusal}"));
    let states: Vec<_> = report.sources.iter().map(|part| part.state).collect();
    assert_eq!(states, [SourceState::Asked, SourceState::GivenUp, SourceState::Asked]);
    // No key and no secret address is anywhere, though the servers have repeated them.
    for key in KEYS {
        let mut found = Vec::new();
        files_with(fixture.folder.path(), key, &mut found);
        assert!(found.is_empty(), "{found:?}");
        assert!(!format!("{report:?} {told}").contains(key), "{told}");
    }
    for part in [
        "INFO update from=2026-01-07 to=2026-01-09 codes=0",
        "DEBUG fetch_day source=vendor date=2026-01-08",
        "DEBUG fetch_issue source=public code=130A from=2026-01-09 to=2026-01-09",
        "the server failed (HTTP 500): ***",
        "message=the run no longer asks a source source=web_broker",
        "INFO split",
        "message=the run has ended number=1 ending=Incomplete fetched=5",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
