//! What goes into a dialect, held against the limits before it is copied: what others sent is of any
//! size.

use domain::limits::{
    DIALECT_FIELDS_MAX, DIALECT_REQUEST_ROWS_MAX, DIALECT_TAGS_MAX, DIALECT_TEXT_BYTES_MAX,
};
use domain::order::{OrderType, ReasonCode, Rejection, TimeInForce};
use domain::order_mapping::{Allocation, BrokerAnswer, BrokerChange, BrokerOrder, Field};
use domain::text::steers;

fn rejected(code: ReasonCode, text: &str) -> Result<(), Rejection> {
    Err(Rejection::new(code, text))
}

fn is_short(text: &str) -> bool {
    text.len() <= DIALECT_TEXT_BYTES_MAX
}

/// Whether a text is short and on one line: dialects tell some of an order's texts again.
fn is_plain(text: &str) -> bool {
    is_short(text) && !text.contains(steers)
}

fn order_type(order_type: OrderType) -> Result<(), Rejection> {
    match order_type {
        OrderType::Market | OrderType::Limit | OrderType::StopMarket | OrderType::StopLimit => {
            Ok(())
        }
        OrderType::MarketIfTouched | OrderType::LimitIfTouched => rejected(
            ReasonCode::VenueUnsupported,
            &format!("ORDER_TYPE: no broker takes {order_type}"),
        ),
    }
}

/// An order that a dialect can be asked about.
pub(super) fn order(order: &BrokerOrder) -> Result<(), Rejection> {
    order_type(order.order_type)?;
    match order.time_in_force {
        TimeInForce::Day | TimeInForce::Gtd | TimeInForce::AtTheOpen | TimeInForce::AtTheClose => {}
        other @ (TimeInForce::Gtc | TimeInForce::Ioc | TimeInForce::Fok) => {
            let text = format!("TIME_IN_FORCE: no broker takes {other}");
            return rejected(ReasonCode::VenueUnsupported, &text);
        }
    }
    if !is_plain(&order.symbol) {
        return rejected(
            ReasonCode::ValidationError,
            "INSTRUMENT_ID: it is too long or has control characters",
        );
    }
    if order.tags.len() > DIALECT_TAGS_MAX || !order.tags.iter().all(|tag| is_plain(tag)) {
        let text = format!(
            "TAGS: more than {DIALECT_TAGS_MAX}, or one is too long or has control characters"
        );
        return rejected(ReasonCode::ValidationError, &text);
    }
    Ok(())
}

/// The account and the positions of an order.
pub(super) fn allocations(account: &str, allocations: &[Allocation]) -> Result<(), Rejection> {
    let all_plain = allocations.iter().all(|one| is_plain(&one.position)) && is_plain(account);
    if allocations.len() > DIALECT_REQUEST_ROWS_MAX || !all_plain {
        let text = format!(
            "POSITIONS: more than {DIALECT_REQUEST_ROWS_MAX} margin positions, or a name is too long"
        );
        return rejected(ReasonCode::InternalError, &text);
    }
    Ok(())
}

/// The number of an order.
pub(super) fn order_id(id: &str, business_day: Option<&str>) -> Result<(), Rejection> {
    if !is_plain(id) || business_day.is_some_and(|day| !is_plain(day)) {
        let text = "VENUE_ORDER_ID: it is too long or has control characters";
        return rejected(ReasonCode::ValidationError, text);
    }
    Ok(())
}

/// A change that a dialect can be asked about.
pub(super) fn change(change: &BrokerChange) -> Result<(), Rejection> {
    order_type(change.order_type)?;
    order_id(&change.venue_order_id, change.business_day.as_deref())
}

/// An answer: why it is too much.
pub(super) fn answer(answer: &BrokerAnswer) -> Result<(), String> {
    fields(&answer.fields)?;
    match [&answer.id, &answer.errno, &answer.error_text].into_iter().all(|text| is_short(text)) {
        true => Ok(()),
        false => Err(format!("a text has more than {DIALECT_TEXT_BYTES_MAX} bytes")),
    }
}

/// A record of the broker's: why it is too much.
pub(super) fn fields(fields: &[Field]) -> Result<(), String> {
    if fields.len() > DIALECT_FIELDS_MAX {
        let found = fields.len();
        return Err(format!("it has {found} fields; {DIALECT_FIELDS_MAX} are allowed"));
    }
    match fields.iter().all(|one| is_short(&one.name) && is_short(&one.value)) {
        true => Ok(()),
        false => Err(format!("a text has more than {DIALECT_TEXT_BYTES_MAX} bytes")),
    }
}
