//! What `kumiki update` lets no vendor slip in: lists with an odd row, days of other issues, corrections that no
//! exchange allows, a market that melts away between two lists, and calendars that close weeks. Each rule with the
//! program itself.

use std::collections::BTreeMap;

use domain::{JstDate, holidays};
use serde_json::{Value, json};
use tests::http;

use crate::update_days::{Fixture, Market, Run, days, text};
use crate::update_sources::{counts, rows};

/// The doubts of a run, like `16 odd`.
pub(crate) fn doubts(run: &Run) -> Vec<String> {
    let doubts = run.report["doubts"].as_array().unwrap().iter();
    doubts.map(|doubt| format!("{} {}", &text(&doubt["date"])[8..], text(&doubt["kind"]))).collect()
}

pub(crate) fn number(row: &Value) -> usize {
    text(&row["Code"])[..4].parse::<usize>().unwrap() - 1_300
}

/// Monday and Tuesday with 200 issues are published.
pub(crate) fn published() -> Fixture {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 200)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture
}

pub(crate) const REFETCH: &str = "--as-of 2025-12-16 --days 1 --refetch";

/// Rows and the sum of the closes of Tuesday.
fn tuesday(fixture: &Fixture) -> String {
    let sum = "SELECT count(*), sum(close) FROM daily WHERE date = '2025-12-16'";
    rows(fixture, sum).remove(0)
}

/// The answer is refused, the day is as it was, and the user may take it.
pub(crate) fn refused(fixture: &Fixture, arguments: &str, why: &str) {
    let before = tuesday(fixture);
    let run = fixture.update(arguments);
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 refused".to_owned()]), "{why}: {run:?}");
    let what = text(&run.report["doubts"][0]["what"]);
    assert!(what.contains(why) && run.told.contains(why), "{what}: {}", run.told);
    assert_eq!(tuesday(fixture), before, "{why}");
}

/// Q4, C1.
#[test]
fn an_odd_row_of_a_list_costs_that_row() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 190)]),
        listed: Some(200),
        alter_list: Some(|issue| {
            if issue["Code"] == "13070" {
                issue["Code"] = json!(13_070);
            }
        }),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 190 of 199".to_owned()]), "{run:?}");
    let words = "the list of issues of 2025-12-15: 1 of 200 rows are left out: row of ? on 2025-12-15 (row 8)";
    assert!(run.told.contains(words), "{}", run.told);
    assert_eq!(fixture.published(), ["15:200"]);
    // More are no list; its day is held against the day before, and the next list is asked for.
    fixture.change(|market| {
        market.days.insert("20251216", 200);
        market.alter_list = Some(|issue| {
            if issue["Date"] == "2025-12-16" && number(issue) < 3 {
                issue["Date"] = json!("2025-12-15");
            }
        });
        market.days.insert("20251217", 197);
    });
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.incomplete()), (3, vec!["17 197 of 200".to_owned()]), "{run:?}");
    let words = "the list of issues of 2025-12-16 is not used, so the day is held against others: the answer \
                 is refused: 3 of 200 rows are odd";
    assert!(run.told.contains(words), "{}", run.told);
    let why = text(&run.report["incomplete"][0]["why"]);
    assert!(why.starts_with("197 of the 200 issues that the vendor lists"), "{why}");
}

/// The rows of Tuesday are of other issues.
fn of_others(row: &mut Value) {
    if row["Date"] == "2025-12-16" {
        row["Code"] = text(&row["Code"]).replacen("1", "5", 1).into();
    }
}

/// C2, E1: without a list it is the issues that count, not how many rows there are.
#[test]
fn a_day_of_other_issues_is_no_day_of_the_market() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.alter = Some(of_others));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, doubts(&run)), (3, vec!["16 odd".to_owned()]), "{run:?}");
    let why = "it has 100 rows of issues that are not among the 100 of the days beside it";
    assert!(run.told.contains(why), "{}", run.told);
    assert_eq!(fixture.published(), ["15:100"]);
    // An honest run has its own rows alone.
    fixture.change(|market| market.alter = None);
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, fixture.published()), (0, vec!["15:100".into(), "16:100".into()]));
    assert_eq!(rows(&fixture, "SELECT count(*) FROM daily WHERE code >= '5000'"), ["0"]);
    // And nothing is added to it, nor put in its place.
    fixture.change(|market| market.alter = Some(of_others));
    refused(&fixture, REFETCH, why);
    let run = fixture.update(&format!("{REFETCH} --accept 2025-12-16"));
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
}

/// The first so many issues cost so much on Tuesday.
fn cheap<const ISSUES: usize, const YEN: u32>(row: &mut Value) {
    if row["Date"] == "2025-12-16" && number(row) < ISSUES {
        ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(YEN));
    }
}

