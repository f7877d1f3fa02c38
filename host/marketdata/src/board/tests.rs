//! The recorder from its first row to the replay's reader: what is on the disk, and what a crash leaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use domain::market_update::{
    AggressorSide, Board, Level, SideRule, Symbol, TimeSource, TradePrint,
};
use domain::{JstDate, Random, TsNanos};

use super::day_files::DayFiles;
use super::folder::{BoardFolder, DayFolder};
use super::journal::{Journal, JournalError, JournalSummary, read_journal};
use super::recorder::{NotRecorded, Recorder};
use super::row::BoardRow;
use super::segment::seal;
use super::table::{read_depth, read_trade_prints};
use super::trades_file::{is_up_to_date, make_trades_file};
use super::writer::{Pace, RecorderError, RecorderEvent, Writer};
use crate::limits::{
    BOARD_GROUP_ROWS, BOARD_LEVELS_MAX, BOARD_VALUE_MAX, DAY_SEGMENTS_MAX, DAY_SYMBOLS_MAX,
    JOURNAL_BLOCK_BYTES_MAX, JOURNAL_ROWS_MAX, JOURNAL_TIME_MAX, RECORDED_DAYS_MAX,
    RECORDER_ROOM_BYTES, SESSION_ID_BYTES_MAX, SYNC_ROWS, SYNC_TIME,
};
use crate::parquet::ParquetError;
use crate::{ReadOptions, Selection, TradeFile, TradeRow, read_trades};

mod bad_starts;
mod ends;
mod trades_files;

/// Journals of ten rows and a second.
const SHORT: Pace = Pace {
    journal_rows: 10,
    journal_time: Duration::from_secs(60),
    sync_time: Duration::from_secs(1),
    end_time: Duration::from_secs(60),
};

fn date() -> JstDate {
    "2026-01-05".parse().unwrap()
}

/// So many milliseconds after 09:00 in Japan on the first day.
fn at(ms: u64) -> TsNanos {
    let open = TsNanos::from_jst(date(), domain::session::MORNING_OPEN).unwrap();
    open.plus_nanos(ms * 1_000_000)
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text).unwrap()
}

fn levels(random: &mut Random) -> Vec<Level> {
    let count = random.below(BOARD_LEVELS_MAX as u64 + 1);
    let number = |random: &mut Random| random.below(1 << 40) as i64;
    (0..count).map(|_| Level { price: number(random), quantity: number(random) }).collect()
}

/// Rows of three symbols: some order books, some trades, a millisecond apart.
fn row(number: u64) -> BoardRow {
    let mut random = Random::new(&[7, number]);
    let symbol = symbol(["7203", "6758", "130A"][random.place(3)]);
    let stream_session_id = Arc::from("session-1");
    let (sequence_id, received) = (number, at(number));
    if random.below(3) == 0 {
        return BoardRow::Trade(TradePrint {
            symbol,
            stream_session_id,
            sequence_id,
            received,
            timestamp_ms: at(number).millis() / 1_000 * 1_000,
            price: 10_000 * (2_000 + random.below(100) as i64),
            quantity: 1_000_000 * (1 + random.below(9) as i64),
            side: AggressorSide::ALL[random.place(AggressorSide::ALL.len())],
            side_rule: [None, Some(SideRule::AtAsk), Some(SideRule::AfterGap)][random.place(3)],
            after_gap: false,
        });
    }
    BoardRow::Depth(Board {
        symbol,
        stream_session_id,
        sequence_id,
        received,
        timestamp_ms: received.millis(),
        timestamp_source: TimeSource::ALL[random.place(2)],
        last_price: (random.below(4) > 0).then(|| random.below(1 << 40) as i64),
        bids: levels(&mut random),
        asks: levels(&mut random),
    })
}

