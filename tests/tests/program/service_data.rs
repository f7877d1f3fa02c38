//! The ranking service without data, with its first data, and with a data folder that was made anew.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tests::built;
use tests::http::{self, Reply};
use tests::serving::Serving;

/// Makes daily prices in a folder.
fn sample(folder: &Path, days: u32, seed: u32) {
    let mut command = Command::new(built::kumiki());
    command.args(["data", "sample", "--daily", "--codes", "6"]);
    command.args(["--days", &days.to_string(), "--seed", &seed.to_string()]);
    let output = command.arg("--data-dir").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn health(serving: &Serving) -> (Reply, Value) {
    let reply = http::request(serving.address, "GET /health", &[], &[]);
    let told = serde_json::from_slice(&reply.body).unwrap();
    (reply, told)
}

/// Waits until the service has so many days.
fn wait_for_days(serving: &Serving, days: u32) -> Value {
    for _ in 0..6_000 {
        let (_, told) = health(serving);
        if told["days"] == days {
            return told;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{days} days never came: {}", health(serving).1);
}

const RANKING: &str = "{ stockRankingRange(fromDate: \"2000-01-01\", toDate: \"2030-01-01\", \
                       sortBy: \"Close\") { date code close rank } dataset { days lastDate } }";

/// Rows and days of a ranking over all days.
fn rows(serving: &Serving) -> (Value, Value) {
    let answer = serving.ask(RANKING);
    (answer["data"]["stockRankingRange"].clone(), answer["data"]["dataset"].clone())
}

#[test]
fn a_service_starts_without_data_and_takes_up_what_comes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("not").join("there");
    let serving = Serving::start(&data, &[]);
    let (reply, told) = health(&serving);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("10")));
    assert_eq!((&told["status"], &told["snapshot_last_date"]), (&json!("no data"), &Value::Null));
    let body = json!({ "query": RANKING }).to_string();
    let refused = http::graphql(serving.address, &body);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("10")));
    for text in [told["message"].as_str().unwrap(), &refused.text()] {
        assert!(text.contains("`kumiki update`"), "{text}");
    }
    assert!(refused.text().contains("\"NO_DATA\""), "{}", refused.text());
    // What needs no data is there.
    let dataset = serving.ask("{ schemaVersion dataset { days lastDate } formulas { name } }");
    assert_eq!(dataset["data"]["dataset"], json!({ "days": 0, "lastDate": null }));
    assert_eq!(http::request(serving.address, "GET /", &[], &[]).status, 200);
    let last_date = || serving.metric("kumiki_ranking_snapshot_last_date").unwrap();
    assert_eq!(last_date(), "0");

    sample(&data, 30, 1);
    let told = wait_for_days(&serving, 30);
    assert_eq!(told["status"], "ok");
    assert_eq!(told.get("message"), None);
    let (first, dataset) = rows(&serving);
    assert!(first.as_array().unwrap().len() > 100, "{first}");
    assert_eq!((&dataset["days"], &dataset["lastDate"]), (&json!(30), &told["snapshot_last_date"]));
    let seconds: i64 = last_date().parse().unwrap();
    // Midnight in Japan is 15:00 of the day before.
    assert_eq!(seconds % 86_400, 15 * 3_600);
}

#[cfg(unix)]
#[test]
fn a_data_folder_that_was_made_anew_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    sample(&data, 30, 1);
    let serving = Serving::start(&data, &[]);
    let (old, _) = rows(&serving);
    fs::remove_dir_all(&data).unwrap();
    // What is gone from the disk is still answered.
    assert_eq!(rows(&serving).0, old);
    sample(&data, 30, 2);
    // The same number and the same days; only the prices are others.
    let mut new = rows(&serving).0;
    for _ in 0..6_000 {
        if new != old {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        new = rows(&serving).0;
    }
    assert_ne!(new, old, "the new prices were never taken up");
    let (_, told) = health(&serving);
    assert_eq!((&told["snapshot"], &told["days"]), (&json!(1), &json!(30)));
    let fresh = Serving::start(&data, &[]);
    assert_eq!(rows(&fresh).0, new);
}

#[test]
fn the_schema_states_the_limits_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ["--max-limit", "7", "--max-lag", "1300", "--timeout", "2s", "--max-aliases", "3"];
    let serving = Serving::start(folder.path(), &limits);
    let reply = http::request(serving.address, "GET /schema.graphql", &[], &[]);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = flat(&reply.text());
    let introspection = "{ __schema { description queryType { description fields { description \
                         args { description } } } } t: __type(name: \"Query\") { description } }";
    let described = flat(&serving.ask(introspection).to_string().replace("\\n", " "));
    for part in ["1 to 7.", "N from 1 to 1,300", "2 seconds", "3 uses of stockRankingRange"] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
        assert!(described.contains(part), "`{part}` is not in\n{described}");
    }
    assert!(!text.contains("{max-") && !described.contains("{max-"), "{described}");
}

#[test]
fn names_of_a_proxy_can_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &["--allow-host", "rank.example"]);
    let status =
        |host: &str| http::request(serving.address, "GET /metrics", &[("Host", host)], &[]).status;
    assert_eq!((status("rank.example"), status("evil.example")), (200, 421));
}
