//! Published files that a disk, or another program, has damaged: `kumiki update` finds them, makes them again
//! from its own database, and ties no damaged byte to a generation (rules W1 to W3 of `update::job::rules`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use domain::formula::Column;
use duckdb::Connection;
use pricestore::DataDir;
use pricestore::generation::Generation;
use pricestore::grid::{Grid, content_text};
use serde_json::{Value, json};

use crate::update_days::{Fixture, Market, Run, days};
use crate::update_program::{command, texts};

const MOTHER: &str = "jp/stocks_daily/mother.db";
const ISSUES: usize = 12;

/// Days that are published before anything is damaged, and after.
const BEFORE: &str = "--as-of 2025-12-16 --days 2";
const AGAIN: &str = "--as-of 2025-12-16";
const AFTER: &str = "--as-of 2025-12-17";

fn fixture() -> (Fixture, DataDir) {
    let days = days([("20251215", ISSUES), ("20251216", ISSUES)]);
    let divisions = Some(BTreeMap::new());
    let market = Market { days, listed: Some(ISSUES), divisions, ..Market::default() };
    let fixture = Fixture::new(market);
    let run = fixture.update(BEFORE);
    assert_eq!((run.code, &run.report["notes"]), (0, &json!([])), "{run:?}");
    let data = DataDir::new(fixture.path());
    (fixture, data)
}

fn next_day(fixture: &Fixture) -> Run {
    fixture.change(|market| _ = market.days.insert("20251217", ISSUES));
    fixture.update(AFTER)
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
        AND table_name NOT IN ('made', 'rows_in_order') UNION SELECT view_name FROM duckdb_views()
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
    assert_eq!(all.len(), ISSUES + 4, "{:?}", all.keys());
    all
}

/// The path of a kind of file now.
fn path_of(data: &DataDir, kind: &str) -> String {
    kind.replace("rank-N", &format!("rank-{}", generation(data).snapshot))
}

