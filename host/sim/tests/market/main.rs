//! One market for both simulators: trades of the gateway fill orders at the broker, faults of both at once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]
#![allow(dead_code, reason = "the client of the broker's tests does more than these need")]

#[path = "../web_broker/client.rs"]
mod client;

use std::time::Duration;

use marketdata::{SampleCodes, SampleSpec, write_sample};
use serde_json::{Value, json};
use sim::local_broker::{self, FeedStart, FirstDay, Source};
use sim::market::{Config, Market};
use sim::web_broker::{self, Form};

use crate::client::{Client, item};

fn config(source: Source) -> Config {
    Config {
        gateway: local_broker::Config {
            source,
            begins: FeedStart::Held,
            speed: "max".parse().unwrap(),
            first_day: FirstDay::On("2026-05-08".parse().unwrap()),
            ..local_broker::Config::default()
        },
        broker: web_broker::Config {
            form: Form::V4r8,
            holdings: vec![("7203".to_owned(), 300)],
            ..web_broker::Config::default()
        },
    }
}

fn walk(seed: u64, days: u32) -> Config {
    config(Source::Walk { seed, days, mean_gap_ms: 20_000 })
}

fn wait(market: &Market, done: impl Fn(&Value, &Value) -> bool) {
    for _ in 0..4_000 {
        if done(&market.gateway.view(), &market.broker.view()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing came of it");
}

/// Lets the market run to the end of a day, of the last one where it is not held in between.
fn run_day(market: &Market) {
    market.gateway.control(&json!({ "do": "market", "run": true })).unwrap();
    wait(market, |gateway, _| gateway["market_over"] == true || gateway["market_runs"] == false);
}

fn trade(market: &Market, price: &str, quantity: u64) {
    let one = json!({ "do": "trade", "symbol": "7203", "price": price, "quantity": quantity });
    market.gateway.control(&one).unwrap();
}

fn order(market: &Market, number: &str) -> Value {
    let view = market.broker.view();
    let orders = view["orders"].as_array().unwrap();
    orders.iter().find(|order| order["number"] == number).unwrap().clone()
}

#[test]
fn a_trade_fills_an_order_and_is_on_the_board() {
    let market = Market::start(config(Source::Still)).unwrap();
    let mut client = Client::logged_in(&market.broker, Form::V4r8);
    let mut events = client.events();
    let placed = client.placed(&json!({ "sOrderPrice": "2840", "sOrderSuryou": "300" }));
    trade(&market, "2841", 500);
    assert_eq!(order(&market, &placed.0)["filled"], 0);
    trade(&market, "2840", 200);
    trade(&market, "2839", 500);
    let fills = order(&market, &placed.0)["fills"].clone();
    let told = |place: usize| (fills[place]["price"].clone(), fills[place]["quantity"].clone());
    assert_eq!([told(0), told(1)], [(json!("2840"), json!(200)), (json!("2840"), json!(100))]);
    assert_eq!(events.kinds(3), ["1", "12", "12"]);
    let symbols = market.gateway.view()["symbols"].clone();
    assert_eq!(
        (&symbols["7203"]["price"], &symbols["7203"]["day_volume"]),
        (&json!("2839"), &json!(1_200))
    );
    assert_eq!(market.broker.view()["prices"][0]["last"], "2839");
    // Only the issues of the market are known, and only the gateway moves it.
    let unknown = json!({ "do": "trade", "symbol": "9984", "price": "1", "quantity": 100 });
    assert!(market.gateway.control(&unknown).is_err());
    for own in [
        json!({ "do": "trade", "issue": "7203", "price": "2840", "quantity": 100 }),
        json!({ "do": "market", "run": true }),
        json!({ "do": "next-day" }),
    ] {
        let why = market.broker.control(&own).unwrap_err();
        assert!(why.contains("the market is the gateway's"), "{why}");
    }
}

/// What becomes of equal orders in a walk: status and fills of each.
fn fills_of(seed: u64) -> Vec<Value> {
    let market = Market::start(walk(seed, 2)).unwrap();
    let mut client = Client::logged_in(&market.broker, Form::V4r8);
    for fields in [
        json!({ "sOrderPrice": "0", "sOrderSuryou": "1000" }),
        json!({ "sOrderPrice": "2845", "sOrderSuryou": "500", "sOrderExpireDay": "20260511" }),
        json!({ "sOrderPrice": "2860", "sOrderSuryou": "300", "sBaibaiKubun": "1" }),
    ] {
        client.placed(&fields);
    }
    run_day(&market);
    let (gateway, broker) = (market.gateway.view(), market.broker.view());
    // Every trade of a board was at the exchange, and the two agree on what is next.
    let symbols = gateway["symbols"].as_object().unwrap();
    let trades: u64 = symbols.values().map(|symbol| symbol["trades"].as_u64().unwrap()).sum();
    assert_eq!(broker["counts"]["trades"], trades);
    assert!(trades > 1_000, "{trades}");
    for known in broker["prices"].as_array().unwrap() {
        let (symbol, number) = (known["issue"].as_str().unwrap(), |value: &Value| {
            value.as_str().unwrap().parse::<f64>().unwrap()
        });
        assert_eq!(known["last"], symbols[symbol]["price"], "{symbol}");
        let last = number(&known["last"]);
        assert!(number(&known["low"]) <= last && last <= number(&known["high"]), "{known}");
    }
    let orders = broker["orders"].as_array().unwrap().iter();
    orders
        .map(|order| {
            let fills = order["fills"].as_array().unwrap().iter();
            let fills = fills.map(|fill| json!([fill["price"], fill["quantity"]]));
            json!([order["status"], fills.collect::<Vec<_>>()])
        })
        .collect()
}

#[test]
fn the_same_seed_makes_the_same_fills() {
    let once = fills_of(5);
    assert_eq!(once[0][0], "10", "{once:?}");
    assert!(once[0][1].as_array().unwrap().len() > 1, "never more than a trade has: {once:?}");
    assert_eq!(fills_of(5), once);
    assert_ne!(fills_of(6), once);
}

#[test]
fn trades_of_files_fill_orders_and_bring_their_prices() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let code = domain::VendorCode::new("72030").unwrap();
    let spec = SampleSpec {
        seed: 7,
        start: "2025-01-06".parse().unwrap(),
        days: 2,
        codes: SampleCodes::These(vec![code]),
        trades_per_code_day: 400,
    };
    write_sample(&data, &spec).unwrap();
    let cache = folder.path().join("cache");
    let mut config = config(Source::Files { folder: data, cache, start: None, end: None });
    config.gateway.issues.truncate(1);
    let market = Market::start(config).unwrap();
    let mut client = Client::logged_in(&market.broker, Form::V4r8);
    let low = market.broker.view()["prices"][0]["low"].clone();
    let bought = client.placed(&json!({ "sOrderPrice": "0", "sOrderSuryou": "200" }));
    let cheap = client.placed(&json!({ "sOrderPrice": low }));
    run_day(&market);
    let (gateway, broker) = (market.gateway.view(), market.broker.view());
    assert_eq!(gateway["symbols"]["7203"]["trades"], broker["counts"]["trades"]);
    assert_eq!(order(&market, &bought.0)["status"], "10");
    assert_eq!(order(&market, &cheap.0)["status"], "12");
    assert_eq!((&broker["day"], &gateway["day"]), (&json!("20260511"), &json!("2026-05-11")));
    assert_eq!(broker["closed"], true);
}

#[test]
fn a_day_ends_for_both_and_shares_may_split_overnight() {
    let mut config = walk(3, 2);
    config.gateway.holds_each_day = true;
    let market = Market::start(config).unwrap();
    let mut client = Client::logged_in(&market.broker, Form::V4r8);
    let low = market.broker.view()["prices"][0]["low"].clone();
    let of_day = client.placed(&json!({ "sOrderPrice": low }));
    let fields = json!({ "sOrderPrice": low, "sOrderExpireDay": "20260515" });
    let carried = client.placed(&fields);
    run_day(&market);
    assert_eq!(order(&market, &of_day.0)["status"], "12");
    assert_eq!(order(&market, &carried.0)["status"], "1");
    // After the close nothing is taken, until the next day begins.
    assert_eq!(client.new_order(&json!({}))["sResultCode"], "11102");
    let close: f64 = market.broker.view()["prices"][0]["last"].as_str().unwrap().parse().unwrap();
    let wrong = json!({ "do": "day", "splits": { "7203": 1 } });
    assert!(market.gateway.control(&wrong).unwrap_err().contains("2 to 1000 shares"));
    market.gateway.control(&json!({ "do": "day", "splits": { "7203": 3 } })).unwrap();
    let (gateway, broker) = (market.gateway.view(), market.broker.view());
    assert_eq!((&broker["day"], &gateway["day"]), (&json!("20260511"), &json!("2026-05-11")));
    let holding = broker["holdings"][0].clone();
    assert_eq!((&holding["quantity"], &holding["cost"]), (&json!(900), &json!("855000")));
    let base = &broker["prices"][0]["last"];
    assert_eq!(base, &gateway["symbols"]["7203"]["price"]);
    let base: f64 = base.as_str().unwrap().parse().unwrap();
    assert!((close / 3.0 - base).abs() < 1.0, "{close} {base}");
    // An order of before would mean other shares.
    assert_eq!(order(&market, &carried.0)["status"], "12");
    // The login goes on, and the second day is the one that has begun: a walk of two days ends with it.
    let sale =
        client.placed(&json!({ "sOrderPrice": "0", "sOrderSuryou": "900", "sBaibaiKubun": "1" }));
    run_day(&market);
    assert_eq!(market.broker.view()["day"], "20260511");
    assert_eq!(order(&market, &sale.0)["status"], "10");
    assert_eq!(market.broker.view()["holdings"], json!([]));
}

#[test]
fn faults_of_both_sides_work_in_one_market() {
    let market = Market::start(config(Source::Still)).unwrap();
    let mut client = Client::logged_in(&market.broker, Form::V4r8);
    let mut events = client.events();
    let fault =
        json!({ "do": "fault", "name": "drop-answer", "request": "CLMKabuNewOrder", "times": 1 });
    market.broker.control(&fault).unwrap();
    let fields = client.new_order_fields(&json!({ "sOrderPrice": "2840" }));
    assert!(client.raw("CLMKabuNewOrder", &fields).is_none(), "the answer is lost");
    market.gateway.control(&json!({ "do": "log-out" })).unwrap();
    trade(&market, "2840", 100);
    assert_eq!(events.kinds(2), ["1", "12"]);
    let held = market.broker.view()["orders"][0].clone();
    assert_eq!((&held["status"], &held["p_no"]), (&json!("10"), &json!(client.p_no)));
    market.broker.control(&json!({ "do": "end-session" })).unwrap();
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "2");
    while let Some(frame) = events.next() {
        assert_ne!(item(&frame, "p_NT"), "12", "no second fill");
    }
    assert_eq!(market.gateway.view()["logged_out"], true);
}

#[test]
fn what_cannot_be_started_is_told() {
    let mut unknown = walk(1, 1);
    unknown.broker.holdings = vec![("9984".to_owned(), 100)];
    let why = Market::start(unknown).unwrap_err().to_string();
    assert!(why.contains("9984 is held, but is not one of the issues"), "{why}");
    assert!(Market::start(walk(1, 0)).unwrap_err().to_string().contains("0 days"));
    let other = Market::start(walk(1, 1)).unwrap();
    let mut taken = walk(1, 1);
    taken.gateway.port = other.gateway.address.port();
    assert!(Market::start(taken).unwrap_err().to_string().contains("cannot listen"));
}
