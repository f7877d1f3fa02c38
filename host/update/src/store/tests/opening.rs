//! Who may open, and what is found when a job starts.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use marketdata::sample::daily::DailySample;
use pricestore::sample::make_daily_sample;

use super::*;
use crate::store::{Opening, StoreError};

#[test]
fn one_job_at_a_time() {
    let desk = Desk::new();
    let first = desk.open();
    assert_eq!(first.opening(), &Opening::Empty);
    let error = Workshop::open(&desk.data).unwrap_err();
    let StoreError::Locked { holder: Some(holder), .. } = &error else { panic!("{error}") };
    assert_eq!(holder.process, std::process::id());
    drop(first);
    assert_eq!(desk.open().opening(), &Opening::Kept);
}

#[test]
fn what_was_published_is_the_start_of_a_new_work_folder() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    let rows = market(&["1301", "130A"], &days(4));
    workshop.apply(&rows).unwrap();
    workshop.publish(&mut go_on).unwrap();
    drop(workshop);
    fs::remove_dir_all(desk.work().parent().unwrap()).unwrap();
    let mut workshop = desk.open();
    assert_eq!(workshop.opening(), &Opening::Copied);
    assert_eq!(workshop.apply(&rows).unwrap().unchanged, 8);
    assert!(!workshop.is_published().unwrap(), "it is not known what was published");
    assert_eq!(workshop.publish(&mut go_on).unwrap().number, 2);
}

#[test]
fn a_sample_is_a_start_too() {
    let desk = Desk::new();
    let sample = DailySample { codes: 30, days: 25, ..DailySample::default() };
    let made = make_daily_sample(&desk.data, &sample).unwrap();
    let before = lines(&reader(&desk.data.mother()), "FROM daily ORDER BY ALL");
    let mut workshop = desk.open();
    assert_eq!(workshop.opening(), &Opening::Copied);
    assert_eq!(workshop.known().unwrap().codes.len(), 30);
    publish_and_split(&mut workshop);
    let mother = reader(&desk.data.mother());
    let seven = "SELECT date, code, open, high, low, close, volume FROM daily ORDER BY ALL";
    assert_eq!(lines(&mother, seven), before);
    assert_eq!(before.len() as u64, made.rows);
    let factors = "SELECT count(*) FROM adjusted WHERE factor = 1 AND source IS NULL";
    assert_eq!(lines(&mother, factors), [made.rows.to_string()]);
}

#[test]
fn a_job_that_was_killed_has_lost_nothing() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    workshop.apply(&market(&["1301"], &days(3))).unwrap();
    // The files as a killed process leaves them: rows are in the log only.
    let killed = Desk::new();
    fs::create_dir_all(killed.work().parent().unwrap()).unwrap();
    for ending in ["db", "db.wal"] {
        let from = desk.work().with_extension(ending);
        fs::copy(&from, killed.work().with_extension(ending)).unwrap();
    }
    let mut recovered = killed.open();
    assert_eq!(recovered.opening(), &Opening::Recovered);
    assert_eq!(recovered.known().unwrap().dates.len(), 3);
    assert!(!recovered.is_published().unwrap());
}

#[test]
fn a_damaged_database_is_set_aside() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    let rows = market(&["1301", "7203"], &days(40));
    workshop.apply(&rows).unwrap();
    publish_and_split(&mut workshop);
    drop(workshop);
    let whole = fs::read(desk.work()).unwrap();
    let mut flipped = whole.clone();
    for byte in &mut flipped[3 * 4_096 + 100..] {
        *byte ^= 0x5a;
    }
    let half = whole[..whole.len() / 2].to_vec();
    for damaged in [b"no database".to_vec(), flipped, half, Vec::new()] {
        fs::write(desk.work(), &damaged).unwrap();
        let mut workshop = desk.open();
        let Opening::Rebuilt { why, aside } = workshop.opening().clone() else {
            panic!("{:?} after {} bytes", workshop.opening(), damaged.len());
        };
        assert!(!why.is_empty());
        assert_eq!(fs::read(aside).unwrap(), damaged);
        assert_eq!(workshop.apply(&rows).unwrap().unchanged, 80);
    }
}

