//! Recordings as a database of each issue: what is added, what stays, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use domain::TsNanos;
use domain::market_update::{
    AggressorSide, Board, Level, SideRule, Symbol, TimeSource, TradePrint,
};
use marketdata::board::{BoardRow, Writer};
use pricestore::sql::{column, quoted_path};

use super::*;

mod damage;

const SYMBOLS: [&str; 3] = ["7203", "130A", "25935"];

fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

fn row(date: JstDate, number: u64) -> BoardRow {
    let open = TsNanos::from_jst(date, domain::session::MORNING_OPEN).unwrap();
    let received = open.plus_nanos(number * 1_000_000 + 123);
    let symbol = Symbol::new(SYMBOLS[number as usize % 3]).unwrap();
    let stream_session_id = Arc::from("session");
    let (sequence_id, timestamp_ms) = (number, received.millis());
    if number.is_multiple_of(4) {
        return BoardRow::Trade(TradePrint {
            symbol,
            stream_session_id,
            sequence_id,
            received,
            timestamp_ms,
            price: 20_001_000 + number as i64,
            quantity: 1_000_000,
            side: AggressorSide::Sell,
            side_rule: Some(SideRule::AtBid),
            after_gap: number.is_multiple_of(8),
        });
    }
    BoardRow::Depth(Board {
        symbol,
        stream_session_id,
        sequence_id,
        received,
        timestamp_ms,
        timestamp_source: TimeSource::Venue,
        last_price: None,
        bids: vec![Level { price: 19_999_000, quantity: 5_000_000 }; (number % 11) as usize],
        asks: vec![],
    })
}

/// Records rows of a day as one segment.
fn record(folder: &Path, date: JstDate, numbers: impl Iterator<Item = u64>) {
    let mut writer = Writer::open(folder).unwrap();
    writer.recover(&mut |_| {}).unwrap();
    for number in numbers {
        writer.push(&row(date, number), Duration::ZERO, &mut |_| {}).unwrap();
    }
    writer.finish(&mut |_| {}).unwrap();
}

struct World {
    _folder: tempfile::TempDir,
    recordings: PathBuf,
    data: DataDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recordings = folder.path().join("recordings");
        let data = DataDir::new(folder.path().join("data"));
        record(&recordings, date("2026-01-05"), 0..60);
        record(&recordings, date("2026-01-05"), 60..90);
        record(&recordings, date("2026-01-06"), 0..40);
        Self { _folder: folder, recordings, data }
    }

    fn publish(&self) -> Result<BoardReport, StoreError> {
        publish_board(&self.data, &self.recordings, &mut |_, _, _| ControlFlow::Continue(()))
    }

    fn file(&self, code: &str) -> PathBuf {
        StorePaths::new(&self.data).board(code)
    }

    /// All rows of all files, as text.
    fn rows(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for code in SYMBOLS {
            let connection = Connection::open_in_memory().unwrap();
            let attach = format!("ATTACH {} AS issue (READ_ONLY)", quoted_path(&self.file(code)));
            connection.execute_batch(&attach).unwrap();
            for table in ["depth", "trades", "recorded_segment"] {
                let all = format!("SELECT '{table} ' || one::VARCHAR FROM issue.{table} AS one");
                rows.extend(column::<String>(&connection, &all).unwrap());
            }
        }
        rows
    }
}

