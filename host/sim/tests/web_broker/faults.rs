//! Every fault.

use serde_json::{Value, json};
use sim::web_broker::{Config, FaultKind, FaultSetting, Form, Server};

use crate::client::{Client, command, get, item, start};

fn fault(server: &Server, name: &str, value: Option<i64>) {
    let one = json!({ "do": "fault", "name": name, "value": value, "times": 1 });
    server.control(&one).unwrap();
}

fn stands(server: &Server, name: &str) {
    server.control(&json!({ "do": "fault", "name": name })).unwrap();
}

fn orders(server: &Server) -> usize {
    server.view()["orders"].as_array().unwrap().len()
}

#[test]
fn answers_go_wrong_and_the_order_is_there_or_not() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let fields = client.new_order_fields(&json!({}));
    let mut held = 0;
    for (name, is_done) in
        [("drop-before", false), ("drop-answer", true), ("half-answer", true), ("garbage", true)]
    {
        fault(&server, name, None);
        let raw = client.raw("CLMKabuNewOrder", &fields);
        match name {
            "half-answer" => assert!(raw.unwrap().is_cut),
            "garbage" => {
                let body = raw.unwrap().body;
                assert!(serde_json::from_slice::<Value>(&body).is_err());
            }
            _ => assert!(raw.is_none(), "{name}"),
        }
        held += usize::from(is_done);
        assert_eq!(orders(&server), held, "{name}");
    }
    for (name, value, is_done) in
        [("errno", -2, false), ("errno-after", -2, true), ("result", 11_246, false)]
    {
        fault(&server, name, Some(value));
        let answer = client.ask("CLMKabuNewOrder", &fields);
        let field = if name == "result" { "sResultCode" } else { "p_errno" };
        assert_eq!(answer[field], value.to_string());
        held += usize::from(is_done);
        assert_eq!(orders(&server), held, "{name}");
    }
    fault(&server, "http-status", Some(503));
    assert!(client.raw("CLMKabuNewOrder", &fields).unwrap().head.starts_with("HTTP/1.1 503"));
    fault(&server, "huge-answer", None);
    assert_eq!(client.raw("CLMOrderList", &json!({})).unwrap().body.len(), 64 * 1024 * 1024);
    assert_eq!(orders(&server), held);
    assert_eq!(server.view()["contents"][0]["count"], held);
}

#[test]
fn a_delayed_request_comes_too_late_for_its_number() {
    let server = start(Form::Spec);
    let mut client = Client::logged_in(&server, Form::Spec);
    let slow = json!({
        "do": "fault", "name": "delay-request", "value": 300, "request": "CLMKabuNewOrder", "times": 1,
    });
    server.control(&slow).unwrap();
    let fields = client.new_order_fields(&json!({}));
    let path = client.target("sUrlRequest");
    let first = client.request(&path, "CLMKabuNewOrder", &fields);
    let address = server.address;
    let waiting = std::thread::spawn(move || get(address, &first).unwrap());
    while server.view()["counts"]["in_flight"] == 0 {
        std::thread::yield_now();
    }
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
    let late = client.decode(&waiting.join().unwrap().body);
    assert_eq!((late["p_errno"].clone(), orders(&server)), (json!("6"), 0));
}

#[test]
fn notices_come_twice_out_of_order_late_and_first() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    let trade = |quantity: u64| {
        let one = json!({ "do": "trade", "issue": "7203", "price": "2850", "quantity": quantity });
        server.control(&one).unwrap();
    };
    fault(&server, "duplicate-notices", None);
    client.placed(&json!({ "sOrderSuryou": "500" }));
    let (one, two) = (events.notice(), events.notice());
    assert_eq!((item(&one, "p_ENO"), item(&two, "p_ALT")), (item(&two, "p_ENO"), "1"));
    fault(&server, "reorder-notices", None);
    trade(100);
    trade(200);
    let shares = |frame: &crate::client::Frame| item(frame, "p_EXSR").to_owned();
    assert_eq!([shares(&events.notice()), shares(&events.notice())], ["200", "100"]);
    stands(&server, "hold-notices");
    trade(100);
    server.control(&json!({ "do": "frame", "text": "p_no\u{2}1\u{1}p_cmd\u{2}XX" })).unwrap();
    let frame = loop {
        let frame = events.next().unwrap();
        if command(&frame) != "KP" {
            break frame;
        }
    };
    assert_eq!(command(&frame), "XX", "the notice is held");
    server.control(&json!({ "do": "release-notices" })).unwrap();
    assert_eq!(shares(&events.notice()), "100");
    stands(&server, "trailing-separator");
    trade(100);
    while !events.next_raw().ends_with('\u{1}') {}
    // The notice is there before the answer is.
    fault(&server, "delay-answer", Some(400));
    let fields = client.new_order_fields(&json!({}));
    let path = client.target("sUrlRequest");
    let target = client.request(&path, "CLMKabuNewOrder", &fields);
    let address = server.address;
    let waiting = std::thread::spawn(move || get(address, &target).unwrap());
    assert_eq!(events.kinds(1), ["1"]);
    assert!(!waiting.is_finished());
    waiting.join().unwrap();
    fault(&server, "notices-first", None);
    client.placed(&json!({}));
    assert_eq!(events.kinds(1), ["1"]);
}

