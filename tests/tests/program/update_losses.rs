//! What `kumiki update` lets nobody take away from a day that readers see: answers without prices, and
//! answers with few rows. Each way in which rows come with the program itself.

use std::fs::{self, File};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::update_days::{Fixture, Market, Run, days, text};
use crate::update_program::{command, own_number, texts};
use crate::update_sources::{counts, odd, rows};

/// The first so many issues have neither prices nor volume on Tuesday.
fn quiet<const ISSUES: u32>(row: &mut Value) {
    let number: u32 = text(&row["Code"])[..4].parse().unwrap();
    if row["Date"] == "2025-12-16" && number < 1_300 + ISSUES {
        ["O", "H", "L", "C", "Vo", "Va"].iter().for_each(|name| row[*name] = Value::Null);
    }
}

/// Two days of 100 issues that are published, with this change of the vendor's rows from then on.
fn then(change: fn(&mut Market)) -> Fixture {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture.change(change);
    fixture
}

const REFETCH: &str = "--as-of 2025-12-16 --days 1 --refetch";

/// Prices and their sum on Tuesday.
fn tuesday(fixture: &Fixture) -> Vec<String> {
    let sum = "SELECT count(*), count(close), sum(close) FROM daily WHERE date = '2025-12-16'";
    rows(fixture, sum)
}

/// The day stays, the report says why, and the run does not end well.
fn stays(fixture: &Fixture, run: &Run, why: &str) {
    assert_eq!((run.code, text(&run.report["ending"])), (3, "incomplete".to_owned()), "{run:?}");
    let doubt = &run.report["doubts"][0];
    assert_eq!((&doubt["kind"], &doubt["date"]), (&json!("refused"), &json!("2025-12-16")));
    let what = text(&doubt["what"]);
    assert!(what.contains(why) && run.told.contains(why), "{what}: {}", run.told);
    assert_eq!(run.report["doubts"].as_array().unwrap().len(), 1);
    assert_eq!(tuesday(fixture), ["100,100,11600.0"]);
    assert_eq!(run.report["incomplete"], json!([]));
}

/// R8, of a whole day.
#[test]
fn an_answer_without_prices_takes_no_published_day_away() {
    let fixture = then(|market| market.alter = Some(quiet::<100>));
    let run = fixture.update(REFETCH);
    stays(&fixture, &run, "would take prices, volumes or turnovers of 100 of 100 issues away");
    assert_eq!((run.days(), &run.report["published"]), (vec!["16 refused".into()], &Value::Null));
    // A plain run asks for it once more (B5): what was refused is not kept on this machine.
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.clone()), (0, vec!["16".to_owned()]), "{run:?}");
    fixture.change(|market| market.alter = Some(quiet::<60>));
    stays(&fixture, &fixture.update(REFETCH), "of 60 of 100 issues away");
    // People see it too.
    let vendor = format!("http://{}/v2", fixture.server.address);
    let arguments = ["update", "--as-of", "2025-12-16", "--days", "1", "--refetch"];
    let mut update = command(fixture.path(), &arguments);
    let update = update.args(["--vendor-rate", "60000", "--vendor-url", &vendor]);
    let (shown, _) = texts(&update.output().unwrap());
    for words in
        ["days that need a look", "2025-12-16  an answer was refused: it would", "1 refused"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // One or two may be right, three at once are not.
    fixture.change(|market| market.alter = Some(quiet::<3>));
    stays(&fixture, &fixture.update(REFETCH), "of 3 of 100 issues away");
    fixture.change(|market| market.alter = Some(quiet::<2>));
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [2]), "{run:?}");
    assert_eq!(tuesday(&fixture), ["100,98,11368.0"]);
    fixture.change(|market| market.alter = None);
    assert_eq!(fixture.update(REFETCH).code, 0);
    assert_eq!(tuesday(&fixture), ["100,100,11600.0"]);
}

