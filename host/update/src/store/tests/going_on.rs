//! The combined database as a copy of the one before with new days behind it, by the table of `combined`.

use std::fs;
use std::fs::FileTimes;

use pricestore::generation::{GenerationFileName, PublishedFile};
use proptest::prelude::*;

use super::*;
use crate::store::limits::{COMBINED_LATER_DAYS_MAX, COMBINED_LATER_ROWS_MAX};
use crate::store::publish::identity;

const CODES: [&str; 5] = ["1301", "130A", "25935", "7203", "9984"];

/// Rows of the combined database, and those of them that are by issue and date.
fn counts(fixture: &Fixture) -> Vec<String> {
    let counts = "SELECT count(*), (SELECT rows FROM rows_in_order) FROM daily";
    lines(&reader(&fixture.data.mother()), counts)
}

/// All that readers are told, whatever way it was written.
fn told(fixture: &Fixture) -> Vec<Vec<String>> {
    let mother = reader(&fixture.data.mother());
    let tables = ["daily", "adjusted", "unknown_before"];
    let mut told: Vec<Vec<String>> = tables
        .iter()
        .map(|table| lines(&mother, &format!("SELECT * FROM {table} ORDER BY code, date")))
        .collect();
    for code in CODES.iter().filter(|code| fixture.issue(code).exists()) {
        let own = reader(&fixture.issue(code));
        for table in ["daily", "adjusted"] {
            let own = lines(&own, &format!("SELECT * FROM {table} ORDER BY date"));
            let of_code = format!("SELECT * FROM {table} WHERE code = '{code}' ORDER BY date");
            assert_eq!(own, lines(&mother, &of_code), "{table} of {code}");
            told.push(own);
        }
    }
    told
}

#[test]
fn new_days_come_behind_what_was_published() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&CODES, &days(4))).unwrap();
    publish_and_split(&mut store);
    assert_eq!(counts(&fixture), ["20|20"]);
    store.apply(&market(&CODES[1..], &days(5)[4..])).unwrap();
    publish_and_split(&mut store);
    assert_eq!(counts(&fixture), ["24|20"]);
    // Also with an issue that nobody knew, and by another job.
    drop(store);
    let mut store = fixture.open();
    store.apply(&market(&["8306", "1301"], &days(6)[5..])).unwrap();
    publish_and_split(&mut store);
    assert_eq!(counts(&fixture), ["26|20"]);
    assert_eq!(
        lines(&reader(&fixture.issue("8306")), "SELECT date, code FROM daily"),
        ["2025-01-06|8306"]
    );
    told(&fixture);
    // A correction, a day in between, and an issue on an old day: written whole.
    for (row, expected) in [
        (row("7203", days(2)[1], 900), "26|26"),
        (row("8306", days(1)[0], 900), "27|27"),
        (row("8306", days(7)[6], 900), "28|27"),
        (row("8306", days(7)[6], 901), "28|28"),
    ] {
        store.apply(&[row]).unwrap();
        publish_and_split(&mut store);
        assert_eq!(counts(&fixture), [expected]);
        told(&fixture);
    }
}

#[test]
fn what_is_not_as_it_was_written_is_not_gone_on_from() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let mother = fixture.data.mother();
    let mut next = 2;
    let mut one_more = |store: &mut WorkDatabase| {
        next += 1;
        store.apply(&market(&CODES, &days(next)[next as usize - 1..])).unwrap();
        publish_and_split(store);
        counts(&fixture)
    };
    store.apply(&market(&CODES, &days(2))).unwrap();
    publish_and_split(&mut store);
    assert_eq!(one_more(&mut store), ["15|10"]);
    // A byte in the middle, with the size and the time that were noted.
    let written = fs::metadata(&mother).unwrap().modified().unwrap();
    let mut bytes = fs::read(&mother).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&mother, bytes).unwrap();
    let file = fs::File::options().write(true).open(&mother).unwrap();
    file.set_times(FileTimes::new().set_modified(written)).unwrap();
    drop(file);
    assert_eq!(one_more(&mut store), ["20|20"]);
    // Gone.
    assert_eq!(one_more(&mut store), ["25|20"]);
    fs::remove_file(&mother).unwrap();
    assert_eq!(one_more(&mut store), ["30|30"]);
    // Noted as ours, and yet of another form: what fails is written whole.
    assert_eq!(one_more(&mut store), ["35|30"]);
    let other = Connection::open(&mother).unwrap();
    other.execute_batch("DROP TABLE rows_in_order; CHECKPOINT").unwrap();
    drop(other);
    let found = PublishedFile::read(&mother, &GenerationFileName::Combined).unwrap();
    store.execute(&format!(
        "UPDATE work.state SET published_file = '{}';
         UPDATE work.written_file SET bytes = {}, xxh128 = '{}' WHERE path = '{}'",
        identity(&mother).unwrap(),
        found.bytes,
        found.xxh128,
        found.path
    ));
    assert_eq!(one_more(&mut store), ["40|40"]);
    told(&fixture);
}

