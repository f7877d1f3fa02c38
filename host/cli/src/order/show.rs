//! Orders and what becomes of them, for people.

use std::io::{Write, stdout};

use anyhow::Result;
use domain::text::on_one_line;
use domain::{JstDate, TimeInForce, TsNanos};
use engine::client::Received;
use ipc::{Event, OrderListUpdated, OrderModifyChange, OrderRecordWire, SubmitOrderRequest};

use crate::args::Format;
use crate::table::{Align, Column, Table};

/// An order that is about to be sent.
pub(super) fn order(order: &SubmitOrderRequest, expire: Option<JstDate>) -> String {
    let SubmitOrderRequest { instrument_id, quantity, order_type, time_in_force, .. } = order;
    let mut text = format!("{} {quantity} {instrument_id}", order.order_side.as_str());
    match (&order.price, &order.trigger_price) {
        (Some(price), None) => text.push_str(&format!(" at {price} yen or better")),
        (None, None) => text.push_str(" at the market's price"),
        (None, Some(trigger)) => {
            text.push_str(&format!(" at the market's price once {trigger} yen is reached"));
        }
        (Some(price), Some(trigger)) => {
            text.push_str(&format!(" at {price} yen or better once {trigger} yen is reached"));
        }
    }
    text.push_str(&format!(" ({}, {}", order_type.as_str(), time_in_force.as_str()));
    if let Some(expire) = expire {
        text.push_str(&format!(" {expire}"));
    }
    text.push(')');
    for tag in order.tags.iter().flatten() {
        text.push_str(&format!(" {tag}"));
    }
    text
}

/// A change that is about to be sent.
pub(super) fn change(which: &str, change: &OrderModifyChange, expire: Option<JstDate>) -> String {
    let mut parts = Vec::new();
    let fields = [
        ("shares in all", &change.new_quantity),
        ("limit", &change.new_price),
        ("trigger", &change.new_trigger_price),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            parts.push(format!("{name} {value}"));
        }
    }
    if let Some(expire) = expire {
        parts.push(format!("until {expire}"));
    }
    format!("change {which}: {}", parts.join(", "))
}

/// An order that was taken.
pub(super) fn taken(event: &Event<'_>) -> String {
    let Event::SubmitOrderResult(result) = event else { return String::new() };
    let number = result.venue_order_id.as_deref();
    let number = number.map_or("no number yet".to_owned(), |number| format!("number {number}"));
    let status = result.status.as_str();
    let mut text = format!("{status}: order {}, {number}", result.client_order_id);
    if let Some(warning) = &result.warning_text {
        text.push_str(&format!("\nnote: {warning}"));
    }
    text
}

/// Whether an answer says that the broker's own is not known.
pub(super) fn is_unknown(event: &Event<'_>) -> bool {
    let Event::SubmitOrderResult(result) = event else { return false };
    result.warning_code.as_deref() == Some("order_status_unknown")
}

/// The end of a cancel of many.
pub(super) fn cancelled(event: &Event<'_>) -> String {
    let Event::CancelAllResult(all) = event else { return String::new() };
    format!("{} cancelled, {} still open", all.canceled_count, all.failed_count)
}

/// Why something was refused, on one line.
pub(super) fn refusal(event: &Event<'_>) -> String {
    let text = match event {
        Event::OrderRejected(rejected) => {
            format!("refused: {}: {}", rejected.reason_code, rejected.reason_text)
        }
        Event::Error(error) => format!("{}: {}", error.code, error.message),
        Event::EngineError(error) => format!("{}: {}", error.code, error.message),
        Event::EngineBusy(busy) => format!("the engine is busy: {}", busy.reason),
        Event::VenueError(error) => format!("{}: {}", error.code, error.message),
        Event::SubmitOrderResult(_) => taken(event),
        Event::VenueLoginCancelled(_) => {
            "the login was given up; the log of the engine says why".to_owned()
        }
        _ => "refused".to_owned(),
    };
    on_one_line(&text).into_owned()
}

/// Whether an event is about orders, or about whether there can be any.
pub(super) const fn is_of_orders(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::OrderSubmitted(_)
            | Event::OrderAccepted(_)
            | Event::OrderRejected(_)
            | Event::OrderPendingUpdate(_)
            | Event::OrderUpdated(_)
            | Event::OrderPendingCancel(_)
            | Event::OrderCanceled(_)
            | Event::OrderExpired(_)
            | Event::OrderFilled(_)
            | Event::OrderDiscrepancy(_)
            | Event::CancelAllResult(_)
            | Event::VenueLoginStarted(_)
            | Event::VenueLoginCancelled(_)
            | Event::VenueReady(_)
            | Event::VenueError(_)
    )
}

/// An event as it happens.
pub(super) fn event(received: &Received, format: Format) {
    if format == Format::Json {
        println!("{}", received.text);
        return;
    }
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&received.text) else {
        return;
    };
    let text = |name: &str| match fields.get(name) {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(serde_json::Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let mut line = text("event").unwrap_or_default();
    for name in [
        "instrument_id",
        "order_side",
        "client_order_id",
        "venue_order_id",
        "last_qty",
        "last_price",
        "cumulative_qty",
        "leaves_qty",
        "quantity",
        "price",
        "trigger_price",
        "reason_code",
        "reason_text",
        "discrepancy",
        "canceled_count",
        "failed_count",
        "venue",
        "code",
        "message",
    ] {
        if let Some(value) = text(name) {
            line.push_str(&format!("  {name} {value}"));
        }
    }
    println!("{}", on_one_line(&line));
}

/// A list of orders.
pub(super) fn list(frames: &[OrderListUpdated<'_>]) -> Result<()> {
    let names = [
        "number",
        "id",
        "instrument",
        "side",
        "type",
        "shares",
        "filled",
        "price",
        "trigger",
        "lasts",
        "status",
    ];
    let right = ["shares", "filled", "price", "trigger"];
    let columns = names.map(|name| {
        let align = if right.contains(&name) { Align::Right } else { Align::Left };
        Column::new(name, align)
    });
    let mut table = Table::new(columns.to_vec());
    let rows: Vec<&OrderRecordWire<'_>> = frames.iter().flat_map(|frame| &frame.orders).collect();
    if rows.is_empty() {
        eprintln!("no orders");
        return Ok(());
    }
    for row in rows {
        let dash = || "-".to_owned();
        let yen = |price: Option<ipc::Decimal>| price.map_or_else(dash, |price| price.to_string());
        let until = row.expire_time_ns.filter(|_| row.time_in_force == TimeInForce::Gtd);
        let lasts = until.map_or_else(
            || row.time_in_force.as_str().to_owned(),
            |until| TsNanos::from_nanos(until).jst_date().to_string(),
        );
        table.row(vec![
            row.venue_order_id.to_string(),
            row.client_order_id.as_ref().map_or_else(dash, ToString::to_string),
            row.instrument_id.to_string(),
            row.order_side.as_str().to_owned(),
            row.order_type.as_str().to_owned(),
            domain::Quantity::from(row.quantity).to_string(),
            domain::Quantity::from(row.filled_qty).to_string(),
            yen(row.price),
            yen(row.trigger_price),
            lasts,
            row.status.as_str().to_owned(),
        ]);
    }
    let mut text = Vec::new();
    table.write(None, &mut text)?;
    print!("{}", String::from_utf8_lossy(&text));
    stdout().flush()?;
    Ok(())
}
