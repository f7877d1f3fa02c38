//! Random rows in random legal spellings read back as they were written.

use std::fmt::Write;

use domain::time::NANOS_PER_SECOND;
use domain::{JstDate, Price, TsNanos};
use marketdata::Selection;
use proptest::prelude::*;

use crate::common::{HEADER, Row, code, gzip, read_bytes};

const CODES: [&str; 4] = ["13010", "130A0", "25935", "99840"];

#[derive(Debug, Clone)]
struct Spelling {
    line_end: &'static str,
    byte_order_mark: bool,
    final_line_end: bool,
    quote_every: usize,
    column_order: Vec<usize>,
    extra_column: bool,
    member_length: usize,
    fraction_digits: usize,
    chunk_bytes: usize,
}

fn spelling() -> impl Strategy<Value = Spelling> {
    let standard = Just((0..7).collect::<Vec<usize>>());
    (
        prop_oneof![Just("\n"), Just("\r\n")],
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(usize::MAX), 1..9_usize],
        prop_oneof![standard.clone(), standard.prop_shuffle()],
        any::<bool>(),
        1..5_000_usize,
        prop_oneof![Just(6_usize), 6..=9_usize],
        prop_oneof![1..=64_usize, Just(1 << 18)],
    )
        .prop_map(|choices| Spelling {
            line_end: choices.0,
            byte_order_mark: choices.1,
            final_line_end: choices.2,
            quote_every: choices.3,
            column_order: choices.4,
            extra_column: choices.5,
            member_length: choices.6,
            fraction_digits: choices.7,
            chunk_bytes: choices.8,
        })
}

/// A row as random numbers: code, day, microseconds since the row before, price, quantity, gap of
/// ids.
type Draw = (usize, bool, u64, i64, u64, u64);

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let price = prop_oneof![1..10_000_000_i64, 1..10_000_i64, 1..10_000_000_000_000_i64];
    let quantity = prop_oneof![1..10_000_u64, 1..=1_000_000_000_000_u64];
    let draw = (0..4_usize, any::<bool>(), 0..3_u64, price, quantity, 1..1_000_u64);
    prop::collection::vec(draw, 1..120)
}

/// The rows in file order: all of the first day, then all of the second.
fn rows_of(draws: &[Draw]) -> Vec<(JstDate, u64, bool, Row)> {
    let mut rows = Vec::new();
    for second_day in [false, true] {
        let date = JstDate::from_ymd_opt(2025, 1, 6 + u32::from(second_day)).unwrap();
        let mut id = 0;
        let mut of_day = 9 * 3_600 * NANOS_PER_SECOND;
        let mut afternoon = false;
        for &(code, _, gap, units, quantity, id_gap) in
            draws.iter().filter(|draw| draw.1 == second_day)
        {
            // Every price that the general path takes, and mostly ones that the fast path takes.
            let units = if units % 3 == 0 { units } else { (units / 1_000).max(1) * 1_000 };
            id += id_gap;
            of_day += gap * 1_000;
            if !afternoon && id > 20_000 {
                (afternoon, of_day) = (true, 13 * 3_600 * NANOS_PER_SECOND);
            }
            let ts = TsNanos::from_jst(date, of_day).unwrap().nanos();
            let row = (CODES[code].to_owned(), ts, units, quantity, id);
            rows.push((date, of_day, afternoon, row));
        }
    }
    rows
}

fn spell(rows: &[(JstDate, u64, bool, Row)], spelling: &Spelling) -> Vec<u8> {
    let mut lines = vec![HEADER.split(',').map(str::to_owned).collect::<Vec<_>>()];
    for (date, of_day, afternoon, (code, _, units, quantity, id)) in rows {
        let seconds = of_day / NANOS_PER_SECOND;
        let mut time =
            format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let fraction = format!("{:09}", of_day % NANOS_PER_SECOND);
        write!(time, ".{}", &fraction[..spelling.fraction_digits]).unwrap();
        let session = if *afternoon { "02" } else { "01" };
        lines.push(vec![
            date.to_string(),
            code.clone(),
            time,
            session.to_owned(),
            Price::from_units(*units).to_string(),
            quantity.to_string(),
            format!("{id:012}"),
        ]);
    }
    let mut text = if spelling.byte_order_mark { "\u{feff}".to_owned() } else { String::new() };
    let mut cell_number = 0;
    for (place, line) in lines.iter().enumerate() {
        let mut cells: Vec<String> =
            spelling.column_order.iter().map(|&at| line[at].clone()).collect();
        if spelling.extra_column {
            cells.push(if place == 0 { "Note" } else { "some \"\"text" }.to_owned());
        }
        for cell in &mut cells {
            cell_number += 1;
            if cell_number % spelling.quote_every == 0 || cell.contains('"') {
                *cell = format!("\"{cell}\"");
            }
        }
        text += &cells.join(",");
        if place + 1 < lines.len() || spelling.final_line_end {
            text += spelling.line_end;
        }
    }
    text.as_bytes().chunks(spelling.member_length).flat_map(gzip).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_legal_spelling_reads_back(draws in draws(), spelling in spelling()) {
        let rows = rows_of(&draws);
        let bytes = spell(&rows, &spelling);
        let expected: Vec<Row> = rows.into_iter().map(|row| row.3).collect();
        let all = read_bytes(&bytes, &Selection::All, spelling.chunk_bytes);
        prop_assert_eq!(all.as_ref(), Ok(&expected));
        for codes in [&CODES[..1], &CODES[1..3]] {
            let selection = Selection::Codes(codes.iter().map(|text| code(text)).collect());
            let some = read_bytes(&bytes, &selection, spelling.chunk_bytes);
            let expected: Vec<Row> = expected
                .iter()
                .filter(|row| codes.contains(&row.0.as_str()))
                .cloned()
                .collect();
            prop_assert_eq!(some, Ok(expected));
        }
    }

    #[test]
    fn no_bytes_break_the_reader(text in prop::collection::vec(any::<u8>(), 0..400), chunk in 1..64_usize) {
        let body = [HEADER.as_bytes(), b"\n", &text].concat();
        let small = read_bytes(&gzip(&body), &Selection::All, chunk);
        let large = read_bytes(&gzip(&body), &Selection::All, 1 << 18);
        prop_assert_eq!(small, large);
        let _ = read_bytes(&text, &Selection::All, chunk);
    }

    #[test]
    fn damaged_rows_never_depend_on_the_buffer(
        position in 0..crate::common::TEXT.len(),
        byte in any::<u8>(),
        chunk in 1..64_usize,
    ) {
        let mut text = crate::common::TEXT.as_bytes().to_vec();
        text[position] = byte;
        let small = read_bytes(&gzip(&text), &Selection::All, chunk);
        let large = read_bytes(&gzip(&text), &Selection::All, 1 << 18);
        prop_assert_eq!(small, large);
    }
}
