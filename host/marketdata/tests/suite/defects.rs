//! Every kind of damage has its own message, and every legal spelling is read: one table each.

use marketdata::Selection;

use crate::common::{HEADER, TEXT, code, gzip, read_bytes, text_rows};

const LAYOUT: &str = "correct the line, or download the file again";
const AGAIN: &str = "download the file again";
/// Cells are damaged here: the second row of a code and date, which the fast path would read.
const DAMAGED_LINE: usize = 3;
const CHUNKS: [usize; 5] = [1, 7, 64, 1_000, 1 << 18];

fn check(kind: &str, bytes: &[u8], expected: &str) {
    for chunk in CHUNKS {
        let found = read_bytes(bytes, &Selection::All, chunk);
        assert_eq!(found, Err(expected.to_owned()), "{kind}, chunks of {chunk}");
    }
}

/// [`TEXT`] with a cell of a line replaced.
fn with_cell(line: usize, column: usize, value: &str) -> Vec<u8> {
    let mut lines: Vec<String> = TEXT.lines().map(str::to_owned).collect();
    let mut cells: Vec<&str> = lines[line - 1].split(',').collect();
    cells[column] = value;
    lines[line - 1] = cells.join(",");
    gzip(lines.join("\n") + "\n")
}

#[test]
fn damaged_cells_are_named() {
    let price = "a price above 0 and up to 1000000000 yen with at most 4 digits after the point";
    let shares = "a whole number of shares from 1 to 1000000000000";
    let date = "a date that exists, as YYYY-MM-DD";
    let time = "a time that exists, as HH:MM:SS with up to 9 digits of fraction";
    let morning = "a time from 09:00:00 to 11:35:00 in session 01";
    let any_code = "a code of 5 digits and capital letters that starts with a digit";
    let order =
        "a time from 2025-01-06 09:00:00.067558 JST on, the time of the previous row of code 13010";
    let duplicate = "an id that code 13010 has not used before on this date";
    for (column, name, value, expected) in [
        (0, "Date", "2025-02-30", date),
        (0, "Date", "06.01.2025", date),
        (0, "Date", "2031-07-01", "a date in 2025-01, the period in the file's name"),
        (1, "Code", "7203", any_code),
        (1, "Code", "720300", any_code),
        (1, "Code", "13o10", any_code),
        (2, "Time", "25:61:00.000000", time),
        (2, "Time", "09:00", time),
        (2, "Time", "12:00:00.000000", morning),
        (2, "Time", "08:59:59.999999", morning),
        (2, "Time", "11:35:00.000001", morning),
        (2, "Time", "09:00:00.067557", order),
        (3, "SessionDistinction", "03", "01 (morning) or 02 (afternoon)"),
        (3, "SessionDistinction", "1", "01 (morning) or 02 (afternoon)"),
        (4, "Price", "abc", price),
        (4, "Price", "NaN", price),
        (4, "Price", "-5", price),
        (4, "Price", "0", price),
        (4, "Price", "4810.00001", price),
        (4, "Price", "", price),
        (4, "Price", "1000000000.1", price),
        (5, "TradingVolume", "0", shares),
        (5, "TradingVolume", "-100", shares),
        (5, "TradingVolume", "100.5", shares),
        (5, "TradingVolume", "1000000000001", shares),
        (5, "TradingVolume", "99999999999999999999", shares),
        (6, "TransactionId", "x", "a whole number of at most 19 digits"),
        (6, "TransactionId", "000000000021", duplicate),
        (6, "TransactionId", "21", duplicate),
    ] {
        check(
            name,
            &with_cell(DAMAGED_LINE, column, value),
            &format!("F, line 3, column {name}: expected {expected}, found `{value}`; {LAYOUT}"),
        );
    }
    check(
        "NUL",
        &with_cell(DAMAGED_LINE, 4, "12\x0034"),
        &format!(
            "F, line 3, column Price: expected text without NUL bytes, found `12\\x0034`; {LAYOUT}"
        ),
    );
    check(
        "session of the afternoon",
        &with_cell(DAMAGED_LINE, 3, "02"),
        &format!(
            "F, line 3, column Time: expected a time from 12:30:00 to 15:35:00 in session 02, \
             found `09:00:00.067558`; {LAYOUT}"
        ),
    );
    check(
        "an earlier date",
        &with_cell(8, 0, "2025-01-06"),
        &format!(
            "F, line 8, column Date: expected a date from 2025-01-07 09:00:01.500000 JST on, the \
             date of the previous row of code 13010, found `2025-01-06`; {LAYOUT}"
        ),
    );
}

