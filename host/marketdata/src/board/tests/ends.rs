//! What comes to the disk while a large day is written, when an engine ends then, and when somebody takes away
//! what is written.

use std::sync::mpsc::Receiver;

use domain::clock::{Stopwatch, sleep};

use super::*;

/// Segments of a large day, and trades of each.
const SEGMENTS: u32 = 20;
const SEGMENT_TRADES: u64 = 50_000;

/// Rows are on the disk soon, and an end waits long.
const SOON: Pace = Pace {
    journal_rows: 1 << 20,
    journal_time: Duration::from_secs(3_600),
    sync_time: Duration::from_millis(10),
    end_time: Duration::from_secs(60),
};

/// A day of a million trades, the file of which has those of the first segment only.
fn large_day(folder: &Path) -> DayFolder {
    let mut writer = Writer::open(folder).unwrap();
    for number in 0..SEGMENT_TRADES {
        let print = trade(["7203", "6758"][number as usize % 2], number, 2_000, 100);
        writer.push(&BoardRow::Trade(print), Duration::ZERO, &mut no_events).unwrap();
    }
    writer.finish(&mut no_events).unwrap();
    let day = BoardFolder::new(folder).day(date());
    for segment in 2..=SEGMENTS {
        fs::copy(day.trades(1), day.trades(segment)).unwrap();
    }
    day
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let watch = Stopwatch::start();
    while !is_so() {
        assert!(watch.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(1));
    }
}

fn started(folder: &Path, pace: Pace) -> (Recorder, Receiver<RecorderEvent>) {
    let (events, told) = channel();
    let tell = move |event| drop(events.send(event));
    (Recorder::start_with(folder, pace, 1_024, tell).unwrap(), told)
}

fn has_unfinished(folder: &Path) -> bool {
    folder.exists() && files(folder).iter().any(|name| name.starts_with(".kumiki-"))
}

/// The rows of the next start's file of the large day.
fn rows_at_next_start(folder: &Path) -> u64 {
    let mut rows = 0;
    let mut tell = |event| match event {
        RecorderEvent::TradesFile(report) if report.date == date() => rows += report.rows,
        _ => {}
    };
    Writer::open(folder).unwrap().recover(&mut tell).unwrap();
    rows
}

#[test]
fn rows_come_to_the_disk_while_a_large_day_is_written_and_an_end_does_not_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    large_day(folder.path());
    let path = board.trades_file(date());
    let before = fs::read(&path).unwrap();
    let (recorder, told) = started(folder.path(), SOON);
    until("the file is written", || has_unfinished(&board.trades_folder()));
    let next: JstDate = "2026-01-06".parse().unwrap();
    let open = TsNanos::from_jst(next, domain::session::MORNING_OPEN).unwrap();
    for number in 1..=50 {
        let (received, timestamp_ms) = (open.plus_nanos(number), open.millis());
        let print = TradePrint { received, timestamp_ms, ..trade("7203", 0, 2_000, 100) };
        recorder.try_record(BoardRow::Trade(print)).unwrap();
    }
    until("rows are on the disk", || recorder.counts().kept == 50);
    assert_eq!(numbers(&board.day(next).journal(1)).1.rows, 50);
    assert!(fs::read(&path).unwrap() == before, "all this while the file was not there yet");
    let watch = Stopwatch::start();
    let counts = recorder.stop();
    assert!(watch.elapsed() < Duration::from_secs(30), "{:?}", watch.elapsed());
    assert_eq!((counts.taken, counts.kept), (50, 50));
    // The large day is left to the next start, today's file is there.
    let late: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            RecorderEvent::TradesFileLate { date, lacks } => Some((date, lacks)),
            _ => None,
        })
        .collect();
    assert_eq!(late, [(date(), (2..=SEGMENTS).collect::<Vec<_>>())]);
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(vendor_rows(board.trades_file(next)).len(), 50);
    assert!(!has_unfinished(&board.trades_folder()));
    assert_eq!(rows_at_next_start(folder.path()), u64::from(SEGMENTS) * SEGMENT_TRADES);
}

