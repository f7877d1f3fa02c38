//! Faults of calls, and the gateway's own outages.

use std::net::TcpStream;

use serde_json::{Value, json};
use sim::local_broker::limits::DELAY_MAX;
use sim::local_broker::{Config, Dialect, Server};

use crate::client::{Client, ask, start, start_with, wait};

fn with_faults(dialect: Dialect, faults: &[&str]) -> (Server, Client) {
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let config = Config { dialect, faults, has_rate_limit: false, ..Config::default() };
    let server = start_with(config);
    let client = Client::logged_in(&server);
    (server, client)
}

#[test]
fn the_next_calls_are_refused_with_any_code() {
    for (dialect, dead, many) in
        [(Dialect::Spec, 4_001_005, 4_002_006), (Dialect::Kabusapi, 4_001_009, 4_001_006)]
    {
        let (server, client) = with_faults(
            dialect,
            &["unauthorized@orders*1", "too-many@positions*2", "bad-request@wallet/cash=4001001*1"],
        );
        assert_eq!(client.get("/orders").refusal(), (401, dead));
        assert_eq!(client.get("/orders").status, 200);
        assert_eq!(client.get("/positions").refusal(), (429, many));
        assert_eq!(client.get("/positions").refusal(), (429, many));
        assert_eq!(client.get("/positions").status, 200);
        assert_eq!(client.get("/wallet/cash").refusal(), (400, 4_001_001));
        server.fault("unauthorized=4001017*1").unwrap();
        assert_eq!(client.get("/wallet/cash").refusal(), (401, 4_001_017));
        assert_eq!(server.view()["faults"], json!([]));
        assert_eq!(server.view()["refusals"]["401/4001017"], 1);
    }
}

#[test]
fn answers_can_be_pages_halves_late_or_missing() {
    let (server, client) = with_faults(Dialect::Spec, &["server-error@orders=503*1"]);
    let told = client.get("/orders");
    assert!(told.status == 503 && told.body.starts_with("<html>"), "{told:?}");
    server.fault("garbage*1").unwrap();
    let told = client.get("/orders");
    assert!(told.status == 200 && told.body.starts_with("<html>"), "{told:?}");
    server.fault("empty-answer*1").unwrap();
    assert_eq!((client.get("/orders").status, client.get("/orders").body.is_empty()), (200, false));
    server.fault("half-answer*1").unwrap();
    assert!(client.call("GET", "/orders", None).is_none());
    server.fault("delay-answer=50*1").unwrap();
    assert_eq!(client.get("/orders").status, 200);
    // Done and not told, or not done.
    let body = json!({ "Symbols": [{ "Symbol": "7203", "Exchange": 1 }] });
    server.fault("drop-before*1").unwrap();
    assert!(client.call("PUT", "/register", Some(&body)).is_none());
    assert_eq!(server.view()["registered"], json!([]));
    server.fault("drop-answer*1").unwrap();
    assert!(client.call("PUT", "/register", Some(&body)).is_none());
    assert_eq!(server.view()["registered"][0]["Symbol"], "7203");
}

#[test]
fn registrations_can_be_refused_or_told_wrongly() {
    let (server, client) = with_faults(Dialect::Kabusapi, &["register-full*2"]);
    assert_eq!(client.put("/register", &["7203"]).refusal(), (400, 4_002_006));
    assert_eq!(client.get("/board/7203@1").refusal(), (400, 4_002_006));
    server.fault("missing-entries=1*1").unwrap();
    assert_eq!(Client::list(&client.put("/register", &["7203", "7261"])), ["7203"]);
    assert_eq!(Client::list(&client.put("/register", &[])), ["7203", "7261"]);
}

#[test]
fn connections_are_refused_and_taken_again() {
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    let _push = client.push();
    wait(&server, "a client of the push", |view| view["push_open"] == true);
    server.control(&json!({ "do": "refuse" })).unwrap();
    assert!(TcpStream::connect(server.address).is_err());
    // What is open stays: the token lives, and so does the push.
    assert_eq!(server.view()["push_open"], true);
    server.control(&json!({ "do": "accept" })).unwrap();
    assert_eq!(client.get("/wallet/cash").status, 200);
    // For a time, asked over the network.
    let told = ask(server.address, "POST", "/control/refuse", None, Some("{\"ms\":200}")).unwrap();
    assert_eq!(told.status, 200);
    let mut tries = 0;
    while client.call("GET", "/wallet/cash", None).is_none() {
        tries += 1;
        assert!(tries < 3_000, "it never came back");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let too_long = u64::try_from(DELAY_MAX.as_millis()).unwrap() + 1;
    assert!(server.control(&json!({ "do": "refuse", "ms": too_long })).is_err());
}

#[test]
fn an_application_that_is_down_comes_back_empty() {
    let server = start(Dialect::Kabusapi);
    let mut client = Client::logged_in(&server);
    client.put("/register", &["7203"]);
    let told = ask(server.address, "POST", "/control/restart", None, Some("{\"down_ms\":100}"));
    assert_eq!(told.unwrap().json()["done"], 1);
    let mut tries = 0;
    let told = loop {
        if let Some(told) = client.call("GET", "/wallet/cash", None) {
            break told;
        }
        tries += 1;
        assert!(tries < 3_000, "it never came back");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(told.refusal(), (401, 4_001_009));
    client.log_in("demo");
    assert!(Client::list(&client.put("/register", &[])).is_empty());
}

#[test]
fn after_the_forced_logout_the_push_goes_on() {
    for (dialect, refusal) in
        [(Dialect::Spec, (401, 4_001_001)), (Dialect::Kabusapi, (401, 4_001_007))]
    {
        let server = start(dialect);
        let mut client = Client::logged_in(&server);
        client.put("/register", &["7203"]);
        let mut push = client.push();
        wait(&server, "a client of the push", |view| view["push_open"] == true);
        server.control(&json!({ "do": "log-out" })).unwrap();
        assert_eq!(client.get("/wallet/cash").refusal(), refusal);
        assert_eq!(client.log_in("demo").refusal(), refusal);
        let trade = json!({ "do": "trade", "symbol": "7203", "price": "2850", "quantity": 100 });
        server.control(&trade).unwrap();
        assert_eq!(push.frame()["TradingVolume"], 100.0);
        server.control(&json!({ "do": "login-open" })).unwrap();
        // The token before is dead.
        assert_eq!(client.get("/wallet/cash").status, 401);
        assert_eq!(client.log_in("demo").status, 200);
        assert_eq!(client.get("/wallet/cash").status, 200);
    }
}

#[test]
fn the_push_can_be_refused() {
    let (server, client) = with_faults(Dialect::Spec, &["server-error@websocket=503*1"]);
    let upgrade = "GET /brokerapi/websocket HTTP/1.1\r\nConnection: Upgrade, close\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    let told = crate::client::exchange(server.address, upgrade.as_bytes()).unwrap();
    assert!(told.starts_with(b"HTTP/1.1 503"));
    let _push = client.push();
    let view: Value = wait(&server, "a client of the push", |view| view["push_open"] == true);
    assert_eq!(view["calls"]["websocket"], 2);
}
