//! History from the vendor's files, without network.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use update::{DayOutcome, Ending, Phase, Report, SourceKind, UpdateError, update_from_files};

use crate::fixture::{Fixture, ScriptedSource, code, date, every_day, nothing};

fn file(folder: &Path, name: &str, rows: &str) {
    let file = std::fs::File::create(folder.join(name)).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    write!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{rows}").unwrap();
    packed.finish().unwrap();
}

/// A month, a day, and a day that the month has too.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let december = "2025-12-29,13010,1,2,1,2,0,0,100,200,1.0\n2025-12-29,72030,9,9,9,9,0,0,1,9,1\n\
                    2025-12-30,13010,2,2,2,2,0,0,5,10,1.0\n2025-12-30,72030,,,,,0,0,,,1.0\n";
    file(folder.path(), "equities_bars_daily_202512.csv.gz", december);
    file(
        folder.path(),
        "equities_bars_daily_20251230.csv.gz",
        "2025-12-30,13010,1,1,1,1,0,0,1,1,1\n",
    );
    let january =
        "2026-01-05,13010,3,3,3,3,0,0,100,300,0.5\n2026-01-05,72030,9,9,9,9,0,0,100,900,1\n";
    file(folder.path(), "equities_bars_daily_20260105.csv.gz", january);
    folder
}

fn read(fixture: &mut Fixture, folder: &Path) -> Result<Report, UpdateError> {
    let Fixture { store, options, cancel, seen, .. } = fixture;
    update_from_files(store, folder, options, cancel, seen)
}

#[test]
fn all_files_are_read_and_their_days_are_not_asked_for_again() {
    let mut fixture = Fixture::new(10);
    let folder = files();
    let from = fixture.options.from.take();
    let report = read(&mut fixture, folder.path()).unwrap();
    fixture.options.from = from;
    let stored = [
        "2025-12-29 1301",
        "2025-12-29 7203",
        "2025-12-30 1301",
        "2025-12-30 7203",
        "2026-01-05 1301",
        "2026-01-05 7203",
    ];
    assert_eq!(fixture.stored(), stored.map(|row| format!("{row} files")));
    assert_eq!(
        (report.ending, fixture.store.published, fixture.store.splits.len()),
        (Ending::Done, 1, 1)
    );
    assert_eq!(report.days_with(DayOutcome::Fetched), 3);
    assert_eq!((report.sources[0].source, report.sources[0].inserted), (SourceKind::Files, 6));
    assert_eq!(fixture.seen.phases, [Phase::Files, Phase::Publish, Phase::Split]);

    let vendor = ScriptedSource::by_issue(SourceKind::Vendor, &fixture.asked, nothing())
        .with_days(every_day(SourceKind::Vendor, &["1301", "7203"]));
    let report = fixture.run(vec![vendor.slot()]).unwrap();
    assert_eq!((report.days_known, report.days_closed), (3, 3));
    assert_eq!(fixture.take_asked().len(), 4);
    // The same files again are no news.
    let report = read(&mut fixture, folder.path()).unwrap();
    assert_eq!((report.sources[0].unchanged, fixture.store.published), (6, 2));
}

#[test]
fn dates_and_issues_can_be_chosen() {
    let mut fixture = Fixture::new(8);
    fixture.options.codes = vec![code("1301")];
    let folder = files();
    read(&mut fixture, folder.path()).unwrap();
    assert_eq!(fixture.stored(), ["2026-01-05 1301 files"]);
    assert!(fixture.options.from > Some(date("2025-12-30")));
}

#[test]
fn a_damaged_file_is_left_out_and_told() {
    let mut fixture = Fixture::new(10);
    fixture.options.from = None;
    let folder = files();
    file(
        folder.path(),
        "equities_bars_daily_20260106.csv.gz",
        "2026-01-06,13010,3,2,3,3,0,0,1,3,1\n",
    );
    let report = read(&mut fixture, folder.path()).unwrap();
    assert_eq!((report.ending, report.sources[0].failed), (Ending::Incomplete, 1));
    let day = report.days.last().unwrap();
    assert_eq!((day.date, day.outcome), (date("2026-01-06"), DayOutcome::Failed));
    assert!(day.reasons[0].reason.contains("equities_bars_daily_20260106.csv.gz, line 2"));
    assert_eq!(fixture.stored().len(), 6);
}

#[test]
fn a_folder_without_such_files_is_an_error_and_a_wish_to_end_is_none() {
    let mut fixture = Fixture::new(10);
    let empty = tempfile::tempdir().unwrap();
    let error = read(&mut fixture, empty.path()).unwrap_err().to_string();
    assert!(error.contains("looked for equities_bars_daily_YYYYMM.csv.gz"), "{error}");
    let error = read(&mut fixture, &empty.path().join("missing")).unwrap_err().to_string();
    assert!(error.contains("cannot list the data folder"), "{error}");
    fixture.cancel.cancel();
    let folder = files();
    assert_eq!(read(&mut fixture, folder.path()).unwrap().ending, Ending::Interrupted);
    assert_eq!(fixture.stored().len(), 0);
}
