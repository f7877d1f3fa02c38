//! Logins, numbers, bytes and the control endpoint.

use secrecy::SecretString;
use std::io::Read as _;
use std::net::TcpStream;

use serde_json::{Value, json};
use sim::web_broker::{Config, Form, Issue, Server, limits};

use crate::client::{Client, exchange, get, start};

#[test]
fn a_whole_session_in_each_form() {
    for form in [Form::Spec, Form::V4r8, Form::V4r10] {
        let server = start(form);
        let mut client = Client::logged_in(&server, form);
        assert_eq!(client.login["sCLMID"], "CLMAuthLoginAck");
        let mut events = client.events();
        let order = client.placed(&json!({}));
        let trade = json!({ "do": "trade", "issue": "7203", "price": "2850", "quantity": 100 });
        server.control(&trade).unwrap();
        assert_eq!(events.kinds(2), ["1", "12"]);
        assert_eq!(client.status(&order), "10");
        let logout = client.ask("CLMAuthLogoutRequest", &json!({}));
        assert_eq!(logout["sCLMID"], "CLMAuthLogoutAck");
        let late = client.ask("CLMOrderList", &json!({}));
        assert_eq!(late["p_errno"], "2");
    }
}

#[test]
fn a_new_login_ends_the_session_before() {
    let server = start(Form::V4r8);
    let mut first = Client::logged_in(&server, Form::V4r8);
    let mut second = Client::logged_in(&server, Form::V4r8);
    assert_ne!(first.login["sUrlRequest"], second.login["sUrlRequest"]);
    assert_eq!(first.ask("CLMOrderList", &json!({}))["p_errno"], "2");
    assert_eq!(second.ask("CLMOrderList", &json!({}))["p_errno"], "0");
}

#[test]
fn a_wrong_authentication_id_comes_back_in_clear() {
    let server = start(Form::V4r10);
    let mut client = Client::new(&server, Form::V4r10);
    let answer = client.log_in("other-id", "");
    assert_eq!(answer["p_errno"], "-1");
    assert!(answer["p_err"].as_str().unwrap().contains("other-id"), "{answer}");
    assert!(answer.get("sResultCode").is_none() && answer.get("sUrlRequest").is_none());
    let view = server.view();
    assert_eq!(view["requests"][0]["fields"]["sAuthId"], "(wrong)");
}

#[test]
fn a_wrong_login_is_refused() {
    let server = start(Form::Spec);
    let mut client = Client::new(&server, Form::Spec);
    for (user, password) in [("demo", "wrong"), ("other", "demo")] {
        let answer = client.log_in(user, password);
        assert_eq!((&answer["p_errno"], &answer["sResultCode"]), (&json!("0"), &json!("10031")));
        assert!(answer.get("sUrlRequest").is_none());
    }
}

#[test]
fn numbers_must_rise_and_times_be_fresh() {
    let server = start(Form::Spec);
    let mut client = Client::logged_in(&server, Form::Spec);
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
    client.p_no -= 1;
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "6");
    for late in ["2020.01.01-09:00:00.000", "2020-01-01", ""] {
        let answer = client.ask("CLMOrderList", &json!({ "p_sd_date": late }));
        let expected = if late.len() == 23 { "8" } else { "-1" };
        assert_eq!(answer["p_errno"], expected, "{late}");
    }
    assert_eq!(client.ask("CLMOrderList", &json!({ "sJsonOfmt": "1" }))["p_errno"], "-1");
    assert_eq!(client.ask("CLMNothing", &json!({}))["p_errno"], "-1");
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
    assert_eq!(server.view()["counts"]["p_no_refused"], 1);
}

#[test]
fn bytes_are_decoded_once_and_secrets_are_not_shown() {
    let second_password = SecretString::from("canary-2");
    let config = Config { form: Form::V4r8, second_password, ..Config::default() };
    assert!(!format!("{config:?}").contains("canary"));
    let server = Server::start(config).unwrap();
    let mut client = Client::logged_in(&server, Form::V4r8);
    client.placed(&json!({ "sSecondPassword": "canary-2" }));
    client.new_order(&json!({ "sSecondPassword": "canary-1", "sNote": "表ソ%41" }));
    let view = server.view();
    let last = view["requests"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["fields"]["sNote"], "表ソ%41");
    assert_eq!(last["fields"]["sSecondPassword"], "(wrong)");
    assert_eq!(last["left_plain"], "");
    assert_eq!(last["outcome"], "result 11304");
    let login = &view["requests"][0]["fields"];
    assert_eq!((&login["sPassword"], &login["sUserId"]), (&json!("(right)"), &json!("(right)")));
    let text = view.to_string();
    let token = client.target("sUrlRequest").split('/').nth(3).unwrap().to_owned();
    for secret in ["canary-", "\"demo\"", token.as_str()] {
        assert!(!text.contains(secret), "{secret}");
    }
    // Punctuation that an HTTP library leaves alone is taken, and noted.
    let path = client.target("sUrlRequest");
    let target = client.request(&path, "CLMOrderList", &json!({}));
    let target = target.replace("%7B", "{").replace("%3A", ":");
    assert!(get(server.address, &target).unwrap().head.starts_with("HTTP/1.1 200"));
    assert_eq!(server.view()["requests"].as_array().unwrap().last().unwrap()["left_plain"], ":{");
    for query in ["%zz", "%ff%ff", "%7B", "%5B%5D", "%7B%22p_no%22%3A1%7D"] {
        let raw = get(server.address, &format!("{path}?{query}")).unwrap();
        let answer: Value = serde_json::from_slice(&raw.body).unwrap();
        assert_eq!(answer["p_errno"], "-1", "{query}");
    }
}

