//! What happens when a source has nothing or fails.

use http_client::HttpError;
use update::source::SourceError;
use update::{DayOutcome, Ending, SourceKind, SourceSlot, SourceState, last_weekdays};

use crate::fixture::{
    Fixture, ScriptedSource, code, date, every_day, every_issue, failing, nothing, row,
};

const CODES: &[&str] = &["1301", "7203"];

/// A fixture whose store has the two issues on the weekday before the days that are looked at.
fn fixture(days: u32) -> Fixture {
    let mut fixture = Fixture::new(days);
    let before = last_weekdays(date("2026-01-09"), days + 1)[0];
    for text in CODES {
        let row = row(before, code(text), SourceKind::Files);
        fixture.store.rows.insert((row.date, row.code), row);
    }
    fixture
}

fn absent(kind: SourceKind) -> SourceSlot {
    SourceSlot::NotConfigured(kind, "no key".to_owned())
}

#[test]
fn failed_days_come_issue_by_issue_and_whole_days_are_left_alone() {
    let mut fixture = fixture(3);
    let middle = date("2026-01-08");
    let vendor = ScriptedSource::by_issue(
        SourceKind::Vendor,
        &fixture.asked,
        every_issue(SourceKind::Vendor),
    )
    .with_days(move |day| match day == middle {
        true => failing()(day),
        false => every_day(SourceKind::Vendor, &["1301", "7203", "9984"])(day),
    });
    let report = fixture.run(vec![vendor.slot()]).unwrap();
    // The issue that only this run has seen is asked for too.
    let expected = [
        "vendor 2026-01-07",
        "vendor 2026-01-08",
        "vendor 2026-01-09",
        "vendor 1301 2026-01-08..2026-01-08",
        "vendor 7203 2026-01-08..2026-01-08",
        "vendor 9984 2026-01-08..2026-01-08",
    ];
    assert_eq!(fixture.take_asked(), expected);
    assert_eq!((report.ending, report.rows_fetched()), (Ending::Done, 9));
    assert_eq!(report.days[1].outcome, DayOutcome::FetchedByIssue);
    assert_eq!(report.days[1].reasons[0].reason, "no route (3 tries)");
    // It did not come whole, so a run that looks so far back asks for it again.
    fixture
        .run(vec![
            ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing())
                .with_days(every_day(SourceKind::Vendor, CODES))
                .slot(),
        ])
        .unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08"]);
}

#[test]
fn the_first_source_with_rows_is_used_for_an_issue_and_none_is_mixed() {
    let mut fixture = fixture(2);
    // The broker knows one issue, on one of the days.
    let broker =
        ScriptedSource::by_issue(SourceKind::WebBroker, &fixture.asked, |(issue, _, to)| {
            let known = issue == code("1301");
            Ok(known.then(|| row(to, issue, SourceKind::WebBroker)).into_iter().collect())
        });
    let public = ScriptedSource::by_issue(
        SourceKind::Public,
        &fixture.asked,
        every_issue(SourceKind::Public),
    );
    let report =
        fixture.run(vec![public.slot(), absent(SourceKind::Vendor), broker.slot()]).unwrap();
    let expected = [
        "web_broker 1301 2026-01-08..2026-01-09",
        "web_broker 7203 2026-01-08..2026-01-09",
        "public 7203 2026-01-08..2026-01-09",
    ];
    assert_eq!(fixture.take_asked(), expected);
    let stored = fixture.stored();
    assert_eq!(
        stored[2..],
        ["2026-01-08 7203 public", "2026-01-09 1301 web_broker", "2026-01-09 7203 public"]
    );
    // The first day has one of two rows, and the second one is published.
    assert_eq!((report.ending, &*report.gaps), (Ending::Failed, &[date("2026-01-08")][..]));
    let error = report.error.unwrap();
    assert_eq!(error, "days are missing, and the vendor cannot be asked: no key");
    let states: Vec<_> = report.sources.iter().map(|part| (part.source, part.state)).collect();
    assert_eq!(
        states,
        [
            (SourceKind::Vendor, SourceState::NotConfigured),
            (SourceKind::WebBroker, SourceState::Asked),
            (SourceKind::Public, SourceState::Asked),
        ]
    );
    assert_eq!(report.sources[0].reason.as_deref(), Some("no key"));
    let sources = &report.days[1].sources;
    assert_eq!(sources, &[SourceKind::WebBroker, SourceKind::Public]);
}

