//! What `kumiki update` holds a day against: lists of issues that shrink or grow, days that the user
//! publishes all the same, and days with nothing before them. Each rule of the job's table with the program
//! itself; none of them lets days wait for ever.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::update_days::{Fixture, Market, Run, days, text};
use crate::update_guards::doubts;
use crate::update_program::{command, texts};

/// A market of 120 issues, with the rows and the list of each day of December 2025; a list of 0 is none.
fn fixture(all: &[(&'static str, usize, usize)]) -> Fixture {
    let fixture = Fixture::new(Market { divisions: Some(BTreeMap::new()), ..Market::default() });
    add(&fixture, all);
    fixture
}

fn add(fixture: &Fixture, all: &[(&'static str, usize, usize)]) {
    fixture.change(|market| {
        for (day, rows, listed) in all {
            market.days.insert(day, *rows);
            market.lists.insert(day, *listed);
        }
    });
}

fn notes(run: &Run) -> String {
    run.report["notes"].to_string()
}

fn said(run: &Run, place: usize, what: &str) -> String {
    text(&run.report["incomplete"][place][what])
}

#[test]
fn a_list_from_which_issues_go_at_once_is_believed_with_its_rows() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 118, 118)]);
    // L2 and L3.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:120 16:118".to_owned()));
    assert_eq!((notes(&run).as_str(), &run.report["listed"]["lists"]), ("[]", &Value::from(2)));
    // It is what the next day is held against.
    add(&fixture, &[("20251217", 116, 118)]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.incomplete()), (3, vec!["17 116 of 118".to_owned()]));
    assert_eq!(
        said(&run, 0, "why"),
        "116 of the 118 issues that the vendor lists for this date have rows, and 99 % are needed"
    );
    assert!(said(&run, 0, "advice").contains("only if the vendor has no more rows of it"));
    assert!(said(&run, 0, "advice").contains("--publish-incomplete"), "{run:?}");
}

#[test]
fn a_list_from_which_issues_go_before_their_rows_is_not_used() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 120, 118)]);
    // L3: it waits, and C2 holds.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:120 16:120".to_owned()));
    let words =
        "the list of issues of 2025-12-16 has 118 issues where there were 120 on 2025-12-15";
    assert!(notes(&run).contains(words), "{run:?}");
    // The list of a later date has as many, whatever its rows are.
    add(&fixture, &[("20251217", 120, 118)]);
    let run = fixture.update("--as-of 2025-12-17");
    let unlisted =
        "2 of its rows are of issues that the vendor does not list for this date: 1418, 1419";
    assert!(run.code == 0 && notes(&run).contains(unlisted), "{run:?}");
    add(&fixture, &[("20251218", 118, 118)]);
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, notes(&run).as_str()), (0, "[]"), "{run:?}");
    assert_eq!(fixture.published().last().unwrap(), "18:118");
}

#[test]
fn a_list_that_loses_many_waits_for_the_user_and_its_day_with_it() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 100, 100)]);
    // L3: more than one in twenty.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 100 of 120".to_owned()]));
    assert_eq!(
        said(&run, 0, "why"),
        "it has 100 rows, and 99 % of 120 are needed, which the last complete day before it has"
    );
    // The same list once more proves nothing.
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 3);
    // Nor does that of another day: the user has to say so.
    add(&fixture, &[("20251217", 100, 100)]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.incomplete().len()), (3, 2), "{run:?}");
    let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-16");
    assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["15:120", "16:100", "17:100"]);
    // Two dates of one run prove nothing either.
    add(&fixture, &[("20251218", 50, 50), ("20251219", 50, 50)]);
    let run = fixture.update("--as-of 2025-12-19");
    assert_eq!((run.code, run.incomplete().len()), (3, 2), "{run:?}");
    add(&fixture, &[("20251218", 100, 100), ("20251219", 100, 100)]);
    assert_eq!(fixture.update("--as-of 2025-12-19").code, 0);
}

