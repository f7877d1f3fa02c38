//! What lies in the folder of the snapshots and was not written there by a whole publication: damage that a
//! disk has done, another publication that runs, and files and folders of others.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use duckdb::Connection;
use pricestore::DataDir;
use tests::update_runs::{Market, UpdateRuns};
use update::Ending;

use crate::update_fixture::{Fixture, command, texts, with_causes};

/// Issues of each day.
const ISSUES: usize = 8;
const DAYS: [&str; 3] = ["2025-12-15", "2025-12-16", "2025-12-17"];

/// Three days, the first of them published.
fn published() -> (UpdateRuns, DataDir) {
    let market = Market::of(&DAYS.map(|day| (day, ISSUES))).with_lists(ISSUES);
    let mut runs = UpdateRuns::on_disk(market);
    assert_eq!(runs.until(DAYS[0]).days(1).run().ending(), Ending::Done);
    let data = runs.data();
    (runs, data)
}

/// The tables of the current snapshot, as rows of the combined database have it.
fn check_tables(data: &DataDir) {
    let number = data.current().unwrap().unwrap();
    let ask = |path, sql: &str| -> (i64, f64) {
        let connection = Connection::open(path).unwrap();
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let tables = ask(data.rank_db(number), "SELECT count(*), sum(c + 2 * o + day_no) FROM g");
    let days = "(SELECT *, dense_rank() OVER (ORDER BY date) - 1 AS day_no FROM daily)";
    let rows = format!("SELECT count(*), sum(close + 2 * open + day_no) FROM {days}");
    assert_eq!(tables, ask(data.mother(), &rows));
}

/// What is done to the tables or the grid of a snapshot, and what the report says of it.
type Damage = (fn(&DataDir, u64), &'static str);

fn execute(data: &DataDir, number: u64, sql: &str) {
    Connection::open(data.rank_db(number)).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_damaged_snapshot_does_not_keep_the_next_ones_from_being_published() {
    let damage: [Damage; 6] = [
        (|data, one| execute(data, one, "DELETE FROM g WHERE code_id = 3"), "not what was written"),
        (
            |data, one| execute(data, one, "UPDATE g SET c = 7 WHERE rowid = 5"),
            "not what was written",
        ),
        (
            |data, one| execute(data, one, "UPDATE made SET content = content + 1"),
            "not those of its grid",
        ),
        (
            |data, one| fs::write(data.rank_db(one), "no database").unwrap(),
            "the tables of snapshot",
        ),
        (
            |data, one| {
                // Every page but the first ones, which say where everything is.
                let mut bytes = fs::read(data.rank_db(one)).unwrap();
                bytes.iter_mut().skip(3 * 4_096).step_by(4_096).for_each(|byte| *byte ^= 1);
                fs::write(data.rank_db(one), bytes).unwrap();
            },
            "the tables of snapshot",
        ),
        (|data, one| fs::write(data.rank_grid(one), "no grid").unwrap(), "the grid of snapshot"),
    ];
    for (place, (damage, words)) in damage.into_iter().enumerate() {
        let (mut runs, data) = published();
        let number = data.current().unwrap().unwrap();
        damage(&data, number);
        let ran = runs.until(DAYS[1]).run();
        let notes = ran.notes();
        assert_eq!(ran.ending(), Ending::Done, "{place}: {ran:?}");
        assert!(notes.contains("was made whole") && notes.contains(words), "{place}: {notes}");
        check_tables(&data);
        // It is told once.
        let ran = runs.until(DAYS[2]).run();
        assert_eq!((ran.ending(), ran.notes()), (Ending::Done, String::new()), "{place}");
        check_tables(&data);
    }
}

#[test]
fn a_job_waits_for_a_publication_that_runs() {
    let fixture = Fixture::of([("20251215", ISSUES), ("20251216", ISSUES)]);
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    let data = fixture.data();
    let lock = File::create(data.rank_folder().join("LOCK")).unwrap();
    lock.lock().unwrap();
    fs::write(data.rank_folder().join("HOLDER"), "4242\n2025-12-16 18:00:00.000000 JST\n").unwrap();
    let output = command(fixture.path(), &["rank", "publish"]).output().unwrap();
    let words = "is running (process 4242 since 2025-12-16 18:00:00.000000 JST); wait for it";
    assert!(texts(&output).1.contains(words), "{:?}", texts(&output));
    let mut job = fixture.command("--as-of 2025-12-16");
    let mut job = job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(job.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("another publication is running (process 4242") {
        assert!(errors.read_line(&mut told).unwrap() > 0, "{told}");
    }
    assert!(told.contains("waiting for it to end"), "{told}");
    assert_eq!(fixture.published(), ["15:8"], "nothing is replaced before");
    lock.unlock().unwrap();
    errors.read_to_string(&mut told).unwrap();
    assert_eq!(job.wait().unwrap().code(), Some(0), "{told}");
    assert_eq!(fixture.published(), ["15:8", "16:8"]);
    assert!(!data.rank_folder().join("HOLDER").exists());
}

fn publish(data: &DataDir) -> Command {
    command(data.path(), &["rank", "publish"])
}

#[test]
fn folders_and_files_of_others_are_left_alone() {
    let (mut runs, data) = published();
    let rank = data.rank_folder();
    let names = ["rank-9.db", ".tmp-of-others", "rank-9.grid"];
    names.iter().for_each(|name| fs::create_dir(rank.join(name)).unwrap());
    let files = [
        "rank-18446744073709551615.bak",
        "rank-18446744073709551615.db",
        "rank-1.txt",
        "rank-5.db",
        "rank-8.grid",
    ];
    files.iter().for_each(|name| fs::write(rank.join(name), "mine").unwrap());
    let ran = runs.until(DAYS[1]).run();
    assert_eq!((ran.ending(), data.current().unwrap()), (Ending::Done, Some(10)), "{ran:?}");
    for number in 11..14 {
        let output = publish(&data).output().unwrap();
        assert!(output.status.success(), "{:?}", texts(&output));
        assert_eq!(data.current().unwrap(), Some(number));
    }
    assert!(names.iter().all(|name| rank.join(name).is_dir()));
    assert!(files.iter().all(|name| rank.join(name).is_file()));
    check_tables(&data);
    // Where a file must be written there is an error that says so.
    let way = rank.join("rank-14.db.new");
    fs::create_dir(&way).unwrap();
    let output = publish(&data).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains(&format!("{} is in the way", way.display())), "{errors}");
    assert!(errors.contains("it is a folder; move it away or remove it"), "{errors}");
}

#[test]
fn a_file_current_that_names_nothing_is_named() {
    let (mut runs, data) = published();
    for (content, shown) in [("", "``"), ("garbage\n", "`garbage`"), ("-1", "`-1`")] {
        fs::write(data.current_file(), content).unwrap();
        let output = publish(&data).output().unwrap();
        let job = with_causes(&runs.until(DAYS[1]).try_run().unwrap_err());
        assert_eq!(output.status.code(), Some(1));
        for errors in [texts(&output).1, job] {
            let words = format!("rank/CURRENT holds {shown} instead of the number of a snapshot");
            assert!(errors.contains(&words), "{errors}");
            assert!(errors.contains("remove it and run `kumiki rank publish`"), "{errors}");
        }
    }
    fs::remove_file(data.current_file()).unwrap();
    assert!(publish(&data).status().unwrap().success());
    assert_eq!(runs.until(DAYS[1]).run().ending(), Ending::Done);
    check_tables(&data);
}
