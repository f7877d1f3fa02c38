//! What `kumiki update` did not write it neither removes nor replaces, and what it wrote and is gone it
//! makes again: with the program itself against a vendor on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use duckdb::Connection;
use pricestore::DataDir;
use serde_json::json;

use crate::update_days::{Fixture, Market, days};
use crate::update_program::{command, sql, texts};

fn market() -> Market {
    Market { days: days([("20251215", 20), ("20251216", 20)]), ..Market::default() }
}

fn published(market: Market) -> Fixture {
    let fixture = Fixture::new(market);
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture
}

/// `kumiki update` that ends with an error.
fn failing(fixture: &Fixture, arguments: &str) -> String {
    let output = fixture.command(arguments).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors
}

fn execute(path: &Path, statement: &str) {
    Connection::open(path).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn a_combined_database_of_others_is_not_overwritten() {
    let others = published(Market { days: days([("20251215", 25), ("20251216", 25)]), ..market() });
    let fixture = published(market());
    let mother = DataDir::new(fixture.path()).mother();
    let foreign = fs::read(DataDir::new(others.path()).mother()).unwrap();
    fs::write(&mother, &foreign).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    for _ in 0..2 {
        let errors = failing(&fixture, "--as-of 2025-12-17");
        assert!(errors.contains("mother.db was not written by this job"), "{errors}");
        assert!(fs::read(&mother).unwrap() == foreign);
    }
    // Without its own database the job begins with the rows of that one.
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 25));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:25", "16:25", "17:25"]);
}

#[test]
fn a_combined_database_with_nothing_more_is_taken_over() {
    let fixture = published(market());
    let mother = DataDir::new(fixture.path()).mother();
    // A copy of it, as from a backup.
    let bytes = fs::read(&mother).unwrap();
    fs::remove_file(&mother).unwrap();
    fs::write(&mother, bytes).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(fixture.published().len(), 3);
    // Another table in it is something more.
    execute(&mother, "CREATE TABLE notes (text VARCHAR)");
    fixture.change(|market| _ = market.days.insert("20251218", 20));
    assert!(failing(&fixture, "--as-of 2025-12-18").contains("not written by this job"));
    // One that is no database any more holds nothing.
    fs::write(&mother, "damaged").unwrap();
    assert_eq!(fixture.update("--as-of 2025-12-18").code, 0);
    assert_eq!(fixture.published().len(), 4);
}

#[test]
fn what_readers_lack_is_made_again() {
    let fixture = published(market());
    let data = DataDir::new(fixture.path());
    let file = |name: &str| data.mother().with_file_name(name);
    let again = || fixture.update("--as-of 2025-12-16").report["published"]["days"].clone();
    assert_eq!(again(), json!(null), "nothing is missing");
    // Rule W4.
    let told = |named: &str| {
        let run = fixture.update("--as-of 2025-12-16");
        assert_eq!((run.code, &run.report["published"]["days"]), (0, &json!(2)), "{run:?}");
        let words = format!("published files are gone, and are made again: {named}; look who");
        assert!(run.told.contains(&words), "{words}: {}", run.told);
    };
    fs::remove_dir_all(data.rank_folder()).unwrap();
    told("rank/rank-1.db, rank/rank-1.grid");
    let output =
        command(fixture.path(), &["rank", "--limit", "1", "--format", "jsonl"]).output().unwrap();
    assert_eq!(texts(&output).0.lines().count(), 1, "{:?}", texts(&output));

    let before = ["1305.db", "1306.db"].map(|name| fs::read(file(name)).unwrap());
    fs::remove_file(file("1305.db")).unwrap();
    fs::write(file("1306.db"), "damaged").unwrap();
    assert_eq!(again(), 2);
    let after = ["1305.db", "1306.db"].map(|name| fs::read(file(name)).unwrap().len());
    assert_eq!(after, before.map(|bytes| bytes.len()));
    assert_eq!(again(), json!(null));
}