#[test]
fn one_list_with_too_many_issues_is_for_its_own_day_only() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 120, 126)]);
    // L4.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 120 of 126".to_owned()]), "{run:?}");
    let words =
        "has 126 issues where there were 120 on 2025-12-15; it is used for its own day only";
    assert!(notes(&run).contains(words), "{run:?}");
    assert_eq!((run.report["listed"]["lists"].as_u64(), fixture.published().len()), (Some(1), 1));
    let run = fixture.update("--as-of 2025-12-16 --accept 2025-12-16");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "15:120 16:120".to_owned()));
    for day in ["20251217", "20251218"] {
        add(&fixture, &[(day, 120, 120)]);
        let run = fixture.update(&format!("--as-of {}", crate::update_days::dashed(day)));
        assert_eq!((run.code, notes(&run).as_str()), (0, "[]"), "{run:?}");
        assert_eq!(run.report["listed"]["lists"], 1, "names go on");
    }
    // C1: and the lists that came after it count.
    add(&fixture, &[("20251219", 118, 120)]);
    assert_eq!(fixture.update("--as-of 2025-12-19").incomplete(), ["19 118 of 120"]);
}

#[test]
fn lists_that_go_on_having_more_issues_than_rows_give_names() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 120, 126)]);
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 3);
    // L5: what is listed and has no row is missing until the user has looked at it, once for all.
    add(&fixture, &[("20251217", 120, 126)]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.incomplete().len()), (3, 2), "{run:?}");
    assert!(notes(&run).contains("it is used for names and its own day only"), "{run:?}");
    assert_eq!(fixture.update("--as-of 2025-12-17 --accept 2025-12-16").code, 0);
    add(&fixture, &[("20251218", 120, 126)]);
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, &run.report["listed"]["lists"]), (0, &Value::from(1)), "{run:?}");
    // L4: with their rows they are lists like any other.
    add(&fixture, &[("20251219", 126, 126)]);
    assert_eq!(fixture.update("--as-of 2025-12-19").code, 0);
    add(&fixture, &[("20251222", 120, 126)]);
    assert_eq!(fixture.update("--as-of 2025-12-22").incomplete(), ["22 120 of 126"]);
}

#[test]
fn later_days_are_held_against_one_that_the_user_has_published() {
    let fixture = fixture(&[("20251215", 120, 0), ("20251216", 118, 0)]);
    // C2.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 118 of 120".to_owned()]));
    // P3, C10.
    let run = fixture.update("--as-of 2025-12-16 --publish-incomplete");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 118 of 120 published".to_owned()]));
    assert!(said(&run, 0, "advice").contains("are held against it only if"), "{run:?}");
    add(&fixture, &[("20251217", 118, 0), ("20251218", 116, 0)]);
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!(
        (run.code, run.incomplete()),
        (3, vec!["16 118 of 120 published".to_owned(), "18 116 of 118".to_owned()])
    );
    assert_eq!(fixture.published(), ["15:120", "16:118", "17:118"]);
    // C11: five complete days say that there never were more.
    let later = ["20251218", "20251219", "20251222", "20251223"].map(|day| (day, 118, 0));
    add(&fixture, &later);
    let run = fixture.update("--as-of 2025-12-22");
    assert_eq!((run.code, run.incomplete().len()), (3, 1), "{run:?}");
    let run = fixture.update("--as-of 2025-12-23");
    assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.update("--as-of 2025-12-23").asked, Vec::<String>::new());
    // C10: it goes on beginning there, and not with the 120 of before.
    add(&fixture, &[("20251224", 118, 0), ("20251225", 116, 0)]);
    let run = fixture.update("--as-of 2025-12-25");
    assert_eq!((run.code, run.incomplete()), (3, vec!["25 116 of 118".to_owned()]), "{run:?}");
}

#[test]
fn a_published_day_that_gets_its_rows_later_blocks_none_of_those_after_it() {
    let fixture = fixture(&[("20251215", 120, 0), ("20251216", 118, 0)]);
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete").code, 3);
    add(&fixture, &[("20251217", 118, 0), ("20251218", 118, 0)]);
    assert_eq!(fixture.update("--as-of 2025-12-18").incomplete().len(), 1);
    // C10, in the run in which it becomes complete and in those after it.
    add(&fixture, &[("20251216", 120, 0), ("20251219", 118, 0)]);
    let run = fixture.update("--as-of 2025-12-19");
    assert_eq!((run.code, run.incomplete()), (0, Vec::new()), "{run:?}");
    add(&fixture, &[("20251222", 118, 0)]);
    assert_eq!(fixture.update("--as-of 2025-12-22").code, 0);
    assert_eq!(fixture.published(), ["15:120", "16:120", "17:118", "18:118", "19:118", "22:118"]);
}

