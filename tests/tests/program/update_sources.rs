//! What `kumiki update` makes of the sources of its rows: which row stays, what is marked, what is left
//! out, and how a source is asked. Each rule of `update::SourceKind` with the program itself against
//! servers on this machine.

use std::process::Command;

use serde_json::{Value, json};

use pricestore::DataDir;

use crate::daily_market::{issue_beside, table};
use crate::update_days::{Fixture, Market, Run, dashed, days, text};
use crate::update_program::{checked_reports, command, daily_files, own_number, query, sql, texts};

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
pub(crate) fn session(path: &str) -> Option<String> {
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

/// The part of a report about a source.
pub(crate) fn source<'a>(run: &'a Run, name: &str) -> &'a Value {
    let sources = run.report["sources"].as_array().unwrap();
    sources.iter().find(|part| part["source"] == name).unwrap()
}

pub(crate) fn counts<const N: usize>(run: &Run, of: &str, names: [&str; N]) -> [u64; N] {
    names.map(|name| source(run, of)[name].as_u64().unwrap())
}

/// The rows of an answer, without the heads.
pub(crate) fn rows(fixture: &Fixture, statement: &str) -> Vec<String> {
    sql(fixture.path(), statement).lines().skip(1).map(|line| line.replace('"', "")).collect()
}

/// The command without the vendor's key.
pub(crate) fn without_vendor(fixture: &Fixture, arguments: &str) -> Command {
    let mut command = fixture.command(arguments);
    command.env_remove("KUMIKI_JQUANTS_API_KEY");
    command
}

pub(crate) fn with_broker<'a>(fixture: &Fixture, command: &'a mut Command) -> &'a mut Command {
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
    if row["Code"] == "13000" {
        ["O", "H", "L", "C", "Vo", "Va"].iter().for_each(|name| row[*name] = Value::Null);
    }
}

#[test]
fn a_lesser_source_adds_rows_that_are_missing_and_nothing_else() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 99)]),
        listed: Some(100),
        alter: Some(first_is_quiet),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    // R1 and R4: the vendor is down, and another source has all issues at other prices.
    fixture.change(|market| {
        market.down.insert("20251216");
        market.days.insert("20251216", 0);
        market.others = Some(others);
    });
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    let names = ["inserted", "changed", "confirmed", "unchanged", "kept"];
    assert_eq!(counts(&run, "public", names), [1, 0, 0, 0, 99], "{run:?}");
    assert_eq!(run.report["corrections"], json!([]));
    assert_eq!(
        rows(&fixture, "SELECT code, strftime(date, '%d') FROM daily WHERE source = 'public'"),
        ["1399,16"]
    );
    // No column of the row without a trade is filled.
    let quiet = "SELECT count(*), count(close), count(volume) FROM daily WHERE code = '1300'";
    assert_eq!(rows(&fixture, quiet), ["2,0,0"]);

    // R2: the vendor corrects its own rows, and what the lesser source gave.
    fixture.change(|market| {
        market.down.clear();
        market.days.insert("20251216", 100);
        market.more = 4;
    });
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    assert_eq!((run.code, counts(&run, "vendor", names)), (0, [0, 99, 0, 1, 0]));
    let corrections = run.report["corrections"].as_array().unwrap();
    let told = |correction: &Value| {
        let values = correction["values"].as_array().unwrap();
        let close = values.iter().find(|value| value["column"] == "close").unwrap();
        let words = ["date", "code", "before", "source"].map(|name| text(&correction[name]));
        format!("{} {} to {}", words.join(" "), close["old"], close["new"])
    };
    assert_eq!(
        (corrections.len(), told(&corrections[0]), told(&corrections[98])),
        (
            99,
            "2025-12-16 1301 vendor vendor 116.0 to 120.0".to_owned(),
            "2025-12-16 1399 public vendor 999.0 to 120.0".to_owned()
        )
    );
    assert_eq!(rows(&fixture, "SELECT DISTINCT source FROM daily"), ["vendor"]);
    // People see it too.
    fixture.change(|market| market.more = 5);
    let vendor = format!("http://{}/v2", fixture.server.address);
    let mut arguments = vec!["update", "--as-of", "2025-12-16", "--days", "1", "--refetch"];
    arguments.extend(["--recheck", "0"]);
    let mut update = command(fixture.path(), &arguments);
    let update = update.args(["--vendor-rate", "60000", "--vendor-url", &vendor]);
    let table = String::from_utf8(update.output().unwrap().stdout).unwrap();
    for words in ["rows that got other values", "close 120 to 121", "and 89 more"] {
        assert!(table.contains(words), "{words}: {table}");
    }
}