/// A trade as the vendor's layout has it: symbol, milliseconds of the day's open, price, shares.
fn trade(text: &str, ms: u64, yen: i64, shares: i64) -> TradePrint {
    TradePrint {
        symbol: symbol(text),
        stream_session_id: Arc::from("s"),
        sequence_id: 1,
        received: at(ms),
        timestamp_ms: at(ms).millis(),
        price: yen * 10_000,
        quantity: shares * 10_000,
        side: AggressorSide::Buy,
        side_rule: None,
        after_gap: false,
    }
}

fn no_events(event: RecorderEvent) {
    assert!(matches!(event, RecorderEvent::Sealed(_) | RecorderEvent::TradesFile(_)), "{event:?}");
}

/// Records rows with a second between them, as the thread does, and ends.
fn record(folder: &Path, rows: impl IntoIterator<Item = BoardRow>) {
    let mut writer = Writer::open_with(folder, SHORT).unwrap();
    writer.recover(&mut no_events).unwrap();
    for row in rows {
        writer.push(&row, Duration::ZERO, &mut no_events).unwrap();
    }
    writer.finish(&mut no_events).unwrap();
}

/// Trades of the finished segments of the first day.
fn stored_trades(folder: &Path) -> usize {
    let mut count = 0;
    let segments = BoardFolder::new(folder).day(date()).finished().unwrap();
    for path in segments.into_iter().filter_map(|one| one.trades) {
        let take = |_| -> Result<(), ParquetError> {
            count += 1;
            Ok(())
        };
        read_trade_prints(&path, take).unwrap();
    }
    count
}

/// All rows of the finished segments of a folder, by their numbers.
fn stored(folder: &Path) -> BTreeMap<u64, BoardRow> {
    let mut rows = BTreeMap::new();
    let mut put = |number: u64, row: BoardRow| {
        assert!(rows.insert(number, row).is_none(), "row {number} is there twice");
    };
    for day in super::days(&BoardFolder::new(folder)).unwrap() {
        for path in day.finished().unwrap().into_iter().filter_map(|one| one.depth) {
            let take = |row: Board| -> Result<(), ParquetError> {
                assert_eq!(row.received.jst_date(), day.date());
                put(row.sequence_id, BoardRow::Depth(row));
                Ok(())
            };
            read_depth(&path, take).unwrap();
        }
        for path in day.finished().unwrap().into_iter().filter_map(|one| one.trades) {
            let take = |row: TradePrint| -> Result<(), ParquetError> {
                put(row.sequence_id, BoardRow::Trade(row));
                Ok(())
            };
            read_trade_prints(&path, take).unwrap();
        }
    }
    rows
}

/// The trades of a file in the vendor's layout, as the replay reads them.
fn vendor_rows(path: PathBuf) -> Vec<TradeRow> {
    let file = TradeFile::from_path(path).unwrap();
    let mut rows = Vec::new();
    let mut sink = |row: &TradeRow| rows.push(*row);
    let options = ReadOptions::default();
    read_trades(&file, &Selection::All, &options, &mut |_| ControlFlow::Continue(()), &mut sink)
        .unwrap();
    rows
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_recorded_is_there_once_in_its_order_and_value() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), (1..=95).map(row));
    let expected: BTreeMap<u64, BoardRow> = (1..=95).map(|number| (number, row(number))).collect();
    assert_eq!(stored(folder.path()), expected);
    let day = BoardFolder::new(folder.path()).day(date());
    let listed = day.list().unwrap();
    assert_eq!((listed.journals.len(), listed.last()), (0, 10), "{listed:?}");
}

#[test]
fn a_second_recording_of_a_day_goes_on_behind_the_first() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), (1..=15).map(row));
    record(folder.path(), (16..=40).map(row));
    assert!(stored(folder.path()).keys().copied().eq(1..=40));
}