#[test]
fn damaged_lines_are_named() {
    let insert = |after: usize, line: &str| {
        let mut lines: Vec<&str> = TEXT.lines().collect();
        lines.insert(after, line);
        gzip(lines.join("\n") + "\n")
    };
    let short = "2025-01-06,72030,09:00:01.000000";
    for (kind, bytes, expected) in [
        ("blank", insert(2, ""), "expected a row, found an empty line".to_owned()),
        ("blank with CR", insert(2, "\r"), "expected a row, found an empty line".to_owned()),
        (
            "short row",
            insert(2, short),
            format!("expected 7 cells as in the header, found 3: `{short}`"),
        ),
        (
            "long row",
            insert(2, "1,2,3,4,5,6,7,8"),
            "expected 7 cells as in the header, found 8: `1,2,3,4,5,6,7,8`".to_owned(),
        ),
        (
            "open quote",
            insert(2, "\"2025-01-06,13010"),
            "expected a closing quote, found the end of the line: `\"2025-01-06,13010`".to_owned(),
        ),
        (
            "stray quote",
            insert(2, "2025\"-01-06,13010"),
            "expected quotes around a whole cell, found one inside it: `2025\"-01-06,13010`"
                .to_owned(),
        ),
        (
            "long line",
            insert(2, &"9".repeat(8 << 20)),
            "expected a line of at most 4096 bytes, found a longer one".to_owned(),
        ),
    ] {
        check(kind, &bytes, &format!("F, line 3: {expected}; {LAYOUT}"));
    }
}

#[test]
fn damaged_headers_are_named() {
    let first_row = TEXT.lines().nth(1).unwrap();
    for (kind, text, expected) in [
        ("no text", String::new(), "expected the header line, found no text".to_owned()),
        ("no rows", format!("{HEADER}\n"), "expected rows after the header, found none".to_owned()),
        (
            "no line feed",
            HEADER.to_owned(),
            "expected rows after the header, found none".to_owned(),
        ),
        (
            "no header",
            TEXT[HEADER.len() + 1..].to_owned(),
            format!("expected the header {HEADER}, found `{first_row}`"),
        ),
        (
            "renamed column",
            TEXT.replacen("TradingVolume", "Volume", 1),
            "expected a column TradingVolume, found the header \
             `Date,Code,Time,SessionDistinction,Price,Volume,TransactionId`"
                .to_owned(),
        ),
        (
            "column twice",
            TEXT.replacen("TradingVolume", "Price", 1),
            "expected one column Price, found the header \
             `Date,Code,Time,SessionDistinction,Price,Price,TransactionId`"
                .to_owned(),
        ),
        (
            "one line of zeros",
            "0".repeat(10_000),
            "expected a line of at most 4096 bytes, found a longer one".to_owned(),
        ),
    ] {
        check(kind, &gzip(text), &format!("F, line 1: {expected}; {AGAIN}"));
    }
}

#[test]
fn damaged_gzip_is_named() {
    let whole = gzip(TEXT);
    let length = whole.len();
    let mut wrong_checksum = whole.clone();
    wrong_checksum[length - 8..].fill(0);
    let garbage = [whole.as_slice(), b"garbage"].concat();
    let cut = length * 7 / 10;
    let mut wrong_codes = whole.clone();
    // A block of a kind that does not exist.
    wrong_codes[10] |= 0b110;
    for (kind, bytes, expected) in [
        ("empty file", Vec::new(), "byte 0: expected gzip data, found an empty file".to_owned()),
        (
            "not gzip",
            TEXT.into(),
            "byte 0: expected gzip data, found `Date,Code,Time,SessionDistinction,Price,...`"
                .to_owned(),
        ),
        (
            "truncated",
            whole[..cut].to_vec(),
            format!("byte {cut}: the gzip data ends too early, part of the file is missing"),
        ),
        (
            "checksum",
            wrong_checksum,
            format!(
                "byte {length}: the checksum at the end of the gzip data does not match its text"
            ),
        ),
        (
            "garbage after",
            garbage,
            format!(
                "byte {length}: expected the end of the file or more gzip data, found `garbage`"
            ),
        ),
    ] {
        check(kind, &bytes, &format!("F, compressed {expected}; {AGAIN}"));
    }
    let message = read_bytes(&wrong_codes, &Selection::All, 64).unwrap_err();
    assert!(message.contains("the gzip data is damaged (its codes make no sense)"), "{message}");
}

