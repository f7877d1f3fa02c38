//! What `kumiki data update` did not write it neither removes nor replaces (rule `own_files`).

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Command;

use duckdb::Connection;
use pricestore::DataDir;
use serde_json::{Value, json};
use tests::update_runs::{self, NextRun, UpdateRuns};
use update::Ending;

use crate::update_fixture::{Fixture, Market, number, text, with_causes};

const DAYS: [&str; 3] = ["2025-12-15", "2025-12-16", "2025-12-17"];

fn fixture(issues: usize) -> Fixture {
    Fixture::new(Market {
        days: [("20251215", issues), ("20251216", issues)].into(),
        ..Market::default()
    })
}

fn published(issues: usize) -> Fixture {
    let fixture = fixture(issues);
    assert_eq!(fixture.update("--to 2025-12-16 --days 2").code, 0);
    fixture
}

/// Two days are published by the job in this process.
fn runs() -> (UpdateRuns, DataDir) {
    let market = update_runs::Market::of(&DAYS.map(|day| (day, 3))).with_lists(3);
    let mut runs = UpdateRuns::on_disk(market);
    assert_eq!(runs.until(DAYS[1]).days(2).run().ending(), Ending::Done);
    let data = runs.data();
    (runs, data)
}

/// What a run says that ends with an error.
fn failing(run: NextRun<'_>) -> String {
    with_causes(&run.try_run().unwrap_err())
}

fn execute(path: &Path, statement: &str) {
    Connection::open(path).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn a_combined_database_of_others_is_not_overwritten() {
    let (others, fixture) = (published(25), published(20));
    let mother = fixture.data().mother();
    let foreign = fs::read(others.data().mother()).unwrap();
    let bytes = fs::read(&mother).unwrap();
    fs::write(&mother, &foreign).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    for _ in 0..2 {
        let errors = fixture.failing("--to 2025-12-17");
        assert!(errors.contains("mother.db was not written by this job"), "{errors}");
        assert!(fs::read(&mother).unwrap() == foreign);
    }
    // A copy of the job's own, as from a backup, is taken over; and what is no database any more.
    for content in [bytes.as_slice(), b"damaged"] {
        fs::remove_file(&mother).unwrap();
        fs::write(&mother, content).unwrap();
        assert_eq!(fixture.update("--to 2025-12-17").code, 0);
        assert_eq!(fixture.published(), ["15:20", "16:20", "17:20"]);
    }
    // Without its own database the job begins with the rows that it finds.
    fs::write(&mother, &foreign).unwrap();
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 25));
    // The vendor has fewer rows of the days before, which stay as they are.
    assert_eq!(fixture.update("--to 2025-12-17").code, 3);
    assert_eq!(fixture.published(), ["15:25", "16:25", "17:25"]);
}

/// What others wrote is replaced where all of it stays, and each value is part of it.
#[test]
fn a_file_of_an_issue_with_other_values_is_left() {
    let fixture = fixture(20);
    let folder = fixture.data().mother().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let write = |code: &str, close: f64| {
        let path = folder.join(code).with_extension("db");
        let rows = format!(
            "CREATE TABLE daily (date DATE, code VARCHAR, close DOUBLE);
             INSERT INTO daily VALUES (DATE '2025-12-15', '{code}', 115.0),
               (DATE '2025-12-16', '{code}', {close:?})"
        );
        execute(&path, &rows);
        fs::read(path).unwrap()
    };
    let theirs = write("1301", 116.5);
    write("1302", 116.0);
    let errors = fixture.failing("--to 2025-12-16 --days 2");
    assert!(errors.contains("does not have: 1301;"), "{errors}");
    assert!(fs::read(folder.join("1301.db")).unwrap() == theirs);
    let columns = "SELECT count(*) FROM duckdb_columns() WHERE table_name = 'daily'";
    let ours = Connection::open(folder.join("1302.db")).unwrap();
    assert!(ours.query_row(columns, [], |row| row.get::<_, i64>(0)).unwrap() > 3);
}