#[test]
fn a_day_ends_at_midnight_in_japan() {
    let folder = tempfile::tempdir().unwrap();
    let midnight = TsNanos::from_jst("2026-01-06".parse().unwrap(), 0).unwrap();
    let print = |number, received| {
        BoardRow::Trade(TradePrint {
            sequence_id: number,
            received,
            ..trade("7203", 0, 2_000, 100)
        })
    };
    let before = TsNanos::from_nanos(midnight.nanos() - 1);
    record(folder.path(), [print(1, before), print(2, midnight), print(3, before)]);
    assert_eq!(files(&folder.path().join("board")), ["20260105", "20260106"]);
    assert_eq!(stored(folder.path()).len(), 3);
}

#[test]
fn rows_are_on_the_disk_after_a_second_or_a_full_block() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    let begin = Duration::from_secs(100);
    writer.push(&row(1), begin, &mut no_events).unwrap();
    assert_eq!((writer.kept(), writer.due()), (0, Some(begin + SYNC_TIME)));
    writer.tick(begin + SYNC_TIME - Duration::from_nanos(1), &mut no_events).unwrap();
    assert_eq!(writer.kept(), 0);
    writer.tick(begin + SYNC_TIME, &mut no_events).unwrap();
    assert_eq!(writer.kept(), 1);
    for number in 0..SYNC_ROWS as u64 {
        assert_eq!(writer.kept(), 1);
        writer.push(&row(2 + number), begin + SYNC_TIME, &mut no_events).unwrap();
    }
    assert_eq!(writer.kept(), 1 + SYNC_ROWS as u64);
    drop(writer);
    // What is on the disk is there without an end of the writer.
    let journal = BoardFolder::new(folder.path()).day(date()).journal(1);
    let mut count = 0;
    let summary = read_journal(&journal, |_| {
        count += 1;
        Ok::<(), JournalError>(())
    });
    assert_eq!(summary.unwrap(), JournalSummary { rows: count, ..Default::default() });
    assert_eq!(count, 1 + SYNC_ROWS as u64);
}

#[test]
fn journal_rows_max_is_what_a_journal_has_before_it_becomes_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    let push = |writer: &mut Writer, number| {
        writer.push(&row(number), Duration::ZERO, &mut no_events).unwrap();
    };
    (1..JOURNAL_ROWS_MAX).for_each(|number| push(&mut writer, number));
    let day = BoardFolder::new(folder.path()).day(date());
    assert!(day.journal(1).exists(), "one row is missing");
    (0..2).for_each(|more| push(&mut writer, JOURNAL_ROWS_MAX + more));
    assert!(!day.journal(1).exists() && day.journal(2).exists());
    assert_eq!(stored(folder.path()).len() as u64, JOURNAL_ROWS_MAX);
}

#[test]
fn an_old_journal_becomes_files_though_it_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open_with(folder.path(), SHORT).unwrap();
    writer.push(&row(1), Duration::ZERO, &mut no_events).unwrap();
    writer.tick(SHORT.sync_time, &mut no_events).unwrap();
    assert_eq!(writer.due(), Some(SHORT.journal_time));
    assert_eq!(stored(folder.path()).len(), 0, "an open segment is not read");
    writer.tick(SHORT.journal_time, &mut no_events).unwrap();
    assert_eq!(stored(folder.path()).len(), 1);
}

