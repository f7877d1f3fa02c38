//! `events.jsonl` and the audit log of a run: its events as the lines of [`ipc::EventLine`] and
//! [`ipc::AuditLine`], in their order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use domain::request_key::request_key;
use domain::strategy::Signal;
use domain::{OrderEvent, OrderEventKind, Origin, ShortText, TsNanos};
use ipc::{
    AuditAccepted, AuditContext, AuditLine, AuditRejected, AuditSubmit, EventLine,
    ExecutionMarkerLine, OrderContext, PositionClosedLine, PositionOpenedLine, StrategySignal,
    Text,
};

use super::cells::Names;
use super::whole_lines::{HeldLines, WholeLines};
use crate::rows::{FillRow, PositionEvent};
use crate::run_folder::WallClock;
use crate::sink::Record;

/// Writes `events.jsonl`.
#[derive(Debug)]
pub(crate) struct EventLog(HeldLines<File>);

impl EventLog {
    pub(crate) const fn new(out: File) -> Self {
        Self(HeldLines::new(out))
    }

    /// Writes the line of a record, if it has one.
    pub(crate) fn take(&mut self, record: Record<'_>, names: &Names) -> io::Result<()> {
        let line = match record {
            Record::OrderEvent { event, .. } => order_line(event),
            Record::Fill(fill) => Some(marker_line(fill, names)),
            Record::Position(event) => Some(position_line(event, names)),
            Record::Signal(ts_event, signal) => Some(signal_line(ts_event, signal, names)),
            _ => None,
        };
        line.map_or(Ok(()), |line| self.0.json(&line))
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Files tell the origin of clients' orders only: most runs have none.
fn told_origin(origin: Origin) -> Option<Origin> {
    (origin == Origin::Client).then_some(origin)
}

/// The line of an order's event. A change that was taken has none.
fn order_line(event: &OrderEvent) -> Option<EventLine<'_>> {
    let context = OrderContext { origin: told_origin(event.origin), ..OrderContext::default() };
    EventLine::of_order(event, context)
}

fn marker_line<'a>(fill: &'a FillRow, names: &'a Names) -> EventLine<'a> {
    EventLine::ExecutionMarker(ExecutionMarkerLine {
        instrument_id: Text::Borrowed(names.of(fill.instrument)),
        client_order_id: Text::Borrowed(&fill.client_order_id),
        venue_order_id: Text::Borrowed(&fill.venue_order_id),
        trade_id: Text::Borrowed(&fill.trade_id),
        order_side: fill.side,
        quantity: fill.quantity.into(),
        price: fill.price.into(),
        ts_event_ms: fill.ts_event.millis(),
    })
}

fn position_line<'a>(event: &'a PositionEvent, names: &'a Names) -> EventLine<'a> {
    let instrument_id = Text::Borrowed(names.of(event.instrument));
    let client_order_id = Text::Borrowed(&*event.client_order_id);
    let price = event.price.into();
    let ts_event_ms = event.ts_event.millis();
    if event.opened {
        EventLine::PositionOpened(PositionOpenedLine {
            instrument_id,
            client_order_id,
            entry_side: event.entry_side,
            quantity: event.quantity,
            price,
            ts_event_ms,
        })
    } else {
        EventLine::PositionClosed(PositionClosedLine {
            instrument_id,
            client_order_id,
            entry_side: event.entry_side,
            price,
            realised_pnl: event.realised_pnl.map(Into::into),
            ts_event_ms,
        })
    }
}

fn signal_line<'a>(ts_event: TsNanos, signal: &'a Signal, names: &'a Names) -> EventLine<'a> {
    EventLine::StrategySignal(StrategySignal {
        strategy_id: None,
        instrument_id: Text::Borrowed(names.of(signal.instrument)),
        signal_kind: signal.kind,
        side: signal.side,
        price: signal.price.map(Into::into),
        tag: signal.tag.as_deref().map(Text::Borrowed),
        note: signal.note.as_deref().map(Text::Borrowed),
        ts_event_ms: ts_event.millis(),
    })
}

/// Writes the audit log of a replay. Nothing goes to a broker, so only orders of people are forced to the disk,
/// and `p_no` counts the requests of the run from 1: orders, changes and cancels.
#[derive(Debug)]
pub(crate) struct AuditLog {
    lines: HeldLines<AuditFile>,
    requests: u64,
    /// The number of the request of each order that is not answered yet.
    in_flight: BTreeMap<(Origin, ShortText), u64>,
}

impl AuditLog {
    pub(crate) fn new(out: AuditFile) -> Self {
        let lines = match &out {
            AuditFile::Held(_) => HeldLines::new(out),
            AuditFile::Whole(_) => HeldLines::at_once(out),
        };
        Self { lines, requests: 0, in_flight: BTreeMap::new() }
    }

