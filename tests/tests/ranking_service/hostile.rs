//! Requests made to do harm.

use ranking::service::ServiceOptions;
use serde_json::{Value, json};
use tests::http::{Connection, JSON};

use crate::common::{Served, Steady, ranking};

/// The numbers of a seed, without any dependency.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }
}

fn mutated(text: &str, seeded: &mut Seeded) -> Vec<u8> {
    const PIECES: [&str; 16] = [
        "{",
        "}",
        "(",
        ")",
        "\"",
        "\\\"",
        "...",
        "fragment F on Query { ...F }",
        "@skip(if: true)",
        "Close[-99999999999]",
        "; DROP TABLE daily",
        "é\u{0}",
        "$x",
        "__typename",
        "1e999",
        "#",
    ];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=seeded.below(3) {
        let at = seeded.below(bytes.len() + 1);
        let end = (at + seeded.below(20)).min(bytes.len());
        match seeded.below(4) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = PIECES[seeded.below(PIECES.len())].as_bytes();
                bytes.splice(at..at, piece.iter().copied());
            }
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(seeded.below(256)).unwrap();
                }
            }
        }
    }
    bytes
}

#[test]
fn five_thousand_mutated_requests_get_clean_answers() {
    const CODES: [&str; 16] = [
        "FORMULA_INVALID",
        "ORDER_INVALID",
        "LIMIT_INVALID",
        "RANGE_INVALID",
        "DATE_INVALID",
        "ALIASES_EXCEEDED",
        "QUERY_TOO_DEEP",
        "QUERY_TOO_LARGE",
        "BODY_TOO_LARGE",
        "RESULT_TOO_LARGE",
        "GRAPHQL_INVALID",
        "REQUEST_INVALID",
        "TIMEOUT",
        "BUSY",
        "NO_DATA",
        "CODES_INVALID",
    ];
    let served = Served::start(Steady, ServiceOptions::default());
    let seeds = [
        json!({ "query": ranking(", sortBy: \"Close / Close[-1]\", limit: 3", "date a: code ...F")
            + " fragment F on DailyRankingItem { rank }" }),
        json!({ "query": "query A($n: Int) { stockRankingRange(fromDate: \"2024-01-01\", toDate: \
            \"2024-02-01\", limit: $n, order: \"asc\") { code } }", "variables": { "n": 2 } }),
        json!({ "query": "{ __schema { types { name fields { name } } } checkFormula(sortBy: \"-(1\") { message } }" }),
    ]
    .map(|seed| seed.to_string());
    let mut seeded = Seeded(20_260_104);
    let mut connection = Connection::open(served.address).unwrap();
    let (mut good, mut refused) = (0, 0);
    for round in 0..5_000 {
        // Half of them inside the GraphQL text, so that they get past the JSON.
        let seed = &seeds[round % seeds.len()];
        let body = if round % 2 == 0 {
            let mut body: Value = serde_json::from_str(seed).unwrap();
            let text = mutated(body["query"].as_str().unwrap(), &mut seeded);
            body["query"] = String::from_utf8_lossy(&text).into();
            body.to_string().into_bytes()
        } else {
            mutated(seed, &mut seeded)
        };
        let shown = String::from_utf8_lossy(&body).into_owned();
        connection.send("POST /graphql", &[JSON], &body).unwrap();
        let reply = connection.receive().unwrap();
        let answer: Value = serde_json::from_slice(&reply.body)
            .unwrap_or_else(|error| panic!("{round}: {error}: {shown}\n{}", reply.text()));
        let is_none = answer["errors"][0]["extensions"]["code"] == "REQUEST_INVALID";
        assert_eq!(reply.status, if is_none { 400 } else { 200 }, "{round}: {shown}");
        let Some(errors) = answer["errors"].as_array() else {
            good += 1;
            continue;
        };
        refused += 1;
        for error in errors {
            let code = error["extensions"]["code"].as_str().unwrap_or("none");
            assert!(CODES.contains(&code), "{round}: {code}: {shown}");
            let message = error["message"].as_str().unwrap();
            assert!(message.chars().count() <= 401, "{round}: {message}");
            for secret in ["SELECT", "POSITIONAL", "src/", ".rs", "panicked", ".db"] {
                assert!(!message.contains(secret), "{round}: {message}");
            }
        }
    }
    assert!(good > 50 && refused > 2_000, "{good} good, {refused} refused");
    assert!(served.log().is_empty());
}