/// Nothing comes on a Saturday: the trades of Friday are written at its end all the same.
#[test]
fn the_trades_of_a_day_are_written_at_midnight_though_nothing_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = BoardFolder::new(folder.path()).trades_file(date());
    let midnight = Duration::from_secs(15 * 3_600);
    let print = BoardRow::Trade(trade("7203", 0, 2_000, 100));
    let mut writer = Writer::open(folder.path()).unwrap();
    writer.push(&print, Duration::ZERO, &mut no_events).unwrap();
    writer.tick(JOURNAL_TIME_MAX, &mut no_events).unwrap();
    assert_eq!(writer.due(), Some(midnight), "the segment has ended, the day has not");
    writer.tick(midnight - Duration::from_nanos(1), &mut no_events).unwrap();
    assert!(!path.exists());
    writer.tick(midnight, &mut no_events).unwrap();
    assert_eq!((vendor_rows(path.clone()).len(), writer.due()), (1, None));
    // A row of that day that waited over midnight, and a segment that is open then.
    let late = TsNanos::from_jst("2026-01-06".parse().unwrap(), 0).unwrap().nanos() - 5;
    let print = TradePrint { received: TsNanos::from_nanos(late), ..trade("7203", 1, 2_001, 100) };
    writer.push(&BoardRow::Trade(print), midnight, &mut no_events).unwrap();
    assert_eq!(writer.due(), Some(midnight + Duration::from_nanos(5)));
    writer.tick(midnight + Duration::from_nanos(5), &mut no_events).unwrap();
    assert_eq!(stored_trades(folder.path()), 2);
    // It was not made in a session, so it stands in the Parquet files alone.
    let board = BoardFolder::new(folder.path());
    assert!(is_up_to_date(&board, &board.day(date())).unwrap());
    assert_eq!((vendor_rows(path).len(), writer.due()), (1, None));
}

#[test]
fn the_longest_rows_fill_a_block_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let level = Level { price: BOARD_VALUE_MAX, quantity: -BOARD_VALUE_MAX };
    let side = vec![level; BOARD_LEVELS_MAX];
    let longest = Board {
        symbol: symbol("ABCDEFGH9"),
        stream_session_id: "x".repeat(SESSION_ID_BYTES_MAX).into(),
        sequence_id: u64::try_from(i64::MAX).unwrap(),
        received: at(0),
        timestamp_ms: at(0).millis(),
        timestamp_source: TimeSource::Received,
        last_price: Some(-BOARD_VALUE_MAX),
        bids: side.clone(),
        asks: side,
    };
    let longest = BoardRow::Depth(longest);
    assert!(longest.is_sound());
    let path = folder.path().join("000001.journal");
    let mut journal = Journal::create(path.clone()).unwrap();
    while !journal.push(&longest) {}
    assert_eq!(journal.waiting(), SYNC_ROWS);
    journal.sync().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < JOURNAL_BLOCK_BYTES_MAX as u64);
    let read = |found: BoardRow| {
        assert_eq!(found, longest);
        Ok::<(), JournalError>(())
    };
    assert_eq!(read_journal(&path, read).unwrap().rows, SYNC_ROWS as u64);
}

#[test]
fn rows_beyond_the_limits_are_not_taken() {
    let sound = trade("7203", 0, 2_000, 100);
    let is_sound = |change: fn(&mut TradePrint)| {
        let mut print = sound.clone();
        change(&mut print);
        BoardRow::Trade(print).is_sound()
    };
    assert!(is_sound(|_| {}));
    assert!(!is_sound(|print| print.price = BOARD_VALUE_MAX + 1));
    assert!(!is_sound(|print| print.quantity = -BOARD_VALUE_MAX - 1));
    assert!(!is_sound(|print| print.stream_session_id = "".into()));
    assert!(!is_sound(|print| {
        print.stream_session_id = "x".repeat(SESSION_ID_BYTES_MAX + 1).into();
    }));
    assert!(!is_sound(|print| print.sequence_id = u64::MAX));
    assert!(!is_sound(|print| print.timestamp_ms = u64::MAX / 1_000_000));
    for text in ["720", "7203a", "ABCDEFGHIJ", "720\n", ""] {
        assert_eq!(Symbol::new(text), None, "{text}");
    }
    let books = (1..).map(row);
    let mut books = books.filter_map(|row| match row {
        BoardRow::Depth(row) => Some(row),
        BoardRow::Trade(_) => None,
    });
    let mut depth = books.next().unwrap();
    depth.bids = vec![Level { price: 1, quantity: 1 }; BOARD_LEVELS_MAX + 1];
    assert!(!BoardRow::Depth(depth).is_sound());
}

