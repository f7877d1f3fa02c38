//! The trades of a day in the vendor's layout: what replays and databases read.

use std::io::Write;

use super::*;
use crate::limits::{DAMAGED_NAMED_MAX, TRADE_CLOCK_OFF_MAX};

#[test]
fn the_replay_reads_the_trades_of_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let prints = [
        trade("7203", 0, 2_000, 100),
        trade("6758", 0, 3_000, 200),
        trade("7203", 1_000, 2_001, 300),
        // The venue's clock steps back.
        trade("7203", 500, 2_002, 400),
        trade("130A", 500, 900, 100),
        trade("25935", 3_600_000, 800, 100),
    ];
    record(folder.path(), prints.clone().map(BoardRow::Trade));
    let path = BoardFolder::new(folder.path()).trades_file(date());
    assert_eq!(path, folder.path().join("trades/equities_trades_20260105.csv.gz"));
    let rows = vendor_rows(path);
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.code.to_string(), row.ts_event, row.price, row.quantity, row.transaction_id)
        })
        .collect();
    let expected = |text: &str, ms, yen: i64, shares, id| {
        (text.to_owned(), at(ms).nanos(), yen * 10_000, shares, id)
    };
    assert_eq!(
        found,
        [
            expected("72030", 0, 2_000, 100, 1),
            expected("67580", 0, 3_000, 200, 2),
            expected("72030", 1_000, 2_001, 300, 3),
            expected("72030", 1_000, 2_002, 400, 4),
            expected("130A0", 500, 900, 100, 5),
            expected("25935", 3_600_000, 800, 100, 6),
        ]
    );
}

#[test]
fn trades_that_no_strategy_gets_are_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let noon = 3 * 3_600_000;
    let midnight = TsNanos::from_jst(date(), 0).unwrap();
    let prints = [
        trade("7203", 0, 2_000, 100),
        TradePrint { after_gap: true, ..trade("7203", 1, 2_000, 900) },
        trade("160070005", 2, 39_000, 1),
        TradePrint {
            received: midnight.plus_nanos(60_000_000_000),
            timestamp_ms: midnight.millis() - 60_000,
            ..trade("7203", 3, 2_000, 100)
        },
        trade("7203", noon, 2_000, 100),
        TradePrint { quantity: 5_000, ..trade("7203", 4, 2_000, 0) },
        TradePrint { price: 0, ..trade("7203", 5, 0, 100) },
    ];
    let mut events = Vec::new();
    let mut writer = Writer::open(folder.path()).unwrap();
    for print in prints {
        writer.push(&BoardRow::Trade(print), Duration::ZERO, &mut no_events).unwrap();
    }
    writer.finish(&mut |event| events.push(event)).unwrap();
    let Some(RecorderEvent::TradesFile(report)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((report.rows, report.moved, report.left_out()), (1, 0, 6));
    assert_eq!(
        (report.after_gap, report.no_code, report.other_day, report.outside_hours, report.no_value),
        (1, 1, 1, 1, 2)
    );
    let board = BoardFolder::new(folder.path());
    assert_eq!(vendor_rows(board.trades_file(date())).len(), 1);
    // All of them stand in the Parquet files.
    let mut count = 0;
    for path in board.day(date()).finished().unwrap().into_iter().filter_map(|one| one.trades) {
        read_trade_prints(&path, |_| {
            count += 1;
            Ok::<(), ParquetError>(())
        })
        .unwrap();
    }
    assert_eq!(count, 7);
}

