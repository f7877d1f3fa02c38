//! Who may open, and what is found when a job starts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use domain::TsNanos;
use marketdata::sample::daily::DailySample;
use pricestore::sample::make_daily_sample;

use super::*;
use crate::fetch_state::{FetchState, IssuePass};
use crate::price_store::Part;
use crate::store::{Opening, StoreError};

#[test]
fn one_job_at_a_time() {
    let fixture = Fixture::new();
    let first = fixture.open();
    assert_eq!(first.opening(), &Opening::Empty);
    let error = WorkDatabase::open(&fixture.data).unwrap_err();
    let StoreError::Locked { holder: Some(holder), .. } = &error else { panic!("{error}") };
    assert_eq!(holder.process, std::process::id());
    drop(first);
    assert_eq!(fixture.open().opening(), &Opening::Kept);
}

#[test]
fn what_was_published_is_the_start_of_a_new_work_folder() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let rows = market(&["1301", "130A"], &days(4));
    store.apply(&rows).unwrap();
    store.publish(&mut go_on).unwrap();
    drop(store);
    fs::remove_dir_all(fixture.work().parent().unwrap()).unwrap();
    let mut store = fixture.open();
    assert_eq!(store.opening(), &Opening::Copied);
    assert_eq!(store.apply(&rows).unwrap().unchanged, 8);
    assert!(!store.is_published().unwrap(), "it is not known what was published");
    assert_eq!(store.publish(&mut go_on).unwrap().number, 2);
}

#[test]
fn a_sample_is_a_start_too() {
    let fixture = Fixture::new();
    let sample = DailySample { codes: 30, days: 25, ..DailySample::default() };
    let made = make_daily_sample(&fixture.data, &sample).unwrap();
    let eight = "SELECT date, code, open, high, low, close, volume, adjustment_factor FROM daily
        ORDER BY ALL";
    let before = lines(&reader(&fixture.data.mother()), eight);
    let mut store = fixture.open();
    assert_eq!(store.opening(), &Opening::Copied);
    assert_eq!(store.rows().known().unwrap().codes.len(), 30);
    assert_eq!(store.rows().listed().unwrap().lists().len(), 25);
    publish_and_split(&mut store);
    let mother = reader(&fixture.data.mother());
    assert_eq!(lines(&mother, eight), before);
    assert_eq!(before.len() as u64, made.rows);
    // One of the issues splits halfway.
    let factors = "SELECT count(DISTINCT code) FROM adjusted WHERE factor = 0.5 AND source IS NULL";
    assert_eq!(lines(&mother, factors), ["1"]);
}

#[test]
fn a_job_that_was_killed_has_lost_nothing() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(3))).unwrap();
    // The files as a killed process leaves them: rows are in the log only.
    let killed = Fixture::new();
    fs::create_dir_all(killed.work().parent().unwrap()).unwrap();
    for ending in ["db", "db.wal"] {
        let from = fixture.work().with_extension(ending);
        fs::copy(&from, killed.work().with_extension(ending)).unwrap();
    }
    let mut recovered = killed.open();
    assert_eq!(recovered.opening(), &Opening::Recovered);
    assert_eq!(recovered.rows().known().unwrap().dates.len(), 3);
    assert!(!recovered.is_published().unwrap());
}

#[test]
fn a_damaged_database_is_set_aside() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let rows = market(&["1301", "7203"], &days(40));
    store.apply(&rows).unwrap();
    publish_and_split(&mut store);
    drop(store);
    let whole = fs::read(fixture.work()).unwrap();
    let mut flipped = whole.clone();
    for byte in &mut flipped[3 * 4_096 + 100..] {
        *byte ^= 0x5a;
    }
    let half = whole[..whole.len() / 2].to_vec();
    for damaged in [b"no database".to_vec(), flipped, half, Vec::new()] {
        fs::write(fixture.work(), &damaged).unwrap();
        let mut store = fixture.open();
        let Opening::Rebuilt { why, aside } = store.opening().clone() else {
            panic!("{:?} after {} bytes", store.opening(), damaged.len());
        };
        assert!(!why.is_empty());
        assert_eq!(fs::read(aside).unwrap(), damaged);
        assert_eq!(store.apply(&rows).unwrap().unchanged, 80);
    }
}

#[test]
fn a_database_of_something_else_is_set_aside() {
    let fixture = Fixture::new();
    drop(fixture.open());
    fs::remove_file(fixture.work()).unwrap();
    let other = Connection::open(fixture.work()).unwrap();
    other.execute_batch("CREATE TABLE daily (date DATE)").unwrap();
    drop(other);
    let text = fixture.open().opening().to_string();
    assert!(text.contains("(its table daily has other columns); it is now "), "{text}");
    fs::remove_file(fixture.work()).unwrap();
    let other = Connection::open(fixture.work()).unwrap();
    other.execute_batch("CREATE TABLE other (date DATE)").unwrap();
    drop(other);
    let text = fixture.open().opening().to_string();
    assert!(text.contains("daily does not exist"), "{text}");
}

