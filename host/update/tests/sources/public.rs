//! The public source: CSV of one issue, and everything that may come instead.

use http_client::checked_address;
use update::source::{DailySource, PublicSource, Reach, SourceError};
use update::{DailyRow, SourceKind};
use wiremock::matchers::{any, query_param, query_param_is_missing};
use wiremock::{Mock, ResponseTemplate};

use crate::servers::{FAST, KEY, RawServer, Server, code, date, network, policy};

const HEADER: &str = "Date,Open,High,Low,Close,Volume";

fn source(address: &str, key: Option<&str>) -> PublicSource {
    let base = checked_address(&format!("{address}/q/d/l/")).unwrap();
    let key = key.map(|key| key.to_owned().into());
    PublicSource::new(&network(), &base, key, FAST, policy()).unwrap()
}

fn ask(address: &str) -> Result<Vec<DailyRow>, SourceError> {
    let (from, to) = (date("2026-01-05"), date("2026-01-07"));
    source(address, None).issue(code("130A"), from, to).map(|answer| answer.rows)
}

fn ask_for(body: &str) -> Result<Vec<DailyRow>, SourceError> {
    ask(&RawServer::with_body(body).address())
}

#[test]
fn an_issue_is_read_and_put_in_order() {
    let body = format!(
        "{HEADER}\r\n2026-01-06,101,102.25,100,101.5,1200\r\n\
         2026-01-05,100.12345,110,99.99994,105,7000.4\r\n"
    );
    let server = Server::start(vec![
        Mock::given(query_param("s", "130a.jp"))
            .and(query_param("d1", "20260105"))
            .and(query_param("d2", "20260107"))
            .and(query_param("i", "d"))
            .and(query_param_is_missing("apikey"))
            .respond_with(ResponseTemplate::new(200).set_body_string(body)),
    ]);
    let rows = ask(&server.address()).unwrap();
    assert_eq!(rows.len(), 2);
    let first = rows[0];
    assert_eq!(
        (first.date, first.code, first.source),
        (date("2026-01-05"), code("130A"), SourceKind::Public)
    );
    // Its adjusted prices are finer than ours.
    let prices =
        [first.open, first.high, first.low, first.close].map(|price| price.unwrap().units());
    assert_eq!(prices, [1_001_235, 1_100_000, 999_999, 1_050_000]);
    assert_eq!((first.volume, first.turnover, first.adjustment_factor), (Some(7_000), None, None));
    assert_eq!(server.asked(), ["/q/d/l/?s=130a.jp&d1=20260105&d2=20260107&i=d"]);
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let server = Server::start(vec![
        Mock::given(query_param("apikey", KEY))
            .respond_with(ResponseTemplate::new(200).set_body_string(format!("what? {KEY}"))),
    ]);
    let day = date("2026-01-05");
    let error = source(&server.address(), Some(KEY)).issue(code("7203"), day, day).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("what? ***") && !text.contains(KEY), "{text}");
}

#[test]
fn no_data_is_an_answer_and_an_allowance_can_be_used_up() {
    for body in ["No data", "No data\r\n", "\u{feff}No data\n"] {
        assert_eq!(ask_for(body).unwrap(), []);
    }
    assert_eq!(ask_for(&format!("{HEADER}\n")).unwrap(), []);
    let error = ask_for("Exceeded the daily hits limit").unwrap_err();
    assert_eq!((error.reach(), error.to_string().contains("allowance")), (Reach::Source, true));
}

#[test]
fn other_texts_are_refused() {
    let good = "2026-01-05,100,110,99,105,7000";
    for (body, part) in [
        ("<!DOCTYPE html><html></html>".to_owned(), "a web page instead of CSV"),
        ("\n <p>key needed".to_owned(), "KUMIKI_PUBLIC_API_KEY"),
        (String::new(), "expected the header"),
        ("Date,Open,High,Low,Close\n2026-01-05,1,1,1,1\n".to_owned(), "expected the header"),
        (format!("{HEADER}\n{good}"), "in the middle of a line"),
        (format!("{HEADER}\n{good}\n2026-01-06,100,11"), "in the middle of a line"),
        (format!("{HEADER}\n{good},1\n"), "expected 6 cells, found 7"),
        (format!("{HEADER}\n{good}\n{good}\n"), "two rows of 130A on 2026-01-05"),
        (format!("{HEADER}\n{}\n", good.replace("01-05", "01-08")), "asked for 2026-01-05 to"),
        (format!("{HEADER}\n{}\n", good.replace("01-05", "02-30")), "line 2, `2026-02-30,"),
        (format!("{HEADER}\n{}\n", good.replace("105", "111")), "not all inside low to high"),
        (format!("{HEADER}\n{}\n", good.replace("105", "")), "is not a decimal number"),
        (format!("{HEADER}\n{}\n", good.replace("105", "1e3")), "`1e3` is not a decimal number"),
        (format!("{HEADER}\n{}\n", good.replace("7000", "many")), "`many` is no whole number"),
    ] {
        let error = ask_for(&body).unwrap_err();
        assert!(matches!(error, SourceError::Malformed(_)), "{body}: {error}");
        assert!(error.to_string().contains(part), "{body}: {error}");
    }
    let html = ResponseTemplate::new(200).set_body_raw("Sorry", "text/html; charset=utf-8");
    let server = Server::start(vec![Mock::given(any()).respond_with(html)]);
    assert!(ask(&server.address()).unwrap_err().to_string().contains("a web page instead of CSV"));
    let bytes = ResponseTemplate::new(200).set_body_bytes(vec![0xff, 0xfe]);
    let server = Server::start(vec![Mock::given(any()).respond_with(bytes)]);
    assert!(ask(&server.address()).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn the_number_of_rows_is_limited() {
    let limit = update::limits::ANSWER_ROWS_MAX;
    let body = format!("{HEADER}\n{}", "2026-01-05,1,1,1,1,1\n".repeat(limit + 1));
    let error = ask_for(&body).unwrap_err();
    assert_eq!(error, SourceError::TooLarge { what: "rows", limit });
}

#[test]
fn it_has_no_whole_days() {
    let mut source = source("http://127.0.0.1:9", None);
    assert!(!source.has_days());
    let error = source.day(date("2026-01-05")).unwrap_err();
    assert!(matches!(error, SourceError::NoSuchCall(_)));
}
