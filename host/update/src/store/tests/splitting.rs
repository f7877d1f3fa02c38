//! The per-issue databases.

use std::fs;
use std::time::SystemTime;

use super::*;
use crate::price_store::Split;
use crate::store::limits::{SPLIT_NOTE_EVERY, SPLIT_THREADS_MAX};
use crate::store::{Removals, StoreError};

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
            let rows = lines(&own, &format!("SELECT * FROM {table} ORDER BY date"));
            let expected = format!("SELECT * FROM {table} WHERE code = '{code}' ORDER BY date");
            assert_eq!(rows, lines(&mother, &expected), "{table} of {code}");
            assert_eq!(rows.len(), 30);
        }
        assert!(!fixture.issue(code).with_extension("db.wal").exists());
    }
}

/// Also into one of a form that older programs can open: all that is said of a table goes with the copy.
#[test]
fn what_is_published_can_be_copied_into_any_database() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301", "7203"], &days(3))).unwrap();
    publish_and_split(&mut store);
    let connection = Connection::open_in_memory().unwrap();
    for (number, version) in ["v0.10.2", "v1.2.0", "v1.5.0", "latest"].into_iter().enumerate() {
        for (name, file) in [("a", fixture.data.mother()), ("b", fixture.issue("7203"))] {
            let copy = fixture.folder.path().join(format!("{name}{number}.db"));
            let made = connection.execute_batch(&format!(
                "ATTACH '{}' AS ours (READ_ONLY); ATTACH '{}' AS theirs (STORAGE_VERSION '{version}');
                 COPY FROM DATABASE ours TO theirs; DETACH ours; DETACH theirs",
                file.display(),
                copy.display()
            ));
            made.unwrap_or_else(|error| panic!("{name} as {version}: {error}"));
            assert_eq!(
                lines(&reader(&copy), "SELECT * FROM daily ORDER BY ALL"),
                lines(&reader(&file), "SELECT * FROM daily ORDER BY ALL"),
            );
        }
    }
}

/// A walk of prices that is the same on every machine.
fn ten_years(code: &str, seed: u64) -> Vec<DailyRow> {
    let mut state = seed;
    let mut number = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % below).unwrap()
    };
    let mut yen = 2_000;
    let days = day("2016-01-04").iter_days().take(2_450);
    let of_day = |date| {
        yen = (yen + number(41) - 20).max(100);
        let (more, less, lots) = (number(30), number(30), number(20_000));
        let mut one = row(code, date, yen);
        (one.high, one.low) =
            (Some(Price::from_yen(yen + more)), Some(Price::from_yen(yen - less)));
        one.volume = Some(100 * lots.unsigned_abs());
        one.turnover = Some(Money::from_yen(yen * 100 * lots));
        one
    };
    days.map(of_day).collect()
}

#[test]
fn a_file_is_as_the_combined_database_and_small() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let codes: Vec<String> = (0..35).map(|n| (1301 + n).to_string()).collect();
    for (code, seed) in codes.iter().zip(7..) {
        store.apply(&ten_years(code, seed)).unwrap();
    }
    store.publish(&mut go_on).unwrap();
    assert_eq!(split(&mut store, None), (codes.len() as u64, 0, 0));
    let mother = reader(&fixture.data.mother());
    for code in &codes {
        let own = reader(&fixture.issue(code));
        for table in ["daily", "adjusted"] {
            let columns = format!("SELECT column_name, column_type FROM (DESCRIBE {table})");
            assert_eq!(lines(&own, &columns), lines(&mother, &columns), "{table}");
        }
        let expected = format!("SELECT * FROM daily WHERE code = '{code}' ORDER BY date");
        assert_eq!(lines(&own, "SELECT * FROM daily"), lines(&mother, &expected), "{code}");
        // Header and eleven blocks at most: notes and rows. In a form for older programs, small blocks have no packed doubles and
        // no packed dates.
        let bytes = fs::metadata(fixture.issue(code)).unwrap().len();
        assert!(bytes <= 12_288 + 11 * 16_384, "{code} has {bytes} bytes");
        let unpacked = "SELECT DISTINCT column_name FROM pragma_storage_info('daily')
            WHERE compression = 'Uncompressed' AND segment_type NOT IN ('VALIDITY', 'DOUBLE', 'DATE')";
        assert_eq!(lines(&own, unpacked), Vec::<String>::new(), "{code}");
    }
    // Some of a piece are written again, each with its own rows.
    for code in [&codes[1], &codes[3], &codes[4]] {
        fs::remove_file(fixture.issue(code)).unwrap();
    }
    assert_eq!(split(&mut store, None), (3, codes.len() as u64 - 3, 0));
    for code in [&codes[1], &codes[3], &codes[4]] {
        let codes =
            lines(&reader(&fixture.issue(code)), "SELECT code, count(*) FROM daily GROUP BY 1");
        assert_eq!(codes, [format!("{code}|2450")]);
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

/// Of an even number of rows the hashes of a value that all have take each other out.
#[test]
fn a_value_that_changes_in_all_rows_alike_is_seen() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let mut rows = market(&["1301"], &days(4));
    for (volume, expected) in [(44, (1, 0, 0)), (54, (1, 0, 0)), (54, (0, 1, 0))] {
        rows.iter_mut().for_each(|row| row.volume = Some(volume));
        store.apply(&rows).unwrap();
        store.publish(&mut go_on).unwrap();
        assert_eq!(split(&mut store, None), expected, "{volume}");
        let volumes = lines(&reader(&fixture.issue("1301")), "SELECT DISTINCT volume FROM daily");
        assert_eq!(volumes, [format!("{volume}.0")]);
    }
}

