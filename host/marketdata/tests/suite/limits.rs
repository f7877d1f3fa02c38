//! Each limit is hit.

use std::ops::ControlFlow;

use domain::VendorCode;
use marketdata::limits::{
    LINE_BYTES_MAX, PROGRESS_BYTES, SELECTED_CODES_MAX, TEXT_RATIO_FREE_BYTES,
};
use marketdata::{DataError, ReadOptions, Selection, TradeRow, read_trades};

use crate::common::{HEADER, TEXT, code, file_with, go_on, gzip, read, read_bytes};

/// Rows of one code that is not asked for, with long notes that compress extremely well.
fn repeated_rows(bytes: u64) -> Vec<u8> {
    let note = "x".repeat(4_000);
    let row = format!("2025-01-06,13010,09:00:00,01,4810,2200,21,{note}\n");
    let rows = usize::try_from(bytes).unwrap() / row.len() + 1;
    gzip(format!("{HEADER},Note\n{}", row.repeat(rows)))
}

#[test]
fn lines_may_be_as_long_as_the_limit() {
    let with_note = |length: usize| {
        let row = "2025-01-06,13010,09:00:00,01,4810,2200,21,";
        let note = "x".repeat(length - row.len());
        gzip(format!("{HEADER},Note\n{row}{note}\n"))
    };
    for chunk in [1, 100, 4_096, 4_097, 10_000] {
        let longest = with_note(LINE_BYTES_MAX);
        assert_eq!(read_bytes(&longest, &Selection::All, chunk).unwrap().len(), 1);
        let message = read_bytes(&with_note(LINE_BYTES_MAX + 1), &Selection::All, chunk);
        assert_eq!(
            message.unwrap_err(),
            "F, line 2: expected a line of at most 4096 bytes, found a longer one; correct the \
             line, or download the file again"
        );
    }
}

#[test]
fn bombs_are_refused() {
    let other = Selection::Codes(vec![code("99990")]);
    let (_folder, harmless) = file_with(&repeated_rows(TEXT_RATIO_FREE_BYTES / 2));
    let (rows, summary) = read(&harmless, &other, 1 << 18).unwrap();
    assert!(rows.is_empty());
    assert!(summary.text_bytes > summary.compressed_bytes * 200);
    let (_folder, bomb) = file_with(&repeated_rows(TEXT_RATIO_FREE_BYTES * 2));
    let error = read(&bomb, &other, 1 << 18).unwrap_err();
    assert!(matches!(error, DataError::Bomb { .. }), "{error}");
    assert!(error.to_string().contains("above the limit of 200 to 1"), "{error}");
}

#[test]
fn the_text_limit_is_the_callers() {
    let (_folder, file) = file_with(&gzip(TEXT));
    let read_with = |text_bytes_max| {
        let options = ReadOptions { text_bytes_max, ..ReadOptions::default() };
        let mut ignore = |_: &TradeRow| {};
        read_trades(&file, &Selection::All, &options, &mut go_on, &mut ignore)
    };
    let length = TEXT.len() as u64;
    assert_eq!(read_with(length).unwrap().text_bytes, length);
    let error = read_with(length - 1).unwrap_err();
    assert!(matches!(error, DataError::TooMuchText { limit, .. } if limit == length - 1));
}

#[test]
fn the_number_of_selected_codes_is_limited() {
    let (_folder, file) = file_with(&gzip(TEXT));
    let codes = |count: usize| {
        let code = |number| VendorCode::new(&format!("{number:05}")).unwrap();
        Selection::Codes((0..count).map(code).collect())
    };
    assert!(read(&file, &codes(SELECTED_CODES_MAX), 64).is_ok());
    assert_eq!(
        read(&file, &codes(SELECTED_CODES_MAX + 1), 64).unwrap_err().to_string(),
        "65 codes asked for at once, the limit is 64; ask for them in several passes"
    );
}

#[test]
fn progress_is_told_and_can_cancel() {
    // Ids and prices that hardly compress make a file of several megabytes.
    let mut text = format!("{HEADER}\n");
    let mut state = 1_u64;
    let rows = 400_000;
    for _ in 0..rows {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let id = state >> 1;
        text += &format!("2025-01-06,13010,09:00:00.000000,01,{},100,{id:019}\n", 1 + id % 99_999);
    }
    let (_folder, file) = file_with(&gzip(text));
    let total = file.path.metadata().unwrap().len();
    let mut reports = Vec::new();
    let options = ReadOptions::default();
    let mut ignore = |_: &TradeRow| {};
    let mut note = |progress| {
        reports.push(progress);
        ControlFlow::Continue(())
    };
    let summary = read_trades(&file, &Selection::All, &options, &mut note, &mut ignore).unwrap();
    assert_eq!((summary.rows_scanned, summary.compressed_bytes), (rows, total));
    assert_eq!(reports.len() as u64, total / PROGRESS_BYTES);
    assert!(reports.is_sorted_by_key(|report| (report.compressed_bytes, report.rows_scanned)));
    assert!(reports.iter().all(|report| report.compressed_total == total));
    let mut stop = |_| ControlFlow::Break(());
    let error = read_trades(&file, &Selection::All, &options, &mut stop, &mut ignore).unwrap_err();
    assert!(
        matches!(error, DataError::Cancelled { rows, .. } if rows == reports[0].rows_scanned),
        "{error}"
    );
}
