//! The job over the databases on disk.

use std::path::Path;

use duckdb::{AccessMode, Config, Connection};
use update::store::WorkDatabase;
use update::{Ending, Report, SourceKind, update_from_sources};

use crate::fixture::{Fixture, code, date, nothing, row};

/// Two issues a day; one of them is not traded on the 8th and split on the 9th, and the other has this volume.
fn run(fixture: &mut Fixture, volume: u64) -> Report {
    let days = move |day| {
        let mut rows = ["130A", "7203"].map(|text| row(day, code(text), SourceKind::Vendor));
        (rows[0].volume, rows[1].volume) = (Some(50), Some(volume));
        let changed = &mut rows[0];
        if day == date("2026-01-08") {
            (changed.open, changed.high, changed.low, changed.close) = (None, None, None, None);
            (changed.volume, changed.turnover) = (None, None);
        }
        if day == date("2026-01-09") {
            changed.adjustment_factor = Some(0.5);
        }
        Ok(rows.to_vec())
    };
    let sources = vec![fixture.vendor(days, nothing)];
    let Fixture { options, cancel, seen, .. } = fixture;
    let mut store = WorkDatabase::open(&options.data).unwrap();
    update_from_sources(&mut store, sources, options, cancel, seen).unwrap()
}

/// One text for each row of a statement over a published file.
fn ask(path: &Path, sql: &str) -> Vec<String> {
    let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
    let connection = Connection::open_with_flags(path, config).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn rows_reach_the_published_files() {
    let mut fixture = Fixture::new(3);
    let mother = fixture.options.data.mother();
    let issue = |code: &str| mother.with_file_name(format!("{code}.db"));
    let report = run(&mut fixture, 100);
    assert_eq!((report.ending, report.sources[0].inserted), (Ending::Done, 6));
    let published = report.published.unwrap();
    assert_eq!((published.snapshot, published.days, published.codes), (1, 3, 2));
    assert_eq!(report.split.unwrap().written, 2);
    let expected = [
        "2026-01-07 130A 1090.0 50.0 1.0 vendor",
        "2026-01-07 7203 1090.0 100.0 1.0 vendor",
        "2026-01-08 130A - - 1.0 vendor",
        "2026-01-08 7203 1091.0 100.0 1.0 vendor",
        "2026-01-09 130A 1092.0 50.0 0.5 vendor",
        "2026-01-09 7203 1092.0 100.0 1.0 vendor",
    ];
    let words = "SELECT concat_ws(' ', date, code, coalesce(close::VARCHAR, '-'),
        coalesce(volume::VARCHAR, '-'), adjustment_factor, source) FROM daily ORDER BY date, code";
    assert_eq!(ask(&mother, words), expected);
    let of_issue: Vec<&str> = expected.iter().filter(|row| row.contains("130A")).copied().collect();
    assert_eq!(ask(&issue("130A"), words), of_issue);

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
    assert_eq!(ask(&issue("7203"), "SELECT DISTINCT volume::VARCHAR FROM daily"), ["200.0"]);
}