#[test]
fn a_day_without_data_anywhere_is_asked_for_again_and_holidays_are_not_asked_for() {
    let mut fixture = fixture(10);
    let empty = [date("2025-12-30"), date("2026-01-08")];
    let sources = |fixture: &Fixture| {
        let days = move |day| match empty.contains(&day) {
            true => Ok(Vec::new()),
            false => every_day(SourceKind::Vendor, CODES)(day),
        };
        let nothing = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing());
        let broker = ScriptedSource::by_issue(SourceKind::WebBroker, &fixture.asked, failing());
        vec![nothing.with_days(days).slot(), broker.slot(), absent(SourceKind::Public)]
    };
    let report = fixture.run(sources(&fixture)).unwrap();
    assert_eq!(report.days_with(DayOutcome::Incomplete), 2);
    assert_eq!((report.ending, report.gaps), (Ending::Gap, empty.to_vec()));
    // One question about all of them, for an issue that trades every day.
    let asked = fixture.take_asked();
    assert_eq!(
        asked[7..],
        ["vendor 7203 2025-12-30..2026-01-08", "web_broker 7203 2025-12-30..2026-01-08"]
    );
    let report = fixture.run(sources(&fixture)).unwrap();
    let asked = fixture.take_asked();
    assert_eq!(asked[..2], ["vendor 2025-12-30", "vendor 2026-01-08"]);
    // Those that came, and three days at the turn of the year.
    assert_eq!((report.days_known, report.days_closed), (5, 3));
}

#[test]
fn a_day_that_is_empty_in_one_piece_but_has_data_comes_issue_by_issue() {
    let mut fixture = fixture(2);
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing())
        .with_days(nothing());
    let public = ScriptedSource::by_issue(SourceKind::Public, &fixture.asked, |(issue, _, to)| {
        Ok(vec![row(to, issue, SourceKind::Public)])
    });
    let report = fixture.run(vec![vendor.slot(), public.slot()]).unwrap();
    let outcomes: Vec<_> = report.days.iter().map(|day| day.outcome).collect();
    assert_eq!(outcomes, [DayOutcome::Incomplete, DayOutcome::FetchedByIssue]);
    assert_eq!(fixture.stored()[2..], ["2026-01-09 1301 public", "2026-01-09 7203 public"]);
    assert_eq!(report.ending, Ending::Gap);
}

#[test]
fn without_a_list_of_issues_failed_days_stay_failed() {
    let mut fixture = Fixture::new(1);
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing())
        .with_days(failing());
    let report = fixture.run(vec![vendor.slot()]).unwrap();
    assert_eq!((report.ending, report.days[0].outcome), (Ending::Incomplete, DayOutcome::Failed));
    assert!(report.notes[0].contains("--codes"), "{:?}", report.notes);
    assert_eq!((fixture.store.published, fixture.store.applied.len()), (0, 0));
}

#[test]
fn a_source_that_refuses_the_key_is_asked_once() {
    let mut fixture = fixture(5);
    let refuse = || -> SourceError {
        HttpError::Key { status: 401, message: "Unauthorized".to_owned() }.into()
    };
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing())
        .with_days(move |_| Err(refuse()));
    let report = fixture.run(vec![vendor.slot(), absent(SourceKind::Public)]).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-05"]);
    assert_eq!(report.sources[0].state, SourceState::GivenUp);
    let reason = report.sources[0].reason.as_deref().unwrap();
    assert_eq!(reason, "the key or its plan was refused (HTTP 401): Unauthorized");
    assert_eq!((report.ending, report.days_with(DayOutcome::Failed)), (Ending::Failed, 5));
    let reasons: Vec<_> = report.days[4].reasons.iter().map(|reason| reason.source).collect();
    assert_eq!(reasons, [SourceKind::Vendor, SourceKind::Public]);
}

