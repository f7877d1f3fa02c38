//! What `kumiki update` holds each new day against: the days beside it, row by row and as a whole, and what the vendor's
//! list, calendar and subscription say of it. Each rule with the program itself.

use std::collections::BTreeMap;
use std::fs;

use duckdb::Connection;
use serde_json::{Value, json};
use tests::http;

use crate::update_days::{Fixture, Market, days, text};
use crate::update_guards::{REFETCH, business_days, doubts, number, published, refused};
use crate::update_program::{VENDOR_KEY, own_number};
use crate::update_sources::rows;

const WEDNESDAY: &str = "2025-12-17";

/// Monday and Tuesday are published, and Wednesday comes so.
fn with_wednesday(alter: fn(&mut Value)) -> Fixture {
    let fixture = published();
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.alter = Some(alter);
    });
    fixture
}

/// The first so many issues of Wednesday have these values.
fn set<const ISSUES: usize>(row: &mut Value, values: &[(&str, Value)]) {
    if row["Date"] == WEDNESDAY && number(row) < ISSUES {
        values.iter().for_each(|(name, value)| row[*name] = value.clone());
        let told = |name: &str| row[name].as_f64();
        if let (Some(low), Some(volume)) = (told("L"), told("Vo"))
            && values.iter().all(|(name, _)| *name != "Va")
        {
            row["Va"] = json!(low * volume);
        }
    }
}

fn priced<const ISSUES: usize>(row: &mut Value, yen: u32) {
    set::<ISSUES>(row, &["O", "H", "L", "C"].map(|name| (name, json!(yen))));
}

/// Tuesday's prices, and more volume.
fn tuesday<const ISSUES: usize, const MORE: u32>(row: &mut Value) {
    let prices = [("O", 116), ("H", 118), ("L", 115), ("C", 116), ("Vo", 11_600 + MORE)];
    set::<ISSUES>(row, &prices.map(|(name, value)| (name, json!(value))));
}

fn without_prices<const ISSUES: usize>(row: &mut Value) {
    set::<ISSUES>(row, &["O", "H", "L", "C", "Vo", "Va"].map(|name| (name, Value::Null)));
}

/// What becomes of a row.
type Alter = fn(&mut Value);

/// What Tuesday's volume was.
fn tuesdays_volume(row: &Value) -> u32 {
    11_600 + own_number(row["Code"].as_str().unwrap())
}

/// E3, E4, E8 to E12 and E17 to E19.
#[test]
fn a_day_that_cannot_follow_the_day_before_waits_for_another_answer_or_the_user() {
    let cases: [(Alter, &str); 16] = [
        (
            tuesday::<30, 0>,
            "repeated: 30 of the 200 issues with a volume have the prices of 2025-12-16",
        ),
        (
            tuesday::<30, 7>,
            "repeated: 30 of the 200 issues with a volume have the prices of 2025-12-16",
        ),
        (
            |row| set::<25>(row, &[("Vo", json!(0))]),
            "no volume: 200 issues have a price, and 175 have a volume",
        ),
        (
            without_prices::<101>,
            "priceless: 99 of its 200 rows have a price, and on 2025-12-16 200 of 200 have",
        ),
        (
            |row| priced::<41>(row, 167),
            "jump: the prices of 41 of 200 issues are beyond the daily limits around the closes of 2025-12-16",
        ),
        (
            |row| set::<41>(row, &[("H", json!(167))]),
            "jump: the prices of 41 of 200 issues are beyond the daily limits around the closes of 2025-12-16",
        ),
        (
            |row| set::<41>(row, &[("Vo", json!(1))]),
            "volumes: those of 41 of 200 issues are 100 times or more away from those of 2025-12-16",
        ),
        (
            |row| set::<101>(row, &[("Vo", json!(1_000))]),
            "volumes: those of 101 of 200 issues are 10 times or more away from those of 2025-12-16",
        ),
        (
            |row| set::<41>(row, &[("Va", json!(1_000))]),
            "turnovers: those of 41 of 200 issues do not fit to their prices and volumes",
        ),
        (
            |row| set::<81>(row, &["O", "H", "L", "C"].map(|name| (name, json!(116)))),
            "repeated: 81 of the 200 issues with a volume have the closes of 2025-12-16",
        ),
        (|row| priced::<3>(row, 2_000), "far: prices of 3 of 200 issues are over 10 times away"),
        (
            |row| set::<81>(row, &[("Vo", json!(tuesdays_volume(row)))]),
            "repeated: 81 of the 200 issues with a volume have the volumes of 2025-12-16",
        ),
        (
            |row| priced::<101>(row, 117),
            "flat: 99 of the 200 issues with a volume have more than one price, and on 2025-12-16 200 of 200 had",
        ),
        (
            |row| set::<101>(row, &[("Va", Value::Null)]),
            "no turnover: 99 of the 200 issues with a volume have a turnover, and on 2025-12-16 200 of 200 had",
        ),
        (
            |row| set::<41>(row, &[("H", json!(120.05))]),
            "off tick: 41 of 200 issues have prices that are on no tick of the exchange; the first is 1300",
        ),
        (
            |row| set::<121>(row, &[("C", json!(119))]),
            "columns: 121 of the 200 issues that moved closed at their high, far more than on 2025-12-16",
        ),
    ];
    for (alter, why) in cases {
        let fixture = with_wednesday(alter);
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (3, vec!["17 odd".to_owned()]), "{why}: {run:?}");
        assert!(run.told.contains(why), "{why}: {}", run.told);
        assert_eq!(fixture.published(), ["15:200", "16:200"], "{why}");
        let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-17");
        assert_eq!(run.code, 0, "{why}: {run:?}");
        assert_eq!(fixture.published(), ["15:200", "16:200", "17:200"], "{why}");
        // The vendor's better answer is taken as well.
        let fixture = with_wednesday(alter);
        assert_eq!(fixture.update("--as-of 2025-12-17").code, 3);
        fixture.change(|market| market.alter = None);
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{why}: {run:?}");
    }
    // A little of each is the market's.
    let cases: [Alter; 6] = [
        tuesday::<20, 0>,
        |row| set::<2>(row, &[("Vo", json!(0))]),
        |row| set::<29>(row, &[("Vo", json!(1))]),
        |row| set::<100>(row, &[("Vo", json!(1_000 + number(row)))]),
        |row| set::<200>(row, &[("H", json!(166))]),
        without_prices::<10>,
    ];
    for alter in cases {
        let run = with_wednesday(alter).update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    }
}

