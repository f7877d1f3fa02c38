//! The tables of a run: one closed list of columns for CSV, JSON and the schemas.

use std::sync::Arc;

use domain::strategy::LogLine;
use domain::{InstrumentIx, Price, TsNanos};
use serde_json::{Map, Value, json};

use crate::exchange::Order;
use crate::output::Summary;
use crate::record::{EquityRow, FillRow, RunResult};

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// `string`, `integer` or `decimal` (exact decimal text); a `?` behind says it may be empty.
    pub kind: &'static str,
    /// What it holds, with its unit.
    pub meaning: &'static str,
}

const fn column(name: &'static str, kind: &'static str, meaning: &'static str) -> Column {
    Column { name, kind, meaning }
}

/// One table: `<name>.csv` and `<name>.json`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
}

const TS_EVENT: Column = column("ts_event_ns", "integer", "when; nanoseconds since 1970, UTC");
const INSTRUMENT: Column = column("instrument_id", "string", "`<symbol>.TSE`");
const CLIENT_ORDER: Column = column("client_order_id", "string", "the strategy's id of the order");

/// Fills.
const FILLS: Table = Table {
    name: "fills",
    row: "a fill",
    columns: &[
        TS_EVENT,
        INSTRUMENT,
        CLIENT_ORDER,
        column("venue_order_id", "string", "the exchange's number of the order"),
        column("trade_id", "string", "the fill's own number"),
        column("side", "string", "BUY or SELL"),
        column("price", "decimal", "yen per share"),
        column("quantity", "integer", "shares of this fill"),
        column("cumulative_quantity", "integer", "shares of the order done so far"),
        column("leaves_quantity", "integer", "shares of the order still open"),
        column("commission", "decimal", "fee in yen"),
    ],
};

/// Orders.
const ORDERS: Table = Table {
    name: "orders",
    row: "an order",
    columns: &[
        column("ts_submitted_ns", "integer", "when it was sent; nanoseconds since 1970, UTC"),
        INSTRUMENT,
        CLIENT_ORDER,
        column("venue_order_id", "string?", "the exchange's number of the order"),
        column("side", "string", "BUY or SELL"),
        column("order_type", "string", "MARKET, LIMIT, ..."),
        column("time_in_force", "string", "DAY, ..."),
        column("quantity", "integer", "shares asked for"),
        column("price", "decimal?", "limit price in yen"),
        column("trigger_price", "decimal?", "trigger price in yen"),
        column("filled_quantity", "integer", "shares done"),
        column("leaves_quantity", "integer", "shares not done"),
        column("average_price", "decimal?", "yen per share done, cut off at 1/10,000 yen"),
        column("status", "string", "state at the end"),
        column("ts_last_ns", "integer", "when something last happened to it"),
        column("reason_code", "string?", "why it was refused"),
        column("reason_text", "string?", "the same for people"),
    ],
};

/// Equity.
const EQUITY: Table = Table {
    name: "equity",
    row: "the end of a minute that had trades",
    columns: &[
        TS_EVENT,
        column("price", "decimal", "last price in yen"),
        column("quantity", "integer", "shares held"),
        column("cash", "decimal", "money in yen"),
        column("position_value", "decimal", "shares at the last price, yen"),
        column("equity", "decimal", "cash and position value, yen"),
    ],
};

/// Signals.
const SIGNALS: Table = Table {
    name: "signals",
    row: "a mark that the strategy has set",
    columns: &[
        TS_EVENT,
        INSTRUMENT,
        column("signal_kind", "string", "EntryLong, EntryShort, Exit or Annotate"),
        column("side", "string?", "BUY or SELL"),
        column("price", "decimal?", "yen"),
        column("tag", "string?", "short name to group by"),
        column("note", "string?", "free text"),
    ],
};

/// Narrative.
const NARRATIVE: Table = Table {
    name: "narrative",
    row: "a decision of the strategy with its reasons",
    columns: &[
        TS_EVENT,
        column("client_order_id", "string?", "the order that it explains"),
        column("title", "string", "what was decided"),
        column("body", "string", "why"),
    ],
};

/// Log.
const LOG: Table = Table {
    name: "log",
    row: "a line of the strategy, or a warning of the host",
    columns: &[
        column("ts_event_ns", "integer?", "the event being handled; empty before the first"),
        column("level", "string", "DEBUG, INFO, WARN or ERROR"),
        column("message", "string", "the text"),
    ],
};

/// The summary.
const SUMMARY: Table = Table {
    name: "summary",
    row: "a number of the run",
    columns: &[
        column("name", "string", "which number"),
        column("value", "string?", "the number; money in yen"),
    ],
};

/// Every table of a run.
pub const TABLES: [Table; 7] = [SUMMARY, ORDERS, FILLS, EQUITY, SIGNALS, NARRATIVE, LOG];

