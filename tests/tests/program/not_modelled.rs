//! What results leave out, and what the exchange rejected by rule, is said wherever a result is.

use exchange::NOT_MODELLED;
use serde_json::Value;
use tests::user_folder::UserFolder;

const RUN: &str = "replay run sma-cross --data data --instrument 7203.TSE --quiet";

/// A text without its line ends, which depend on the width of a terminal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str) {
    assert!(one_line(text).contains(NOT_MODELLED), "{text}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_not_modelled_is_said_with_every_result() {
    for word in ["Dividends", "special quote inside a session", "Closing special quotes"] {
        assert!(NOT_MODELLED.contains(word), "{word}");
    }
    let user = UserFolder::with_sample(4, 600);
    let file = |name: &str| std::fs::read_to_string(user.path(name)).unwrap();
    says(&user.good(&format!("{RUN} --out run")));
    says(&file("run/report.html"));
    says(&file("run/manifest.json"));
    let run = json(&user.good(&format!("{RUN} --format json")));
    assert_eq!(run["manifest"]["rules"]["NOT MODELLED"], NOT_MODELLED);

    says(&user.good("replay compare run run --out compare.html"));
    says(&file("compare.html"));
    let compared = json(&user.good("replay compare run run --format json"));
    assert_eq!(compared["runs"][1]["not_modelled"], NOT_MODELLED);

    let sweep = "replay sweep sma-cross --data data --instrument 7203.TSE --quiet --grid fast=2,3 \
                 --grid slow=10";
    says(&user.good(&format!("{sweep} --out sweep")));
    says(&file("sweep/sweep.html"));
    assert_eq!(json(&file("sweep/sweep.json"))["rules"]["NOT MODELLED"], NOT_MODELLED);
    let again = json(&user.good(&format!("{sweep} --out sweep --format json")));
    assert_eq!(again["sweep"]["rules"]["NOT MODELLED"], NOT_MODELLED);
    let f11 = again["sweep"]["rules"]["F11"].as_str().unwrap();
    assert!(f11.ends_with("Same-day round trips: refuse."), "{f11}");
}

#[test]
fn orders_that_are_same_day_round_trips_are_counted() {
    let user = UserFolder::with_sample(3, 2_000);
    let run = format!("{RUN} --param fast=3 --param slow=9");
    // Money for little more than a lot, so that the same money would buy again and again.
    let text = user.good(&format!("{run} --cash 160000 --out refuse"));
    let orders = std::fs::read_to_string(user.path("refuse/orders.csv")).unwrap();
    let rejected = orders.lines().filter(|line| line.contains("SAKIN_KESSAI: ")).count();
    assert!(rejected > 1, "{text}");
    let note = format!("same-day round trips (F11): {rejected} orders were rejected");
    assert!(text.contains(&note), "{text}");
    for file in ["refuse/manifest.json", "refuse/report.html"] {
        let text = std::fs::read_to_string(user.path(file)).unwrap();
        assert!(text.contains(&note), "{file}");
    }
    let text = user.good(&format!("{run} --cash 160000 --same-day-round-trips allow"));
    assert!(!text.contains("SAKIN_KESSAI") && !text.contains("(F11): "), "{text}");
}
