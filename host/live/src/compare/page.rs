//! The page of a comparison: fills of the run beside simulated ones.

use std::path::Path;

use domain::TsNanos;
use results::output::FolderError;
use results::report::{self, ROWS_MAX};
use serde::Serialize;

use super::{ComparedLive, Counts, FillCounts, FillPair, FilledAt, ModelCompared, ReplayCompared};
use crate::journal::RunKind;

/// What the page shows; its script has the same names.
#[derive(Serialize)]
struct Page<'a> {
    run_id: &'a str,
    run_kind: RunKind,
    component: &'a str,
    instruments: &'a [String],
    identical: Option<bool>,
    torn: bool,
    ended: bool,
    sides: Vec<Side<'a>>,
}

/// The strategy in the simulated exchange, or the run's orders by a fill model.
#[derive(Serialize)]
struct Side<'a> {
    model: &'a str,
    #[serde(flatten)]
    numbers: Numbers,
    fills: FillCounts,
    rows: Rows<'a>,
}

/// What only one kind of a side has.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Numbers {
    Replay { identical: bool, orders: Counts, signals: Counts },
    Model { orders: u64, rejected: u64, left_out: u64 },
}

impl<'a> Side<'a> {
    fn of_replay(compared: &'a ReplayCompared) -> Self {
        let ReplayCompared { model, identical, orders, signals, fills, pairs, .. } = compared;
        let (identical, orders, signals) = (*identical, *orders, *signals);
        let numbers = Numbers::Replay { identical, orders, signals };
        Self { model, numbers, fills: *fills, rows: Rows::of(pairs) }
    }

    fn of_model(compared: &'a ModelCompared) -> Self {
        let ModelCompared { model, orders, rejected, left_out, fills, pairs } = compared;
        let (orders, rejected, left_out) = (*orders, *rejected, *left_out);
        let numbers = Numbers::Model { orders, rejected, left_out };
        Self { model, numbers, fills: *fills, rows: Rows::of(pairs) }
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
        let replays = self.replays.iter().map(Side::of_replay);
        let data = Page {
            run_id: &self.run_id,
            run_kind: self.run_kind,
            component: &self.component,
            instruments: &self.instruments,
            identical: self.identical,
            torn: self.torn,
            ended: self.ended,
            sides: replays.chain(self.models.iter().map(Side::of_model)).collect(),
        };
        report::write_live_page(page, &data)
    }
}
