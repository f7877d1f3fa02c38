//! `events.jsonl` and the audit log of a replay: one JSON object a line, with the specification's
//! names, in the order in which things happened.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use domain::request_key::request_key;
use domain::{OrderEvent, OrderEventKind};
use serde_json::{Value, json};

use super::cells::Names;
use crate::record::{FillRow, PositionEvent};
use crate::sink::Record;

/// One kind of line, for the schemas.
#[derive(Debug, Clone, Copy)]
pub struct LineKind {
    /// Its name.
    pub name: &'static str,
    /// Its fields in order, after the name.
    pub fields: &'static [&'static str],
}

const fn line(name: &'static str, fields: &'static [&'static str]) -> LineKind {
    LineKind { name, fields }
}

/// Lines of `events.jsonl` (specification 2, "Events"), by the value of `event`. Prices and shares
/// are decimal texts, times are milliseconds since 1970.
pub const EVENT_LINES: [LineKind; 12] = [
    line("OrderSubmitted", &["client_order_id", "ts_event_ms"]),
    line("OrderAccepted", &["client_order_id", "venue_order_id", "ts_event_ms"]),
    line("OrderRejected", &["client_order_id", "reason_code", "reason_text", "ts_event_ms"]),
    line("OrderPendingUpdate", &["client_order_id", "ts_event_ms"]),
    line("OrderPendingCancel", &["client_order_id", "ts_event_ms"]),
    line("OrderCanceled", &["client_order_id", "venue_order_id", "ts_event_ms"]),
    line("OrderExpired", &["client_order_id", "venue_order_id", "ts_event_ms"]),
    line(
        "OrderFilled",
        &[
            "client_order_id",
            "venue_order_id",
            "trade_id",
            "last_qty",
            "last_price",
            "cumulative_qty",
            "leaves_qty",
            "ts_event_ms",
        ],
    ),
    line(
        "ExecutionMarker",
        &[
            "instrument_id",
            "client_order_id",
            "venue_order_id",
            "trade_id",
            "order_side",
            "quantity",
            "price",
            "ts_event_ms",
        ],
    ),
    line(
        "PositionOpened",
        &["instrument_id", "client_order_id", "entry_side", "quantity", "price", "ts_event_ms"],
    ),
    line(
        "PositionClosed",
        &["instrument_id", "client_order_id", "entry_side", "price", "realised_pnl", "ts_event_ms"],
    ),
    line(
        "StrategySignal",
        &["instrument_id", "signal_kind", "side", "price", "tag", "note", "ts_event_ms"],
    ),
];

/// Lines of the audit log (specification 2, "Audit log"), by the value of `phase`.
pub const AUDIT_LINES: [LineKind; 3] = [
    line(
        "submit",
        &[
            "ts",
            "client_order_id",
            "request_key",
            "instrument_id",
            "order_side",
            "order_type",
            "quantity",
        ],
    ),
    line(
        "accepted",
        &["ts", "client_order_id", "venue_order_id", "p_no", "warning_code", "warning_text"],
    ),
    line("rejected", &["ts", "client_order_id", "reason_code", "reason_text"]),
];

/// Writes the lines of `events.jsonl`. A change that was taken has no event of its own in the
/// specification, so it leaves no line.
pub(super) fn write_event(
    out: &mut impl Write,
    record: Record<'_>,
    names: &Names,
) -> io::Result<()> {
    let line = match record {
        Record::OrderEvent { event, .. } => match order_event(event) {
            Some(line) => line,
            None => return Ok(()),
        },
        Record::Fill(fill) => execution_marker(fill, names),
        Record::Position(event) => position_event(event, names),
        Record::Signal(moment, signal) => json!({
            "event": "StrategySignal",
            "instrument_id": names.of(signal.instrument),
            "signal_kind": signal.kind.as_str(),
            "side": signal.side.map(|side| side.as_str()),
            "price": signal.price.map(|price| price.to_string()),
            "tag": signal.tag,
            "note": signal.note,
            "ts_event_ms": moment.millis(),
        }),
        _ => return Ok(()),
    };
    write_line(out, &line)
}

fn order_event(event: &OrderEvent) -> Option<Value> {
    let name = match &event.kind {
        OrderEventKind::Submitted(_) => "OrderSubmitted",
        OrderEventKind::Accepted => "OrderAccepted",
        OrderEventKind::Rejected(_) => "OrderRejected",
        OrderEventKind::PendingUpdate(_) => "OrderPendingUpdate",
        OrderEventKind::Updated => return None,
        OrderEventKind::PendingCancel => "OrderPendingCancel",
        OrderEventKind::Canceled => "OrderCanceled",
        OrderEventKind::Expired(_) => "OrderExpired",
        OrderEventKind::Filled(_) => "OrderFilled",
    };
    let mut line = json!({ "event": name, "client_order_id": event.client_order_id.as_ref() });
    let venue_order_id = event.venue_order_id.as_deref();
    match &event.kind {
        OrderEventKind::Accepted | OrderEventKind::Canceled | OrderEventKind::Expired(_) => {
            line["venue_order_id"] = json!(venue_order_id);
        }
        OrderEventKind::Rejected(rejection) => {
            line["reason_code"] = json!(rejection.code.as_str());
            line["reason_text"] = json!(rejection.text);
        }
        OrderEventKind::Filled(fill) => {
            line["venue_order_id"] = json!(venue_order_id);
            line["trade_id"] = json!(fill.trade_id.as_ref());
            line["last_qty"] = json!(fill.last_quantity.to_string());
            line["last_price"] = json!(fill.last_price.to_string());
            line["cumulative_qty"] = json!(fill.cumulative_quantity.to_string());
            line["leaves_qty"] = json!(fill.leaves_quantity.to_string());
        }
        _ => {}
    }
    line["ts_event_ms"] = json!(event.ts_event.millis());
    Some(line)
}

fn execution_marker(fill: &FillRow, names: &Names) -> Value {
    json!({
        "event": "ExecutionMarker",
        "instrument_id": names.of(fill.instrument),
        "client_order_id": fill.client_order_id.as_ref(),
        "venue_order_id": fill.venue_order_id.as_ref(),
        "trade_id": fill.trade_id.as_ref(),
        "order_side": fill.side.as_str(),
        "quantity": fill.quantity.to_string(),
        "price": fill.price.to_string(),
        "ts_event_ms": fill.ts_event.millis(),
    })
}

fn position_event(event: &PositionEvent, names: &Names) -> Value {
    let mut line = json!({
        "event": if event.opened { "PositionOpened" } else { "PositionClosed" },
        "instrument_id": names.of(event.instrument),
        "client_order_id": event.client_order_id.as_ref(),
        "entry_side": event.entry_side.as_str(),
    });
    if event.opened {
        line["quantity"] = json!(event.quantity.to_string());
    }
    line["price"] = json!(event.price.to_string());
    if !event.opened {
        line["realised_pnl"] = json!(event.realised_pnl.map(|pnl| pnl.to_string()));
    }
    line["ts_event_ms"] = json!(event.ts_event.millis());
    line
}

/// Writes the audit log of a replay. Nothing goes to a broker, so lines are not forced to the disk,
/// and `p_no` counts the requests of the run from 1: orders, changes and cancels.
#[derive(Debug)]
pub(super) struct AuditLog<W> {
    out: W,
    requests: u64,
    /// The number of the request of each order that is not answered yet.
    in_flight: BTreeMap<Arc<str>, u64>,
}

impl<W: Write> AuditLog<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, requests: 0, in_flight: BTreeMap::new() }
    }

    /// Writes the line of an event, if it has one. Orders that were refused before they were sent
    /// have none.
    pub(super) fn take(&mut self, event: &OrderEvent, sent: bool, names: &Names) -> io::Result<()> {
        let ts = event.ts_event.millis();
        let id = event.client_order_id.as_ref();
        let line = match &event.kind {
            OrderEventKind::Submitted(request) => {
                self.requests += 1;
                self.in_flight.insert(Arc::clone(&event.client_order_id), self.requests);
                let instrument_id = names.of(request.instrument);
                json!({
                    "phase": "submit",
                    "ts": ts,
                    "client_order_id": id,
                    "request_key": request_key(request, instrument_id),
                    "instrument_id": instrument_id,
                    "order_side": request.side.as_str(),
                    "order_type": request.order_type.as_str(),
                    "quantity": request.quantity.to_string(),
                })
            }
            OrderEventKind::PendingUpdate(_) | OrderEventKind::PendingCancel => {
                self.requests += 1;
                return Ok(());
            }
            OrderEventKind::Accepted => json!({
                "phase": "accepted",
                "ts": ts,
                "client_order_id": id,
                "venue_order_id": event.venue_order_id.as_deref(),
                "p_no": self.in_flight.remove(id),
                "warning_code": null,
                "warning_text": null,
            }),
            OrderEventKind::Rejected(rejection) if sent => {
                self.in_flight.remove(id);
                json!({
                    "phase": "rejected",
                    "ts": ts,
                    "client_order_id": id,
                    "reason_code": rejection.code.as_str(),
                    "reason_text": rejection.text,
                })
            }
            OrderEventKind::Expired(_) => {
                self.in_flight.remove(id);
                return Ok(());
            }
            _ => return Ok(()),
        };
        write_line(&mut self.out, &line)
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }
}

fn write_line(out: &mut impl Write, line: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