#[test]
fn the_file_of_a_day_is_made_again_only_when_segments_came() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    let day = board.day(date());
    record(folder.path(), (1..=30).map(row));
    let path = board.trades_file(date());
    let first = fs::read(&path).unwrap();
    assert!(is_up_to_date(&board, &day).unwrap());
    make_trades_file(&board, &day).unwrap().unwrap();
    assert_eq!(fs::read(&path).unwrap(), first, "the same segments give the same bytes");
    // A recorder that was killed before it wrote the file.
    fs::remove_file(&path).unwrap();
    assert!(!is_up_to_date(&board, &day).unwrap());
    Writer::open(folder.path()).unwrap().recover(&mut no_events).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first);
    record(folder.path(), (31..=60).map(row));
    assert!(vendor_rows(path.clone()).len() > vendor_rows_of(&first).len());
    // One of before is made again.
    let whole = fs::read(&path).unwrap();
    let mut old = flate2::GzBuilder::new()
        .comment("kumiki recording, segments 3 to 000003")
        .write(Vec::new(), flate2::Compression::fast());
    old.write_all(crate::convert::HEADER.as_bytes()).unwrap();
    fs::write(&path, old.finish().unwrap()).unwrap();
    Writer::open(folder.path()).unwrap().recover(&mut no_events).unwrap();
    assert_eq!(fs::read(&path).unwrap(), whole);
    // A file of the vendor is not replaced.
    fs::write(&path, vendor_file()).unwrap();
    let error = make_trades_file(&board, &day).unwrap_err().to_string();
    assert!(error.ends_with("was not made by a recorder; move it away"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), vendor_file());
}

/// Three segments of ten trades, and the paths of their tables.
fn three_segments(folder: &Path) -> Vec<PathBuf> {
    let print = |number: u64| trade("7203", number, 2_000 + number as i64, 100);
    record(folder, (1..=30).map(|number| BoardRow::Trade(print(number))));
    let segments = BoardFolder::new(folder).day(date()).finished().unwrap();
    segments.into_iter().map(|segment| segment.trades.unwrap()).collect()
}

fn made(folder: &Path) -> Vec<RecorderEvent> {
    let mut events = Vec::new();
    Writer::open(folder).unwrap().recover(&mut |event| events.push(event)).unwrap();
    events
}

#[test]
fn a_damaged_segment_keeps_no_other_out_of_the_file_and_comes_in_when_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let segments = three_segments(folder.path());
    let path = BoardFolder::new(folder.path()).trades_file(date());
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let sound = fs::read(&segments[1]).unwrap();
    fs::write(&segments[1], &sound[..sound.len() / 2]).unwrap();
    // As long as it is damaged, each start tells it.
    for _ in 0..2 {
        let events = made(folder.path());
        let [RecorderEvent::TradesFile(report)] = &*events else { panic!("{events:?}") };
        assert_eq!((report.rows, report.damaged_segments, &report.before), (20, 1, &None));
        let lacks = report.lacks().unwrap();
        assert!(lacks.contains("000002.parquet") && lacks.contains("put whole copies"), "{lacks}");
        assert_eq!(vendor_rows(path.clone()).len(), 20);
    }
    fs::write(&segments[1], sound).unwrap();
    let events = made(folder.path());
    let [RecorderEvent::TradesFile(report)] = &*events else { panic!("{events:?}") };
    assert_eq!((report.rows, report.lacks()), (30, None));
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert!(made(folder.path()).is_empty(), "it is up to date");
}

#[test]
fn the_file_that_has_the_trades_of_a_segment_now_damaged_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let segments = three_segments(folder.path());
    let board = BoardFolder::new(folder.path());
    let whole = fs::read(board.trades_file(date())).unwrap();
    for path in &segments {
        fs::write(path, "no table").unwrap();
    }
    // The file is up to date until a segment comes.
    assert!(made(folder.path()).is_empty());
    let print = BoardRow::Trade(trade("7203", 40, 2_000, 100));
    let mut writer = Writer::open(folder.path()).unwrap();
    writer.push(&print, Duration::ZERO, &mut no_events).unwrap();
    let mut events = Vec::new();
    writer.finish(&mut |event| events.push(event)).unwrap();
    drop(writer);
    let Some(RecorderEvent::TradesFile(report)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((report.rows, report.damaged_segments), (1, 3));
    assert_eq!(fs::read(report.before.as_ref().unwrap()).unwrap(), whole);
    assert!(report.lacks().unwrap().contains("before-1"));
    let events = made(folder.path());
    let [RecorderEvent::TradesFile(report)] = &*events else { panic!("{events:?}") };
    assert_eq!(report.before, None, "it has none of their trades itself");
}

