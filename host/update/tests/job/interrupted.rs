//! Runs that end early: by the user's wish, or because something cannot be written.

use http_client::CancellationToken;
use update::{DayOutcome, Ending, Phase};

use crate::fixture::{Fixture, date, days_of, nothing};

const CODES: &[&str] = &["1301", "7203"];

#[test]
fn days_that_were_fetched_are_kept_and_the_next_run_goes_on() {
    let mut fixture = Fixture::new(5);
    let cancel = fixture.cancel.clone();
    let days = move |day| {
        if day == date("2026-01-07") {
            cancel.cancel();
        }
        days_of(CODES)(day)
    };
    let report = fixture.run(vec![fixture.vendor(days, nothing)]);
    assert_eq!(report.ending, Ending::Interrupted);
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!(report.days_with(DayOutcome::NotReached), 2);
    assert_eq!((fixture.stored().len(), fixture.store.published), (6, 0));
    assert_eq!(fixture.stored_report(1)["ending"], "interrupted");
    fixture.take_asked();

    fixture.cancel = CancellationToken::new();
    let report = fixture.run(vec![fixture.vendor(days_of(CODES), nothing)]);
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert_eq!((report.ending, fixture.store.published), (Ending::Done, 1));
    assert_eq!(fixture.store.splits, [None]);
}

#[test]
fn what_is_stored_and_not_published_is_published_by_the_next_run() {
    for stop in [Phase::Publish, Phase::Split] {
        let mut fixture = Fixture::new(2);
        fixture.run(vec![fixture.vendor(days_of(CODES), nothing)]);
        fixture.sleep_until("2026-01-13", 2);
        fixture.seen.cancel_at = Some((stop, fixture.cancel.clone()));
        let report = fixture.run(vec![fixture.vendor(days_of(CODES), nothing)]);
        assert_eq!((report.ending, report.split), (Ending::Interrupted, None));
        assert_eq!((report.days[0].complete, &*fixture.store.splits), (true, &[None][..]));
        fixture.cancel = CancellationToken::new();
        let report = fixture.run(vec![fixture.vendor(days_of(CODES), nothing)]);
        assert_eq!((report.days.len(), report.ending), (0, Ending::Done));
        assert_eq!(fixture.store.splits, [None, Some(date("2026-01-13"))]);
    }
}

#[test]
fn nothing_is_stored_where_reports_cannot_be_written() {
    let mut fixture = Fixture::new(1);
    std::fs::write(fixture.folder.path().join("update"), "a file").unwrap();
    let vendor = fixture.vendor(days_of(CODES), nothing);
    let error = fixture.try_run(vec![vendor]).unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
    assert_eq!(fixture.stored(), [""; 0]);
}
