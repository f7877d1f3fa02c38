//! Answers have the shapes of the vendor's OpenAPI file, where it is at hand; the tests say what they skip.

use std::path::PathBuf;

use serde_json::{Value, json};
use sim::local_broker::Dialect;
use yaml_rust2::{Yaml, YamlLoader};

use crate::client::{Client, start, wait};

fn asset(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/assets").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: {} is not there", path.display());
    }
    text
}

/// The vendor's description of its calls.
struct Official(Yaml);

/// The file goes on with quoted texts at the depth of their key, which strict readers refuse.
fn mended(text: &str) -> String {
    let mut mended = String::new();
    let mut is_quoted = false;
    for line in text.lines() {
        if is_quoted {
            mended.push_str("    ");
        }
        mended.push_str(line);
        mended.push('\n');
        let is_odd = line.matches('"').count() % 2 == 1;
        is_quoted ^= is_odd && (is_quoted || line.contains(": \""));
    }
    mended
}

impl Official {
    fn load() -> Option<Self> {
        let text = asset("kabu/kabu_STATION_API.yaml")?;
        let read = YamlLoader::load_from_str(&mended(&text)).unwrap();
        Some(Self(read.into_iter().next().unwrap()))
    }

    /// Checks an answer against the schema of a call and status. The file marks nothing as nullable although
    /// its own examples have nulls, so the fields that may be null are given.
    fn check(&self, call: &str, method: &str, status: u16, told: &Value, nulls: &[&str]) {
        let of_status = status.to_string();
        let response = &self.0["paths"][call][method]["responses"][of_status.as_str()];
        let schema = &response["content"]["application/json"]["schema"];
        assert!(!schema.is_badvalue(), "{call}: no schema for {status}");
        let mut wrong = Vec::new();
        self.compare(told, schema, call, nulls, &mut wrong);
        assert!(wrong.is_empty(), "{call} {status}: {wrong:#?}\n{told}");
    }

    fn compare(
        &self,
        told: &Value,
        schema: &Yaml,
        at: &str,
        nulls: &[&str],
        wrong: &mut Vec<String>,
    ) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            let found = &self.0["components"]["schemas"][name];
            assert!(!found.is_badvalue(), "no schema {name}");
            return self.compare(told, found, at, nulls, wrong);
        }
        let name = at.rsplit('.').next().unwrap_or_default();
        let is_of_type = match (schema["type"].as_str().unwrap_or_default(), told) {
            (_, Value::Null) => nulls.contains(&name),
            ("object", Value::Object(fields)) => {
                for (field, value) in fields {
                    let schema = &schema["properties"][field.as_str()];
                    if schema.is_badvalue() {
                        wrong.push(format!("{at}.{field}: no such field"));
                    } else {
                        self.compare(value, schema, &format!("{at}.{field}"), nulls, wrong);
                    }
                }
                for required in schema["required"].as_vec().into_iter().flatten() {
                    let required = required.as_str().unwrap();
                    if !fields.contains_key(required) {
                        wrong.push(format!("{at}.{required}: missing"));
                    }
                }
                true
            }
            // The file calls the list of `/unregister/all` an object, and shows a list.
            ("object", Value::Array(rows)) => name == "RegistList" && rows.is_empty(),
            ("array", Value::Array(rows)) => {
                for row in rows {
                    self.compare(row, &schema["items"], at, nulls, wrong);
                }
                true
            }
            ("integer", Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => true,
            ("string", Value::String(text)) => {
                schema["format"].as_str() != Some("date-time") || is_time(text)
            }
            _ => false,
        };
        if !is_of_type {
            wrong.push(format!("{at}: {told} is no {:?}", schema["type"]));
        }
        if let Some(values) = schema["enum"].as_vec() {
            let is_one = values.iter().any(|value| value.as_str() == told.as_str());
            if !is_one {
                wrong.push(format!("{at}: {told} is none of {values:?}"));
            }
        }
    }

    /// The names of a schema's fields.
    fn fields(&self, schema: &str) -> Vec<&str> {
        let fields = self.0["components"]["schemas"][schema]["properties"].as_hash().unwrap();
        fields.keys().filter_map(Yaml::as_str).collect()
    }
}

