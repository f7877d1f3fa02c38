//! The page of a comparison: fills of the run beside simulated ones.

use std::path::Path;

use domain::TsNanos;
use results::output::FolderError;
use results::report::{self, ROWS_MAX};
use serde::Serialize;

use super::{ComparedLive, Counts, FillCounts, FillPair, FilledAt, ModelCompared};
use crate::journal::RunKind;

/// What the page shows; its script has the same names.
#[derive(Serialize)]
struct Page<'a> {
    run_id: &'a str,
    run_kind: RunKind,
    component: &'a str,
    instruments: &'a [String],
    torn: bool,
    models: Vec<PageModel<'a>>,
}

#[derive(Serialize)]
struct PageModel<'a> {
    model: &'a str,
    identical: bool,
    orders: Counts,
    signals: Counts,
    fills: FillCounts,
    rows: Rows<'a>,
}

impl<'a> PageModel<'a> {
    fn of(compared: &'a ModelCompared) -> Self {
        let ModelCompared { model, identical, orders, signals, fills, pairs, .. } = compared;
        Self {
            model,
            identical: *identical,
            orders: *orders,
            signals: *signals,
            fills: *fills,
            rows: Rows::of(pairs),
        }
    }
}

/// Columns of the table. Prices and money are exact decimal texts, times microseconds since 1970.
#[derive(Default, Serialize)]
struct Rows<'a> {
    total: usize,
    count: usize,
    order: Vec<&'a str>,
    instrument: Vec<u16>,
    side: Vec<&'static str>,
    shares: Vec<String>,
    recorded: Vec<Option<String>>,
    recorded_us: Vec<Option<u64>>,
    simulated: Vec<Option<String>>,
    simulated_us: Vec<Option<u64>>,
    slippage: Vec<Option<String>>,
}

impl<'a> Rows<'a> {
    fn of(pairs: &'a [FillPair]) -> Self {
        let mut rows = Self { total: pairs.len(), ..Self::default() };
        let price = |at: Option<FilledAt>| at.map(|at| at.price.to_string());
        let micros = |at: Option<FilledAt>| at.map(|at| micros(at.ts_event));
        for pair in pairs.iter().take(ROWS_MAX) {
            rows.count += 1;
            rows.order.push(&pair.client_order_id);
            rows.instrument.push(pair.instrument.0);
            rows.side.push(pair.side.as_str());
            rows.shares.push(pair.quantity.to_string());
            rows.recorded.push(price(pair.recorded));
            rows.recorded_us.push(micros(pair.recorded));
            rows.simulated.push(price(pair.simulated));
            rows.simulated_us.push(micros(pair.simulated));
            rows.slippage.push(pair.slippage().map(|money| money.to_string()));
        }
        rows
    }
}

const fn micros(time: TsNanos) -> u64 {
    time.nanos() / 1_000
}

impl ComparedLive {
    /// Writes the page; an earlier one is replaced.
    ///
    /// # Errors
    /// [`FolderError`] when it cannot be written, or `page` is there and something else.
    pub fn write_page(&self, page: &Path) -> Result<(), FolderError> {
        let data = Page {
            run_id: &self.run_id,
            run_kind: self.run_kind,
            component: &self.component,
            instruments: &self.instruments,
            torn: self.torn,
            models: self.models.iter().map(PageModel::of).collect(),
        };
        report::write_live_page(page, &data)
    }
}
