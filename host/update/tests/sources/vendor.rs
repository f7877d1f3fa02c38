//! The vendor: pages, empty days, single issues, the cache.

use http_client::{HttpError, checked_address};
use serde_json::{Value, json};
use update::source::{DailySource, SourceError, VendorSource};
use update::{DailyRow, DayCache, SourceKind};
use wiremock::matchers::{header, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, ResponseTemplate};

use crate::servers::{FAST, KEY, Server, code, date, network, policy};

/// A source that asks at `address`, without a cache.
pub(crate) fn vendor(address: &str) -> VendorSource {
    cached(address, None)
}

pub(crate) fn cached(address: &str, cache: Option<DayCache>) -> VendorSource {
    let base = checked_address(address).unwrap();
    let key = KEY.to_owned().into();
    let today = date("2026-01-09");
    VendorSource::new(&network(), &base, &key, FAST, policy(), cache, today).unwrap()
}

/// A row as the vendor writes it, with the columns of the paid plans too.
pub(crate) fn row(date: &str, code: &str, close: f64) -> Value {
    json!({
        "Date": date, "Code": code, "O": close - 1.0, "H": close + 1.5, "L": close - 1.5, "C": close,
        "UL": "0", "LL": "0", "Vo": 12_300.0, "Va": 1_234_567.5, "AdjFactor": 1.0,
        "AdjO": 0.5, "AdjH": null, "AdjL": 0.25, "AdjC": 0.25, "AdjVo": 24_600.0, "MO": null,
    })
}

pub(crate) fn quiet(date: &str, code: &str) -> Value {
    json!({
        "Date": date, "Code": code, "O": null, "H": null, "L": null, "C": null, "UL": "0",
        "LL": "0", "Vo": null, "Va": null, "AdjFactor": 0.5,
    })
}

pub(crate) fn page(rows: &[Value], key: Option<&str>) -> ResponseTemplate {
    let mut body = json!({ "data": rows });
    if let Some(key) = key {
        body["pagination_key"] = json!(key);
    }
    ResponseTemplate::new(200).set_body_json(body)
}

fn of_day(day: &str) -> wiremock::MockBuilder {
    Mock::given(method("GET"))
        .and(path("/v2/equities/bars/daily"))
        .and(header("x-api-key", KEY))
        .and(query_param("date", day))
}

fn words(rows: &[DailyRow]) -> Vec<String> {
    let text = |row: &DailyRow| {
        let close = row.close.map_or("-".to_owned(), |close| close.to_string());
        format!("{} {} {close}", row.date, row.code)
    };
    rows.iter().map(text).collect()
}

