//! Fifty runs that are drawn from seeds, with their digests as they were recorded: strategies,
//! granularities, fill models and windows. A digest that changes is a change of results.
//!
//! `KUMIKI_BLESS=1` records them anew, which only a change that is meant to change results may do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::Random;
use serde_json::Value;
use tests::user_folder::UserFolder;
use tests::{built, workspace_root};

const RUNS: u64 = 50;

/// Strategies with their parameters; `at random` ones get a seed of their own.
const STRATEGIES: [(&str, &str); 4] = [
    ("sma-cross", "--param fast=3 --param slow=11"),
    ("buy-and-hold", ""),
    ("trades-at-random", "--param every=17"),
    ("orders-every-tick", ""),
];

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.place(of.len())]
}

/// The command of a run.
fn arguments(seed: u64) -> String {
    let mut random = Random::new(&[seed, 50]);
    let (name, parameters) = STRATEGIES[random.place(STRATEGIES.len())];
    let strategy = match name {
        "sma-cross" | "buy-and-hold" => name.to_owned(),
        guest => built::test_guest(guest).display().to_string(),
    };
    let own =
        if name == "trades-at-random" { format!("--param seed={seed}") } else { String::new() };
    let instruments = pick(&mut random, &["", "--instrument 9984.TSE"]);
    let granularity = pick(&mut random, &["trade", "trade", "minute", "day"]);
    let execution = pick(&mut random, &["strict", "realistic", "optimistic"]);
    let more = [
        pick(&mut random, &["", "--latency 3ms", "--latency 2s"]),
        pick(&mut random, &["", "--queue-ahead 300", "--queue-ahead endless"]),
        pick(&mut random, &["", "--participation 30"]),
        pick(&mut random, &["", "--slippage-ticks 2"]),
        pick(&mut random, &["", "--commission 450ppm,min=50,max=1000", "--commission order:100"]),
        pick(&mut random, &["--window 1", "--window 64", "--window 1024", "--window 65536"]),
    ];
    format!(
        "replay run {strategy} {parameters} {own} --data data --instrument 7203.TSE {instruments} \
         --granularity {granularity} --execution {execution} {} --cash 3000000 \
         --guest-limit folder=4GiB --quiet --format json",
        more.join(" ")
    )
}

fn recorded_in() -> PathBuf {
    workspace_root().join("tests/golden/run_digests.json")
}

#[test]
fn seeded_runs_have_the_digests_that_were_recorded() {
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --instrument 9984.TSE --days 4 --seed 101 \
         --trades-per-day 2000",
    );
    let mut found = BTreeMap::new();
    let (mut fills, mut rejected) = (0, 0);
    for seed in 0..RUNS {
        let arguments = arguments(seed);
        let said = user.said(&arguments);
        assert!(matches!(said.code, 0 | 3), "seed {seed}: {arguments}\n{}", said.errors);
        let whole: Value = serde_json::from_str(&said.out).unwrap();
        fills += whole["summary"]["fills"].as_u64().unwrap();
        rejected += whole["summary"]["orders_rejected"].as_u64().unwrap();
        let digest = whole["manifest"]["event_log_digest"].as_str().unwrap();
        let records = whole["manifest"]["event_log_records"].as_u64().unwrap();
        found.insert(format!("{seed:02}"), format!("{digest} {records}"));
    }
    assert!(
        fills > 1_000 && rejected > 100,
        "{fills} fills, {rejected} rejections: runs are alive"
    );
    if std::env::var_os("KUMIKI_BLESS").is_some() {
        std::fs::write(recorded_in(), serde_json::to_string_pretty(&found).unwrap() + "\n")
            .unwrap();
    }
    let text = std::fs::read_to_string(recorded_in()).unwrap();
    let recorded: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
    for (seed, digest) in &found {
        assert_eq!(
            recorded.get(seed),
            Some(digest),
            "seed {seed}: {}",
            arguments(seed.parse().unwrap())
        );
    }
    assert_eq!(recorded.len(), found.len());
}