    /// Writes the line of an event, if it has one. Orders that were rejected before they were sent
    /// have none.
    pub(crate) fn take(
        &mut self,
        event: &OrderEvent,
        sent: bool,
        names: &Names,
        wall_clock: Option<WallClock>,
    ) -> io::Result<()> {
        let id = &event.client_order_id;
        let client_order_id = Text::Borrowed(&**id);
        let ts = event.ts_event.millis();
        let context = match wall_clock {
            None => AuditContext { origin: told_origin(event.origin), ..AuditContext::default() },
            Some(clock) => {
                let (origin, wall_ms) = (Some(event.origin), Some(clock().millis()));
                AuditContext { origin, wall_ms, ..AuditContext::default() }
            }
        };
        let key = (event.origin, id.clone());
        let line = match &event.kind {
            OrderEventKind::Submitted(request) => {
                self.requests += 1;
                self.in_flight.insert(key, self.requests);
                let instrument_id = names.of(request.instrument);
                AuditLine::Submit(AuditSubmit {
                    ts,
                    client_order_id,
                    request_key: request_key(request, instrument_id),
                    instrument_id: Text::Borrowed(instrument_id),
                    order_side: request.side,
                    order_type: request.order_type,
                    quantity: request.quantity.into(),
                    price: None,
                    trigger_price: None,
                    time_in_force: None,
                    expire_time_ns: None,
                    request_key_version: None,
                    margin: false,
                    context,
                })
            }
            OrderEventKind::PendingUpdate(_) | OrderEventKind::PendingCancel => {
                self.requests += 1;
                return Ok(());
            }
            OrderEventKind::Accepted => {
                let unasked = || io::Error::other(format!("order {id} was accepted but not sent"));
                AuditLine::Accepted(AuditAccepted {
                    ts,
                    client_order_id,
                    venue_order_id: event.venue_order_id.as_deref().map(Text::Borrowed),
                    p_no: self.in_flight.remove(&key).ok_or_else(unasked)?,
                    business_day: None,
                    warning_code: None,
                    warning_text: None,
                    request_key_version: None,
                    context,
                })
            }
            // A refused change leaves its order as it is, and is no line.
            OrderEventKind::Rejected(rejection) if sent && event.status.is_final() => {
                self.in_flight.remove(&key);
                AuditLine::Rejected(AuditRejected {
                    ts,
                    client_order_id,
                    reason_code: rejection.code,
                    reason_text: Text::Borrowed(&rejection.text),
                    request_key_version: None,
                    context,
                })
            }
            OrderEventKind::Expired(_) => {
                self.in_flight.remove(&key);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.lines.json(&line)
    }

    /// Brings the lines so far to the disk where people take part, else to the system.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match &mut self.lines.out {
            AuditFile::Held(_) => self.lines.flush(),
            AuditFile::Whole(file) => file.sync(),
        }
    }

    /// Cuts the last line back where people take part: what it says has not been done.
    pub(crate) fn take_back(&mut self) {
        match &mut self.lines.out {
            AuditFile::Held(_) => {}
            AuditFile::Whole(file) => file.take_back(),
        }
    }
}

/// Where the audit log of a run goes.
#[derive(Debug)]
pub(crate) enum AuditFile {
    /// Nobody but the strategy takes part: the lines are there when the run ends.
    Held(File),
    /// People take part: each line is there at once.
    Whole(WholeLines),
}

impl Write for AuditFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Held(file) => file.write(bytes),
            Self::Whole(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Held(file) => file.flush(),
            Self::Whole(file) => file.flush(),
        }
    }
}