#[test]
fn the_web_broker_is_asked_where_it_is_configured_and_its_splits_are_read() {
    let fixture = Fixture::new(Market { days: days([("20251215", 2)]), ..Market::default() });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.others = Some(others));
    // W1: without its address it is not asked.
    let run = fixture.run(&mut without_vendor(&fixture, "--as-of 2025-12-16"));
    let off = source(&run, "web_broker");
    assert_eq!((run.code, text(&off["state"])), (0, "not_configured".to_owned()), "{run:?}");
    assert!(text(&off["reason"]).contains("--web-broker daily_history=true"), "{off}");
    assert!(!run.report["notes"].to_string().contains(NOTICE), "{run:?}");
    let tuesday = "SELECT DISTINCT source, adjusted FROM daily WHERE date = '2025-12-16'";
    assert_eq!(rows(&fixture, tuesday), ["public,true"]);

    // W2: what it says too is its own from now on, and no adjusted price. It tells of no split, and the
    // other source told nothing of one (A3).
    let refetch = "--as-of 2025-12-16 --days 1 --refetch";
    let run = fixture.run(with_broker(&fixture, &mut without_vendor(&fixture, refetch)));
    let names = ["inserted", "changed", "confirmed", "kept"];
    assert_eq!(counts(&run, "web_broker", names), [0, 2, 0, 0], "{run:?}");
    let told = json!([{ "column": "adjustment_factor", "old": null, "new": 1.0 }]);
    assert_eq!(run.report["corrections"][1]["values"], told);
    assert_eq!(rows(&fixture, tuesday), ["web_broker,false"]);
    let notes = run.report["notes"].to_string();
    assert!(notes.contains(NOTICE) && run.told.contains(NOTICE), "{run:?}");
    for secret in [SESSION, PASSWORD] {
        assert!(!run.report.to_string().contains(secret) && !run.told.contains(secret), "{run:?}");
    }

    // A3: the columns of a split give the day's factor, and older prices compare with newer ones.
    let run =
        fixture.run(with_broker(&fixture, &mut without_vendor(&fixture, "--as-of 2025-12-17")));
    assert_eq!((run.code, counts(&run, "web_broker", ["inserted"])), (0, [2]), "{run:?}");
    let factors = "SELECT strftime(date, '%d'), adjustment_factor FROM daily WHERE code = '1301'
        ORDER BY date";
    assert_eq!(rows(&fixture, factors), ["15,1.0", "16,1.0", "17,0.5"]);
    let closes =
        "SELECT strftime(date, '%d'), close FROM adjusted WHERE code = '1301' ORDER BY date";
    assert_eq!(rows(&fixture, closes), ["15,57.5", "16,499.5", "17,500.0"]);
    // Between lesser sources it is the same as between them and the vendor.
    let refetch = "--as-of 2025-12-17 --days 2 --refetch";
    let run = fixture.run(&mut without_vendor(&fixture, refetch));
    let names = ["changed", "unchanged", "kept"];
    assert_eq!(counts(&run, "public", names), [0, 2, 2], "{run:?}");
    assert_eq!(rows(&fixture, "SELECT count(*) FROM daily WHERE adjusted"), ["0"]);
    let help = command(fixture.path(), &["update", "--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    assert!(help.contains("daily_history=true") && help.contains("KUMIKI_WEB_BROKER_USER"));
}

/// K1 and K2 of the job's rules.
#[test]
fn a_key_that_is_refused_or_missing_is_an_error() {
    let fixture = Fixture::new(Market { days: days([("20251215", 2)]), ..Market::default() });
    let refused = |arguments: &str| {
        let mut command = fixture.command(arguments);
        fixture.run(command.env("KUMIKI_JQUANTS_API_KEY", "another"))
    };
    let missing = |arguments: &str| fixture.run(&mut without_vendor(&fixture, arguments));
    let fails = |run: &Run, why: &str| {
        assert_eq!((run.code, text(&run.report["ending"])), (1, "failed".to_owned()), "{run:?}");
        assert!(text(&run.report["error"]).contains(why), "{run:?}");
        assert!(run.told.contains("error: ") && run.told.contains(why), "{run:?}");
    };
    let wrong = "the vendor does not take the key, so its days are missing or of a lesser source: \
                 the key or its plan was refused (HTTP 401)";
    let none = "days are missing, and the vendor cannot be asked: no key: KUMIKI_JQUANTS_API_KEY";
    fails(&refused("--as-of 2025-12-15 --days 1"), wrong);
    fails(&missing("--as-of 2025-12-15 --days 1"), none);
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    // Nobody else has it either, on Tuesday as with a gap behind it.
    fails(&missing("--as-of 2025-12-16"), none);
    // What others have is published; a key that is wrong stays an error all the same.
    fixture.change(|market| market.others = Some(others));
    fails(&refused("--as-of 2025-12-16"), wrong);
    assert_eq!(fixture.published(), ["15:2", "16:2"]);
    let run = missing("--as-of 2025-12-17");
    assert_eq!((run.code, &run.report["error"]), (0, &Value::Null), "{run:?}");
    assert_eq!(fixture.published(), ["15:2", "16:2", "17:2"]);
    let help = command(fixture.path(), &["update", "--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    assert!(help.contains("1    an error; also where the vendor refuses the key"), "{help}");
}

/// On Tuesday the first 20 issues are split in two.
pub(crate) fn split_on_tuesday(row: &mut Value) {
    if row["Date"] == "2025-12-16" && text(&row["Code"]).as_str() < "13200" {
        row["AdjFactor"] = json!(0.5);
    }
}

/// A1 and A2.
#[test]
fn prices_that_a_source_has_adjusted_are_marked_and_take_no_factor() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 99), ("20251216", 100)]),
        listed: Some(100),
        alter: Some(split_on_tuesday),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    // One issue has no row before the split but in the public source.
    fixture.change(|market| {
        market.down.insert("20251215");
        market.others = Some(others);
    });
    let run = fixture.update("--as-of 2025-12-15 --days 1 --refetch");
    assert_eq!(counts(&run, "public", ["inserted", "kept"]), [1, 0], "{run:?}");
    let of = |table: &str| {
        format!(
            "SELECT code, strftime(date, '%d'), close, adjusted FROM {table}
               WHERE code IN ('1300', '1399') ORDER BY code, date"
        )
    };
    assert_eq!(
        rows(&fixture, &of("daily")),
        ["1300,15,115.0,false", "1300,16,116.0,false", "1399,15,999.0,true", "1399,16,116.0,false"]
    );
    assert_eq!(
        rows(&fixture, &of("adjusted")),
        ["1300,15,57.5,false", "1300,16,116.0,false", "1399,15,,true", "1399,16,116.0,false"]
    );
    let factors =
        "SELECT count(*) FILTER (factor <> 1), count(*) FILTER (factor IS NULL) FROM adjusted";
    assert_eq!(rows(&fixture, factors), ["20,1"]);
}

