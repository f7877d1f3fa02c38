//! The vendor's listed-issue master and calendar.

use domain::TickTable;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, MockBuilder, ResponseTemplate};

use crate::servers::{KEY, Server, date};
use crate::vendor::{page, vendor};

fn call(name: &str) -> MockBuilder {
    Mock::given(method("GET")).and(path(format!("/v2/{name}"))).and(header("x-api-key", KEY))
}

fn issue(code: &str, scale: &str, market: &str) -> Value {
    json!({
        "Date": "2025-01-06", "Code": code, "CoName": "a name", "CoNameEn": "A NAME", "S17": "6",
        "ScaleCat": scale, "Mkt": market, "MktNm": "x", "Mrgn": "1", "MrgnNm": "y",
    })
}

#[test]
fn the_issues_of_a_date_come_in_pages() {
    let on = |key: &str| {
        call("equities/master")
            .and(query_param("date", "20250106"))
            .and(query_param("pagination_key", key))
    };
    let mut fund = issue("13060", "-", "0109");
    fund["ProdCat"] = "014".into();
    let server = Server::start(vec![
        call("equities/master")
            .and(query_param("date", "20250106"))
            .and(query_param_is_missing("pagination_key"))
            .respond_with(page(&[issue("72030", "TOPIX Core30", "0111")], Some("more"))),
        on("more").respond_with(page(&[fund], None)),
        call("equities/master")
            .and(query_param("date", "20250105"))
            .respond_with(ResponseTemplate::new(210)),
        call("equities/master")
            .and(query_param("date", "20250107"))
            .respond_with(page(&[issue("72030", "-", "0111")], None)),
    ]);
    let mut source = vendor(&format!("{}/v2", server.address()));
    let master = source.listed_issues(date("2025-01-06")).unwrap().unwrap();
    let codes: Vec<&str> = master.issues.iter().map(|issue| issue.code.as_str()).collect();
    assert_eq!(codes, ["13060", "72030"]);
    let products = [0, 1].map(|place| master.issues[place].product.as_str());
    assert_eq!(products, ["014", ""], "a list may tell no product");
    assert_eq!(master.issues[1].ticks(master.date), Some(TickTable::Topix500));
    assert_eq!(source.listed_issues(date("2025-01-05")).unwrap(), None, "a Sunday");
    let error = source.listed_issues(date("2025-01-07")).unwrap_err().to_string();
    assert!(error.contains("(row 1): Date: not 2025-01-07"), "{error}");
}

#[test]
fn the_calendar_is_taken_as_far_as_it_goes() {
    let day = |date: &str, division: &str| json!({ "Date": date, "HolDiv": division });
    let server = Server::start(vec![
        call("markets/calendar")
            .and(query_param("from", "20250101"))
            .and(query_param("to", "20251231"))
            .respond_with(page(&[day("2025-01-05", "0"), day("2025-01-06", "1")], None)),
        call("markets/calendar")
            .and(query_param("from", "20240101"))
            .respond_with(page(&[day("2025-01-06", "7")], None)),
    ]);
    let mut source = vendor(&format!("{}/v2", server.address()));
    let rows = source.calendar(date("2025-01-01"), date("2025-12-31")).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[&date("2025-01-06")], "1");
    let error = source.calendar(date("2024-01-01"), date("2025-12-31")).unwrap_err().to_string();
    assert!(error.contains("day 0, HolDiv: not 0, 1, 2 or 3, of 2025-01-06"), "{error}");
}