/// A journal of three blocks of one row each, and where each begins.
fn three_blocks(path: &Path) -> Vec<u64> {
    let mut journal = Journal::create(path.to_owned()).unwrap();
    let mut starts = Vec::new();
    for number in 1..=3 {
        starts.push(fs::metadata(path).unwrap().len());
        journal.push(&row(number));
        journal.sync().unwrap();
    }
    starts
}

fn numbers(path: &Path) -> (Vec<u64>, JournalSummary) {
    let mut numbers = Vec::new();
    let summary = read_journal(path, |row| {
        numbers.push(match row {
            BoardRow::Depth(row) => row.sequence_id,
            BoardRow::Trade(row) => row.sequence_id,
        });
        Ok::<(), JournalError>(())
    });
    (numbers, summary.unwrap())
}

#[test]
fn a_torn_tail_of_any_length_is_cut_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000001.journal");
    let starts = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() as u64 {
        fs::write(&path, &whole[..length as usize]).unwrap();
        let (found, summary) = numbers(&path);
        let expected = starts[1..].iter().filter(|start| length >= **start).count() as u64;
        assert!(found.iter().copied().eq(1..=expected), "{length}: {found:?}");
        let begin = if length < starts[0] { 0 } else { starts[expected as usize] };
        assert_eq!(summary.torn_bytes, length - begin, "{length}");
        assert_eq!(summary.damaged_bytes, 0);
    }
}

#[test]
fn a_damaged_block_costs_its_own_rows_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000001.journal");
    let starts = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    for place in starts[1]..starts[2] {
        let mut damaged = whole.clone();
        damaged[place as usize] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let (found, summary) = numbers(&path);
        assert_eq!(found, [1, 3], "{place}");
        assert_eq!((summary.damaged_bytes, summary.torn_bytes), (starts[2] - starts[1], 0));
    }
}

/// A flipped byte of the last block is no crash. One in its length may look like a block that was cut short,
/// and zeros like what a power cut leaves of one.
#[test]
fn a_damaged_last_block_is_not_told_as_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000001.journal");
    let starts = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    let last = whole.len() as u64 - starts[2];
    let lengths = starts[2] + 4..starts[2] + 8;
    for place in (starts[2]..whole.len() as u64).filter(|place| !lengths.contains(place)) {
        let mut damaged = whole.clone();
        damaged[place as usize] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let (found, summary) = numbers(&path);
        assert_eq!(found, [1, 2], "{place}");
        assert_eq!((summary.damaged_bytes, summary.torn_bytes), (last, 0), "{place}");
    }
    let mut shorter = whole.clone();
    shorter[starts[2] as usize + 4] ^= 1 << whole[starts[2] as usize + 4].trailing_zeros();
    fs::write(&path, &shorter).unwrap();
    assert_eq!(numbers(&path).1.damaged_bytes, last, "a block that says less than is there");
    for zeros in [1, 12, 100_000] {
        fs::write(&path, [&*whole, &*vec![0; zeros]].concat()).unwrap();
        let summary = numbers(&path).1;
        assert_eq!((summary.damaged_bytes, summary.torn_bytes), (0, zeros as u64));
    }
}