#[test]
fn a_source_that_fails_again_and_again_is_given_up() {
    let mut fixture = fixture(8);
    let limit = update::limits::FAILURES_IN_A_ROW_MAX as usize;
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing())
        .with_days(failing());
    let public = ScriptedSource::by_issue(
        SourceKind::Public,
        &fixture.asked,
        every_issue(SourceKind::Public),
    );
    let report = fixture.run(vec![vendor.slot(), public.slot()]).unwrap();
    let asked = fixture.take_asked();
    assert_eq!(asked.iter().filter(|text| text.starts_with("vendor")).count(), limit);
    let reason = report.sources[0].reason.clone().unwrap();
    assert_eq!(reason, "5 failures in a row; last: no route (3 tries)");
    assert_eq!(asked[limit..].len(), CODES.len());
    assert_eq!((report.ending, report.issues_failed), (Ending::Done, 0));
}

#[test]
fn dates_that_the_vendor_refuses_go_to_the_other_sources_only() {
    let mut fixture = fixture(4);
    let window = || -> SourceError {
        HttpError::Refused { status: 400, message: "Your subscription".to_owned() }.into()
    };
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing()).with_days(
        move |day| match day < date("2026-01-08") {
            true => Err(window()),
            false => every_day(SourceKind::Vendor, CODES)(day),
        },
    );
    let public = ScriptedSource::by_issue(
        SourceKind::Public,
        &fixture.asked,
        every_issue(SourceKind::Public),
    );
    let report = fixture.run(vec![vendor.slot(), public.slot()]).unwrap();
    let asked = fixture.take_asked();
    assert_eq!(
        asked[4..],
        ["public 1301 2026-01-06..2026-01-07", "public 7203 2026-01-06..2026-01-07"]
    );
    assert_eq!(report.days[0].reasons[0].reason, "refused (HTTP 400): Your subscription");
    assert_eq!(report.ending, Ending::Done);
}

#[test]
fn an_issue_that_all_sources_fail_for_is_named() {
    let mut fixture = fixture(1);
    let mut vendor_fails = failing();
    let vendor =
        ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, move |(issue, from, to)| {
            match issue == code("7203") {
                true => vendor_fails(issue),
                false => every_issue(SourceKind::Vendor)((issue, from, to)),
            }
        })
        .with_days(failing());
    let public = ScriptedSource::by_issue(SourceKind::Public, &fixture.asked, failing());
    let report = fixture.run(vec![vendor.slot(), public.slot()]).unwrap();
    assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 1));
    let issue = &report.issues[0];
    assert_eq!((issue.code, issue.reasons.len()), (code("7203"), 2));
    // What came is stored; published is the day before.
    assert_eq!((fixture.store.published, fixture.stored().len()), (1, 3));
    // The next run of the day asks for what is missing only.
    fixture.take_asked();
    let vendor = ScriptedSource::by_issue(
        SourceKind::Vendor,
        &fixture.asked,
        every_issue(SourceKind::Vendor),
    )
    .with_days(failing());
    assert_eq!(fixture.run(vec![vendor.slot()]).unwrap().ending, Ending::Done);
    assert_eq!(fixture.take_asked()[1..], ["vendor 7203 2026-01-09..2026-01-09"]);
}

#[test]
fn a_few_issues_over_many_days_are_asked_for_one_by_one() {
    let mut fixture = Fixture::new(4);
    fixture.options.codes = vec![code("7203")];
    let vendor = ScriptedSource::by_issue(
        SourceKind::Vendor,
        &fixture.asked,
        every_issue(SourceKind::Vendor),
    )
    .with_days(every_day(SourceKind::Vendor, CODES));
    fixture.run(vec![vendor.slot()]).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 7203 2026-01-06..2026-01-09"]);
    assert_eq!(fixture.stored().len(), 4);
}