/// `Close[-lag]` of three issues on a day, like `1300 57.5 true`, the last of which is the mark.
pub(crate) fn closes_before(fixture: &Fixture, day: &str, lag: u32, more: &[&str]) -> Vec<String> {
    let formula = format!("Close[-{lag}]");
    let arguments = ["rank", "--from", day, "--to", day, "--codes", "1300,1301,1305"];
    let mut command = command(fixture.path(), &arguments);
    let output = command.args(["--format", "jsonl", "--sort-by", &formula]).args(more).output();
    let (lines, errors) = texts(&output.unwrap());
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines
        .map(|row| format!("{} {} {}", text(&row["code"]), row["sortValue"], row["spansSplit"]));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    assert_eq!(lines.len(), 3, "{errors}");
    lines
}

pub(crate) fn three(value: &str) -> Vec<String> {
    ["1300", "1301", "1305"].map(|code| format!("{code} {value}")).to_vec()
}

/// B1 of the job's rules, U1 of the snapshot's.
#[test]
fn a_day_of_an_outage_is_had_again_and_its_split_with_it() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100)]),
        alter: Some(split_on_tuesday),
        others: Some(others),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    // On the day of the split the vendor is down, and has nothing of it for single issues either.
    fixture.change(|market| _ = market.down.insert("20251216"));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:100 16:100".to_owned()));
    let tuesday = "SELECT DISTINCT source, adjusted FROM daily WHERE date = '2025-12-16'";
    assert_eq!(rows(&fixture, tuesday), ["public,true"]);
    assert_eq!(closes_before(&fixture, "2025-12-16", 1, &["--adjusted"]), three("null null"));
    assert_eq!(closes_before(&fixture, "2025-12-16", 1, &[]), three("115 null"));
    // A2: nor does the view know, up to the row that is the last.
    let view = |fixture: &Fixture| {
        let days =
            "SELECT strftime(date, '%d'), count(*), count(close), count(factor), count(volume)
            FROM adjusted GROUP BY 1 ORDER BY 1";
        rows(fixture, days)
    };
    assert_eq!(view(&fixture), ["15,100,0,0,0", "16,100,100,100,100"]);

    // While it is down for that day, the day stays as it is, and the next one is had.
    fixture.change(|market| _ = market.days.insert("20251217", 100));
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.days()), (0, vec!["17 fetched".to_owned()]), "{run:?}");
    let notes = run.report["notes"].to_string();
    assert!(notes.contains("2025-12-16 stays as a lesser source gave it"), "{notes}");
    for lag in [1, 2] {
        let found = closes_before(&fixture, "2025-12-17", lag, &["--adjusted"]);
        assert_eq!(found, three("null null"), "lag {lag}");
    }
    assert_eq!(view(&fixture), ["15,100,0,0,0", "16,100,0,0,0", "17,100,100,100,100"]);

    // The next plain run after the outage has it from the vendor, and nothing else.
    fixture.change(|market| {
        market.down.clear();
        market.days.insert("20251216", 100);
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16".to_owned()), "{run:?}");
    assert_eq!(counts(&run, "vendor", ["changed"]), [100]);
    assert_eq!(rows(&fixture, tuesday), ["vendor,false"]);
    let closes = |lag| closes_before(&fixture, "2025-12-17", lag, &["--adjusted"]);
    assert_eq!((closes(1), closes(2)), (three("116 false"), three("57.5 true")));
    assert_eq!(closes_before(&fixture, "2025-12-17", 2, &[]), three("115 true"));
    assert_eq!(fixture.update("--as-of 2025-12-17").asked, [""; 0], "it is whole");
}

/// B1: while the vendor cannot be asked nobody is, and a short answer is no end.
#[test]
fn a_day_of_an_outage_is_asked_for_until_it_is_had() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100)]),
        down: ["20251216"].into(),
        others: Some(others),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    let run = fixture.run(&mut without_vendor(&fixture, "--as-of 2025-12-16"));
    assert_eq!((run.code, run.asked.len()), (0, 0), "{run:?}");
    let asked = |arguments: &str| fixture.update(arguments).asked.join(" ");
    assert_eq!(asked("--as-of 2025-12-16 --codes 1301"), "");

    let lesser = "SELECT count(*) FROM daily WHERE source = 'public'";
    fixture.change(|market| {
        market.down.clear();
        market.days.insert("20251216", 50);
    });
    assert_eq!(
        (asked("--as-of 2025-12-16"), rows(&fixture, lesser)),
        ("16".into(), vec!["100".into()]),
        "C12"
    );
    fixture.change(|market| _ = market.days.insert("20251216", 99));
    assert_eq!(
        (asked("--as-of 2025-12-16"), rows(&fixture, lesser)),
        ("16".into(), vec!["1".into()])
    );
    // One issue in a hundred may be the other source's alone.
    assert_eq!(asked("--as-of 2025-12-16"), "");
}

