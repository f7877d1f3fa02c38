//! What `kumiki update` makes of what nobody told it: factors that are null or not there, files of days
//! beside those of months, rows that the vendor takes back, and rows that it once gave wrong. Each with
//! the program itself against a vendor on this machine or files of it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::update_days::{Fixture, Market, Run, days, text};
use crate::update_program::{command, sql, texts};
use crate::update_sources::{
    closes_before, counts, odd, rows, session, source, split_on_tuesday, three, with_broker,
    without_vendor,
};

const SILENT: &str = "tell no adjustment factor";

/// A split of every issue on Tuesday, of which the vendor says nothing for 1301.
fn silent_split_on_tuesday(row: &mut Value) {
    split_on_tuesday(row);
    if row["Code"] == "13010" && row["Date"] == "2025-12-16" {
        row["AdjFactor"] = Value::Null;
    }
}

/// The mark and the adjusted value of an issue on Wednesday, two days after the split, as the service
/// has them.
fn served(fixture: &Fixture, code: &str) -> Value {
    let answer = fixture.serve().ask(
        "{ stockRankingRange(fromDate: \"2025-12-17\", toDate: \"2025-12-17\", sortBy: \
         \"Close[-2]\", adjusted: true) { code sortValue spansSplit } }",
    );
    let rows = answer["data"]["stockRankingRange"].as_array().unwrap();
    rows.iter().find(|row| row["code"] == code).unwrap().clone()
}

/// S5 and U5 of the snapshot's rules, R5 of the sources'.
#[test]
fn a_factor_that_the_vendor_does_not_tell_is_none_of_1() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20), ("20251216", 20), ("20251217", 20)]),
        alter: Some(silent_split_on_tuesday),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-17 --days 3");
    let notes = run.report["notes"].to_string();
    let part = format!("1 rows of vendor {SILENT}, the first of 1301 on 2025-12-16");
    assert_eq!(run.code, 0);
    assert!(notes.contains(&part) && run.told.contains(&part), "{run:?}");
    let closes = |more: &[&str]| closes_before(&fixture, "2025-12-17", 2, more);
    assert_eq!(closes(&["--adjusted"]), ["1300 57.5 true", "1301 null null", "1305 57.5 true"]);
    assert_eq!(closes(&[]), ["1300 115 true", "1301 115 null", "1305 115 true"]);
    // Not across it, everything is known.
    let near = closes_before(&fixture, "2025-12-17", 1, &["--adjusted"]);
    assert_eq!(near, three("116 false"));
    let silent = json!({ "code": "1301", "sortValue": null, "spansSplit": null });
    assert_eq!(served(&fixture, "1301"), silent);
    // The kernel and the statement agree, or the command fails.
    let explain = ["rank", "--sort-by", "Close[-2]", "--adjusted", "--explain"];
    let explained = texts(&command(fixture.path(), &explain).output().unwrap());
    assert!(explained.0.contains("bit for bit"), "{explained:?}");
    // A4: nor does the view know.
    let view =
        "SELECT code, strftime(date, '%d'), close FROM adjusted WHERE code IN ('1300', '1301')
        AND date < '2025-12-17' ORDER BY ALL";
    assert_eq!(
        rows(&fixture, view),
        ["1300,15,57.5", "1300,16,116.0", "1301,15,", "1301,16,116.0"]
    );

    // Once it is told it counts, and it stays when the vendor falls silent again.
    for alter in [split_on_tuesday, silent_split_on_tuesday] {
        fixture.change(|market| market.alter = Some(alter));
        assert_eq!(fixture.update("--as-of 2025-12-17 --days 2 --refetch").code, 0);
        assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
        let told = json!({ "code": "1301", "sortValue": 57.5, "spansSplit": true });
        assert_eq!(served(&fixture, "1301"), told);
    }
}