/// E6.
#[test]
fn a_correction_with_impossible_prices_is_refused() {
    let fixture = published();
    for (alter, issues) in [
        (cheap::<200, 2> as fn(&mut Value), 200),
        (cheap::<58, 1>, 58),
        (cheap::<3, 1>, 3),
        (cheap::<3, 600>, 3),
    ] {
        fixture.change(|market| market.alter = Some(alter));
        let why = format!("impossible: {issues} of 200 issues would get prices beyond");
        refused(&fixture, REFETCH, &why);
    }
    // Two of a market may be right, and so are all that stay inside of the limits.
    fixture.change(|market| market.alter = Some(cheap::<2, 600>));
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [2]), "{run:?}");
    let seventy: fn(&mut Value) = |row| {
        cheap::<200, 70>(row);
        if row["Date"] == "2025-12-16" {
            (row["H"], row["L"]) = (json!(71), json!(69));
            row["Va"] = json!(70 * row["Vo"].as_u64().unwrap());
        }
    };
    fixture.change(|market| market.alter = Some(seventy));
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [200]), "{run:?}");
    // What was wrong is mended by what fits to the day before.
    fixture.change(|market| market.alter = Some(cheap::<200, 2>));
    // Of a day that was rewritten the user's first word is that what is stored is right (Z7).
    let accepts = format!("{REFETCH} --accept 2025-12-16");
    assert_eq!((fixture.update(&accepts).code, tuesday(&fixture)), (3, "200,14000.0".to_owned()));
    let run = fixture.update(&accepts);
    assert_eq!((run.code, tuesday(&fixture)), (0, "200,400.0".to_owned()), "{run:?}");
    fixture.change(|market| market.alter = None);
    assert_eq!((fixture.update(REFETCH).code, tuesday(&fixture)), (0, "200,23200.0".to_owned()));
}

/// E2, E3 and E6 of rows that come issue by issue, however they do.
#[test]
fn issue_by_issue_a_published_day_is_not_replaced_by_what_no_market_had() {
    let codes: Vec<String> = (0..199).map(|number| (1_300 + number).to_string()).collect();
    let named = format!("{REFETCH} --codes {}", codes.join(" "));
    let fixture = published();
    fixture.change(|market| market.alter = Some(cheap::<199, 1>));
    refused(&fixture, &named, "impossible: 199 of 200 issues would get prices");
    fixture.change(|market| _ = market.down.insert("20251216"));
    refused(&fixture, REFETCH, "impossible: 199 of 200 issues would get prices");
    // The rows of the day before.
    let monday: fn(&mut Value) = |row| {
        for (name, value) in [("O", 115), ("H", 117), ("L", 114), ("C", 115), ("Vo", 11_500)] {
            row[name] = json!(value);
        }
    };
    fixture.change(|market| market.alter = Some(monday));
    let why = "repeated: 199 of the 200 issues with a volume have the prices of 2025-12-15";
    refused(&fixture, &named, why);
    // What may be is taken, and what the user accepts.
    fixture.change(|market| {
        market.alter = None;
        market.more = 4;
    });
    let run = fixture.update(&named);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [199]), "{run:?}");
    let run = fixture.update(REFETCH);
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [1]), "{run:?}");
    fixture.change(|market| {
        market.down.clear();
        market.alter = Some(cheap::<199, 1>);
    });
    let run = fixture.update(&format!("{named} --accept 2025-12-16"));
    assert_eq!((run.code, counts(&run, "vendor", ["changed"])), (0, [199]), "{run:?}");
}

/// The business days from one date to another, like 20251215.
pub(crate) fn business_days(first: &str, last: &str) -> Vec<&'static str> {
    let [first, last] = [first, last].map(|date| date.parse::<JstDate>().unwrap());
    let open = first.iter_days().take_while(|day| *day <= last);
    let open = open.filter(|day| !holidays::is_closed(*day));
    open.map(|day| &*day.to_string().replace('-', "").leak()).collect()
}

