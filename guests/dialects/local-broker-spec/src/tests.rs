//! The specification's table of errors, row by row.

use super::*;

fn kind(status: u16, body: &str) -> ErrorKind {
    LocalBrokerSpec::classify(status, body).kind
}

fn coded(status: u16, code: i64) -> ErrorKind {
    kind(status, &format!(r#"{{"Code":{code},"Message":"words"}}"#))
}

/// Every row of "Errors".
#[test]
fn every_row_of_the_table() {
    for (statuses, code, expected) in [
        (&[401_u16][..], 4_001_001, ErrorKind::TokenExpired),
        (&[401], 4_001_003, ErrorKind::Other),
        (&[401], 4_001_005, ErrorKind::TokenExpired),
        (&[400, 403, 404, 429, 499], 4_002_001, ErrorKind::RegisterFull),
        (&[400, 403, 404, 429, 499], 4_002_006, ErrorKind::RateLimited),
    ] {
        for status in statuses {
            assert_eq!(coded(*status, code), expected, "{status} {code}");
        }
    }
}

/// P59: the code decides where the table knows it, else the status.
#[test]
fn p59_the_code_decides_before_the_status() {
    assert_eq!(coded(400, 4_001_005), ErrorKind::TokenExpired);
    assert_eq!(coded(429, 4_001_001), ErrorKind::TokenExpired);
    assert_eq!(coded(429, 4_001_003), ErrorKind::Other);
    assert_eq!(coded(401, 4_002_006), ErrorKind::RateLimited);
    for code in [4_001_009, 4_001_006, 1, -1] {
        assert_eq!(coded(401, code), ErrorKind::Other, "{code}");
        assert_eq!(coded(429, code), ErrorKind::RateLimited, "{code}");
        assert_eq!(coded(400, code), ErrorKind::Other, "{code}");
    }
    for body in ["", "<html></html>", "{}", r#"{"Code":null}"#, r#"{"Code":"4001005"}"#] {
        assert_eq!(kind(401, body), ErrorKind::Other, "{body}");
        assert_eq!(kind(429, body), ErrorKind::RateLimited, "{body}");
        assert_eq!(kind(500, body), ErrorKind::Other, "{body}");
    }
    for code in [4_001_001, 4_001_003, 4_001_005, 4_002_001, 4_002_006] {
        assert_eq!(coded(500, code), ErrorKind::Other, "the table has no such status: {code}");
    }
}

#[test]
fn an_error_keeps_the_gateways_code_and_words() {
    let error = LocalBrokerSpec::classify(401, r#"{"Code":4001005,"Message":"期限\n切れ"}"#);
    assert_eq!((error.code, error.message.as_str()), (Some(4_001_005), "期限 切れ"));
    let error = LocalBrokerSpec::classify(502, "Bad Gateway");
    assert_eq!((error.code, error.message.as_str()), (None, ""));
}

#[test]
fn it_stands_at_the_root() {
    let about = LocalBrokerSpec::describe();
    assert_eq!(
        (about.rest_prefix.as_str(), about.push_path.as_str()),
        ("", "/brokerapi/websocket")
    );
    assert!(about.board_read_registers);
}

#[test]
fn boards_are_read() {
    let board =
        LocalBrokerSpec::read_board(r#"{"Symbol":"7203","Sell1":{"Price":2408.5}}"#).unwrap();
    assert_eq!((board.symbol.as_str(), board.best_ask), ("7203", Some(24_085_000)));
    assert!(LocalBrokerSpec::read_board("").is_err());
}
