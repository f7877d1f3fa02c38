//! Audits count every defect and go on.

use marketdata::limits::AUDIT_EXAMPLES_MAX;
use marketdata::{AuditOptions, BarFile, DataError, Defect, FileAudit, audit_bar_file, audit_file};

use crate::common::{HEADER, TEXT, code, file_with, go_on, gzip};

fn audit(text: &str) -> FileAudit {
    let (_folder, file) = file_with(&gzip(text));
    audit_file(&file, &AuditOptions::default(), &mut go_on).unwrap()
}

fn rows(lines: &[&str]) -> String {
    format!("{HEADER}\n{}\n", lines.join("\n"))
}

#[test]
fn a_sound_file_is_sound() {
    let audit = audit(TEXT);
    assert!(audit.is_sound() && audit.examples.is_empty());
    assert_eq!((audit.rows, audit.codes.len()), (7, 3));
    let first = &audit.codes[0];
    assert_eq!((first.code, first.rows, first.days, first.volume), (code("13010"), 5, 2, 3_000));
    assert_eq!(first.first.to_string(), "2025-01-06 09:00:00.067558 JST");
    assert_eq!(audit.last.unwrap().to_string(), "2025-01-07 09:00:01.500001 JST");
    // The other two codes have no row on the second day of the market.
    let missing: Vec<String> =
        audit.codes[1].missing_days.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["2025-01-07"]);
    assert!(first.missing_days.is_empty() && audit.empty_days.is_empty());
}

#[test]
fn every_kind_of_defect_is_counted_once_and_the_rest_is_read() {
    let audit = audit(&rows(&[
        "2025-01-06,13010,09:00:00.000001,01,4810,100,1",
        "2025-01-06,13010,09:00:00.000002,01,4810,100,1",
        "2025-01-06,13010,08:59:59.000000,01,4810,100,2",
        "2025-01-06,13010,09:00:00.000000,01,4810,100,3",
        "2025-02-06,13010,09:00:01.000000,01,4810,100,4",
        "2025-01-06,13010,09:00:01.000000,01,-1,100,5",
        "2025-01-06,13010,09:00:01.000000,01,4810,0,6",
        "2025-01-06,1301,09:00:01.000000,01,4810,100,7",
        "2025-01-06,13010,09:00:01.000000,01,4810",
        "",
        "2025-01-06,13010,12:00:00.000000,02,4810,100,8",
        "2025-01-06,13010,09:00:01.000000,01,4811,200,9",
    ]));
    let found = Defect::ALL.map(|defect| audit.defects.of(defect));
    // Duplicate, out of order, off session, date, price, quantity, code, range, layout.
    assert_eq!(found, [1, 1, 2, 1, 1, 1, 1, 0, 2]);
    assert_eq!((audit.rows, audit.defects.total(), audit.is_sound()), (2, 10, false));
    assert!(audit.examples[0].contains("line 3, column TransactionId"), "{:?}", audit.examples);
    assert_eq!(audit.examples.len(), AUDIT_EXAMPLES_MAX);
    let of_code = &audit.codes[0].defects;
    assert_eq!(of_code.total(), 7, "the damaged code and the two damaged lines belong to no code");
    assert!(audit.stopped.is_none());
}

#[test]
fn examples_have_a_limit_and_counts_have_none() {
    let bad = "2025-01-06,13010,09:00:00.000001,01,0,100,1";
    let audit = audit(&rows(&[bad; 25]));
    assert_eq!((audit.defects.total(), audit.examples.len()), (25, AUDIT_EXAMPLES_MAX));
    assert_eq!(audit.first, None);
}

#[test]
fn a_cut_file_is_counted_up_to_the_cut() {
    let lines: Vec<String> = (0..50_000)
        .map(|id| format!("2025-01-06,13010,09:00:00.{id:06},01,48{:02},100,{id}", id * 7 % 100))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let bytes = gzip(rows(&lines));
    let (_folder, file) = file_with(&bytes[..bytes.len() / 2]);
    let audit = audit_file(&file, &AuditOptions::default(), &mut go_on).unwrap();
    assert!(matches!(audit.stopped, Some(DataError::Gzip { .. })) && !audit.is_sound());
    assert!(audit.rows > 1_000 && audit.rows < 50_000, "{}", audit.rows);
}