#[test]
fn what_is_no_request_is_refused_with_a_status() {
    let server = start(Form::Spec);
    let status = |request: &[u8]| {
        let raw = exchange(server.address, request).unwrap();
        raw.head.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(b"GET /other HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(b"GET /e_api_v4r8/event_ws/x/ HTTP/1.1\r\n\r\n"), "400");
    assert_eq!(status(b"POST /e_api_v4r8/auth/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), "405");
    assert_eq!(status(b"nonsense\r\n\r\n"), "400");
    assert_eq!(status(b"POST /control HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n"), "413");
    assert_eq!(status(b"GET /control HTTP/1.1\r\nOrigin: http://a\r\n\r\n"), "400");
    let long = format!("GET /e_api_v4r8/auth/?{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
    assert_eq!(status(long.as_bytes()), "431");
    let many = "A: b\r\n".repeat(101);
    assert_eq!(status(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes()), "431");
}

#[test]
fn the_control_endpoint_takes_commands_over_the_network() {
    let server = start(Form::Spec);
    let post = |body: &str| {
        let length = body.len();
        let text = format!("POST /control HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
        let raw = exchange(server.address, text.as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&raw.body).unwrap();
        (raw.head.contains(" 200 "), answer)
    };
    let (done, answer) = post(
        r#"[{"do":"trade","issue":"7203","price":"2860","quantity":100,"count":3},{"do":"view"}]"#,
    );
    assert!(done);
    assert_eq!((&answer["done"], &answer["prices"][0]["last"]), (&json!(2), &json!("2860")));
    let wrong = [
        "nothing",
        r#"{"do":"dance"}"#,
        r#"{"do":"trade","issue":"9999","price":"1","quantity":1}"#,
        r#"{"do":"trade","issue":"7203","price":"-1","quantity":1}"#,
        r#"{"do":"trade","issue":"7203","price":"1","quantity":0}"#,
        r#"{"do":"trade","issue":"7203","price":"1","quantity":1,"time":"09:00:00"}"#,
        r#"{"do":"view","more":1}"#,
        r#"{"do":"cancel","number":"1"}"#,
        r#"{"do":"fault","name":"errno"}"#,
        r#"{"do":"frame","text":"a"}"#,
    ];
    for body in wrong {
        let (done, answer) = post(body);
        assert!(!done && answer["error"].is_string(), "{body}: {answer}");
    }
    let raw = get(server.address, "/control").unwrap();
    let view: Value = serde_json::from_slice(&raw.body).unwrap();
    assert_eq!(view["counts"]["trades"], 3);
    server.control(&json!({ "do": "forget-requests" })).unwrap();
    assert_eq!(server.view()["counts"]["trades"], 0);
}

#[test]
fn overlapping_questions_are_counted() {
    let server = start(Form::Spec);
    let mut client = Client::logged_in(&server, Form::Spec);
    let slow = json!({ "do": "fault", "name": "delay-answer", "value": 2000, "times": 1 });
    server.control(&slow).unwrap();
    let path = client.target("sUrlRequest");
    let first = client.request(&path, "CLMOrderList", &json!({}));
    let address = server.address;
    let waiting = std::thread::spawn(move || get(address, &first).unwrap());
    while server.view()["counts"]["in_flight"] == 0 {
        std::thread::yield_now();
    }
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
    waiting.join().unwrap();
    // An answer is on its way for a moment after its client has it.
    while server.view()["counts"]["in_flight"] != 0 {
        std::thread::yield_now();
    }
    assert_eq!(server.view()["counts"]["overlaps"], 1);
}

#[test]
fn every_limit_is_told_by_its_name() {
    let server = start(Form::V4r8);
    let refused = |command: Value| server.control(&command).unwrap_err();
    let many = json!({
        "do": "trade", "issue": "7203", "price": "2850", "quantity": 1,
        "count": limits::TRADES_POSTED_MAX + 1,
    });
    assert!(refused(many).contains("10000"));
    let one = json!({ "do": "fault", "name": "errno", "value": 1 });
    let too_many: Vec<Value> = vec![one; limits::FAULTS_MAX + 1];
    assert!(refused(json!(too_many)).contains("FAULTS_MAX"));
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    let late = json!({ "do": "fault", "name": "delay-answer", "value": 600_001 });
    assert!(refused(late).contains("600000"));
    let views = vec![json!({ "do": "forget-requests" }); 10_001];
    assert!(refused(json!(views)).contains("10000"));
    let mut client = Client::logged_in(&server, Form::V4r8);
    let fields: serde_json::Map<String, Value> =
        (0..limits::REQUEST_FIELDS_MAX).map(|number| (number.to_string(), json!(""))).collect();
    let answer = client.ask("CLMOrderList", &Value::Object(fields));
    assert!(answer["p_err"].as_str().unwrap().contains("REQUEST_FIELDS_MAX"));
    // Requests are forgotten, connections closed.
    let mut held: Vec<TcpStream> = Vec::new();
    let mut was_closed = false;
    for _ in 0..=limits::CONNECTIONS_MAX {
        held.push(TcpStream::connect(server.address).unwrap());
    }
    let mut last = held.pop().unwrap();
    was_closed |= matches!(last.read(&mut [0; 1]), Ok(0) | Err(_));
    assert!(was_closed);
    drop(held);
    let issue = Config::default().issues[0].clone();
    let issues = (0..=limits::ISSUES_MAX)
        .map(|number| Issue { symbol: format!("{}", 1_000 + number), ..issue.clone() });
    let config = Config { issues: issues.collect(), ..Config::default() };
    assert!(Server::start(config).unwrap_err().to_string().contains("20 can be traded"));
}