/// `2022-04-04T15:00:00+09:00`.
fn is_time(text: &str) -> bool {
    let shape = b"0000-00-00T00:00:00+09:00";
    text.len() == shape.len()
        && text.bytes().zip(shape).all(|(byte, of_shape)| match of_shape {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

/// Fields of a board that are null before the day's first trade.
const OF_TRADES: [&str; 16] = [
    "CurrentPrice",
    "CurrentPriceTime",
    "CurrentPriceChangeStatus",
    "CurrentPriceStatus",
    "ChangePreviousClose",
    "ChangePreviousClosePer",
    "OpeningPrice",
    "OpeningPriceTime",
    "HighPrice",
    "HighPriceTime",
    "LowPrice",
    "LowPriceTime",
    "TradingVolume",
    "TradingVolumeTime",
    "VWAP",
    "TradingValue",
];
/// Fields of a board that only futures, options and indices have.
const OF_DERIVATIVES: [&str; 7] =
    ["SettlementPrice", "IV", "Gamma", "Theta", "Vega", "Delta", "ClearingPrice"];

#[test]
fn what_has_another_shape_is_found() {
    let Some(official) = Official::load() else { return };
    let schema = &official.0["components"]["schemas"]["BoardSuccess"];
    for (told, count) in [
        (json!({ "Symbol": "7203", "Sell1": { "Price": 1.5 }, "SecurityType": 1 }), 0),
        (json!({ "Symbol": 7203, "Exchange": 1.5, "Exchange2": 1 }), 3),
        (json!({ "Sell1": { "Price": "1" }, "CurrentPriceTime": "09:00", "VWAP": null }), 3),
        (json!([]), 1),
    ] {
        let mut wrong = Vec::new();
        official.compare(&told, schema, "board", &[], &mut wrong);
        assert_eq!(wrong.len(), count, "{wrong:?}");
    }
}

#[test]
fn every_call_answers_in_the_official_shape() {
    let Some(official) = Official::load() else { return };
    let server = start(Dialect::Kabusapi);
    let mut client = Client::logged_in(&server);
    official.check("/token", "post", 200, &client.log_in("demo").json(), &[]);
    let ok = |call: &str, path: &str, nulls: &[&str]| {
        let told = client.get(path);
        assert_eq!(told.status, 200, "{path}");
        official.check(call, "get", 200, &told.json(), nulls);
    };
    ok("/wallet/cash", "/wallet/cash", &[]);
    ok("/wallet/cash/{symbol}", "/wallet/cash/7203@1", &[]);
    let per_symbol = ["MaximumSellOpenAmountPerSymbol", "MaximumBuyOpenAmountPerSymbol"];
    let rates = ["ConsignmentDepositRate", "CashOfConsignmentDepositRate"];
    ok("/wallet/margin", "/wallet/margin", &[per_symbol, rates].concat());
    ok("/wallet/margin/{symbol}", "/wallet/margin/7203@1", &per_symbol);
    let order = ["MarginPremium", "ExchangeID", "OrdType", "ExecutionID", "ExecutionDay"];
    ok("/orders", "/orders", &order);
    ok("/orders", "/orders?details=false", &["MarginPremium"]);
    let position = [
        "ExecutionID",
        "ExecutionDay",
        "Expenses",
        "Commission",
        "CommissionTax",
        "ExpireDay",
        "MarginTradeType",
    ];
    ok("/positions", "/positions", &position);
    let added = ["CurrentPrice", "Valuation", "ProfitLoss", "ProfitLossRate"];
    ok("/positions", "/positions?addinfo=false", &[&position[..], &added].concat());
    ok("/symbol/{symbol}", "/symbol/7203@1", &[]);
    ok("/symbol/{symbol}", "/symbol/130A@1?addinfo=false", &["TotalMarketValue", "TotalStocks"]);
    ok("/apisoftlimit", "/apisoftlimit", &[]);
    ok("/board/{symbol}", "/board/7203@1", &OF_TRADES);
    let put = |path: &str, symbols: &[&str]| client.put(path, symbols).json();
    official.check("/register", "put", 200, &put("/register", &["7203", "130A"]), &[]);
    official.check("/unregister", "put", 200, &put("/unregister", &["7203"]), &[]);
    let all = client.call("PUT", "/unregister/all", None).unwrap().json();
    official.check("/unregister/all", "put", 200, &all, &[]);
}

#[test]
fn refusals_have_the_official_shape() {
    let Some(official) = Official::load() else { return };
    for dialect in [Dialect::Spec, Dialect::Kabusapi] {
        let server = start(dialect);
        let client = Client::logged_in(&server);
        let told = [
            ("/board/{symbol}", "get", client.get("/board/nothing@1")),
            ("/wallet/cash", "get", Client::new(&server).get("/wallet/cash")),
            ("/register", "put", client.put("/register", &["x"])),
            ("/register", "put", client.call("POST", "/register", None).unwrap()),
            ("/sendorder", "post", client.call("POST", "/sendorder", None).unwrap()),
            ("/orders", "get", {
                server.fault("too-many*1").unwrap();
                client.get("/orders")
            }),
        ];
        let statuses: Vec<u16> = told.iter().map(|(_, _, told)| told.status).collect();
        assert_eq!(statuses, [400, 401, 400, 405, 403, 429]);
        for (call, method, told) in told {
            official.check(call, method, told.status, &told.json(), &[]);
            assert!(told.head.contains("Content-Type: application/json; charset=utf-8"));
        }
    }
}

#[test]
fn frames_have_every_official_field_of_a_share() {
    let Some(official) = Official::load() else { return };
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    client.put("/register", &["7203"]);
    let mut push = client.push();
    wait(&server, "a client of the push", |view| view["push_open"] == true);
    server.control(&json!({ "do": "boards" })).unwrap();
    let trade = json!({ "do": "trade", "symbol": "7203", "price": "2850.5", "quantity": 100 });
    server.control(&trade).unwrap();
    let (before, after) = (push.frame(), push.frame());
    official.check("/board/{symbol}", "get", 200, &before, &OF_TRADES);
    official.check("/board/{symbol}", "get", 200, &after, &[]);
    let mut wanted = official.fields("BoardSuccess");
    wanted.retain(|field| !OF_DERIVATIVES.contains(field));
    let mut told: Vec<&str> = after.as_object().unwrap().keys().map(String::as_str).collect();
    wanted.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, wanted);
    for level in ["Sell1", "Buy1"] {
        assert_eq!(after[level].as_object().unwrap().len(), 4);
    }
}

#[test]
fn frames_have_the_fields_of_the_official_sample_in_their_order() {
    let Some(sample) = asset("kabu/samples/board_response.json") else { return };
    let sample: Value = serde_json::from_str(&sample).unwrap();
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    let trade = json!({ "do": "trade", "symbol": "7203", "price": "2850.5", "quantity": 100 });
    server.control(&trade).unwrap();
    let told = client.get("/board/7203@1").json();
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&told), fields(&sample));
    for (level, of_sample) in [("Sell1", "Sell1"), ("Buy10", "Buy10")] {
        assert_eq!(fields(&told[level]), fields(&sample[of_sample]));
    }
}
