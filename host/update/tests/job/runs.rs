//! Runs that go well: the first, one without news, one with a change, one with many rows.

use update::limits::BATCH_ROWS;
use update::{DayOutcome, Ending, Phase, SourceKind, SourceState};

use crate::events;
use crate::fixture::{Fixture, code, date, days_of, failing, nothing, row};

const CODES: &[&str] = &["1301", "130A", "7203"];

#[test]
fn a_report_is_stored_as_it_was_given() {
    let mut fixture = Fixture::new(3);
    let report = fixture.run(vec![fixture.vendor(days_of(CODES), failing)]);
    let days = ["vendor 2026-01-07", "vendor 2026-01-08", "vendor 2026-01-09"];
    assert_eq!(fixture.take_asked(), days);
    assert_eq!((report.ending, report.number, report.rows_fetched()), (Ending::Done, 1, 9));
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!(fixture.seen.phases, [Phase::Days, Phase::Publish, Phase::Split]);
    assert_eq!(fixture.stored().len(), 9);
    let part = &report.sources[0];
    assert_eq!((part.state, part.asked, part.inserted), (SourceState::Asked, 3, 9));
    let stored = fixture.stored_report(1);
    assert_eq!(stored, serde_json::from_str::<serde_json::Value>(&report.to_json()).unwrap());
    assert_eq!(
        (&stored["version"], &stored["sources"][0]["source"]),
        (&3.into(), &"vendor".into())
    );
    assert_eq!(stored["days"][0]["outcome"], "fetched");
    assert_eq!(stored["published"]["last"], "2026-01-09");
    assert_eq!(stored["split"]["from"], serde_json::Value::Null);
}

#[test]
fn only_news_is_published_and_split_from_its_first_date() {
    let mut fixture = Fixture::new(3);
    for asked in [3, 0] {
        let report = fixture.run(vec![fixture.vendor(days_of(CODES), failing)]);
        assert_eq!((report.ending, fixture.take_asked().len()), (Ending::Done, asked));
        assert_eq!((fixture.store.published, &*fixture.store.splits), (1, &[None][..]));
    }
    fixture.options.refetch = true;
    let changed = fixture.vendor(
        |day| {
            let mut rows = days_of(CODES)(day)?;
            if day == date("2026-01-08") {
                rows[2].volume = Some(200);
            }
            Ok(rows)
        },
        failing,
    );
    let report = fixture.run(vec![changed]);
    let part = &report.sources[0];
    assert_eq!((part.changed, part.unchanged, part.asked), (1, 8, 3));
    assert_eq!(fixture.store.splits, [None, Some(date("2026-01-08"))]);
}

#[test]
fn many_rows_are_stored_in_parts() {
    let mut fixture = Fixture::new(16);
    let days = |day| {
        let codes = (1_000..9_800).map(|number| code(&number.to_string()));
        Ok(codes.map(|code| row(day, code, SourceKind::Vendor)).collect())
    };
    let source = fixture.vendor(days, nothing);
    let (report, told) = events::told(|| fixture.run(vec![source]));
    // Three of the weekdays are at the turn of the year.
    assert_eq!(report.rows_fetched(), 13 * 8_800);
    let parts = told.lines().filter_map(|line| line.split_once(" inserted=")?.1.split(' ').next());
    let parts: Vec<usize> = parts.map(|rows| rows.parse().unwrap()).collect();
    assert_eq!(parts, [BATCH_ROWS, 12 * 8_800 - BATCH_ROWS, 8_800]);
}
