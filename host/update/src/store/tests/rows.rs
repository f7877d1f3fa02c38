//! Storing rows: what is counted, what is refused, and that exactly the given values are there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::store::StoreError;
use crate::store::limits::{LOAD_ROWS_MIN, LOAD_THREADS, ROWS_AT_ONCE_MAX};
use crate::{Applied, Correction, IssueCode};

#[test]
fn rows_are_counted_by_their_values() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let january = days(3);
    let mut rows = market(&["1301", "130A", "25935"], &january);
    let applied = store.apply(&rows).unwrap();
    assert_eq!((applied.inserted, applied.changed, applied.unchanged), (9, 0, 0));
    assert_eq!(applied.first_changed(), Some(january[0]));

    for row in &mut rows {
        row.source = SourceKind::Public;
    }
    let same = Applied { unchanged: 9, ..Applied::default() };
    assert_eq!(store.apply(&rows).unwrap(), same, "another source of the same values");

    // Other values of a worse source change nothing, also where the better one has none. Who tells no
    // factor has no other one (rule `factor`).
    rows[4].close = Some(Price::from_units(16_741_001));
    rows[5].turnover = None;
    rows[7].adjustment_factor = None;
    let kept = Applied { unchanged: 7, kept: 2, ..Applied::default() };
    assert_eq!(store.apply(&rows).unwrap(), kept);
    for row in &mut rows {
        row.source = SourceKind::Files;
    }
    rows.push(row("7203", january[2], 900));
    let applied = store.apply(&rows).unwrap();
    let dates = january[1..].iter().copied().collect();
    let corrections = vec![
        correction("130A", january[1], ("close", Some(501.0), Some(1674.1001))),
        correction("25935", january[1], ("turnover", Some(500_000.0), None)),
    ];
    let expected =
        Applied { inserted: 1, changed: 2, unchanged: 7, corrections, dates, ..Applied::default() };
    assert_eq!(applied, expected);
    assert_eq!(store.apply(&[]).unwrap(), Applied::default());

    let known = store.rows().known().unwrap();
    let codes: Vec<&str> = known.codes.iter().map(IssueCode::as_str).collect();
    assert_eq!(codes, ["1301", "130A", "25935", "7203"]);
    let counts: Vec<_> = january.into_iter().zip([3, 3, 4]).collect();
    assert_eq!(known.dates.into_iter().collect::<Vec<_>>(), counts);
}

/// A change of a row of the vendor.
fn correction(
    code: &str,
    date: JstDate,
    value: (&'static str, Option<f64>, Option<f64>),
) -> Correction {
    let before = Some("vendor".to_owned());
    let code = code.parse().unwrap();
    Correction { date, code, before, taken_back: false, values: vec![value] }
}

#[test]
fn a_row_is_replaced_by_the_same_or_a_better_source() {
    let kinds = [SourceKind::Vendor, SourceKind::Files, SourceKind::WebBroker, SourceKind::Public];
    for (old, new) in kinds.iter().flat_map(|old| kinds.map(|new| (*old, new))) {
        let fixture = Fixture::new();
        let mut store = fixture.open();
        let of = |source, yen| vec![DailyRow { source, ..row("1301", days(1)[0], yen) }];
        store.apply(&of(old, 500)).unwrap();
        let applied = store.apply(&of(new, 600)).unwrap();
        let replaces = new.rank() >= old.rank();
        assert_eq!((applied.changed == 1, applied.kept == 1), (replaces, !replaces), "{old} {new}");
        assert_eq!(applied.corrections.len(), usize::from(replaces));
    }
    // What a better source says too is of that one, and a lesser one no longer replaces it.
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let of = |source, yen| [DailyRow { source, ..row("1301", days(1)[0], yen) }];
    store.apply(&of(SourceKind::Public, 500)).unwrap();
    let applied = store.apply(&of(SourceKind::WebBroker, 500)).unwrap();
    let dates = days(1).into_iter().collect();
    assert_eq!(applied, Applied { confirmed: 1, dates, ..Applied::default() });
    assert_eq!(store.apply(&of(SourceKind::Public, 600)).unwrap().kept, 1);
    assert_eq!(store.apply(&of(SourceKind::Public, 500)).unwrap().unchanged, 1);
    // Who does not tell where a row came from is not overruled by less than the vendor.
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&[row("1301", days(1)[0], 500)]).unwrap();
    store.execute("UPDATE work.daily SET source = NULL");
    for (source, changed) in [(SourceKind::WebBroker, 0), (SourceKind::Files, 1)] {
        let row = DailyRow { source, ..row("1301", days(1)[0], 600) };
        assert_eq!(store.apply(&[row]).unwrap().changed, changed, "{source}");
    }
}

