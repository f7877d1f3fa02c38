//! What `kumiki update` decides where the vendor fails, contradicts itself or says nothing: each rule of
//! days with the program itself, against a vendor on this machine or files of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use domain::{JstDate, clock, holidays};
use pricestore::{DataDir, DatasetStatus};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::update_days::{Fixture, Market, Run, days, text};
use crate::update_program::{command, daily_files, sql, texts};

/// `Close` of the day before and of the one before that on a day, of the issue that is ranked first.
fn closes_before(folder: &Path, day: &str) -> [Value; 2] {
    ["Close[-1]", "Close[-2]"].map(|formula| {
        let arguments = ["rank", "--from", day, "--limit", "1", "--format", "jsonl"];
        let output = command(folder, &arguments).args(["--sort-by", formula]).output().unwrap();
        let (lines, errors) = texts(&output);
        let row = lines.lines().next().unwrap_or_else(|| panic!("{errors}"));
        serde_json::from_str::<Value>(row).unwrap()["sortValue"].clone()
    })
}

fn three_days_with_a_hole() -> Market {
    Market { days: days([("20251215", 20), ("20251217", 20)]), ..Market::default() }
}

/// D7: the vendor fails for a day, and nobody else has it.
fn check_better_source(fail: fn(&mut Market)) {
    let fixture = Fixture::new(three_days_with_a_hole());
    fixture.change(fail);
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.days()), (3, vec!["16 failed".to_owned()]));
    assert_eq!(run.report["incomplete"][0]["date"], "2025-12-16");
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.days()), (6, vec!["16 failed".to_owned(), "17 fetched".to_owned()]));
    assert_eq!(run.report["gaps"], json!(["2025-12-16"]));
    assert_eq!(closes_before(fixture.path(), "2025-12-17"), [Value::Null, json!(115)]);

    fixture.change(|market| {
        market.down.clear();
        market.refused.clear();
        market.days.insert("20251216", 20);
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16".to_owned()));
    assert_eq!(closes_before(fixture.path(), "2025-12-17"), [json!(116), json!(115)]);
}

#[test]
fn a_day_whose_better_source_is_down_stays_failed() {
    check_better_source(|market| _ = market.down.insert("20251216"));
}

#[test]
fn a_day_that_the_better_source_refuses_stays_failed() {
    check_better_source(|market| _ = market.refused.insert("20251216"));
}

#[test]
fn without_a_calendar_of_the_vendor_the_law_s_tells_which_days_must_exist() {
    let fixture = Fixture::new(Market {
        days: days([("20251230", 20), ("20260105", 20), ("20260107", 20)]),
        ..Market::default()
    });
    // D2: the exchange is closed at the turn of the year.
    let run = fixture.update("--as-of 2026-01-05 --days 5");
    assert_eq!((run.code, run.asked.join(" ")), (0, "30 05".to_owned()));
    assert_eq!(closes_before(fixture.path(), "2026-01-05")[0], 130);
    // G1: a plain answer without rows is no holiday.
    let run = fixture.update("--as-of 2026-01-07");
    assert_eq!((run.code, run.report["gaps"].clone()), (6, json!(["2026-01-06"])));
    // Nor is it one for a job whose own database is gone.
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    let run = fixture.update("--as-of 2026-01-07");
    assert_eq!((run.code, run.report["gaps"].clone()), (6, json!(["2026-01-06"])));
    fixture.change(|market| _ = market.days.insert("20260106", 20));
    assert_eq!(fixture.update("--as-of 2026-01-07").code, 0);
    // D6: before all days that there are, nobody need have any, and nobody is asked again.
    let run = fixture.update("--as-of 2026-01-07 --days 10");
    assert_eq!((run.code, run.days()[0].as_str()), (0, "25 no_data"));
    assert!(run.asked.contains(&"25".to_owned()), "{run:?}");
    assert_eq!(fixture.update("--as-of 2026-01-07 --days 10").asked, Vec::<String>::new());
}

#[test]
fn the_calendar_is_asked_for_inside_of_the_subscription() {
    let fixture = Fixture::new(Market {
        divisions: Some([("20251216", "0")].into()),
        calendar_covered: Some(("20250601", "20251219")),
        ..three_days_with_a_hole()
    });
    let run = fixture.update("--as-of 2025-12-17 --days 3");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15 17 16".to_owned()));
    let known = sql(fixture.path(), "SELECT min(date), max(date) FROM calendar");
    assert_eq!(known.lines().last(), Some("2025-06-01,2025-12-19"));
}

/// Files of the vendor with 20 issues on these days of December 2025.
fn december(days: &[(u32, usize)]) -> TempDir {
    let files = tempfile::tempdir().unwrap();
    let mut rows = String::new();
    for (day, issues) in days {
        for number in 0..*issues {
            let (code, close) = (13_000 + 10 * number, 100 + day);
            rows += &format!(
                "2025-12-{day:02},{code},{close},{close},{close},{close},0,0,100,1100,1.0\n"
            );
        }
    }
    daily_files(files.path(), &[("equities_bars_daily_202512.csv.gz", &rows)]);
    files
}

fn from_files(folder: &Path, files: &TempDir) -> (i32, Value) {
    let files = files.path().to_str().unwrap();
    let arguments = ["update", "--format", "json", "--from-files", files];
    let output = command(folder, &arguments).output().unwrap();
    let (report, errors) = texts(&output);
    let report = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (output.status.code().unwrap(), report)
}

#[test]
fn days_that_files_do_not_have_are_told_and_counted_by_lags() {
    let files = december(&[(15, 20), (16, 20), (22, 20)]);
    let folder = tempfile::tempdir().unwrap();
    // G1, by the law.
    let (code, report) = from_files(folder.path(), &files);
    let gaps = json!(["2025-12-17", "2025-12-18", "2025-12-19"]);
    assert_eq!((code, &report["gaps"]), (6, &gaps));
    assert_eq!(closes_before(folder.path(), "2025-12-22"), [Value::Null, Value::Null]);

    // F1: by the calendar beside the files.
    let open = |day: JstDate| {
        let is_out = ("2025-12-17"..="2025-12-19").contains(&day.to_string().as_str());
        u8::from(!holidays::is_closed(day) && !is_out)
    };
    let first: JstDate = "2025-11-01".parse().unwrap();
    let calendar = first.iter_days().take(60).map(|day| format!("{day},{}\n", open(day)));
    let calendar = format!("Date,HolDiv\n{}", calendar.collect::<String>());
    fs::write(files.path().join("markets_calendar.csv"), calendar).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = from_files(folder.path(), &files);
    // D10: three that the law knows nothing of are told.
    assert_eq!((code, &report["gaps"]), (3, &json!([])), "{report}");
    assert_eq!(report["doubts"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(closes_before(folder.path(), "2025-12-22"), [json!(116), json!(115)]);
    fs::write(files.path().join("markets_calendar.csv"), "Date,HolDiv\n2025-12-01").unwrap();
    let path = files.path().to_str().unwrap();
    let output = command(folder.path(), &["update", "--from-files", path]).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("markets_calendar.csv, line 2"), "{errors}");
}

#[test]
fn rows_of_closed_days_in_files_are_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    // The 20th is a Saturday.
    let (code, report) = from_files(folder.path(), &december(&[(19, 20), (20, 2), (22, 20)]));
    assert_eq!((code, &report["gaps"], &report["incomplete"]), (0, &json!([]), &json!([])));
    assert_eq!(report["odd"][0]["row"], "1300 on 2025-12-20, and 1 more of the day");
    assert_eq!(report["odd"][0]["reason"], "the exchange is closed on this day");
    let published = sql(folder.path(), "SELECT count(DISTINCT date), count(*) FROM daily");
    assert_eq!(published.lines().last(), Some("2,40"));
}

#[test]
fn a_list_that_shrinks_with_its_day_proves_nothing() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50)]),
        listed: Some(100),
        lists: [("20251216", 50)].into(),
        ..Market::default()
    });
    // L3: more than one in ten is gone.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 50 of 100".to_owned()]));
    assert_eq!(fixture.published(), ["15:100"]);
    let notes = run.report["notes"].to_string();
    let words = "the list of issues of 2025-12-16 has 50 issues where there were 100 on 2025-12-15";
    assert!(notes.contains(words), "{notes}");
    // One in a hundred may go from one day to the next.
    fixture.change(|market| {
        market.lists.insert("20251216", 99);
        market.days.insert("20251216", 99);
    });
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    assert_eq!(fixture.published(), ["15:100", "16:99"]);
}