#[test]
fn changes_wait_and_may_fail() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    let order = client.placed(&json!({ "sOrderSuryou": "300" }));
    stands(&server, "hold-changes");
    assert_eq!(client.correct(&order, &json!({ "sOrderSuryou": "200" }))["sResultCode"], "0");
    assert_eq!(client.status(&order), "3");
    assert_eq!(client.cancel(&order)["sResultCode"], "13291");
    server.control(&json!({ "do": "release-changes", "refuse": true })).unwrap();
    assert_eq!(client.status(&order), "5");
    stands(&server, "hold-changes");
    assert_eq!(client.cancel(&order)["sResultCode"], "0");
    assert_eq!(client.status(&order), "6");
    // It is filled before the cancel gets there.
    let trade = json!({ "do": "trade", "issue": "7203", "price": "2850", "quantity": 100 });
    server.control(&trade).unwrap();
    server.control(&json!({ "do": "release-changes" })).unwrap();
    assert_eq!(events.kinds(6), ["1", "2", "8", "3", "12", "11"]);
    assert_eq!(client.status(&order), "7");
    let row = client.list().remove(0);
    assert_eq!(row["sOrderYakuzyouSuryo"], "100");
}

#[test]
fn the_exchange_refuses_what_the_broker_has_taken() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    fault(&server, "refuse-later", None);
    let order = client.placed(&json!({}));
    assert_eq!(client.status(&order), "2");
    let (taken, refused) = (events.notice(), events.notice());
    assert_eq!((item(&taken, "p_NT"), item(&refused, "p_NT")), ("1", "7"));
    assert_eq!((item(&refused, "p_ODST"), item(&refused, "p_CREPSR")), ("2", "100"));
    let next = client.placed(&json!({}));
    assert_eq!(client.status(&next), "1");
}

#[test]
fn the_venue_closes_and_the_service_goes_away() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let order = client.placed(&json!({}));
    let mut events = client.events();
    stands(&server, "venue-closed");
    let phase = loop {
        let frame = events.next().unwrap();
        if command(&frame) == "US" && item(&frame, "p_US") != "120" {
            break item(&frame, "p_US").to_owned();
        }
    };
    assert_eq!(phase, "900");
    assert_eq!(client.new_order(&json!({}))["sResultCode"], "11102");
    assert_eq!(client.correct(&order, &json!({}))["sResultCode"], "12122");
    assert_eq!(client.cancel(&order)["sResultCode"], "13122");
    stands(&server, "offline");
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "9");
    assert_eq!(Client::new(&server, Form::V4r8).log_in("demo", "demo")["p_errno"], "9");
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    assert_eq!(client.cancel(&order)["sResultCode"], "0");
}

#[test]
fn logins_go_wrong() {
    let faults = vec!["refuse-login=10089".parse::<FaultSetting>().unwrap()];
    let server = Server::start(Config { faults, form: Form::V4r8, ..Config::default() }).unwrap();
    let mut client = Client::new(&server, Form::V4r8);
    assert_eq!(client.log_in("demo", "demo")["sResultCode"], "10089");
    server.control(&json!({ "do": "clear-faults", "name": "refuse-login" })).unwrap();
    stands(&server, "unread-documents");
    let answer = client.log_in("demo", "demo");
    assert_eq!(
        (&answer["sUrlRequest"], &answer["sKinsyouhouMidokuFlg"]),
        (&json!(""), &json!("1"))
    );
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    stands(&server, "production-host");
    let answer = client.log_in("demo", "demo");
    assert!(answer["sUrlRequest"].as_str().unwrap().starts_with("https://kabuka."));
    assert!(FaultSetting::new(FaultKind::Errno, None, None, None).is_err());
}

#[test]
fn answers_are_packed_where_the_client_takes_that() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    stands(&server, "gzip");
    let path = client.target("sUrlRequest");
    let target = client.request(&path, "CLMOrderList", &json!({}));
    let text = format!("GET {target} HTTP/1.1\r\nAccept-Encoding: br, gzip\r\n\r\n");
    let raw = crate::client::exchange(server.address, text.as_bytes()).unwrap();
    assert!(raw.head.contains("Content-Encoding: gzip"));
    assert!(raw.body.starts_with(&[0x1f, 0x8b]));
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
}
