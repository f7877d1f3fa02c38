//! A market that trade files or a walk of prices feed.

use std::collections::BTreeMap;
use std::path::Path;

use marketdata::{SampleCodes, SampleSpec, write_sample};
use serde_json::{Value, json};
use sim::local_broker::limits::DAYS_MAX;
use sim::local_broker::{Config, FeedStart, FirstDay, Server, Source};

use crate::client::{Client, start_with, wait};

fn walk(seed: u64, days: u32) -> Config {
    Config {
        source: Source::Walk { seed, days, mean_gap_ms: 60_000 },
        speed: "max".parse().unwrap(),
        first_day: FirstDay::On("2026-05-08".parse().unwrap()),
        has_rate_limit: false,
        ..Config::default()
    }
}

fn files(folder: &Path, first_day: FirstDay) -> Config {
    let spec = SampleSpec {
        seed: 7,
        start: "2025-01-06".parse().unwrap(),
        days: 2,
        codes: SampleCodes::These(
            ["72030", "130A0"].map(|code| domain::VendorCode::new(code).unwrap()).to_vec(),
        ),
        trades_per_code_day: 400,
    };
    let data = folder.join("data");
    write_sample(&data, &spec).unwrap();
    let usual = Config::default();
    let (folder, cache) = (data, folder.join("cache"));
    Config {
        issues: usual.issues[..2].to_vec(),
        source: Source::Files { folder, cache, start: None, end: None },
        first_day,
        ..walk(1, 1)
    }
}

/// What a client finds that counts volumes by itself.
#[derive(Debug, Default, PartialEq)]
struct Found {
    frames: u64,
    volume: f64,
    trades: u64,
    last: BTreeMap<String, f64>,
    /// The frame before had no number.
    is_unopened: bool,
    /// First numbers of a day that were no trade, and those that were the opening.
    first: u64,
    openings: u64,
}

/// Reads until the market is over and every frame is there.
fn follow(server: &Server, symbols: &[&str]) -> (BTreeMap<String, Found>, Value, Vec<Value>) {
    let client = Client::logged_in(server);
    client.put("/register", symbols);
    let mut push = client.push();
    let (mut all, mut frames): (BTreeMap<String, Found>, _) = (BTreeMap::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait(server, "the end", |view| view["market_over"] == true);
            server.push(&json!({ "Symbol": "end" })).unwrap();
        });
        loop {
            let frame = push.frame();
            let symbol = frame["Symbol"].as_str().unwrap().to_owned();
            if symbol == "end" {
                break;
            }
            let found = all.entry(symbol).or_default();
            found.frames += 1;
            let unopened =
                std::mem::replace(&mut found.is_unopened, frame["TradingVolume"].is_null());
            if let Some(volume) = frame["TradingVolume"].as_f64() {
                let date: String = frame["CurrentPriceTime"].as_str().unwrap()[..10].to_owned();
                let last = found.last.insert(date, volume);
                found.openings += u64::from(last.is_none() && unopened);
                found.first += u64::from(last.is_none() && !unopened);
                if let Some(last) = last.or(unopened.then_some(0.0))
                    && volume > last
                {
                    found.volume += volume - last;
                    found.trades += 1;
                }
            }
            frames.push(frame);
        }
    });
    (all, server.view(), frames)
}

fn holds(found: &BTreeMap<String, Found>, view: &Value, days: u64) {
    for (symbol, found) in found {
        let truth = &view["symbols"][symbol];
        let number = |name: &str| truth[name].as_u64().unwrap();
        assert_eq!(found.frames, number("frames"), "{symbol}");
        assert_eq!(found.volume, number("pushed_volume") as f64, "{symbol}");
        // The first number of a day is no trade, unless a frame without one came before it.
        assert_eq!(found.first + found.openings, days, "{symbol}");
        assert_eq!(found.trades + found.first, number("trades"), "{symbol}");
        assert_eq!(found.last.values().sum::<f64>(), number("volume") as f64, "{symbol}");
    }
}

#[test]
fn a_walk_is_found_by_a_client_that_counts() {
    let server = start_with(walk(3, 2));
    let (found, view, frames) = follow(&server, &["7203", "9984"]);
    assert_eq!(found.len(), 2);
    holds(&found, &view, 2);
    // About 40 of 100 frames change the book only.
    let trades: u64 = found.values().map(|found| found.trades).sum();
    let share = 1.0 - trades as f64 / frames.len() as f64;
    assert!((0.3..0.5).contains(&share), "{share}");
    // From Friday to Monday, never in the lunch break.
    assert_eq!(view["day"], "2026-05-11");
    let times: Vec<&str> =
        frames.iter().filter_map(|frame| frame["CurrentPriceTime"].as_str()).collect();
    assert!(
        times[0].starts_with("2026-05-08T") && times.last().unwrap().starts_with("2026-05-11T")
    );
    for time in times {
        let of_day = &time[11..16];
        assert!(
            ("09:00".."15:30").contains(&of_day) && !("11:30".."12:30").contains(&of_day),
            "{time}"
        );
    }
    assert_eq!(view["counts"]["lost_frames"], 0);
}