/// The other sources lack an issue.
fn others_lack_one(path: &str) -> String {
    if path.contains("1399") { "No data".to_owned() } else { others(path) }
}

/// D7: a source that is down has not said that it lacks an issue, however complete others make its day. B1: its day is
/// asked for before those that only may have changed, whatever becomes of these.
#[test]
fn an_outage_is_not_over_because_its_day_is_complete() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100)]),
        others: Some(others_lack_one),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.gone = true);
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, fixture.published()), (3, vec!["15:100".into(), "16:99".into()]));
        assert!(run.told.contains("2025-12-16 is complete without some issues"), "{}", run.told);
    }
    fixture.change(|market| {
        market.gone = false;
        market.down = ["20251215"].into();
        market.days.insert("20251216", 100);
    });
    let run = fixture.update("--as-of 2025-12-16 --recheck 3");
    assert_eq!((run.code, run.asked[0].as_str()), (0, "16"), "{run:?}");
    assert_eq!(rows(&fixture, "SELECT DISTINCT source FROM daily"), ["vendor"]);
}

fn odd_split_on_tuesday(row: &mut Value) {
    split_on_tuesday(row);
    if row["Date"] == "2025-12-16" {
        odd::<2>(row);
    }
}

/// U3 of the snapshot's rules.
#[test]
fn a_lag_across_a_row_that_was_left_out_has_no_adjusted_value() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200), ("20251217", 200)]),
        alter: Some(odd_split_on_tuesday),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 0);
    assert_eq!(fixture.published(), ["15:200", "16:198", "17:200"]);
    let closes = |more: &[&str]| closes_before(&fixture, "2025-12-17", 2, more);
    assert_eq!(closes(&["--adjusted"]), ["1300 null null", "1301 null null", "1305 57.5 true"]);
    assert_eq!(closes(&[]), ["1300 115 null", "1301 115 null", "1305 115 true"]);
    // A5: nor has the view one, of all issues or of one.
    let codes = [0, 1, 5];
    assert_eq!(
        views(&fixture, codes),
        ["15 null, 17 117", "15 null, 17 117", "15 57.5, 16 116, 17 117"]
    );
    let output = command(fixture.path(), &["rank", "--sort-by", "Close[-2]"]).output().unwrap();
    let (table, _) = texts(&output);
    assert!(table.contains("not known") && table.contains("not adjusted"), "{table}");
    fixture.change(|market| market.alter = Some(split_on_tuesday));
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 2").code, 0);
    assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
    assert_eq!(views(&fixture, codes), ["15 57.5, 16 116, 17 117"; 3]);
}