/// What others wrote is replaced where all of it stays, and each value is part of it.
#[test]
fn a_file_of_others_with_other_values_is_left() {
    let fixture = Fixture::new(market());
    let folder = DataDir::new(fixture.path()).mother().parent().unwrap().to_owned();
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
    let errors = failing(&fixture, "--as-of 2025-12-16 --days 2");
    assert!(errors.contains("not written by this job: 1301;"), "{errors}");
    assert!(fs::read(folder.join("1301.db")).unwrap() == theirs);
    let columns = "SELECT count(*) FROM duckdb_columns() WHERE table_name = 'daily'";
    let ours = Connection::open(folder.join("1302.db")).unwrap();
    assert!(ours.query_row(columns, [], |row| row.get::<_, i64>(0)).unwrap() > 3);

    // The same of the combined database.
    let fixture = published(market());
    let mother = DataDir::new(fixture.path()).mother();
    let rows = fixture.path().join("rows.db");
    let attach = format!("ATTACH '{}' AS whole (READ_ONLY)", mother.display());
    execute(&rows, &format!("{attach}; CREATE TABLE daily AS FROM whole.daily"));
    for (close, is_replaced) in [("close", true), ("close + 1", false)] {
        let theirs = fixture.path().join("theirs.db");
        let attach = format!("ATTACH '{}' AS rows (READ_ONLY)", rows.display());
        let table =
            format!("CREATE TABLE daily AS SELECT * REPLACE ({close} AS close) FROM rows.daily");
        execute(&theirs, &format!("{attach}; {table}"));
        fs::rename(&theirs, &mother).unwrap();
        fixture.change(|market| _ = market.days.insert("20251217", 20));
        let output = fixture.command("--as-of 2025-12-17").output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.success(), is_replaced, "{close}: {errors}");
        let refused = errors.contains("mother.db was not written by this job");
        assert_eq!(refused, !is_replaced, "{close}: {errors}");
    }
}