/// E13: a fault is not right because the user has once taken it. After five days the market is so.
#[test]
fn a_day_as_odd_as_one_that_was_accepted_waits_too() {
    let fixture = published();
    fixture.change(|market| {
        let later = business_days("2025-12-17", "2025-12-25");
        market.days.extend(later.into_iter().map(|day| (day, 200)));
        market.alter = Some(|row| {
            if row["Date"].as_str().unwrap() >= WEDNESDAY {
                row["Va"] = Value::Null;
            }
        });
    });
    for day in ["17", "18", "19", "22", "23"] {
        let run = fixture.update(&format!("--as-of 2025-12-{day}"));
        assert_eq!((run.code, doubts(&run)), (3, vec![format!("{day} odd")]), "{run:?}");
        let run = fixture.update(&format!("--as-of 2025-12-{day} --accept 2025-12-{day}"));
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    }
    let run = fixture.update("--as-of 2025-12-24");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    // With turnovers again nothing is odd.
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-25");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// E20 and Z9: the issues of a market do not change from one day to the next, also where the list says so.
#[test]
fn a_market_of_other_issues_waits_or_is_told() {
    fn others<const ISSUES: usize>(row: &mut Value) {
        if row["Date"] != WEDNESDAY && number(row) < ISSUES {
            row["Code"] = json!(format!("9{}", &row["Code"].as_str().unwrap()[1..]));
        }
    }
    let what = "of the 200 issues of 2025-12-16 have no row, and others have";
    for (alter, code, told) in
        [(others::<30> as Alter, 3, "17 odd"), (others::<5>, 0, "17 strange"), (others::<4>, 0, "")]
    {
        let fixture = Fixture::new(Market {
            days: days([("20251215", 200), ("20251216", 200)]),
            alter: Some(alter),
            ..Market::default()
        });
        assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
        fixture.change(|market| {
            market.days.insert("20251217", 200);
            market.lists = days([("20251217", 200)]);
        });
        let run = fixture.update("--as-of 2025-12-17");
        let told: Vec<&str> = told.split_terminator('|').collect();
        assert_eq!(
            (run.code, doubts(&run)),
            (code, told.iter().map(|text| (*text).to_owned()).collect())
        );
        assert_eq!(run.told.contains(what), !told.is_empty(), "{}", run.told);
    }
}

/// Q5.
#[test]
fn a_row_with_an_impossible_price_is_left_out_until_the_user_takes_it() {
    let fixture = with_wednesday(|row| {
        if number(row) < 2 {
            ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(100_000_000));
        }
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, &run.report["odd_rows"]), (0, &json!(2)), "{run:?}");
    let odd = &run.report["odd"][0];
    assert_eq!(odd["row"], "1300 on 2025-12-17");
    let reason = "a price of 100000000 yen, over 10 times away from the last close of 116 yen";
    assert!(odd["reason"].as_str().unwrap().starts_with(reason), "{odd}");
    assert_eq!(fixture.published(), ["15:200", "16:200", "17:198"]);
    // Z5, also where the job's own database is lost.
    assert_eq!(doubts(&run), ["17 left_out"]);
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    assert_eq!(doubts(&fixture.update("--as-of 2025-12-17")), ["17 left_out"]);
    // The day after is held against the last row that there is; and the vendor is asked again (B2).
    fixture.change(|market| _ = market.days.insert("20251218", 200));
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, &run.report["odd_rows"]), (0, &json!(4)), "{run:?}");
    assert_eq!(doubts(&run), ["17 left_out", "18 left_out"]);
    assert_eq!(fixture.published()[2..], ["17:198", "18:198"]);
    let run =
        fixture.update("--as-of 2025-12-18 --refetch --accept 2025-12-17 --accept 2025-12-18");
    assert_eq!((run.code, &run.report["odd_rows"]), (0, &json!(0)), "{run:?}");
    assert_eq!(doubts(&run), [""; 0]);
    assert_eq!(fixture.published()[2..], ["17:200", "18:200"]);
    // The right prices are as far away then, and come in place of them.
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-18 --days 2 --refetch");
    assert_eq!((run.code, fixture.published().len()), (0, 4), "{run:?}");
    assert_eq!(rows(&fixture, "SELECT max(close) FROM daily"), ["118.0"]);
}