#[test]
fn a_list_that_could_not_be_had_is_not_one_that_does_not_exist() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 5), ("20251216", 20)]),
        listed: Some(20),
        lists_down: true,
        ..Market::default()
    });
    // C7.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.days()), (3, vec!["15 incomplete".into(), "16 incomplete".into()]));
    assert_eq!(fixture.published(), Vec::<String>::new());
    fixture.change(|market| {
        market.lists_down = false;
        market.days.insert("20251215", 20);
    });
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15 16".to_owned()));
    assert_eq!(fixture.published(), ["15:20", "16:20"]);
    // With a complete day before it, C2 holds.
    fixture.change(|market| {
        market.lists_down = true;
        market.days.extend([("20251217", 20), ("20251218", 5)]);
    });
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, run.incomplete()), (3, vec!["18 5 of 20".to_owned()]));
}

fn gaps(run: &Run) -> Vec<String> {
    run.report["gaps"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn what_left_the_subscription_is_told_and_not_due() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50), ("20251217", 100)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 3);
    // D4, G2: it can never become complete.
    fixture.change(|market| market.covered = Some(("20251217", "20261231")));
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
        assert_eq!(gaps(&run), ["2025-12-16"], "readers are told all the same");
    }
    assert_eq!(fixture.published(), ["15:100", "17:100"]);
}