/// Damages one kind of file in several places, with and without something new.
fn is_made_again(kind: &str) {
    let (whole, whole_data) = fixture();
    let (fixture, data) = fixture();
    let expected = everything(&whole_data);
    assert_eq!(everything(&data), expected);
    // The header, the middle and the end; a grid has unused bytes behind its header.
    for (place, keeps_time) in [(0, false), (1, true), (2, false), (3, true)] {
        let path = path_of(&data, kind);
        let on_disk = data.path().join(&path);
        let length = usize::try_from(fs::metadata(&on_disk).unwrap().len()).unwrap();
        flip(&on_disk, [20, length / 2, length - 1, 4_000][place], keeps_time);
        let shown = format!("{path}, place {place}");
        generation(&data).check_files(&data).unwrap_err();
        let run = fixture.update(AGAIN);
        assert_eq!(run.code, 0, "{shown}: {run:?}");
        let notes = run.report["notes"].to_string();
        let words = format!("not as they were written, and are made again: {path};");
        assert!(notes.contains(&words), "{shown}: {notes}");
        assert_eq!(everything(&data), expected, "{shown}");
        // It is told once, and nothing is left to do.
        let name = generation(&data).generation;
        let run = fixture.update(AGAIN);
        assert_eq!((run.code, &run.report["notes"]), (0, &json!([])), "{shown}");
        assert_eq!(run.report["published"], Value::Null, "{shown}");
        assert_eq!(generation(&data).generation, name);
    }
    let path = path_of(&data, kind);
    let on_disk = data.path().join(&path);
    let length = usize::try_from(fs::metadata(&on_disk).unwrap().len()).unwrap();
    flip(&on_disk, length / 2, true);
    let run = next_day(&fixture);
    assert_eq!(run.code, 0, "{path}: {run:?}");
    assert!(run.report["notes"].to_string().contains(&path), "{run:?}");
    assert_eq!(next_day(&whole).code, 0);
    assert_eq!(everything(&data), everything(&whole_data), "{path}");
    assert_eq!(generation(&data).last_date, "2025-12-17");
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
fn damaged_tables_of_a_snapshot_are_made_again() {
    is_made_again("rank/rank-N.db");
}

#[test]
fn many_damaged_files_are_made_again_at_once() {
    let (fixture, data) = fixture();
    let expected = everything(&data);
    for file in generation(&data).all_files() {
        flip(&data.path().join(&file.path), 4_100, false);
    }
    // What ties them is lost too: the job has noted what it wrote.
    fs::write(data.generation_file(), "damaged").unwrap();
    let run = fixture.update(AGAIN);
    assert_eq!(run.code, 0, "{run:?}");
    let notes = run.report["notes"].to_string();
    let more = ISSUES + 4 - update::limits::REPORT_FILES_MAX;
    assert!(notes.contains(&format!(" and {more} more; look after the disk")), "{notes}");
    assert_eq!(everything(&data), expected);
}

#[test]
fn files_that_only_have_another_time_are_noted_anew() {
    let (fixture, data) = fixture();
    let before = generation(&data);
    for file in before.all_files() {
        let path = data.path().join(&file.path);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let run = fixture.update(AGAIN);
    assert_eq!((run.code, &run.report["notes"]), (0, &json!([])), "{run:?}");
    assert_eq!(run.report["published"], Value::Null);
    let after = generation(&data);
    assert_eq!(after.generation, before.generation);
    assert_ne!(after, before);
    for file in after.all_files() {
        assert!(file.is_file(&fs::metadata(data.path().join(&file.path)).unwrap()), "{file:?}");
    }
}

#[test]
fn a_file_that_holds_something_more_is_left_and_named() {
    for (path, words) in [
        ("jp/stocks_daily/1305.db", "were not written by this job: 1305;"),
        (MOTHER, "mother.db was not written by this job and holds something"),
    ] {
        let (fixture, data) = fixture();
        let before = generation(&data);
        let on_disk = data.path().join(path);
        let other = Connection::open(&on_disk).unwrap();
        other.execute_batch("CREATE TABLE notes AS SELECT 7 AS number").unwrap();
        drop(other);
        let theirs = fs::read(&on_disk).unwrap();
        let output = fixture.command(AGAIN).output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert!(fs::read(&on_disk).unwrap() == theirs && generation(&data) == before, "{path}");
    }
}

/// Without the job's own database the combined one is all there is.
#[test]
fn a_damaged_combined_database_that_is_all_there_is_is_named() {
    let (fixture, data) = fixture();
    let before = generation(&data);
    let known = before.file(MOTHER).unwrap();
    fs::remove_dir_all(data.work_folder()).unwrap();
    for keeps_time in [true, false] {
        flip(&data.mother(), 20, keeps_time);
        fixture.change(|market| _ = market.days.insert("20251217", ISSUES));
        let output = fixture.command(AFTER).output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        for words in [
            "mother.db cannot be used",
            &format!("{} bytes with the digest {}", known.bytes, known.xxh128),
            "put back a copy of it",
        ] {
            assert!(errors.contains(words), "{words}: {errors}");
        }
        assert_eq!(generation(&data), before);
        flip(&data.mother(), 20, keeps_time);
    }
    // With a copy of it, the next run goes on.
    let run = fixture.update(AFTER);
    assert_eq!(run.code, 0, "{run:?}");
    generation(&data).check_files(&data).unwrap();
}

/// `kumiki rank publish` cannot make again what it hands on with its snapshot.
#[test]
fn a_snapshot_alone_is_not_tied_to_a_damaged_file() {
    let (fixture, data) = fixture();
    let before = generation(&data);
    let path: PathBuf = data.path().join("jp/stocks_daily/1305.db");
    let length = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    flip(&path, length / 2, false);
    let output = command(fixture.path(), &["rank", "publish"]).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let known = &before.file("jp/stocks_daily/1305.db").unwrap().xxh128;
    for words in ["jp/stocks_daily/1305.db has ", known, "`kumiki update` makes it again"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    assert_eq!(generation(&data), before);
    let run = fixture.update(AGAIN);
    assert_eq!(run.code, 0, "{run:?}");
    let after = generation(&data);
    after.check_files(&data).unwrap();
    let grid = Grid::open(&data.rank_grid(after.snapshot), after.snapshot).unwrap();
    assert_eq!(after.snapshot_content, content_text(grid.content()));
}