/// E8 to E10 after a business day that is missing: the last complete day tells.
#[test]
fn a_day_after_a_missing_one_is_held_against_the_last_complete_day() {
    let cases: [(Alter, &str); 3] = [
        (|row| priced::<200>(row, 230), "jump: the prices of 200 of 200 issues are beyond"),
        (|row| set::<200>(row, &[("Vo", json!(1))]), "volumes: those of 200 of 200 issues"),
        (without_prices::<150>, "priceless: 50 of its 200 rows have a price, and on 2025-12-15"),
    ];
    for (alter, why) in cases {
        let monday = days([("20251215", 200)]);
        let fixture = Fixture::new(Market { days: monday, ..Market::default() });
        assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
        fixture.change(|market| {
            market.days.extend([("20251216", 100), ("20251217", 200)]);
            market.alter = Some(alter);
        });
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (3, vec!["17 odd".to_owned()]), "{why}: {run:?}");
        assert!(run.told.contains(why), "{why}: {}", run.told);
        assert_eq!(fixture.published(), ["15:200"], "{why}");
        // What may be after two days is taken.
        fixture.change(|market| market.alter = Some(|row| set::<200>(row, &[("H", json!(215))])));
        assert_eq!(fixture.update("--as-of 2025-12-17").code, 6);
        assert_eq!(fixture.published(), ["15:200", "17:200"], "{why}");
    }
}

/// C8, E8, Z1: on 2020-10-01 nothing was traded, and no other day is such.
#[test]
fn the_day_on_which_the_exchange_failed_is_complete_without_prices() {
    let before = days([("20200929", 100), ("20200930", 100)]);
    let fixture = Fixture::new(Market { days: before, ..Market::default() });
    assert_eq!(fixture.update("--as-of 2020-09-30 --days 2").code, 0);
    fixture.change(|market| {
        market.days.insert("20201001", 100);
        market.alter = Some(|row| {
            if ["2020-10-01", "2020-10-05"].map(Value::from).contains(&row["Date"]) {
                ["O", "H", "L", "C", "Vo", "Va"].iter().for_each(|name| row[*name] = Value::Null);
            }
        });
    });
    let run = fixture.update("--as-of 2020-10-01");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    fixture.change(|market| market.days.extend([("20201002", 100), ("20201005", 100)]));
    let run = fixture.update("--as-of 2020-10-02");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["29:100", "30:100", "01:100", "02:100"]);
    assert_eq!(fixture.update("--as-of 2020-10-05").code, 3);
    assert_eq!(fixture.published().len(), 4);
}

