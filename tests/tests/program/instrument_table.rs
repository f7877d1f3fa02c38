//! Lots and price steps that change inside a run's dates are those of the day, from the folder's
//! instrument table to the fills and the log; and how the vendor's lists and calendar get into the folder.

use std::fs;

use serde_json::{Value, json};
use tests::user_folder::UserFolder;

use crate::update_fixture::{Server, command, no_key_in, query, texts};

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
        let wanted = "markets_calendar.csv, line 1: there are no rows below the header line; \
                      remove the file and fetch it again";
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

/// Lists of issues of two dates, and a calendar in which 0 means open.
fn listings(path: &str) -> Option<(u16, String)> {
    let issue = |date: &str, code: &str, scale: &str, market: &str, product: &str| json!({ "Date": date, "Code": code, "CoName": "Name", "ScaleCat": scale, "Mkt": market, "ProdCat": product });
    if path.starts_with("/v2/markets/calendar") {
        let day = |day: u32| {
            // On the 9th it stays closed, which no law of holidays tells.
            let is_open = !matches!(day, 1..=5 | 9 | 11..=13 | 18 | 19 | 25 | 26);
            let division = if is_open { "0" } else { "1" };
            json!({ "Date": format!("2025-01-{day:02}"), "HolDiv": division })
        };
        let days: Vec<Value> = (1..=31).map(day).collect();
        return Some((200, json!({ "data": days }).to_string()));
    }
    let scale = match query(path, "date") {
        Some("20250106") => ("2025-01-06", "TOPIX Mid400"),
        Some("20250107") => ("2025-01-07", "TOPIX Mid400"),
        Some("20250108") => ("2025-01-08", "TOPIX Small 1"),
        Some("20250131") => ("2025-01-31", "TOPIX Small 1"),
        _ => return Some((210, String::new())),
    };
    let rows = [
        issue(scale.0, "72030", scale.1, "0111", "011"),
        issue(scale.0, "13060", "-", "0109", "014"),
        issue(scale.0, "89510", "-", "0109", "013"),
    ];
    Some((200, json!({ "data": rows }).to_string()))
}

