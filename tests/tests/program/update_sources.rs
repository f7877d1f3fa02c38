//! Several sources through the program: which row stays, what is told of changes, how the web broker is asked, and a
//! split on the day of an outage.

use std::process::Command;

use serde_json::{Value, json};
use venues::web_broker::{NUMBERS_FILE, RequestNumbers};

use crate::update_fixture::{
    Fixture, Market, Run, command, dashed, number, own_number, query, text, texts,
};

/// The secret part of the web broker's virtual addresses.
const SESSION: &str = "session-of-a-day-57110815";
const PASSWORD: &str = "canary-password-90210";
const NOTICE: &str = "a login ends every other session of the same user";

/// The days that the other sources have.
const DAYS: [&str; 3] = ["20251215", "20251216", "20251217"];

/// The other sources: each has every issue.
fn others(path: &str) -> String {
    if path.starts_with("/e_api/") { broker(path) } else { public(path) }
}

/// A volume that no other issue has.
fn volume(code: &str) -> u32 {
    7_000 + own_number(&code[..4])
}

/// No day has the volumes of another.
fn day_number(day: &str) -> u32 {
    day[6..].parse().unwrap()
}

/// The public source, at 999 yen.
fn public(path: &str) -> String {
    let volume = volume(query(path, "s").unwrap());
    let asked = query(path, "d1").unwrap()..=query(path, "d2").unwrap();
    let rows = DAYS.iter().filter(|day| asked.contains(*day));
    let rows: String = rows
        .map(|day| format!("{},999,1001,998,999,{}\n", dashed(day), volume + day_number(day)))
        .collect();
    format!("Date,Open,High,Low,Close,Volume\n{rows}")
}

/// The web broker's answers about a session; `None` to other questions.
fn session(path: &str) -> Option<String> {
    if path.contains("CLMAuthLogoutRequest") {
        return Some(json!({ "p_errno": "0", "sResultCode": "0" }).to_string());
    }
    if !path.contains("CLMAuthLoginRequest") {
        return None;
    }
    // Its own port stands in the path, where the fixture has put it.
    let port = path.trim_start_matches("/e_api/").split('/').next().unwrap();
    let url = |scheme: &str| format!("{scheme}://127.0.0.1:{port}/e_api/{port}/{SESSION}/");
    let answer = json!({
        "p_errno": "0", "sResultCode": "0", "sUrlRequest": url("http"),
        "sUrlMaster": url("http"), "sUrlPrice": url("http"), "sUrlEvent": url("http"),
        "sUrlEventWebSocket": url("ws"),
    });
    Some(answer.to_string())
}

/// The web broker: the same prices on Tuesday, and a split in two on Wednesday.
fn broker(path: &str) -> String {
    if let Some(answer) = session(path) {
        return answer;
    }
    let code = path.split("%22sIssueCode%22%3A%22").nth(1).unwrap().split("%22").next().unwrap();
    let row = |date: &str, price: &str, split: [&str; 3]| {
        let volume = (volume(code) + day_number(date)).to_string();
        let [high, low] = if price.starts_with('9') {
            ["1001.0000", "998.0000"]
        } else {
            ["501.0000", "499.0000"]
        };
        json!({ "sDate": date, "pDOP": price, "pDHP": high, "pDLP": low, "pDPP": price, "pDV": volume,
                "pSPUO": split[0], "pSPUC": split[1], "pSPUK": split[2] })
    };
    let rows = [
        row(DAYS[1], "999.0000", ["", "", ""]),
        row(DAYS[2], "500.0000", ["1.0000", "2.0000", "0.5000"]),
    ];
    json!({ "p_errno": "0", "p_err": "", "sIssueCode": code, "aCLMMfdsMarketPriceHistory": rows })
        .to_string()
}

/// The command without the vendor's key.
fn without_vendor(fixture: &Fixture, arguments: &str) -> Command {
    let mut command = fixture.command(arguments);
    command.env_remove("KUMIKI_JQUANTS_API_KEY");
    command
}

fn with_broker<'a>(fixture: &Fixture, command: &'a mut Command) -> &'a mut Command {
    let port = fixture.server.address.port();
    let base_url = format!("http://127.0.0.1:{port}/e_api/{port}/");
    command
        .env("KUMIKI_WEB_BROKER_DAILY_HISTORY", "true")
        .env("KUMIKI_WEB_BROKER_BASE_URL", base_url)
        .env("KUMIKI_WEB_BROKER_USER", "demo")
        .env("KUMIKI_WEB_BROKER_PASSWORD", PASSWORD)
        .env("KUMIKI_CONFIG_DIR", fixture.path().join("engine"))
}

/// Nothing was traded in the first issue.
fn first_is_quiet(row: &mut Value) {
    if number(row) == 0 {
        ["O", "H", "L", "C", "Vo", "Va"].iter().for_each(|name| row[*name] = Value::Null);
    }
}