/// What somebody makes in a published database that has this table.
fn made(table: &str) -> [String; 13] {
    [
        "CREATE SCHEMA mine".to_owned(),
        format!("CREATE SCHEMA mine; CREATE TABLE mine.{table} AS FROM main.{table}"),
        "CREATE SCHEMA mine; CREATE TABLE mine.calendar (date DATE, is_open BOOLEAN)".to_owned(),
        format!("CREATE SCHEMA mine; CREATE VIEW mine.{table} AS FROM main.{table}"),
        "CREATE TABLE notes (text VARCHAR)".to_owned(),
        format!("CREATE VIEW tops AS SELECT code FROM {table}"),
        "CREATE MACRO twice(x) AS x * 2".to_owned(),
        "CREATE MACRO ones() AS TABLE SELECT 1 AS one".to_owned(),
        "CREATE SEQUENCE numbers START 42".to_owned(),
        "CREATE TYPE mood AS ENUM ('a', 'b')".to_owned(),
        format!("CREATE INDEX by_code ON {table} (code)"),
        format!("COMMENT ON TABLE {table} IS 'notes'"),
        format!("COMMENT ON COLUMN {table}.code IS 'notes'"),
    ]
}

/// Whether the job leaves a file in which somebody has made something, and names it.
fn is_left(path: fn(&DataDir) -> PathBuf, table: &str, words: &str) {
    let (mut runs, data) = runs();
    let path = path(&data);
    let ours = fs::read(&path).unwrap();
    for made in made(table) {
        execute(&path, &made);
        let theirs = fs::read(&path).unwrap();
        let errors = failing(runs.until(DAYS[1]));
        assert!(errors.contains(words), "{made}: {errors}");
        assert!(fs::read(&path).unwrap() == theirs, "{made}");
        fs::write(&path, &ours).unwrap();
    }
    assert_eq!(runs.until(DAYS[1]).run().ending(), Ending::Done);
}

#[test]
fn what_others_made_in_the_combined_database_is_left() {
    is_left(DataDir::mother, "daily", "mother.db was not written by this job");
}

#[test]
fn what_others_made_in_the_database_of_an_issue_is_left() {
    let path = |data: &DataDir| data.mother().with_file_name("1300.db");
    is_left(path, "daily", "does not have: 1300;");
}

#[test]
fn what_others_made_in_the_lists_of_issues_is_left() {
    is_left(DataDir::listed_info, "listed_issue", "listed_info.db was not written by this job");
}

#[test]
fn names_of_unfinished_files_and_reports_of_others_are_left_alone() {
    let fixture = fixture(20);
    let folder = fixture.data().mother().parent().unwrap().to_owned();
    let (update, rank) = (fixture.data().update_folder(), fixture.data().rank_folder());
    for folder in [&folder, &update, &rank] {
        fs::create_dir_all(folder).unwrap();
    }
    let theirs = [
        folder.join("mother.db.new"),
        folder.join("1303.db.new"),
        folder.join("1304.db.new.wal"),
        folder.join("notes.kumiki-new"),
        rank.join("rank-99.grid"),
    ];
    for path in &theirs {
        fs::write(path, "somebody else's").unwrap();
    }
    let ours = folder.join("1303.db.kumiki-new");
    fs::write(&ours, "left by a job that was killed").unwrap();
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    for path in &theirs {
        assert_eq!(fs::read_to_string(path).unwrap(), "somebody else's", "{}", path.display());
    }
    assert!(!ours.exists());

    // Reports of thirty more runs, and what only has the name of one.
    let report = fs::read_to_string(update.join("report-1.json")).unwrap();
    fs::write(update.join(format!("report-{}.json", u64::MAX)), &report).unwrap();
    for number in 2..=31 {
        let numbered = report.replace("\"number\": 1,", &format!("\"number\": {number},"));
        fs::write(update.join(format!("report-{number}.json")), numbered).unwrap();
    }
    let theirs = report.replace("\"number\": 1,", "\"number\": 77,");
    fs::write(update.join("report-1.json"), &theirs).unwrap();
    assert_eq!(fixture.update("--to 2025-12-16").code, 0);
    assert_eq!(fs::read_to_string(update.join("report-1.json")).unwrap(), theirs);
    let is_there = |number: u32| update.join(format!("report-{number}.json")).exists();
    assert_eq!([3, 4, 32].map(is_there), [false, true, true]);
    assert!(update.join(format!("report-{}.json", u64::MAX)).exists());
}

