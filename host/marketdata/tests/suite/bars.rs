//! Bar files: what is read, what is refused, and that bars made from trades are the same.

use std::ops::ControlFlow;
use std::path::Path;

use domain::InstrumentIx;
use domain::market::BarGranularity::{self, Day, Minute};
use marketdata::{
    BarFile, BarRow, CacheOutcome, Catalog, DataError, MadeBar, ReadOptions, SampleCodes,
    SampleSpec, Selection, TradeStore, make_bars, read_bars, write_sample_with_bars,
};

use crate::common::{code, go_on, gzip};

const MINUTES: &str = "\
Date,Time,Code,O,H,L,C,Vo,Va
2025-01-06,09:00,13010,4810,4815,4805,4815,2500,12027500
2025-01-06,09:00,130A0,1234,1234.5,1234,1234.5,100,123400
2025-01-06,11:30,13010,4820,4820,4820,4820,100.0,482000.0
2025-01-06,15:30,13010,4820,4820,4820,4820,1500,7230000
";

const DAYS: &str = "\
Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor
2025-01-06,13010,4810.0,4830.0,4800.0,4820.0,0,0,4100,19746500,1.0
2025-01-06,13050,,,,,0,0,,,1.0
2025-01-07,13050,,,,,0,0,0,0.0,1.0
2025-01-07,130A0,1234.0,1240.0,1200.0,1201.0,0,0,5600,6800000,0.5
";

fn write(folder: &Path, granularity: BarGranularity, text: &str) -> BarFile {
    let name = match granularity {
        Minute => "equities_bars_minute_202501.csv.gz",
        Day => "equities_bars_daily_202501.csv.gz",
    };
    let path = folder.join(name);
    std::fs::write(&path, gzip(text)).unwrap();
    BarFile::from_path(path).unwrap()
}

fn read(
    granularity: BarGranularity,
    text: &str,
    selection: &Selection,
    chunk_bytes: usize,
) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), granularity, text);
    let options = ReadOptions { chunk_bytes, ..ReadOptions::default() };
    let mut rows = Vec::new();
    read_bars(&file, selection, &options, &mut go_on, &mut |row: &BarRow| {
        let yen = [row.open, row.high, row.low, row.close].map(|units| units as f64 / 1e4);
        rows.push(format!("{} {} {yen:?} {}", row.end(), row.code, row.volume));
    })
    .map(|_| rows)
    .map_err(|error| error.to_string().replace(&file.path.display().to_string(), "F"))
}

#[test]
fn minutes_end_when_they_end() {
    let expected = [
        "2025-01-06 09:01:00.000000 JST 13010 [4810.0, 4815.0, 4805.0, 4815.0] 2500",
        "2025-01-06 09:01:00.000000 JST 130A0 [1234.0, 1234.5, 1234.0, 1234.5] 100",
        "2025-01-06 11:31:00.000000 JST 13010 [4820.0, 4820.0, 4820.0, 4820.0] 100",
        "2025-01-06 15:31:00.000000 JST 13010 [4820.0, 4820.0, 4820.0, 4820.0] 1500",
    ];
    for chunk in [1, 7, 1 << 18] {
        assert_eq!(read(Minute, MINUTES, &Selection::All, chunk).unwrap(), expected);
    }
    let some = Selection::Codes(vec![code("130A0")]);
    assert_eq!(read(Minute, MINUTES, &some, 64).unwrap(), expected[1..2]);
}

#[test]
fn days_without_a_trade_are_left_out() {
    let expected = [
        "2025-01-06 15:30:00.000000 JST 13010 [4810.0, 4830.0, 4800.0, 4820.0] 4100",
        "2025-01-07 15:30:00.000000 JST 130A0 [1234.0, 1240.0, 1200.0, 1201.0] 5600",
    ];
    assert_eq!(read(Day, DAYS, &Selection::All, 64).unwrap(), expected);
    // Columns are found by name, whatever else the file has, and in any order.
    let swapped: String = DAYS
        .lines()
        .map(|line| {
            let cells: Vec<_> = line.split(',').rev().collect();
            format!("\"{}\",more\r\n", cells.join("\",\""))
        })
        .collect();
    assert_eq!(read(Day, &swapped, &Selection::All, 64).unwrap(), expected);
    let old: String = DAYS
        .lines()
        .map(|line| {
            let cells: Vec<_> = line.split(',').collect();
            format!("{},{}\n", cells[..6].join(","), cells[8..10].join(","))
        })
        .collect();
    assert!(old.starts_with("Date,Code,O,H,L,C,Vo,Va\n"));
    assert_eq!(read(Day, &old, &Selection::All, 64).unwrap(), expected);
}