#[test]
fn what_an_end_has_no_time_for_is_told_and_made_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    let day = large_day(folder.path());
    let path = board.trades_file(date());
    let before = fs::read(&path).unwrap();
    let (recorder, told) = started(folder.path(), Pace { end_time: Duration::ZERO, ..SOON });
    for number in 1..=5 {
        let print = trade("7203", SEGMENT_TRADES + number, 2_000, 100);
        recorder.try_record(BoardRow::Trade(print)).unwrap();
    }
    let counts = recorder.stop();
    assert_eq!((counts.taken, counts.kept), (5, 5), "rows come to the disk before all else");
    let late = told.iter().find_map(|event| match event {
        RecorderEvent::TradesFileLate { date, lacks } => Some((date, lacks)),
        _ => None,
    });
    assert_eq!(late, Some((date(), (2..=SEGMENTS + 1).collect())));
    assert!(fs::read(&path).unwrap() == before, "the file is as it was");
    assert!(!has_unfinished(&board.trades_folder()) && !has_unfinished(day.path()));
    assert_eq!(rows_at_next_start(folder.path()), u64::from(SEGMENTS) * SEGMENT_TRADES + 5);
}

#[test]
fn the_file_of_a_day_grows_with_its_segments_and_reads_none_of_them_twice() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    let day = board.day(date());
    record(folder.path(), (1..=30).map(|ms| BoardRow::Trade(trade("7203", ms, 2_000, 100))));
    let path = board.trades_file(date());
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let aside = |segment: u32| folder.path().join(segment.to_string());
    for segment in [2, 3] {
        fs::rename(day.trades(segment), aside(segment)).unwrap();
    }
    let mut day_files = DayFiles::new(board.clone(), Arc::default());
    day_files.follow(&day);
    fs::rename(aside(2), day.trades(2)).unwrap();
    day_files.follow(&day);
    let first = fs::read(day.trades(1)).unwrap();
    fs::write(day.trades(1), "no table").unwrap();
    fs::rename(aside(3), day.trades(3)).unwrap();
    day_files.over(&day, &mut no_events);
    assert_eq!(fs::read(&path).unwrap(), whole);
    // One that comes in between belongs where it was recorded.
    fs::write(day.trades(1), first).unwrap();
    fs::rename(day.trades(2), aside(2)).unwrap();
    day_files.follow(&day);
    fs::rename(aside(2), day.trades(2)).unwrap();
    day_files.over(&day, &mut no_events);
    assert_eq!(fs::read(&path).unwrap(), whole);
    drop(day_files);
    assert_eq!(files(&board.trades_folder()).len(), 1);
}

/// Records a row, has something done, records another one, and gives what was told of the stop.
#[cfg(unix)]
fn stopped_by(folder: &Path, harm: impl FnOnce(&BoardFolder)) -> (String, u64) {
    let (recorder, told) = started(folder, SOON);
    recorder.try_record(row(1)).unwrap();
    until("a row is on the disk", || recorder.counts().kept == 1);
    harm(&BoardFolder::new(folder));
    recorder.try_record(row(2)).unwrap();
    let stopped = told.recv_timeout(Duration::from_secs(60));
    let Ok(RecorderEvent::Stopped { why, lost }) = stopped else { panic!("{stopped:?}") };
    let counts = recorder.stop();
    assert_eq!((counts.taken, counts.kept), (2, 2 - lost));
    (why, lost)
}

/// Windows lets nobody rename a folder with an open file.
#[cfg(unix)]
#[test]
fn a_recording_that_was_moved_away_stops_at_the_next_sync_and_its_rows_count_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (why, lost) = stopped_by(folder.path(), |board| {
        fs::rename(board.days_folder(), board.path().join("moved")).unwrap();
    });
    assert!(why.contains("000001.journal was removed, moved or replaced"), "{why}");
    assert_eq!(lost, 2);
    // A file of the same name in its place is another one.
    let folder = tempfile::tempdir().unwrap();
    let (why, lost) = stopped_by(folder.path(), |board| {
        let journal = board.day(date()).journal(1);
        fs::copy(&journal, board.path().join("copy")).unwrap();
        fs::rename(board.path().join("copy"), journal).unwrap();
    });
    assert!(why.contains("000001.journal was removed, moved or replaced"), "{why}");
    assert_eq!(lost, 2);
}

#[cfg(unix)]
#[test]
fn a_recorder_whose_lock_was_removed_stops_before_another_one_takes_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (why, lost) = stopped_by(folder.path(), |board| {
        fs::remove_file(board.path().join("recorder.lock")).unwrap();
        drop(Writer::open(board.path()).unwrap());
    });
    assert!(why.contains("recorder.lock was removed, moved or replaced"), "{why}");
    // The journal is where it was made, with both rows.
    assert_eq!(lost, 0);
    Writer::open(folder.path()).unwrap().recover(&mut |_| {}).unwrap();
    assert_eq!(stored(folder.path()).len(), 2);
}