#[test]
fn a_published_day_says_nothing_against_a_good_list() {
    for rows in [60, 118] {
        let fixture = fixture(&[("20251215", 120, 120), ("20251216", rows, 120)]);
        let run = fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete");
        assert_eq!(run.incomplete(), [format!("16 {rows} of 120 published")]);
        // C1, C10.
        add(&fixture, &[("20251217", rows, 120), ("20251218", 120, 120)]);
        let run = fixture.update("--as-of 2025-12-18");
        let short = [format!("16 {rows} of 120 published"), format!("17 {rows} of 120")];
        assert_eq!((run.code, run.incomplete()), (6, short.to_vec()), "{run:?}");
        assert_eq!(notes(&run), "[]");
        // Nor where there is no list any more.
        add(&fixture, &[("20251219", rows, 0)]);
        let run = fixture.update("--as-of 2025-12-19");
        assert_eq!(run.incomplete()[2], format!("19 {rows} of 120"), "{run:?}");
    }
}

#[test]
fn a_day_of_an_outage_that_was_published_is_no_standard() {
    let fixture = fixture(&[("20251215", 120, 0), ("20251216", 60, 0)]);
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete").code, 3);
    // C10: it has less than 90 %.
    add(&fixture, &[("20251217", 60, 0)]);
    let run = fixture.update("--as-of 2025-12-17");
    let short = ["16 60 of 120 published", "17 60 of 120"].map(str::to_owned);
    assert_eq!((run.code, run.incomplete()), (3, short.to_vec()), "{run:?}");
    // The first list of all is not held against it either.
    add(&fixture, &[("20251217", 60, 120)]);
    assert_eq!(fixture.update("--as-of 2025-12-17").incomplete(), short);
    add(&fixture, &[("20251216", 120, 0), ("20251217", 120, 120)]);
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:120", "16:120", "17:120"]);
}

#[test]
fn a_first_day_whose_list_has_too_many_issues_can_be_published_once_for_all() {
    let fixture = fixture(&[("20251215", 120, 126)]);
    // L1, C1.
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, run.incomplete()), (3, vec!["15 120 of 126".to_owned()]));
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1 --publish-incomplete").code, 3);
    // C10: the list of the next day is held against the rows that the user let pass.
    add(&fixture, &[("20251216", 120, 126)]);
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!(run.incomplete(), ["15 120 of 126 published"], "{run:?}");
    assert_eq!(fixture.published(), ["15:120", "16:120"]);
}

#[test]
fn a_short_day_before_all_others_is_known_by_those_after_it() {
    let fixture = fixture(&[("20251216", 100, 0)]);
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 1").code, 0);
    // C6, on a look back.
    add(&fixture, &[("20251215", 32, 0)]);
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, run.incomplete()), (3, vec!["15 32 of 100".to_owned()]));
    assert_eq!(fixture.published(), ["16:100"]);
    assert!(said(&run, 0, "why").contains("there are no complete days before it"), "{run:?}");
    add(&fixture, &[("20251215", 99, 0)]);
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15".to_owned()));
    assert_eq!(fixture.published(), ["15:99", "16:100"]);
}