/// B3 of the job's rules.
#[test]
fn a_factor_that_was_not_told_is_asked_for_again() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20), ("20251216", 20), ("20251217", 20)]),
        alter: Some(silent_split_on_tuesday),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 0);
    let closes = || closes_before(&fixture, "2025-12-17", 2, &["--adjusted"]);
    // What this machine has kept of the day is no answer, and the vendor knows no more yet.
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16".to_owned()), "{run:?}");
    assert_eq!(closes(), ["1300 57.5 true", "1301 null null", "1305 57.5 true"]);
    fixture.change(|market| _ = market.down.insert("20251216"));
    let run = fixture.update("--as-of 2025-12-17");
    let words = "2025-12-16 stays without the factors that were not told";
    assert!(run.code == 0 && run.told.contains(words), "{run:?}");
    // After 20 weekdays it is too late.
    let run = fixture.update("--as-of 2026-01-14");
    assert!(!run.asked.contains(&"16".to_owned()), "{run:?}");
    fixture.change(|market| {
        market.down.clear();
        market.alter = Some(split_on_tuesday);
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16".to_owned()), "{run:?}");
    assert_eq!((counts(&run, "vendor", ["changed"]), closes()), ([1], three("57.5 true")));
    assert_eq!(fixture.update("--as-of 2025-12-17").asked, [""; 0], "it is told");
}

/// A file of daily bars of December 2025 with 20 issues on each of these days, split on the 16th, with
/// the column of factors or without.
fn bars(folder: &Path, name: &str, of_days: &[u32], has_factor: bool) {
    let file = File::create(folder.join(format!("equities_bars_daily_{name}.csv.gz"))).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    let head = if has_factor { ",AdjFactor" } else { "" };
    writeln!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va{head}").unwrap();
    for (day, number) in of_days.iter().flat_map(|day| (0..20).map(move |number| (day, number))) {
        let (code, close) = (13_000 + 10 * number, 100 + day);
        let factor = match has_factor {
            true if *day == 16 => ",0.5",
            true => ",1.0",
            false => "",
        };
        writeln!(
            packed,
            "2025-12-{day:02},{code},{close},{close},{close},{close},0,0,100,1100{factor}"
        )
        .unwrap();
    }
    packed.finish().unwrap();
}

/// `kumiki update --from-files`.
fn from_files(fixture: &Fixture, files: &TempDir) -> Run {
    let path = files.path().to_str().unwrap();
    fixture.run(&mut command(fixture.path(), &["update", "--format", "json", "--from-files", path]))
}

/// The same of files without their column.
#[test]
fn files_without_factors_take_none_away_and_tell_of_none() {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bars(with.path(), "202512", &[15, 16, 17], true);
    bars(without.path(), "202512", &[15, 16, 17], false);
    let part = format!("60 rows of files {SILENT}, the first of 1300 on 2025-12-15");
    let fixture = Fixture::new(Market::default());
    let closes = |more: &[&str]| closes_before(&fixture, "2025-12-17", 2, more);
    assert_eq!(from_files(&fixture, &with).code, 0);
    assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
    // R5.
    let run = from_files(&fixture, &without);
    assert_eq!((run.code, counts(&run, "files", ["changed", "unchanged"])), (0, [0, 60]));
    assert!(run.told.contains(&part) && run.report["notes"].to_string().contains(&part), "{run:?}");
    assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
    let factors = "SELECT count(*) FROM daily WHERE adjustment_factor IS NULL";
    assert_eq!(rows(&fixture, factors), ["0"]);

    // U5.
    let fixture = Fixture::new(Market::default());
    let run = from_files(&fixture, &without);
    assert_eq!((run.code, run.told.contains(&part)), (0, true), "{run:?}");
    let closes = |more: &[&str]| closes_before(&fixture, "2025-12-17", 2, more);
    assert_eq!((closes(&["--adjusted"]), closes(&[])), (three("null null"), three("115 null")));
    assert_eq!(served(&fixture, "1305")["spansSplit"], Value::Null);
    assert_eq!(from_files(&fixture, &with).code, 0);
    assert_eq!(closes(&["--adjusted"]), three("57.5 true"));
}

/// F2 and F3 of the job's rules.
#[test]
fn files_of_days_are_read_where_that_of_their_month_has_none() {
    let files = tempfile::tempdir().unwrap();
    bars(files.path(), "202512", &[15, 16], true);
    bars(files.path(), "20251216", &[16], true);
    bars(files.path(), "20251217", &[17], true);
    let fixture = Fixture::new(Market::default());
    let run = from_files(&fixture, &files);
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:20 16:20 17:20".to_owned()));
    let part = "not read, because the file of the whole month has the same day: \
                equities_bars_daily_20251216.csv.gz";
    assert!(run.told.contains(part) && run.report["notes"].to_string().contains(part), "{run:?}");
    assert!(!run.told.contains("20251217.csv.gz"), "{run:?}");
    assert_eq!(source(&run, "files")["asked"], 2);

    // A month that cannot be read is no reason to leave its days out, and it is told.
    fs::write(files.path().join("equities_bars_daily_202512.csv.gz"), "no gzip").unwrap();
    let fixture = Fixture::new(Market::default());
    let run = from_files(&fixture, &files);
    assert_eq!((run.code, fixture.published().join(" ")), (3, "16:20 17:20".to_owned()), "{run:?}");
    assert_eq!(run.days(), ["01 failed", "16 fetched", "17 fetched"]);
}

/// F4 of the job's rules.
#[test]
fn days_that_are_named_and_in_no_file_are_missing() {
    let files = tempfile::tempdir().unwrap();
    bars(files.path(), "202512", &[15, 16], true);
    let fixture = Fixture::new(Market::default());
    assert_eq!(from_files(&fixture, &files).code, 0);
    let path = files.path().to_str().unwrap();
    let fixed = ["update", "--format", "json", "--from-files", path, "--as-of", "2025-12-18"];
    let update = |days: &str| {
        fixture.run(&mut command(fixture.path(), &[&fixed[..], &["--days", days]].concat()))
    };
    let run = update("4");
    assert_eq!(run.code, 3, "{run:?}");
    assert_eq!(run.incomplete(), ["17 0 of null", "18 0 of null"]);
    // Days before the first one that is there were never due.
    let run = update("30");
    assert_eq!((run.code, run.incomplete().len()), (3, 2), "{run:?}");
    bars(files.path(), "202512", &[15, 16, 17, 18], true);
    let run = update("4");
    assert_eq!((run.code, fixture.published().len()), (0, 4), "{run:?}");
}

/// The web broker on Wednesday, without a split.
fn broker_on_wednesday(path: &str) -> String {
    if !path.starts_with("/e_api/") {
        return "No data".to_owned();
    }
    if let Some(answer) = session(path) {
        return answer;
    }
    let code = path.split("%22sIssueCode%22%3A%22").nth(1).unwrap().split("%22").next();
    let row = json!({ "sDate": "20251217", "pDOP": "58", "pDHP": "58", "pDLP": "58", "pDPP": "58",
                      "pDV": "7", "pSPUO": "", "pSPUC": "", "pSPUK": "" });
    json!({ "p_errno": "0", "p_err": "", "sIssueCode": code, "aCLMMfdsMarketPriceHistory": [row] })
        .to_string()
}

/// U3 of the snapshot's rules, where only one of two rows is the vendor's.
#[test]
fn a_row_that_was_lost_beside_one_of_the_web_broker_may_have_had_a_split() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 3), ("20251216", 2)]),
        listed: Some(3),
        alter: Some(split_on_tuesday),
        others: Some(broker_on_wednesday),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete");
    assert_eq!((run.code, fixture.published().join(" ")), (3, "15:3 16:2".to_owned()));
    // The lost row is the last issue's, and on Wednesday there is nobody else than the web broker.
    let arguments = "--as-of 2025-12-17 --publish-incomplete";
    fixture.run(with_broker(&fixture, &mut without_vendor(&fixture, arguments)));
    assert_eq!(fixture.published(), ["15:3", "16:2", "17:3"]);
    let value = |code: &str| {
        let row = served(&fixture, code);
        (row["sortValue"].clone(), row["spansSplit"].clone())
    };
    assert_eq!(value("1301"), (json!(57.5), json!(true)));
    assert_eq!(value("1302"), (Value::Null, Value::Null));
}

