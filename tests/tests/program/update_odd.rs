//! Days that no market ever had, as a vendor may give them on a bad evening: `kumiki update` does not publish
//! them unless the user accepts them by their date. Each rule of the job's table, most of them in this process.

use std::collections::BTreeMap;

use domain::Price;
use serde_json::{Value, json};
use tests::http;
use tests::update_runs::{Market as TypedMarket, UpdateRuns, date, set_prices};
use update::{DailyRow, DayOutcome, Ending};

use crate::update_days::{Fixture, Market, days, text};
use crate::update_guards::doubts;
use crate::update_program::{command, daily_files};
use crate::update_sources::rows;

const MONDAY: &str = "2025-12-15";
const TUESDAY: &str = "2025-12-16";

/// Monday is published, and Tuesday comes with this change; each has so many issues.
fn tuesday(issues: usize, change: impl FnOnce(&mut TypedMarket)) -> UpdateRuns {
    let days = [(MONDAY, issues), (TUESDAY, issues)];
    let mut runs = UpdateRuns::new(TypedMarket::of(&days).with_calendar());
    assert_eq!(runs.until(MONDAY).days(1).run().ending(), Ending::Done);
    runs.change(change);
    runs
}

/// The day waits by a rule, until it is accepted or a right answer comes; and a published day is not replaced
/// by such an answer.
fn check_odd(change: impl Fn(&mut TypedMarket) + Copy, rule: &str) {
    let mut runs = tuesday(100, change);
    for _ in 0..2 {
        let ran = runs.until(TUESDAY).run();
        assert_eq!(
            (ran.ending(), ran.asked.as_slice()),
            (Ending::Incomplete, &[TUESDAY.to_owned()][..])
        );
        assert_eq!(ran.odd(), [format!("2025-12-16 {rule}")]);
        assert_eq!((ran.doubts().len(), ran.report.days[0].outcome), (1, DayOutcome::Refused));
        assert_eq!((ran.report.days.len(), ran.report.incomplete[0].date), (1, date(TUESDAY)));
        assert_eq!(runs.published(), ["2025-12-15 100"], "{rule}");
    }
    // Not by the way, but by its date.
    assert_eq!(runs.until(TUESDAY).publish_incomplete().run().ending(), Ending::Incomplete);
    assert_eq!(runs.published(), ["2025-12-15 100"], "{rule}");
    let ran = runs.until(TUESDAY).accept(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Done, 2), "{rule}: {ran:?}");

    // A right answer is taken as any other.
    let mut runs = tuesday(100, change);
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Incomplete);
    runs.change(|market| {
        market.restore();
        market.listed = None;
        market.day(TUESDAY, 100);
    });
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), ran.vendor_rows()), (Ending::Done, [100, 0, 0]), "{rule}: {ran:?}");
    assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 100"]);

    // And a published day is not replaced by such an answer.
    runs.change(change);
    let ran = runs.until(TUESDAY).days(1).refetch().run();
    assert_eq!(
        (ran.ending(), ran.doubts()),
        (Ending::Incomplete, vec!["2025-12-16 refused".to_owned()])
    );
    assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 100"]);
}

/// The report, standard error and those who ask the service are told why a day waits.
#[test]
fn people_and_readers_are_told_of_an_odd_day() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        divisions: Some(BTreeMap::new()),
        alter: Some(|row| {
            if is_of_tuesday(row, 30) {
                row["AdjFactor"] = json!(0.5);
            }
        }),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!(
        (run.code, run.days(), doubts(&run)),
        (3, vec!["16 refused".into()], vec!["16 odd".into()])
    );
    let why = "splits: 30 of 100 issues have an adjustment factor other than 1, and 20 % may have";
    let short = &run.report["incomplete"][0];
    assert_eq!(text(&short["why"]), format!("it is odd, {why}"));
    assert!(text(&short["advice"]).contains("--accept") && run.told.contains(why), "{run:?}");
    assert_eq!(fixture.published(), ["15:100"]);
    let dataset = "{ dataset { lastDate incompleteDates } }";
    let expected = json!({ "lastDate": "2025-12-15", "incompleteDates": ["2025-12-16"] });
    assert_eq!(fixture.serve().ask(dataset)["data"]["dataset"], expected);
}