/// A pipe would be waited for, and what a link leads to overwritten.
#[cfg(unix)]
#[test]
fn pipes_and_links_in_the_place_of_files_are_errors() {
    let [mother, listed] = [DataDir::mother, DataDir::listed_info].map(|of| of(&DataDir::new("")));
    let issue = mother.with_file_name("1301.db");
    let pipes: [(&Path, &str); 6] = [
        (Path::new("work/mother.db"), "is no file of its own"),
        (Path::new("work/mother.db.wal"), "is no file of its own"),
        (Path::new("rank/WRITTEN"), "is no file; move it away"),
        (&mother, "is no file; move it away"),
        (&listed, "is no file; move it away"),
        (&issue, "1301"),
    ];
    for (name, why) in pipes {
        let (mut runs, data) = runs();
        let path = data.path().join(name);
        _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let shown = name.file_stem().unwrap().to_str().unwrap();
        let errors = failing(runs.until(DAYS[2]));
        assert!(errors.contains(why) && errors.contains(shown), "{shown}: {errors}");
        fs::remove_file(&path).unwrap();
        assert_eq!(runs.until(DAYS[2]).run().ending(), Ending::Done, "{shown}");
        assert_eq!(runs.published().len(), 3, "{shown}");
    }
    // What a link leads to is somebody's.
    let links: [(&Path, &str); 2] = [
        (Path::new("work/mother.db.wal"), "a link"),
        (&mother, "mother.db cannot be used: it is a link"),
    ];
    for (name, why) in links {
        let (mut runs, data) = runs();
        let (path, theirs) = (data.path().join(name), data.path().join("theirs"));
        match path.is_file() {
            true => fs::rename(&path, &theirs).unwrap(),
            false => fs::write(&theirs, "theirs").unwrap(),
        }
        let before = fs::read(&theirs).unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let errors = failing(runs.until(DAYS[2]));
        assert!(errors.contains(why), "{why}: {errors}");
        assert!(path.is_symlink() && fs::read(&theirs).unwrap() == before, "{why}");
        fs::remove_file(&path).unwrap();
        assert_eq!(runs.until(DAYS[2]).run().ending(), Ending::Done, "{why}");
    }
    // A log of changes beside what the job has published would be taken up with each later file.
    let (mut runs, data) = runs();
    for name in [mother, listed, issue] {
        let mut log = data.path().join(&name).into_os_string();
        log.push(".wal");
        fs::write(&log, "changes").unwrap();
        runs.change(|market| market.dearer += 1);
        let errors = failing(runs.until(DAYS[2]).days(3).refetch());
        let shown = name.file_stem().unwrap().to_str().unwrap();
        assert!(errors.contains(shown), "{shown}: {errors}");
        fs::remove_file(&log).unwrap();
        assert_eq!(runs.until(DAYS[2]).days(3).refetch().run().ending(), Ending::Done, "{shown}");
    }
    // A report with a number of its own is passed over.
    let report = data.update_folder().join("report-7.json");
    _ = fs::remove_file(&report);
    assert!(Command::new("mkfifo").arg(&report).status().unwrap().success());
    assert_eq!(runs.until(DAYS[2]).run().ending(), Ending::Done);
}

#[test]
fn many_issues_are_removed_only_with_a_flag() {
    let fixture = published(200);
    let folder = fixture.data().mother().parent().unwrap().to_owned();
    let count = || {
        let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().starts_with('1')).count()
    };
    assert_eq!(count(), 200);
    // The job's own database loses issues, as by a repair.
    execute(
        &fixture.path().join("work").join("mother.db"),
        "DELETE FROM daily WHERE code IN ('1300', '1301', '1302');
         UPDATE state SET generation = generation + 1",
    );
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.alter = Some(|row: &mut Value| {
            if number(row) < 3 {
                row["Code"] = json!(text(&row["Code"]).replacen("13", "99", 1));
            }
        });
    });
    let errors = fixture.failing("--to 2025-12-17");
    assert!(errors.contains("3 of 200 files in") && errors.contains("--remove-issues"), "{errors}");
    assert_eq!(count(), 200);
    let run = fixture.update("--to 2025-12-17 --remove-issues");
    assert_eq!((run.code, run.report["split"]["removed"].clone()), (0, json!(3)), "{run:?}");
    assert_eq!(count(), 197);
}