/// Z2, Z3 and Z6 of a part of the market, and Z8 of half of it.
#[test]
fn a_part_of_the_market_beyond_its_limits_is_told() {
    let cases: [(Alter, &str); 4] = [
        (
            |row| set::<101>(row, &[("H", 129), ("C", 127)].map(|(name, yen)| (name, json!(yen)))),
            "market: half of the closes are +9.5 % or more away from those of 2025-12-16",
        ),
        (
            |row| set::<3>(row, &[("Vo", json!(0))]),
            "no volume: 200 issues have a price, and 197 have a volume",
        ),
        (
            |row| priced::<3>(row, 167),
            "jump: the prices of 3 of 200 issues are beyond the daily limits around the closes of 2025-12-16; the \
             first is 1300",
        ),
        (
            |row| set::<30>(row, &[("Vo", json!(1))]),
            "volumes: those of 30 of 200 issues are 100 times or more away from those of 2025-12-16",
        ),
    ];
    for (alter, what) in cases {
        let fixture = with_wednesday(alter);
        for _ in 0..2 {
            let run = fixture.update("--as-of 2025-12-17");
            assert_eq!((run.code, doubts(&run)), (0, vec!["17 strange".to_owned()]), "{run:?}");
            assert_eq!(run.report["doubts"][0]["what"], what);
        }
        let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    }
    let run = with_wednesday(|row| priced::<2>(row, 167)).update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// Z2, and how readers learn of it.
#[test]
fn a_close_beyond_the_price_limits_is_told_to_readers() {
    let fixture = with_wednesday(|row| priced::<1>(row, 350));
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 strange".to_owned()]), "{run:?}");
    let what = "jump: the closes of 1 of 200 issues are over one and a half daily limits away from \
                those of 2025-12-16; the first is 1300";
    let serving = fixture.serve();
    let asked = serving.ask("{ dataset { doubts { date kind what } } }");
    let expected = json!([{ "date": WEDNESDAY, "kind": "strange", "what": what }]);
    assert_eq!(asked["data"]["dataset"]["doubts"], expected);
    let metrics = http::request(serving.address, "GET /metrics", &[], &[]).text();
    assert!(metrics.lines().any(|line| line == "kumiki_ranking_doubts 1"), "{metrics}");
}

/// E6.
#[test]
fn a_correction_with_impossible_volumes_or_factors_is_refused() {
    let fixture = published();
    let cases: [Alter; 2] = [
        |row| {
            if number(row) < 3 {
                row["Vo"] = json!(1)
            }
        },
        |row| {
            if number(row) < 3 {
                row["AdjFactor"] = json!(0.2)
            }
        },
    ];
    for alter in cases {
        fixture.change(|market| market.alter = Some(alter));
        refused(&fixture, REFETCH, "impossible: 3 of 200 issues would get prices");
    }
}

/// E6: what was published is not always right. Z4: what was refused is told until an answer is taken.
#[test]
fn a_right_correction_of_wrong_volumes_is_taken_and_a_wrong_one_is_not_forgotten() {
    let fixture = with_wednesday(|row| set::<29>(row, &[("Vo", json!(1))]));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    let volumes = |fixture: &Fixture| {
        rows(fixture, "SELECT min(volume) FROM daily WHERE date = '2025-12-17'").concat()
    };
    let again = "--as-of 2025-12-17 --days 1 --refetch";
    assert_eq!(volumes(&fixture), "1.0");
    fixture.change(|market| market.alter = None);
    let run = fixture.update(again);
    assert_eq!((run.code, volumes(&fixture).as_str()), (0, "11702.0"), "{run:?}");
    // The other way round it is refused, and told by the runs after it.
    fixture.change(|market| market.alter = Some(|row| set::<29>(row, &[("Vo", json!(1))])));
    let run = fixture.update(again);
    assert_eq!((run.code, doubts(&run)), (3, vec!["17 refused".to_owned()]), "{run:?}");
    assert!(run.told.contains("impossible: 29 of 200 issues would get prices"), "{}", run.told);
    for is_lost in [false, true, true] {
        if is_lost {
            fs::remove_dir_all(fixture.path().join("work")).unwrap();
        }
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, vec!["17 strange".to_owned()]), "{run:?}");
        let what = "an earlier run refused an answer for it, and none was taken since";
        assert_eq!(run.report["doubts"][0]["what"], what);
    }
    // B5: it is asked for again, whatever is kept of it on this machine, and the vendor is right now.
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run), run.asked.clone()), (0, vec![], vec!["17".to_owned()]));
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((doubts(&run), run.asked.len()), (vec![], 0), "{run:?}");
}

/// Z7: prices and volumes that a market may have had, and that readers did not see so.
#[test]
fn a_published_day_that_is_rewritten_is_told_until_the_user_accepts_it() {
    fn dearer<const ISSUES: usize>(row: &mut Value) {
        if row["Date"] == "2025-12-16" && number(row) < ISSUES {
            for name in ["O", "H", "L", "C"] {
                row[name] = json!(row[name].as_f64().unwrap() + 1.0);
            }
        }
    }
    fn quieter<const ISSUES: usize>(row: &mut Value) {
        if row["Date"] == "2025-12-16" && number(row) < ISSUES {
            row["Vo"] = json!(row["Vo"].as_u64().unwrap() / 2);
            row["Va"] = json!(row["Va"].as_f64().unwrap() / 2.0);
        }
    }
    fn richer(row: &mut Value) {
        if row["Date"] == "2025-12-16" {
            row["Va"] = json!(row["Va"].as_f64().unwrap() * 1.1);
        }
    }
    let cases: [(Alter, u32); 5] = [
        (dearer::<40>, 0),
        (dearer::<41>, 41),
        (quieter::<40>, 0),
        (quieter::<200>, 200),
        (richer, 200),
    ];
    for (alter, issues) in cases {
        let fixture = published();
        fixture.change(|market| market.alter = Some(alter));
        let run = fixture.update(REFETCH);
        if issues == 0 {
            assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
            continue;
        }
        let rewritten = vec!["16 rewritten".to_owned()];
        assert_eq!((run.code, doubts(&run)), (0, rewritten.clone()), "{run:?}");
        let what =
            format!("other prices, volumes or turnovers were taken for {issues} of its 200 issues");
        assert_eq!(run.report["doubts"][0]["what"], what);
        let before = run.report["corrections"].as_array().unwrap().len();
        assert!(before as u32 >= issues, "the values before are named: {before}");
        // Also where the job's own database is lost: readers have been told.
        fs::remove_dir_all(fixture.path().join("work")).unwrap();
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, doubts(&run)), (0, rewritten), "{run:?}");
        let what =
            "an earlier run took other prices, volumes or turnovers for over 20 % of its issues";
        assert_eq!(run.report["doubts"][0]["what"], what);
        let run = fixture.update("--as-of 2025-12-16 --accept 2025-12-16");
        assert_eq!(doubts(&run), Vec::<String>::new(), "{run:?}");
        assert_eq!(doubts(&fixture.update("--as-of 2025-12-16")), Vec::<String>::new());
    }
    // Piece by piece it comes to the same.
    let fixture = published();
    for (alter, told) in [(dearer::<40> as Alter, ""), (dearer::<80>, "16 rewritten")] {
        fixture.change(|market| market.alter = Some(alter));
        assert_eq!(doubts(&fixture.update(REFETCH)).join(" "), told);
    }
    // Who says that the stored values are right says nothing of an answer that nobody has seen.
    let fixture = published();
    fixture.change(|market| market.alter = Some(dearer::<200>));
    assert_eq!(doubts(&fixture.update(REFETCH)), ["16 rewritten"]);
    let closes = "SELECT sum(close) FROM daily WHERE date = '2025-12-16'";
    let stored = rows(&fixture, closes);
    fixture.change(|market| _ = market.days.insert("20251216", 60));
    let run = fixture.update("--as-of 2025-12-16 --accept 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 refused".to_owned()]), "{run:?}");
    assert_eq!(rows(&fixture, closes), stored);
}

