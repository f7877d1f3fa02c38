//! Lots and price steps that change inside a run's dates are those of the day, from the folder's
//! instrument table to the fills and the log.

use std::fs;

use serde_json::Value;
use tests::user_folder::UserFolder;

/// Midnight in Japan at which 8 January 2025 begins.
const CHANGE: u64 = 1_736_262_000_000_000_000;

fn rows(user: &UserFolder, name: &str) -> Vec<Value> {
    serde_json::from_slice(&fs::read(user.path("run").join(name)).unwrap()).unwrap()
}

fn shares(fill: &Value) -> u64 {
    let quantity = &fill["quantity"];
    quantity.as_u64().or_else(|| quantity.as_str()?.parse().ok()).unwrap()
}

#[test]
fn a_lot_that_changes_inside_a_run_is_that_of_the_day() {
    let user = UserFolder::with_sample(4, 3_000);
    let table = "code,name,market,lot,ticks,from,to\n\
                 72030,Mine,0111,1000,normal,,2025-01-07\n\
                 72030,Mine,0111,100,topix500,2025-01-08,\n";
    fs::write(user.path("data/instruments.csv"), table).unwrap();
    let text = user.good(
        "replay run sma-cross --param fast=3 --param slow=9 --param quantity=1000 --data data \
         --instrument 7203.TSE --quiet --same-day-round-trips allow --cash 100000000 --out run",
    );
    let note = "7203.TSE: lot 1000, from instruments.csv; ticks normal, from instruments.csv; lot 100 \
                and ticks topix500 from 2025-01-08 on";
    assert!(text.contains(note), "{text}");
    let fills = rows(&user, "fills.json");
    let time = |fill: &&Value| fill["ts_event_ns"].as_u64().unwrap();
    let (before, after): (Vec<&Value>, Vec<&Value>) =
        fills.iter().partition(|fill| time(fill) < CHANGE);
    assert!(before.len() > 3 && after.len() > 3, "{} and {}", before.len(), after.len());
    assert!(before.iter().all(|fill| shares(fill).is_multiple_of(1_000)), "{before:#?}");
    assert!(after.iter().all(|fill| shares(fill).is_multiple_of(100)));
    assert!(
        after.iter().any(|fill| !shares(fill).is_multiple_of(1_000)),
        "in parts of the new lot"
    );
    let log = rows(&user, "log.json");
    let told = log
        .iter()
        .find(|line| line["message"] == "7203.TSE: lot 100, ticks topix500 from 2025-01-08 on");
    assert_eq!(told.unwrap()["ts_event_ns"], CHANGE);
}

#[test]
fn a_calendar_without_a_day_is_told_with_its_file_and_line() {
    let user = UserFolder::with_sample(1, 200);
    fs::write(user.path("data/markets_calendar.csv"), "Date,HolDiv\n").unwrap();
    let run = "replay run sma-cross --data data --instrument 7203.TSE --quiet";
    for command in [run, "data check data"] {
        let (code, errors) = user.bad(command);
        let wanted = "markets_calendar.csv, line 1: there is no day below the names of the columns; \
                      remove the file and fetch it anew";
        assert!(code == 1 && errors.contains(wanted), "{command}: {errors}");
    }
}

#[test]
fn lots_that_differ_stand_in_the_summary_with_their_instruments() {
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --instrument 9984.TSE --days 1 \
         --trades-per-day 300",
    );
    let run =
        "replay run buy-and-hold --data data --instrument 7203.TSE --instrument 9984.TSE --quiet";
    let text = user.good(&format!("{run} --lot 9984=10 --ticks 7203=etf --ticks normal"));
    assert!(text.contains(", ticks etf (9984.TSE: normal), lot 100 (9984.TSE: 10)"), "{text}");
    assert!(user.good(&format!("{run} --ticks normal")).contains(", ticks normal, lot 100\n"));
}
