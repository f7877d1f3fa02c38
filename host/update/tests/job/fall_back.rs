//! What happens when a source has nothing or fails.

use domain::Price;
use http_client::{CancellationToken, HttpError};
use update::limits::FAILURES_IN_A_ROW_MAX;
use update::{DayOutcome, Ending, SourceKind, SourceSlot, SourceState};

use crate::fixture::{Fixture, Given, Span, code, date, days_of, failing, issues_of, nothing, row};

const CODES: &[&str] = &["1301", "7203"];
const THREE: &[&str] = &["1301", "7203", "9984"];

fn fixture(days: u32) -> Fixture {
    Fixture::after_a_day(days, CODES)
}

fn absent(kind: SourceKind) -> SourceSlot {
    SourceSlot::NotConfigured(kind, "no key".to_owned())
}

fn public(fixture: &Fixture) -> SourceSlot {
    fixture.source(SourceKind::Public, issues_of(SourceKind::Public))
}

#[test]
fn a_day_that_fails_comes_issue_by_issue_and_whole_days_are_left_alone() {
    let mut fixture = fixture(3);
    let days = |day| if day == date("2026-01-08") { failing(day) } else { days_of(THREE)(day) };
    let report = fixture.run(vec![fixture.vendor(days, issues_of(SourceKind::Vendor))]);
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
    assert_eq!((report.ending, report.rows_fetched()), (Ending::Incomplete, 9));
    let day = &report.days[1];
    assert_eq!((day.outcome, day.complete), (DayOutcome::FetchedByIssue, true));
    assert_eq!(day.reasons[0].reason, "no route (3 tries)");
    // It did not come whole, so a run that looks so far back asks for it again.
    let report = fixture.run(vec![fixture.vendor(days_of(THREE), failing)]);
    assert_eq!((report.ending, fixture.take_asked()), (Ending::Done, vec![expected[1].to_owned()]));
}

#[test]
fn a_price_that_cannot_be_right_is_left_out_issue_by_issue_too() {
    let mut fixture = fixture(1);
    let far = |(issue, from, to): Span| {
        let mut rows = issues_of(SourceKind::Vendor)((issue, from, to))?;
        rows.iter_mut().filter(|_| issue == code("7203")).for_each(|row| {
            row.high = row.high.map(|price| Price::from_units(price.units() * 20));
        });
        Ok(rows)
    };
    let report = fixture.run(vec![fixture.vendor(failing, far), public(&fixture)]);
    // The next source is asked for what is missing.
    let stored = fixture.stored();
    assert!(stored.contains(&"2026-01-09 1301 vendor".to_owned()), "{stored:?}");
    assert!(stored.contains(&"2026-01-09 7203 public".to_owned()), "{stored:?}");
    let left_out = format!("{:?}", report.odd);
    assert!(left_out.contains("over 10 times away from the last close"), "{left_out}");
}

#[test]
fn one_question_finds_out_which_empty_days_had_trades() {
    let mut fixture = fixture(10);
    let (empty, traded) = (date("2025-12-30"), date("2026-01-08"));
    let sources = |fixture: &Fixture| {
        let days = move |day| match day == empty || day == traded {
            true => nothing(day),
            false => days_of(CODES)(day),
        };
        let public = fixture.source(SourceKind::Public, move |(issue, from, to)| {
            let has_day = (from..=to).contains(&traded);
            Ok(has_day.then(|| row(traded, issue, SourceKind::Public)).into_iter().collect())
        });
        vec![fixture.vendor(days, nothing), public]
    };
    let report = fixture.run(sources(&fixture));
    assert_eq!((report.ending, &*report.gaps), (Ending::Gap, &[empty][..]));
    let outcome = |day| report.days.iter().find(|one| one.date == day).unwrap().outcome;
    assert_eq!(outcome(empty), DayOutcome::Incomplete);
    assert_eq!(outcome(traded), DayOutcome::FetchedByIssue);
    assert_eq!(fixture.stored()[10..12], ["2026-01-08 1301 public", "2026-01-08 7203 public"]);
    let asked = fixture.take_asked();
    // An issue that trades every day.
    let question = ["vendor 7203 2025-12-30..2026-01-08", "public 7203 2025-12-30..2026-01-08"];
    assert_eq!((asked.len(), &asked[7..9]), (7 + 2 + 4, &question.map(str::to_owned)[..]));
    // An empty answer takes nothing of a lesser source away.
    let report = fixture.run(sources(&fixture));
    assert_eq!(report.days[1].outcome, DayOutcome::NoData);
    let days = ["2025-12-30", "2026-01-08", "7203 2025-12-30..2025-12-30"];
    assert_eq!(fixture.take_asked()[..3], days.map(|of| format!("vendor {of}")));
    assert_eq!((report.days_known, report.days_closed, &*report.gaps), (5, 3, &[empty][..]));
}

#[test]
fn without_a_known_issue_failed_days_stay_failed() {
    let mut fixture = Fixture::new(1);
    let report = fixture.run(vec![fixture.vendor(failing, failing)]);
    assert_eq!((report.ending, report.days[0].outcome), (Ending::Incomplete, DayOutcome::Failed));
    assert!(report.notes[0].contains("--codes"), "{:?}", report.notes);
    assert_eq!((fixture.store.published, fixture.stored().len()), (0, 0));
}