#[test]
fn a_walk_is_the_same_for_the_same_seed() {
    let told = |seed| follow(&start_with(walk(seed, 1)), &["7203"]).2;
    assert_eq!(told(5), told(5));
    assert_ne!(told(5), told(6));
}

#[test]
fn trades_of_files_are_pushed_day_by_day() {
    let folder = tempfile::tempdir().unwrap();
    let first = FirstDay::On("2026-05-08".parse().unwrap());
    let server = start_with(files(folder.path(), first));
    let (found, view, frames) = follow(&server, &["7203", "130A"]);
    holds(&found, &view, 2);
    assert_eq!(view["day"], "2026-05-11");
    assert!(frames.len() > 1_000);
    let client = Client::logged_in(&server);
    assert_eq!(client.get("/symbol/7261@1").status, 400);
    server.control(&json!({ "do": "day" })).unwrap();
}

#[test]
fn days_that_are_given_are_of_a_time_that_fits() {
    let on =
        |date: &str| Config { first_day: FirstDay::On(date.parse().unwrap()), ..Config::default() };
    for wrong in ["0001-01-01", "1989-12-29", "2201-01-05", "2554-07-21", "9999-12-31"] {
        let why = Server::start(on(wrong)).unwrap_err().to_string();
        assert!(why.contains("is not a day of the years 1990 to 2200"), "{wrong}: {why}");
    }
    start_with(on("1990-01-04"));
    let last = start_with(on("2200-12-31"));
    for command in [json!({ "do": "day" }), json!({ "do": "day", "date": "9999-12-31" })] {
        assert!(last.control(&command).unwrap_err().contains("of the years"), "{command}");
    }
    assert_eq!(last.view()["day"], "2200-12-31");
}

#[test]
fn days_can_be_those_of_the_files_and_be_held() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        begins: FeedStart::AtOnce,
        holds_each_day: true,
        ..files(folder.path(), FirstDay::OfFiles)
    };
    let server = start_with(config);
    let view = wait(&server, "the first day", |view| view["market_runs"] == false);
    assert_eq!((&view["day"], &view["market_over"]), (&json!("2025-01-06"), &json!(false)));
    assert!(server.control(&json!({ "do": "day" })).unwrap_err().contains("own days"));
    server.control(&json!({ "do": "market", "run": true })).unwrap();
    let view = wait(&server, "the second day", |view| view["market_over"] == true);
    assert_eq!(view["day"], "2025-01-07");
}

#[test]
fn a_market_begins_as_it_was_told() {
    let held = start_with(Config { begins: FeedStart::Held, ..walk(1, 1) });
    let client = Client::logged_in(&held);
    client.put("/register", &["7203"]);
    let mut push = client.push();
    wait(&held, "a client of the push", |view| view["push_open"] == true);
    assert_eq!(held.view()["symbols"]["7203"]["trades"], 0);
    held.control(&json!({ "do": "market", "run": true })).unwrap();
    push.frame();
    // Nobody waits for anything.
    let at_push = start_with(walk(1, 1));
    let client = Client::logged_in(&at_push);
    let _push = client.push();
    wait(&at_push, "a client of the push", |view| view["push_open"] == true);
    assert_eq!(at_push.view()["market_runs"], false);
    client.put("/register", &["7203"]);
    wait(&at_push, "trades", |view| view["symbols"]["7203"]["trades"].as_u64() > Some(0));
}

#[test]
fn a_paced_walk_can_be_held_and_its_day_ended() {
    let config = Config {
        begins: FeedStart::AtOnce,
        speed: "1000".parse().unwrap(),
        source: Source::Walk { seed: 1, days: 2, mean_gap_ms: 100 },
        ..walk(1, 1)
    };
    let server = start_with(config);
    let traded = |view: &Value| view["symbols"]["7203"]["trades"].as_u64().unwrap();
    let view = wait(&server, "trades", |view| traded(view) > 3);
    assert_eq!(view["day"], "2026-05-08");
    server.control(&json!({ "do": "market", "run": false })).unwrap();
    server.control(&json!({ "do": "day", "date": "2026-05-12" })).unwrap();
    let held = traded(&server.view());
    server.control(&json!({ "do": "market", "run": true })).unwrap();
    let view = wait(&server, "trades of another day", |view| traded(view) > held + 3);
    assert_eq!(view["day"], "2026-05-12");
}

#[test]
fn what_cannot_be_played_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("nothing");
    let source = Source::Files { cache: nothing.clone(), folder: nothing, start: None, end: None };
    assert!(Server::start(Config { source, ..walk(1, 1) }).is_err());
    for days in [0, DAYS_MAX + 1] {
        assert!(Server::start(walk(1, days)).unwrap_err().to_string().contains("days"));
    }
}
