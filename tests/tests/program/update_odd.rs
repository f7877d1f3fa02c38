//! Days that no market ever had, as a vendor may give them on a bad evening: `kumiki update` does not publish
//! them unless the user accepts them by their date. Each rule of the job's table with the program itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::http;

use crate::update_days::{Fixture, Market, days, text};
use crate::update_guards::doubts;
use crate::update_program::{command, daily_files};
use crate::update_sources::{counts, rows};

/// Monday is published, and Tuesday comes with this change.
fn tuesday(change: fn(&mut Market)) -> Fixture {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    fixture.change(change);
    fixture
}

/// The day waits, and the report, standard error and those who ask the service are told why.
fn check_odd(change: fn(&mut Market), why: &str) {
    let fixture = tuesday(change);
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, run.asked.join(" ")), (3, "16".to_owned()), "{why}: {run:?}");
        assert_eq!((run.days(), doubts(&run)), (vec!["16 refused".into()], vec!["16 odd".into()]));
        let short = &run.report["incomplete"][0];
        assert_eq!(text(&short["why"]), format!("it is odd, {why}"));
        assert!(text(&short["advice"]).contains("--accept") && run.told.contains(why), "{run:?}");
        assert_eq!(fixture.published(), ["15:100"], "{why}");
    }
    let dataset = "{ dataset { lastDate incompleteDates } }";
    let expected = json!({ "lastDate": "2025-12-15", "incompleteDates": ["2025-12-16"] });
    assert_eq!(fixture.serve().ask(dataset)["data"]["dataset"], expected);
    // Not by the way, but by its date.
    assert_eq!(fixture.update("--as-of 2025-12-16 --publish-incomplete").code, 3);
    assert_eq!(fixture.published(), ["15:100"], "{why}");
    let run = fixture.update("--as-of 2025-12-16 --accept 2025-12-16");
    assert_eq!((run.code, fixture.published().len()), (0, 2), "{why}: {run:?}");

    // A right answer is taken as any other.
    let fixture = tuesday(change);
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 3);
    fixture.change(|market| {
        market.alter = None;
        market.listed = None;
        market.days.insert("20251216", 100);
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, counts(&run, "vendor", ["inserted"])), (0, [100]), "{why}: {run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:100"]);

    // And a published day is not replaced by such an answer.
    fixture.change(change);
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 refused".to_owned()]), "{why}: {run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:100"]);
}

/// Whether a row is of Tuesday, and of one of the first issues.
fn is_of_tuesday(row: &Value, first: u32) -> bool {
    let number: u32 = text(&row["Code"])[..4].parse().unwrap();
    row["Date"] == "2025-12-16" && number < 1_300 + first
}

/// E1.
#[test]
fn a_day_with_rows_of_issues_that_are_not_listed_waits() {
    check_odd(
        |market| {
            market.listed = Some(100);
            market.days.insert("20251216", 103);
        },
        "unlisted: it has 3 rows of issues that are not among the 100 which the vendor lists for this \
         date, and 1 % may be",
    );
}

/// E1, R6 of the sources' rules: a few are named, and go with a right answer.
#[test]
fn a_few_rows_of_issues_that_are_not_listed_are_named_and_go() {
    let fixture = tuesday(|market| {
        market.listed = Some(200);
        market.days.insert("20251216", 202);
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, doubts(&run)[0].as_str()), (0, "16 unlisted"), "{run:?}");
    let what = text(&run.report["doubts"][0]["what"]);
    assert!(what.starts_with("2 of its rows") && what.ends_with("1500, 1501"), "{what}");
    assert!(run.told.contains(&what), "{}", run.told);
    assert_eq!(fixture.published(), ["15:100", "16:202"]);
    fixture.change(|market| _ = market.days.insert("20251216", 200));
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    assert_eq!((run.code, counts(&run, "vendor", ["removed"])), (0, [2]), "{run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:200"]);
}

