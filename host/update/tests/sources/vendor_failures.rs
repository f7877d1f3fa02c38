//! What can go wrong between us and the vendor, and that the key never shows.

use std::time::Duration;

use http_client::{CancellationToken, HttpError, Network, RequestPolicy, checked_address};
use serde_json::json;
use update::source::{DailySource, Reach, SourceError, VendorSource};
use wiremock::matchers::{any, method};
use wiremock::{Mock, ResponseTemplate};

use crate::servers::{Act, FAST, KEY, RawServer, Server, code, date, nobody, policy};
use crate::vendor::{page, quiet, row, vendor};

const DAY: &str = "2026-01-05";

fn failure(source: &mut VendorSource) -> SourceError {
    let error = source.day(date(DAY)).unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(KEY) && !text.contains("127.0.0.1"), "{text}");
    }
    error
}

fn status(status: u16, message: &str) -> Mock {
    let answer = ResponseTemplate::new(status).set_body_json(json!({ "message": message }));
    Mock::given(any()).respond_with(answer)
}

#[test]
fn refusals_are_shown_in_the_vendors_words_and_not_repeated() {
    for (code, message, reach) in [
        (400, "This date cannot be had.", Reach::Dates),
        (401, "Unauthorized", Reach::Source),
        (403, "This API is not available on your subscription.", Reach::Source),
        (404, "Not Found", Reach::Dates),
    ] {
        let server = Server::start(vec![status(code, message)]);
        let error = failure(&mut vendor(&server.address()));
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.to_string().contains(&format!("HTTP {code}")), "{error}");
        assert_eq!(error.reach(), reach);
        assert_eq!(server.asked().len(), 1);
    }
}

/// 403 stands for three things, and each has its own advice.
#[test]
fn a_refusal_says_whether_it_is_of_the_key_the_plan_or_the_path() {
    for (code, message, which) in [
        (
            403,
            "The incoming api key is invalid or expired.",
            "the vendor does not accept the key, `kumiki key list`",
        ),
        (401, "Unauthorized", "the vendor does not accept the key, `kumiki key list`"),
        (
            403,
            "This API is not available on your subscription.",
            "the key's plan does not include equities/bars/daily",
        ),
        (403, "Missing Authentication Token", "the key, its plan or the path equities/bars/daily"),
        (403, "", "the key, its plan or the path equities/bars/daily"),
    ] {
        let server = Server::start(vec![status(code, message)]);
        let error = failure(&mut vendor(&server.address())).to_string();
        assert!(error.starts_with(&format!("refused (HTTP {code}): {which}")), "{error}");
        assert!(
            error.ends_with(if message.is_empty() { "no message" } else { message }),
            "{error}"
        );
    }
}

#[test]
fn a_pause_after_too_many_requests_is_a_minute_where_the_vendor_tells_none() {
    let policy = RequestPolicy::default();
    assert_eq!(policy.back_off_too_many, Duration::from_secs(60));
    assert!(policy.back_off_too_many * 2 <= policy.retry_after_max);
}

#[test]
fn the_dates_of_a_subscription_are_read_from_the_refusal() {
    for (words, read) in [
        ("Your subscription covers the following dates: 2023-11-21 ~ 2025-11-21. Upgrade.", true),
        ("Your subscription covers the following dates: 2025-11-21 ~ 2023-11-21.", false),
        ("Your subscription covers the following dates: 2025-11-21.", false),
        ("From 2023-11-21 to 2025-11-21.", false),
    ] {
        let server = Server::start(vec![status(400, words)]);
        let error = failure(&mut vendor(&server.address()));
        assert_eq!(error.reach(), Reach::Dates);
        let first_and_last = (date("2023-11-21"), date("2025-11-21"));
        let covered = SourceError::NotCovered { first: first_and_last.0, last: first_and_last.1 };
        assert_eq!(error == covered, read, "{words}: {error}");
    }
}