const NAMES: [&str; 5] = ["inserted", "changed", "confirmed", "unchanged", "kept"];

#[test]
fn a_lesser_source_adds_rows_that_are_missing_and_nothing_else() {
    let fixture = Fixture::new(Market {
        days: [("20251215", 100), ("20251216", 99)].into(),
        listed: Some(100),
        alter: Some(first_is_quiet),
        ..Market::default()
    });
    assert_eq!(fixture.update("--to 2025-12-16 --days 2").code, 0);
    // The vendor is down, and another source has all issues at other prices.
    fixture.change(|market| {
        market.down.insert("20251216");
        market.days.insert("20251216", 0);
        market.others = Some(others);
    });
    let codes: Vec<String> = (1_300..1_400).map(|code: u32| code.to_string()).collect();
    let named = format!("--to 2025-12-16 --days 1 --refetch --codes {}", codes.join(","));
    let run = fixture.update(&named);
    assert_eq!((run.code, run.counts("public", NAMES)), (3, [1, 0, 0, 0, 99]), "{run:?}");
    assert_eq!(run.report["corrections"], json!([]));
    let public = "SELECT code, strftime(date, '%d') FROM daily WHERE source = 'public'";
    assert_eq!(fixture.rows(public), ["1399,16"]);
    // No column of the row without a trade is filled.
    let quiet = "SELECT count(*), count(close), count(volume) FROM daily WHERE code = '1300'";
    assert_eq!(fixture.rows(quiet), ["2,0,0"]);

    // The vendor corrects its own rows, and what the lesser source gave; people see it.
    fixture.change(|market| {
        market.down.clear();
        market.days.insert("20251216", 100);
        market.more = 4;
    });
    let run = fixture.update("--to 2025-12-16 --days 1 --refetch");
    assert_eq!((run.code, run.counts("vendor", NAMES)), (0, [0, 99, 0, 1, 0]));
    let corrections = run.report["corrections"].as_array().unwrap();
    let told = |correction: &Value| {
        let values = correction["values"].as_array().unwrap();
        let close = values.iter().find(|value| value["column"] == "close").unwrap();
        let words = ["date", "code", "before", "source"].map(|name| text(&correction[name]));
        format!("{} {} to {}", words.join(" "), close["old"], close["new"])
    };
    assert_eq!(corrections.len(), 99);
    assert_eq!(told(&corrections[0]), "2025-12-16 1301 vendor vendor 116.0 to 120.0");
    assert_eq!(told(&corrections[98]), "2025-12-16 1399 public vendor 999.0 to 120.0");
    assert_eq!(fixture.rows("SELECT DISTINCT source FROM daily"), ["vendor"]);
    fixture.change(|market| market.more = 5);
    let output = fixture.shown("--to 2025-12-16 --days 1 --refetch").output().unwrap();
    let table = texts(&output).0;
    for words in ["rows that got other values", "close 120 to 121", "and 89 more"] {
        assert!(table.contains(words), "{words}: {table}");
    }
}