#[test]
fn a_killed_sealing_is_done_again_from_any_step() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    let count = 2 * BOARD_GROUP_ROWS as u64 + 77;
    fs::create_dir_all(day.path()).unwrap();
    let mut journal = Journal::create(day.journal(1)).unwrap();
    for number in 1..=count {
        if journal.push(&row(number)) {
            journal.sync().unwrap();
        }
    }
    journal.sync().unwrap();
    let bytes = fs::read(day.journal(1)).unwrap();
    seal(&day, 1, &|| false).unwrap();
    let (depth, trades) = (fs::read(day.depth(1)).unwrap(), fs::read(day.trades(1)).unwrap());
    // Before anything, after a half file, after the order books, after both.
    for step in 0..4 {
        fs::write(day.journal(1), &bytes).unwrap();
        let keep = |is_there: bool, path: &Path| is_there || fs::remove_file(path).is_err();
        assert_eq!(keep(step >= 2, &day.depth(1)), step >= 2);
        assert_eq!(keep(step >= 3, &day.trades(1)), step >= 3);
        if step == 1 {
            fs::write(day.path().join(".kumiki-half"), &depth[..depth.len() / 2]).unwrap();
        }
        assert_eq!(stored(folder.path()).len(), 0, "step {step}: nothing is read before its end");
        let mut told = Vec::new();
        let mut writer = Writer::open(folder.path()).unwrap();
        writer.recover(&mut |event| told.push(event)).unwrap();
        assert!(
            matches!(&told[0], RecorderEvent::Recovered(report) if report.journal.rows == count),
            "{told:?}"
        );
        assert_eq!(fs::read(day.depth(1)).unwrap(), depth, "step {step}");
        assert_eq!(fs::read(day.trades(1)).unwrap(), trades, "step {step}");
        assert_eq!(files(day.path()), ["depth-000001.parquet", "trades-000001.parquet"]);
    }
    assert_eq!(stored(folder.path()).len() as u64, count);
}

/// The process that [`a_killed_recorder_loses_nothing_that_was_on_the_disk`] kills.
#[test]
#[ignore = "runs until it is killed"]
fn records_until_it_is_killed() {
    let folder = std::env::var("KUMIKI_TEST_RECORD").unwrap();
    let mut writer = Writer::open_with(Path::new(&folder), SHORT).unwrap();
    let mut ignore = |_| {};
    writer.recover(&mut ignore).unwrap();
    let first = stored(Path::new(&folder)).len() as u64 + 1;
    for number in first.. {
        let now = Duration::from_millis(400 * (number - first));
        writer.push(&row(number), now, &mut ignore).unwrap();
        println!("kept {}", first - 1 + writer.kept());
    }
}

#[test]
fn a_killed_recorder_loses_nothing_that_was_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::of_seed(seed);
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "board::tests::records_until_it_is_killed"])
            .args(["--ignored", "--nocapture"])
            .env("KUMIKI_TEST_RECORD", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = 20 + random.below(60);
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = (&mut output).take(usize::try_from(lines).unwrap());
        assert_eq!(told.filter(|line| line.is_ok()).count() as u64, lines, "the process ended");
        child.kill().unwrap();
        child.wait().unwrap();
        // What it told before it died is read too.
        let kept = output.filter_map(|line| line.ok()?.strip_prefix("kept ")?.parse::<u64>().ok());
        let kept = kept.last().unwrap_or(0);
        Writer::open_with(folder.path(), SHORT).unwrap().recover(&mut |_| {}).unwrap();
        let rows = stored(folder.path());
        assert!(rows.len() as u64 >= kept, "seed {seed}, round {round}: {} of {kept}", rows.len());
        let last = rows.len() as u64;
        assert!(rows.into_iter().eq((1..=last).map(|number| (number, row(number)))));
        assert!(
            is_up_to_date(
                &BoardFolder::new(folder.path()),
                &BoardFolder::new(folder.path()).day(date())
            )
            .unwrap()
        );
    }
}

#[test]
fn a_folder_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let first = Writer::open(folder.path()).unwrap();
    assert!(matches!(Writer::open(folder.path()), Err(RecorderError::Locked(_))));
    let error = Recorder::start(folder.path(), no_events).unwrap_err().to_string();
    assert!(error.ends_with("end that one, or set another `record_dir`"), "{error}");
    drop(first);
    Writer::open(folder.path()).unwrap();
}