#[test]
fn a_key_that_comes_back_is_hidden() {
    for answer in [
        ResponseTemplate::new(401).set_body_json(json!({ "message": format!("bad key {KEY}!") })),
        ResponseTemplate::new(500).set_body_string(format!("{KEY}{KEY}")),
        ResponseTemplate::new(418).set_body_string(format!("<p>{KEY}</p>")),
        ResponseTemplate::new(200).set_body_json(json!({ "data": KEY })),
        ResponseTemplate::new(200).set_body_json(json!({ "data": [
            { "Date": KEY, "Code": KEY, "O": null, "H": null, "L": null, "C": null, "Vo": null,
              "Va": null, "AdjFactor": null }] })),
        ResponseTemplate::new(302).insert_header("location", format!("http://other/{KEY}")),
    ] {
        let server = Server::start(vec![Mock::given(any()).respond_with(answer)]);
        let error = failure(&mut vendor(&server.address()));
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_server_that_fails_for_the_moment_is_asked_again() {
    for code in [500, 502, 503, 408] {
        let server = Server::start(vec![
            status(code, "later").up_to_n_times(2).with_priority(1),
            Mock::given(any()).respond_with(page(&[row(DAY, "72030", 3_000.0)], None)),
        ]);
        assert_eq!(vendor(&server.address()).day(date(DAY)).unwrap().rows.len(), 1);
        assert_eq!(server.asked().len(), 3);
    }
    let server = Server::start(vec![status(503, "on holiday")]);
    let error = failure(&mut vendor(&server.address()));
    assert_eq!(error.to_string(), "the server failed (HTTP 503): on holiday (3 tries)");
    assert_eq!((error.reach(), server.asked().len()), (Reach::Request, 3));
}

#[test]
fn too_many_requests_are_followed_by_a_pause() {
    let busy = |retry_after: &str| {
        let answer = ResponseTemplate::new(429).set_body_json(json!({ "message": "slow down" }));
        let answer = match retry_after {
            "" => answer,
            text => answer.insert_header("retry-after", text),
        };
        Mock::given(any()).respond_with(answer)
    };
    for retry_after in ["0", "", "Sun, 06 Nov 1994 08:49:37 GMT", "nonsense"] {
        let server = Server::start(vec![
            busy(retry_after).up_to_n_times(4).with_priority(1),
            Mock::given(any()).respond_with(page(&[row(DAY, "72030", 3_000.0)], None)),
        ]);
        assert_eq!(vendor(&server.address()).day(date(DAY)).unwrap().rows.len(), 1);
        assert_eq!(server.asked().len(), 5);
    }
    let server = Server::start(vec![busy("")]);
    let error = failure(&mut vendor(&server.address()));
    assert_eq!(error.to_string(), "too many requests (HTTP 429): slow down (5 tries)");
    for retry_after in ["6", "Fri, 01 Jan 2100 00:00:00 GMT"] {
        let server = Server::start(vec![busy(retry_after)]);
        let error = failure(&mut vendor(&server.address()));
        assert!(
            matches!(error, SourceError::Http(HttpError::TooManyRequests(pause)) if pause.as_secs() >= 6)
        );
        assert_eq!((error.reach(), server.asked().len()), (Reach::Source, 1));
    }
}

#[test]
fn wrong_answers_are_refused_with_the_place() {
    let changed = |name: &str, value: serde_json::Value| {
        let mut wrong = row(DAY, "72030", 3_000.0);
        wrong[name] = value;
        json!({ "data": [row(DAY, "13010", 100.0), wrong] })
    };
    let without = |name: &str| {
        let mut wrong = row(DAY, "72030", 3_000.0);
        wrong.as_object_mut().unwrap().remove(name);
        json!({ "data": [wrong] })
    };
    for (body, part) in [
        (changed("C", json!("3000")), "invalid type: string"),
        (changed("Vo", json!([1])), "(a list or an object)"),
        (changed("Code", json!(72030)), "invalid type: integer"),
        (changed("Date", json!("2026-01-06")), "asked for 2026-01-05 to 2026-01-05"),
        (changed("Date", json!("2026-1-5")), "Date: no date"),
        (changed("Date", json!("20260105")), "Date: no date"),
        (changed("Code", json!("7203")), "Code: no code"),
        (changed("Code", json!("７２０３")), "Code: no code"),
        (changed("C", json!(0)), "C: `0` is no price"),
        (changed("C", json!(-1)), "C: `-1` is no price"),
        (changed("C", json!(3000.00001)), "more than 4 digits"),
        (changed("C", json!(3002)), "not all inside low to high"),
        (changed("H", json!(null)), "some of the four prices are missing"),
        (changed("Vo", json!(10.5)), "no whole number of shares"),
        (changed("Vo", json!(null)), "prices without a volume"),
        (changed("Va", json!(-5)), "a turnover below 0"),
        (changed("AdjFactor", json!(0)), "an adjustment factor of 0"),
        (changed("Code", json!("13010")), "2 of 2 rows are odd, more than 1 %"),
        (without("C"), "missing field `C`"),
        (without("AdjFactor"), "missing field `AdjFactor`"),
        (without("Code"), "missing field `Code`"),
        (json!({ "rows": [] }), "missing field `data`"),
        (json!({ "data": {} }), "invalid type: map"),
        (json!([]), "as JSON"),
        (json!({ "data": [], "pagination_key": 7 }), "invalid type: integer"),
    ] {
        let answer = ResponseTemplate::new(200).set_body_json(&body);
        let server = Server::start(vec![Mock::given(method("GET")).respond_with(answer)]);
        let error = failure(&mut vendor(&server.address()));
        let is_refused = matches!(error, SourceError::Malformed(_) | SourceError::Odd(_));
        assert!(is_refused, "{body}: {error}");
        assert!(error.to_string().contains(part), "{body}: {error}");
        assert_eq!(server.asked().len(), 1, "a wrong answer is not asked for again");
    }
}

#[test]
fn an_issue_with_rows_of_others_is_refused() {
    let rows = [row(DAY, "72030", 3_000.0), quiet(DAY, "13010")];
    let server = Server::start(vec![Mock::given(any()).respond_with(page(&rows, None))]);
    let day = date(DAY);
    let error = vendor(&server.address()).issue(code("7203"), day, day).unwrap_err();
    assert!(error.to_string().contains("row of 1301 on 2026-01-05: asked for 7203"), "{error}");
}

#[test]
fn pages_have_limits() {
    let same = page(&[], Some("again"));
    let server = Server::start(vec![Mock::given(any()).respond_with(same)]);
    let error = failure(&mut vendor(&server.address()));
    assert!(error.to_string().contains("the same page again and again"), "{error}");
    assert_eq!(server.asked().len(), 2);

    let endless = |request: &wiremock::Request| {
        let length = request.url.as_str().len();
        page(&[], Some(&"k".repeat(length % 50 + 1)))
    };
    let server = Server::start(vec![Mock::given(any()).respond_with(endless)]);
    let error = failure(&mut vendor(&server.address()));
    let limit = update::limits::PAGES_MAX;
    assert_eq!(error, SourceError::TooLarge { what: "pages", limit });
    assert_eq!(server.asked().len(), limit);

    let long = "k".repeat(update::limits::PAGE_KEY_CHARS_MAX + 1);
    let server = Server::start(vec![Mock::given(any()).respond_with(page(&[], Some(&long)))]);
    assert!(failure(&mut vendor(&server.address())).to_string().contains("pagination key of more"));
}

#[test]
fn a_large_body_is_not_read_to_its_end() {
    let answer = ResponseTemplate::new(200).set_body_bytes(vec![b' '; (1 << 20) + 1]);
    let server = Server::start(vec![Mock::given(any()).respond_with(answer)]);
    let error = failure(&mut vendor(&server.address()));
    assert_eq!(error, HttpError::TooLarge { limit: 1 << 20 }.into());
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn broken_connections_are_tried_again_and_told() {
    let body = json!({ "data": [row(DAY, "72030", 3_000.0)] }).to_string();
    let whole = |length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    };
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    );
    let good = whole(body.len());
    for broken in [
        whole(body.len() + 100),
        good[..good.len() - 20].to_vec(),
        chunked.into_bytes(),
        b"HTTP/1.1 200 OK\r\nContent-".to_vec(),
        b"SSH-2.0-OpenSSH\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_vec(),
        Vec::new(),
    ] {
        let acts = [broken.clone(), broken.clone(), good.clone()].map(Act::Send);
        let server = RawServer::start(acts.to_vec());
        let answer = vendor(&server.address()).day(date(DAY)).unwrap();
        assert_eq!((answer.rows.len(), server.count()), (1, 3));
        let server = RawServer::start(vec![Act::Send(broken.clone())]);
        let error = failure(&mut vendor(&server.address()));
        assert!(
            matches!(error, SourceError::Http(HttpError::Unavailable { tries: 3, .. })),
            "{error}"
        );
        assert_eq!(server.count(), 3);
    }
}

#[test]
fn an_answer_shorter_than_its_text_is_refused() {
    let body = json!({ "data": [row(DAY, "72030", 3_000.0)] }).to_string();
    // Without a length the end of the connection is the end of the text.
    let cut = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", &body[..body.len() - 5]);
    let server = RawServer::start(vec![Act::Send(cut.into_bytes())]);
    let error = failure(&mut vendor(&server.address()));
    assert!(error.to_string().contains("as JSON: EOF"), "{error}");
    // A length that is too short cuts too.
    let short = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len() - 5);
    let server = RawServer::start(vec![Act::Send(short.into_bytes())]);
    // The day is asked for as a whole again.
    let error = failure(&mut vendor(&server.address()));
    assert!(matches!(error, SourceError::Odd(_)) && error.reach() == Reach::Dates, "{error}");
}