/// Rule `factor`.
#[test]
fn a_factor_that_is_known_stays_where_none_is_told() {
    for (old, new) in [
        (SourceKind::Vendor, SourceKind::Files),
        (SourceKind::Files, SourceKind::Vendor),
        (SourceKind::WebBroker, SourceKind::Vendor),
    ] {
        let fixture = Fixture::new();
        let mut store = fixture.open();
        let of = |source, yen, factor| {
            [DailyRow { source, adjustment_factor: factor, ..row("1301", days(1)[0], yen) }]
        };
        let factor = |store: &mut WorkDatabase| {
            store.publish(&mut go_on).unwrap();
            let told = "SELECT coalesce(adjustment_factor::VARCHAR, '-'), close FROM daily";
            lines(&reader(&fixture.data.mother()), told).remove(0)
        };
        store.apply(&of(old, 500, Some(0.5))).unwrap();
        let same = store.apply(&of(new, 500, None)).unwrap();
        assert_eq!((same.changed, same.unchanged + same.confirmed), (0, 1), "{old} {new}");
        assert_eq!(factor(&mut store), "0.5|501.0");
        let other = store.apply(&of(new, 600, None)).unwrap();
        let named: Vec<&str> = other.corrections[0].values.iter().map(|value| value.0).collect();
        assert_eq!((other.changed, named.contains(&"adjustment_factor")), (1, false));
        assert_eq!(factor(&mut store), "0.5|601.0");
        // One that is told replaces what is known, and what is not.
        assert_eq!(store.apply(&of(new, 600, Some(1.0))).unwrap().changed, 1);
        assert_eq!(factor(&mut store), "1.0|601.0");
    }
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let of = |factor| [DailyRow { adjustment_factor: factor, ..row("1301", days(1)[0], 5) }];
    store.apply(&of(None)).unwrap();
    let told = store.apply(&of(Some(1.0))).unwrap();
    let value = ("adjustment_factor", None, Some(1.0));
    assert_eq!(told.corrections, [correction("1301", days(1)[0], value)]);
}

/// The vendor's own columns of adjusted prices and volumes are what the view has, though a factor has five digits.
#[test]
fn adjusted_values_are_those_that_the_vendor_adjusts_itself() {
    // C, Vo, AdjFactor, AdjC, AdjVo: one share becomes three, ten become one, and two become three.
    let days_told = [
        ("900.9", 700, 1.0, "2002", 315),
        ("300.3", 2_100, 0.33333, "2002", 315),
        ("300.3", 1_000, 1.0, "2002", 150),
        ("3003", 200, 10.0, "2002", 300),
        ("2002", 500, 0.66667, "2002", 500),
        ("2010", 600, 1.0, "2010", 600),
    ];
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let mut rows = market(&["1301"], &days(6));
    for (row, (close, volume, factor, ..)) in rows.iter_mut().zip(days_told) {
        let price = Some(close.parse().unwrap());
        (row.open, row.high, row.low, row.close) = (price, price, price, price);
        (row.volume, row.adjustment_factor) = (Some(volume), Some(factor));
    }
    store.apply(&rows).unwrap();
    publish_and_split(&mut store);
    let wanted = "SELECT close, volume, open = close AND high = close AND low = close
        FROM adjusted ORDER BY date";
    let expected = days_told.map(|(.., close, volume)| format!("{close}.0|{volume}.0|true"));
    for file in [fixture.data.mother(), fixture.issue("1301")] {
        assert_eq!(lines(&reader(&file), wanted), expected);
    }
}

/// Rule `adjusted`.
#[test]
fn before_a_row_without_a_factor_nothing_is_adjusted() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let mut rows = market(&["1301", "7203"], &days(4));
    // Of the first issue the second day and the third.
    rows[2].adjustment_factor = None;
    rows[4].adjustment_factor = Some(0.5);
    store.apply(&rows).unwrap();
    publish_and_split(&mut store);
    let wanted = "SELECT coalesce(close::VARCHAR, '-'), coalesce(volume::VARCHAR, '-'),
          coalesce(factor::VARCHAR, '-')
        FROM adjusted WHERE code = '1301' ORDER BY date";
    let expected = ["-|-|-", "250.5|2000.0|0.5", "501.0|1000.0|1.0", "501.0|1000.0|1.0"];
    for file in [fixture.data.mother(), fixture.issue("1301")] {
        assert_eq!(lines(&reader(&file), wanted), expected);
    }
    let other = "SELECT DISTINCT close, factor FROM adjusted WHERE code = '7203'";
    assert_eq!(lines(&reader(&fixture.data.mother()), other), ["501.0|1.0"]);
}

