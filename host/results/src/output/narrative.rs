//! The decisions of a run with the orders that they explain and what became of them.

use std::collections::BTreeMap;
use std::path::Path;

use domain::Origin;
use serde::Serialize;

use super::files::{MANIFEST_FILE, ReadError};
use super::read::{TableReader, read_json};
use super::tables::{Fills, Narrative, Orders};

/// A decision of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Virtual time in nanoseconds since 1970, UTC.
    pub ts_event_ns: u64,
    /// What was decided.
    pub title: String,
    /// The reasons for it, as the strategy gave them.
    pub body: String,
    /// The order that it explains, if any.
    pub client_order_id: Option<String>,
    /// What became of that order; missing when the run has no order with that id.
    pub order: Option<OrderOutcome>,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderOutcome {
    /// `<symbol>.TSE`.
    pub instrument_id: String,
    /// BUY or SELL.
    pub side: String,
    /// MARKET, LIMIT, ...
    pub order_type: String,
    /// Shares asked for.
    pub quantity: String,
    /// State at the end.
    pub status: String,
    /// Why it was rejected.
    pub reason_text: Option<String>,
    /// Its fills in order.
    pub fills: Vec<FillOutcome>,
}

/// A fill of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FillOutcome {
    /// Virtual time in nanoseconds since 1970, UTC.
    pub ts_event_ns: u64,
    /// The fill's own number.
    pub trade_id: String,
    /// Yen per share.
    pub price: String,
    /// Shares of this fill, as a whole number.
    pub quantity: String,
}

/// The decisions in a run's folder, in the order in which they were made: all of them, or those that
/// explain one order. Memory: what a strategy may write in one run, and the orders named there.
///
/// # Errors
/// [`ReadError`] when the folder is not a run's.
pub fn decisions(folder: &Path, order: Option<&str>) -> Result<Vec<Decision>, ReadError> {
    read_json(folder, MANIFEST_FILE)?;
    let mut decisions = Vec::new();
    let mut wanted: BTreeMap<String, Option<OrderOutcome>> = BTreeMap::new();
    let mut rows = TableReader::open(folder, &Narrative::TABLE)?;
    while let Some(row) = rows.next_row()? {
        let client_order_id = row.optional_text("client_order_id");
        if order.is_some() && order != client_order_id {
            continue;
        }
        if let Some(id) = client_order_id {
            wanted.entry(id.to_owned()).or_default();
        }
        decisions.push(Decision {
            ts_event_ns: row.timestamp("ts_event_ns")?,
            title: row.text("title").to_owned(),
            body: row.text("body").to_owned(),
            client_order_id: client_order_id.map(str::to_owned),
            order: None,
        });
    }
    add_orders(folder, &mut wanted)?;
    add_fills(folder, &mut wanted)?;
    for decision in &mut decisions {
        let id = decision.client_order_id.as_deref();
        decision.order = id.and_then(|id| wanted.get(id).cloned().flatten());
    }
    Ok(decisions)
}

/// Whether a run has an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderKnown {
    /// It has.
    Yes,
    /// It has others: the first and the last of them.
    Not(String, String),
    /// It has no orders.
    NoOrders,
}

/// Whether the run in a folder has an order with this id.
///
/// # Errors
/// [`ReadError`] when the folder is not a run's.
pub fn order_known(folder: &Path, id: &str) -> Result<OrderKnown, ReadError> {
    let mut rows = TableReader::open(folder, &Orders::TABLE)?;
    let (mut first, mut last) = (None, String::new());
    while let Some(row) = rows.next_row()? {
        let found = row.text("client_order_id");
        if found == id {
            return Ok(OrderKnown::Yes);
        }
        found.clone_into(&mut last);
        first.get_or_insert_with(|| found.to_owned());
    }
    Ok(first.map_or(OrderKnown::NoOrders, |first| OrderKnown::Not(first, last)))
}

fn add_orders(
    folder: &Path,
    wanted: &mut BTreeMap<String, Option<OrderOutcome>>,
) -> Result<(), ReadError> {
    let mut rows = TableReader::open(folder, &Orders::TABLE)?;
    while let Some(row) = rows.next_row()? {
        // Decisions explain the strategy's orders; a person's may have the same id.
        if row.text("origin") != Origin::Strategy.as_str() {
            continue;
        }
        let Some(outcome) = wanted.get_mut(row.text("client_order_id")) else { continue };
        // A second order with the same id was rejected; the one that was sent counts.
        if outcome.is_some() && row.optional_text("venue_order_id").is_none() {
            continue;
        }
        let text = |column: &str| row.text(column).to_owned();
        *outcome = Some(OrderOutcome {
            instrument_id: text("instrument_id"),
            side: text("side"),
            order_type: text("order_type"),
            quantity: text("quantity"),
            status: text("status"),
            reason_text: row.optional_text("reason_text").map(str::to_owned),
            fills: Vec::new(),
        });
    }
    Ok(())
}

fn add_fills(
    folder: &Path,
    wanted: &mut BTreeMap<String, Option<OrderOutcome>>,
) -> Result<(), ReadError> {
    let mut rows = TableReader::open(folder, &Fills::TABLE)?;
    while let Some(row) = rows.next_row()? {
        if row.text("origin") != Origin::Strategy.as_str() {
            continue;
        }
        if let Some(Some(outcome)) = wanted.get_mut(row.text("client_order_id")) {
            outcome.fills.push(FillOutcome {
                ts_event_ns: row.timestamp("ts_event_ns")?,
                trade_id: row.text("trade_id").to_owned(),
                price: row.text("price").to_owned(),
                quantity: row.text("quantity").to_owned(),
            });
        }
    }
    Ok(())
}
