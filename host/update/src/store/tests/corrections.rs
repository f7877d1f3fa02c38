//! The log of corrections (rule `corrections`).

use domain::TsNanos;

use super::*;
use crate::limits::CORRECTIONS_KEPT;
use crate::price_store::Part;
use crate::store::{WorkRows, apply};

/// Stores rows, and removes those that are gone, so many seconds after the beginning of time.
fn give(rows: &WorkRows, seconds: u64, part: Part<'_>) {
    let at = TsNanos::from_nanos(seconds * 1_000_000_000);
    apply::commit(&rows.connection, &[part], None, at).unwrap();
}

fn of(source: SourceKind, code: &str, yen: i64) -> DailyRow {
    DailyRow { source, ..row(code, days(1)[0], yen) }
}

#[test]
fn each_changed_and_removed_value_is_logged_with_both_values_and_sources() {
    let store = WorkRows::in_memory(&Fixture::new().data).unwrap();
    let store_rows =
        |seconds, rows: &[DailyRow]| give(&store, seconds, Part { rows, ..Part::default() });
    let log = || {
        let all =
            "SELECT epoch(logged_at)::INT, code, column_name, coalesce(old_value::VARCHAR, '-'),
              coalesce(new_value::VARCHAR, '-'), old_source, new_source
            FROM work.correction WHERE date = '2025-01-01' ORDER BY rowid";
        lines(&store.connection, all)
    };
    let [vendor, broker, public] = [SourceKind::Vendor, SourceKind::WebBroker, SourceKind::Public];
    store_rows(1, &[of(broker, "1301", 500), of(broker, "7203", 500), of(public, "9984", 500)]);
    assert_eq!(log(), [""; 0], "new rows correct nothing");
    // One that a better source confirms is no correction.
    let mut better = of(vendor, "1301", 500);
    (better.close, better.turnover) = (Some(Price::from_yen(502)), None);
    better.adjustment_factor = Some(0.5);
    store_rows(2, &[better, of(vendor, "7203", 500)]);
    let mut expected = vec![
        "2|1301|adjustment_factor|1.0|0.5|web_broker|vendor",
        "2|1301|close|501.0|502.0|web_broker|vendor",
        "2|1301|turnover|500000.0|-|web_broker|vendor",
    ];
    assert_eq!(log(), expected);
    // What a worse source says, and a factor that is not told, changes nothing.
    store_rows(3, &[of(public, "7203", 900)]);
    let mut other = of(SourceKind::Files, "7203", 500);
    (other.volume, other.adjustment_factor) = (Some(7), None);
    store_rows(4, &[other]);
    expected.push("4|7203|volume|1000.0|7.0|vendor|files");
    assert_eq!(log(), expected);
    // Only rows of the vendor go.
    let gone = ["1301", "9984"].map(|code| (days(1)[0], code.parse().unwrap()));
    give(&store, 5, Part { gone: &gone, ..Part::default() });
    expected.extend([
        "5|1301|adjustment_factor|0.5|-|vendor|vendor",
        "5|1301|close|502.0|-|vendor|vendor",
        "5|1301|high|503.0|-|vendor|vendor",
        "5|1301|low|498.0|-|vendor|vendor",
        "5|1301|open|500.0|-|vendor|vendor",
        "5|1301|volume|1000.0|-|vendor|vendor",
    ]);
    assert_eq!(log(), expected);
    let left = lines(&store.connection, "SELECT code FROM work.daily ORDER BY code");
    assert_eq!(left, ["7203", "9984"]);
}

#[test]
fn the_oldest_corrections_go_first() {
    let store = WorkRows::in_memory(&Fixture::new().data).unwrap();
    let earlier = format!(
        "INSERT INTO work.correction SELECT make_timestamp_ns(0), '2025-01-01', '1301', 'close',
           range, 0, 'vendor', 'vendor' FROM range({CORRECTIONS_KEPT} - 1)"
    );
    store.connection.execute_batch(&earlier).unwrap();
    for yen in [500, 600] {
        let rows = [of(SourceKind::Vendor, "7203", yen)];
        give(&store, 1, Part { rows: &rows, ..Part::default() });
    }
    let kept = "SELECT count(*), count(*) FILTER (code = '7203'), min(old_value)::INT
        FROM work.correction";
    // The four prices and the turnover.
    assert_eq!(lines(&store.connection, kept), [format!("{CORRECTIONS_KEPT}|5|4")]);
}
