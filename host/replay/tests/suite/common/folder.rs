//! Two days of trades, a round trip over them, and a run's folder to look into.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use domain::OrderSide;
use domain::strategy::StrategyRuntime;
use flate2::Compression;
use flate2::write::GzEncoder;
use replay::{ReplayOptions, RunObserver, TradingDay, Unpaced, replay};
use results::RunFolder;
use results::RunTotals;
use results::output::ComponentIdentity;
use serde_json::Value;

use super::{Market, Script, market};

/// Two days: bought at 1,000, up to 1,010, down to 990, sold at 1,005 on the next day.
pub(crate) fn two_days() -> Market {
    [
        (6, 1.0, "1000", 500),
        (6, 2.0, "1000", 500),
        (6, 61.0, "1010", 500),
        (6, 130.0, "990", 500),
        (7, 1.0, "1004", 500),
        (7, 2.0, "1005", 500),
        (7, 3.0, "1020", 500),
    ]
    .into_iter()
    .fold(Market::default(), |market, (day, second, price, quantity)| {
        market.trade(day, second, price, quantity)
    })
}

pub(crate) fn buy_and_sell() -> Script {
    Script::default()
        .after(1, market("B", OrderSide::Buy, 200))
        .after(5, market("S", OrderSide::Sell, 200))
}

/// Writes a run's folder and gives its totals.
pub(crate) fn write(
    folder: &Path,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunTotals {
    let market = two_days();
    let instruments = [options.instruments[0].id.clone()];
    let mut writer = RunFolder::create(folder, &instruments).unwrap();
    let days = TradingDay::split(&market.ts, &market.price, &market.quantity);
    let totals = replay(days, strategy, options, &mut writer, &mut Unpaced).unwrap();
    let component =
        ComponentIdentity { name: "script".to_owned(), sha256: String::new(), imports: Vec::new() };
    let range = ("2025-01-06".to_owned(), "2025-01-07".to_owned());
    writer
        .finish(
            &replay::manifest(
                options,
                &totals,
                component,
                Vec::new(),
                range,
                &sandbox::Limits::default(),
            ),
            &totals,
        )
        .unwrap();
    totals
}

pub(crate) fn lines(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes a file of the vendor, which never has one without rows.
pub(crate) fn put(folder: &Path, name: &str, text: &str) {
    if text.lines().count() < 2 {
        return;
    }
    let file = File::create(folder.join(format!("{name}.csv.gz"))).unwrap();
    let mut out = GzEncoder::new(file, Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

/// Wants to know nothing of how a run goes on.
pub(crate) struct Nobody;

impl RunObserver for Nobody {}
