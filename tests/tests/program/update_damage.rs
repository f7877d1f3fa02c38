//! Published files that a disk, or another program, has damaged: the job finds them, makes them again from its own
//! database, and ties no damaged byte to a generation (rule `own_files`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use domain::formula::Column;
use duckdb::Connection;
use pricestore::DataDir;
use pricestore::generation::Generation;
use pricestore::grid::{Grid, content_text};
use tests::update_runs::{Market, UpdateRuns};
use update::Ending;

use crate::update_fixture::{self, Fixture, command, texts, with_causes};

const MOTHER: &str = "jp/stocks_daily/mother.db";
const ISSUES: usize = 12;
const DAYS: [&str; 3] = ["2025-12-15", "2025-12-16", "2025-12-17"];

/// Two days are published.
fn published() -> (UpdateRuns, DataDir) {
    let market = Market::of(&DAYS.map(|day| (day, ISSUES))).with_calendar().with_lists(ISSUES);
    let mut runs = UpdateRuns::on_disk(market);
    let ran = runs.until(DAYS[1]).days(2).run();
    assert_eq!((ran.ending(), ran.notes()), (Ending::Done, String::new()));
    let data = runs.data();
    (runs, data)
}

fn generation(data: &DataDir) -> Generation {
    Generation::load(data).unwrap().unwrap()
}

/// Changes a byte of a file, which keeps its size, and its time where that is said.
fn flip(path: &Path, at: usize, keeps_time: bool) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
    if keeps_time {
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }
}

/// What is in the tables of a database, whatever its order, but for those that tell how it was written.
fn tables(path: &Path) -> BTreeMap<String, String> {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(&format!("ATTACH '{}' AS read (READ_ONLY); USE read", path.display()))
        .unwrap();
    let names = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'read'
        AND table_name <> 'rows_in_order' UNION SELECT view_name FROM duckdb_views()
        WHERE database_name = 'read' AND NOT internal";
    let names = pricestore::sql::column::<String>(&connection, names).unwrap();
    let digest = |name: &String| {
        let rows =
            format!("SELECT concat(count(*), ' ', bit_xor(hash(hash(one)))) FROM {name} AS one");
        connection.query_row(&rows, [], |row| row.get(0)).unwrap()
    };
    names.into_iter().map(|name| (name.clone(), digest(&name))).collect()
}

/// Every value of a grid, and its splits.
fn cells(path: &Path, number: u64) -> String {
    let grid = Grid::open(path, number).unwrap();
    grid.check_all(1).unwrap();
    let stripe = |day: usize, column| -> Vec<u64> {
        grid.stripe(day, column).iter().map(|cell| cell.to_bits()).collect()
    };
    let days = (0..grid.days().len()).flat_map(|day| Column::ALL.map(|column| stripe(day, column)));
    let days: Vec<_> = days.collect();
    format!("{:?} {:?} {days:?} {:?}", grid.days(), grid.codes(), grid.splits())
}

/// All that is published, without the number of the snapshot: what a run that met no damage leaves too.
fn everything(data: &DataDir) -> BTreeMap<String, String> {
    let generation = generation(data);
    generation.check_files(data).unwrap();
    assert_eq!(generation.issues.count, ISSUES as u64);
    let mut all = BTreeMap::new();
    for file in generation.all_files() {
        let path = data.path().join(&file.path);
        let name = file.path.replace(&format!("rank-{}", generation.snapshot), "rank-N");
        let content = match name.ends_with(".grid") {
            true => cells(&path, generation.snapshot),
            false => format!("{:?}", tables(&path)),
        };
        all.insert(name, content);
    }
    assert_eq!(all.len(), ISSUES + 3, "{:?}", all.keys());
    all
}

/// Damages one kind of file in several places, with and without something new.
fn is_made_again(kind: &str) {
    let (mut whole, whole_data) = published();
    let (mut runs, data) = published();
    let path_of = || kind.replace("rank-N", &format!("rank-{}", generation(&data).snapshot));
    let expected = everything(&whole_data);
    assert_eq!(everything(&data), expected);
    let length = |path: &Path| usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    // The header, the middle and the end; a grid has unused bytes behind its header.
    for (place, keeps_time) in [(0, false), (1, true), (2, false), (3, true)] {
        let path = path_of();
        let on_disk = data.path().join(&path);
        let length = length(&on_disk);
        flip(&on_disk, [20, length / 2, length - 1, 4_000][place], keeps_time);
        let shown = format!("{path}, place {place}");
        generation(&data).check_files(&data).unwrap_err();
        let ran = runs.until(DAYS[1]).run();
        assert_eq!(ran.ending(), Ending::Done, "{shown}: {ran:?}");
        let words = format!("damaged or changed; the job makes them again: {path};");
        assert!(ran.notes().contains(&words), "{shown}: {}", ran.notes());
        assert_eq!(everything(&data), expected, "{shown}");
        // It is told once, and nothing is left to do.
        let name = generation(&data).generation;
        let ran = runs.until(DAYS[1]).run();
        assert_eq!((ran.ending(), ran.notes()), (Ending::Done, String::new()), "{shown}");
        assert!(ran.report.published.is_none() && generation(&data).generation == name, "{shown}");
    }
    let path = path_of();
    flip(&data.path().join(&path), length(&data.path().join(&path)) / 2, true);
    let ran = runs.until(DAYS[2]).run();
    assert!(ran.ending() == Ending::Done && ran.notes().contains(&path), "{ran:?}");
    assert_eq!(whole.until(DAYS[2]).run().ending(), Ending::Done);
    assert_eq!(everything(&data), everything(&whole_data), "{path}");
    assert_eq!(generation(&data).last_date, DAYS[2]);
}