#[test]
fn segments_and_days_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    let day = board.day(date());
    fs::create_dir_all(day.path()).unwrap();
    fs::write(day.depth(DAY_SEGMENTS_MAX), "").unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    let error = writer.push(&row(1), Duration::ZERO, &mut no_events).unwrap_err();
    assert!(matches!(error, RecorderError::TooManySegments(path) if path == day.path()));
    fs::remove_file(day.depth(DAY_SEGMENTS_MAX)).unwrap();
    let dates = date().iter_days().take(RECORDED_DAYS_MAX + 1).collect::<Vec<_>>();
    for date in &dates[..RECORDED_DAYS_MAX] {
        fs::create_dir_all(board.day(*date).path()).unwrap();
    }
    assert_eq!(super::days(&board).unwrap().len(), RECORDED_DAYS_MAX);
    fs::create_dir_all(board.day(dates[RECORDED_DAYS_MAX]).path()).unwrap();
    let error = super::days(&board).unwrap_err().to_string();
    assert!(error.ends_with("has more than 2000 days; move old ones away"), "{error}");
}

#[test]
fn the_thread_keeps_what_it_takes_and_counts_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (events, told) = channel();
    let tell = move |event| drop(events.send(event));
    let recorder = Recorder::start_with(folder.path(), SHORT, 64, tell).unwrap();
    let mut taken = Vec::new();
    let mut refused = 0;
    for number in 1..=20_000 {
        match recorder.try_record(row(number)) {
            Ok(()) => taken.push(number),
            Err(NotRecorded::Full) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(refused > 0, "64 rows were never waiting");
    let mut unsound = trade("7203", 0, 1, 1);
    unsound.sequence_id = u64::MAX;
    assert_eq!(recorder.try_record(BoardRow::Trade(unsound)), Err(NotRecorded::Unsound));
    let counts = recorder.stop();
    assert_eq!(counts.taken, taken.len() as u64);
    assert_eq!((counts.kept, counts.refused), (counts.taken, refused + 1));
    let kept = counts.kept;
    assert_eq!(
        counts.to_string(),
        format!(
            "{kept} of {kept} accepted rows are on the disk, {} rows were refused",
            refused + 1
        )
    );
    assert!(stored(folder.path()).into_keys().eq(taken));
    let dropped: u64 = told
        .iter()
        .map(|event| if let RecorderEvent::Dropped { rows } = event { rows } else { 0 })
        .sum();
    assert_eq!(dropped, refused + 1);
}

/// What is not taken by the thousand is told once in a while, and the rest at the end.
#[test]
fn recorder_tell_time_is_between_two_words_about_rows_that_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (events, told) = channel();
    let tell = move |event| drop(events.send(event));
    let recorder = Recorder::start_with(folder.path(), SHORT, 64, tell).unwrap();
    let refuse = |rows: u64| {
        for _ in 0..rows {
            let unsound = TradePrint { sequence_id: u64::MAX, ..trade("7203", 0, 1, 1) };
            assert_eq!(recorder.try_record(BoardRow::Trade(unsound)), Err(NotRecorded::Unsound));
        }
        // The thread looks at what was refused when a row comes.
        recorder.try_record(row(rows)).unwrap();
    };
    let dropped = |event: &RecorderEvent| match event {
        RecorderEvent::Dropped { rows } => Some(*rows),
        _ => None,
    };
    refuse(1);
    assert_eq!(told.iter().find_map(|event| dropped(&event)), Some(1));
    refuse(2);
    refuse(3);
    // Rows that come later are taken first: these two were looked at by then.
    while recorder.counts().kept < 3 {
        domain::clock::sleep(Duration::from_millis(1));
    }
    let so_far: Vec<_> = told.try_iter().filter_map(|event| dropped(&event)).collect();
    assert_eq!(so_far, [0; 0], "a minute is not over");
    assert_eq!(recorder.stop().refused, 6);
    assert_eq!(told.iter().filter_map(|event| dropped(&event)).collect::<Vec<_>>(), [5]);
}