#[test]
fn what_a_fall_back_does_not_have_is_no_proof_while_a_better_source_is_down() {
    let sources = |fixture: &Fixture| {
        let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing());
        let public = ScriptedSource::by_issue(SourceKind::Public, &fixture.asked, nothing());
        vec![vendor.with_days(failing()).slot(), public.slot()]
    };
    let mut outage = fixture(2);
    let report = outage.run(sources(&outage)).unwrap();
    assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 2));
    assert_eq!(report.days_with(DayOutcome::Failed), 2);
    assert_eq!(report.issues[0].reasons[0].source, SourceKind::Vendor);

    // The same answer of the same source when there is no better one.
    let mut alone = fixture(2);
    let public = ScriptedSource::by_issue(SourceKind::Public, &alone.asked, nothing());
    let report = alone.run(vec![absent(SourceKind::Vendor), public.slot()]).unwrap();
    assert_eq!((report.ending, report.issues_failed), (Ending::Failed, 0), "there is no key");
    assert_eq!(report.days_with(DayOutcome::Failed), 0, "young days may still come");
}

#[test]
fn an_empty_day_is_no_holiday_while_nobody_better_can_be_asked() {
    let sources = |fixture: &Fixture| {
        let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing());
        let public = ScriptedSource::by_issue(SourceKind::Public, &fixture.asked, nothing());
        vec![vendor.with_days(|_| Ok(Vec::new())).slot(), public.slot()]
    };
    let mut fixture = fixture(10);
    let report = fixture.run(sources(&fixture)).unwrap();
    assert_eq!((report.ending, report.days_with(DayOutcome::Failed)), (Ending::Incomplete, 7));
    fixture.take_asked();
    let again = fixture.run(sources(&fixture)).unwrap();
    let (known, closed) = (again.days_known, again.days_closed);
    assert_eq!((known, closed), (0, 3), "none of them counts as closed, but the turn of the year");
}

#[test]
fn days_of_a_lesser_source_are_asked_for_again_a_month_back() {
    let mut fixture = fixture(30);
    let public = |fixture: &Fixture| {
        let rows = every_issue(SourceKind::Public);
        ScriptedSource::by_issue(SourceKind::Public, &fixture.asked, rows).slot()
    };
    let down = |fixture: &Fixture| {
        let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, failing());
        vendor.with_days(failing()).slot()
    };
    let sources = vec![down(&fixture), public(&fixture)];
    fixture.run(sources).unwrap();
    fixture.take_asked();
    fixture.options.from = None;
    // Two questions find out that it is still down, and not for one day.
    let sources = vec![down(&fixture), public(&fixture)];
    let report = fixture.run(sources).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2025-12-15", "vendor 2025-12-16"]);
    assert_eq!((report.ending, report.days.len()), (Ending::Done, 0));
    assert!(report.notes[0].starts_with("2025-12-15 stays as a lesser source gave it: no route"));

    let up = |fixture: &Fixture| {
        let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing());
        vendor.with_days(every_day(SourceKind::Vendor, CODES)).slot()
    };
    let vendor = up(&fixture);
    fixture.run(vec![vendor]).unwrap();
    // Twenty weekdays, three of them at the turn of the year.
    let asked = fixture.take_asked();
    assert_eq!((asked.len(), asked[0].as_str()), (17, "vendor 2025-12-15"));
    let lesser = fixture.stored().iter().filter(|row| row.ends_with("public")).count();
    assert_eq!(lesser, (30 - 20) * CODES.len(), "what is older stays");
    let vendor = up(&fixture);
    fixture.run(vec![vendor]).unwrap();
    assert_eq!(fixture.take_asked(), [""; 0]);
}
