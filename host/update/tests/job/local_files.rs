//! History from the vendor's files, without network.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use update::{DayOutcome, Ending, Phase, Report, SourceKind, UpdateError, update_from_files};

use crate::fixture::{Fixture, code, date, days_of, nothing};

/// A file of a month or a day.
fn file(folder: &Path, period: &str, rows: &str) {
    let path = folder.join(format!("equities_bars_daily_{period}.csv.gz"));
    let mut packed = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
    write!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{rows}").unwrap();
    packed.finish().unwrap();
}

/// A month, and a day of the next one.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let day = |day: &str, yen: u32| {
        let of = |code| format!("{day},{code},{yen},{yen},{yen},{yen},0,0,100,{yen}00,1\n");
        of("13010") + &of("72030")
    };
    let quiet =
        "2025-12-30,13010,1000,1000,1000,1000,0,0,5,5000,1.0\n2025-12-30,72030,,,,,0,0,,,1.0\n";
    file(folder.path(), "202512", &(day("2025-12-29", 1_001) + quiet));
    file(folder.path(), "20260105", &day("2026-01-05", 1_002));
    folder
}

fn try_read(fixture: &mut Fixture, folder: &Path) -> Result<Report, UpdateError> {
    let Fixture { store, options, cancel, seen, .. } = fixture;
    update_from_files(store, folder, options, cancel, seen)
}

fn read(fixture: &mut Fixture, folder: &Path) -> Report {
    try_read(fixture, folder).unwrap()
}

#[test]
fn all_files_are_read_and_their_days_are_not_asked_for_again() {
    let mut fixture = Fixture::new(10);
    let folder = files();
    let from = fixture.options.from.take();
    let report = read(&mut fixture, folder.path());
    let days = ["2025-12-29", "2025-12-30", "2026-01-05"];
    let rows =
        days.iter().flat_map(|day| ["1301", "7203"].map(|code| format!("{day} {code} files")));
    assert_eq!(fixture.stored(), rows.collect::<Vec<String>>());
    assert_eq!((report.ending, report.days_with(DayOutcome::Fetched)), (Ending::Done, 3));
    assert_eq!((report.sources[0].source, report.sources[0].inserted), (SourceKind::Files, 6));
    assert_eq!(fixture.seen.phases, [Phase::Files, Phase::Publish, Phase::Split]);
    fixture.options.from = from;
    let report = fixture.run(vec![fixture.vendor(days_of(&["1301", "7203"]), nothing)]);
    assert_eq!((report.days_known, fixture.take_asked().len()), (3, 4));
    assert_eq!(report.ending, Ending::Done);
    // The same files again are no news.
    let report = read(&mut fixture, folder.path());
    assert_eq!((report.sources[0].unchanged, fixture.store.published), (6, 2));
}

#[test]
fn dates_and_issues_can_be_chosen() {
    let mut fixture = Fixture::new(8);
    fixture.options.codes = vec![code("1301")];
    read(&mut fixture, files().path());
    assert_eq!(fixture.stored(), ["2026-01-05 1301 files"]);
    assert!(fixture.options.from > Some(date("2025-12-30")));
}

#[test]
fn a_damaged_file_is_left_out_and_told() {
    let mut fixture = Fixture::new(10);
    fixture.options.from = None;
    let folder = files();
    file(folder.path(), "20260106", "2026-01-06,13010,3,2,3,3,0,0,1,3,1\n");
    let report = read(&mut fixture, folder.path());
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
    let error = try_read(&mut fixture, empty.path()).unwrap_err().to_string();
    assert!(error.contains("looked for equities_bars_daily_YYYYMM.csv.gz"), "{error}");
    let error = try_read(&mut fixture, &empty.path().join("missing")).unwrap_err().to_string();
    assert!(error.contains("cannot list the data folder"), "{error}");
    fixture.cancel.cancel();
    assert_eq!(read(&mut fixture, files().path()).ending, Ending::Interrupted);
    assert_eq!(fixture.stored(), [""; 0]);
}
