//! Runs that go well: the first, the next day's, one without news.

use update::{DayOutcome, Ending, Phase, SourceKind, SourceSlot, SourceState};

use crate::fixture::{
    Asked, Fixture, ScriptedSource, code, date, every_day, failing, nothing, row, traded,
};

fn vendor(asked: &Asked) -> SourceSlot {
    let codes = &["1301", "130A", "7203"];
    let days = every_day(SourceKind::Vendor, codes);
    ScriptedSource::by_issue(SourceKind::Vendor, asked, failing()).with_days(days).slot()
}

#[test]
fn a_first_run_fetches_every_day_and_splits_everything() {
    let mut fixture = Fixture::new(3);
    let report = fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!(
        fixture.take_asked(),
        ["vendor 2026-01-07", "vendor 2026-01-08", "vendor 2026-01-09"]
    );
    assert_eq!((report.ending, report.number, report.rows_fetched()), (Ending::Done, 1, 9));
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!((fixture.store.published, &*fixture.store.splits), (1, [None].as_slice()));
    assert_eq!(fixture.seen.phases, [Phase::Days, Phase::Publish, Phase::Split]);
    assert_eq!(fixture.stored().len(), 9);
    let part = &report.sources[0];
    assert_eq!((part.state, part.asked, part.inserted), (SourceState::Asked, 3, 9));
    // The report is stored as it was given.
    let stored = fixture.stored_report(1);
    assert_eq!(stored, serde_json::from_str::<serde_json::Value>(&report.to_json()).unwrap());
    assert_eq!(stored["sources"][0]["source"], "vendor");
    assert_eq!(stored["days"][0]["outcome"], "fetched");
    assert_eq!(stored["published"]["last"], "2026-01-09");
    assert_eq!(stored["split"]["from"], serde_json::Value::Null);
}

#[test]
fn the_next_run_fetches_what_is_new() {
    let mut fixture = Fixture::new(3);
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    fixture.take_asked();
    // The 12th is a holiday.
    fixture.sleep_until("2026-01-14", 6);
    let report = fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-13", "vendor 2026-01-14"]);
    assert_eq!((report.days_known, report.days_closed), (3, 1));
    assert_eq!(report.ending, Ending::Done);
    let part = &report.sources[0];
    assert_eq!((part.fetched, part.inserted, part.unchanged), (6, 6, 0));
    assert_eq!(fixture.store.splits, [None, Some(date("2026-01-13"))]);
}

#[test]
fn without_news_nothing_is_published() {
    let mut fixture = Fixture::new(3);
    for expected in [3, 0] {
        let report = fixture.run(vec![vendor(&fixture.asked)]).unwrap();
        assert_eq!(fixture.take_asked().len(), expected);
        assert_eq!(report.ending, Ending::Done);
    }
    assert_eq!((fixture.store.published, fixture.store.splits.len()), (1, 1));
    assert_eq!(fixture.stored_report(2)["published"], serde_json::Value::Null);
    // Unless the published file is gone.
    std::fs::remove_file(fixture.options.data.mother()).unwrap();
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!((fixture.store.published, &*fixture.store.splits), (2, [None, None].as_slice()));
}

#[test]
fn a_change_of_the_past_is_split_from_its_date() {
    let mut fixture = Fixture::new(3);
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    fixture.options.refetch = true;
    let changed = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing())
        .with_days(|day| {
            let rows =
                ["1301", "130A", "7203"].map(|text| row(day, code(text), SourceKind::Vendor));
            let mut rows = rows.to_vec();
            rows[2].volume = Some(if day == date("2026-01-08") { 200 } else { 100 });
            Ok(rows)
        });
    let report = fixture.run(vec![changed.slot()]).unwrap();
    let part = &report.sources[0];
    assert_eq!((part.changed, part.unchanged, part.asked), (1, 8, 3));
    assert_eq!(fixture.store.splits, [None, Some(date("2026-01-08"))]);
}

#[test]
fn only_the_named_issues_are_stored_and_the_day_stays_open() {
    let mut fixture = Fixture::new(2);
    fixture.options.codes = vec![code("130A"), code("7203")];
    let report = fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!((report.ending, fixture.store.published), (Ending::Incomplete, 0));
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert_eq!(fixture.stored().len(), 4);
    fixture.options.codes.clear();
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert_eq!((fixture.stored().len(), fixture.store.published), (6, 1));
}

#[test]
fn what_the_store_has_lost_is_fetched_again() {
    let mut fixture = Fixture::new(3);
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    fixture.take_asked();
    fixture.store.rows.retain(|(day, _), _| *day != date("2026-01-07"));
    fixture.run(vec![vendor(&fixture.asked)]).unwrap();
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-07"]);
}

#[test]
fn many_rows_are_stored_in_parts() {
    let mut fixture = Fixture::new(30);
    let many =
        ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing()).with_days(|day| {
            let codes = (1_000..9_000).map(|number| code(&number.to_string()));
            Ok(codes.map(|code| traded(row(day, code, SourceKind::Vendor))).collect())
        });
    fixture.run(vec![many.slot()]).unwrap();
    // Thirty weekdays, three of them at the turn of the year.
    assert_eq!(fixture.store.applied.iter().sum::<usize>(), 27 * 8_000);
    let limit = update::limits::BATCH_ROWS;
    assert!(fixture.store.applied.len() > 2, "{:?}", fixture.store.applied);
    assert!(fixture.store.applied.iter().all(|rows| *rows <= limit), "{:?}", fixture.store.applied);
}
