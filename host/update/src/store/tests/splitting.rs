//! The per-issue databases.

use std::fs;
use std::time::SystemTime;

use super::*;
use crate::price_store::Split;
use crate::store::StoreError;
use crate::store::limits::{SPLIT_NOTE_EVERY, SPLIT_THREADS_MAX};

fn split(store: &mut WorkDatabase, from: Option<JstDate>) -> (u64, u64, u64) {
    let Split { written, unchanged, removed } =
        store.split_to_individual(from, &mut go_on).unwrap();
    (written, unchanged, removed)
}

fn written_at(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn each_issue_gets_its_rows() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let codes = ["130A", "1301", "25935", "7203"];
    let mut rows = market(&codes, &days(30));
    rows[40].adjustment_factor = Some(0.5);
    store.apply(&rows).unwrap();
    let early = store.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(early, StoreError::NotPublished(_)), "{early}");
    store.publish(&mut go_on).unwrap();
    assert_eq!(split(&mut store, None), (4, 0, 0));
    let mother = reader(&fixture.data.mother());
    for code in codes {
        let own = reader(&fixture.issue(code));
        for table in ["daily", "adjusted"] {
            let rows = lines(&own, &format!("SELECT * FROM {table}"));
            let expected = format!("SELECT * FROM {table} WHERE code = '{code}' ORDER BY date");
            assert_eq!(rows, lines(&mother, &expected), "{table} of {code}");
            assert_eq!(rows.len(), 30);
        }
        assert!(!fixture.issue(code).with_extension("db.wal").exists());
    }
}

#[test]
fn only_what_changed_is_written() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let (codes, january) = (["1301", "130A", "7203"], days(5));
    store.apply(&market(&codes, &january[..4])).unwrap();
    publish_and_split(&mut store);
    let before = codes.map(|code| written_at(&fixture.issue(code)));
    assert_eq!(split(&mut store, None), (0, 3, 0));
    assert_eq!(split(&mut store, Some(january[4])), (0, 0, 0), "no issue has such rows");

    store.apply(&[row("130A", january[1], 900), row("7203", january[4], 900)]).unwrap();
    store.publish(&mut go_on).unwrap();
    // The correction of an older day is not lost, whatever day is asked for.
    assert_eq!(split(&mut store, Some(january[4])), (2, 0, 0));
    let after = codes.map(|code| written_at(&fixture.issue(code)));
    assert_eq!([0, 1, 2].map(|place| before[place] == after[place]), [true, false, false]);
    assert_eq!(
        lines(&reader(&fixture.issue("130A")), "SELECT max(close)::INT FROM daily"),
        ["901"]
    );
    drop(store);
    assert_eq!(split(&mut fixture.open(), None), (0, 3, 0), "the next job knows it too");
}

#[test]
fn files_that_are_wrong_are_put_right() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301", "7203"], &days(3))).unwrap();
    publish_and_split(&mut store);
    fs::remove_file(fixture.issue("1301")).unwrap();
    fs::write(fixture.issue("7203"), "short").unwrap();
    fs::write(fixture.issue("9999"), "of an issue that is gone").unwrap();
    fs::write(fixture.issue("readme"), "no issue").unwrap();
    assert_eq!(split(&mut store, Some(days(3)[2])), (2, 0, 1));
    assert_eq!(lines(&reader(&fixture.issue("7203")), "SELECT count(*) FROM daily"), ["3"]);
    assert!(!fixture.issue("9999").exists() && fixture.issue("readme").exists());
}

#[test]
fn a_stopped_split_goes_on_later() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    // More than are noted at a time, and more than threads.
    let count = SPLIT_NOTE_EVERY + 2 * SPLIT_THREADS_MAX;
    let codes: Vec<String> = (0..count).map(|place| (1301 + place).to_string()).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    store.apply(&market(&codes, &days(1))).unwrap();
    store.publish(&mut go_on).unwrap();
    let stop_at = |limit: u64| {
        move |done: u64, _: u64, _: &'static str| {
            if done >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let stopped = store.split_to_individual(None, &mut stop_at(20));
    assert!(matches!(stopped, Err(StoreError::Cancelled)), "{stopped:?}");
    let there = codes.iter().filter(|code| fixture.issue(code).exists()).count();
    // Each thread may have finished one more, and one may be in the hands of each.
    assert!((20..=20 + 2 * SPLIT_THREADS_MAX + 1).contains(&there), "{there} files");
    let all = count as u64;
    assert_eq!(split(&mut store, None), (all - there as u64, there as u64, 0));
    assert_eq!(split(&mut store, None), (0, all, 0));
    let tidy = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().contains("new");
    assert!(
        fs::read_dir(fixture.issue("1301").parent().unwrap()).unwrap().all(|e| tidy(e.unwrap()))
    );
}