#[test]
fn faults_are_told_with_line_column_and_value() {
    let first = "13010,4810,4815,4805,4815,2500,12027500";
    for (from, to, expected) in [
        (first, "13010,4810,4815,,4815,2500,1", "line 2, column L: expected a price above 0"),
        (
            first,
            "13010,4810,4805,4805,4815,2500,1",
            "line 2, column O: expected a price from 4805 to 4805 yen, the bar's own range, found `4810`",
        ),
        (
            first,
            "13010,4810,4812,4815,4815,2500,1",
            "line 2, column L: expected a price from 4815 to 4812 yen",
        ),
        (
            first,
            "13010,4810,4815,4805,4815,0,1",
            "line 2, column Vo: expected a whole number of shares",
        ),
        (
            first,
            "13010,4810,4815,4805,4815,25.5,1",
            "line 2, column Vo: expected a whole number of shares",
        ),
        (
            first,
            "13010,4810,4815,4805,4815,2500,x",
            "line 2, column Va: expected an amount of money",
        ),
        (
            first,
            "13010,,,,,2500,0",
            "line 2, column Vo: expected no value, because the row lacks prices and so has no trade, found `2500`",
        ),
        (first, "1301,4810,4815,4805,4815,2500,1", "line 2, column Code: expected a code of 5"),
        (first, "13010,4810,4815", "line 2: expected 9 cells as in the header, found 5"),
        (
            "2025-01-06,09:00,13010",
            "2025-02-06,09:00,13010",
            "line 2, column Date: expected a date in 2025-01",
        ),
        (
            "09:00,13010",
            "9:00,13010",
            "line 2, column Time: expected a minute that exists, as HH:MM, found `9:00`",
        ),
        (
            "09:00,13010",
            "12:00,13010",
            "line 2, column Time: expected a minute from 09:00 to 11:35 or from 12:30 to 15:35, found `12:00`",
        ),
        (
            "15:30,13010",
            "11:30,13010",
            "line 5, column Time: expected a bar later than 2025-01-06 11:31:00.000000 JST, the end of the \
             previous bar of code 13010, found `11:30`",
        ),
        ("Date,Time,", "Date,Tim,", "line 1: expected a column Time, found the header"),
        (
            "Date,Time,Code,O,H,L,C,Vo,Va",
            "a,b",
            "line 1: expected the header Date,Time,Code,O,H,L,C,Vo,Va, found `a,b`",
        ),
    ] {
        let text = MINUTES.replacen(from, to, 1);
        assert_ne!(text, MINUTES, "{from}");
        let message = read(Minute, &text, &Selection::All, 1 << 18).unwrap_err();
        assert!(message.contains(&format!("F, {expected}")), "{message}");
    }
    let header_only = "Date,Code,O,H,L,C,Vo,Va\n";
    let message = read(Day, header_only, &Selection::All, 64).unwrap_err();
    assert!(message.contains("expected rows after the header, found none"), "{message}");
    let cancelled = {
        let folder = tempfile::tempdir().unwrap();
        let file = write(folder.path(), Minute, MINUTES);
        let codes = vec![code("13010"); 65];
        let store = TradeStore::new(folder.path());
        store.load_bars(&file, &codes, &mut |_| ControlFlow::Break(())).unwrap_err()
    };
    assert!(matches!(cancelled, DataError::TooManyCodes { asked: 65 }));
}

#[test]
fn bars_are_cached_as_trades_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), Minute, MINUTES);
    let store = TradeStore::new(folder.path().join("cache"));
    let codes = [code("13010"), code("99990")];
    for outcome in [CacheOutcome::Built, CacheOutcome::Hit] {
        let segments = store.load_bars(&file, &codes, &mut go_on).unwrap();
        assert_eq!((segments[0].len(), segments[1].len()), (3, 0));
        assert!(segments.iter().all(|segment| *segment.outcome() == outcome));
        let bar = segments[0].renewed().bar(0, InstrumentIx(2));
        assert_eq!((bar.instrument, bar.granularity), (InstrumentIx(2), Minute));
        assert_eq!((bar.high.to_string(), bar.volume.shares()), ("4815".to_owned(), 2_500));
        assert_eq!(segments[0].price_grid().step(), Some("5".parse().unwrap()));
    }
}