/// C12, of an answer without rows: what the vendor withdraws is told, and stays.
#[test]
fn a_published_day_that_is_withdrawn_stays_and_is_told() {
    let fixture = then(|market| market.days = days([("20251215", 100), ("20251216", 0)]));
    let why = "it has none of the 100 issues that are stored";
    // A plain run asks for the last days again by itself; here only where it is told to.
    for options in [REFETCH, "--as-of 2025-12-16 --recheck 1"] {
        let run = fixture.update(options);
        stays(&fixture, &run, why);
    }
    // B5: a plain run asks too, and what is kept on this machine is no answer of the vendor's.
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.clone()), (0, vec!["16".to_owned()]), "{run:?}");
    assert_eq!(run.report["doubts"][0]["kind"], "strange", "{run:?}");
    // Accepted once, it stays and is told no more, until the vendor has it again.
    for options in [&format!("{REFETCH} --accept 2025-12-16"), REFETCH] {
        let run = fixture.update(options);
        assert_eq!((run.code, &run.report["doubts"]), (0, &json!([])), "{run:?}");
        assert!(!run.told.contains(why), "{}", run.told);
        assert_eq!(tuesday(&fixture), ["100,100,11600.0"]);
    }
    fixture.change(|market| _ = market.days.insert("20251216", 100));
    assert_eq!(fixture.update(REFETCH).code, 0);
    fixture.change(|market| _ = market.days.insert("20251216", 0));
    stays(&fixture, &fixture.update(REFETCH), why);
}

/// C12: one row of a lesser source beside those of the vendor hides nothing.
#[test]
fn a_day_that_is_withdrawn_is_told_whoever_else_has_a_row_of_it() {
    let fixture = then(|market| {
        market.days.insert("20251216", 0);
        market.down.insert("20251216");
        market.others = Some(|path| match path.contains("1400") {
            true => "Date,Open,High,Low,Close,Volume\n2025-12-16,9,9,9,9,7\n".to_owned(),
            false => "No data".to_owned(),
        });
    });
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch --codes 1400");
    assert_eq!(counts(&run, "public", ["inserted"]), [1], "{run:?}");
    fixture.change(|market| market.down.clear());
    let run = fixture.update(REFETCH);
    let what = text(&run.report["doubts"][0]["what"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(what.contains("it has none of the 100 issues that are stored"), "{what}");
}

fn without_volume(row: &mut Value) {
    for name in ["Vo", "Va"] {
        row[name] = json!(0);
    }
}

/// R8: a volume of 0 is none.
#[test]
fn zeros_take_no_published_day_away() {
    let fixture = then(|market| market.alter = Some(without_volume));
    let run = fixture.update(REFETCH);
    stays(&fixture, &run, "would take prices, volumes or turnovers of 100 of 100 issues away");
    // R9: who has looked may take it all the same, for this day alone.
    let other = fixture.update("--as-of 2025-12-16 --days 1 --refetch --accept 2025-12-15");
    stays(&fixture, &other, "would take");
    let run = fixture.update("--as-of 2025-12-16 --days 1 --accept 2025-12-16");
    assert_eq!((run.code, &run.report["doubts"]), (0, &json!([])), "{}", run.report);
    assert_eq!(run.report["corrections"].as_array().unwrap().len(), 100);
    let sold = rows(&fixture, "SELECT sum(volume) FROM daily WHERE date = '2025-12-16'");
    assert_eq!(sold, ["0.0"]);
    fixture.change(|market| market.alter = None);
    assert_eq!(fixture.update(REFETCH).code, 0);
}

/// C12.
#[test]
fn an_answer_with_few_rows_replaces_no_complete_day() {
    let fixture = then(|market| {
        market.days.insert("20251216", 98);
        market.more = 4;
    });
    let run = fixture.update(REFETCH);
    stays(
        &fixture,
        &run,
        "it has 98 of the 100 issues that are stored, and it has 98 rows, and 99 %",
    );
    fixture.change(|market| _ = market.days.insert("20251216", 99));
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [99]), "{run:?}");
    assert_eq!(tuesday(&fixture), ["100,100,11996.0"]);
}

/// C12, where nothing else is known than the day itself.
#[test]
fn the_only_day_is_held_against_itself() {
    let fixture = Fixture::new(Market { days: days([("20251216", 100)]), ..Market::default() });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 1").code, 0);
    fixture.change(|market| {
        market.days.insert("20251216", 1);
        market.more = 4;
    });
    stays(&fixture, &fixture.update(REFETCH), "it has 1 of the 100 issues that are stored");
}

