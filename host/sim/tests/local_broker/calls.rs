//! Tokens, refusals, limits, the account.

use serde_json::{Value, json};
use sim::local_broker::limits::{
    ACCOUNT_ROWS_MAX, BODY_BYTES_MAX, COMMANDS_MAX, CONNECTIONS_MAX, CONTROL_BODY_BYTES_MAX,
    DEAD_TOKENS_KEPT_MAX, INFORMATION_CALLS_PER_SECOND, RATE_SLACK_CALLS, REQUESTS_KEPT_MAX,
};
use sim::local_broker::{Config, Dialect, Listed, Server};

use crate::client::{Client, ask, exchange, start, start_with};

/// Status and code of each refusal, as the specification and as the vendor have them.
#[test]
fn refusals_have_the_codes_of_their_dialect() {
    for (dialect, none, dead, wrong, symbol) in [
        (Dialect::Spec, (401, 4_001_001), (401, 4_001_005), (401, 4_001_003), (400, 4_001_018)),
        (Dialect::Kabusapi, (401, 4_001_009), (401, 4_001_009), (401, 4_001_013), (400, 4_002_001)),
    ] {
        let server = start(dialect);
        let mut client = Client::new(&server);
        assert_eq!(client.get("/wallet/cash").refusal(), none, "{dialect}");
        assert_eq!(client.log_in("wrong").refusal(), wrong, "{dialect}");
        client.log_in("demo");
        let first = client.key.clone();
        assert!(first.len() == 32 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(client.get("/wallet/cash").status, 200);
        assert_eq!(client.get("/board/nothing@1").refusal(), symbol, "{dialect}");
        // A new token ends the one before.
        client.log_in("demo");
        let second = std::mem::replace(&mut client.key, first);
        assert_eq!(client.get("/wallet/cash").refusal(), dead, "{dialect}");
        client.key = second;
        assert_eq!(client.get("/wallet/cash").status, 200);
        assert_eq!(server.view()["counts"]["logins"], 2);
        assert!(!server.view().to_string().contains(&client.key), "a token is shown");
    }
}

#[test]
fn wrong_methods_paths_and_bodies_are_refused() {
    for dialect in [Dialect::Spec, Dialect::Kabusapi] {
        let server = start(dialect);
        let client = Client::logged_in(&server);
        let told = |method, path, body: Option<Value>| {
            client.call(method, path, body.as_ref()).unwrap().refusal()
        };
        for (method, path) in [("POST", "/register"), ("GET", "/token"), ("PUT", "/wallet/cash")] {
            assert_eq!(told(method, path, Some(json!({}))), (405, 4_001_014), "{path}");
        }
        let unknown = if dialect == Dialect::Spec { 404 } else { 400 };
        for path in ["/nothing", "/board", "/board/7203", "/ranking"] {
            assert_eq!(told("GET", path, None), (unknown, 4_001_012), "{path}");
        }
        assert_eq!(told("PUT", "/register", Some(json!({ "Symbol": 1 }))), (400, 4_001_018));
        assert_eq!(told("PUT", "/unregister", Some(json!([]))), (400, 4_001_011));
        assert_eq!(told("GET", "/orders?side=3", None), (400, 4_001_010));
        assert_eq!(told("GET", "/orders?side=%zz", None), (400, 4_001_010));
    }
}

#[test]
fn bodies_have_a_kind_and_a_length() {
    let server = start(Dialect::Spec);
    let plain = b"POST /token HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    let told = String::from_utf8(exchange(server.address, plain).unwrap()).unwrap();
    assert!(told.starts_with("HTTP/1.1 415") && told.contains("4001016"), "{told}");
    let long = format!(
        "POST /token HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        BODY_BYTES_MAX + 1
    );
    let told = String::from_utf8(exchange(server.address, long.as_bytes()).unwrap()).unwrap();
    assert!(told.starts_with("HTTP/1.1 413") && told.contains("4001015"), "{told}");
}

/// No client may ever come here; a test of one looks at these numbers.
#[test]
fn calls_about_orders_are_counted_and_refused() {
    for dialect in [Dialect::Spec, Dialect::Kabusapi] {
        let server = start(dialect);
        let client = Client::logged_in(&server);
        let view = server.view();
        assert!(
            view["calls"].get("sendorder").is_none() && view["calls"].get("cancelorder").is_none()
        );
        for (method, path) in
            [("POST", "/sendorder"), ("POST", "/sendorder/future"), ("PUT", "/cancelorder")]
        {
            let told = client.call(method, path, Some(&json!({ "Symbol": "7203" }))).unwrap();
            assert_eq!(told.refusal(), (403, 4_001_008), "{path}");
        }
        // Also without a token, and by a wrong method.
        assert_eq!(Client::new(&server).get("/sendorder").status, 405);
        let calls = &server.view()["calls"];
        assert_eq!((&calls["sendorder"], &calls["cancelorder"]), (&json!(3), &json!(1)));
    }
}

#[test]
fn a_burst_beyond_the_class_is_refused() {
    for (dialect, refusal) in
        [(Dialect::Spec, (429, 4_002_006)), (Dialect::Kabusapi, (429, 4_001_006))]
    {
        let server = start_with(Config { dialect, ..Config::default() });
        let client = Client::logged_in(&server);
        // More than the class has for many seconds, so that how long they take does not matter.
        let most = INFORMATION_CALLS_PER_SECOND * 10 + RATE_SLACK_CALLS;
        let refused =
            (0..most).map(|_| client.get("/apisoftlimit")).find(|told| told.status != 200);
        assert_eq!(refused.map(|told| told.refusal()), Some(refusal), "{dialect}");
        // The other class has its own.
        assert_eq!(client.get("/wallet/cash").status, 200);
    }
}

#[test]
fn orders_and_positions_are_filtered() {
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    let rows = |path: &str| client.get(path).json().as_array().unwrap().clone();
    let all = rows("/orders");
    let count = |name: &str, value: Value| all.iter().filter(|row| row[name] == value).count();
    for state in 1..=5 {
        assert!(count("State", json!(state)) > 0, "no order in state {state}");
        assert_eq!(rows(&format!("/orders?state={state}")).len(), count("State", json!(state)));
    }
    for exchange in [1, 9, 27] {
        assert!(count("Exchange", json!(exchange)) > 0, "no order on exchange {exchange}");
    }
    assert_eq!(rows("/orders?side=1").len(), count("Side", json!("1")));
    assert_eq!(
        rows("/orders?product=2").len(),
        count("CashMargin", json!(2)) + count("CashMargin", json!(3))
    );
    assert_eq!(
        rows("/orders?product=1&product2=x").len() + rows("/orders?product=2").len(),
        all.len()
    );
    assert_eq!(rows("/orders?cashmargin=3").len(), 1);
    assert!(rows("/orders?product=3").is_empty() && rows("/orders?symbol=9999").is_empty());
    let id = all[2]["ID"].as_str().unwrap().to_lowercase();
    assert_eq!(rows(&format!("/orders?id={id}")), [all[2].clone()]);
    // The last change counts, details among them.
    let late = rows("/orders?updtime=20260511090015");
    assert!(!late.is_empty() && late.len() < all.len());
    assert!(rows("/orders?updtime=20990101000000").is_empty());
    assert!(rows("/orders?details=false").iter().all(|row| row.get("Details").is_none()));

    let all = rows("/positions");
    assert_eq!(rows("/positions?side=1").len() + rows("/positions?side=2").len(), all.len());
    assert_eq!(rows("/positions?product=1").len(), 1);
    assert!(all.iter().all(|row| !row["CurrentPrice"].is_null()));
    for row in rows("/positions?addinfo=false") {
        for name in ["CurrentPrice", "Valuation", "ProfitLoss", "ProfitLossRate"] {
            assert!(row[name].is_null() && row.get(name).is_some(), "{name}");
        }
    }
}

#[test]
fn the_account_can_be_set() {
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    let account = json!({
        "do": "account", "cash": "1234.5678", "margin": "0", "orders": [], "positions": [{ "Side": "2" }]
    });
    server.control(&account).unwrap();
    assert!(client.get("/wallet/cash").body.contains("\"StockAccountWallet\":1234.5678,"));
    assert!(client.get("/wallet/margin").body.contains("\"MarginAccountWallet\":0.0,"));
    assert_eq!(client.get("/orders").json(), json!([]));
    assert_eq!(client.get("/positions").json(), json!([{ "Side": "2" }]));
    let many = json!({ "do": "account", "orders": vec![json!({}); ACCOUNT_ROWS_MAX + 1] });
    assert!(server.control(&many).unwrap_err().contains("ACCOUNT_ROWS_MAX"));
    for (wrong, why) in [
        (json!({ "cash": "-0.0001" }), "must be 0 or above"),
        (json!({ "cash": "7", "margin": "-5" }), "must be 0 or above"),
        (json!({ "cash": "7", "orders": [{}, 1] }), "row 2 of orders is not a JSON object"),
        (json!({ "cash": "7", "positions": [[]] }), "row 1 of positions is not a JSON object"),
    ] {
        let mut account = wrong;
        account["do"] = json!("account");
        assert!(server.control(&account).unwrap_err().contains(why), "{account}");
    }
    assert!(client.get("/wallet/cash").body.contains("1234.5678"), "nothing of a wrong one is set");
}

#[test]
fn control_is_over_http_too() {
    let server = start(Dialect::Kabusapi);
    let post =
        |path: &str, body: &str| ask(server.address, "POST", path, None, Some(body)).unwrap();
    let told = post("/control/trade", "{\"symbol\":\"7203\",\"price\":\"2850\",\"quantity\":300}");
    assert_eq!(told.json(), json!({ "done": 1 }));
    assert_eq!(post("/control/log-out", "").status, 200);
    let state = ask(server.address, "GET", "/control/state", None, None).unwrap().json();
    assert_eq!(
        (&state["symbols"]["7203"]["volume"], &state["logged_out"]),
        (&json!(300), &json!(true))
    );
    assert_eq!(state["counts"]["requests"], 0);
    assert!(
        post("/control", "[{\"do\":\"login-open\"},{\"do\":\"nothing\"}]")
            .body
            .contains("command 2")
    );
    assert_eq!(server.view()["logged_out"], false);
    assert_eq!(post("/control", "{").status, 400);
    let many = vec![json!({ "do": "accept" }); COMMANDS_MAX + 1];
    assert!(server.control(&json!(many)).unwrap_err().contains("too many"));
    let long =
        format!("POST /control HTTP/1.1\r\nContent-Length: {}\r\n\r\n", CONTROL_BODY_BYTES_MAX + 1);
    let told = exchange(server.address, long.as_bytes()).unwrap();
    assert!(told.starts_with(b"HTTP/1.1 413"));
}

#[test]
fn dead_tokens_are_remembered_for_a_while() {
    let server = start(Dialect::Spec);
    let mut client = Client::logged_in(&server);
    let first = client.key.clone();
    let second = {
        client.log_in("demo");
        client.key.clone()
    };
    for _ in 0..DEAD_TOKENS_KEPT_MAX {
        client.log_in("demo");
    }
    client.key = first;
    assert_eq!(client.get("/wallet/cash").refusal(), (401, 4_001_001));
    client.key = second;
    assert_eq!(client.get("/wallet/cash").refusal(), (401, 4_001_005));
}

#[test]
fn so_many_connections_are_served() {
    let server = start(Dialect::Spec);
    let connect = || {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        // Whatever has an answer is served.
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\n\r\n").ok();
        let is_served = std::io::Read::read(&mut stream, &mut [0; 64]).is_ok_and(|count| count > 0);
        (stream, is_served)
    };
    let served: Vec<_> = (0..CONNECTIONS_MAX).map(|_| connect()).collect();
    assert!(served.iter().all(|(_, is_served)| *is_served));
    assert!(!connect().1);
}

#[test]
fn what_makes_no_sense_does_not_start() {
    let wrong = |config: Config| Server::start(config).unwrap_err().to_string();
    let server = start(Dialect::Spec);
    let taken = Config { port: server.address.port(), ..Config::default() };
    assert!(wrong(taken).contains("cannot listen"));
    let mut issue = Config::default().issues[0].clone();
    issue.symbol = "72 03".to_owned();
    assert!(wrong(Config { issues: vec![issue], ..Config::default() }).contains("72 03"));
    let foreign = vec![Listed { symbol: "7203".to_owned(), exchange: 2 }];
    assert!(wrong(Config { registered: foreign, ..Config::default() }).contains("7203@2"));
}

#[test]
fn so_many_requests_are_kept() {
    let server = start(Dialect::Spec);
    let one = "GET / HTTP/1.1\r\n\r\n";
    let last = "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n";
    exchange(server.address, (one.repeat(REQUESTS_KEPT_MAX) + last).as_bytes()).unwrap();
    let view = server.view();
    assert_eq!(view["counts"]["requests"], REQUESTS_KEPT_MAX + 1);
    let requests = view["requests"].as_array().unwrap();
    assert_eq!(requests.len(), REQUESTS_KEPT_MAX);
    assert_eq!(requests.last().unwrap()["path"], "/last");
}
