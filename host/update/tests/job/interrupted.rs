//! Runs that end early: by the user's wish, or because something cannot be written.

use http_client::CancellationToken;
use update::{DayOutcome, Ending, SourceKind, UpdateError};

use crate::fixture::{
    Fixture, ScriptedSource, code, date, every_day, every_issue, failing, nothing, row, traded,
};

const CODES: &[&str] = &["1301", "7203"];

#[test]
fn days_that_were_fetched_are_kept_and_the_next_run_goes_on() {
    let mut fixture = Fixture::new(5);
    let cancel = fixture.cancel.clone();
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing()).with_days(
        move |day| {
            if day == date("2026-01-07") {
                cancel.cancel();
            }
            every_day(SourceKind::Vendor, CODES)(day)
        },
    );
    let report = fixture.run(vec![vendor.slot()]).unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!(report.days_with(DayOutcome::NotReached), 2);
    assert_eq!((fixture.stored().len(), fixture.store.published), (6, 0));
    assert_eq!(fixture.stored_report(1)["ending"], "interrupted");
    fixture.take_asked();

    fixture.cancel = CancellationToken::new();
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing())
        .with_days(every_day(SourceKind::Vendor, CODES));
    let report = fixture.run(vec![vendor.slot()]).unwrap();
    // The first days of all wait for those after them, and are asked for with them; the vendor's source
    // keeps them on this machine.
    let days = ["05", "06", "07", "08", "09"].map(|day| format!("vendor 2026-01-{day}"));
    assert_eq!(fixture.take_asked(), days);
    assert_eq!((report.ending, fixture.store.published), (Ending::Done, 1));
    assert_eq!(fixture.store.splits, [None]);
}

#[test]
fn issues_that_were_fetched_are_kept_on_the_same_day() {
    let mut fixture = Fixture::new(2);
    for number in 1_000..1_450 {
        let row = traded(row(date("2026-01-07"), code(&number.to_string()), SourceKind::Files));
        fixture.store.rows.insert((row.date, row.code), row);
    }
    let cancel = fixture.cancel.clone();
    let broker = ScriptedSource::by_issue(
        SourceKind::WebBroker,
        &fixture.asked,
        move |(issue, from, to)| {
            if issue == code("1300") {
                cancel.cancel();
            }
            every_issue(SourceKind::WebBroker)((issue, from, to))
        },
    );
    assert_eq!(fixture.run(vec![broker.slot()]).unwrap().ending, Ending::Interrupted);
    assert_eq!(fixture.take_asked().len(), 301);
    let limit = update::limits::BATCH_ISSUES;
    assert_eq!(fixture.store.applied, [limit * 2, 101 * 2]);

    fixture.cancel = CancellationToken::new();
    let slot = |fixture: &Fixture| {
        let reply = every_issue(SourceKind::WebBroker);
        vec![ScriptedSource::by_issue(SourceKind::WebBroker, &fixture.asked, reply).slot()]
    };
    let report = fixture.run(slot(&fixture)).unwrap();
    let asked = fixture.take_asked();
    assert_eq!((asked.len(), asked[0].as_str()), (149, "web_broker 1301 2026-01-08..2026-01-09"));
    assert_eq!(report.days_with(DayOutcome::FetchedByIssue), 2);
    assert_eq!((report.ending, fixture.store.published), (Ending::Done, 1));
    // On another day everything is asked for again.
    fixture.sleep_until("2026-01-12", 2);
    fixture.run(slot(&fixture)).unwrap();
    assert_eq!(fixture.take_asked().len(), 450);
}

#[test]
fn a_wish_to_end_while_holidays_are_found_out_closes_no_day() {
    let mut fixture = Fixture::new(10);
    let cancel = fixture.cancel.clone();
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, move |_| {
        cancel.cancel();
        Ok(Vec::new())
    })
    .with_days(|day| match day < date("2026-01-02") {
        true => Ok(Vec::new()),
        false => every_day(SourceKind::Vendor, CODES)(day),
    });
    assert_eq!(fixture.run(vec![vendor.slot()]).unwrap().ending, Ending::Interrupted);
    fixture.take_asked();
    fixture.cancel = CancellationToken::new();
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing())
        .with_days(nothing());
    fixture.run(vec![vendor.slot()]).unwrap();
    assert_eq!(fixture.take_asked()[0], "vendor 2025-12-29");
}

#[test]
fn rows_that_were_stored_but_not_published_are_published_by_the_next_run() {
    let mut fixture = Fixture::new(2);
    let slot = |fixture: &Fixture| {
        let days = every_day(SourceKind::Vendor, CODES);
        vec![
            ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing())
                .with_days(days)
                .slot(),
        ]
    };
    fixture.run(slot(&fixture)).unwrap();
    fixture.sleep_until("2026-01-13", 2);
    fixture.store.cannot_publish = true;
    let error = fixture.run(slot(&fixture)).unwrap_err();
    assert!(matches!(error, UpdateError::Store(_)), "{error}");
    let stored = fixture.stored_report(2);
    assert_eq!(stored["ending"], "failed");
    assert_eq!(stored["error"], error.to_string());
    assert_eq!(stored["days"][0]["outcome"], "fetched");

    fixture.store.cannot_publish = false;
    let report = fixture.run(slot(&fixture)).unwrap();
    assert_eq!((report.days.len(), report.ending), (0, Ending::Done));
    assert_eq!(fixture.store.splits, [None, Some(date("2026-01-13"))]);
}

#[test]
fn reports_that_cannot_be_written_are_an_error() {
    let mut fixture = Fixture::new(1);
    std::fs::write(fixture.folder.path().join("update"), "a file").unwrap();
    let days = every_day(SourceKind::Vendor, CODES);
    let vendor =
        ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing()).with_days(days);
    let error = fixture.run(vec![vendor.slot()]).unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
    assert_eq!(fixture.store.applied.len(), 0, "nothing is stored that cannot be remembered");
}