/// The adjusted closes of these issues, of the combined database as of those of the issues alone.
fn views(fixture: &Fixture, issues: [usize; 3]) -> [String; 3] {
    issues.map(|issue| {
        let closes = |data: &DataDir| {
            let code = 1_300 + issue;
            let view = format!(
                "SELECT strftime(date, '%d') || ' ' || coalesce(format('{{:g}}', close), 'null')
                   FROM adjusted WHERE code = '{code}' ORDER BY date"
            );
            let closes = table(data, &view).unwrap().concat();
            closes.join(", ")
        };
        let folder = tempfile::tempdir().unwrap();
        let all = closes(&DataDir::new(fixture.path()));
        assert_eq!(closes(&issue_beside(fixture.path(), issue, folder.path())), all);
        all
    })
}

/// U2 of the snapshot's rules.
#[test]
fn a_lag_across_a_day_that_is_not_published_has_no_adjusted_value() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20), ("20251217", 20)]),
        alter: Some(split_on_tuesday),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 6);
    let closes = |more: &[&str]| closes_before(&fixture, "2025-12-17", 2, more);
    assert_eq!((closes(&["--adjusted"]), closes(&[])), (three("null null"), three("115 null")));
    // A5.
    assert_eq!(views(&fixture, [0, 1, 5]), ["15 null, 17 117"; 3]);
    // Who ranks the days is told of the one without rows.
    let arguments = ["rank", "--from", "2025-12-15", "--to", "2025-12-17", "--limit", "1"];
    let (_, errors) = texts(&command(fixture.path(), &arguments).output().unwrap());
    assert_eq!(
        errors.trim(),
        "note: no prices are stored of 1 business day(s) of this period: 2025-12-16"
    );
    fixture.change(|market| _ = market.days.insert("20251216", 20));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
    assert_eq!(views(&fixture, [0, 1, 5]), ["15 57.5, 16 116, 17 117"; 3]);
    let (_, errors) = texts(&command(fixture.path(), &arguments).output().unwrap());
    // The day is there, and its prices know nothing of its splits (Z2).
    assert!(
        errors.starts_with("note: 1 day(s) of this period need a look: 2025-12-16;"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

/// The highs of so many issues are below their other prices.
pub(crate) fn odd<const COUNT: usize>(row: &mut Value) {
    let code = row["Code"].as_str().unwrap();
    if (0..COUNT).any(|number| code == format!("{}0", 1_300 + number)) {
        row["H"] = json!(1);
    }
}

#[test]
fn one_odd_row_is_left_out_and_more_than_one_in_100_refuse_the_day() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200)]),
        listed: Some(200),
        alter: Some(odd::<2>),
        ..Market::default()
    });
    // Q1.
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15".to_owned()), "no single requests");
    assert_eq!(
        (fixture.published(), &run.report["odd_rows"]),
        (vec!["15:198".to_owned()], &json!(2))
    );
    let named = &run.report["odd"][1];
    assert_eq!(
        (text(&named["source"]), text(&named["row"])),
        ("vendor".to_owned(), "13010 on 2025-12-15 (row 2)".to_owned())
    );
    assert!(text(&named["reason"]).contains("not all inside low to high"), "{named}");
    let values = text(&named["text"]);
    assert!(values.contains(r#""Code":"13010""#) && values.contains(r#""H":1"#), "{named}");
    assert!(run.told.contains("a row is left out"), "{}", run.told);
    // A run that looks back so far asks for the day again, and nothing of it was kept elsewhere.
    let again = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((again.asked.join(" "), &again.report["odd_rows"]), ("15".to_owned(), &json!(2)));
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, counts(&run, "vendor", ["inserted", "unchanged"])), (0, [2, 198]));
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").asked, [""; 0], "it is whole");

    // Q2: a day is refused as a whole, and asked for as a whole again.
    fixture.change(|market| {
        market.alter = Some(odd::<3>);
        market.days.insert("20251216", 200);
    });
    let run = fixture.update("--as-of 2025-12-16");
    let reasons = run.report["days"][0]["reasons"].to_string();
    let part =
        "3 of 200 rows are odd, more than 1 %; the first: row of 13000 on 2025-12-16 (row 1)";
    assert!(reasons.contains(part), "{reasons}");
    assert_eq!(
        (run.code, run.asked.join(" "), &run.report["odd_rows"]),
        (3, "16".to_owned(), &json!(0))
    );
    assert_eq!(
        (fixture.published(), &run.report["issues_failed"]),
        (vec!["15:200".to_owned()], &json!(0))
    );
    assert_eq!(text(&run.report["days"][0]["outcome"]), "failed");
    let again = fixture.update("--as-of 2025-12-16");
    assert_eq!((again.code, again.asked.join(" ")), (3, "16".to_owned()));
    // Q3: of an issue alone, the odd row is left out and named.
    let alone = fixture.update("--as-of 2025-12-16 --codes 1300 --days 2 --refetch");
    assert_eq!((alone.asked.len(), &alone.report["odd_rows"]), (1, &json!(2)), "{}", alone.report);
}