fn counted(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_file_of_each_issue_has_its_rows_in_their_order() {
    let world = World::new();
    let report = world.publish().unwrap();
    assert_eq!((report.days, report.new_segments, report.written), (2, 3, 3));
    assert_eq!((report.depth + report.trades, report.trades), (130, 33));
    for (at, code) in SYMBOLS.iter().enumerate() {
        let connection = Connection::open(world.file(code)).unwrap();
        let others = format!(
            "SELECT count(*) FROM (SELECT code FROM depth UNION ALL SELECT code FROM trades)
               WHERE code <> '{code}'"
        );
        assert_eq!(counted(&connection, &others), 0);
        let of_day = |date: &str, numbers: u64, table: &str| -> Vec<u64> {
            let is_trade = |number: &u64| number.is_multiple_of(4) == (table == "trades");
            let own = (0..numbers).filter(|number| *number as usize % 3 == at).filter(is_trade);
            let midnight = TsNanos::from_jst(self::date(date), 0).unwrap().nanos();
            let found = format!(
                "SELECT sequence_id FROM {table} WHERE received_ns BETWEEN {midnight}
                   AND {midnight} + 86400000000000"
            );
            let found: Vec<u64> = column(&connection, &found).unwrap();
            assert_eq!(found, own.collect::<Vec<_>>(), "{code} {date} {table}");
            found
        };
        for table in ["depth", "trades"] {
            assert!(!of_day("2026-01-05", 90, table).is_empty());
            assert!(!of_day("2026-01-06", 40, table).is_empty());
        }
        let exact = "SELECT count(*) FROM trades WHERE price <> 2000.1 + sequence_id * 0.0001
            OR qty <> 100 OR after_gap <> (sequence_id % 8 = 0)";
        assert_eq!(counted(&connection, exact), 0);
        let levels =
            "SELECT count(*) FROM depth WHERE (bid_price_10 IS NULL) <> (sequence_id % 11 < 10)
            OR ask_price_1 IS NOT NULL OR received_ns % 1000000 <> 123";
        assert_eq!(counted(&connection, levels), 0);
    }
}

#[test]
fn what_is_published_is_left_alone_and_new_segments_are_added() {
    let world = World::new();
    world.publish().unwrap();
    let bytes = SYMBOLS.map(|code| fs::read(world.file(code)).unwrap());
    let report = world.publish().unwrap();
    assert_eq!((report.new_segments, report.written, report.unchanged), (0, 0, 3));
    assert_eq!(SYMBOLS.map(|code| fs::read(world.file(code)).unwrap()), bytes);
    // Only one issue has new rows.
    record(&world.recordings, date("2026-01-06"), (40..90).filter(|number| number % 3 == 1));
    let report = world.publish().unwrap();
    assert_eq!((report.new_segments, report.written, report.unchanged), (1, 1, 2));
    let whole = World { data: DataDir::new(world.data.path().with_extension("2")), ..world };
    let in_parts = World {
        _folder: tempfile::tempdir().unwrap(),
        recordings: whole.recordings.clone(),
        data: DataDir::new(whole.data.path().with_extension("")),
    };
    whole.publish().unwrap();
    assert_eq!(whole.rows(), in_parts.rows(), "the same recordings give the same rows");
}

#[test]
fn a_run_that_ends_anywhere_is_finished_by_the_next() {
    let finished = World::new();
    finished.publish().unwrap();
    let expected = finished.rows();
    for steps in 0..4 {
        let world = World::new();
        let mut left = steps;
        let stopped = publish_board(&world.data, &world.recordings, &mut |_, _, _| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(matches!(stopped, Err(StoreError::Cancelled)), steps < 3, "{steps}");
        world.publish().unwrap();
        assert_eq!(world.rows(), expected, "after {steps} files");
    }
}

/// The states of the disk at which a job can be killed while it gives a file its name.
#[test]
fn a_killed_job_is_finished_from_every_step() {
    for step in ["aside is half", "noted", "renamed"] {
        let world = World::new();
        world.publish().unwrap();
        let (paths, old) = (StorePaths::new(&world.data), fs::read(world.file("7203")).unwrap());
        let notes_before = fs::read(Notes::path(&paths)).unwrap();
        record(&world.recordings, date("2026-01-07"), 0..50);
        world.publish().unwrap();
        let expected = world.rows();
        let new = fs::read(world.file("7203")).unwrap();
        let after: Notes = serde_json::from_slice(&fs::read(Notes::path(&paths)).unwrap()).unwrap();
        // Nothing but the file of 7203 is under way; the others wait.
        for code in ["130A", "25935"] {
            fs::remove_file(world.file(code)).unwrap();
        }
        let mut notes: Notes = serde_json::from_slice(&notes_before).unwrap();
        let placing = after.files["7203"].clone();
        match step {
            "aside is half" => {
                fs::write(unfinished(&world.file("7203")), &new[..new.len() / 2]).unwrap();
                fs::write(world.file("7203"), &old).unwrap();
            }
            "noted" => {
                notes.placing.insert("7203".to_owned(), placing);
                fs::write(unfinished(&world.file("7203")), &new).unwrap();
                fs::write(world.file("7203"), &old).unwrap();
            }
            _ => drop(notes.placing.insert("7203".to_owned(), placing)),
        }
        notes.store(&paths).unwrap();
        let report = world.publish().unwrap();
        assert_eq!(report.made_again, ["130A", "25935"], "{step}");
        assert_eq!(report.written, if step == "renamed" { 2 } else { 3 }, "{step}");
        assert_eq!(world.rows(), expected, "{step}");
        let mut left: Vec<_> = fs::read_dir(paths.board_folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["130A.db", "25935.db", "7203.db"], "{step}");
    }
}

#[test]
fn a_damaged_file_is_made_again_while_its_recordings_are_there() {
    let world = World::new();
    world.publish().unwrap();
    let expected = world.rows();
    let mut bytes = fs::read(world.file("7203")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(world.file("7203"), &bytes).unwrap();
    assert_eq!(world.publish().unwrap().made_again, ["7203"]);
    assert_eq!(world.rows(), expected);
    // The recordings of a day were moved away: rows stay, but nothing can be made again.
    let day = BoardFolder::new(&world.recordings).day(date("2026-01-05"));
    fs::rename(day.path(), world.data.path().join("moved")).unwrap();
    assert_eq!(world.publish().unwrap().written, 0);
    record(&world.recordings, date("2026-01-07"), 0..50);
    assert_eq!(world.publish().unwrap().written, 3);
    assert!(world.rows().len() > expected.len());
    fs::remove_file(world.file("7203")).unwrap();
    let error = world.publish().unwrap_err().to_string();
    assert!(
        error
            .contains("7203 cannot be made again, because the recordings of 2026-01-05 are not in"),
        "{error}"
    );
}

#[test]
fn what_is_not_the_job_s_is_left_alone() {
    let world = World::new();
    fs::create_dir_all(StorePaths::new(&world.data).board_folder()).unwrap();
    fs::write(world.file("7203"), "theirs").unwrap();
    let error = world.publish().unwrap_err().to_string();
    assert!(error.contains("7203.db in it were not written by this job"), "{error}");
    assert_eq!(fs::read(world.file("7203")).unwrap(), b"theirs");
    assert!(!world.file("130A").exists());
    fs::remove_file(world.file("7203")).unwrap();
    world.publish().unwrap();
    // Another recording of a day that is published.
    let day = BoardFolder::new(&world.recordings).day(date("2026-01-06"));
    fs::remove_dir_all(day.path()).unwrap();
    record(&world.recordings, date("2026-01-06"), 0..77);
    let error = world.publish().unwrap_err().to_string();
    assert!(error.contains("it is another recording, or files of it are gone"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let none = publish_board(&world.data, empty.path(), &mut |_, _, _| ControlFlow::Continue(()));
    assert!(none.unwrap_err().to_string().contains("it has no folder `board`"));
}

#[test]
fn one_job_at_a_time_works_in_a_data_directory() {
    let world = World::new();
    let paths = StorePaths::new(&world.data);
    fs::create_dir_all(paths.work_folder()).unwrap();
    let lock = lock::take_job(&paths).unwrap();
    assert!(matches!(world.publish(), Err(StoreError::Locked { .. })));
    drop(lock);
    world.publish().unwrap();
    fs::create_dir_all(world.data.replica_folder()).unwrap();
    assert!(matches!(world.publish(), Err(StoreError::Replica(_))));
}

#[test]
fn symbols_that_no_file_can_be_named_after_are_told() {
    let world = World::new();
    let mut writer = Writer::open(&world.recordings).unwrap();
    for symbol in ["160070005", "COM1"] {
        let BoardRow::Trade(print) = row(date("2026-01-07"), 0) else { panic!() };
        let print = TradePrint { symbol: Symbol::new(symbol).unwrap(), ..print };
        writer.push(&BoardRow::Trade(print), Duration::ZERO, &mut |_| {}).unwrap();
    }
    writer.finish(&mut |_| {}).unwrap();
    drop(writer);
    assert_eq!(world.publish().unwrap().left_out, ["160070005", "COM1"]);
}

#[test]
fn notes_that_are_too_large_or_of_another_version_are_refused() {
    let world = World::new();
    world.publish().unwrap();
    let path = Notes::path(&StorePaths::new(&world.data));
    let whole = fs::read(&path).unwrap();
    let length = usize::try_from(BOARD_NOTES_BYTES_MAX).unwrap() + 1;
    let mut long = whole.clone();
    long.resize(length, b' ');
    for (bytes, expected) in [
        (long, "has more than"),
        (whole[..whole.len() / 2].to_vec(), "it says which boards are published"),
        (br#"{"version":2,"days":{},"files":{},"placing":{}}"#.to_vec(), "it has version 2"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = world.publish().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    fs::remove_file(&path).unwrap();
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let error = world.publish().unwrap_err().to_string();
        assert!(error.contains("it is no file"), "nobody waits for a writer: {error}");
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    let error = world.publish().unwrap_err().to_string();
    assert!(error.contains("it is no file"), "{error}");
}

/// A run that was ended early goes on with the same recordings only: files that have them and files that have
/// others of the same day would be a mixture.
#[test]
fn what_an_ended_run_has_begun_goes_on_with_the_same_recordings_only() {
    let world = World::new();
    let begun = publish_board(&world.data, &world.recordings, &mut |done, _, _| match done {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(begun, Err(StoreError::Cancelled)), "{begun:?}");
    let other = world.recordings.with_file_name("other");
    record(&other, date("2026-01-05"), 5..70);
    let mixed = publish_board(&world.data, &other, &mut |_, _, _| ControlFlow::Continue(()));
    let error = mixed.unwrap_err().to_string();
    assert!(error.contains("it is another recording"), "{error}");
    // More of the same is no other one.
    record(&world.recordings, date("2026-01-06"), 40..60);
    world.publish().unwrap();
    let whole = World::new();
    record(&whole.recordings, date("2026-01-06"), 40..60);
    whole.publish().unwrap();
    assert_eq!(world.rows(), whole.rows());
    assert!(world.publish().unwrap().written == 0);
}

/// A folder that is called like a column of a table changes no column.
#[test]
fn a_folder_with_the_name_of_a_column_is_a_folder() {
    let plain = World::new();
    plain.publish().unwrap();
    for name in ["symbol=9999", "qty=5"] {
        let world = World::new();
        let below = world.recordings.with_file_name(name).join("recordings");
        fs::create_dir_all(below.parent().unwrap()).unwrap();
        fs::rename(&world.recordings, &below).unwrap();
        publish_board(&world.data, &below, &mut |_, _, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(world.rows(), plain.rows(), "{name}");
    }
}