/// E13: who has accepted a day is not asked again by the next runs, which have it again.
#[test]
fn an_accepted_day_stays_accepted() {
    let fixture = with_wednesday(without_prices::<101>);
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 3);
    let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    fixture.change(|market| _ = market.days.insert("20251218", 200));
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-18 --recheck 3");
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
        assert!(run.asked.contains(&"17".to_owned()), "{run:?}");
    }
    assert_eq!(fixture.published().len(), 4);
}

/// E14: nor is the user's word for one odd day that for another.
#[test]
fn an_answer_that_is_otherwise_odd_than_the_accepted_day_is_refused() {
    let fixture = with_wednesday(|row| set::<60>(row, &[("Va", json!(1_000))]));
    let accepted = "--as-of 2025-12-17 --accept 2025-12-17";
    assert_eq!(fixture.update(accepted).code, 0);
    let recheck = || fixture.update("--as-of 2025-12-17 --recheck 1");
    let turnovers = "SELECT count(*) FROM daily WHERE date = '2025-12-17' AND turnover = 1000";
    let cases: [(Alter, &str); 3] = [
        (|row| set::<60>(row, &[("Va", json!(1_000))]), ""),
        (|row| set::<61>(row, &[("Va", json!(1_000))]), "turnovers: those of 61 of 200 issues"),
        (|row| set::<101>(row, &[("Vo", json!(1_000))]), "volumes: those of 101 of 200 issues"),
    ];
    for (alter, why) in cases {
        fixture.change(|market| market.alter = Some(alter));
        let run = recheck();
        let (code, told) =
            if why.is_empty() { (0, vec![]) } else { (3, vec!["17 refused".into()]) };
        assert_eq!((run.code, doubts(&run)), (code, told), "{why}: {run:?}");
        assert!(run.told.contains(why), "{why}: {}", run.told);
        assert_eq!(rows(&fixture, turnovers), ["60"], "{why}");
    }
    // Fewer odd rows are a correction.
    fixture.change(|market| market.alter = Some(|row| set::<50>(row, &[("Va", json!(1_000))])));
    assert_eq!(recheck().code, 0);
    assert_eq!(rows(&fixture, turnovers), ["50"]);
}

/// E14: what is odd by an earlier rule hides nothing that is odd by a later one.
#[test]
fn an_accepted_oddity_hides_no_other() {
    let fixture = with_wednesday(|row| set::<25>(row, &[("Vo", json!(0))]));
    assert_eq!(fixture.update("--as-of 2025-12-17 --accept 2025-12-17").code, 0);
    let closes = "SELECT sum(close), sum(turnover) FROM daily WHERE date = '2025-12-17'";
    let before = rows(&fixture, closes);
    let cases: [(Alter, &str); 2] = [
        (
            |row| {
                set::<150>(row, &[("Va", json!(1_000))]);
                set::<25>(row, &[("Vo", json!(0)), ("Va", json!(0))]);
            },
            "turnovers: those of 125 of 175 issues",
        ),
        (
            |row| {
                set::<150>(row, &["O", "H", "L", "C"].map(|name| (name, json!(116))));
                set::<25>(row, &[("Vo", json!(0))]);
            },
            "repeated: 125 of the 175 issues with a volume have the closes of 2025-12-16",
        ),
    ];
    for (alter, why) in cases {
        fixture.change(|market| market.alter = Some(alter));
        let run = fixture.update("--as-of 2025-12-17 --recheck 1");
        assert_eq!((run.code, doubts(&run)), (3, vec!["17 refused".into()]), "{why}: {run:?}");
        assert!(run.told.contains(why), "{why}: {}", run.told);
        assert_eq!(rows(&fixture, closes), before, "{why}");
    }
}

