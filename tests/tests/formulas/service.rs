//! Formula modules over GraphQL.

use std::sync::Arc;
use std::thread::JoinHandle;

use ranking::service::{Service, ServiceOptions, ServiceStop};
use serde_json::{Value, json};
use tests::{events, http};

use crate::common::{engine, first_issue, registry};

/// A service over the common data; ends with the test.
struct Served {
    address: std::net::SocketAddr,
    stop: ServiceStop,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start(packages: &[&str], change: impl FnOnce(&mut ServiceOptions)) -> Self {
        let (folder, registry) = registry(packages);
        let mut options =
            ServiceOptions { formulas: Some(Arc::new(registry)), ..ServiceOptions::default() };
        change(&mut options);
        events::collect();
        let address = "127.0.0.1:0".parse().unwrap();
        let service = Service::bind(address, Arc::new(engine(2)), options).unwrap();
        let (address, stop) = (service.address(), service.stop());
        let thread = Some(std::thread::spawn(move || service.run().unwrap()));
        Self { address, stop, thread, _folder: folder }
    }

    fn ask(&self, query: &str) -> Value {
        let reply = http::graphql(self.address, &json!({ "query": query }).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_slice(&reply.body).unwrap()
    }

    fn ranking(&self, arguments: &str) -> Value {
        self.ask(&format!(
            "{{ stockRankingRange(fromDate: \"2016-01-01\", toDate: \"2020-01-01\", limit: 3{arguments}) \
             {{ date code close sortValue volume rank }} }}"
        ))
    }

    fn error(&self, arguments: &str) -> (String, String) {
        let answer = self.ranking(arguments);
        let error = &answer["errors"][0];
        let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        (text(&error["extensions"]["code"]), text(&error["message"]))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_module_ranks_like_the_formula_that_it_mirrors() {
    let served = Served::start(&["formula-mirror"], |_| {});
    let by_module =
        served.ranking(", formula: \"mirror\", formulaParams: [{name: \"lag\", value: 3}]");
    let rows = by_module["data"]["stockRankingRange"].as_array().unwrap();
    assert!(rows.len() > 400, "{by_module}");
    let by_formula = served.ranking(", sortBy: \"(Close - Close[-3]) / Close[-3] * 100\"");
    assert_eq!(by_module, by_formula);
    // An explicit null is as if nothing was said; an integer is a number.
    assert_eq!(
        served.ranking(
            ", sortBy: null, formula: \"mirror\", formulaParams: [{name: \"lag\", value: 3.0}]"
        ),
        by_module
    );
    let defaults = served.ranking(", formula: \"mirror\"");
    assert_eq!(defaults, served.ranking(", sortBy: \"(Close - Close[-5]) / Close[-5] * 100\""));
}

#[test]
fn wrong_arguments_have_codes() {
    let served = Served::start(&["formula-mirror"], |options| options.limits.lag = 100);
    let code = |arguments: &str| served.error(arguments).0;
    assert_eq!(code(", formula: \"mirror\", sortBy: \"Close\""), "ARGUMENTS_CONFLICT");
    assert_eq!(code(", formulaParams: [{name: \"lag\", value: 3}]"), "ARGUMENTS_CONFLICT");
    assert_eq!(code(", formula: \"mirrors\""), "FORMULA_UNKNOWN");
    let params = |value: &str| format!(", formula: \"mirror\", formulaParams: [{value}]");
    assert_eq!(code(&params("{name: \"lag\", value: 0}")), "FORMULA_PARAMS_INVALID");
    assert_eq!(code(&params("{name: \"lags\", value: 1}")), "FORMULA_PARAMS_INVALID");
    assert_eq!(code(&params("{name: \"lag\"}")), "GRAPHQL_INVALID");
    let (code, text) = served.error(&params("{name: \"lag\", value: 101}"));
    assert_eq!(code, "FORMULA_PARAMS_INVALID");
    assert_eq!(text, "formula `mirror` would look back 101 days; it may be at most 100");
    let closed = Served::start(&[], |options| options.formulas = None);
    assert_eq!(closed.error(", formula: \"mirror\"").0, "FORMULA_UNKNOWN");
    assert_eq!(closed.ask("{ formulas { name } }")["data"]["formulas"], json!([]));
}

#[test]
fn a_module_that_fails_is_an_error_with_name_and_date() {
    let served = Served::start(&["formula-traps"], |_| {});
    let closes = first_issue(&engine(1));
    let (_, close) = closes[40];
    let (date, _) = closes.iter().find(|(_, one)| *one == close).unwrap();
    let arguments =
        format!(", formula: \"traps\", formulaParams: [{{name: \"close\", value: {close}}}]");
    let answer = served.ranking(&arguments);
    assert!(answer["data"].is_null(), "{answer}");
    let extensions = &answer["errors"][0]["extensions"];
    assert_eq!(
        *extensions,
        json!({ "code": "FORMULA_FAULT", "formula": "traps", "date": date.to_string() })
    );
    let log = events::of(served.address).join("");
    assert!(log.contains("#evaluate"), "the frames are in the log: {log}");
    assert!(!answer.to_string().contains("#evaluate"), "{answer}");
}

#[test]
fn the_modules_are_listed() {
    let served = Served::start(&["limit-distance", "formula-mirror"], |_| {});
    let answer = served.ask(
        "{ formulas { name sha256 version inputs refused parameters { name default minimum maximum } } }",
    );
    let listed = answer["data"]["formulas"].as_array().unwrap();
    assert_eq!(listed.len(), 2, "{answer}");
    assert_eq!(listed[0]["name"], "limit-distance");
    assert_eq!(listed[0]["inputs"], json!(["Close[0..-1]"]));
    assert_eq!(
        listed[0]["parameters"],
        json!([{ "name": "side", "default": 0.0, "minimum": -1.0, "maximum": 1.0 }])
    );
    assert_eq!(listed[1]["inputs"], json!(["Close", "Close[-5]"]));
    assert_eq!(
        (&listed[1]["refused"], listed[1]["sha256"].as_str().unwrap().len()),
        (&Value::Null, 64)
    );
}