fn odd_before_wednesday(row: &mut Value) {
    if row["Date"].as_str().unwrap() < "2025-12-24" {
        odd::<3>(row);
    }
}

/// Days that are refused say nothing of the days after them: the vendor answers, and is not given up.
#[test]
fn refused_days_do_not_make_a_source_that_is_down() {
    let dates = [
        "20251215", "20251216", "20251217", "20251218", "20251219", "20251222", "20251223",
        "20251224",
    ];
    let fixture = Fixture::new(Market {
        days: dates.into_iter().map(|date| (date, 200)).collect(),
        listed: Some(200),
        alter: Some(odd_before_wednesday),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-24 --days 8");
    assert_eq!(run.asked.len(), 8, "each day once, and nothing issue by issue: {:?}", run.asked);
    assert_eq!(fixture.published(), ["24:200"], "{}", run.report);
    assert_ne!(run.code, 0);
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-24 --days 8");
    assert_eq!((run.code, fixture.published().len()), (0, 8), "{}", run.report);
}

/// Q1 and Q2, of the vendor's files.
#[test]
fn odd_rows_of_files_are_left_out_too() {
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let day = |date: &str, odd: u32| -> String {
        let high = |number| if number < odd { 4 } else { 6 };
        let row = |number| {
            let (high, volume) = (high(number), 100 + number);
            format!("{date},{}0,5,{high},4,5,0,0,{volume},{},1.0\n", 1_300 + number, 5 * volume)
        };
        (0..200).map(row).collect()
    };
    let month = day("2025-12-15", 2) + &day("2025-12-16", 3);
    daily_files(files.path(), &[("equities_bars_daily_202512.csv.gz", &month)]);
    let arguments = ["update", "--format", "json", "--from-files", files.path().to_str().unwrap()];
    let output = command(folder.path(), &arguments).output().unwrap();
    let (report, errors) = texts(&output);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((output.status.code(), &report["odd_rows"]), (Some(3), &json!(2)), "{errors}");
    let named = &report["odd"][1];
    assert_eq!(
        (&named["source"], text(&named["row"]), text(&named["text"])),
        (
            &json!("files"),
            "13010 on 2025-12-15 (line 3)".to_owned(),
            "2025-12-15,13010,5,4,4,5,0,0,101,505,1.0".to_owned()
        )
    );
    assert!(text(&named["reason"]).contains("line 3, column"), "{named}");
    let days = report["days"].as_array().unwrap();
    let words = |name: &str| days.iter().map(|day| text(&day[name])).collect::<Vec<_>>();
    assert_eq!(
        (words("date"), words("outcome")),
        (
            vec!["2025-12-15".to_owned(), "2025-12-16".to_owned()],
            vec!["fetched".to_owned(), "failed".to_owned()]
        )
    );
    let reasons = days[1]["reasons"].to_string();
    assert!(reasons.contains("3 of 200 rows are odd, more than 1 %; the first: row of 13000"));
    let rows = sql(folder.path(), "SELECT strftime(date, '%d'), count(*) FROM daily GROUP BY 1");
    assert_eq!(rows.lines().last(), Some("15,198"), "{rows}");
    assert_eq!(checked_reports(folder.path()), 1);
}

/// H1 and H2.
#[test]
fn after_too_many_requests_the_rate_drops_and_recovers_slowly() {
    let eleven = [
        "20251201", "20251202", "20251203", "20251204", "20251205", "20251208", "20251209",
        "20251210", "20251211", "20251212", "20251215",
    ];
    let days = eleven.map(|day| (day, 2)).into();
    let fixture = Fixture::new(Market { days, too_many: 2, ..Market::default() });
    let run = fixture.update("--as-of 2025-12-15 --days 11");
    assert_eq!((run.code, run.asked.len()), (0, 13), "two were too many: {run:?}");
    // Halved twice, and a tenth faster after 20 answers: 11 days and the lists of their issues.
    let notes = run.report["notes"].to_string();
    let part = "vendor said 2 times that requests were too many, so it was asked at most 15000 times a \
                minute, and 16666 times a minute in the end";
    assert!(notes.contains(part), "{notes}");
    let run = fixture.update("--as-of 2025-12-15 --days 11 --refetch");
    assert!(!run.report["notes"].to_string().contains("too many"), "{run:?}");
}
