//! The job over the databases on disk.

use domain::JstDate;
use duckdb::{AccessMode, Config, Connection};
use pricestore::DataDir;
use update::store::{StoreError, WorkDatabase};
use update::{DailyRow, Ending, Report, SourceKind, SourceSlot, update_from_sources};

use crate::fixture::{Fixture, ScriptedSource, code, date, nothing, row};

/// Two issues a day; one of them is not traded on the 8th and split on the 9th.
fn rows(day: JstDate) -> Vec<DailyRow> {
    let mut rows = ["7203", "130A"].map(|text| row(day, code(text), SourceKind::Vendor));
    if day == date("2026-01-08") {
        let quiet = &mut rows[1];
        (quiet.open, quiet.high, quiet.low, quiet.close) = (None, None, None, None);
        (quiet.volume, quiet.turnover) = (None, None);
    }
    if day == date("2026-01-09") {
        rows[1].adjustment_factor = Some(0.5);
    }
    rows.to_vec()
}

fn run(fixture: &mut Fixture, volume: u64) -> Report {
    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing());
    let sources: Vec<SourceSlot> = vec![
        vendor
            .with_days(move |day| {
                let mut rows = rows(day);
                rows[0].volume = Some(volume);
                Ok(rows)
            })
            .slot(),
    ];
    let Fixture { options, cancel, seen, .. } = fixture;
    let mut store = WorkDatabase::open(&options.data).unwrap();
    let error = WorkDatabase::open(&options.data).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    update_from_sources(&mut store, sources, options, cancel, seen).unwrap()
}

/// The state file of an earlier version, in a data directory as it left it.
fn leave_old_state(fixture: &Fixture, text: &str) -> std::path::PathBuf {
    let data = fixture.options.data.path();
    let work = Connection::open(data.join("work").join("mother.db")).unwrap();
    work.execute_batch(
        "DROP TABLE fetch_state; DROP TABLE fetched_day; DROP TABLE pass_date; DROP TABLE pass_code",
    )
    .unwrap();
    let path = data.join("update").join("days.json");
    std::fs::write(&path, text).unwrap();
    path
}

/// One text for each row of a statement over a published file.
fn ask(path: &std::path::Path, sql: &str) -> Vec<String> {
    let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
    let connection = Connection::open_with_flags(path, config).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn issue(data: &DataDir, name: &str) -> std::path::PathBuf {
    data.mother().with_file_name(name)
}

const WORDS: &str = "SELECT concat_ws(' ', date, code, coalesce(close::VARCHAR, '-'),
    coalesce(volume::VARCHAR, '-'), coalesce(turnover::VARCHAR, '-'), adjustment_factor, source)
    FROM daily ORDER BY date, code";

#[test]
fn rows_reach_the_published_files() {
    let mut fixture = Fixture::new(3);
    let data = fixture.options.data.clone();
    let report = run(&mut fixture, 100);
    assert_eq!((report.ending, report.sources[0].inserted), (Ending::Done, 6));
    let published = report.published.unwrap();
    assert_eq!((published.snapshot, published.days, published.codes), (1, 3, 2));
    assert_eq!(report.split.unwrap().written, 2);
    let expected = [
        "2026-01-07 130A 1000.0 100.0 100000.0 1.0 vendor",
        "2026-01-07 7203 1000.0 100.0 100000.0 1.0 vendor",
        "2026-01-08 130A - - - 1.0 vendor",
        "2026-01-08 7203 1000.0 100.0 100000.0 1.0 vendor",
        "2026-01-09 130A 1000.0 100.0 100000.0 0.5 vendor",
        "2026-01-09 7203 1000.0 100.0 100000.0 1.0 vendor",
    ];
    assert_eq!(ask(&data.mother(), WORDS), expected);
    let of_issue: Vec<&str> = expected.iter().filter(|row| row.contains("130A")).copied().collect();
    assert_eq!(ask(&issue(&data, "130A.db"), WORDS), of_issue);
    // What happened before the split counts half as much.
    let adjusted = "SELECT close::VARCHAR FROM adjusted WHERE code = '130A' AND close IS NOT NULL
                    ORDER BY date";
    assert_eq!(ask(&data.mother(), adjusted), ["500.0", "1000.0"]);

    // Nothing new.
    fixture.options.refetch = true;
    let report = run(&mut fixture, 100);
    assert_eq!((report.sources[0].unchanged, report.published), (6, None));
    // One issue changed, on all days.
    let report = run(&mut fixture, 200);
    assert_eq!((report.sources[0].changed, report.sources[0].unchanged), (3, 3));
    assert_eq!(report.published.unwrap().snapshot, 2);
    let split = report.split.unwrap();
    assert_eq!((split.from, split.written), (Some(date("2026-01-07")), 1));
    let volumes = "SELECT DISTINCT volume::VARCHAR FROM daily";
    assert_eq!(ask(&issue(&data, "7203.db"), volumes), ["200.0"]);
}

#[test]
fn what_an_earlier_version_has_fetched_is_taken_over_once() {
    let mut fixture = Fixture::new(3);
    run(&mut fixture, 100);
    fixture.take_asked();
    let old = leave_old_state(
        &fixture,
        r#"{"version":1,"fetched":["2026-01-07","2025-01-06"],"closed":["2026-01-08"],
            "unpublished_from":null,"split":true,"pass":null}"#,
    );
    let report = run(&mut fixture, 100);
    // That a business day had no trading is believed of days before all others only.
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert_eq!((report.days_known, report.ending, report.notes), (1, Ending::Done, Vec::new()));
    assert_eq!(report.published, None);
    assert!(!old.exists());
    // Whoever puts one there again changes nothing.
    std::fs::write(&old, "{").unwrap();
    let report = run(&mut fixture, 100);
    assert_eq!((fixture.take_asked().len(), report.notes, old.exists()), (0, Vec::new(), false));
}

#[test]
fn a_damaged_list_of_days_is_told_and_everything_is_fetched_and_published() {
    let mut fixture = Fixture::new(2);
    run(&mut fixture, 100);
    fixture.take_asked();
    leave_old_state(&fixture, "{");
    let report = run(&mut fixture, 100);
    assert_eq!(fixture.take_asked(), ["vendor 2026-01-08", "vendor 2026-01-09"]);
    assert!(report.notes[0].contains("is not used"), "{:?}", report.notes);
    assert!(report.published.is_some());
    assert_eq!(report.split.unwrap().from, None);
    assert_eq!(run(&mut fixture, 100).notes, [""; 0]);
}