/// R6: what an evening left in `work/` that is not listed goes when the day is had.
#[test]
fn what_waits_and_is_not_listed_is_not_published_with_the_day() {
    let fixture = tuesday(|market| {
        _ = market.days.insert("20251216", 98);
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, counts(&run, "vendor", ["inserted"])), (3, [98]), "{run:?}");
    // Five were delisted, and three of them had rows.
    fixture.change(|market| {
        market.listed = Some(95);
        market.days.insert("20251216", 95);
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, counts(&run, "vendor", ["removed"])), (0, [3]), "{run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:95"]);
}

/// E2.
#[test]
fn a_day_on_which_everything_costs_a_yen_waits() {
    let change = |market: &mut Market| {
        market.alter = Some(|row| {
            if is_of_tuesday(row, 51) {
                ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(1));
            }
        });
    };
    check_odd(change, "one yen: 51 of the 100 issues with a price cost 1 yen");
}

/// E3.
#[test]
fn a_day_with_the_rows_of_the_day_before_waits() {
    let change = |market: &mut Market| {
        market.alter = Some(|row| {
            for (name, value) in [("O", 115), ("H", 117), ("L", 114), ("C", 115), ("Vo", 11_500)] {
                if is_of_tuesday(row, 51) {
                    row[name] = json!(value);
                }
            }
        });
    };
    check_odd(change, "repeated: 51 of the 100 issues with a volume have the prices of 2025-12-15");
}

/// E4. Of a published day R8 says it first.
#[test]
fn a_day_on_which_nothing_is_traded_at_a_price_waits() {
    let change = |market: &mut Market| {
        market.alter = Some(|row| {
            if is_of_tuesday(row, 100) {
                row["Vo"] = json!(0);
            }
        });
    };
    check_odd(change, "no volume: 100 issues have a price, and 0 have a volume");
}

/// E5.
#[test]
fn a_day_on_which_a_third_of_the_market_splits_waits() {
    let change = |market: &mut Market| {
        market.alter = Some(|row| {
            if is_of_tuesday(row, 30) {
                row["AdjFactor"] = json!(0.5);
            }
        });
    };
    let why = "splits: 30 of 100 issues have an adjustment factor other than 1, and 20 % may have";
    check_odd(change, why);
}