#[test]
fn lists_of_issues_say_lots_and_price_steps_to_runs() {
    let server = Server::start(listings);
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --instrument 1306.TSE --days 4 --trades-per-day 200",
    );
    let said = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = command(user.folder(), &arguments);
        command.current_dir(user.folder()).env("KUMIKI_CACHE", user.path("cache"));
        let output = command.output().unwrap();
        no_key_in(user.folder(), &output);
        (output.status.code().unwrap(), texts(&output))
    };
    let vendor = format!("--vendor-url http://{}/v2 --vendor-rate 60000", server.address);
    let (code, (_, errors)) = said("data instruments data --offline");
    assert!(code == 1 && errors.contains("leave out --offline to fetch some"), "{errors}");
    let (code, (text, errors)) = said(&format!(
        "data instruments data --date 2025-01-06 --date 2025-01-08 --date 2025-01-09 {vendor}"
    ));
    assert_eq!(code, 0, "{errors}");
    assert!(text.starts_with("4 rows from 2 lists in data/instruments.csv; 0 edited"), "{text}");
    assert!(errors.contains("the vendor has no list of 2025-01-09"), "{errors}");
    assert_eq!(server.take_asked().len(), 3);
    // Of a day on which the exchange is closed the vendor would answer the next one's list.
    let (code, (text, errors)) =
        said(&format!("data instruments closed --date 2025-01-04 --date 2025-01-05 {vendor}"));
    assert!(code == 0 && text.starts_with("3 rows from 1 lists"), "{text}{errors}");
    let note = "the exchange is closed on 2025-01-05, so the list of 2025-01-06 is fetched";
    assert!(errors.contains(note), "{errors}");
    let asked = server.take_asked();
    assert!(matches!(&asked[..], [one] if query(one, "date") == Some("20250106")), "{asked:?}");
    // The month's end is asked for, and the day between two lists that differ; then nothing is open.
    for wanted in [&["20250131", "20250107"][..], &[]] {
        let (code, (text, _)) = said(&format!("data instruments data {vendor}"));
        assert!(code == 0 && text.starts_with("4 rows from 4 lists"), "{text}");
        let asked = server.take_asked();
        let asked: Vec<&str> = asked.iter().map(|path| query(path, "date").unwrap()).collect();
        assert_eq!(asked, wanted);
    }
    let table = fs::read_to_string(user.path("data/instruments.csv")).unwrap();
    assert!(table.contains("\n89510,Name,0109,1,normal,2025-01-06,"), "a REIT is known: {table}");

    let run = "replay run buy-and-hold --data data --quiet --instrument";
    let (code, (text, errors)) = said(&format!("{run} 7203.TSE"));
    assert_eq!(code, 0, "{errors}");
    let wanted = "note: 7203.TSE: lot 100, from instruments.csv; ticks topix500, from instruments.csv; \
                  lot 100 and ticks normal from 2025-01-08 on";
    assert!(text.contains(wanted), "{text}");
    let (code, (_, errors)) = said(&format!("{run} 1306.TSE"));
    assert_eq!(code, 1);
    assert!(
        errors.contains("1306.TSE has no lot and tick table in data/instruments.csv"),
        "{errors}"
    );
    // Each choice that it names is taken.
    let choices = errors.split("or give it: ").nth(1).unwrap().lines().next().unwrap();
    let choices = choices.split(", or ").map(|choice| choice.split(" (").next().unwrap());
    let choices: Vec<&str> = choices.collect();
    assert_eq!(choices.len(), 3, "{errors}");
    for choice in choices {
        let (code, (text, errors)) = said(&format!("{run} 1306.TSE {choice}"));
        assert!(code == 0 && text.contains("as asked for; ticks"), "{choice}: {errors}");
    }
    let (code, (text, errors)) =
        said(&format!("{run} 1306.TSE --lot 1306.TSE=10 --ticks 1306.TSE=topix500"));
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.contains("1306.TSE: lot 10, as asked for; ticks topix500, as asked for"),
        "{text}"
    );
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --lot 1306.TSE=10"));
    assert_eq!(code, 2);
    assert!(errors.contains("--lot names 1306.TSE, which is not among"), "{errors}");
    let (code, (text, errors)) =
        said(&format!("{run} 1306.TSE --lot 1306=10 --ticks 13060=topix500"));
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.contains("1306.TSE: lot 10, as asked for; ticks topix500, as asked for"),
        "{text}"
    );
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --ticks 1306=etf"));
    assert_eq!(code, 2);
    let unknown = "--ticks names 1306, which is not among the instruments of this run (7203.TSE)";
    assert!(errors.contains(unknown), "{errors}");
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --lot 130=10"));
    assert!(code == 2 && errors.contains("130"), "{errors}");
    let path = user.path("data/instruments.csv");
    let table = fs::read_to_string(&path).unwrap();
    fs::write(&path, table.replace("0109,,,", "0109,10,topix500,")).unwrap();
    let (code, (text, errors)) = said("data instruments data --offline");
    assert!(code == 0 && text.contains("1 edited by hand"), "{text}{errors}");
    let (code, (text, _)) = said(&format!("{run} 1306.TSE"));
    assert!(code == 0 && text.contains("lot 10, from instruments.csv; ticks topix500"), "{text}");
}

#[test]
fn the_exchange_s_calendar_is_kept_and_held_against_the_data() {
    let server = Server::start(listings);
    let user = UserFolder::empty();
    user.good("data sample --out data --instrument 7203.TSE --days 8 --trades-per-day 200");
    let table = user.good("data check data");
    assert!(!table.contains("on which the exchange is closed"), "samples know holidays: {table}");
    let vendor = format!("http://{}/v2", server.address);
    let arguments = ["data", "calendar", "data", "--vendor-url", &vendor];
    let output = command(user.folder(), &arguments).current_dir(user.folder()).output().unwrap();
    let (text, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    assert!(text.starts_with("18 business days from 2025-01-01 to 2025-01-31"), "{text}");
    let run = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet";
    // Its rows make it a day, and that is told once.
    let note = "rows of days on which the exchange is closed: 2025-01-09";
    let told = user.good(&format!("{run} --out run"));
    assert_eq!(told.matches(note).count(), 1, "{told}");
    let days = fs::read_to_string(user.path("run/days.csv")).unwrap();
    assert!(days.contains("2025-01-09"), "{days}");
    let table = user.good("data check data");
    assert!(
        table.contains("1 days with rows on which the exchange is closed (2025-01-09)"),
        "{table}"
    );
    assert!(table.lines().any(|line| line.starts_with("odd ")), "{table}");
    let told = user.good(&format!("{run} --to 2025-01-08"));
    assert!(!told.contains(note), "{told}");
}