/// E14: what an earlier version published is not refused each evening because there are more rules now.
#[test]
fn an_answer_that_is_as_odd_as_the_published_day_is_taken() {
    let fixture = with_wednesday(|row| set::<200>(row, &[("Va", json!(1_000))]));
    let accepted = "--as-of 2025-12-17 --accept 2025-12-17";
    assert_eq!(fixture.update(accepted).code, 0);
    let work = fixture.path().join("work").join("mother.db");
    let forget = "DELETE FROM accepted_day";
    Connection::open(work).unwrap().execute_batch(forget).unwrap();
    fixture.change(|market| _ = market.days.insert("20251218", 200));
    let run = fixture.update("--as-of 2025-12-18 --recheck 3");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    assert!(run.asked.contains(&"17".to_owned()), "{run:?}");
    // A right one is taken as well; readers have seen other turnovers (Z7).
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-18 --recheck 3");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 rewritten".to_owned()]), "{run:?}");
    let turnover = "SELECT min(turnover) FROM daily WHERE date = '2025-12-17'";
    assert_eq!(rows(&fixture, turnover), ["1368900.5"]);
}

/// D12: the exchange was closed, and nobody says so but the user.
#[test]
fn a_day_of_which_nobody_has_anything_is_closed_by_the_user_s_word() {
    let fixture = published();
    fixture.change(|market| {
        market.divisions = Some(BTreeMap::new());
        market.days.insert("20251218", 200);
    });
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-18");
        assert_eq!((run.code, run.report["gaps"].as_array().unwrap().len()), (6, 1), "{run:?}");
    }
    let run = fixture.update("--as-of 2025-12-18 --accept 2025-12-17");
    assert_eq!((run.code, &run.report["gaps"]), (0, &json!([])), "{run:?}");
    // The vendor's calendar has it open still.
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, run.asked.len()), (0, 0), "{run:?}");
    assert_eq!(rows(&fixture, "SELECT is_open FROM calendar WHERE date = '2025-12-17'"), ["false"]);
    // It was open after all, and the user says so.
    fixture.change(|market| _ = market.days.insert("20251217", 200));
    let run = fixture.update("--as-of 2025-12-18 --accept 2025-12-17");
    assert_eq!((run.code, fixture.published().len()), (0, 4), "{run:?}");
}

