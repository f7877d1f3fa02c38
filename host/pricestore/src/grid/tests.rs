//! Grids that are right, damaged, foreign and too large.

use std::fs;
use std::path::PathBuf;

use domain::adjustment::Adjustment;
use tempfile::TempDir;

use super::*;
use crate::limits::{SNAPSHOT_CELLS_MAX, SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX};

const DAYS: [&str; 3] = ["2025-01-06", "2025-01-07", "2025-01-09"];

fn written() -> (TempDir, PathBuf) {
    written_with(None)
}

fn splits() -> Splits {
    let split = |day, code, factor: Option<f64>| Split {
        day,
        code,
        adjustment: factor.and_then(Adjustment::of_factor),
    };
    let unknown = UnknownDays { code: 0, first_day: 1, last_day: 2 };
    Splits::new(vec![split(1, 0, Some(0.5)), split(2, 2, None)], vec![unknown], vec![1]).unwrap()
}

fn written_with(splits: Option<Splits>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rank-7.grid");
    let days = DAYS.map(|day| day.parse().unwrap()).to_vec();
    let codes = vec![Box::from("1301"), Box::from("130A"), Box::from("9999")];
    let writer = GridWriter::new(folder.path(), 7, days, codes).unwrap();
    let mut writer = writer.with_splits(splits);
    for day in 0..3 {
        let value = |column: usize, code: usize| match code {
            0 => Some((day * 100 + column * 10) as f64),
            1 => None,
            _ => Some(-1.5),
        };
        let columns: [Vec<f64>; COLUMNS] =
            std::array::from_fn(|column| (0..3).map(|code| cell(value(column, code))).collect());
        writer.day(columns.each_ref().map(Vec::as_slice)).unwrap();
    }
    writer.finish(&path).unwrap();
    (folder, path)
}

#[test]
fn what_was_written_is_read() {
    let (_folder, path) = written();
    let grid = Grid::open(&path, 7).unwrap();
    assert_eq!(grid.days().iter().map(ToString::to_string).collect::<Vec<_>>(), DAYS);
    assert_eq!(
        grid.codes().iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        ["1301", "130A", "9999"]
    );
    grid.check_all(2).unwrap();
    let stripe = grid.stripe(2, Column::Close);
    assert_eq!(stripe.len(), 3);
    assert_eq!(
        stripe.iter().map(|cell| stored_value(*cell)).collect::<Vec<_>>(),
        [Some(230.0), None, Some(-1.5)]
    );
    assert!(grid.stripe(3, Column::Open).is_empty());
    assert!(grid.check(3, Column::Open).is_err());
}

#[test]
fn splits_are_read_where_they_were_written() {
    let (_folder, path) = written();
    assert_eq!(Grid::open(&path, 7).unwrap().splits(), None);
    for written in [splits(), Splits::default()] {
        let (_folder, path) = written_with(Some(written.clone()));
        let grid = Grid::open(&path, 7).unwrap();
        assert_eq!(grid.splits().map(AsRef::as_ref), Some(&written));
        grid.check_all(1).unwrap();
        assert_eq!(stored_value(grid.stripe(2, Column::Close)[2]), Some(-1.5));
    }
}

#[test]
fn what_an_earlier_version_knew_of_splits_is_not_used() {
    let (_folder, path) = written_with(Some(splits()));
    let mut bytes = fs::read(&path).unwrap();
    let (version, digest) = (8..16, 48..56);
    assert_eq!(bytes[version.clone()], 3_u64.to_ne_bytes());
    for (number, is_one) in [(2_u64, true), (4, false)] {
        bytes[version.clone()].copy_from_slice(&number.to_ne_bytes());
        let of_header = xxh3_64(&bytes[..48]);
        bytes[digest.clone()].copy_from_slice(&of_header.to_ne_bytes());
        fs::write(&path, &bytes).unwrap();
        let grid = Grid::open(&path, 7);
        assert_eq!(grid.is_ok(), is_one, "version {number}");
        assert!(grid.is_err() || grid.is_ok_and(|grid| grid.splits().is_none()));
    }
}

#[test]
fn a_stored_zero_is_null_to_arithmetic_only() {
    assert!(cell(Some(0.0)).is_nan() && cell(Some(-0.0)).is_nan());
    assert_eq!(stored_value(cell(Some(0.0))), Some(0.0));
    for null in [None, Some(f64::NAN), Some(f64::INFINITY)] {
        assert_eq!(stored_value(cell(null)), None);
    }
}

#[test]
fn every_damaged_byte_is_found() {
    for splits in [None, Some(splits())] {
        check_damaged_bytes(splits);
    }
}

fn check_damaged_bytes(splits: Option<Splits>) {
    let (_folder, path) = written_with(splits);
    let right = fs::read(&path).unwrap();
    let used_header = 7 * size_of::<u64>();
    let mut places: Vec<usize> = (0..used_header).chain(4_096..right.len()).collect();
    // The filling of the stripes is never read.
    places.retain(|&place| place < 4_096 || (place - 4_096) % 64 < 24 || place >= 4_096 + 15 * 64);
    for place in places {
        let mut wrong = right.clone();
        wrong[place] ^= 0x40;
        fs::write(&path, &wrong).unwrap();
        let outcome = Grid::open(&path, 7).and_then(|grid| grid.check_all(1));
        assert!(matches!(outcome, Err(GridFault::Damaged(_))), "byte {place}");
    }
}

#[test]
fn short_foreign_and_missing_files_are_refused() {
    let (folder, path) = written();
    let right = fs::read(&path).unwrap();
    assert!(
        matches!(Grid::open(&path, 8), Err(GridFault::Damaged(text)) if text == "it is snapshot 7")
    );
    fs::write(&path, &right[..right.len() - 1]).unwrap();
    assert!(matches!(Grid::open(&path, 7), Err(GridFault::Damaged(_))));
    fs::write(&path, b"KUMI").unwrap();
    assert!(matches!(Grid::open(&path, 7), Err(GridFault::Damaged(_))));
    let missing = folder.path().join("rank-9.grid");
    assert!(matches!(Grid::open(&missing, 9), Err(GridFault::Unreadable(_))));
}

#[test]
fn sizes_have_limits() {
    use super::format::within_limits;
    assert!(within_limits(SNAPSHOT_DAYS_MAX, SNAPSHOT_CELLS_MAX / SNAPSHOT_DAYS_MAX).is_ok());
    assert!(within_limits(SNAPSHOT_DAYS_MAX + 1, 1).is_err());
    assert!(within_limits(1, SNAPSHOT_CODES_MAX + 1).is_err());
    assert!(within_limits(SNAPSHOT_DAYS_MAX, SNAPSHOT_CODES_MAX).is_err());
    let folder = tempfile::tempdir().unwrap();
    let day = || vec!["2025-01-06".parse().unwrap()];
    for code in ["", "12345678901234567", "12 4", "１３０１"] {
        assert!(GridWriter::new(folder.path(), 1, day(), vec![Box::from(code)]).is_err(), "{code}");
    }
    let writer = GridWriter::new(folder.path(), 1, day(), vec![Box::from("1301")]).unwrap();
    assert!(writer.finish(&folder.path().join("rank-1.grid")).is_err());
}