/// The rows of every table, each with one value for each column.
pub(super) fn rows(result: &RunResult, instrument_id: &str) -> Vec<(Table, Vec<Vec<Value>>)> {
    let name_of = |instrument: InstrumentIx| {
        // An order for an unknown index was refused; it keeps the index as its name.
        let name = instrument_id.split(',').nth(usize::from(instrument.0));
        name.map_or_else(|| instrument.0.to_string(), str::to_owned)
    };
    let signals = result.signals.iter().map(|(moment, signal)| {
        vec![
            json!(moment),
            json!(name_of(signal.instrument)),
            json!(signal.kind.as_str()),
            json!(signal.side.map(|side| side.as_str())),
            decimal(signal.price),
            json!(signal.tag),
            json!(signal.note),
        ]
    });
    let narrative = result.narrative.iter().map(|(moment, record)| {
        let id = record.client_order_id.as_deref();
        vec![json!(moment), json!(id), json!(record.title), json!(record.body)]
    });
    vec![
        (SUMMARY, summary_rows(&Summary::new(result))),
        (ORDERS, result.orders.iter().map(|order| order_row(order, &name_of)).collect()),
        (FILLS, result.fills.iter().map(|fill| fill_row(fill, &name_of)).collect()),
        (EQUITY, result.equity.iter().map(equity_row).collect()),
        (SIGNALS, signals.collect()),
        (NARRATIVE, narrative.collect()),
        (LOG, result.log.iter().map(log_row).collect()),
    ]
}

/// Rows as JSON objects. The summary is one object.
pub(super) fn as_json(table: &Table, rows: &[Vec<Value>]) -> Value {
    if table.name == SUMMARY.name {
        let pair =
            |row: &Vec<Value>| (row[0].as_str().unwrap_or_default().to_owned(), row[1].clone());
        return Value::Object(rows.iter().map(pair).collect());
    }
    let object = |row: &Vec<Value>| {
        let names = table.columns.iter().map(|column| column.name.to_owned());
        Value::Object(names.zip(row.iter().cloned()).collect::<Map<_, _>>())
    };
    Value::Array(rows.iter().map(object).collect())
}

fn decimal(price: Option<Price>) -> Value {
    json!(price.map(|price| price.to_string()))
}

fn text(text: Option<&Arc<str>>) -> Value {
    json!(text.map(|text| text.as_ref()))
}

fn summary_rows(summary: &Summary) -> Vec<Vec<Value>> {
    match serde_json::to_value(summary) {
        Ok(Value::Object(fields)) => {
            fields.into_iter().map(|(name, value)| vec![Value::String(name), value]).collect()
        }
        // A plain struct of numbers and texts always becomes an object.
        _ => Vec::new(),
    }
}

fn order_row(order: &Order, name_of: &dyn Fn(InstrumentIx) -> String) -> Vec<Value> {
    let request = &order.request;
    vec![
        json!(order.ts_submitted),
        json!(name_of(request.instrument)),
        json!(request.client_order_id.as_ref()),
        text(order.venue_order_id.as_ref()),
        json!(request.side.as_str()),
        json!(request.order_type.as_str()),
        json!(request.time_in_force.as_str()),
        json!(request.quantity),
        decimal(request.price),
        decimal(request.trigger_price),
        json!(order.filled),
        json!(order.leaves()),
        decimal(order.average_price()),
        json!(order.status.as_str()),
        json!(order.ts_last),
        json!(order.rejection.as_ref().map(|why| why.code.as_str())),
        json!(order.rejection.as_ref().map(|why| &why.text)),
    ]
}

fn fill_row(fill: &FillRow, name_of: &dyn Fn(InstrumentIx) -> String) -> Vec<Value> {
    vec![
        json!(fill.ts_event),
        json!(name_of(fill.instrument)),
        json!(fill.client_order_id.as_ref()),
        json!(fill.venue_order_id.as_ref()),
        json!(fill.trade_id.as_ref()),
        json!(fill.side.as_str()),
        json!(fill.price.to_string()),
        json!(fill.quantity),
        json!(fill.cumulative_quantity),
        json!(fill.leaves_quantity),
        json!(fill.commission.to_string()),
    ]
}

fn equity_row(row: &EquityRow) -> Vec<Value> {
    vec![
        json!(row.ts_event),
        json!(row.price.to_string()),
        json!(row.quantity),
        json!(row.cash.to_string()),
        json!((row.equity - row.cash).to_string()),
        json!(row.equity.to_string()),
    ]
}

fn log_row(line: &LogLine) -> Vec<Value> {
    vec![json!(line.ts_event.map(TsNanos::nanos)), json!(line.level.as_str()), json!(line.message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_have_the_promised_columns() {
        let names: Vec<_> = FILLS.columns.iter().map(|column| column.name).collect();
        assert_eq!(
            names.join(","),
            "ts_event_ns,instrument_id,client_order_id,venue_order_id,trade_id,side,price,\
             quantity,cumulative_quantity,leaves_quantity,commission"
        );
    }
}
