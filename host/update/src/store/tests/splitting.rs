//! The per-issue databases.

use std::fs;
use std::time::SystemTime;

use super::*;
use crate::shelf::Split;
use crate::store::StoreError;
use crate::store::limits::{SPLIT_NOTE_EVERY, SPLIT_THREADS_MAX};

fn split(workshop: &mut Workshop, from: Option<JstDate>) -> (u64, u64, u64) {
    let Split { written, unchanged, removed } =
        workshop.split_to_individual(from, &mut go_on).unwrap();
    (written, unchanged, removed)
}

fn written_at(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn each_issue_gets_its_rows() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    let codes = ["130A", "1301", "25935", "7203"];
    let mut rows = market(&codes, &days(30));
    rows[40].adjustment_factor = Some(0.5);
    workshop.apply(&rows).unwrap();
    let early = workshop.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(early, StoreError::NotPublished(_)), "{early}");
    workshop.publish(&mut go_on).unwrap();
    assert_eq!(split(&mut workshop, None), (4, 0, 0));
    let mother = reader(&desk.data.mother());
    for code in codes {
        let own = reader(&desk.issue(code));
        for table in ["daily", "adjusted"] {
            let rows = lines(&own, &format!("SELECT * FROM {table}"));
            let expected = format!("SELECT * FROM {table} WHERE code = '{code}' ORDER BY date");
            assert_eq!(rows, lines(&mother, &expected), "{table} of {code}");
            assert_eq!(rows.len(), 30);
        }
        assert!(!desk.issue(code).with_extension("db.wal").exists());
    }
}

#[test]
fn only_what_changed_is_written() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    let (codes, january) = (["1301", "130A", "7203"], days(5));
    workshop.apply(&market(&codes, &january[..4])).unwrap();
    publish_and_split(&mut workshop);
    let before = codes.map(|code| written_at(&desk.issue(code)));
    assert_eq!(split(&mut workshop, None), (0, 3, 0));
    assert_eq!(split(&mut workshop, Some(january[4])), (0, 0, 0), "no issue has such rows");

    workshop.apply(&[row("130A", january[1], 900), row("7203", january[4], 900)]).unwrap();
    workshop.publish(&mut go_on).unwrap();
    // The correction of an older day is not lost, whatever day is asked for.
    assert_eq!(split(&mut workshop, Some(january[4])), (2, 0, 0));
    let after = codes.map(|code| written_at(&desk.issue(code)));
    assert_eq!([0, 1, 2].map(|place| before[place] == after[place]), [true, false, false]);
    assert_eq!(lines(&reader(&desk.issue("130A")), "SELECT max(close)::INT FROM daily"), ["901"]);
    drop(workshop);
    assert_eq!(split(&mut desk.open(), None), (0, 3, 0), "the next job knows it too");
}

#[test]
fn files_that_are_wrong_are_put_right() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    workshop.apply(&market(&["1301", "7203"], &days(3))).unwrap();
    publish_and_split(&mut workshop);
    fs::remove_file(desk.issue("1301")).unwrap();
    fs::write(desk.issue("7203"), "short").unwrap();
    fs::write(desk.issue("9999"), "of an issue that is gone").unwrap();
    fs::write(desk.issue("readme"), "no issue").unwrap();
    assert_eq!(split(&mut workshop, Some(days(3)[2])), (2, 0, 1));
    assert_eq!(lines(&reader(&desk.issue("7203")), "SELECT count(*) FROM daily"), ["3"]);
    assert!(!desk.issue("9999").exists() && desk.issue("readme").exists());
}

#[test]
fn a_stopped_split_goes_on_later() {
    let desk = Desk::new();
    let mut workshop = desk.open();
    // More than are noted at a time, and more than threads.
    let count = SPLIT_NOTE_EVERY + 2 * SPLIT_THREADS_MAX;
    let codes: Vec<String> = (0..count).map(|place| (1301 + place).to_string()).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    workshop.apply(&market(&codes, &days(1))).unwrap();
    workshop.publish(&mut go_on).unwrap();
    let stop_at = |limit: u64| {
        move |done: u64, _: u64, _: &'static str| {
            if done >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let stopped = workshop.split_to_individual(None, &mut stop_at(20));
    assert!(matches!(stopped, Err(StoreError::Cancelled)), "{stopped:?}");
    let there = codes.iter().filter(|code| desk.issue(code).exists()).count();
    // Each thread may have finished one more, and one may be in the hands of each.
    assert!((20..=20 + 2 * SPLIT_THREADS_MAX + 1).contains(&there), "{there} files");
    let all = count as u64;
    assert_eq!(split(&mut workshop, None), (all - there as u64, there as u64, 0));
    assert_eq!(split(&mut workshop, None), (0, all, 0));
    let tidy = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().contains("new");
    assert!(fs::read_dir(desk.issue("1301").parent().unwrap()).unwrap().all(|e| tidy(e.unwrap())));
}
