//! Lines for tests.

use domain::{OrderSide, OrderType, Quantity, ReasonCode, TimeInForce};
use ipc::{AuditAccepted, AuditContext, AuditLine, AuditRejected, AuditSubmit};

/// A submit line whose key is `key`.
pub(crate) fn submit_line(id: &str, key: u64) -> AuditLine<'_> {
    AuditLine::Submit(AuditSubmit {
        ts: 1_000 + key,
        client_order_id: id.into(),
        request_key: key,
        instrument_id: "7203.TSE".into(),
        order_side: OrderSide::Buy,
        order_type: OrderType::Market,
        quantity: Quantity::new(100).into(),
        price: None,
        trigger_price: None,
        time_in_force: Some(TimeInForce::Day),
        expire_time_ns: None,
        request_key_version: None,
        margin: false,
        context: AuditContext::default(),
    })
}

/// An accepted line.
pub(crate) fn accepted_line<'a>(id: &'a str, number: Option<&'a str>) -> AuditLine<'a> {
    AuditLine::Accepted(AuditAccepted {
        ts: 2_000,
        client_order_id: id.into(),
        venue_order_id: number.map(Into::into),
        p_no: 7,
        business_day: None,
        warning_code: None,
        warning_text: None,
        request_key_version: None,
        context: AuditContext::default(),
    })
}

/// A rejected line.
pub(crate) fn rejected_line(id: &str) -> AuditLine<'_> {
    AuditLine::Rejected(AuditRejected {
        ts: 3_000,
        client_order_id: id.into(),
        reason_code: ReasonCode::VenueRejected,
        reason_text: "11104: no".into(),
        request_key_version: None,
        context: AuditContext::default(),
    })
}