/// The day is published, and the report and those who ask the service are told why it looks strange.
fn check_strange(change: fn(&mut Value), why: &str) {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        divisions: Some(BTreeMap::new()),
        alter: Some(change),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    // The next run has the last days again, and tells it again.
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, doubts(&run)), (0, vec!["16 strange".to_owned()]), "{why}: {run:?}");
        assert!(run.told.contains(why), "{why}: {}", run.told);
        assert_eq!(fixture.published(), ["15:200", "16:200"]);
    }
    let health = http::request(fixture.serve().address, "GET /health", &[], &[]).text();
    assert!(health.contains("strange"), "{health}");
    let run = fixture.update("--as-of 2025-12-16 --accept 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// Z1.
#[test]
fn a_day_on_which_a_part_of_the_market_has_no_price_is_told() {
    let change = |row: &mut Value| {
        if is_of_tuesday(row, 30) {
            ["O", "H", "L", "C", "Vo", "Va"].iter().for_each(|name| row[*name] = Value::Null);
        }
    };
    check_strange(change, "170 of its 200 rows have a price, and on 2025-12-15 200 of 200 have");
}

/// Z2.
#[test]
fn a_day_on_which_some_prices_are_three_times_those_of_the_day_before_is_told() {
    let change = |row: &mut Value| {
        if is_of_tuesday(row, 39) {
            for name in ["O", "H", "L", "C"] {
                row[name] = json!(3 * row[name].as_u64().unwrap());
            }
        }
    };
    let why = "the closes of 39 of 200 issues are over one and a half daily limits away from those of 2025-12-15";
    check_strange(change, why);
}

/// Z2: splits that the prices know nothing of.
#[test]
fn a_day_whose_splits_are_not_in_its_prices_is_told() {
    let change = |row: &mut Value| {
        if is_of_tuesday(row, 39) {
            row["AdjFactor"] = json!(0.2);
        }
    };
    check_strange(change, "jump: the closes of 39 of 200 issues");
}

/// E3: not only the day before.
#[test]
fn a_day_with_the_rows_of_some_days_before_waits() {
    let fixture = Fixture::new(Market {
        days: days([("20251211", 100), ("20251212", 100), ("20251215", 100), ("20251216", 100)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 3").code, 0);
    fixture.change(|market| {
        market.alter = Some(|row| {
            if is_of_tuesday(row, 100) {
                // As the market gives it for the 11th.
                for (name, value) in
                    [("O", 111), ("H", 113), ("L", 110), ("C", 111), ("Vo", 11_100)]
                {
                    row[name] = json!(value);
                }
            }
        });
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 odd".to_owned()]), "{run:?}");
    assert!(run.told.contains("the prices of 2025-12-11"), "{}", run.told);
}

/// Eleven days are published, from the 1st on.
fn eleven_days() -> Fixture {
    let names = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 15].map(|day| format!("202512{day:02}"));
    let fixture = Fixture::new(Market {
        days: names.iter().map(|name| (&*name.clone().leak(), 100)).collect(),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 11").code, 0);
    fixture
}

/// So many issues are on Tuesday as they were on the 1st.
fn as_on_the_first<const ISSUES: u32>(row: &mut Value) {
    if is_of_tuesday(row, ISSUES) {
        set_prices(row, 101);
    }
}

/// A day's prices around its close.
fn set_prices(row: &mut Value, close: u32) {
    for (name, value) in [("O", close), ("H", close + 2), ("L", close - 1), ("C", close)] {
        row[name] = json!(value);
    }
}

/// E14 of E3: a better answer for a day that was accepted is taken, and a worse one is not.
#[test]
fn an_accepted_day_with_the_rows_of_long_before_becomes_better_and_not_worse() {
    let fixture = eleven_days();
    fixture.change(|market| {
        market.days.insert("20251216", 100);
        market.alter = Some(as_on_the_first::<60>);
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --accept 2025-12-16").code, 0);
    let again = "--as-of 2025-12-16 --days 1 --refetch";
    let stale = "SELECT count(*) FROM daily WHERE date = '2025-12-16' AND close = 101";
    let answers: [fn(&mut Value); 2] = [as_on_the_first::<95>, as_on_the_first::<30>];
    for (alter, (code, left)) in answers.into_iter().zip([(3, "60"), (0, "30")]) {
        fixture.change(|market| market.alter = Some(alter));
        let run = fixture.update(again);
        assert_eq!((run.code, rows(&fixture, stale).concat().as_str()), (code, left), "{run:?}");
    }
}

/// E3: nor only those of the last weeks.
#[test]
fn a_day_with_the_rows_of_long_before_waits() {
    let fixture = eleven_days();
    fixture.change(|market| {
        market.days.insert("20251216", 100);
        // Half of the market, as it was on the 1st.
        market.alter = Some(as_on_the_first::<50>);
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 odd".to_owned()]), "{run:?}");
    let why = "repeated: 50 of the 100 issues with a volume have the prices of 2025-12-01";
    assert!(run.told.contains(why), "{}", run.told);
    fixture.change(|market| market.alter = None);
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    // Nor does a published day become another one: one of long before, or the newest, which is not stored yet.
    fixture.change(|market| {
        market.alter = Some(|row| {
            let day = if is_of_tuesday(row, 100) { 101 } else { 117 };
            if ["2025-12-15", "2025-12-16"].contains(&text(&row["Date"]).as_str()) {
                set_prices(row, day);
            }
        });
        market.days.insert("20251217", 100);
    });
    let run = fixture.update("--as-of 2025-12-17 --recheck 3");
    let refused = ["15 refused", "16 refused"].map(str::to_owned).to_vec();
    assert_eq!((run.code, doubts(&run)), (3, refused), "{run:?}");
    for day in ["2025-12-01", "2025-12-17"] {
        let why = format!("repeated: 100 of the 100 issues with a volume have the prices of {day}");
        assert!(run.told.contains(&why), "{why}: {}", run.told);
    }
    assert_eq!(fixture.published().len(), 13);
}

/// E16: a source that answers with one issue whatever it is asked for, here from the first day on.
#[test]
fn a_day_on_which_issues_have_the_rows_of_another_one_waits() {
    let change = |market: &mut Market| {
        market.alter = Some(|row| {
            if is_of_tuesday(row, 31) {
                row["Vo"] = json!(11_700);
            }
        });
    };
    check_odd(
        change,
        "alike: 31 of the 100 issues with a volume have the prices and the volume of another one",
    );
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100)]),
        alter: Some(|row| row["Vo"] = json!(11_700)),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, doubts(&run)), (3, vec!["15 odd".to_owned()]), "{run:?}");
    assert!(run.told.contains("alike: 100 of the 100 issues"), "{}", run.told);
    assert!(!fixture.path().join("jp").join("stocks_daily").join("mother.db").exists());
}

/// D9: nobody would see that it is missing.
#[test]
fn a_business_day_that_the_vendor_s_calendar_alone_closes_is_a_doubt() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251217", 100)]),
        divisions: Some([("20251216", "0")].into()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, vec!["16 closed".to_owned()]), "{run:?}");
        assert_eq!(fixture.published(), ["15:100", "17:100"]);
    }
    let health = http::request(fixture.serve().address, "GET /health", &[], &[]).text();
    assert!(health.contains("2025-12-16"), "{health}");
    let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// E3, of a file: its days are held against each other.
#[test]
fn a_file_with_the_same_day_twice_gives_it_once() {
    let files = tempfile::tempdir().unwrap();
    let rows = |day: u32, close: u32| -> String {
        let row = |number: u32| {
            let (code, volume) = (13_000 + 10 * number, 109 + number - close);
            format!("2025-12-{day},{code},9,9,9,{close},0,0,{volume},{},1.0\n", 9 * volume)
        };
        (0..40).map(row).collect()
    };
    let rows = [rows(15, 9), rows(16, 9), rows(17, 8)].concat().replace(",9,9,9,8,", ",9,9,8,8,");
    daily_files(files.path(), &[("equities_bars_daily_202512.csv.gz", &rows)]);
    let fixture = Fixture::new(Market::default());
    let path = files.path().to_str().unwrap();
    let from_files = |more: &[&str]| {
        let arguments = ["update", "--format", "json", "--from-files", path];
        fixture.run(command(fixture.path(), &arguments).args(more))
    };
    let run = from_files(&[]);
    assert_eq!((run.code, doubts(&run)), (6, vec!["16 odd".to_owned()]), "{run:?}");
    assert_eq!(fixture.published(), ["15:40", "17:40"]);
    assert_eq!(from_files(&["--accept", "2025-12-16"]).code, 0);
    assert_eq!(fixture.published(), ["15:40", "16:40", "17:40"]);
}

/// L3: half of the market is gone from list and rows, on one evening and on all that follow.
#[test]
fn half_of_the_market_does_not_go_because_it_goes_twice() {
    let fixture = tuesday(|market| {
        market.lists.extend([("20251216", 50), ("20251217", 50), ("20251218", 50)]);
        market.days.extend([("20251216", 50), ("20251217", 50), ("20251218", 50)]);
        market.lists.insert("20251215", 100);
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1 --refetch").code, 0);
    for (day, waiting) in [(16, 1), (17, 2), (18, 3)] {
        let run = fixture.update(&format!("--as-of 2025-12-{day}"));
        assert_eq!((run.code, run.incomplete().len()), (3, waiting), "{run:?}");
        assert_eq!(doubts(&run).last(), Some(&format!("{day} list")), "{run:?}");
        assert_eq!(fixture.published(), ["15:100"]);
    }
    // Whoever has looked at it says so once.
    let run = fixture.update("--as-of 2025-12-18 --accept 2025-12-16");
    assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:50", "17:50", "18:50"]);
}
