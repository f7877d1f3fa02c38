//! Runs that end early: by the user's wish, or because something cannot be written.

use http_client::CancellationToken;
use update::{DayOutcome, Ending, SourceKind, UpdateError};

use crate::desk::{Desk, Told, code, date, every_day, every_issue, failing, nothing, row};

const CODES: &[&str] = &["1301", "7203"];

#[test]
fn days_that_were_fetched_are_kept_and_the_next_run_goes_on() {
    let mut desk = Desk::new(5);
    let cancel = desk.cancel.clone();
    let vendor = Told::by_issue(SourceKind::Vendor, &desk.asked, nothing()).with_days(move |day| {
        if day == date("2026-01-07") {
            cancel.cancel();
        }
        every_day(SourceKind::Vendor, CODES)(day)
    });
    let report = desk.run(vec![vendor.slot()]).unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!(report.days_with(DayOutcome::NotReached), 2);
    assert_eq!((desk.stored().len(), desk.shelf.published), (6, 0));
    assert_eq!(desk.stored_report(1)["ending"], "interrupted");
    desk.take_asked();

    desk.cancel = CancellationToken::new();
    let vendor = Told::by_issue(SourceKind::Vendor, &desk.asked, nothing())
        .with_days(every_day(SourceKind::Vendor, CODES));
    let report = desk.run(vec![vendor.slot()]).unwrap();
    assert_eq!(desk.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert_eq!((report.ending, desk.shelf.published), (Ending::Done, 1));
    assert_eq!(desk.shelf.splits, [None]);
}

#[test]
fn issues_that_were_fetched_are_kept_on_the_same_day() {
    let mut desk = Desk::new(2);
    for number in 1_000..1_450 {
        let row = row(date("2026-01-05"), code(&number.to_string()), SourceKind::Files);
        desk.shelf.rows.insert((row.date, row.code), row);
    }
    let cancel = desk.cancel.clone();
    let broker = Told::by_issue(SourceKind::WebBroker, &desk.asked, move |(issue, from, to)| {
        if issue == code("1300") {
            cancel.cancel();
        }
        every_issue(SourceKind::WebBroker)((issue, from, to))
    });
    assert_eq!(desk.run(vec![broker.slot()]).unwrap().ending, Ending::Interrupted);
    assert_eq!(desk.take_asked().len(), 301);
    let limit = update::limits::BATCH_ISSUES;
    assert_eq!(desk.shelf.applied, [limit * 2, 101 * 2]);

    desk.cancel = CancellationToken::new();
    let slot = |desk: &Desk| {
        let reply = every_issue(SourceKind::WebBroker);
        vec![Told::by_issue(SourceKind::WebBroker, &desk.asked, reply).slot()]
    };
    let report = desk.run(slot(&desk)).unwrap();
    let asked = desk.take_asked();
    assert_eq!((asked.len(), asked[0].as_str()), (149, "web_broker 1301 2026-01-08..2026-01-09"));
    assert_eq!(report.days_with(DayOutcome::FetchedByIssue), 2);
    assert_eq!((report.ending, desk.shelf.published), (Ending::Done, 1));
    // On another day everything is asked for again.
    desk.sleep_until("2026-01-12", 2);
    desk.run(slot(&desk)).unwrap();
    assert_eq!(desk.take_asked().len(), 450);
}

#[test]
fn a_wish_to_end_while_holidays_are_found_out_closes_no_day() {
    let mut desk = Desk::new(10);
    let cancel = desk.cancel.clone();
    let vendor = Told::by_issue(SourceKind::Vendor, &desk.asked, move |_| {
        cancel.cancel();
        Ok(Vec::new())
    })
    .with_days(|day| match day < date("2026-01-02") {
        true => Ok(Vec::new()),
        false => every_day(SourceKind::Vendor, CODES)(day),
    });
    assert_eq!(desk.run(vec![vendor.slot()]).unwrap().ending, Ending::Interrupted);
    desk.take_asked();
    desk.cancel = CancellationToken::new();
    let vendor = Told::by_issue(SourceKind::Vendor, &desk.asked, nothing()).with_days(nothing());
    desk.run(vec![vendor.slot()]).unwrap();
    assert_eq!(desk.take_asked()[0], "vendor 2025-12-29");
}

#[test]
fn rows_that_were_stored_but_not_published_are_published_by_the_next_run() {
    let mut desk = Desk::new(2);
    let slot = |desk: &Desk| {
        let days = every_day(SourceKind::Vendor, CODES);
        vec![Told::by_issue(SourceKind::Vendor, &desk.asked, failing()).with_days(days).slot()]
    };
    desk.run(slot(&desk)).unwrap();
    desk.sleep_until("2026-01-12", 2);
    desk.shelf.cannot_publish = true;
    let error = desk.run(slot(&desk)).unwrap_err();
    assert!(matches!(error, UpdateError::Store(_)), "{error}");
    let stored = desk.stored_report(2);
    assert_eq!(stored["ending"], "failed");
    assert_eq!(stored["error"], error.to_string());
    assert_eq!(stored["days"][1]["outcome"], "fetched");

    desk.shelf.cannot_publish = false;
    let report = desk.run(slot(&desk)).unwrap();
    assert_eq!((report.sources[0].unchanged, report.ending), (2, Ending::Done));
    assert_eq!(desk.shelf.splits, [None, Some(date("2026-01-09"))]);
}

#[test]
fn reports_that_cannot_be_written_are_an_error() {
    let mut desk = Desk::new(1);
    std::fs::write(desk.folder.path().join("update"), "a file").unwrap();
    let days = every_day(SourceKind::Vendor, CODES);
    let vendor = Told::by_issue(SourceKind::Vendor, &desk.asked, nothing()).with_days(days);
    let error = desk.run(vec![vendor.slot()]).unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
    assert_eq!(desk.shelf.applied.len(), 0, "nothing is stored that cannot be remembered");
}