#[test]
fn nothing_of_a_wrong_delivery_is_stored() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let good = market(&["1301", "7203"], &days(2));
    let refused = |store: &mut WorkDatabase, rows: &[DailyRow]| {
        let error = store.apply(rows).unwrap_err();
        assert!(store.rows().known().unwrap().dates.is_empty());
        error.to_string()
    };
    let twice: Vec<_> = good.iter().chain(&good[1..2]).copied().collect();
    assert_eq!(
        refused(&mut store, &twice),
        "the row of 7203 on 2025-01-01 cannot be stored: it was given twice"
    );
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut rows = good.clone();
        rows[3].adjustment_factor = Some(factor);
        let text = refused(&mut store, &rows);
        assert!(text.contains("7203 on 2025-01-02") && text.contains("factor"), "{text}");
    }
    let many = vec![good[0]; ROWS_AT_ONCE_MAX + 1];
    let error = store.apply(&many).unwrap_err();
    assert!(matches!(error, StoreError::TooManyRows { asked: 1_000_001, max: 1_000_000 }));
}

#[test]
fn null_stays_null_and_prices_stay_exact() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let date = days(1)[0];
    let silent = DailyRow {
        volume: Some(0),
        ..DailyRow::bare(date, "7203".parse().unwrap(), SourceKind::Files)
    };
    let fine = DailyRow { close: Some("1674.1".parse().unwrap()), ..row("130A", date, 5) };
    store.apply(&[silent, fine]).unwrap();
    store.publish(&mut go_on).unwrap();
    let mother = reader(&fixture.data.mother());
    let all = "SELECT coalesce(COLUMNS(*)::VARCHAR, '-') FROM daily";
    assert_eq!(
        lines(&mother, all),
        [
            "2025-01-01|130A|5.0|8.0|3.0|1674.1|1000.0|5000.0|1.0|vendor|false",
            "2025-01-01|7203|-|-|-|-|0.0|-|-|files|false",
        ]
    );
    let types = lines(&mother, "SELECT column_type FROM (DESCRIBE daily)");
    assert_eq!(types[..2], ["DATE", "VARCHAR"]);
    assert_eq!((types[2..9].iter().all(|kind| kind == "DOUBLE"), types.len()), (true, 11));
}

/// Rule `adjusted`.
#[test]
fn prices_that_a_source_has_adjusted_are_marked_and_take_no_factor() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let january = days(4);
    let mut rows = market(&["1301"], &january);
    rows[0].source = SourceKind::Public;
    rows[1].source = SourceKind::WebBroker;
    rows[2].adjustment_factor = Some(0.5);
    // Whatever such a row has for a factor is not used.
    (rows[3].source, rows[3].adjustment_factor) = (SourceKind::Public, Some(0.25));
    store.apply(&rows).unwrap();
    publish_and_split(&mut store);
    let wanted =
        "SELECT source, coalesce(close::VARCHAR, '-'), coalesce(factor::VARCHAR, '-'), adjusted
        FROM adjusted ORDER BY date";
    let expected =
        ["public|-|-|true", "web_broker|-|-|false", "vendor|-|-|false", "public|501.0|1.0|true"];
    for file in [fixture.data.mother(), fixture.issue("1301")] {
        let file = reader(&file);
        assert_eq!(lines(&file, wanted), expected);
        let marked = "SELECT count(*) FROM daily WHERE adjusted";
        assert_eq!(lines(&file, marked), ["2"]);
        // A column comes before a view of the same name.
        assert_eq!(lines(&file, "SELECT count(*) FROM adjusted WHERE adjusted"), ["2"]);
    }
    // From the row after such a one on all is told.
    rows[3] = row("1301", january[3], 500);
    store.apply(&rows).unwrap();
    publish_and_split(&mut store);
    let expected = [
        "public|-|-|true",
        "web_broker|250.5|0.5|false",
        "vendor|501.0|1.0|false",
        "vendor|501.0|1.0|false",
    ];
    assert_eq!(lines(&reader(&fixture.issue("1301")), wanted), expected);
    // A database that is made anew from what is published has the same rows.
    drop(store);
    std::fs::remove_file(fixture.work()).unwrap();
    let mut store = fixture.open();
    publish_and_split(&mut store);
    assert_eq!(lines(&reader(&fixture.data.mother()), wanted), expected);
}