/// R8 where a plain run asks again (B2).
#[test]
fn a_day_that_is_had_again_is_not_taken_away() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        alter: Some(odd::<1>),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture.change(|market| market.alter = Some(quiet::<200>));
    let run = fixture.update("--as-of 2025-12-16");
    let doubt = &run.report["doubts"][0];
    assert_eq!((run.code, &doubt["date"]), (3, &json!("2025-12-16")), "{run:?}");
    assert_eq!(tuesday(&fixture), ["199,199,23084.0"]);
    assert_eq!(run.report["left_out_days"], json!(["2025-12-16"]), "it is asked for again");
    fixture.change(|market| market.alter = None);
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    assert_eq!(tuesday(&fixture), ["200,200,23200.0"]);
}

/// R8, of issues one by one and of those that the user names.
#[test]
fn issue_by_issue_no_more_goes_than_at_once() {
    let fixture = then(|market| {
        market.alter = Some(quiet::<100>);
        market.down.insert("20251216");
    });
    stays(&fixture, &fixture.update(REFETCH), "issues away");
    let codes = |count: u32| {
        let codes: Vec<String> = (0..count).map(|number| (1_300 + number).to_string()).collect();
        format!("{REFETCH} --codes {}", codes.join(" "))
    };
    let fixture = then(|market| market.alter = Some(quiet::<100>));
    stays(&fixture, &fixture.update(&codes(3)), "of 3 of 100 issues away");
    assert_eq!(fixture.update(&codes(2)).code, 0);
    assert_eq!(tuesday(&fixture), ["100,98,11368.0"]);
}

/// R8 and C12, of files.
#[test]
fn files_take_no_published_day_away() {
    let fixture = then(|_| ());
    let files = tempfile::tempdir().unwrap();
    for (count, cells, why) in [
        (100, ",,,,0,0,,", "of 100 of 100 issues away"),
        (5, "116,116,116,116,0,0,11600,9", "it has 5 of the 100 issues that are stored"),
    ] {
        let path = files.path().join("equities_bars_daily_20251216.csv.gz");
        fs::remove_file(&path).ok();
        let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        writeln!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor").unwrap();
        for number in 0..count {
            writeln!(packed, "2025-12-16,{},{cells},1.0", 13_000 + 10 * number).unwrap();
        }
        packed.finish().unwrap();
        let path = files.path().to_str().unwrap();
        let arguments = ["update", "--format", "json", "--from-files", path];
        let run = fixture.run(&mut command(fixture.path(), &arguments));
        stays(&fixture, &run, why);
    }
    // Z4: the right file ends the doubt.
    let path = files.path().join("equities_bars_daily_20251216.csv.gz");
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    writeln!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor").unwrap();
    for number in 0..100 {
        let code = (13_000 + 10 * number).to_string();
        let volume = 11_600 + own_number(&code);
        writeln!(packed, "2025-12-16,{code},116,118,115,116,0,0,{volume},1345600.5,1.0").unwrap();
    }
    packed.finish().unwrap();
    let path = files.path().to_str().unwrap();
    let arguments = ["update", "--format", "json", "--from-files", path];
    let run = fixture.run(&mut command(fixture.path(), &arguments));
    assert_eq!((run.code, &run.report["doubts"]), (0, &json!([])), "{run:?}");
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, &run.report["doubts"]), (0, &json!([])), "{run:?}");
}

/// R8, of a day that the user has published though it is not complete.
#[test]
fn a_day_that_was_published_all_the_same_is_not_taken_away() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 90)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete").code, 3);
    fixture.change(|market| market.alter = Some(quiet::<100>));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, &run.report["doubts"][0]["kind"]), (3, &json!("refused")), "{run:?}");
    assert_eq!(tuesday(&fixture), ["90,90,10440.0"]);
    // It is asked for again all the same.
    fixture.change(|market| {
        market.alter = None;
        market.days.insert("20251216", 100);
    });
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    assert_eq!(tuesday(&fixture), ["100,100,11600.0"]);
}
