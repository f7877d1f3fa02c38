//! Market data and options for tests and benches.

use std::path::Path;

use domain::{
    ExchangeCalendar, Instrument, InstrumentId, JstDate, Money, Price, Quantity, TickTable,
    VendorCode,
};
use exchange::{ExecutionModel, SameDayRoundTrips};
use marketdata::{Catalog, SampleCodes, SampleSpec, TradeStore, write_sample};
use replay::{ReplayOptions, TradeSeries};

/// Makes sample data of one code.
///
/// # Panics
/// When it cannot be written.
pub fn write(folder: &Path, code: &str, days: u32, trades_per_day: u32, seed: u64) {
    let spec = SampleSpec {
        seed,
        start: JstDate::from_ymd_opt(2025, 1, 6).unwrap_or_default(),
        days,
        codes: SampleCodes::These(vec![vendor_code(code)]),
        trades_per_code_day: trades_per_day,
    };
    if let Err(error) = write_sample(folder, &spec) {
        panic!("the sample data cannot be written: {error}");
    }
}

/// A vendor code that is known to be good.
///
/// # Panics
/// When it is not.
#[must_use]
pub fn vendor_code(code: &str) -> VendorCode {
    VendorCode::new(code).unwrap_or_else(|error| panic!("{error}"))
}

/// Loads all trades of one code, through the cache in `cache`.
///
/// # Panics
/// When they cannot be read.
#[must_use]
pub fn load(folder: &Path, code: &str, cache: &Path) -> TradeSeries {
    let store = TradeStore::new(cache);
    let mut series = TradeSeries::default();
    let catalog = Catalog::open(folder).unwrap_or_else(|error| panic!("{error}"));
    for file in catalog.files() {
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let segments = store.load(file, &[vendor_code(code)], go_on);
        for segment in segments.unwrap_or_else(|error| panic!("{error}")) {
            let rows = 0..segment.len();
            series.push(segment, rows);
        }
    }
    series
}

/// Options of a replay: lot 100, a fixed tick, 10 million yen.
///
/// # Panics
/// When the configuration or a constant is wrong.
#[must_use]
pub fn options(config_json: &str, window: u32, tick: &str) -> ReplayOptions {
    let id: Result<InstrumentId, _> = "7203.TSE".parse();
    let tick: Result<Price, _> = tick.parse();
    ReplayOptions {
        instruments: vec![Instrument {
            id: id.unwrap_or_else(|error| panic!("{error}")),
            lot: Quantity::new(100),
            ticks: TickTable::Fixed(tick.unwrap_or_else(|error| panic!("{error}"))),
        }],
        cash: Money::from_yen(10_000_000),
        // Orders are what is counted, and a cash account's brokers refuse most of a busy day's.
        model: ExecutionModel {
            same_day_round_trips: SameDayRoundTrips::Allow,
            ..ExecutionModel::default()
        },
        ex_rights: vec![],
        window,
        config_json: config_json.to_owned(),
        warnings_max: domain::GuestLimit::Warnings.default_value(),
        // Tests and benches send orders that the cash does not pay for.
        rejected_bytes_max: u64::MAX,
        folder_bytes_max: u64::MAX,
        folder_bytes_per_day: 0,
        base_prices: vec![],
        unit_changes: vec![],
        split_dates_known: vec![],
        calendar: ExchangeCalendar::default(),
        dates: None,
    }
}
