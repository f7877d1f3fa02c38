//! Lines of the audit log, made from the desk's orders. A person's line has no origin, as in every log before.

use std::io;

use domain::order_mapping::BrokerFill;
use domain::{Money, OrderOrigin, Origin, Quantity, Rejection, TsNanos};
use ipc::{
    AuditAccepted, AuditAdjusted, AuditContext, AuditEnded, AuditFilled, AuditLine, AuditRejected,
    AuditSessionExpired, AuditSubmit, Text,
};

use super::holdings::Holdings;
use super::{AuditSink, plain};
use crate::audit::restore::REQUEST_KEY_VERSION;
use crate::book::DeskOrder;

/// What reported a fill.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FillSource<'a> {
    /// A notice, with its business day where it has one.
    Notice(Option<&'a str>),
    /// The details of the order; the number of the fill is the desk's own.
    Details,
}

/// The line of a fill.
pub(crate) type FillLine = AuditFilled<'static>;

fn context(origin: Option<&OrderOrigin>) -> AuditContext<'_> {
    let strategy_id = origin.and_then(OrderOrigin::strategy_id);
    AuditContext {
        origin: strategy_id.and(origin).map(OrderOrigin::kind),
        strategy_id: strategy_id.map(Text::Borrowed),
        wall_ms: None,
    }
}

fn id(order: &DeskOrder) -> Text<'_> {
    Text::Borrowed(order.client_order_id.as_deref().unwrap_or_default())
}

/// Writes an order that is about to be sent; it is on the disk when this returns.
pub(crate) fn submit(log: &mut dyn AuditSink, order: &DeskOrder, now: TsNanos) -> io::Result<()> {
    let made = &order.order;
    let line = AuditLine::Submit(AuditSubmit {
        ts: now.millis(),
        client_order_id: id(order),
        request_key: order.request_key,
        instrument_id: (&*order.instrument_id).into(),
        order_side: made.side,
        order_type: made.order_type,
        quantity: made.quantity.into(),
        price: made.price.map(Into::into),
        trigger_price: made.trigger_price.map(Into::into),
        time_in_force: Some(made.time_in_force),
        expire_time_ns: order.expire_time.map(TsNanos::nanos),
        request_key_version: Some(REQUEST_KEY_VERSION),
        margin: order.is_margin,
        context: context(order.origin.as_ref()),
    });
    log.append(&[line], true)
}

/// Writes a line after the fact. If it cannot be written the fact stands, and the next start learns it from the
/// broker's list.
fn write(log: &mut dyn AuditSink, line: &AuditLine<'_>) {
    if let Err(error) = log.append(std::slice::from_ref(line), false) {
        tracing::error!(%error, "cannot write a line of the audit log");
    }
}

/// Writes that the broker gave an order its number.
pub(crate) fn accepted(
    log: &mut dyn AuditSink,
    order: &DeskOrder,
    business_day: Option<&str>,
    p_no: u64,
    warning: Option<(String, String)>,
    now: TsNanos,
) {
    let (code, text) = warning.unzip();
    let line = AuditLine::Accepted(AuditAccepted {
        ts: now.millis(),
        client_order_id: id(order),
        venue_order_id: order.venue_order_id.as_deref().map(Text::Borrowed),
        p_no,
        business_day: business_day.map(|day| plain(day).into()),
        warning_code: code.map(Into::into),
        warning_text: text.map(Into::into),
        request_key_version: None,
        context: context(order.origin.as_ref()),
    });
    write(log, &line);
}

/// Writes that an order that had been sent was rejected; one that was placed elsewhere has no line.
pub(crate) fn rejected(
    log: &mut dyn AuditSink,
    order: &DeskOrder,
    rejection: &Rejection,
    now: TsNanos,
) {
    let Some(id) = order.client_order_id.as_deref() else { return };
    let line = AuditLine::Rejected(AuditRejected {
        ts: now.millis(),
        client_order_id: id.into(),
        reason_code: rejection.code,
        reason_text: plain(&rejection.text).into(),
        request_key_version: None,
        context: context(order.origin.as_ref()),
    });
    write(log, &line);
}

/// The line of a fill that is about to be reported; none for an order without a number. Of a strategy's order
/// so many shares count.
pub(crate) fn filled(
    order: &DeskOrder,
    from: FillSource<'_>,
    fill: &BrokerFill,
    counted: Quantity,
    ts: TsNanos,
) -> Option<FillLine> {
    let number = order.venue_order_id.as_deref()?;
    let text = |text: &str| Text::Owned(plain(text));
    let strategy_id = order.strategy_id();
    let (business_day, from_details) = match from {
        FillSource::Notice(day) => (day, false),
        FillSource::Details => (None, true),
    };
    Some(AuditFilled {
        ts: ts.millis(),
        client_order_id: order.client_order_id.as_deref().map(text),
        venue_order_id: text(number),
        order_ts: order.ts_ms,
        instrument_id: text(&order.instrument_id),
        business_day: business_day.map(text),
        from_details,
        trade_id: text(&fill.trade_id),
        last_qty: fill.quantity.into(),
        last_price: fill.price.into(),
        order_side: strategy_id.map(|_| order.order.side),
        margin: order.is_margin,
        counted_qty: (counted != fill.quantity).then(|| counted.into()),
        context: AuditContext {
            origin: strategy_id.map(|_| Origin::Strategy),
            strategy_id: strategy_id.map(|id| Text::Owned(id.to_owned())),
            wall_ms: None,
        },
    })
}

/// Writes the line of a strategy's fill; it is on the disk when this returns.
pub(crate) fn sync_filled(log: &mut dyn AuditSink, line: &FillLine) -> io::Result<()> {
    log.append(&[AuditLine::Filled(line.clone())], true)
}

/// Writes a correction of what a strategy holds, and counts it once it is on the disk.
pub(crate) fn adjusted(
    log: &mut dyn AuditSink,
    holdings: &mut Holdings,
    (strategy_id, instrument_id): (&str, &str),
    (quantity, cost): (Quantity, Money),
    why: &str,
    now: TsNanos,
) -> io::Result<()> {
    let line = AuditAdjusted {
        ts: now.millis(),
        strategy_id: strategy_id.into(),
        instrument_id: instrument_id.into(),
        quantity: quantity.into(),
        cost: cost.into(),
        why: why.into(),
    };
    log.append(&[AuditLine::Adjusted(line.clone())], true)?;
    holdings.adjusted(&line);
    Ok(())
}

/// Writes the line of a fill of a person, or from elsewhere. Where that fails it is reported all the same.
pub(crate) fn note_filled(log: &mut dyn AuditSink, line: FillLine) {
    write(log, &AuditLine::Filled(line));
}

/// Writes the end of a strategy's order.
pub(crate) fn ended(log: &mut dyn AuditSink, order: &DeskOrder, now: TsNanos) {
    if order.strategy_id().is_none() {
        return;
    }
    let context = context(order.origin.as_ref());
    let (ts, status) = (now.millis(), order.status);
    write(log, &AuditLine::Ended(AuditEnded { ts, client_order_id: id(order), status, context }));
}

/// Writes that the session has expired.
pub(crate) fn session_expired(log: &mut dyn AuditSink, now: TsNanos) {
    write(log, &AuditLine::SessionExpired(AuditSessionExpired { ts: now.millis() }));
}
