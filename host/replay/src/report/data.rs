//! What the page shows, as the data that its scripts read.

use std::collections::BTreeMap;

use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{InstrumentIx, TsNanos};
use serde::Serialize;

use crate::exchange::Order;
use crate::output::{Manifest, Summary};
use crate::record::{FillRow, RunResult, RunStatus};
use crate::report::columns::{Amounts, Exact, Words, counts, times};
use crate::report::curve::Curve;
use crate::report::{POINTS_MAX, ROWS_MAX, TEXT_BYTES_MAX};

/// Everything that one page shows. Tables are columns of equal length; `total` counts the rows that
/// the run has, of which the page may hold fewer.
#[derive(Debug, Serialize)]
pub(super) struct PageData<'a> {
    manifest: &'a Manifest,
    summary: Summary,
    /// The fault with its backtrace.
    fault: Option<String>,
    market_volume: Exact,
    our_volume: Exact,
    curve: Curve,
    orders: Orders<'a>,
    fills: Fills<'a>,
    signals: Signals<'a>,
    narrative: Narrative<'a>,
    log: Log<'a>,
}

impl<'a> PageData<'a> {
    /// The data of a run.
    pub(super) fn new(manifest: &'a Manifest, result: &'a RunResult) -> Self {
        let fault = match &result.status {
            RunStatus::Failed(fault) => Some(fault.to_string()),
            RunStatus::Completed | RunStatus::Interrupted => None,
        };
        Self {
            manifest,
            summary: Summary::new(result),
            fault,
            market_volume: Exact(i128::try_from(result.market_volume).unwrap_or(i128::MAX)),
            our_volume: Exact(result.our_volume.shares().into()),
            curve: Curve::new(result.cash_start, &result.equity, POINTS_MAX),
            orders: Orders::new(&result.orders),
            fills: Fills::new(&result.fills, &result.orders),
            signals: Signals::new(&result.signals),
            narrative: Narrative::new(&result.narrative),
            log: Log::new(&result.log),
        }
    }
}

/// The first rows of a table: at most [`ROWS_MAX`], with at most [`TEXT_BYTES_MAX`] of free text.
fn first_rows<T>(rows: &[T], text_bytes: impl Fn(&T) -> usize) -> &[T] {
    let mut bytes = 0;
    let fits = |row: &&T| {
        bytes += text_bytes(row);
        bytes <= TEXT_BYTES_MAX
    };
    &rows[..rows.iter().take(ROWS_MAX).take_while(fits).count()]
}

/// The orders that the page holds. The id of a refused order may be of any length.
fn held_orders(all: &[Order]) -> &[Order] {
    first_rows(all, |order| {
        let reason = order.rejection.as_ref().map_or(0, |why| why.text.len());
        order.request.client_order_id.len() + reason
    })
}

#[derive(Debug, Serialize)]
struct Orders<'a> {
    total: usize,
    submitted: Vec<i64>,
    id: Vec<&'a str>,
    venue_id: Vec<Option<&'a str>>,
    /// Places in the run's list of instruments; a refused order may name one that does not exist.
    instrument: Vec<u16>,
    side: Words<'a>,
    order_type: Words<'a>,
    time_in_force: Words<'a>,
    quantity: Vec<Exact>,
    price: Amounts,
    trigger: Amounts,
    filled: Vec<Exact>,
    average: Amounts,
    status: Words<'a>,
    last: Vec<i64>,
    reason_code: Words<'a>,
    reason: Words<'a>,
}

impl<'a> Orders<'a> {
    fn new(all: &'a [Order]) -> Self {
        let rows = held_orders(all);
        let requests = || rows.iter().map(|order| &order.request);
        let reasons = || rows.iter().map(|order| order.rejection.as_ref());
        Self {
            total: all.len(),
            submitted: times(rows.iter().map(|order| &order.ts_submitted)),
            id: requests().map(|request| request.client_order_id.as_ref()).collect(),
            venue_id: rows.iter().map(|order| order.venue_order_id.as_deref()).collect(),
            instrument: requests().map(|request| request.instrument.0).collect(),
            side: Words::all(requests().map(|request| request.side.as_str())),
            order_type: Words::all(requests().map(|request| request.order_type.as_str())),
            time_in_force: Words::all(requests().map(|request| request.time_in_force.as_str())),
            quantity: counts(requests().map(|request| request.quantity.shares())),
            price: Amounts::new(requests().map(|request| request.price.map(|price| price.units()))),
            trigger: Amounts::new(
                requests().map(|request| request.trigger_price.map(|price| price.units())),
            ),
            filled: counts(rows.iter().map(|order| order.filled.shares())),
            average: Amounts::new(
                rows.iter().map(|order| order.average_price().map(|price| price.units())),
            ),
            status: Words::all(rows.iter().map(|order| order.status.as_str())),
            last: times(rows.iter().map(|order| &order.ts_last)),
            reason_code: Words::new(reasons().map(|why| why.map(|why| why.code.as_str()))),
            reason: Words::new(reasons().map(|why| why.map(|why| why.text.as_str()))),
        }
    }
}