/// Whether a row is of Tuesday, and of one of the first issues.
fn is_of_tuesday(row: &Value, first: u32) -> bool {
    let number: u32 = text(&row["Code"])[..4].parse().unwrap();
    row["Date"] == "2025-12-16" && number < 1_300 + first
}

/// E1.
#[test]
fn a_day_with_rows_of_issues_that_are_not_listed_waits() {
    let change = |market: &mut TypedMarket| {
        market.listed = Some(100);
        market.day(TUESDAY, 103);
    };
    check_odd(change, "unlisted");
}

/// E1, R6 of the sources' rules: a few are named, and go with a right answer.
#[test]
fn a_few_rows_of_issues_that_are_not_listed_are_named_and_go() {
    let mut runs = tuesday(100, |market| {
        market.listed = Some(200);
        market.day(TUESDAY, 202);
    });
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), ran.doubts()[0].as_str()), (Ending::Done, "2025-12-16 unlisted"));
    let what = &ran.report.doubts[0].what;
    assert!(what.starts_with("2 of its rows") && what.ends_with("1500, 1501"), "{what}");
    assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 202"]);
    runs.change(|market| market.day(TUESDAY, 200));
    let ran = runs.until(TUESDAY).days(1).refetch().run();
    assert_eq!((ran.ending(), ran.vendor_rows()), (Ending::Done, [0, 0, 2]), "{ran:?}");
    assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 200"]);
}

/// R6: what an evening left in `work/` that is not listed goes when the day is had.
#[test]
fn what_waits_and_is_not_listed_is_not_published_with_the_day() {
    let mut runs = tuesday(100, |market| market.day(TUESDAY, 98));
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), ran.vendor_rows()), (Ending::Incomplete, [98, 0, 0]), "{ran:?}");
    // Five were delisted, and three of them had rows.
    runs.change(|market| {
        market.listed = Some(95);
        market.day(TUESDAY, 95);
    });
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), ran.vendor_rows()), (Ending::Done, [0, 0, 3]), "{ran:?}");
    assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 95"]);
}

/// E2.
#[test]
fn a_day_on_which_everything_costs_a_yen_waits() {
    let a_yen = |row: &mut DailyRow| {
        let yen = Some(Price::from_yen(1));
        [row.open, row.high, row.low, row.close] = [yen; 4];
    };
    check_odd(|market| market.alter(TUESDAY, 51, a_yen), "one yen");
}

/// E3.
#[test]
fn a_day_with_the_rows_of_the_day_before_waits() {
    let as_on_monday = |row: &mut DailyRow| {
        set_prices(row, 115);
        row.volume = Some(11_500);
    };
    check_odd(|market| market.alter(TUESDAY, 51, as_on_monday), "repeated");
}

/// E4. Of a published day R8 says it first.
#[test]
fn a_day_on_which_nothing_is_traded_at_a_price_waits() {
    check_odd(|market| market.alter(TUESDAY, 100, |row| row.volume = Some(0)), "no volume");
}

/// E5.
#[test]
fn a_day_on_which_a_third_of_the_market_splits_waits() {
    check_odd(
        |market| market.alter(TUESDAY, 30, |row| row.adjustment_factor = Some(0.5)),
        "splits",
    );
}

/// The day is published, and the report tells by which rule it looks strange, until it is accepted.
fn check_strange(issues: usize, change: fn(&mut DailyRow), rule: &str) {
    let mut runs = tuesday(200, |market| market.alter(TUESDAY, issues, change));
    // The next run has the last days again, and tells it again.
    for _ in 0..2 {
        let ran = runs.until(TUESDAY).run();
        assert_eq!(
            (ran.ending(), ran.strange()),
            (Ending::Done, vec![format!("2025-12-16 {rule}")])
        );
        assert_eq!(ran.doubts().len(), 1, "{ran:?}");
        assert_eq!(runs.published(), ["2025-12-15 200", "2025-12-16 200"]);
    }
    let ran = runs.until(TUESDAY).accept(TUESDAY).run();
    assert_eq!((ran.ending(), ran.doubts()), (Ending::Done, Vec::new()), "{ran:?}");
}