#[test]
fn a_database_of_an_earlier_form_is_set_aside_and_made_anew() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(2))).unwrap();
    publish_and_split(&mut store);
    store.apply(&market(&["1301"], &days(3)[2..])).unwrap();
    drop(store);
    let other = Connection::open(fixture.work()).unwrap();
    let earlier = "DROP TABLE correction; DROP TABLE day; CREATE TABLE published_day (date DATE)";
    other.execute_batch(earlier).unwrap();
    drop(other);
    let mut store = fixture.open();
    let Opening::Rebuilt { why, aside } = store.opening() else { panic!("{:?}", store.opening()) };
    assert_eq!((why.as_str(), aside.is_file()), ("an earlier version wrote it", true));
    let (state, note) = store.rows().fetch_state().unwrap();
    assert_eq!(state.complete.into_iter().collect::<Vec<_>>(), days(2), "what was published");
    let note = note.unwrap();
    assert!(note.ends_with("the run asks again for its unpublished days"), "{note}");
    assert_eq!(store.apply(&market(&["1301"], &days(3))).unwrap().inserted, 1);
    drop(store);
    assert_eq!(fixture.open().opening(), &Opening::Kept);
}

#[test]
fn what_was_fetched_is_known_to_the_next_job_and_readers_see_its_published_days() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let january = days(5);
    let of = |day: usize| BTreeSet::from([january[day]]);
    let codes = BTreeSet::from(["130A".parse().unwrap()]);
    let mut state = FetchState {
        fetched: of(0),
        complete: &of(0) | &of(1),
        accepted: of(2),
        closed: of(4),
        unpublished_from: Some(january[1]),
        split: true,
        pass: Some(IssuePass { made: january[4], dates: of(3), codes }),
    };
    let rows = market(&["1301"], &january[..4]);
    let part = Part { rows: &rows, ..Part::default() };
    store.rows().commit(&[part], &state, TsNanos::from_nanos(0)).unwrap();
    publish_and_split(&mut store);
    drop(store);
    let mut store = fixture.open();
    assert_eq!(store.rows().fetch_state().unwrap(), (state.clone(), None));
    let seen = ["2025-01-01", "2025-01-02", "2025-01-03"];
    for file in [fixture.data.mother(), fixture.issue("1301")] {
        assert_eq!(lines(&reader(&file), "SELECT date FROM daily"), seen);
    }
    // A day that becomes visible is something new for readers, also without a new row.
    assert!(store.is_published().unwrap());
    state.complete.insert(january[3]);
    store.rows().commit(&[], &state, TsNanos::from_nanos(0)).unwrap();
    assert!(!store.is_published().unwrap());
}

/// The name of the variable that tells [`another_program`] what to open.
const OPENED: &str = "KUMIKI_TEST_OPENED";

#[test]
fn an_open_database_is_not_damaged() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(1))).unwrap();
    drop(store);
    // Locks on databases keep other processes out, not this one.
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "another_program"])
        .env(OPENED, fixture.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is open")));
    let text = WorkDatabase::open(&fixture.data).unwrap_err().to_string();
    assert!(text.ends_with("another program has it open; close it there and try again"), "{text}");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    assert_eq!(fixture.open().rows().known().unwrap().dates.len(), 1);
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
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.data.mother().parent().unwrap()).unwrap();
        let other = Connection::open(fixture.data.mother()).unwrap();
        other.execute_batch(sql).unwrap();
        drop(other);
        let text = WorkDatabase::open(&fixture.data).unwrap_err().to_string();
        assert!(!fixture.work().exists(), "half a copy is no database");
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
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(2))).unwrap();
    publish_and_split(&mut store);
    drop(store);
    let left = [
        fixture.data.mother().with_extension("db.kumiki-new"),
        fixture.issue("1301").with_extension("db.kumiki-new"),
        fixture.issue("1301").with_extension("db.kumiki-new.wal"),
        fixture.work().with_extension("db.kumiki-new"),
        fixture.data.rank_grid(2),
        fixture.data.rank_folder().join(".tmpAbCdEf"),
    ];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    // A publication notes its number before it begins.
    fs::write(fixture.data.rank_folder().join("WRITTEN"), "1\n2\n").unwrap();
    let store = fixture.open();
    for path in &left {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(fixture.data.mother().exists() && fixture.data.rank_grid(1).exists());
    assert!(store.is_published().unwrap());
}
