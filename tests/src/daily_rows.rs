//! Daily prices with splits, published as the update job does it.

use std::ops::ControlFlow;
use std::path::Path;

use domain::{JstDate, Price};
use pricestore::DataDir;
use update::store::WorkDatabase;
use update::{DailyRow, PriceStore as _, SourceKind};

/// A row whose four prices are the same, like `("7203", "2025-01-06", 1000, 0.5)`: code, date, yen,
/// factor.
///
/// # Panics
/// When the code is none.
#[must_use]
pub fn row(code: &str, date: JstDate, yen: i64, factor: Option<f64>) -> DailyRow {
    let code = code.parse().unwrap_or_else(|error| panic!("{error}"));
    let price = Some(Price::from_yen(yen));
    DailyRow {
        open: price,
        high: price,
        low: price,
        close: price,
        volume: Some(1_000),
        adjustment_factor: factor,
        ..DailyRow::bare(date, code, SourceKind::Vendor)
    }
}

/// Publishes these rows in a data folder.
///
/// # Panics
/// When they cannot be stored.
pub fn publish(folder: &Path, rows: &[DailyRow]) {
    let store = WorkDatabase::open(&DataDir::new(folder));
    let mut store = store.unwrap_or_else(|error| panic!("{error}"));
    for source in SourceKind::ALL {
        let of_source: Vec<DailyRow> =
            rows.iter().filter(|row| row.source == source).copied().collect();
        if let Err(error) = store.apply(&of_source) {
            panic!("the rows cannot be stored: {error}");
        }
    }
    if let Err(error) = store.publish(&mut |_, _, _| ControlFlow::Continue(())) {
        panic!("the rows cannot be published: {error}");
    }
    if let Err(error) = store.publish_generation() {
        panic!("their generation cannot be published: {error}");
    }
}