/// R6 and R7 of the sources' rules.
#[test]
fn a_row_that_the_vendor_takes_back_goes_and_is_named() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        listed: Some(100),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    let refetch = |change: fn(&mut Market)| {
        fixture.change(change);
        fixture.update("--as-of 2025-12-16 --days 1 --refetch")
    };
    let stays = |run: &Run, why: &str| {
        let notes = run.report["notes"].to_string();
        let part = "the vendor no longer has 1 rows of 2025-12-16 that are stored, and they stay: ";
        assert!(notes.contains(&format!("{part}{why}")), "{notes}");
        assert!(notes.contains("the first row that is missing is of 1399"), "{notes}");
        assert_eq!((run.code, counts(run, "vendor", ["removed"])), (0, [0]));
        assert_eq!(fixture.published(), ["15:100", "16:100"]);
    };
    // R7: an issue that is listed has a row, so this one was forgotten.
    let run = refetch(|market| _ = market.days.insert("20251216", 99));
    stays(&run, "their issues are listed");
    let run = refetch(|market| market.listed = None);
    stays(&run, "there is no list");
    let run = refetch(|market| {
        market.listed = Some(100);
        market.lists.insert("20251216", 99);
        market.days.insert("20251216", 50);
    });
    // C12 of the job's rules.
    assert_eq!((run.code, fixture.published().join(" ")), (3, "15:100 16:100".to_owned()));
    assert!(
        run.report["notes"].to_string().contains("was refused: it has 50 of the 100"),
        "{run:?}"
    );
    // An answer for one issue is none for all.
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch --codes 1301");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:100 16:100".to_owned()));

    // R6.
    let run = refetch(|market| _ = market.days.insert("20251216", 99));
    assert_eq!((run.code, counts(&run, "vendor", ["removed"])), (0, [1]), "{run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:99"]);
    let named = &run.report["corrections"][0];
    assert_eq!((text(&named["code"]), text(&named["date"])), ("1399".into(), "2025-12-16".into()));
    assert_eq!((&named["taken_back"], &named["before"]), (&json!(true), &json!("vendor")));
    let close = json!({ "column": "close", "old": 116.0, "new": null });
    assert!(named["values"].as_array().unwrap().contains(&close), "{named}");
    let left = "SELECT strftime(date, '%d') FROM daily WHERE code = '1399'";
    assert_eq!(rows(&fixture, left), ["15"]);
    // What is gone once is no news.
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    assert_eq!(
        (counts(&run, "vendor", ["removed"]), &run.report["published"]),
        ([0], &Value::Null)
    );
    // People see it too, and it may come back.
    let shown = |arguments: &[&str]| {
        let vendor = format!("http://{}/v2", fixture.server.address);
        let mut update = command(fixture.path(), &["update", "--as-of", "2025-12-16"]);
        update.args(["--vendor-rate", "60000", "--vendor-url", &vendor]).args(arguments);
        texts(&update.output().unwrap()).0
    };
    fixture.change(|market| _ = market.days.insert("20251216", 100));
    shown(&["--days", "1", "--refetch"]);
    assert_eq!(fixture.published(), ["15:100", "16:100"]);
    fixture.change(|market| _ = market.days.insert("20251216", 99));
    let table = shown(&["--days", "1", "--refetch"]);
    assert!(
        table.contains("2025-12-16 1399  vendor took back that of vendor: open 116"),
        "{table}"
    );
}

