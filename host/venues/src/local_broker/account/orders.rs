//! Rows of `GET /orders` (specification 4, P57).
//!
//! The gateway reports that an order ended, but not how. So its end is derived from its history.

use chrono::DateTime;
use domain::calendar::ExchangeCalendar;
use domain::session::close_of;
use domain::time::NANOS_PER_DAY;
use domain::{JstDate, OrderStatus, OrderType, Price, Quantity, TimeInForce, TsNanos};
use serde_json::{Map, Value};

use super::row::{List, Row, shown, wrong};
use super::{AccountOrder, Unreadable, instrument, read_rows, side};
use crate::Listed;
use crate::local_broker::keys::is_derivative;
use crate::local_broker::limits::DETAILS_MAX;

/// Fields of a row that have a place of their own; all others are `extra`.
const PLACED: [&str; 6] = ["ID", "Symbol", "Side", "Price", "OrderQty", "CumQty"];

/// Fields of `extra` that may have digits after the point: they are always decimal texts.
fn is_decimal(name: &str) -> bool {
    matches!(name, "MarginPremium" | "Price" | "Qty" | "Commission" | "CommissionTax")
}

/// The orders (`GET /orders`).
///
/// # Errors
/// [`Unreadable`]
pub fn read_orders(body: &str) -> Result<Listed<AccountOrder>, Unreadable> {
    read_rows(body, "/orders", &["ID"], order)
}

fn order(row: &Row<'_>) -> Result<AccountOrder, String> {
    let exchange = row.required_whole("Exchange")?;
    let received = received(row)?;
    let (quantity, filled) = (row.shares("OrderQty")?, row.shares("CumQty")?);
    let is_over = state(row)? == ENDED;
    // The gateway may set the quantity of an ended order to 0, though it has filled shares.
    if filled > quantity && quantity > 0 {
        let what = format!("is more than OrderQty `{quantity}`");
        return Err(wrong("CumQty", &filled.to_string(), &what));
    }
    let open = quantity.saturating_sub(filled);
    let price = row.units("Price")?.filter(|units| *units != 0).map(Price::from_units);
    let expires = expires(row, received)?;
    Ok(AccountOrder {
        venue_order_id: row.required_text("ID")?,
        instrument_id: instrument(row, exchange)?,
        side: side(row)?,
        order_type: order_type(row, price)?,
        quantity: Quantity::new(quantity),
        filled: Quantity::new(filled),
        leaves: Quantity::new(if is_over { 0 } else { open }),
        price,
        time_in_force: time_in_force(row, exchange, expires.is_some())?,
        expires,
        status: status(row, quantity, filled)?,
        received,
        extra: extra(row)?,
    })
}

/// The type of an order. Without a price it is a market order, unless its limit is the other side's best price
/// when it is sent.
fn order_type(row: &Row<'_>, price: Option<Price>) -> Result<OrderType, String> {
    match price {
        Some(price) if price.units() < 0 => Err(wrong("Price", &price.to_string(), "is below 0")),
        None if row.whole("OrdType")? != Some(OPPOSITE_LIMIT) => Ok(OrderType::Market),
        _ => Ok(OrderType::Limit),
    }
}

/// `OrdType` of an order at the other side's best price.
const OPPOSITE_LIMIT: i64 = 5;

fn time_in_force(row: &Row<'_>, exchange: i64, expires: bool) -> Result<TimeInForce, String> {
    let day = if expires { TimeInForce::Gtd } else { TimeInForce::Day };
    if is_derivative(exchange) {
        return match row.whole("TimeInForce")? {
            None | Some(1) => Ok(day),
            Some(2) => Ok(TimeInForce::Ioc),
            Some(3) => Ok(TimeInForce::Fok),
            Some(other) => Err(wrong("TimeInForce", &other.to_string(), "is not 1 to 3")),
        };
    }
    match row.whole("OrdType")? {
        // 4: a limit order that becomes a market order at the close; `extra` has the code.
        None | Some(1 | 4 | OPPOSITE_LIMIT) => Ok(day),
        Some(2) => Ok(TimeInForce::AtTheOpen),
        Some(3) => Ok(TimeInForce::AtTheClose),
        Some(6) => Ok(TimeInForce::Ioc),
        Some(other) => Err(wrong("OrdType", &other.to_string(), "is not 1 to 6")),
    }
}

/// The last moment of an order that lives longer than one business day. An order that arrives after the close
/// or on a holiday belongs to the next business day.
fn expires(row: &Row<'_>, received: TsNanos) -> Result<Option<TsNanos>, String> {
    let Some(day) = row.whole("ExpireDay")?.filter(|day| *day != 0) else { return Ok(None) };
    let date = plain_date(&day.to_string());
    let date = date.ok_or_else(|| wrong("ExpireDay", &day.to_string(), "is not a date"))?;
    let placed = received.jst_date();
    let calendar = ExchangeCalendar::default();
    let is_of_its_day =
        calendar.is_business_day(placed) && received.jst_nanos_of_day() < close_of(placed);
    let more_days = calendar.business_days_between(placed, date, 1);
    if more_days <= u32::from(!is_of_its_day) {
        return Ok(None);
    }
    Ok(TsNanos::from_jst(date, NANOS_PER_DAY - 1))
}