#[test]
fn at_most_so_many_rows_come_later() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(2))).unwrap();
    store.publish(&mut go_on).unwrap();
    let most = usize::try_from(COMBINED_LATER_ROWS_MAX).unwrap();
    let many = days(40);
    let codes = (10_001..20_000).filter(|code| code % 10 > 0).map(|code| code.to_string());
    let codes: Vec<String> = codes.collect();
    let rows = many[2..].iter().flat_map(|date| codes.iter().map(|code| row(code, *date, 500)));
    let rows: Vec<DailyRow> = rows.take(most - 1).collect();
    let ends = rows.iter().map(|row| row.date).max().unwrap();
    let next = many.iter().position(|date| *date > ends).unwrap();
    store.apply(&rows).unwrap();
    store.publish(&mut go_on).unwrap();
    assert_eq!(counts(&fixture), [format!("{}|2", most + 1)]);
    store.apply(&[row("1301", many[next], 500)]).unwrap();
    store.publish(&mut go_on).unwrap();
    assert_eq!(counts(&fixture), [format!("{}|2", most + 2)]);
    store.apply(&[row("1301", many[next + 1], 500)]).unwrap();
    store.publish(&mut go_on).unwrap();
    assert_eq!(counts(&fixture), [format!("{0}|{0}", most + 3)]);
}

#[test]
fn at_most_so_many_days_come_later() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let (most, many) = (usize::try_from(COMBINED_LATER_DAYS_MAX).unwrap(), days(60));
    store.apply(&market(&["1301"], &many[..2])).unwrap();
    store.publish(&mut go_on).unwrap();
    store.apply(&market(&["1301"], &many[2..most + 1])).unwrap();
    store.publish(&mut go_on).unwrap();
    assert_eq!(counts(&fixture), [format!("{}|2", most + 1)]);
    for (day, in_order) in [(most + 1, 2), (most + 2, most + 3), (most + 3, most + 3)] {
        store.apply(&market(&["1301"], &many[day..=day])).unwrap();
        store.publish(&mut go_on).unwrap();
        assert_eq!(counts(&fixture), [format!("{}|{in_order}", day + 1)]);
    }
}

/// What comes in at once: rows of a day, and how many days later than the one before.
fn delivery() -> impl Strategy<Value = (u64, u8, i64, bool)> {
    (prop_oneof![3 => Just(1u64), 1 => 0..4u64], 1..32u8, 500..503i64, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Day by day, whole where it has to be, or all at once: readers are told the same.
    #[test]
    fn readers_are_told_the_same_whatever_the_way(
        deliveries in proptest::collection::vec(delivery(), 1..9),
    ) {
        let (step_by_step, at_once) = (Fixture::new(), Fixture::new());
        let (mut store, mut other) = (step_by_step.open(), at_once.open());
        let mut last = 0;
        for (number, (later, codes, yen, is_split)) in deliveries.iter().enumerate() {
            // Now and then an older day.
            last = if *later == 0 { number as u64 / 2 } else { last + later };
            let date = days(last + 1)[last as usize];
            let codes = CODES.iter().enumerate().filter(|(place, _)| codes >> place & 1 == 1);
            let rows: Vec<DailyRow> = codes.map(|(_, code)| {
                let mut row = row(code, date, *yen);
                if *is_split { row.adjustment_factor = Some(0.5); }
                row
            }).collect();
            for store in [&mut store, &mut other] {
                store.apply(&rows).unwrap();
            }
            publish_and_split(&mut store);
        }
        publish_and_split(&mut other);
        prop_assert_eq!(told(&step_by_step), told(&at_once));
    }
}
