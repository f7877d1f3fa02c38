//! Lines of the audit log, made from the desk's orders. A person's line has no origin, as in every log before.

use std::io;

use domain::order_mapping::BrokerFill;
use domain::{OrderOrigin, Rejection, TsNanos};
use ipc::{
    AuditAccepted, AuditContext, AuditFilled, AuditLine, AuditRejected, AuditSessionExpired,
    AuditSubmit, Text,
};

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

/// Writes a fill that is about to be reported.
pub(crate) fn filled(
    log: &mut dyn AuditSink,
    order: &DeskOrder,
    from: FillSource<'_>,
    fill: &BrokerFill,
    ts: TsNanos,
) {
    let Some(number) = order.venue_order_id.as_deref() else { return };
    let text = |text: &str| Text::Owned(plain(text));
    let (business_day, from_details) = match from {
        FillSource::Notice(day) => (day, false),
        FillSource::Details => (None, true),
    };
    let line = AuditLine::Filled(AuditFilled {
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
        context: context(order.origin.as_ref()),
    });
    write(log, &line);
}

/// Writes that the session has expired.
pub(crate) fn session_expired(log: &mut dyn AuditSink, now: TsNanos) {
    write(log, &AuditLine::SessionExpired(AuditSessionExpired { ts: now.millis() }));
}