#[test]
fn a_source_that_is_of_no_use_is_asked_no_more() {
    let mut refused = fixture(5);
    let refuse = |_| Err(HttpError::Key { status: 401, message: "Unauthorized".to_owned() }.into());
    let report = refused.run(vec![refused.vendor(refuse, failing), absent(SourceKind::Public)]);
    assert_eq!(refused.take_asked(), ["vendor 2026-01-05"]);
    let reason = "refused (HTTP 401): Unauthorized";
    let vendor = &report.sources[0];
    assert_eq!((vendor.state, vendor.reason.as_deref()), (SourceState::GivenUp, Some(reason)));
    assert_eq!((report.ending, report.days_with(DayOutcome::Failed)), (Ending::Failed, 5));
    let reasons: Vec<_> = report.days[4].reasons.iter().map(|reason| reason.source).collect();
    assert_eq!(reasons, [SourceKind::Vendor, SourceKind::Public]);

    let mut down = fixture(10);
    let report = down.run(vec![down.vendor(failing, failing), public(&down)]);
    let of_vendor = |asked: &String| asked.starts_with("vendor");
    let asked = down.take_asked();
    assert_eq!(
        asked.iter().filter(|asked| of_vendor(asked)).count(),
        FAILURES_IN_A_ROW_MAX as usize
    );
    let reason = report.sources[0].reason.as_deref();
    assert_eq!(reason, Some("5 failures in a row; last: no route (3 tries)"));
    assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 0));
    assert!(report.days.iter().all(|day| day.complete), "by the other source");
}

#[test]
fn dates_that_the_vendor_refuses_go_to_the_other_sources_only() {
    let mut fixture = fixture(4);
    let days = |day| match day < date("2026-01-08") {
        true => Err(HttpError::Refused { status: 400, message: "Not these".to_owned() }.into()),
        false => days_of(CODES)(day),
    };
    let report = fixture.run(vec![fixture.vendor(days, failing), public(&fixture)]);
    let asked = ["public 1301", "public 7203"].map(|of| format!("{of} 2026-01-06..2026-01-07"));
    assert_eq!(fixture.take_asked()[4..], asked);
    assert_eq!(report.days[0].reasons[0].reason, "refused (HTTP 400): Not these");
    assert!(report.days.iter().all(|day| day.complete));
}

#[test]
fn an_issue_that_all_sources_fail_for_is_named_and_asked_for_by_the_next_run_of_the_day() {
    let mut fixture = fixture(1);
    let run = |fixture: &mut Fixture, issue: fn(Span) -> Given| {
        let public = fixture.source(SourceKind::Public, failing);
        let report = fixture.run(vec![fixture.vendor(failing, issue), public]);
        let mut asked = fixture.take_asked();
        asked.retain(|asked| asked.starts_with("vendor") && asked.contains(".."));
        (report, asked)
    };
    let one_fails = |span: Span| match span.0 == code("7203") {
        true => failing(span),
        false => issues_of(SourceKind::Vendor)(span),
    };
    let asked = ["1301", "7203"].map(|code| format!("vendor {code} 2026-01-09..2026-01-09"));
    for expected in [&asked[..], &asked[1..]] {
        let (report, asked) = run(&mut fixture, one_fails);
        assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 1));
        let issue = &report.issues[0];
        assert_eq!((issue.code, issue.reasons.len()), (code("7203"), 2));
        // What came is stored; published is the day before.
        assert_eq!((fixture.store.published, fixture.stored().len()), (1, 3));
        assert_eq!(asked, expected);
    }
    // On another day everything is asked for again.
    fixture.options.now = domain::TsNanos::from_jst(date("2026-01-10"), 0).unwrap();
    let (report, again) = run(&mut fixture, |span| issues_of(SourceKind::Vendor)(span));
    assert_eq!((again.as_slice(), report.days[0].complete), (&asked[..], true));
}

#[test]
fn a_few_issues_over_many_days_are_asked_for_one_by_one() {
    let mut fixture = Fixture::new(4);
    fixture.options.codes = vec![code("7203")];
    fixture.run(vec![fixture.vendor(days_of(CODES), issues_of(SourceKind::Vendor))]);
    assert_eq!(fixture.take_asked(), ["vendor 7203 2026-01-06..2026-01-09"]);
    assert_eq!(fixture.stored().len(), 4);
}

#[test]
fn what_a_source_does_not_have_is_no_proof_while_a_better_one_is_down() {
    let mut outage = fixture(2);
    let public = outage.source(SourceKind::Public, nothing);
    let report = outage.run(vec![outage.vendor(failing, failing), public]);
    assert_eq!((report.ending, report.issues_failed), (Ending::Incomplete, 2));
    assert_eq!(report.days_with(DayOutcome::Failed), 2);
    assert_eq!(report.issues[0].reasons[0].source, SourceKind::Vendor);

    // The same answer of the same source when there is no better one.
    let mut alone = fixture(2);
    let public = alone.source(SourceKind::Public, nothing);
    let report = alone.run(vec![absent(SourceKind::Vendor), public]);
    assert_eq!((report.ending, report.issues_failed), (Ending::Failed, 0), "there is no key");
    assert_eq!(report.days_with(DayOutcome::Incomplete), 2, "they may still come");
}

#[test]
fn an_accepted_day_is_closed_only_when_every_source_has_answered() {
    let mut fixture = fixture(1);
    fixture.options.accept = vec![date("2026-01-09")];
    let cancel = fixture.cancel.clone();
    let sources = [
        (fixture.vendor(nothing, failing), Ending::Incomplete),
        (
            fixture.vendor(nothing, move |span| {
                cancel.cancel();
                nothing(span)
            }),
            Ending::Interrupted,
        ),
        (fixture.vendor(nothing, nothing), Ending::Done),
    ];
    for (vendor, ending) in sources {
        let report = fixture.run(vec![vendor, fixture.source(SourceKind::Public, nothing)]);
        let is_closed =
            report.notes.iter().any(|note| note.starts_with("--accept 2026-01-09 closes the day"));
        assert_eq!((report.ending, is_closed), (ending, ending == Ending::Done));
        if ending == Ending::Interrupted {
            fixture.cancel = CancellationToken::new();
        }
    }
}