#[test]
fn a_damaged_combined_database_is_made_again() {
    is_made_again(MOTHER);
}

#[test]
fn a_damaged_database_of_an_issue_is_made_again() {
    is_made_again("jp/stocks_daily/1305.db");
}

#[test]
fn a_damaged_list_of_issues_is_made_again() {
    is_made_again("jp/listed_info.db");
}

#[test]
fn a_damaged_grid_is_made_again() {
    is_made_again("rank/rank-N.grid");
}

#[test]
fn many_damaged_files_are_made_again_at_once() {
    let fixture = Fixture::new(update_fixture::Market {
        days: [("20251215", ISSUES), ("20251216", ISSUES)].into(),
        listed: Some(ISSUES),
        name: "Name",
        ..update_fixture::Market::default()
    });
    assert_eq!(fixture.update("--to 2025-12-16 --days 2").code, 0);
    let data = fixture.data();
    let expected = everything(&data);
    for file in generation(&data).all_files() {
        flip(&data.path().join(&file.path), 4_100, false);
    }
    // The job has noted what it wrote.
    fs::write(data.generation_file(), "damaged").unwrap();
    let run = fixture.update("--to 2025-12-16");
    let more = ISSUES + 3 - update::limits::REPORT_FILES_MAX;
    let words = format!(" and {more} more; check the disk");
    assert!(run.code == 0 && run.told.contains(&words), "{}", run.told);
    assert_eq!(everything(&data), expected);
    fs::remove_dir_all(data.rank_folder()).unwrap();
    fs::remove_file(data.mother().with_file_name("1305.db")).unwrap();
    let run = fixture.update("--to 2025-12-16");
    let words = "published files are gone; the job makes them again: rank/rank-2.grid, jp/stocks_daily/1305.db";
    assert!(run.code == 0 && run.told.contains(words), "{}", run.told);
    assert_eq!(everything(&data), expected);
}

#[test]
fn files_that_only_have_another_time_are_noted_anew() {
    let (mut runs, data) = published();
    let before = generation(&data);
    for file in before.all_files() {
        let path = data.path().join(&file.path);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let ran = runs.until(DAYS[1]).run();
    assert_eq!((ran.ending(), ran.notes()), (Ending::Done, String::new()));
    let after = generation(&data);
    assert!(ran.report.published.is_none() && after.generation == before.generation);
    assert_ne!(after, before);
    for file in after.all_files() {
        assert!(file.is_file(&fs::metadata(data.path().join(&file.path)).unwrap()), "{file:?}");
    }
}

/// Without the job's own database the combined one is all there is.
#[test]
fn a_damaged_combined_database_that_is_all_there_is_is_named() {
    let (mut runs, data) = published();
    let before = generation(&data);
    let known = before.file(MOTHER).unwrap();
    fs::remove_dir_all(data.work_folder()).unwrap();
    for keeps_time in [true, false] {
        flip(&data.mother(), 20, keeps_time);
        let told = with_causes(&runs.until(DAYS[2]).try_run().unwrap_err());
        let digest = format!("{} bytes with the digest {}", known.bytes, known.xxh128);
        for words in ["mother.db cannot be used", &digest, "put back a copy of it"] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(generation(&data), before);
        flip(&data.mother(), 20, keeps_time);
    }
    // With a copy of it, the next run goes on.
    assert_eq!(runs.until(DAYS[2]).run().ending(), Ending::Done);
    generation(&data).check_files(&data).unwrap();
}

/// `kumiki rank publish` cannot make again what it hands on with its snapshot.
#[test]
fn a_snapshot_alone_is_not_tied_to_a_damaged_file() {
    let (mut runs, data) = published();
    let before = generation(&data);
    let name = "jp/stocks_daily/1305.db";
    flip(&data.path().join(name), 4_100, false);
    let output = command(data.path(), &["rank", "publish"]).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let known = &before.file(name).unwrap().xxh128;
    for words in [&format!("{name} has "), known, "`kumiki data update` makes it again"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    assert_eq!(generation(&data), before);
    assert_eq!(runs.until(DAYS[1]).run().ending(), Ending::Done);
    let after = generation(&data);
    after.check_files(&data).unwrap();
    let grid = Grid::open(&data.rank_grid(after.snapshot), after.snapshot).unwrap();
    assert_eq!(after.snapshot_content, content_text(grid.content()));
}