/// A folder without a place for the next journal stands for a disk that takes no more.
#[test]
fn a_disk_that_takes_no_more_ends_the_recording_with_one_event() {
    let folder = tempfile::tempdir().unwrap();
    let (events, told) = channel();
    let tell = move |event| drop(events.send(event));
    let day = BoardFolder::new(folder.path()).day(date());
    let recorder = Recorder::start_with(folder.path(), SHORT, 64, tell).unwrap();
    for number in 1..=10 {
        recorder.try_record(row(number)).unwrap();
    }
    let sealed = told.recv().unwrap();
    assert!(matches!(sealed, RecorderEvent::Sealed(report) if report.journal.rows == 10));
    fs::remove_dir_all(day.path()).unwrap();
    fs::write(day.path(), "in the way").unwrap();
    recorder.try_record(row(11)).unwrap();
    let RecorderEvent::Stopped { why, lost } = told.recv().unwrap() else { panic!() };
    assert!(why.starts_with("cannot make "), "{why}");
    assert!(why.ends_with("; check the disk and start the engine again"), "{why}");
    assert_eq!(lost, 1);
    assert_eq!(recorder.try_record(row(12)), Err(NotRecorded::Stopped));
    let counts = recorder.stop();
    assert_eq!((counts.taken, counts.kept, counts.refused), (11, 10, 1));
    assert_eq!(told.iter().count(), 0, "one event and no more");
}

/// The process that [`a_full_disk_keeps_what_is_there`] gives small files only.
#[test]
#[ignore = "needs a limit of the size of files"]
fn records_until_no_file_grows() {
    let folder = std::env::var("KUMIKI_TEST_RECORD").unwrap();
    let (events, told) = channel();
    let recorder = Recorder::start(Path::new(&folder), move |event| drop(events.send(event)));
    let recorder = match recorder {
        Ok(recorder) => recorder,
        Err(error) => return println!("refused {error}"),
    };
    for number in 1.. {
        match recorder.try_record(row(number)) {
            Ok(()) => {}
            Err(NotRecorded::Full) => std::thread::yield_now(),
            Err(_) => break,
        }
    }
    let counts = recorder.stop();
    let stopped: Vec<_> =
        told.iter().filter(|event| matches!(event, RecorderEvent::Stopped { .. })).collect();
    println!("kept {}", counts.kept);
    println!("stopped {stopped:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    // The recorder with files of at most so many blocks of 512 bytes.
    let run = |blocks: usize| {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "board::tests::records_until_no_file_grows"])
            .args(["--ignored", "--nocapture"])
            .env("KUMIKI_TEST_RECORD", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        move |start: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(start));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        }
    };
    let line = run(RECORDER_ROOM_BYTES / 512);
    let stopped = line("stopped ");
    assert_eq!(stopped.matches("Stopped").count(), 1, "{stopped}");
    assert!(stopped.contains("File too large"), "{stopped}");
    let kept = line("kept ").parse::<u64>().unwrap();
    assert!(kept > 0 && kept.is_multiple_of(SYNC_ROWS as u64), "{kept}");
    // Without room nothing begins; the journal stays.
    for blocks in [64, RECORDER_ROOM_BYTES / 512 - 1] {
        let refused = run(blocks)("refused ");
        assert!(refused.starts_with("cannot write the first 8 MiB in "), "{refused}");
        assert!(refused.contains("File too large"), "{refused}");
    }
    assert_eq!(files(&folder.path().join("board")), ["20260105"]);
    assert_eq!(stored(folder.path()).len(), 0);
    let journal = BoardFolder::new(folder.path()).day(date()).journal(1);
    assert_eq!(numbers(&journal).1, JournalSummary { rows: kept, ..Default::default() });
    Writer::open(folder.path()).unwrap().recover(&mut |_| {}).unwrap();
    assert!(stored(folder.path()).len() as u64 == kept);
}
