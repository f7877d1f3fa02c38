//! The rules against a server on this machine.

use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::{CancellationToken, MinimumRate, Network, checked_address};

const KEY: &str = "very-secret-key-0123456789";

fn policy() -> RequestPolicy {
    RequestPolicy {
        back_off: Duration::from_millis(1),
        back_off_too_many: Duration::from_millis(1),
        retry_after_max: Duration::from_secs(5),
        ..RequestPolicy::default()
    }
}

/// A server that answers everything so, and how often it was asked in the end.
fn asked(answer: ResponseTemplate) -> (Result<HttpResponse, HttpError>, usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        let rule = Mock::given(method("GET")).and(header("x-key", KEY)).respond_with(answer);
        server.register(rule).await;
        server
    });
    let url = checked_address(&server.uri()).unwrap();
    let mut client = HttpClient::new(&url, policy(), 60_000).unwrap();
    let secret = SecretString::from(KEY.to_owned());
    client.hide(&secret);
    let mut headers = HeaderMap::new();
    headers.insert("x-key", secret_header(&secret).unwrap());
    assert!(!format!("{headers:?}{client:?}").contains(KEY));
    let network = Network::new(CancellationToken::new()).unwrap();
    let found = network.get(&mut client, &headers, || Ok(url.clone()));
    (found, runtime.block_on(server.received_requests()).unwrap().len())
}

#[test]
fn what_may_go_well_is_asked_again_and_no_answer_shows_the_key() {
    let (found, count) = asked(ResponseTemplate::new(503).set_body_string(format!("busy {KEY}")));
    let what = "the server failed (HTTP 503): busy ***".to_owned();
    assert_eq!((found, count), (Err(HttpError::Unavailable { what, tries: 3 }), 3));
    let (found, count) = asked(ResponseTemplate::new(401).set_body_string(format!("not {KEY}")));
    let message = "not ***".to_owned();
    assert_eq!((found, count), (Err(HttpError::Key { status: 401, message }), 1));
    let (found, count) = asked(ResponseTemplate::new(429).insert_header("Retry-After", "6"));
    assert_eq!((found, count), (Err(HttpError::TooManyRequests(Duration::from_secs(6))), 1));
    let (found, count) = asked(ResponseTemplate::new(302).insert_header("Location", "/other"));
    assert!(matches!(found, Err(HttpError::Refused { status: 302, .. })), "{found:?}");
    assert_eq!(count, 1, "a key does not follow");
    let (found, _) = asked(ResponseTemplate::new(200).set_body_string("yes"));
    assert_eq!(found.unwrap().body, b"yes");
}

/// At 20 ms, then 40 and 80 between the starts of requests. Less than that would be too fast; how much
/// more it is depends on the machine.
#[test]
fn requests_are_sent_more_slowly_after_too_many() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        let busy = ResponseTemplate::new(429).insert_header("Retry-After", "0");
        let busy = Mock::given(method("GET")).respond_with(busy);
        server.register(busy.up_to_n_times(2).with_priority(1)).await;
        server.register(Mock::given(method("GET")).respond_with(ResponseTemplate::new(200))).await;
        server
    });
    let url = checked_address(&server.uri()).unwrap();
    let mut client = HttpClient::new(&url, policy(), 3_000).unwrap();
    let network = Network::new(CancellationToken::new()).unwrap();
    let begun = Stopwatch::start();
    let mut ask = || -> Result<_, HttpError> {
        network.get(&mut client, &HeaderMap::new(), || Ok(url.clone()))
    };
    ask().unwrap();
    ask().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(40 + 80 + 80), "{:?}", begun.elapsed());
    let interval = Duration::from_millis(80);
    let slowed = Slowed { too_many: 2, longest: interval, now: interval };
    assert_eq!(client.slowed(), Some(slowed));
}