#[test]
fn a_large_delivery_is_stored_by_several_threads() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let codes: Vec<String> = (0..60).map(|place| (1301 + place).to_string()).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    let rows = market(&codes, &days(2_000));
    assert!(rows.len() > LOAD_THREADS * LOAD_ROWS_MIN);
    let applied = store.apply(&rows).unwrap();
    assert_eq!((applied.inserted, applied.first_changed()), (120_000, Some(days(1)[0])));
    let same = Applied { unchanged: 120_000, ..Applied::default() };
    assert_eq!(store.apply(&rows).unwrap(), same);
    assert_eq!(store.publish(&mut go_on).unwrap().days, 2_000);
}

/// What a delivery of the property test holds: place of the code and the day, close, factor.
type Given = (usize, usize, i64, Option<bool>);

fn delivery() -> impl Strategy<Value = Vec<Given>> {
    let given = (0..4_usize, 0..6_usize, 1..4_i64, any::<Option<bool>>());
    proptest::collection::vec(given, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    /// Any deliveries leave what a plain map would hold, are counted as the map tells, and adjusted
    /// prices are what the definition says.
    #[test]
    fn the_store_is_a_map(deliveries in proptest::collection::vec(delivery(), 1..5)) {
        let codes = ["1301", "130A", "25935", "7203"];
        let january = days(6);
        let fixture = Fixture::new();
        let mut store = fixture.open();
        let mut map: BTreeMap<(IssueCode, JstDate), (i64, Option<f64>)> = BTreeMap::new();
        for delivery in deliveries {
            let mut rows: BTreeMap<_, DailyRow> = BTreeMap::new();
            for (code, date, close, split) in delivery {
                let mut given = row(codes[code], january[date], 500);
                given.close = Some(Price::from_yen(close));
                given.adjustment_factor = split.map(|split| if split { 0.5 } else { 1.0 });
                rows.insert((given.code, given.date), given);
            }
            let mut expected = Applied::default();
            for (key, row) in &rows {
                let known = map.get(key).and_then(|(_, factor)| *factor);
                let factor = row.adjustment_factor.or(known);
                let values = (row.close.unwrap().units() / 10_000, factor);
                match map.insert(*key, values) {
                    Some(old) if old == values => expected.unchanged += 1,
                    old => {
                        expected.changed += u64::from(old.is_some());
                        expected.inserted += u64::from(old.is_none());
                        expected.dates.insert(key.1);
                    }
                }
            }
            let rows: Vec<_> = rows.into_values().collect();
            let found = store.apply(&rows).unwrap();
            prop_assert_eq!(found.corrections.len() as u64, found.changed);
            prop_assert_eq!(Applied { corrections: Vec::new(), ..found }, expected);
        }
        if map.is_empty() {
            return Ok(());
        }
        store.publish(&mut go_on).unwrap();
        let mother = reader(&fixture.data.mother());
        let sql = "SELECT daily.code, daily.date, daily.close::INT,
              coalesce(adjusted.close::VARCHAR, '-'), coalesce(adjusted.volume::VARCHAR, '-')
            FROM daily JOIN adjusted USING (code, date) ORDER BY ALL";
        let expected: Vec<String> = map.iter().map(|((code, date), (close, _))| {
            let later = map.range((*code, date.succ_opt().unwrap())..=(*code, JstDate::MAX));
            // One day of which nobody knows is enough.
            let factor: Option<f64> = later.clone().map(|(_, (_, factor))| *factor).product();
            // So is one on which the issue has no row and others have one.
            let last = later.last().map_or(*date, |((_, last), _)| *last);
            let mut seen = map.keys().map(|(_, seen)| *seen);
            let is_lost =
                seen.any(|seen| (*date..last).contains(&seen) && !map.contains_key(&(*code, seen)));
            let factor = factor.filter(|_| !is_lost);
            let adjusted = factor.map_or("-|-".to_owned(), |factor| {
                format!("{:?}|{:?}", *close as f64 * factor, 1_000.0 / factor)
            });
            format!("{code}|{date}|{close}|{adjusted}")
        }).collect();
        prop_assert_eq!(lines(&mother, sql), expected);
    }
}