#[test]
fn a_day_comes_in_pages_and_is_put_in_order() {
    let second = [row("2026-01-05", "13010", 4_820.0), quiet("2026-01-05", "130A0")];
    let server = Server::start(vec![
        of_day("20260105")
            .and(query_param_is_missing("pagination_key"))
            .respond_with(page(&[row("2026-01-05", "72030", 3_000.1)], Some("next page/2&="))),
        of_day("20260105")
            .and(query_param("pagination_key", "next page/2&="))
            .respond_with(page(&[], Some("third"))),
        of_day("20260105")
            .and(query_param("pagination_key", "third"))
            .respond_with(page(&second, None)),
    ]);
    let mut source = vendor(&format!("{}/v2", server.address()));
    let answer = source.day(date("2026-01-05")).unwrap();
    let expected = ["2026-01-05 1301 4820", "2026-01-05 130A -", "2026-01-05 7203 3000.1"];
    assert_eq!(words(&answer.rows), expected);
    assert!(!answer.cached);
    let first = &answer.rows[0];
    assert_eq!(first.source, SourceKind::Vendor);
    let prices = [first.open, first.high, first.low].map(|price| price.unwrap().to_string());
    assert_eq!(prices, ["4819", "4821.5", "4818.5"]);
    assert_eq!((first.volume, first.adjustment_factor), (Some(12_300), Some(1.0)));
    assert_eq!(first.turnover.unwrap().to_string(), "1234567.5");
    let quiet = &answer.rows[1];
    assert_eq!((quiet.volume, quiet.turnover, quiet.adjustment_factor), (None, None, Some(0.5)));
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_day_without_data_is_no_failure() {
    let server = Server::start(vec![
        of_day("20260101").respond_with(ResponseTemplate::new(210)),
        of_day("20260102").respond_with(page(&[], None)),
    ]);
    let mut source = vendor(&format!("{}/v2/", server.address()));
    for day in ["2026-01-01", "2026-01-02"] {
        assert_eq!(source.day(date(day)).unwrap().rows, []);
    }
}

#[test]
fn an_issue_is_asked_for_by_its_five_places() {
    let rows = [row("2026-01-06", "130A0", 101.0), row("2026-01-05", "130A0", 100.0)];
    let server = Server::start(vec![
        Mock::given(query_param("code", "130A0"))
            .and(query_param("from", "20260105"))
            .and(query_param("to", "20260106"))
            .respond_with(page(&rows, None)),
    ]);
    let mut source = vendor(&server.address());
    let answer = source.issue(code("130A"), date("2026-01-05"), date("2026-01-06")).unwrap();
    assert_eq!(words(&answer.rows), ["2026-01-05 130A 100", "2026-01-06 130A 101"]);
}

#[test]
fn finished_days_are_kept_and_others_are_not() {
    let server = Server::start(vec![
        of_day("20260105").respond_with(page(&[row("2026-01-05", "72030", 3_000.1)], None)),
        of_day("20260106").respond_with(page(&[], None)),
        of_day("20260109").respond_with(page(&[row("2026-01-09", "72030", 3_100.0)], None)),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let cache = DayCache::new(folder.path(), SourceKind::Vendor);
    let address = format!("{}/v2", server.address());
    let mut found = Vec::new();
    for _ in 0..2 {
        let mut source = cached(&address, Some(cache.clone()));
        for day in ["2026-01-05", "2026-01-06", "2026-01-09"] {
            let answer = source.day(date(day)).unwrap();
            found.push((answer.cached, words(&answer.rows)));
        }
        assert_eq!(source.take_notes(), [""; 0]);
    }
    assert_eq!((found[3].0, &found[3].1), (true, &found[0].1));
    let cached_flags: Vec<bool> = found.iter().map(|(cached, _)| *cached).collect();
    // Today is not finished, and an empty day may still get data.
    assert_eq!(cached_flags, [false, false, false, true, false, false]);
    assert_eq!(server.asked().len(), 5);
    let mut fresh = cached(&address, Some(cache)).fresh(true);
    assert!(!fresh.day(date("2026-01-05")).unwrap().cached);
}

#[test]
fn a_damaged_cache_file_is_told_and_fetched_anew() {
    let rows = [row("2026-01-05", "72030", 3_000.1)];
    let server = Server::start(vec![of_day("20260105").respond_with(page(&rows, None))]);
    let folder = tempfile::tempdir().unwrap();
    let cache = DayCache::new(folder.path(), SourceKind::Vendor);
    let address = format!("{}/v2", server.address());
    let day = date("2026-01-05");
    cached(&address, Some(cache.clone())).day(day).unwrap();
    let mut bytes = std::fs::read(cache.path(day)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(cache.path(day), &bytes).unwrap();
    let mut source = cached(&address, Some(cache.clone()));
    assert!(!source.day(day).unwrap().cached);
    let notes = source.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("fetched again"), "{notes:?}");
    assert!(cached(&address, Some(cache)).day(day).unwrap().cached, "the new file is whole");
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let rows = [row("2026-01-05", "72030", 3_000.1)];
    let server = Server::start(vec![of_day("20260105").respond_with(page(&rows, None))]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let cache = DayCache::new(&file, SourceKind::Vendor);
    let mut source = cached(&format!("{}/v2", server.address()), Some(cache));
    assert_eq!(source.day(date("2026-01-05")).unwrap().rows.len(), 1);
    assert!(source.take_notes().iter().any(|note| note.starts_with("cannot keep 2026-01-05")));
}

#[test]
fn answers_may_be_packed() {
    use std::io::Write;
    let body = json!({ "data": [row("2026-01-05", "72030", 3_000.1)] }).to_string();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(body.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let answer = |bytes: &[u8]| {
        ResponseTemplate::new(200)
            .insert_header("content-encoding", "gzip")
            .set_body_bytes(bytes.to_vec())
    };
    let server = Server::start(vec![
        of_day("20260105").respond_with(answer(&packed)),
        of_day("20260106").respond_with(answer(&packed[..packed.len() - 9])),
    ]);
    let mut source = vendor(&format!("{}/v2", server.address()));
    assert_eq!(source.day(date("2026-01-05")).unwrap().rows.len(), 1);
    let error = source.day(date("2026-01-06")).unwrap_err();
    assert!(matches!(error, SourceError::Http(HttpError::Unavailable { tries: 3, .. })), "{error}");
}