#[test]
fn legal_spellings_are_read() {
    let split = |at: &[usize]| {
        let mut members = Vec::new();
        let mut start = 0;
        for &end in at.iter().chain(&[TEXT.len()]) {
            members.extend(gzip(&TEXT[start..end]));
            start = end;
        }
        members
    };
    let per_line = |change: &dyn Fn(usize, &str) -> String| {
        let lines = TEXT.lines().enumerate();
        gzip(lines.map(|(at, line)| change(at, line) + "\n").collect::<String>())
    };
    let reordered = per_line(&|_, line| {
        let cells: Vec<&str> = line.split(',').collect();
        [cells[1], cells[0], cells[6], cells[5], cells[4], cells[3], cells[2]].join(",")
    });
    let extra = per_line(&|at, line| line.to_owned() + if at == 0 { ",Extra" } else { ",1" });
    let quoted = per_line(&|_, line| format!("\"{}\"", line.replace(',', "\",\"")));
    let one_quoted = per_line(&|at, line| match at {
        3 => line.replace("13010", "\"13010\""),
        _ => line.to_owned(),
    });
    for (kind, bytes) in [
        ("as the vendor", gzip(TEXT)),
        ("several members", split(&[30, 200])),
        ("empty members", split(&[0, 0, 68, 68])),
        ("CR LF", gzip(TEXT.replace('\n', "\r\n"))),
        ("byte order mark", gzip(format!("\u{feff}{TEXT}"))),
        ("quoted", quoted),
        ("one quoted cell", one_quoted),
        ("no final line feed", gzip(TEXT.trim_end())),
        ("no final line feed after CR", gzip(TEXT.trim_end().to_owned() + "\r")),
        ("reordered", reordered),
        ("extra column", extra),
        ("short fraction", gzip(TEXT.replace(".500000", ".5"))),
        ("short ids", gzip(TEXT.replace(",0000000000", ","))),
        ("four decimals", gzip(TEXT.replace(",4810,", ",4810.0000,"))),
    ] {
        for chunk in CHUNKS {
            let rows = read_bytes(&bytes, &Selection::All, chunk).unwrap();
            assert_eq!(rows, text_rows(), "{kind}, chunks of {chunk}");
            let some = Selection::Codes(vec![code("25935"), code("13010")]);
            let rows = read_bytes(&bytes, &some, chunk).unwrap();
            let expected: Vec<_> = text_rows().into_iter().filter(|row| row.0 != "130A0").collect();
            assert_eq!(rows, expected, "{kind}, two codes, chunks of {chunk}");
        }
    }
}

#[test]
fn falling_ids_and_ids_of_other_days_are_legal() {
    let text = TEXT.replace("000000000188", "000000000001");
    assert_eq!(read_bytes(&gzip(text), &Selection::All, 64).unwrap()[2].4, 1);
    let text = TEXT.replace("000000000007", "000000000021");
    assert_eq!(read_bytes(&gzip(text), &Selection::All, 64).unwrap()[5].4, 21);
}

#[test]
fn defects_of_other_codes_are_not_seen_but_structure_is() {
    let only = |text: &str| Selection::Codes(vec![code(text)]);
    for (column, value) in [(0, "2025-02-30"), (2, "12:00:00.000000"), (4, "abc"), (5, "0")] {
        let damaged = with_cell(DAMAGED_LINE, column, value);
        assert_eq!(read_bytes(&damaged, &only("25935"), 64).unwrap().len(), 1);
        assert!(read_bytes(&damaged, &only("13010"), 64).is_err());
    }
    for line in ["", "2025-01-06", &"9".repeat(5_000)] {
        let text = gzip(TEXT.replacen("\n2025", &format!("\n{line}\n2025"), 1));
        assert!(read_bytes(&text, &only("25935"), 64).is_err(), "{line}");
    }
    let cut = gzip(TEXT);
    assert!(read_bytes(&cut[..cut.len() - 1], &only("25935"), 64).is_err());
}