/// C2: over more than 60 days the lists of each week tell what a market that melts away has lost.
#[test]
fn a_long_run_publishes_no_day_that_the_vendor_s_own_list_refutes() {
    let all = business_days("2025-08-15", "2025-12-19");
    // Ten days on which one issue in a hundred goes, on each of them.
    let sunk = |day: &str| match business_days("2025-10-21", day).len() {
        _ if day < "2025-10-21" => 200,
        days => 200 - 2 * days.min(10),
    };
    let dashed = |day: &str| crate::update_days::dashed(day);
    let fixture = Fixture::new(Market {
        days: all
            .iter()
            .map(|day| (*day, if *day < "20251021" { 200 } else { sunk(&dashed(day)) }))
            .collect(),
        listed: Some(200),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-19 --days 90");
    assert_eq!(run.code, 3, "{}", run.report["doubts"]);
    let last = rows(
        &fixture,
        "SELECT max(date), min(n) FROM (SELECT date, count(*) AS n FROM daily GROUP BY 1)",
    );
    assert_eq!(last, ["2025-10-21,198"]);
    let short = &run.report["incomplete"][0];
    let why =
        "196 of the 200 issues that the vendor lists for this date have rows, and 99 % are needed";
    assert_eq!((&short["date"], &short["why"]), (&json!("2025-10-22"), &json!(why)));
    // A list for each week, and for each day that would not be complete without: 180 of 200 from November on.
    let lists = run.report["listed"]["lists"].as_u64().unwrap();
    assert!((18..=62).contains(&lists), "{lists}");
}

/// D9, D10.
#[test]
fn a_calendar_that_closes_a_week_is_told_until_it_is_accepted() {
    let closed = ["20251006", "20251007", "20251008", "20251009", "20251010"];
    let all = business_days("2025-10-01", "2025-12-19");
    let fixture = Fixture::new(Market {
        days: all.into_iter().filter(|day| !closed.contains(day)).map(|day| (day, 20)).collect(),
        divisions: Some(closed.map(|day| (day, "0")).into()),
        ..Market::default()
    });
    let told = ["06 closed", "07 closed", "08 closed", "09 closed", "10 closed"];
    let run = fixture.update("--as-of 2025-10-15 --days 11");
    assert_eq!((run.code, doubts(&run)), (3, told.map(str::to_owned).to_vec()), "{run:?}");
    // Long after, too.
    let run = fixture.update("--as-of 2025-12-19");
    assert_eq!((run.code, doubts(&run)), (3, told.map(str::to_owned).to_vec()), "{run:?}");
    let words = "that is a gap of 5 business days in a row, 2025-10-06 to 2025-10-10";
    assert!(run.told.contains(words), "{}", run.told);
    let health = http::request(fixture.serve().address, "GET /health", &[], &[]).text();
    assert!(told.iter().all(|day| health.contains(&format!("2025-10-{}", &day[..2]))), "{health}");
    // Whoever has looked says so once, for the days of the row.
    for arguments in ["--as-of 2025-12-19 --accept 2025-10-07", "--as-of 2025-12-19"] {
        let run = fixture.update(arguments);
        assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    }
}

/// What the user accepts in vain is told.
#[test]
fn a_day_that_is_accepted_in_vain_is_told() {
    let fixture = published();
    for (date, why) in [
        ("2025-12-14", "the exchange was closed"),
        ("2025-12-17", "it is after the last day that is wanted"),
        ("2025-12-16", "nothing that came of it was in doubt"),
    ] {
        let run = fixture.update(&format!("--as-of 2025-12-16 --accept {date}"));
        let words = format!("--accept {date} changes nothing: {why}");
        assert!(run.code == 0 && run.told.contains(&words), "{words}: {run:?}");
    }
}

/// What a vendor has to say is said once.
#[test]
fn that_requests_were_too_many_is_told_once() {
    let fixture =
        Fixture::new(Market { days: days([("20251215", 5)]), too_many: 1, ..Market::default() });
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    let notes = run.report["notes"].to_string();
    assert_eq!((run.code, notes.matches("requests were too many").count()), (0, 1), "{notes}");
}

/// What one server has said is not taken for what another one says.
#[test]
fn two_vendors_do_not_share_the_days_that_are_kept() {
    let of = |more: u32| {
        Fixture::new(Market { days: days([("20251216", 20)]), more, ..Market::default() })
    };
    let (one, other) = (of(0), of(7));
    let cache = tempfile::tempdir().unwrap();
    let update = |fixture: &Fixture| {
        let mut command = fixture.command("--as-of 2025-12-16 --days 1");
        let run = fixture.run(command.arg("--cache-dir").arg(cache.path()));
        (run.code, run.report["sources"][0]["cached"].clone(), tuesday(fixture))
    };
    assert_eq!(update(&one), (0, json!(0), "20,2320.0".to_owned()));
    assert_eq!(update(&other), (0, json!(0), "20,2460.0".to_owned()));
    // Its own are taken.
    std::fs::remove_dir_all(other.path().join("work")).unwrap();
    std::fs::remove_dir_all(other.path().join("jp")).unwrap();
    assert_eq!(update(&other), (0, json!(1), "20,2460.0".to_owned()));
}

/// The vendor's key in a page of an error, its letters as references.
#[test]
fn a_key_in_a_page_is_hidden() {
    let fixture = Fixture::new(Market {
        days: days([("20251216", 20)]),
        refused: ["20251216"].into(),
        refusal: "<p>no &#x70;rogram&#45;vendor&#X2D;key-571&#49; here &amp; there</p>",
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-16 --days 1");
    let said = format!("{}{}", run.report, run.told);
    assert!(said.contains("no *** here &amp; there"), "{said}");
    assert!(!said.contains("rogram") && !said.contains("vendor&#"), "{said}");
}
