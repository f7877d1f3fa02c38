//! The vendor's codes with the statuses that they come with.

use super::*;

fn kind(status: u16, body: &str) -> ErrorKind {
    LocalBrokerKabusapi::classify(status, body).kind
}

fn coded(status: u16, code: i64) -> ErrorKind {
    kind(status, &format!(r#"{{"Code":{code},"Message":"words"}}"#))
}

#[test]
fn every_code_of_the_vendors() {
    for (status, code, expected) in [
        (401, 4_001_007, ErrorKind::TokenExpired),
        (401, 4_001_009, ErrorKind::TokenExpired),
        (401, 4_001_017, ErrorKind::TokenExpired),
        (401, 4_001_013, ErrorKind::Other),
        (429, 4_001_006, ErrorKind::RateLimited),
        (400, 4_002_006, ErrorKind::RegisterFull),
        (400, 4_002_001, ErrorKind::Other),
        (400, 4_001_012, ErrorKind::Other),
        (400, 4_001_018, ErrorKind::Other),
        (400, 4_001_019, ErrorKind::Other),
        (400, 4_001_020, ErrorKind::Other),
        (405, 4_001_014, ErrorKind::Other),
        (500, 4_001_001, ErrorKind::Other),
    ] {
        assert_eq!(coded(status, code), expected, "{status} {code}");
    }
}

#[test]
fn the_status_decides_before_the_code() {
    for code in [4_001_009, 4_002_006, 4_001_013, 1] {
        assert_eq!(coded(429, code), ErrorKind::RateLimited, "{code}");
    }
    for code in [4_001_006, 4_002_006, 4_001_001, 4_001_005, 1] {
        assert_eq!(coded(401, code), ErrorKind::Other, "{code}");
    }
    for code in [4_001_007, 4_001_009, 4_001_017] {
        assert_eq!(coded(400, code), ErrorKind::Other, "the token of another port: {code}");
        assert_eq!(coded(500, code), ErrorKind::Other, "{code}");
    }
    assert_eq!(coded(403, 4_002_006), ErrorKind::RegisterFull);
    assert_eq!(coded(400, 4_001_006), ErrorKind::RateLimited);
    assert_eq!(coded(503, 4_001_006), ErrorKind::Other);
    for body in ["", "<html></html>", "{}", r#"{"Code":"4001009"}"#] {
        assert_eq!(kind(401, body), ErrorKind::Other, "{body}");
        assert_eq!(kind(429, body), ErrorKind::RateLimited, "{body}");
    }
}

#[test]
fn it_stands_below_a_path() {
    let about = LocalBrokerKabusapi::describe();
    let paths = (about.rest_prefix.as_str(), about.push_path.as_str());
    assert_eq!(paths, ("/kabusapi", "/kabusapi/websocket"));
    assert!(!about.board_read_registers);
}

#[test]
fn words_and_boards_are_read() {
    let error = LocalBrokerKabusapi::classify(401, r#"{"Code":4001009,"Message":"APIキー不一致"}"#);
    assert_eq!((error.code, error.message.as_str()), (Some(4_001_009), "APIキー不一致"));
    let board =
        LocalBrokerKabusapi::read_board(r#"{"Symbol":"7203","Buy1":{"Price":1e3}}"#).unwrap();
    assert_eq!(board.best_bid, Some(10_000_000));
}