#[test]
fn a_database_of_something_else_is_set_aside() {
    let desk = Desk::new();
    drop(desk.open());
    fs::remove_file(desk.work()).unwrap();
    let other = Connection::open(desk.work()).unwrap();
    other.execute_batch("CREATE TABLE daily (date DATE)").unwrap();
    drop(other);
    let text = desk.open().opening().to_string();
    assert!(text.contains("(its table daily has other columns); it is now "), "{text}");
    fs::remove_file(desk.work()).unwrap();
    let other = Connection::open(desk.work()).unwrap();
    other.execute_batch("CREATE TABLE other (date DATE)").unwrap();
    drop(other);
    let text = desk.open().opening().to_string();
    assert!(text.contains("daily does not exist"), "{text}");
}

/// The name of the variable that tells [`another_program`] what to open.
const OPENED: &str = "KUMIKI_TEST_OPENED";

#[test]
fn an_open_database_is_not_damaged() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    workshop.apply(&market(&["1301"], &days(1))).unwrap();
    drop(workshop);
    // Locks on databases keep other processes out, not this one.
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "another_program"])
        .env(OPENED, desk.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is open")));
    let text = Workshop::open(&desk.data).unwrap_err().to_string();
    assert!(text.ends_with("another program has it open; close it there and try again"), "{text}");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    assert_eq!(desk.open().known().unwrap().dates.len(), 1);
}

/// Not a test: the other program of the one before. Keeps a database open until its input ends.
#[test]
#[ignore = "run by an_open_database_is_not_damaged"]
fn another_program() {
    let Some(path) = std::env::var_os(OPENED) else { return };
    let _open = Connection::open(path).unwrap();
    println!("it is open");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_foreign_published_database_is_refused() {
    let refused = |sql: &str| {
        let desk = Desk::new();
        fs::create_dir_all(desk.data.mother().parent().unwrap()).unwrap();
        let other = Connection::open(desk.data.mother()).unwrap();
        other.execute_batch(sql).unwrap();
        drop(other);
        let text = Workshop::open(&desk.data).unwrap_err().to_string();
        assert!(!desk.work().exists(), "half a copy is no database");
        text.split_once("cannot be used: ").unwrap().1.to_owned()
    };
    assert!(refused("CREATE TABLE other (a INT)").starts_with("it has no table daily"));
    let six = "CREATE TABLE daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE, low DOUBLE,
        close DOUBLE";
    assert_eq!(refused(&format!("{six})")), "its table daily has no column volume DOUBLE");
    for code in ["72030", "../etc", "130a", "1'; DROP"] {
        let code = code.replace('\'', "''");
        let sql = format!(
            "{six}, volume DOUBLE); INSERT INTO daily (date, code) VALUES ('2025-01-06', '{code}')"
        );
        assert!(refused(&sql).ends_with("in it is no code"));
    }
}

#[test]
fn what_a_killed_job_has_left_is_removed() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    workshop.apply(&market(&["1301"], &days(2))).unwrap();
    publish_and_split(&mut workshop);
    drop(workshop);
    let left = [
        desk.data.mother().with_extension("db.new"),
        desk.issue("1301").with_extension("db.new"),
        desk.issue("1301").with_extension("db.new.wal"),
        desk.work().with_extension("db.new"),
        desk.data.rank_db(2).with_extension("db.new"),
        desk.data.rank_db(2),
        desk.data.rank_folder().join(".tmpAbCdEf"),
    ];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    let workshop = desk.open();
    for path in &left {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(desk.data.mother().exists() && desk.data.rank_db(1).exists());
    assert!(workshop.is_published().unwrap());
}