/// What somebody makes in a published database that has this table, and this table or view.
fn made(table: &str, relation: &str) -> [String; 13] {
    [
        "CREATE SCHEMA mine".to_owned(),
        format!("CREATE SCHEMA mine; CREATE TABLE mine.{relation} AS FROM main.{relation}"),
        "CREATE SCHEMA mine; CREATE TABLE mine.calendar (date DATE, is_open BOOLEAN)".to_owned(),
        format!("CREATE SCHEMA mine; CREATE VIEW mine.{relation} AS FROM main.{relation}"),
        "CREATE TABLE notes (text VARCHAR)".to_owned(),
        format!("CREATE VIEW tops AS SELECT code FROM {relation}"),
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
fn is_left(path: fn(&DataDir) -> PathBuf, table: &str, relation: &str, words: &str) {
    let fixture = published(Market { listed: Some(20), ..market() });
    let path = path(&DataDir::new(fixture.path()));
    let ours = fs::read(&path).unwrap();
    for made in made(table, relation) {
        execute(&path, &made);
        let theirs = fs::read(&path).unwrap();
        let errors = failing(&fixture, "--as-of 2025-12-16");
        assert!(errors.contains(words), "{made}: {errors}");
        assert!(fs::read(&path).unwrap() == theirs, "{made}");
        fs::write(&path, &ours).unwrap();
    }
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
}

#[test]
fn what_others_made_in_the_combined_database_is_left() {
    is_left(DataDir::mother, "daily", "daily", "mother.db was not written by this job");
}

#[test]
fn what_others_made_in_the_database_of_an_issue_is_left() {
    let path = |data: &DataDir| data.mother().with_file_name("1300.db");
    is_left(path, "packed_daily", "daily", "not written by this job: 1300;");
}

#[test]
fn what_others_made_in_the_lists_of_issues_is_left() {
    let words = "listed_info.db was not written by this job";
    is_left(DataDir::listed_info, "listed_issue", "listed_issue", words);
}

/// Rows that are taken over are the lowest source's (rule R2), and what else is in the file stays.
#[test]
fn corrections_of_rows_that_were_taken_over_are_published() {
    let others = published(market());
    let fixture = Fixture::new(market());
    let mother = DataDir::new(fixture.path()).mother();
    fs::create_dir_all(mother.parent().unwrap()).unwrap();
    let rows = format!(
        "ATTACH '{}' AS whole (READ_ONLY);
         CREATE TABLE daily AS SELECT date, code, open, low, close, volume,
             high + (code = '1301' AND date = DATE '2025-12-15')::INTEGER AS high FROM whole.daily",
        DataDir::new(others.path()).mother().display()
    );
    execute(&mother, &rows);
    let theirs = fs::read(&mother).unwrap();
    let run = fixture.update("--as-of 2025-12-16 --days 2 --refetch");
    assert_eq!(run.code, 0, "{run:?}");
    let corrections = run.report["corrections"].as_array().unwrap();
    let highs = corrections.iter().flat_map(|row| {
        let values = row["values"].as_array().unwrap().iter();
        let highs = values.filter(|value| value["column"] == "high");
        highs.map(move |value| {
            let [old, new] = ["old", "new"].map(|name| value[name].as_f64().unwrap());
            (row["date"].clone(), row["code"].clone(), old - new)
        })
    });
    assert_eq!(highs.collect::<Vec<_>>(), [(json!("2025-12-15"), json!("1301"), 1.0)]);
    assert_eq!(fixture.published(), ["15:20", "16:20"]);

    // The same file once more is somebody's.
    fs::write(&mother, &theirs).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    for _ in 0..2 {
        let errors = failing(&fixture, "--as-of 2025-12-17");
        assert!(errors.contains("mother.db was not written by this job"), "{errors}");
        assert!(fs::read(&mother).unwrap() == theirs);
    }
    // What the error says helps, but not where there is more than rows.
    let again = "--as-of 2025-12-17 --days 3 --refetch";
    let work = fixture.path().join("work");
    fs::remove_dir_all(&work).unwrap();
    execute(&mother, "CREATE SCHEMA mine; CREATE TABLE mine.daily AS FROM main.daily");
    let more = fs::read(&mother).unwrap();
    for _ in 0..2 {
        let errors = failing(&fixture, again);
        assert!(errors.contains("mother.db was not written by this job"), "{errors}");
        assert!(fs::read(&mother).unwrap() == more);
    }
    fs::write(&mother, &theirs).unwrap();
    fs::remove_dir_all(&work).unwrap();
    for _ in 0..2 {
        assert_eq!(fixture.update(again).code, 0);
        assert_eq!(fixture.published(), ["15:20", "16:20", "17:20"]);
    }
}

#[test]
fn names_of_unfinished_files_and_reports_of_others_are_left_alone() {
    let fixture = Fixture::new(market());
    let folder = DataDir::new(fixture.path()).mother().parent().unwrap().to_owned();
    let update = fixture.path().join("update");
    for folder in [&folder, &update] {
        fs::create_dir_all(folder).unwrap();
    }
    let rank = DataDir::new(fixture.path()).rank_folder();
    fs::create_dir_all(&rank).unwrap();
    let theirs = [
        folder.join("mother.db.new"),
        folder.join("1303.db.new"),
        folder.join("1304.db.new.wal"),
        folder.join("notes.kumiki-new"),
        rank.join("rank-99.db"),
    ];
    for path in &theirs {
        fs::write(path, "somebody else's").unwrap();
    }
    let ours = folder.join("1303.db.kumiki-new");
    fs::write(&ours, "left by a job that was killed").unwrap();
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
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
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    assert_eq!(fs::read_to_string(update.join("report-1.json")).unwrap(), theirs);
    let is_there = |number: u32| update.join(format!("report-{number}.json")).exists();
    assert_eq!([3, 4, 32].map(is_there), [false, true, true]);
    assert!(update.join(format!("report-{}.json", u64::MAX)).exists());
}

#[cfg(unix)]
#[test]
fn links_are_not_the_job_s_files() {
    let fixture = Fixture::new(market());
    let folder = DataDir::new(fixture.path()).mother().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let link = folder.join("1301.db");
    std::os::unix::fs::symlink(folder.join("nowhere").join("1301.db"), &link).unwrap();
    let errors = failing(&fixture, "--as-of 2025-12-16 --days 2");
    assert!(errors.contains("not written by this job: 1301;"), "{errors}");
    assert!(link.is_symlink());
    // The other issues have their files, and this one once the link is gone.
    assert!(folder.join("1302.db").is_file());
    fs::remove_file(&link).unwrap();
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert!(link.is_file());
}

#[cfg(unix)]
#[test]
fn a_combined_database_behind_a_link_is_not_left_behind() {
    let fixture = published(market());
    let mother = DataDir::new(fixture.path()).mother();
    let elsewhere = fixture.path().join("elsewhere.db");
    fs::rename(&mother, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &mother).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    for _ in 0..2 {
        let errors = failing(&fixture, "--as-of 2025-12-17");
        assert!(errors.contains("mother.db cannot be used: it is a link"), "{errors}");
        assert!(mother.is_symlink() && fs::read(&elsewhere).unwrap() == before);
    }
    fs::remove_file(&mother).unwrap();
    fs::rename(&elsewhere, &mother).unwrap();
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:20", "16:20", "17:20"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_holds_nothing_up() {
    let fixture = published(market());
    let pipe = fixture.path().join("jp").join("stocks_daily").join("1301.db");
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let errors = failing(&fixture, "--as-of 2025-12-16");
    assert!(errors.contains("1301"), "{errors}");
    assert!(!pipe.is_file() && pipe.exists());
}

#[test]
fn many_issues_are_removed_only_with_a_flag() {
    let fixture =
        published(Market { days: days([("20251215", 200), ("20251216", 200)]), ..market() });
    let folder = DataDir::new(fixture.path()).mother().parent().unwrap().to_owned();
    let count = || {
        let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().starts_with('1')).count()
    };
    assert_eq!(count(), 200);
    // The job's own database loses issues, as by a repair.
    let lose = |codes: &str| {
        execute(
            &fixture.path().join("work").join("mother.db"),
            &format!(
                "DELETE FROM daily WHERE code IN ({codes});
                 UPDATE state SET generation = generation + 1"
            ),
        );
    };
    lose("'1300', '1301', '1302'");
    fixture.change(|market| {
        market.days.insert("20251217", 200);
        market.alter = Some(|row| {
            let code = crate::update_days::text(&row["Code"]);
            if ["13000", "13010", "13020"].contains(&code.as_str()) {
                row["Code"] = json!(code.replacen("13", "99", 1));
            }
        });
    });
    let errors = failing(&fixture, "--as-of 2025-12-17");
    assert!(errors.contains("3 of 200 files in") && errors.contains("--remove-issues"), "{errors}");
    assert_eq!(count(), 200);
    let run = fixture.update("--as-of 2025-12-17 --remove-issues");
    assert_eq!((run.code, run.report["split"]["removed"].clone()), (0, json!(3)), "{run:?}");
    assert_eq!(count(), 197);
}

#[test]
fn a_calendar_of_another_form_is_refused_in_words() {
    let fixture = published(market());
    let mother = DataDir::new(fixture.path()).mother();
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    execute(
        &mother,
        "DROP TABLE IF EXISTS calendar; CREATE TABLE Calendar (\"Date\" DATE, Is_Open BOOLEAN);
         INSERT INTO calendar VALUES (DATE '2025-12-15', true), (DATE '2025-12-16', true),
           (DATE '2025-12-17', false)",
    );
    fixture.change(|market| _ = market.days.insert("20251218", 20));
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, run.asked.join(" ")), (0, "18 17".to_owned()));
    let known = sql(fixture.path(), "SELECT is_open FROM calendar WHERE date = DATE '2025-12-17'");
    assert_eq!(known.lines().last(), Some("false"));

    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    execute(&mother, "DROP TABLE calendar; CREATE TABLE calendar (date VARCHAR, is_open INTEGER)");
    let words = "its table calendar must have the columns date DATE and is_open BOOLEAN; \
                 it has date VARCHAR, is_open INTEGER";
    let errors = failing(&fixture, "--as-of 2025-12-18");
    assert!(errors.contains(words), "{errors}");
    let output = command(fixture.path(), &["rank", "publish"]).output().unwrap();
    let (_, errors) = texts(&output);
    assert!(!output.status.success() && errors.contains(words), "{errors}");
}