#[test]
fn the_file_that_has_the_trades_of_a_segment_now_gone_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let segments = three_segments(folder.path());
    let whole = fs::read(BoardFolder::new(folder.path()).trades_file(date())).unwrap();
    let away = folder.path().join("away");
    fs::rename(&segments[1], &away).unwrap();
    let events = made(folder.path());
    let [RecorderEvent::TradesFile(report)] = &*events else { panic!("{events:?}") };
    assert_eq!((report.rows, report.damaged_segments, report.gone_segments), (20, 0, 1));
    assert_eq!(fs::read(report.before.as_ref().unwrap()).unwrap(), whole);
    let lacks = report.lacks().unwrap();
    assert!(lacks.contains("are gone (1)") && lacks.contains("before-1"), "{lacks}");
    assert!(lacks.contains("put them back"), "{lacks}");
    assert!(made(folder.path()).is_empty(), "it is told once");
    fs::rename(away, &segments[1]).unwrap();
    // One that is damaged and was never in the file is not gone when it is moved away.
    fs::write(&segments[0], "no table").unwrap();
    made(folder.path());
    fs::remove_file(&segments[0]).unwrap();
    let events = made(folder.path());
    let [RecorderEvent::TradesFile(report)] = &*events else { panic!("{events:?}") };
    assert_eq!((report.rows, report.lacks()), (20, None));
}

/// Of two symbols with one code the second has no rows: they would be those of the first.
#[test]
fn no_two_symbols_have_one_code_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let prints = ["7203", "72030", "72031", "72030", "7203"];
    let prints = prints.map(|symbol| BoardRow::Trade(trade(symbol, 0, 2_000, 100)));
    record(folder.path(), prints);
    let board = BoardFolder::new(folder.path());
    let report = make_trades_file(&board, &board.day(date())).unwrap().unwrap();
    assert_eq!((report.rows, report.same_code, report.left_out()), (3, 2, 2));
    let rows = vendor_rows(board.trades_file(date()));
    let codes: Vec<_> = rows.iter().map(|row| row.code.to_string()).collect();
    assert_eq!(codes, ["72030", "72031", "72030"]);
}

#[test]
fn day_symbols_max_is_how_many_symbols_the_file_of_a_day_has() {
    let folder = tempfile::tempdir().unwrap();
    let prints = (0..=DAY_SYMBOLS_MAX).map(|number| {
        // Codes of four: digits, and letters where the exchange issues them.
        let letters = "0123456789ACDFGHJKLMNPRSTUWXY".as_bytes();
        let code = format!(
            "{}{:02}{}",
            1 + number / 2_900,
            number / 29 % 100,
            letters[number % 29] as char
        );
        BoardRow::Trade(trade(&code, number as u64, 2_000, 100))
    });
    let mut writer = Writer::open(folder.path()).unwrap();
    for print in prints {
        writer.push(&print, Duration::ZERO, &mut no_events).unwrap();
    }
    writer.finish(&mut no_events).unwrap();
    let board = BoardFolder::new(folder.path());
    fs::remove_file(board.trades_file(date())).unwrap();
    let report = make_trades_file(&board, &board.day(date())).unwrap().unwrap();
    assert_eq!((report.rows, report.no_code), (DAY_SYMBOLS_MAX as u64, 1));
}

#[test]
fn damaged_segments_are_named_up_to_a_limit_and_all_counted() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    let day = board.day(date());
    fs::create_dir_all(day.path()).unwrap();
    for segment in 1..=DAMAGED_NAMED_MAX as u32 + 3 {
        fs::write(day.trades(segment), "no table").unwrap();
    }
    let report = make_trades_file(&board, &day).unwrap().unwrap();
    assert_eq!((report.damaged_segments, report.damaged.len()), (13, DAMAGED_NAMED_MAX));
    assert!(report.lacks().unwrap().contains("; and 3 more; "), "{:?}", report.lacks());
}

fn vendor_rows_of(bytes: &[u8]) -> Vec<TradeRow> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("equities_trades_20260105.csv.gz");
    fs::write(&path, bytes).unwrap();
    vendor_rows(path)
}