#[test]
fn nobody_there_is_told() {
    let error = failure(&mut vendor(&nobody()));
    assert!(error.to_string().ends_with("(3 tries)"), "{error}");
    assert_eq!(error.reach(), Reach::Request);
}

fn slow(address: &str, network: &Network, request_time: Duration) -> VendorSource {
    let base = checked_address(address).unwrap();
    let policy = RequestPolicy { request_time, ..policy() };
    let key = KEY.to_owned().into();
    VendorSource::new(network, &base, &key, FAST, policy, None, date("2026-01-09")).unwrap()
}

#[test]
fn slow_servers_are_left() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n".to_vec();
    for act in [
        Act::Hang(Vec::new()),
        Act::Hang(head.clone()),
        // Something comes now and then, but never the whole.
        Act::Drip([head, vec![b' '; 9_000]].concat(), Duration::from_millis(20)),
    ] {
        let server = RawServer::start(vec![act]);
        let network = Network::new(CancellationToken::new()).unwrap();
        let error = failure(&mut slow(&server.address(), &network, Duration::from_millis(150)));
        assert_eq!(error.to_string(), "no whole answer within 0.15 s (3 tries)");
    }
}

#[test]
fn the_wish_to_end_ends_requests_and_pauses() {
    let cancel = CancellationToken::new();
    let network = Network::new(cancel.clone()).unwrap();
    let server = RawServer::start(vec![Act::Hang(Vec::new())]);
    let mut source = slow(&server.address(), &network, Duration::from_secs(3_600));
    let waiting = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.count() == 0 {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        source.day(date(DAY)).unwrap_err()
    });
    assert_eq!((waiting.clone(), waiting.reach()), (HttpError::Stopped.into(), Reach::Run));
    // It stays so, and nothing is sent any more.
    assert_eq!(source.day(date(DAY)).unwrap_err(), HttpError::Stopped.into());
    assert_eq!(server.count(), 1);
}