#[test]
fn the_first_days_of_a_first_run_wait_for_those_after_them() {
    let first = [("20251215", 32, 0), ("20251216", 32, 0), ("20251217", 100, 0)];
    let fixture = fixture(&first);
    // C9, C3.
    let run = fixture.update("--as-of 2025-12-17 --days 3");
    assert_eq!(run.days(), ["15 incomplete", "16 incomplete", "17 fetched"]);
    assert_eq!(run.incomplete(), ["15 32 of 100", "16 32 of 100"]);
    assert_eq!((run.code, fixture.published().join(" ")), (3, "17:100".to_owned()));
    // What was short is not taken from what this machine has kept.
    add(&fixture, &[("20251215", 100, 0), ("20251216", 100, 0)]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15 16".to_owned()));
    assert_eq!(fixture.published(), ["15:100", "16:100", "17:100"]);
}

#[test]
fn a_short_day_that_is_published_is_told_by_each_run() {
    let fixture = fixture(&[("20251215", 32, 0)]);
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "nothing tells yet");
    // S1.
    add(&fixture, &[("20251216", 120, 0)]);
    for _ in 0..2 {
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, doubts(&run)), (0, vec!["15 short".to_owned()]), "{run:?}");
        let what = text(&run.report["doubts"][0]["what"]);
        assert_eq!(what, "it is published with 32 rows, and complete days beside it have 120");
    }
    let vendor = format!("http://{}/v2", fixture.server.address);
    let arguments = ["update", "--as-of", "2025-12-16", "--vendor-url", &vendor];
    let (shown, _) = texts(&command(fixture.path(), &arguments).output().unwrap());
    for words in ["days that need a look", "2025-12-15  it is published with 32 rows", "--refetch"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    add(&fixture, &[("20251215", 120, 0)]);
    let run = fixture.update("--as-of 2025-12-16 --days 2 --refetch");
    assert_eq!((run.code, doubts(&run)), (0, Vec::new()), "{run:?}");
    assert_eq!(fixture.published(), ["15:120", "16:120"]);
}

#[test]
fn days_that_shrink_with_their_lists_are_told() {
    let fixture = fixture(&[("20251215", 120, 120), ("20251216", 115, 115)]);
    // L3, S2.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, doubts(&run)), (0, vec!["16 shrunk".to_owned()]), "{run:?}");
    // The first day of a step alone, and for 20 weekdays.
    add(&fixture, &[("20251217", 115, 115)]);
    assert_eq!(doubts(&fixture.update("--as-of 2025-12-17")), ["16 shrunk"]);
    assert_eq!(doubts(&fixture.update("--as-of 2026-01-14")), [""; 0]);
    // S1, between longer ones.
    add(&fixture, &[("20251218", 120, 120)]);
    assert_eq!(doubts(&fixture.update("--as-of 2025-12-18")), ["16 short", "17 short"]);
}

#[test]
fn without_complete_days_the_nearest_list_counts() {
    let fixture = fixture(&[("20251215", 32, 0), ("20251216", 20, 100)]);
    // C6.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!(run.incomplete(), ["15 32 of 100", "16 20 of 100"], "{run:?}");
    assert_eq!((run.code, fixture.published()), (3, Vec::new()));
}

#[test]
fn people_are_told_why_a_day_waits_and_what_they_can_do() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50)]),
        ..Market::default()
    });
    let (vendor, public) =
        (format!("http://{}/v2", fixture.server.address), "http://127.0.0.1:9/q/");
    let arguments = ["update", "--as-of", "2025-12-16", "--days", "2", "--vendor-rate", "60000"];
    let mut command = command(fixture.path(), &arguments);
    command.args(["--vendor-url", &vendor, "--public-url", public]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let (report, _) = texts(&output);
    for words in [
        "2025-12-16  50 of 100 rows, not published: it has 50 rows, and 99 % of 100 are needed, which",
        "2025-12-16: the next run asks for it again; only if the vendor has no more rows of it, as",
        "with --publish-incomplete: later days without a list of issues are held against it then, if",
    ] {
        assert!(report.contains(words), "{report}");
    }
}

/// C2: one evening with rows that do not belong there is no standard that no later day meets.
#[test]
fn a_single_day_with_too_many_rows_is_no_standard() {
    let fixture = Fixture::new(Market {
        days: days([
            ("20251208", 200),
            ("20251209", 200),
            ("20251210", 200),
            ("20251211", 200),
            ("20251212", 200),
            ("20251215", 230),
            ("20251216", 200),
            ("20251217", 200),
        ]),
        ..Market::default()
    });
    for (day, published) in [(12, 5), (15, 6), (16, 7), (17, 8)] {
        let run = fixture.update(&format!("--as-of 2025-12-{day} --days 5"));
        assert_eq!((run.code, fixture.published().len()), (0, published), "{}", run.report);
    }
    assert_eq!(fixture.published()[5..], ["15:230", "16:200", "17:200"]);
}