/// D8, D9: rows say better than a calendar what was open.
#[test]
fn a_day_that_the_calendar_alone_closes_is_asked_for() {
    let fixture = published();
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.divisions = Some(BTreeMap::from([("20251217", "0")]));
    });
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, doubts(&run)), (0, vec!["17 closed".to_owned()]), "{run:?}");
        assert_eq!(fixture.published(), ["15:200", "16:200", "17:200"]);
    }
    // Without all rows nothing speaks against the calendar.
    let fixture = published();
    fixture.change(|market| {
        market.days.insert("20251217", 100);
        market.divisions = Some(BTreeMap::from([("20251217", "0")]));
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 closed".to_owned()]), "{run:?}");
    assert!(fixture.published().len() == 2 && run.incomplete().is_empty(), "{run:?}");
    assert_eq!(fixture.update("--as-of 2025-12-17 --accept 2025-12-17").asked, [""; 0]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.asked.len(), doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// Q6: a value that nobody knows costs its own day only.
#[test]
fn a_day_of_the_calendar_that_tells_nothing_known_is_left_out() {
    let fixture = published();
    fixture.change(|market| {
        market.divisions = Some(BTreeMap::from([("20251217", "9"), ("20251218", "0")]));
        market.days.insert("20251217", 200);
    });
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, doubts(&run)), (0, vec!["18 closed".to_owned()]), "{run:?}");
    assert!(fixture.published().contains(&"17:200".to_owned()), "open by law");
    let words =
        "1 of 365 days are left out; the first: day 350, HolDiv: not 0, 1, 2 or 3, of 2025-12-17";
    assert!(run.told.contains(words), "{}", run.told);
    // With too many of them nothing is believed.
    let days = ["20251208", "20251209", "20251210", "20251211"];
    fixture.change(|market| market.divisions.as_mut().unwrap().extend(days.map(|day| (day, "9"))));
    let run = fixture.update("--as-of 2025-12-18");
    let words = "the vendor's calendar could not be had, so days that it has not told before are open or closed \
                 by law: ";
    assert!(run.told.contains(words) && run.told.contains("5 of 365 rows are odd"), "{}", run.told);
}

/// D13, and readers of /health are told.
#[test]
fn a_calendar_with_an_open_saturday_is_a_doubt() {
    let fixture = published();
    fixture.change(|market| {
        market.divisions = Some(BTreeMap::from([("20251213", "1"), ("20251217", "0")]));
        market.days.insert("20251217", 200);
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 closed".to_owned()]), "{run:?}");
    let what = text(&run.report["doubts"][0]["what"]);
    assert!(what.starts_with("the vendor's calendar is not used: ") && what.contains("2025-12-13"));
    assert!(fixture.published().contains(&"17:200".to_owned()), "open by law");
    let serving = fixture.serve();
    let health = http::request(serving.address, "GET /health", &[], &[]);
    let health: Value = serde_json::from_slice(&health.body).unwrap();
    assert_eq!((&health["status"], &health["doubts"][0]["what"]), (&json!("doubts"), &json!(what)));
}

/// D11: Monday the 24th of November 2025 was a holiday.
#[test]
fn a_holiday_that_the_calendar_opens_stays_closed_until_it_is_accepted() {
    let opened = || Some(BTreeMap::from([("20251124", "1")]));
    let market = |divisions| Market {
        days: days([("20251121", 20), ("20251125", 20)]),
        divisions,
        ..Market::default()
    };
    let fixture = Fixture::new(market(Some(BTreeMap::new())));
    assert_eq!(fixture.update("--as-of 2025-11-25 --days 3").code, 0);
    fixture.change(|market| market.divisions = opened());
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-11-25");
        assert_eq!((run.code, doubts(&run)), (0, vec!["24 closed".to_owned()]), "{run:?}");
        assert_eq!(run.report["gaps"], json!([]));
    }
    assert_eq!(fixture.update("--as-of 2025-11-25 --accept 2025-11-24").code, 6);
    // Where the calendar said so from the start, the vendor has to have nothing first.
    let fixture = Fixture::new(market(opened()));
    assert_eq!(fixture.update("--as-of 2025-11-25 --days 3").code, 6);
    let run = fixture.update("--as-of 2025-11-25");
    assert_eq!((run.code, doubts(&run)), (0, vec!["24 closed".to_owned()]), "{run:?}");
}

/// D4.
#[test]
fn a_day_outside_of_the_subscription_is_told_to_readers() {
    let fixture = published();
    fixture.change(|market| market.covered = Some(("20251201", "20251216")));
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 not_covered".to_owned()]), "{run:?}");
    let what = "the vendor's subscription covers 2025-12-01 to 2025-12-16 and not this day, nor 1 after it";
    assert_eq!(run.report["doubts"][0]["what"], what);
}

/// The vendor's key where names are.
#[test]
fn a_key_in_a_name_is_not_published() {
    let fixture = Fixture::new(Market {
        days: days([("20251216", 20)]),
        listed: Some(20),
        alter_list: Some(|issue| issue["CoName"] = json!(format!("Name {VENDOR_KEY} Holdings"))),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 1").code, 0);
    for file in ["jp/listed_info.db", "work/mother.db"] {
        let bytes = fs::read(fixture.path().join(file)).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!has(VENDOR_KEY) && has("Name *** Holdings"), "{file}");
    }
}

/// E7: what E3, E10 and E12 say of a whole day holds for rows that come issue by issue. What E4 and E8 would say R8
/// says first, and what E5, E9 and E11 would, E6.
#[test]
fn issue_by_issue_a_published_day_becomes_no_odd_one() {
    let cases: [(Alter, &str); 3] = [
        (
            |row| {
                if number(row) < 81 {
                    ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(115));
                }
            },
            "repeated: 81 of the 200 issues with a volume have the closes of 2025-12-15",
        ),
        (
            |row| {
                if number(row) < 101 {
                    row["Vo"] = json!(1_000);
                    row["Va"] = json!(116_000);
                }
            },
            "volumes: those of 101 of 200 issues are 10 times or more away from those of 2025-12-15",
        ),
        (
            |row| {
                if number(row) < 41 {
                    row["Va"] = json!(1_000);
                }
            },
            "turnovers: those of 41 of 200 issues do not fit",
        ),
    ];
    let codes: Vec<String> = (0..199).map(|number| (1_300 + number).to_string()).collect();
    let named = format!("{REFETCH} --codes {}", codes.join(" "));
    let fixture = published();
    for (alter, why) in cases {
        fixture.change(|market| market.alter = Some(alter));
        refused(&fixture, &named, why);
    }
    fixture.change(|market| market.alter = None);
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// Z2: for 20 weekdays, of which the last is Tuesday the 13th of January.
#[test]
fn what_is_strange_is_told_for_twenty_weekdays() {
    let fixture = with_wednesday(|row| priced::<3>(row, 167));
    fixture.change(|market| {
        let later = business_days("2025-12-18", "2026-01-14");
        market.days.extend(later.into_iter().map(|day| (day, 200)));
    });
    for (day, told) in [("2026-01-13", vec!["17 strange".to_owned()]), ("2026-01-14", Vec::new())] {
        let run = fixture.update(&format!("--as-of {day}"));
        assert_eq!((run.code, doubts(&run)), (0, told), "{run:?}");
    }
}

/// A day that is not over is none that is missing, whatever a clock said once.
#[test]
fn a_day_that_a_wrong_clock_has_named_goes() {
    let fixture = published();
    let work = fixture.path().join("work").join("mother.db");
    let named = "INSERT INTO incomplete_day VALUES ('2090-01-04', 200)";
    Connection::open(work).unwrap().execute_batch(named).unwrap();
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
}

/// C6: what is 300 days away tells nothing.
#[test]
fn a_day_far_before_all_others_is_held_against_none_of_them() {
    for (day, is_known) in [("20250303", true), ("20250203", false)] {
        let fixture = published();
        fixture.change(|market| _ = market.days.insert(day, 100));
        let run = fixture.update(&format!("--as-of {} --days 1", crate::update_days::dashed(day)));
        let short = &run.report["incomplete"][0];
        assert_eq!((run.code, short["expected"].is_u64()), (3, is_known), "{run:?}");
    }
}

/// R3: from whom a row is.
#[test]
fn a_row_that_a_better_source_confirms_is_of_that_source() {
    let fixture = published();
    let work = fixture.path().join("work").join("mother.db");
    let lesser = "UPDATE daily SET source = 'web_broker' WHERE date = '2025-12-16'";
    Connection::open(work).unwrap().execute_batch(lesser).unwrap();
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, &run.report["corrections"]), (0, &json!([])), "{run:?}");
    let sources = "SELECT source, count(*) FROM daily WHERE date = '2025-12-16' GROUP BY source";
    assert_eq!(rows(&fixture, sources), ["vendor,200"]);
}

/// Q2: an answer that cannot be read does not cost a question for each issue.
#[test]
fn an_answer_that_is_no_json_is_asked_for_as_a_whole_again() {
    let fixture = published();
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.broken.insert("20251217");
    });
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-17");
        assert_eq!((run.code, run.asked.join(" ")), (3, "17".to_owned()), "{run:?}");
        assert!(run.told.contains("it cannot be read: as JSON: "), "{}", run.told);
    }
    fixture.change(|market| market.broken.clear());
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, fixture.published().len()), (0, 3), "{run:?}");
}

