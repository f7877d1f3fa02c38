//! One more day, again and again: what `kumiki data update` puts behind the published rows, when it writes all of
//! them again, and that readers see the same as after one run for all days.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use duckdb::Connection;
use pricestore::DataDir;
use pricestore::sql::column;

use crate::update_fixture::{Fixture, Market, dashed};

const ISSUES: usize = 7;
/// Business days in a row.
const DAYS: [&str; 24] = [
    "20251104", "20251105", "20251106", "20251107", "20251110", "20251111", "20251112", "20251113",
    "20251114", "20251117", "20251118", "20251119", "20251120", "20251121", "20251125", "20251126",
    "20251127", "20251128", "20251201", "20251202", "20251203", "20251204", "20251205", "20251208",
];

fn fixture(days: usize) -> Fixture {
    let days = DAYS[..days].iter().map(|day| (*day, ISSUES)).collect();
    let divisions = Some(BTreeMap::new());
    Fixture::new(Market { days, listed: Some(ISSUES), divisions, ..Market::default() })
}

/// Runs for all days up to the one with this number, from 1.
fn update(fixture: &Fixture, number: usize) {
    // Weekdays, of which one is a holiday.
    let days = number + usize::from(DAYS[number - 1] > "20251124");
    let run = fixture.update(&format!("--to {} --days {days}", dashed(DAYS[number - 1])));
    assert_eq!(run.code, 0, "{run:?}");
}

/// A column of a published database.
fn read(database: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open_in_memory().unwrap();
    let attach = format!("ATTACH '{}' AS read (READ_ONLY); USE read", database.display());
    connection.execute_batch(&attach).unwrap();
    column(&connection, sql).unwrap()
}

/// The combined database.
fn mother(fixture: &Fixture) -> PathBuf {
    DataDir::new(fixture.path()).mother()
}

/// All that readers of prices are told.
fn told(fixture: &Fixture) -> Vec<String> {
    let mut told = Vec::new();
    for table in ["daily", "adjusted", "unknown_before"] {
        let rows = format!("SELECT one::VARCHAR FROM (FROM {table} ORDER BY ALL) AS one");
        told.extend(read(&mother(fixture), &rows));
    }
    for number in 0..ISSUES {
        let issue = fixture.path().join(format!("jp/stocks_daily/{}.db", 1_300 + number));
        for table in ["daily", "adjusted"] {
            told.extend(read(&issue, &format!("SELECT one::VARCHAR FROM {table} AS one")));
        }
    }
    told
}

#[test]
fn twenty_days_come_behind_the_rows_in_order_and_the_next_one_writes_all() {
    let fixture = fixture(2);
    update(&fixture, 2);
    let mut known = 2;
    for number in [3, 4, 20, 21, 22, 23, 24] {
        let new = &DAYS[known..number];
        fixture.change(|market| market.days.extend(new.iter().map(|day| (*day, ISSUES))));
        update(&fixture, number);
        known = number;
        let expected = if number > 22 { 23 } else { 2 };
        let in_order = read(&mother(&fixture), "SELECT rows::VARCHAR FROM rows_in_order");
        assert_eq!(in_order, [(expected * ISSUES).to_string()], "{number} days");
    }
    let at_once = self::fixture(DAYS.len());
    update(&at_once, DAYS.len());
    assert_eq!(told(&fixture), told(&at_once));
    assert_eq!(told(&fixture).len(), 4 * DAYS.len() * ISSUES);
}