/// A pipe would be waited for, and what a link leads to overwritten.
#[cfg(unix)]
#[test]
fn pipes_and_links_in_the_place_of_files_are_errors() {
    let data = DataDir::new("");
    let [mother, listed] = [data.mother(), data.listed_info()];
    let pipes = [
        (Path::new("work/mother.db"), "is no file of its own"),
        (Path::new("work/mother.db.wal"), "is no file of its own"),
        (Path::new("rank/WRITTEN"), "is no file; move it away"),
        (&mother, "is no file; move it away"),
        (&listed, "is no file; move it away"),
    ];
    for (name, why) in pipes {
        let fixture = published(market());
        let path = fixture.path().join(name);
        _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        fixture.change(|market| _ = market.days.insert("20251217", 20));
        let errors = failing(&fixture, "--as-of 2025-12-17");
        let shown = name.file_name().unwrap().to_str().unwrap();
        assert!(errors.contains(why) && errors.contains(shown), "{shown}: {errors}");
        fs::remove_file(&path).unwrap();
        assert_eq!(fixture.update("--as-of 2025-12-17").code, 0, "{shown}");
    }
    let fixture = published(market());
    let theirs = fixture.path().join("theirs.txt");
    fs::write(&theirs, "theirs").unwrap();
    let log = fixture.path().join("work/mother.db.wal");
    std::os::unix::fs::symlink(&theirs, &log).unwrap();
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    let errors = failing(&fixture, "--as-of 2025-12-17");
    assert!(errors.contains("mother.db.wal") && errors.contains("a link"), "{errors}");
    assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
    fs::remove_file(&log).unwrap();
    // A log of changes beside what the job has published would be taken up with each later file.
    for name in [data.mother(), data.listed_info(), data.mother().with_file_name("1300.db")] {
        let mut log = fixture.path().join(&name).into_os_string();
        log.push(".wal");
        fs::write(&log, "changes").unwrap();
        fixture.change(|market| market.more += 1);
        let errors = failing(&fixture, "--as-of 2025-12-17 --days 3 --refetch");
        let shown = name.file_stem().unwrap().to_str().unwrap();
        assert!(errors.contains(shown), "{shown}: {errors}");
        fs::remove_file(&log).unwrap();
        assert_eq!(fixture.update("--as-of 2025-12-17 --days 3 --refetch").code, 0, "{shown}");
    }
    // A report with a number of its own is passed over.
    let report = fixture.path().join("update/report-7.json");
    assert!(Command::new("mkfifo").arg(&report).status().unwrap().success());
    // What else is said of a run reads all reports.
    let status = fixture.command("--as-of 2025-12-17").stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