#[test]
fn the_web_broker_is_asked_where_it_is_configured_and_its_splits_are_read() {
    let fixture = Fixture::of([("20251215", 2)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.others = Some(others));
    // Without its setting it is not asked.
    let run = fixture.run(&mut without_vendor(&fixture, "--to 2025-12-16"));
    let off = run.source("web_broker");
    assert_eq!((run.code, text(&off["state"])), (0, "not_configured".to_owned()), "{run:?}");
    assert!(text(&off["reason"]).contains("--web-broker daily_history=true"), "{off}");
    assert!(!run.report["notes"].to_string().contains(NOTICE), "{run:?}");
    let tuesday = "SELECT DISTINCT source, adjusted FROM daily WHERE date = '2025-12-16'";
    assert_eq!(fixture.rows(tuesday), ["public,true"]);

    // It replaces what the lesser source gave, by one login for all issues.
    let refetch = "--to 2025-12-16 --days 1 --refetch --codes 1300 1301";
    fixture.server.take_asked();
    let output = with_broker(&fixture, &mut without_vendor(&fixture, refetch)).output().unwrap();
    let asked = fixture.server.take_asked();
    let logins =
        |asked: &[String], what: &str| asked.iter().filter(|path| path.contains(what)).count();
    assert_eq!(
        ["CLMAuthLoginRequest", "CLMAuthLogoutRequest"].map(|what| logins(&asked, what)),
        [1, 1]
    );
    let (report, told) = texts(&output);
    let report = serde_json::from_str(&report).unwrap();
    let run = Run { code: output.status.code().unwrap(), report, told, asked };
    assert_eq!((run.code, run.counts("web_broker", NAMES)), (0, [0, 2, 0, 0, 0]), "{run:?}");
    let told = json!([{ "column": "adjustment_factor", "old": null, "new": 1.0 }]);
    assert_eq!(run.report["corrections"][1]["values"], told);
    assert_eq!(fixture.rows(tuesday), ["web_broker,false"]);
    let notes = run.report["notes"].to_string();
    assert!(notes.contains(NOTICE) && run.told.contains(NOTICE), "{run:?}");
    for secret in [SESSION, PASSWORD] {
        assert!(!run.report.to_string().contains(secret) && !run.told.contains(secret), "{run:?}");
    }

    // The columns of a split give the day's factor, and older prices compare with newer ones.
    let run = fixture.run(with_broker(&fixture, &mut without_vendor(&fixture, "--to 2025-12-17")));
    assert_eq!((run.code, run.counts("web_broker", ["inserted"])), (0, [2]), "{run:?}");
    let closes = "SELECT strftime(date, '%d'), adjustment_factor FROM daily WHERE code = '1301' ORDER BY date";
    assert_eq!(fixture.rows(closes), ["15,1.0", "16,1.0", "17,0.5"]);
    let closes =
        "SELECT strftime(date, '%d'), close FROM adjusted WHERE code = '1301' ORDER BY date";
    assert_eq!(fixture.rows(closes), ["15,57.5", "16,499.5", "17,500.0"]);
    // While an engine holds the account, nothing is sent, and the report says so.
    let mut held = without_vendor(&fixture, refetch);
    let engine = RequestNumbers::open(&fixture.path().join("engine").join(NUMBERS_FILE)).unwrap();
    let run = fixture.run(with_broker(&fixture, &mut held));
    let reason = text(&run.source("web_broker")["reason"]);
    assert!(reason.starts_with("skipped, an engine or another run holds the account"), "{run:?}");
    assert_eq!(run.counts("public", NAMES), [0, 0, 0, 2, 0], "{run:?}");
    assert_eq!(fixture.rows(tuesday), ["web_broker,false"]);
    drop(engine);
}

/// On Tuesday the first 20 issues are split in two.
fn split_on_tuesday(row: &mut Value) {
    if row["Date"] == "2025-12-16" && number(row) < 20 {
        row["AdjFactor"] = json!(0.5);
        ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(58));
    }
}

/// `Close[-1]` of the first issue on a day, adjusted, and its mark.
fn close_before(fixture: &Fixture, day: &str) -> [Value; 2] {
    let arguments = ["rank", "query", "--from", day, "--to", day, "--codes", "1300", "--adjusted"];
    let mut command = command(fixture.path(), &arguments);
    let output = command.args(["--format", "jsonl", "--sort-by", "Close[-1]"]).output().unwrap();
    let row: Value = serde_json::from_str(texts(&output).0.trim()).unwrap();
    ["sortValue", "spansSplit"].map(|name| row[name].clone())
}

/// An outage is no success, however well others fill its day; and a worse source tells no split, so nothing is
/// adjusted until the vendor has given the day.
#[test]
fn a_day_of_an_outage_is_had_again_and_its_split_with_it() {
    let fixture = Fixture::new(Market {
        days: [("20251215", 100)].into(),
        alter: Some(split_on_tuesday),
        others: Some(others),
        ..Market::default()
    });
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    fixture.change(|market| _ = market.down.insert("20251216"));
    let run = fixture.update("--to 2025-12-16");
    assert_eq!((run.code, fixture.published().join(" ")), (3, "15:100 16:100".to_owned()));
    let tuesday = "SELECT DISTINCT source, adjusted FROM daily WHERE date = '2025-12-16'";
    assert_eq!(fixture.rows(tuesday), ["public,true"]);
    assert_eq!(close_before(&fixture, "2025-12-16"), [Value::Null, Value::Null]);
    // The next plain run after the outage has it from the vendor.
    fixture.change(|market| {
        market.down.clear();
        market.days.insert("20251216", 100);
    });
    let run = fixture.update("--to 2025-12-16");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16".to_owned()), "{run:?}");
    assert_eq!(run.counts("vendor", ["changed"]), [100]);
    assert_eq!(close_before(&fixture, "2025-12-16"), [json!(57.5), json!(true)]);
    // A worse source never takes that away, whatever is asked of it.
    fixture.change(|market| {
        market.down.insert("20251216");
        market.days.insert("20251216", 0);
    });
    let named = "--to 2025-12-16 --days 1 --refetch --codes 1300 1301 1302";
    assert_eq!(fixture.update(named).counts("public", NAMES), [0, 0, 0, 0, 3]);
    assert_eq!(fixture.rows(tuesday), ["vendor,false"]);
    assert_eq!(close_before(&fixture, "2025-12-16"), [json!(57.5), json!(true)]);
}