/// The cut is in the middle of the key, or the server spells it in its own way.
#[test]
fn no_part_of_the_key_is_left_where_words_are_cut() {
    let long = |key: &str| format!("{}{key} and more", "x".repeat(SHOWN_CHARS - 10));
    let encoded = KEY.replace('-', "%2D");
    for body in [long(KEY), long(&encoded), format!(r#"{{"message": "{}"}}"#, long(KEY))] {
        let (found, _) = asked(ResponseTemplate::new(400).set_body_string(body));
        let Err(HttpError::Refused { message, .. }) = found else { panic!("{found:?}") };
        assert_eq!(message, format!("{}*** and mo...", "x".repeat(SHOWN_CHARS - 10)));
    }
}

#[test]
fn a_cancelled_network_asks_nobody() {
    let cancel = CancellationToken::new();
    let network = Network::new(cancel.clone()).unwrap();
    cancel.cancel();
    let url = checked_address("http://127.0.0.1:9").unwrap();
    let mut client = HttpClient::new(&url, policy(), 1).unwrap();
    let found: Result<_, HttpError> =
        network.get(&mut client, &HeaderMap::new(), || panic!("no address is needed"));
    assert_eq!(found, Err(HttpError::Stopped));
}

/// What a body that comes in pieces has, of a server that answers so.
fn streamed(answer: ResponseTemplate, limit: u64) -> Result<(u16, Vec<u8>), HttpError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        server.register(Mock::given(method("GET")).respond_with(answer)).await;
        server
    });
    let url = checked_address(&server.uri()).unwrap();
    let mut client = HttpClient::new(&url, policy(), 60_000).unwrap();
    let network = Network::new(CancellationToken::new()).unwrap();
    let mut stream = network.open(&mut client, &HeaderMap::new(), url, limit)?;
    let mut body = Vec::new();
    while let Some(bytes) = network.chunk(&mut stream)? {
        body.extend(bytes);
    }
    Ok((stream.status(), body))
}

#[test]
fn a_body_in_pieces_is_whole_or_an_error() {
    let answer = |status: u16| ResponseTemplate::new(status).set_body_string("12345");
    assert_eq!(streamed(answer(206), 5), Ok((206, b"12345".to_vec())));
    assert_eq!(streamed(answer(200), 4), Err(HttpError::TooLarge { limit: 4 }));
    assert_eq!(streamed(ResponseTemplate::new(304), 4), Ok((304, Vec::new())));
    for (status, is_final) in [(302, true), (404, true), (503, false)] {
        match streamed(answer(status), 9) {
            Err(HttpError::Refused { status: found, .. }) => {
                assert_eq!((found, is_final), (status, true))
            }
            Err(HttpError::Unavailable { tries: 1, .. }) => assert!(!is_final),
            other => panic!("{other:?}"),
        }
    }
}

/// A server that sends a body of so many bytes, one every millisecond.
fn dripping(bytes: usize) -> Url {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 4_096]).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        // Who has had enough goes away.
        while client.write_all(b"x").is_ok() {
            domain::clock::sleep(Duration::from_millis(1));
        }
    });
    checked_address(&format!("http://{address}")).unwrap()
}

#[test]
fn a_body_that_comes_too_slowly_is_given_up() {
    let take = |bytes: usize, rate: MinimumRate| {
        let url = dripping(bytes);
        let mut client = HttpClient::new(&url, policy(), 60_000).unwrap();
        let network = Network::new(CancellationToken::new()).unwrap();
        let mut stream = network.open(&mut client, &HeaderMap::new(), url, 1 << 30).unwrap();
        stream.demand(rate);
        let mut came = 0;
        loop {
            match network.chunk(&mut stream) {
                Ok(Some(piece)) => came += piece.len(),
                Ok(None) => return Ok(came),
                Err(error) => return Err(error),
            }
        }
    };
    let much = MinimumRate { bytes: 1 << 20, time: Duration::from_millis(200) };
    assert_eq!(take(1 << 30, much), Err(HttpError::TooSlow(much)));
    assert_eq!(HttpError::TooSlow(much).to_string(), "fewer than 1048576 bytes came within 0.2 s");
    // The end of a body is enough, and so is what was wanted, stretch after stretch.
    assert_eq!(take(30, MinimumRate { time: Duration::from_secs(60), ..much }), Ok(30));
    assert_eq!(take(300, MinimumRate { bytes: 1, time: Duration::from_millis(100) }), Ok(300));
}