fn vendor_file() -> Vec<u8> {
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    file.write_all(crate::convert::HEADER.as_bytes()).unwrap();
    file.finish().unwrap()
}

/// Of one frame with a wrong clock only its own trade has another time.
#[test]
fn a_wrong_clock_moves_no_other_trade_and_no_trade_is_left_out_for_it() {
    let minute = 60_000;
    let (ten, later) = (60 * minute, 6 * 60 * minute + 20 * minute);
    let clock = |received: u64, told: u64, yen| TradePrint {
        received: at(received),
        ..trade("7203", told, yen, 100)
    };
    let off = u64::try_from(TRADE_CLOCK_OFF_MAX.as_millis()).unwrap();
    let days = 24 * 60 * minute;
    let prints = [
        // The closing auction's time an hour after the open, and times of the day after and of 1970.
        clock(ten, later, 2_000),
        clock(ten + 1_000, ten + days, 2_001),
        TradePrint { timestamp_ms: 0, ..clock(ten + 2_000, 0, 2_002) },
        // At the limit it is believed, further not, on both sides.
        clock(ten + off, ten, 2_003),
        clock(ten + off + 1, ten, 2_004),
        clock(ten + off + 2, ten + 2 * off + 2, 2_005),
        clock(ten + off + 3, ten + 2 * off + 4, 2_006),
        clock(ten + 3 * off, ten + 3 * off, 2_007),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    let mut writer = Writer::open(folder.path()).unwrap();
    for print in prints {
        writer.push(&BoardRow::Trade(print), Duration::ZERO, &mut no_events).unwrap();
    }
    writer.finish(&mut |event| events.push(event)).unwrap();
    let Some(RecorderEvent::TradesFile(report)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((report.rows, report.off_clock, report.left_out()), (8, 5, 0));
    let rows = vendor_rows(BoardFolder::new(folder.path()).trades_file(date()));
    let found: Vec<_> = rows.iter().map(|row| (row.ts_event, row.price / 10_000)).collect();
    let expected = [
        (ten, 2_000),
        (ten + 1_000, 2_001),
        (ten + 2_000, 2_002),
        (ten + 2_000, 2_003),
        (ten + off + 1, 2_004),
        (ten + 2 * off + 2, 2_005),
        (ten + 2 * off + 2, 2_006),
        (ten + 3 * off, 2_007),
    ];
    assert_eq!(found, expected.map(|(ms, yen)| (at(ms).nanos(), yen)));
    assert_eq!(report.moved, 2);
}

/// DuckDB passes over an extra field and a name (flags 4 and 8), and refuses every other one.
#[test]
fn the_head_of_the_file_has_no_flag_that_databases_refuse() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), [BoardRow::Trade(trade("7203", 0, 2_000, 100))]);
    let bytes = fs::read(BoardFolder::new(folder.path()).trades_file(date())).unwrap();
    assert_eq!((&bytes[..3], bytes[3] & !12), (&[0x1f, 0x8b, 8][..], 0));
    let note = b"kumiki recording, segments 1 to 000001";
    assert!(bytes.windows(note.len()).any(|window| window == note));
}

/// What has the name of the file and cannot be one stops no recording.
#[test]
fn what_stands_in_the_place_of_the_file_is_told_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let board = BoardFolder::new(folder.path());
    record(folder.path(), (1..=10).map(row));
    let path = board.trades_file(date());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let mut told = Vec::new();
    let mut writer = Writer::open(folder.path()).unwrap();
    writer.recover(&mut |event| told.push(event)).unwrap();
    let [RecorderEvent::TradesFileFailed { why, .. }] = &told[..] else { panic!("{told:?}") };
    assert!(why.ends_with("was not made by a recorder; move it away"), "{why}");
    writer.push(&row(11), Duration::ZERO, &mut no_events).unwrap();
    writer.finish(&mut |_| {}).unwrap();
    assert_eq!(stored(folder.path()).len(), 11);
    assert!(path.is_dir());
}