/// A day that comes issue by issue has the issues that are new on it too.
#[test]
fn issues_that_are_listed_on_the_day_are_fetched_one_by_one_too() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        listed: Some(200),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture.change(|market| {
        market.days.insert("20251217", 202);
        market.lists.insert("20251217", 202);
        market.down.insert("20251217");
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["15:200", "16:200", "17:202"]);
    // Over 5 % at once are not asked for one by one, and the day waits for the whole answer.
    fixture.change(|market| {
        market.days.insert("20251218", 213);
        market.lists.insert("20251218", 213);
        market.down.insert("20251218");
    });
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, fixture.published().len()), (3, 3), "{run:?}");
    let issues = run.asked.iter().filter(|asked| asked.len() > 2).count();
    assert_eq!(issues, 202, "{:?}", run.asked);
    fixture.change(|market| market.down.clear());
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, fixture.published()[3].as_str()), (0, "18:213"), "{run:?}");
}

/// The first ten issues have other codes, on every day and in every list.
fn with_new_codes(row: &mut Value) {
    if number(row) < 10 {
        row["Code"] = text(&row["Code"]).replacen("130", "999", 1).into();
    }
}

/// E15: who changes codes gives every issue twice, where the old rows stay.
#[test]
fn codes_that_change_on_published_days_wait_for_the_user() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        listed: Some(200),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.alter = Some(with_new_codes);
        market.alter_list = Some(with_new_codes);
    });
    let run = fixture.update("--as-of 2025-12-17 --recheck 3");
    let told = ["17 strange", "15 refused", "16 refused"].map(str::to_owned).to_vec();
    assert_eq!((run.code, doubts(&run)), (3, told), "{run:?}");
    assert!(
        run.told.contains("and none of 10 that are: their codes may have changed"),
        "{}",
        run.told
    );
    assert_eq!(fixture.published(), ["15:200", "16:200", "17:200"]);
    // Files of issues that go are a loss, which has a flag of its own.
    let accepted = "--as-of 2025-12-17 --accept 2025-12-15 --accept 2025-12-16 --remove-issues";
    let run = fixture.update(accepted);
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["15:200", "16:200", "17:200"]);
    let old = "SELECT count(*) FROM daily WHERE code BETWEEN '1300' AND '1309'";
    assert_eq!(rows(&fixture, old), ["0"]);
}

/// Z2: a split in two that no factor tells, of one issue.
#[test]
fn a_split_that_no_factor_tells_is_told() {
    let fixture = with_wednesday(|row| {
        let halved = number(row) == 0 && row["Date"] == WEDNESDAY;
        let yen = if halved { 1_000 } else { 2_000 };
        if number(row) == 0 {
            ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(yen));
            row["Va"] = json!(yen * 11_600);
        }
    });
    let before = fixture.update(&format!("{REFETCH} --accept 2025-12-16"));
    assert_eq!(before.code, 0, "{before:?}");
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, doubts(&run)), (0, vec!["17 strange".to_owned()]), "{run:?}");
    let what = text(&run.report["doubts"][0]["what"]);
    assert!(
        what.starts_with("jump: the closes of 1 of 200 issues are over one and a half"),
        "{what}"
    );
}