#[test]
fn quiet_stretches_and_empty_days_are_found() {
    let audit = audit(&rows(&[
        "2025-01-06,13010,09:00:00,01,4810,100,1",
        "2025-01-06,13010,09:29:59.999999,01,4810,100,2",
        "2025-01-06,13010,10:30:00,01,4810,100,3",
        "2025-01-06,13010,12:30:00,02,4810,100,4",
        "2025-01-06,13010,12:30:00,02,4810,100,5",
        "2025-01-06,13010,13:00:00,02,4810,100,6",
        "2025-01-09,13010,09:00:00,01,4810,100,1",
    ]));
    let code = &audit.codes[0];
    // 60 minutes and 30 minutes; the lunch break and the nights are not inside a session.
    assert_eq!((code.quiet, code.longest_quiet_minutes), (2, 60));
    assert_eq!(code.same_timestamp_and_price, 1);
    let empty: Vec<String> = audit.empty_days.iter().map(ToString::to_string).collect();
    assert_eq!(empty, ["2025-01-07", "2025-01-08"]);
}

fn audit_bars(name: &str, text: &str) -> FileAudit {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, gzip(text)).unwrap();
    let file = BarFile::from_path(path).unwrap();
    audit_bar_file(&file, &AuditOptions::default(), &mut go_on).unwrap()
}

#[test]
fn every_kind_of_defect_of_minute_bars_is_counted_once() {
    let audit = audit_bars(
        "equities_bars_minute_202501.csv.gz",
        "Date,Time,Code,O,H,L,C,Vo,Va\n\
         2025-01-06,09:00,130A0,-1,4815,4805,4815,100,481500\n\
         2025-01-06,09:00,13010,4810,4815,4805,4815,100,481500\n\
         2025-01-06,09:00,13010,4810,4815,4805,4815,100,481500\n\
         2025-01-06,10:00,13010,4810,4815,4805,4815,200,963000\n\
         2025-01-06,09:30,13010,4810,4815,4805,4815,100,481500\n\
         2025-01-06,12:00,13010,4810,4815,4805,4815,100,481500\n\
         2025-01-06,13:00,13010,4810,4815,4805,4816,100,481500\n\
         2025-01-06,13:01,13010,4804,4815,4805,4815,100,481500\n\
         2025-02-06,13:02,13010,4810,4815,4805,4815,100,481500\n\
         2025-01-06,13:03,13010,4810,4815,4805,4815,0,0\n\
         2025-01-06,13:04,1301,4810,4815,4805,4815,100,481500\n\
         2025-01-06,13:05,13010,4810,4815\n\
         2025-01-07,09:00,130A0,1234,1234,1234,1234,100,123400\n",
    );
    let found = Defect::ALL.map(|defect| audit.defects.of(defect));
    // Duplicate, out of order, off session, date, price, quantity, code, range, layout.
    assert_eq!(found, [1, 1, 1, 1, 1, 1, 1, 2, 1]);
    assert_eq!((audit.rows, audit.is_sound()), (3, false));
    assert!(audit.examples[0].contains("line 2, column O"), "{:?}", audit.examples);
    // A code whose first row is bad keeps its name.
    let codes: Vec<_> = audit.codes.iter().map(|audit| (audit.code, audit.rows)).collect();
    assert_eq!(codes, [(code("13010"), 2), (code("130A0"), 1)]);
    let first = &audit.codes[0];
    assert_eq!((first.quiet, first.longest_quiet_minutes, first.volume), (1, 60, 300));
    let missing: Vec<String> = first.missing_days.iter().map(ToString::to_string).collect();
    assert_eq!((missing, first.defects.of(Defect::Range)), (vec!["2025-01-07".to_owned()], 2));
}

#[test]
fn daily_bars_without_a_trade_are_no_missing_days() {
    let audit = audit_bars(
        "equities_bars_daily_202501.csv.gz",
        "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n\
         2025-01-06,13010,4810.0,4830.0,4800.0,4820.0,0,0,4100,19746500,1.0\n\
         2025-01-06,13050,,,,,0,0,,,1.0\n\
         2025-01-08,13010,4810.0,4830.0,4800.0,4820.0,0,0,4100,19746500,1.0\n\
         2025-01-09,13050,,,,,0,0,5,,1.0\n",
    );
    assert_eq!((audit.rows, audit.defects.total(), audit.defects.of(Defect::Layout)), (2, 1, 1));
    let of = |place: usize| {
        let code: &marketdata::CodeAudit = &audit.codes[place];
        (code.rows, code.rows_without_trade, code.days, code.missing_days.len())
    };
    assert_eq!((of(0), of(1)), ((2, 0, 2, 0), (0, 1, 1, 1)));
    let empty: Vec<String> = audit.empty_days.iter().map(ToString::to_string).collect();
    assert_eq!(empty, ["2025-01-07"]);
}
