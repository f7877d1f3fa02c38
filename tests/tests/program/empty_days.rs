//! Business days without prices: `kumiki rank` says which of the asked ones have none.

use std::path::Path;
use std::process::{Command, Stdio};

use domain::JstDate;
use tests::{built, daily_rows};
use update::PriceStore as _;
use update::store::WorkDatabase;

fn day(text: &str) -> JstDate {
    text.parse().unwrap()
}

/// What `kumiki rank` says on standard error, and how many rows it gives.
fn rank(folder: &Path, more: &[&str]) -> (String, usize) {
    let mut command = Command::new(built::kumiki());
    command.args(["rank", "query", "--format", "jsonl"]).args(more).env("DATA_DIR", folder);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    (errors, output.stdout.split(|byte| *byte == b'\n').count() - 1)
}

#[test]
fn days_without_prices_in_the_asked_range_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let with_prices = ["2025-01-06", "2025-01-07", "2025-01-16"].map(day);
    // Closed on the 13th; all other weekdays between are holes.
    let weekdays = ["06", "07", "08", "09", "10", "13", "14", "15", "16"];
    let calendar = weekdays.map(|of| (day(&format!("2025-01-{of}")), of != "13"));
    let mut store = WorkDatabase::open(&pricestore::DataDir::new(folder.path())).unwrap();
    store.rows().store_open_days(&calendar.into_iter().collect()).unwrap();
    drop(store);
    let rows = with_prices.map(|date| daily_rows::row("7203", date, 500, None));
    daily_rows::publish(folder.path(), &rows);
    let note = |days: &str| format!("note: no prices are stored of {days}\n");
    let (errors, count) = rank(folder.path(), &["--from", "2025-01-06", "--to", "2025-01-16"]);
    let five = "2025-01-08, 2025-01-09, 2025-01-10, 2025-01-14, 2025-01-15";
    assert_eq!((errors, count), (note(&format!("5 business day(s) of this period: {five}")), 3));
    let (errors, count) = rank(folder.path(), &["--from", "2025-01-15", "--to", "2025-01-15"]);
    let two = "2 business day(s) of this period or read by its lags: 2025-01-14, 2025-01-15";
    assert_eq!((errors, count), (note(two), 0));
    let arguments = ["--from", "2025-01-06", "--to", "2025-01-07"];
    assert_eq!(rank(folder.path(), &arguments).0, "", "{arguments:?}");
    // A lag that finds nothing is told too; a formula without one reads the day alone.
    let (errors, _) = rank(folder.path(), &[]);
    assert_eq!(errors, note("1 business day(s) of this period or read by its lags: 2025-01-15"));
    assert_eq!(rank(folder.path(), &["--sort-by", "Close"]).0, "");
}
