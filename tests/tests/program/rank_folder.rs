//! What lies in the folder of the snapshots and was not written there by a whole publication: damage that a
//! disk has done, another publication that runs, and files and folders of others.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use domain::formula::Column;
use duckdb::Connection;
use pricestore::DataDir;
use pricestore::grid::Grid;
use pricestore::sql::column;
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

/// The closes of the current snapshot, as rows of the combined database have them.
fn check_snapshot(data: &DataDir) {
    let number = data.current().unwrap().unwrap();
    let grid = Grid::open(&data.rank_grid(number), number).unwrap();
    let days = 0..grid.days().len();
    let closes: Vec<f64> = days.flat_map(|day| grid.stripe(day, Column::Close).to_vec()).collect();
    let rows = Connection::open(data.mother()).unwrap();
    let rows = column::<f64>(&rows, "SELECT close FROM daily ORDER BY date, code").unwrap();
    assert_eq!(closes, rows);
}

#[test]
fn a_damaged_snapshot_does_not_keep_the_next_ones_from_being_published() {
    let (mut runs, data) = published();
    let number = data.current().unwrap().unwrap();
    fs::write(data.rank_grid(number), "no grid").unwrap();
    for (place, day) in DAYS[1..3].iter().enumerate() {
        let ran = runs.until(day).run();
        let notes = ran.notes();
        assert_eq!(
            (ran.ending(), notes.contains("rank-1.grid;")),
            (Ending::Done, place == 0),
            "{notes}"
        );
        check_snapshot(&data);
    }
}

#[test]
fn a_job_waits_for_a_publication_that_runs() {
    let fixture = Fixture::of([("20251215", ISSUES), ("20251216", ISSUES)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    let data = fixture.data();
    let lock = File::create(data.rank_folder().join("LOCK")).unwrap();
    lock.lock().unwrap();
    fs::write(data.rank_folder().join("HOLDER"), "4242\n2025-12-16 18:00:00.000000 JST\n").unwrap();
    let output = command(fixture.path(), &["rank", "publish"]).output().unwrap();
    let words =
        "is running (process 4242 since 2025-12-16 18:00:00.000000 JST); wait until it ends";
    assert!(texts(&output).1.contains(words), "{:?}", texts(&output));
    let mut job = fixture.command("--to 2025-12-16");
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
    let names = [".tmp-of-others", "rank-9.grid", "rank-2.db"];
    names.iter().for_each(|name| fs::create_dir(rank.join(name)).unwrap());
    let files = [
        "rank-18446744073709551615.bak",
        "rank-18446744073709551615.grid",
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
    check_snapshot(&data);
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
    check_snapshot(&data);
}
