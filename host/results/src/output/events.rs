//! `events.jsonl` and the audit log of a replay: one JSON object a line, with the specification's
//! names, in the order in which things happened.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use domain::request_key::request_key;
use domain::{OrderEvent, OrderEventKind};
use serde::Serialize;

use super::cells::Names;
use crate::rows::{FillRow, PositionEvent};
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

/// A JSON object in one line, field by field.
struct Line<'b>(&'b mut Vec<u8>);

impl<'b> Line<'b> {
    /// Begins a line in an empty buffer; `tag` tells what kind it is.
    fn begin(buffer: &'b mut Vec<u8>, tag: &str, kind: &str) -> Self {
        buffer.clear();
        buffer.push(b'{');
        Self(buffer).json(tag, kind)
    }

    /// A value in its JSON form; texts of strategies are escaped.
    fn json(self, name: &str, value: impl Serialize) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        // A buffer takes everything, and texts and numbers always have a JSON form.
        if serde_json::to_writer(&mut *self.0, &value).is_err() {
            self.0.extend_from_slice(b"null");
        }
        self
    }

    /// A number as its exact decimal text.
    fn exact(self, name: &str, value: impl Display) -> Self {
        self.json(name, format_args!("{value}"))
    }

    /// Ends the line and writes it.
    fn write(self, out: &mut impl Write) -> io::Result<()> {
        self.0.extend_from_slice(b"}\n");
        out.write_all(self.0)
    }
}

/// Writes `events.jsonl`. A change that was taken has no event of its own in the specification, so it
/// leaves no line.
#[derive(Debug)]
pub(super) struct EventLog<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> EventLog<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, buffer: Vec::new() }
    }

    /// Writes the line of a record, if it has one.
    pub(super) fn take(&mut self, record: Record<'_>, names: &Names) -> io::Result<()> {
        let buffer = &mut self.buffer;
        let line = match record {
            Record::OrderEvent { event, .. } => match order_event(buffer, event) {
                Some(line) => line,
                None => return Ok(()),
            },
            Record::Fill(fill) => execution_marker(buffer, fill, names),
            Record::Position(event) => position_event(buffer, event, names),
            Record::Signal(moment, signal) => Line::begin(buffer, "event", "StrategySignal")
                .json("instrument_id", names.of(signal.instrument))
                .json("signal_kind", signal.kind.as_str())
                .json("side", signal.side.map(|side| side.as_str()))
                .json("price", signal.price.map(|price| price.to_string()))
                .json("tag", signal.tag.as_deref())
                .json("note", signal.note.as_deref())
                .json("ts_event_ms", moment.millis()),
            _ => return Ok(()),
        };
        line.write(&mut self.out)
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }
}

fn order_event<'b>(buffer: &'b mut Vec<u8>, event: &OrderEvent) -> Option<Line<'b>> {
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
    let line = Line::begin(buffer, "event", name).json("client_order_id", &*event.client_order_id);
    let venue_order_id = event.venue_order_id.as_deref();
    let line = match &event.kind {
        OrderEventKind::Accepted | OrderEventKind::Canceled | OrderEventKind::Expired(_) => {
            line.json("venue_order_id", venue_order_id)
        }
        OrderEventKind::Rejected(rejection) => {
            line.json("reason_code", rejection.code.as_str()).json("reason_text", &rejection.text)
        }
        OrderEventKind::Filled(fill) => line
            .json("venue_order_id", venue_order_id)
            .json("trade_id", &*fill.trade_id)
            .exact("last_qty", fill.last_quantity)
            .exact("last_price", fill.last_price)
            .exact("cumulative_qty", fill.cumulative_quantity)
            .exact("leaves_qty", fill.leaves_quantity),
        _ => line,
    };
    Some(line.json("ts_event_ms", event.ts_event.millis()))
}

fn execution_marker<'b>(buffer: &'b mut Vec<u8>, fill: &FillRow, names: &Names) -> Line<'b> {
    Line::begin(buffer, "event", "ExecutionMarker")
        .json("instrument_id", names.of(fill.instrument))
        .json("client_order_id", &*fill.client_order_id)
        .json("venue_order_id", &*fill.venue_order_id)
        .json("trade_id", &*fill.trade_id)
        .json("order_side", fill.side.as_str())
        .exact("quantity", fill.quantity)
        .exact("price", fill.price)
        .json("ts_event_ms", fill.ts_event.millis())
}

fn position_event<'b>(buffer: &'b mut Vec<u8>, event: &PositionEvent, names: &Names) -> Line<'b> {
    let name = if event.opened { "PositionOpened" } else { "PositionClosed" };
    let line = Line::begin(buffer, "event", name)
        .json("instrument_id", names.of(event.instrument))
        .json("client_order_id", &*event.client_order_id)
        .json("entry_side", event.entry_side.as_str());
    let line = if event.opened {
        line.exact("quantity", event.quantity).exact("price", event.price)
    } else {
        let pnl = event.realised_pnl.map(|pnl| pnl.to_string());
        line.exact("price", event.price).json("realised_pnl", pnl)
    };
    line.json("ts_event_ms", event.ts_event.millis())
}

/// Writes the audit log of a replay. Nothing goes to a broker, so lines are not forced to the disk,
/// and `p_no` counts the requests of the run from 1: orders, changes and cancels.
#[derive(Debug)]
pub(super) struct AuditLog<W> {
    out: W,
    buffer: Vec<u8>,
    requests: u64,
    /// The number of the request of each order that is not answered yet.
    in_flight: BTreeMap<Arc<str>, u64>,
}

impl<W: Write> AuditLog<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, buffer: Vec::new(), requests: 0, in_flight: BTreeMap::new() }
    }

    /// Writes the line of an event, if it has one. Orders that were refused before they were sent
    /// have none.
    pub(super) fn take(&mut self, event: &OrderEvent, sent: bool, names: &Names) -> io::Result<()> {
        let id = event.client_order_id.as_ref();
        let line = match &event.kind {
            OrderEventKind::Submitted(request) => {
                self.requests += 1;
                self.in_flight.insert(Arc::clone(&event.client_order_id), self.requests);
                let instrument_id = names.of(request.instrument);
                self.line("submit", event)
                    .json("request_key", request_key(request, instrument_id))
                    .json("instrument_id", instrument_id)
                    .json("order_side", request.side.as_str())
                    .json("order_type", request.order_type.as_str())
                    .exact("quantity", request.quantity)
            }
            OrderEventKind::PendingUpdate(_) | OrderEventKind::PendingCancel => {
                self.requests += 1;
                return Ok(());
            }
            OrderEventKind::Accepted => {
                let number = self.in_flight.remove(id);
                self.line("accepted", event)
                    .json("venue_order_id", event.venue_order_id.as_deref())
                    .json("p_no", number)
                    .json("warning_code", ())
                    .json("warning_text", ())
            }
            OrderEventKind::Rejected(rejection) if sent => {
                self.in_flight.remove(id);
                self.line("rejected", event)
                    .json("reason_code", rejection.code.as_str())
                    .json("reason_text", &rejection.text)
            }
            OrderEventKind::Expired(_) => {
                self.in_flight.remove(id);
                return Ok(());
            }
            _ => return Ok(()),
        };
        line.0.extend_from_slice(b"}\n");
        self.out.write_all(&self.buffer)
    }

    fn line(&mut self, phase: &str, event: &OrderEvent) -> Line<'_> {
        Line::begin(&mut self.buffer, "phase", phase)
            .json("ts", event.ts_event.millis())
            .json("client_order_id", &*event.client_order_id)
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }
}