#[test]
fn a_day_that_turns_out_to_be_closed_is_neither_missing_nor_published() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 3), ("20251217", 100)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 6);
    fixture.change(|market| market.divisions = Some([("20251216", "0")].into()));
    // D8: of which there are rows, and nobody has said that it was closed.
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, gaps(&run)), (6, vec!["2025-12-16".to_owned()]), "{run:?}");
    let doubt = &run.report["doubts"][0];
    assert_eq!((&doubt["kind"], &doubt["date"]), (&json!("closed"), &json!("2025-12-16")));
    let words = "of 2025-12-16 the vendor's calendar says closed, and 3 rows of it are stored";
    assert!(run.told.contains(words), "{}", run.told);
    // D2.
    for more in [" --accept 2025-12-16", "", " --publish-incomplete"] {
        let run = fixture.update(&format!("--as-of 2025-12-17{more}"));
        assert_eq!((run.code, run.incomplete(), gaps(&run)), (0, Vec::new(), Vec::new()));
        assert_eq!(fixture.published(), ["15:100", "17:100"]);
    }
    assert_eq!(closes_before(fixture.path(), "2025-12-17")[0], 115);
}

#[test]
fn a_gap_after_the_last_day_that_is_wanted_is_not_due() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 3), ("20251217", 100)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 6);
    // G2, D1.
    let run = fixture.update("--as-of 2025-12-15");
    assert_eq!((run.code, gaps(&run)), (0, vec!["2025-12-16".to_owned()]));
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 6);
}

/// The last two business days before today, like 20251215.
fn recent() -> [&'static str; 2] {
    let today = clock::wall_now().jst_date();
    let before = std::iter::successors(today.pred_opt(), JstDate::pred_opt);
    let mut open = before.filter(|day| !holidays::is_closed(*day));
    let mut compact = || -> &'static str {
        Box::leak(open.next().unwrap().to_string().replace('-', "").into_boxed_str())
    };
    let last = compact();
    [compact(), last]
}