/// The order of a fill: its row, or its id where the page does not hold the row.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OrderOf<'a> {
    Row(usize),
    Id(&'a str),
}

#[derive(Debug, Serialize)]
struct Fills<'a> {
    total: usize,
    at: Vec<i64>,
    order: Vec<OrderOf<'a>>,
    trade_id: Vec<&'a str>,
    side: Words<'a>,
    price: Amounts,
    quantity: Vec<Exact>,
    cumulative: Vec<Exact>,
    leaves: Vec<Exact>,
    commission: Amounts,
}

impl<'a> Fills<'a> {
    fn new(all: &'a [FillRow], orders: &[Order]) -> Self {
        let rows = first_rows(all, |_| 0);
        let mut row_of = BTreeMap::new();
        for (row, order) in held_orders(orders).iter().enumerate() {
            // A second order with the same id was refused and has no fills.
            row_of.entry(order.request.client_order_id.as_ref()).or_insert(row);
        }
        let order_of = |fill: &'a FillRow| match row_of.get(fill.client_order_id.as_ref()) {
            Some(row) => OrderOf::Row(*row),
            None => OrderOf::Id(&fill.client_order_id),
        };
        Self {
            total: all.len(),
            at: times(rows.iter().map(|fill| &fill.ts_event)),
            order: rows.iter().map(order_of).collect(),
            trade_id: rows.iter().map(|fill| fill.trade_id.as_ref()).collect(),
            side: Words::all(rows.iter().map(|fill| fill.side.as_str())),
            price: Amounts::all(rows.iter().map(|fill| fill.price.units())),
            quantity: counts(rows.iter().map(|fill| fill.quantity.shares())),
            cumulative: counts(rows.iter().map(|fill| fill.cumulative_quantity.shares())),
            leaves: counts(rows.iter().map(|fill| fill.leaves_quantity.shares())),
            commission: Amounts::all(rows.iter().map(|fill| fill.commission.units())),
        }
    }
}

#[derive(Debug, Serialize)]
struct Signals<'a> {
    total: usize,
    at: Vec<i64>,
    instrument: Vec<InstrumentIx>,
    kind: Words<'a>,
    side: Words<'a>,
    price: Amounts,
    tag: Words<'a>,
    note: Words<'a>,
}

impl<'a> Signals<'a> {
    fn new(all: &'a [(TsNanos, Signal)]) -> Self {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let rows = first_rows(all, |(_, signal)| bytes(&signal.tag) + bytes(&signal.note));
        let signals = || rows.iter().map(|(_, signal)| signal);
        Self {
            total: all.len(),
            at: times(rows.iter().map(|(moment, _)| moment)),
            instrument: signals().map(|signal| signal.instrument).collect(),
            kind: Words::all(signals().map(|signal| signal.kind.as_str())),
            side: Words::new(signals().map(|signal| signal.side.map(|side| side.as_str()))),
            price: Amounts::new(signals().map(|signal| signal.price.map(|price| price.units()))),
            tag: Words::new(signals().map(|signal| signal.tag.as_deref())),
            note: Words::new(signals().map(|signal| signal.note.as_deref())),
        }
    }
}

#[derive(Debug, Serialize)]
struct Narrative<'a> {
    total: usize,
    at: Vec<i64>,
    order: Vec<Option<&'a str>>,
    title: Words<'a>,
    body: Words<'a>,
}

impl<'a> Narrative<'a> {
    fn new(all: &'a [(TsNanos, NarrativeRecord)]) -> Self {
        let rows = first_rows(all, |(_, record)| record.title.len() + record.body.len());
        let records = || rows.iter().map(|(_, record)| record);
        Self {
            total: all.len(),
            at: times(rows.iter().map(|(moment, _)| moment)),
            order: records().map(|record| record.client_order_id.as_deref()).collect(),
            title: Words::all(records().map(|record| record.title.as_str())),
            body: Words::all(records().map(|record| record.body.as_str())),
        }
    }
}

#[derive(Debug, Serialize)]
struct Log<'a> {
    total: usize,
    /// Microseconds since 1970; lines before the first event have none.
    at: Vec<Option<u64>>,
    level: Words<'a>,
    message: Words<'a>,
}

impl<'a> Log<'a> {
    fn new(all: &'a [LogLine]) -> Self {
        let rows = first_rows(all, |line| line.message.len());
        Self {
            total: all.len(),
            at: rows.iter().map(|line| line.ts_event.map(|at| at.nanos() / 1_000)).collect(),
            level: Words::all(rows.iter().map(|line| line.level.as_str())),
            message: Words::all(rows.iter().map(|line| line.message.as_str())),
        }
    }
}