fn received(row: &Row<'_>) -> Result<TsNanos, String> {
    let text = row.required_text("RecvTime")?;
    let zoned = || DateTime::parse_from_rfc3339(&text).ok();
    // A time without a zone is in Japan's, like all times of the gateway.
    let time = zoned().or_else(|| DateTime::parse_from_rfc3339(&format!("{text}+09:00")).ok());
    let nanos = time.and_then(|time| time.timestamp_nanos_opt());
    let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(TsNanos::from_nanos).ok_or_else(|| {
        wrong("RecvTime", &text, "is not a time like 2022-04-04T18:00:51.763683+09:00")
    })
}

/// `State` of an order that has ended, in whichever way.
const ENDED: i64 = 5;

/// `State` and `OrderState` are the same.
fn state(row: &Row<'_>) -> Result<i64, String> {
    match row.whole("State")? {
        Some(state) => Ok(state),
        None => row.required_whole("OrderState"),
    }
}

fn status(row: &Row<'_>, quantity: u64, filled: u64) -> Result<OrderStatus, String> {
    match state(row)? {
        1 | 2 => Ok(OrderStatus::Submitted),
        3 => Ok(OrderStatus::Accepted),
        4 => {
            let operations = history(row)?.into_iter().rev();
            let mut operations =
                operations.filter(|step| matches!(step.kind, Some(CHANGE | CANCEL)));
            match operations.next() {
                Some(step) if step.kind == Some(CANCEL) => Ok(OrderStatus::PendingCancel),
                _ => Ok(OrderStatus::PendingUpdate),
            }
        }
        ENDED => Ok(ended(&history(row)?, quantity, filled)),
        other => Err(wrong("State", &other.to_string(), "is not 1 to 5")),
    }
}

/// How an order ended. A cancel may set its quantity to the filled shares, so equal numbers prove no full fill.
/// If the history does not say it, the fills decide: the rest of a partly filled order can only have been
/// cancelled.
fn ended(history: &[Step], quantity: u64, filled: u64) -> OrderStatus {
    let has = |takes: &dyn Fn(&Step) -> bool| history.iter().any(takes);
    let is_cancel = |step: &Step| step.kind == Some(CANCEL);
    if has(&|step| is_cancel(step) && step.state == Some(DONE)) {
        OrderStatus::Canceled
    } else if filled == quantity && filled > 0 {
        OrderStatus::Filled
    } else if has(&|step| matches!(step.kind, Some(EXPIRED | LAPSED))) {
        OrderStatus::Expired
    } else if has(&|step| is_cancel(step) && !matches!(step.state, Some(FAILED | DELETED))) {
        OrderStatus::Canceled
    } else if filled > 0 && quantity == 0 {
        OrderStatus::Filled
    } else if filled > 0 && history.is_empty() {
        OrderStatus::Canceled
    } else {
        OrderStatus::Rejected
    }
}

/// `RecType` of a step in the history.
const EXPIRED: i64 = 3;
const CHANGE: i64 = 5;
const CANCEL: i64 = 6;
const LAPSED: i64 = 7;
/// `State` of a step in the history.
const DONE: i64 = 3;
const FAILED: i64 = 4;
const DELETED: i64 = 5;

/// One row of `Details`.
struct Step {
    number: i64,
    kind: Option<i64>,
    state: Option<i64>,
}

/// The history of an order, in order.
fn history(row: &Row<'_>) -> Result<Vec<Step>, String> {
    let Some(text) = row.value("Details") else { return Ok(Vec::new()) };
    let list = List::read(text).map_err(|error| format!("Details {error}"))?;
    if list.0.len() > DETAILS_MAX {
        return Err(format!("Details has more than {DETAILS_MAX} rows"));
    }
    let step = |text: &str| {
        let row = Row::read(text)?;
        Ok(Step {
            number: row.required_whole("SeqNum")?,
            kind: row.whole("RecType")?,
            state: row.whole("State")?,
        })
    };
    let steps = list.0.iter().map(|text| step(text.get()));
    let mut steps: Vec<Step> =
        steps.collect::<Result<_, String>>().map_err(|error| format!("Details: {error}"))?;
    steps.sort_by_key(|step| step.number);
    Ok(steps)
}

fn extra(row: &Row<'_>) -> Result<Map<String, Value>, String> {
    let others = row.fields().filter(|(name, _)| !PLACED.contains(name));
    others.map(|(name, value)| Ok((name.to_owned(), shown(name, value, is_decimal, 1)?))).collect()
}

/// A date written as `20261124`.
fn plain_date(text: &str) -> Option<JstDate> {
    let is_plain = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
    let dashed = is_plain.then(|| format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]))?;
    dashed.parse().ok()
}
