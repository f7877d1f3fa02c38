//! A market that trade files feed.

use std::path::Path;
use std::time::Duration;

use marketdata::{SampleCodes, SampleSpec, write_sample};
use serde_json::{Value, json};
use sim::web_broker::{Config, Form, Issue, MarketData, MarketStart, Server};

use crate::client::{Client, item, money};

fn sample(folder: &Path) {
    let spec = SampleSpec {
        seed: 7,
        start: "2025-01-06".parse().unwrap(),
        days: 2,
        codes: SampleCodes::These(
            ["72030", "130A0"].map(|code| domain::VendorCode::new(code).unwrap()).to_vec(),
        ),
        trades_per_code_day: 400,
    };
    write_sample(folder, &spec).unwrap();
}

fn with_data(folder: &Path, speed: &str, begins: MarketStart) -> Server {
    let data = MarketData {
        folder: folder.join("data"),
        cache: folder.join("cache"),
        start: None,
        end: None,
        speed: speed.parse().unwrap(),
        begins,
    };
    let issue =
        |symbol: &str| Issue { symbol: symbol.to_owned(), ..Config::default().issues[0].clone() };
    let issues = vec![issue("7203"), issue("130A")];
    Server::start(Config { data: Some(data), issues, form: Form::V4r8, ..Config::default() })
        .unwrap()
}

fn wait(server: &Server, done: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..2_000 {
        let view = server.view();
        if done(&view) {
            return view;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing came of it");
}

#[test]
fn trades_of_files_fill_orders_day_by_day() {
    let folder = tempfile::tempdir().unwrap();
    sample(&folder.path().join("data"));
    let server = with_data(folder.path(), "max", MarketStart::Held);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let limits = server.view()["prices"][0].clone();
    let mut events = client.events();
    let market = client.placed(&json!({ "sOrderPrice": "0", "sOrderSuryou": "200" }));
    let low = client.placed(&json!({ "sOrderPrice": limits["low"], "sOrderSuryou": "100" }));
    server.control(&json!({ "do": "market", "run": true })).unwrap();
    let view = wait(&server, |view| view["market_over"] == true);
    assert!(view["counts"]["trades"].as_u64().unwrap() > 1_000);
    let order = |number: &str| {
        let orders = view["orders"].as_array().unwrap();
        orders.iter().find(|order| order["number"] == number).unwrap().clone()
    };
    assert_eq!(
        (&order(&market.0)["status"], &order(&market.0)["filled"]),
        (&json!("10"), &json!(200))
    );
    assert_eq!(order(&low.0)["status"], "12");
    // Two business days, of which the second is told; orders are refused after the last one.
    let path = client.target("sUrlPrice");
    let fields = json!({ "sIssueCode": "7203", "sSizyouC": "00" });
    let history = client.ask_at(&path, "CLMMfdsGetMarketPriceHistory", &fields);
    let rows = history["aCLMMfdsMarketPriceHistory"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["sDate"].as_str() < rows[1]["sDate"].as_str());
    assert_eq!(client.new_order(&json!({}))["sResultCode"], "11102");
    let mut kinds = Vec::new();
    while !kinds.contains(&"1".to_owned()) {
        kinds.push(item(&events.notice(), "p_NT").to_owned());
    }
    let cash = money(&client.ask("CLMZanKaiKanougaku", &json!({})), "sSummaryGenkabuKaituke");
    assert!(cash < 10_000_000);
}

#[test]
fn a_paced_market_goes_on_and_can_be_held() {
    let folder = tempfile::tempdir().unwrap();
    sample(&folder.path().join("data"));
    let server = with_data(folder.path(), "100000", MarketStart::AtLogin);
    assert_eq!(server.view()["counts"]["trades"], 0);
    let client = Client::logged_in(&server, Form::V4r8);
    let _events = client.events();
    wait(&server, |view| view["counts"]["trades"].as_u64().unwrap() > 5);
    server.control(&json!({ "do": "market", "run": false })).unwrap();
    assert_eq!(server.view()["market_over"], false);
    assert!(server.control(&json!({ "do": "next-day" })).is_err());
}

#[test]
fn what_cannot_be_played_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = MarketData {
        folder: folder.path().join("nothing"),
        cache: folder.path().join("cache"),
        start: None,
        end: None,
        speed: "max".parse().unwrap(),
        begins: MarketStart::AtOnce,
    };
    assert!(Server::start(Config { data: Some(data), ..Config::default() }).is_err());
    let many = Config { issues: Vec::new(), ..Config::default() };
    assert!(Server::start(many).unwrap_err().to_string().contains("issues"));
    let server = Server::start(Config::default()).unwrap();
    let taken = Config { port: server.address.port(), ..Config::default() };
    assert!(Server::start(taken).unwrap_err().to_string().contains("cannot listen"));
}