#[test]
fn a_young_day_without_any_price_is_not_over() {
    let [first, last] = recent();
    let dashed = [first, last].map(crate::update_days::dashed);
    let fixture = Fixture::new(Market {
        days: days([(first, 20), (last, 20)]),
        alter: Some(|row| {
            let is_last = text(&row["Date"]).replace('-', "") == recent()[1];
            for name in ["O", "H", "L", "C", "Vo", "Va"].into_iter().filter(|_| is_last) {
                row[name] = Value::Null;
            }
        }),
        ..Market::default()
    });
    // C8.
    let run = fixture.update(&format!("--as-of {} --days 2", dashed[1]));
    assert_eq!((run.code, run.incomplete().len()), (3, 1), "{run:?}");
    assert_eq!(fixture.published().len(), 1);
    let notes = run.report["notes"].to_string();
    assert!(notes.contains(&format!("no issue was traded on {}", dashed[1])), "{notes}");
    // Nor where the vendor is down and only what is stored is judged.
    fixture.change(|market| _ = market.down.insert(last));
    assert_eq!(fixture.update(&format!("--as-of {}", dashed[1])).code, 3);
    assert_eq!(fixture.published().len(), 1);
    fixture.change(|market| {
        market.down.clear();
        market.alter = None;
    });
    assert_eq!(fixture.update(&format!("--as-of {}", dashed[1])).code, 0);
    assert_eq!(fixture.published().len(), 2);
}

/// C8: the exchange was open, so something was traded.
#[test]
fn a_day_without_any_trade_waits_until_it_is_accepted() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20)]),
        alter: Some(|row| {
            ["O", "H", "L", "C", "Vo", "Va"].into_iter().for_each(|name| row[name] = Value::Null);
        }),
        ..Market::default()
    });
    for zero in [false, true] {
        let run = fixture.update("--as-of 2025-12-15 --days 1");
        assert_eq!((run.code, fixture.published()), (3, Vec::new()), "{zero}: {run:?}");
        assert!(run.report["notes"].to_string().contains("no issue was traded on 2025-12-15"));
        assert!(text(&run.report["incomplete"][0]["why"]).contains("no issue was traded"));
        fixture.change(|market| {
            market.alter = Some(|row| {
                ["O", "H", "L", "C"].into_iter().for_each(|name| row[name] = Value::Null);
                (row["Vo"], row["Va"]) = (json!(0), json!(0));
            });
        });
    }
    let run = fixture.update("--as-of 2025-12-15 --accept 2025-12-15");
    assert_eq!((run.code, fixture.published()), (0, vec!["15:20".to_owned()]), "{run:?}");
    assert_eq!(fixture.update("--as-of 2025-12-15").code, 0);
}

#[test]
fn a_job_database_made_anew_knows_which_days_were_not_complete() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete").code, 3);
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 50 of 100 published".to_owned()]));
    fixture.change(|market| _ = market.days.insert("20251216", 100));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:100 16:100".to_owned()));
}

#[test]
fn readers_are_told_what_is_missing_also_where_a_file_is_in_the_way() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20), ("20251217", 20)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    let data = DataDir::new(fixture.path());
    let told = || DatasetStatus::load(&data).unwrap().unwrap();
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 6);
    assert_eq!(told().gaps, ["2025-12-16"]);
    fixture.change(|market| _ = market.days.insert("20251216", 21));
    fs::write(data.mother().with_file_name("1320.db"), "somebody else's").unwrap();
    let output = fixture.command("--as-of 2025-12-17").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{:?}", texts(&output));
    assert_eq!(told().gaps, Vec::<String>::new());
}

#[test]
fn of_a_snapshot_of_others_the_job_has_told_nothing() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 20), ("20251217", 20)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 6);
    let dataset = "{ dataset { lastDate missingDates } }";
    let serving = fixture.serve();
    let expected = json!({ "lastDate": "2025-12-17", "missingDates": ["2025-12-16"] });
    assert_eq!(serving.ask(dataset)["data"]["dataset"], expected);
    drop(serving);
    // Another program's combined database, ranked.
    let others = Fixture::new(Market {
        days: days([("20251222", 5), ("20251223", 5)]),
        ..Market::default()
    });
    assert_eq!(others.update("--as-of 2025-12-23 --days 2").code, 0);
    let mother = |fixture: &Fixture| DataDir::new(fixture.path()).mother();
    fs::copy(mother(&others), mother(&fixture)).unwrap();
    let output = command(fixture.path(), &["rank", "publish"]).output().unwrap();
    assert!(output.status.success(), "{:?}", texts(&output));
    let serving = fixture.serve();
    let expected = json!({ "lastDate": "2025-12-23", "missingDates": null });
    assert_eq!(serving.ask(dataset)["data"]["dataset"], expected);
}