/// People and those who watch the service are told of a day that looks strange.
#[test]
fn people_and_watchers_are_told_of_a_strange_day() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        divisions: Some(BTreeMap::new()),
        alter: Some(|row| {
            if is_of_tuesday(row, 39) {
                row["AdjFactor"] = json!(0.2);
            }
        }),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (0, vec!["16 strange".to_owned()]), "{run:?}");
    assert!(run.told.contains("jump: the closes of 39 of 200 issues"), "{}", run.told);
    let health = http::request(fixture.serve().address, "GET /health", &[], &[]).text();
    assert!(health.contains("strange"), "{health}");
}

/// Z1.
#[test]
fn a_day_on_which_a_part_of_the_market_has_no_price_is_told() {
    let change = |row: &mut DailyRow| {
        *row = DailyRow {
            adjustment_factor: row.adjustment_factor,
            ..DailyRow::bare(row.date, row.code, row.source)
        };
    };
    check_strange(30, change, "priceless");
}

/// Z2.
#[test]
fn a_day_on_which_some_prices_are_three_times_those_of_the_day_before_is_told() {
    // As the market gives it, three times.
    check_strange(39, |row| set_prices(row, 3 * 116), "jump");
}

/// Z2: splits that the prices know nothing of.
#[test]
fn a_day_whose_splits_are_not_in_its_prices_is_told() {
    check_strange(39, |row| row.adjustment_factor = Some(0.2), "jump");
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
        set_json_prices(row, 101);
    }
}

/// A day's prices around its close.
fn set_json_prices(row: &mut Value, close: u32) {
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
                set_json_prices(row, day);
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
    check_odd(|market| market.alter(TUESDAY, 31, |row| row.volume = Some(11_700)), "alike");
    let mut market = TypedMarket::of(&[(MONDAY, 100)]);
    market.alter(MONDAY, 100, |row| row.volume = Some(11_700));
    let mut runs = UpdateRuns::new(market);
    let ran = runs.until(MONDAY).days(1).run();
    assert_eq!(
        (ran.ending(), ran.odd()),
        (Ending::Incomplete, vec!["2025-12-15 alike".to_owned()])
    );
    assert!(ran.report.published.is_none() && runs.published().is_empty());
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
    let mut runs = tuesday(100, |market| {
        market.lists.insert(date(MONDAY), 100);
        for day in [TUESDAY, "2025-12-17", "2025-12-18"] {
            market.lists.insert(date(day), 50);
            market.day(day, 50);
        }
    });
    assert_eq!(runs.until(MONDAY).days(1).refetch().run().ending(), Ending::Done);
    for (day, waiting) in [(TUESDAY, 1), ("2025-12-17", 2), ("2025-12-18", 3)] {
        let ran = runs.until(day).run();
        assert_eq!(
            (ran.ending(), ran.incomplete().len()),
            (Ending::Incomplete, waiting),
            "{ran:?}"
        );
        assert_eq!(ran.doubts().last(), Some(&format!("{day} list")), "{ran:?}");
        assert_eq!(runs.published(), ["2025-12-15 100"]);
    }
    // Whoever has looked at it says so once.
    let ran = runs.until("2025-12-18").accept(TUESDAY).run();
    assert_eq!((ran.ending(), ran.incomplete()), (Ending::Done, Vec::new()), "{ran:?}");
    let days = [(15, 100), (16, 50), (17, 50), (18, 50)];
    assert_eq!(runs.published(), days.map(|(day, rows)| format!("2025-12-{day} {rows}")));
}
