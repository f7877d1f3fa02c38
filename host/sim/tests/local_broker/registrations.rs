//! The list of registered symbols.

use serde_json::json;
use sim::local_broker::limits::{ISSUES_MAX, REGISTERED_MAX};
use sim::local_broker::{Config, Dialect};

use crate::client::{Client, start, start_with};

fn codes(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{}", 1_301 + number)).collect()
}

#[test]
fn fifty_symbols_and_no_more() {
    for (dialect, full) in
        [(Dialect::Spec, (400, 4_002_001)), (Dialect::Kabusapi, (400, 4_002_006))]
    {
        let server = start(dialect);
        let client = Client::logged_in(&server);
        let codes = codes(REGISTERED_MAX + 1);
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        // Too many at once: none of them.
        assert_eq!(client.put("/register", &codes).refusal(), full);
        assert!(Client::list(&client.put("/register", &[])).is_empty());
        let told = client.put("/register", &codes[..REGISTERED_MAX]);
        assert_eq!(Client::list(&told), codes[..REGISTERED_MAX]);
        // What is registered already is no new entry.
        assert_eq!(client.put("/register", &codes[..3]).status, 200);
        assert_eq!(client.put("/register", &codes[REGISTERED_MAX..]).refusal(), full);
        // A board read takes a slot too.
        let board = format!("/board/{}@1", codes[REGISTERED_MAX]);
        assert_eq!(client.get(&board).refusal(), full);
        assert_eq!(client.get(&format!("/board/{}@1", codes[0])).status, 200);
        client.put("/unregister", &codes[..1]);
        assert_eq!(client.get(&board).status, 200);
        let told = client.call("PUT", "/unregister/all", None).unwrap();
        assert!(Client::list(&told).is_empty());
    }
}

#[test]
fn a_board_read_is_pushed_as_the_dialect_says() {
    for (dialect, is_pushed) in [(Dialect::Spec, true), (Dialect::Kabusapi, false)] {
        let server = start(dialect);
        let client = Client::logged_in(&server);
        let mut push = client.push();
        client.get("/board/7203@1");
        assert_eq!(Client::list(&client.put("/register", &[])), ["7203"]);
        let trade = json!({ "do": "trade", "symbol": "7203", "price": "2850", "quantity": 100 });
        server.control(&trade).unwrap();
        if !is_pushed {
            assert_eq!(server.view()["counts"]["frames"], 0);
            client.put("/register", &["7203"]);
            server.control(&trade).unwrap();
        }
        let volume = if is_pushed { 100.0 } else { 200.0 };
        assert_eq!(push.frame()["TradingVolume"], volume, "{dialect}");
    }
}

#[test]
fn foreign_entries_count_and_stay() {
    let registered = vec!["9984".parse().unwrap(), "6758@3".parse().unwrap()];
    let server = start_with(Config { registered, ..Config::default() });
    let client = Client::logged_in(&server);
    assert_eq!(Client::list(&client.put("/register", &["7203"])), ["9984", "6758", "7203"]);
    // Somebody else, later.
    server.control(&json!({ "do": "unregister", "symbols": ["9984"] })).unwrap();
    server.control(&json!({ "do": "register", "symbols": ["4502@1"] })).unwrap();
    assert_eq!(Client::list(&client.put("/register", &[])), ["6758", "7203", "4502"]);
    assert!("9984@x".parse::<sim::local_broker::Listed>().is_err());
}

#[test]
fn unknown_and_missing_symbols_are_told() {
    let server = start(Dialect::Kabusapi);
    let client = Client::logged_in(&server);
    assert_eq!(client.put("/register", &["x"]).refusal(), (400, 4_001_018));
    assert_eq!(client.put("/register", &["7203", "x"]).refusal(), (400, 4_001_019));
    assert_eq!(Client::list(&client.put("/register", &[])), ["7203"]);
    assert_eq!(client.put("/unregister", &["7203", "7261"]).refusal(), (400, 4_001_020));
    assert_eq!(client.put("/unregister", &["7203"]).refusal(), (400, 4_001_021));
    // The specification has no such refusal.
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    assert!(Client::list(&client.put("/unregister", &["7203"])).is_empty());
}

#[test]
fn a_restart_forgets_the_token_and_the_list() {
    let server = start(Dialect::Spec);
    let mut client = Client::logged_in(&server);
    client.put("/register", &["7203"]);
    let mut push = client.push();
    server.control(&json!({ "do": "restart" })).unwrap();
    assert!(push.next().is_none());
    assert_eq!(client.get("/wallet/cash").refusal(), (401, 4_001_005));
    client.log_in("demo");
    assert!(Client::list(&client.put("/register", &[])).is_empty());
    assert_eq!(server.view()["counts"]["restarts"], 1);
}

#[test]
fn there_are_so_many_issues_only() {
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    let known = Config::default().issues.len();
    for code in codes(ISSUES_MAX - known) {
        assert_eq!(client.get(&format!("/symbol/{code}@1")).status, 200);
    }
    assert_eq!(client.get("/symbol/9999@1").refusal(), (400, 4_001_018));
    assert_eq!(client.get("/symbol/1301@1").status, 200);
}