/// Bars that the vendor's file has and bars made from the trades beside, of one code.
fn both(folder: &Path, granularity: BarGranularity, text: &str) -> [Vec<domain::market::Bar>; 2] {
    let store = TradeStore::new(folder.join("cache-of-test"));
    let mut read = Vec::new();
    for file in BarFile::list(folder, granularity).unwrap() {
        let segment = store.load_bars(&file, &[code(text)], &mut go_on).unwrap().remove(0);
        read.extend((0..segment.len()).map(|row| segment.bar(row, InstrumentIx(0))));
    }
    let mut made = Vec::new();
    for file in Catalog::open(folder).unwrap().files() {
        let rows = store.load(file, &[code(text)], &mut go_on).unwrap().remove(0);
        let columns = (rows.ts_event(), rows.price(), rows.quantity());
        make_bars(granularity, InstrumentIx(0), columns.0, columns.1, columns.2, &mut made);
    }
    [read, made.iter().map(|made: &MadeBar| made.bar).collect()]
}

#[test]
fn bars_made_from_sample_trades_are_those_of_the_samples_bar_files() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SampleSpec {
        seed: 7,
        start: "2024-10-30".parse().unwrap(),
        days: 6,
        codes: SampleCodes::These(vec![code("72030"), code("130A0")]),
        trades_per_code_day: 500,
    };
    let report = write_sample_with_bars(folder.path(), &spec).unwrap();
    assert_eq!((report.files.len(), report.bar_files.len()), (2, 4));
    for text in ["72030", "130A0"] {
        let [read, made] = both(folder.path(), Minute, text);
        assert!(read.len() > 500, "{}", read.len());
        assert_eq!(read, made);
        let [read, made] = both(folder.path(), Day, text);
        assert_eq!(read.len(), 6);
        assert_eq!(read, made);
    }
}

#[test]
fn bars_made_from_real_trades_are_the_vendors() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/trades_retimed");
    if Catalog::open(&data).is_err() {
        println!("skipped: no real data at {}", data.display());
        return;
    }
    // The folder with the data may not be written to.
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    for (text, minutes) in [("13060", 1_650), ("67020", 1_649)] {
        let [read, made] = both(folder.path(), Minute, text);
        assert_eq!(read.len(), minutes);
        assert_eq!(read, made);
        let [read, made] = both(folder.path(), Day, text);
        assert_eq!(read.len(), 5);
        assert_eq!(read, made);
    }
}

#[test]
fn adjustment_factors_are_read_and_cached() {
    let folder = tempfile::tempdir().unwrap();
    let store = TradeStore::new(folder.path().join("cache"));
    let load = |text: &str| {
        let file = write(folder.path(), Day, text);
        let codes = [code("13050"), code("130A0")];
        let segments = store.load_factors(&file, &codes, &mut go_on).map_err(|e| e.to_string())?;
        let words = |segment: &marketdata::FactorSegment| {
            let rows = segment.adjustments().map(|(ts, adjustment)| format!("{ts} {adjustment}"));
            // Days that change nothing are known too.
            assert!(segment.factors().count() >= segment.adjustments().count());
            (rows.collect::<Vec<_>>(), segment.outcome().clone())
        };
        Ok::<_, String>(segments.iter().map(words).collect::<Vec<_>>())
    };
    let split = vec!["2025-01-07 15:30:00.000000 JST 2 for 1".to_owned()];
    for outcome in [CacheOutcome::Built, CacheOutcome::Hit] {
        let wanted = [(vec![], outcome.clone()), (split.clone(), outcome)];
        assert_eq!(load(DAYS).unwrap(), wanted);
    }
    // A day without a trade may have a factor, or none.
    let quiet = DAYS.replace("13050,,,,,0,0,0,0.0,1.0", "13050,,,,,0,0,0,0.0,0.33333333");
    assert_eq!(load(&quiet).unwrap()[0].0, ["2025-01-07 15:30:00.000000 JST 3 for 1"]);
    let empty = DAYS.replace("13050,,,,,0,0,0,0.0,1.0", "13050,,,,,0,0,0,0.0,");
    assert!(load(&empty).unwrap()[0].0.is_empty());
    let wrong = load(&DAYS.replace(",0.5", ",-1")).unwrap_err();
    assert!(wrong.contains("a factor of prices from 0.001 to 1000"), "{wrong}");
    assert!(load(&DAYS.replace("AdjFactor", "Note")).unwrap_err().contains("AdjFactor"));
}