#[test]
fn files_that_are_wrong_are_put_right() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301", "7203"], &days(3))).unwrap();
    publish_and_split(&mut store);
    fs::remove_file(fixture.issue("1301")).unwrap();
    fs::write(fixture.issue("7203"), "short").unwrap();
    fs::write(fixture.issue("9999"), "somebody else's").unwrap();
    fs::write(fixture.issue("readme"), "no issue").unwrap();
    assert_eq!(split(&mut store, Some(days(3)[2])), (2, 0, 0));
    assert_eq!(lines(&reader(&fixture.issue("7203")), "SELECT count(*) FROM daily"), ["3"]);
    assert!(fixture.issue("9999").exists() && fixture.issue("readme").exists());
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
    // What was written by then gets its name too, and no thread begins another file.
    assert!((20..count).contains(&there), "{there} files");
    let all = count as u64;
    assert_eq!(split(&mut store, None), (all - there as u64, there as u64, 0));
    assert_eq!(split(&mut store, None), (0, all, 0));
    let tidy = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().contains("new");
    assert!(
        fs::read_dir(fixture.issue("1301").parent().unwrap()).unwrap().all(|e| tidy(e.unwrap()))
    );
}

/// A store that has only these issues, in the folder of another one whose own database is gone.
fn made_anew(fixture: &Fixture, codes: &[&str], dates: &[JstDate]) -> WorkDatabase {
    for file in [fixture.data.mother(), fixture.data.path().join("work").join("mother.db")] {
        fs::remove_file(file).unwrap();
    }
    let mut store = fixture.open();
    store.apply(&market(codes, dates)).unwrap();
    store.publish(&mut go_on).unwrap();
    store
}

#[test]
fn what_others_wrote_is_neither_removed_nor_replaced_by_less() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301", "7203", "9984"], &days(5))).unwrap();
    publish_and_split(&mut store);
    drop(store);
    let before = ["1301", "7203", "9984"].map(|code| fs::read(fixture.issue(code)).unwrap());

    // One issue with fewer days: two files are of issues that this job knows nothing of, and the
    // third has more than it.
    let mut store = made_anew(&fixture, &["7203"], &days(5)[3..]);
    let error = store.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { count: 1, .. }), "{error}");
    assert!(error.to_string().contains("7203"), "{error}");
    let after = ["1301", "7203", "9984"].map(|code| fs::read(fixture.issue(code)).unwrap());
    assert!(before == after);

    // With all of its days the file is taken over.
    store.apply(&market(&["7203"], &days(6))).unwrap();
    store.publish(&mut go_on).unwrap();
    assert_eq!(split(&mut store, None), (1, 0, 0));
    assert_eq!(lines(&reader(&fixture.issue("7203")), "SELECT count(*) FROM daily"), ["6"]);
    assert!(fixture.issue("1301").exists() && fixture.issue("9984").exists());
    // One that somebody else put in the place of ours is not ours any more.
    let (ours, theirs) = (fixture.issue("7203"), fixture.issue("9984"));
    let other = Connection::open(&theirs).unwrap();
    other.execute_batch("INSERT INTO daily (date, code) VALUES ('2020-01-06', '9984')").unwrap();
    drop(other);
    let other = Connection::open(&ours).unwrap();
    other.execute_batch("CREATE TABLE notes AS FROM range(100000)").unwrap();
    drop(other);
    store.apply(&market(&["7203"], &days(7))).unwrap();
    store.publish(&mut go_on).unwrap();
    let before = fs::read(&ours).unwrap();
    let error = store.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { count: 1, .. }), "{error}");
    assert!(fs::read(&ours).unwrap() == before);
    let other = Connection::open(&ours).unwrap();
    other.execute_batch("DROP TABLE notes").unwrap();
    drop(other);
    assert_eq!(split(&mut store, None), (1, 0, 0));
    // A file that is no database is not ours either.
    fs::write(fixture.issue("9984"), "somebody else's").unwrap();
    store.apply(&market(&["9984"], &days(1))).unwrap();
    store.publish(&mut go_on).unwrap();
    let error = store.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { count: 1, .. }), "{error}");
}

#[test]
fn many_issues_are_removed_only_when_it_is_said() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let codes: Vec<String> = (0..200).map(|place| (1301 + place).to_string()).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    store.apply(&market(&codes, &days(1))).unwrap();
    publish_and_split(&mut store);
    let lose = |store: &mut WorkDatabase, count: usize| {
        let lost = codes[..count].join("', '");
        store.execute(&format!(
            "DELETE FROM work.daily WHERE code IN ('{lost}');
             UPDATE work.state SET generation = generation + 1"
        ));
        store.publish(&mut go_on).unwrap();
    };
    lose(&mut store, 2);
    assert_eq!(split(&mut store, None), (0, 198, 2), "one in a hundred");
    lose(&mut store, 4);
    let error = store.split_to_individual(None, &mut go_on).unwrap_err();
    assert!(matches!(error, StoreError::ManyRemovals { gone: 2, of: 198, .. }), "{error}");
    assert!(error.to_string().contains("--remove-issues"), "{error}");
    assert!(fixture.issue(codes[3]).exists());
    drop(store);
    let mut store = fixture.open().removing(Removals::Any);
    assert_eq!(split(&mut store, None), (0, 196, 2));
    assert!(!fixture.issue(codes[3]).exists());
}