/// B2 of the job's rules.
#[test]
fn a_day_of_which_a_row_was_left_out_is_asked_for_until_it_is_had() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        alter: Some(|row| {
            if row["Date"] == "2025-12-15" {
                odd::<2>(row);
            }
        }),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    let left_out = json!(["2025-12-15"]);
    // A plain run asks for what is new, and for the day again.
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16 15".to_owned()), "{run:?}");
    assert_eq!((&run.report["left_out_days"], &run.report["odd_rows"]), (&left_out, &json!(2)));
    let table =
        "days with rows that were left out; runs within 20 weekdays ask the vendor for them again";
    let vendor = format!("http://{}/v2", fixture.server.address);
    let arguments = ["update", "--as-of", "2025-12-16", "--vendor-url", &vendor];
    let shown = texts(&command(fixture.path(), &arguments).output().unwrap()).0;
    assert!(shown.contains(&format!("{table}\n  2025-12-15")), "{shown}");
    // While the vendor fails it stays, and other days are not asked for.
    fixture.change(|market| _ = market.down.insert("20251215"));
    let run = fixture.update("--as-of 2025-12-16");
    let notes = run.report["notes"].to_string();
    assert!(notes.contains("2025-12-15 stays without the rows that were left out"), "{notes}");
    assert_eq!((run.code, &run.report["left_out_days"]), (0, &left_out));

    fixture.change(|market| {
        market.down.clear();
        market.alter = None;
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.asked.join(" "), counts(&run, "vendor", ["inserted"])), ("15".into(), [2]));
    assert_eq!(
        (fixture.published().join(" "), &run.report["left_out_days"]),
        ("15:200 16:200".into(), &json!([]))
    );
    assert_eq!(fixture.update("--as-of 2025-12-16").asked, [""; 0], "it is whole");

    // What was kept of the day on this machine before is no answer.
    fixture.change(|market| market.alter = Some(odd::<1>));
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 1 --refetch").code, 0);
    assert_eq!(fixture.update("--as-of 2025-12-16").asked, ["16"]);
    let whole = sql(fixture.path(), "SELECT count(*) FROM daily WHERE code = '1300'");
    assert_eq!(whole.lines().last(), Some("2"), "the row of before stays");
}
