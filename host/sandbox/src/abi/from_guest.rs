//! The strategy's values, read in the contract's layout, field by field in the order of
//! `wit/strategy`.

use std::sync::Arc;

use domain::fault::FaultKind;
use domain::strategy::{Action, NarrativeRecord, Signal};
use domain::{
    GuestLimit, InstrumentIx, OrderCommand, OrderModify, OrderRequest, Price, Quantity, TsNanos,
};

use super::Lift;
use crate::config::Limits;

/// Bytes of a `variant action`: the case, and an order request as the widest payload.
pub(crate) const ACTION_BYTES: usize = 104;

type Lifted<T> = Result<T, FaultKind>;

/// `list<action>`
pub(crate) fn actions(
    lift: &mut Lift<'_>,
    limits: &Limits,
    pointer: u32,
    length: u32,
) -> Lifted<Vec<Action>> {
    lift.list_at(pointer, length, 8, ACTION_BYTES, |lift| action(lift, limits))
}

/// `result<_, string>` at an address: the text when it is an error.
pub(crate) fn refusal(
    lift: &mut Lift<'_>,
    limits: &Limits,
    pointer: u32,
) -> Lifted<Option<String>> {
    lift.go_to(pointer, 4, 12)?;
    let case = lift.u8()?;
    match case {
        0 => Ok(None),
        1 => {
            lift.align(4);
            Ok(Some(lift.text_within(limits, GuestLimit::LogLine)?.to_owned()))
        }
        other => Err(FaultKind::Protocol(format!("{other} is no case of a result"))),
    }
}

/// `variant action`
fn action(lift: &mut Lift<'_>, limits: &Limits) -> Lifted<Action> {
    let case = lift.u8()?;
    lift.align(8);
    Ok(match case {
        0 => Action::Order(OrderCommand::Submit(order_request(lift, limits)?)),
        1 => {
            let client_order_id = order_id(lift, limits)?;
            let change = OrderModify {
                quantity: lift.optional_u64()?.map(Quantity::new),
                price: lift.optional_s64()?.map(Price::from_units),
                trigger_price: lift.optional_s64()?.map(Price::from_units),
                expire_time: lift.optional_u64()?.map(TsNanos::from_nanos),
            };
            Action::Order(OrderCommand::Modify { client_order_id, change })
        }
        2 => Action::Order(OrderCommand::Cancel { client_order_id: order_id(lift, limits)? }),
        3 => Action::Order(OrderCommand::CancelAll {
            instrument: lift.option(2, 2, Lift::u16)?.map(InstrumentIx),
            side: None,
        }),
        4 => Action::Signal(Signal {
            instrument: InstrumentIx(lift.u16()?),
            kind: lift.case()?,
            side: lift.option(1, 1, Lift::case)?,
            price: lift.optional_s64()?.map(Price::from_units),
            tag: lift.optional_text_within(limits, GuestLimit::Tag)?.map(str::to_owned),
            note: lift.optional_text_within(limits, GuestLimit::Note)?.map(str::to_owned),
        }),
        5 => Action::Narrative(NarrativeRecord {
            client_order_id: lift.optional_text_within(limits, GuestLimit::OrderId)?.map(Arc::from),
            title: lift.text_within(limits, GuestLimit::Title)?.to_owned(),
            body: lift.text_within(limits, GuestLimit::Body)?.to_owned(),
        }),
        other => return Err(FaultKind::Protocol(format!("{other} is no case of an action"))),
    })
}

/// The id of an order.
fn order_id(lift: &mut Lift<'_>, limits: &Limits) -> Lifted<Arc<str>> {
    lift.text_within(limits, GuestLimit::OrderId).map(Arc::from)
}

/// `record order-request`
fn order_request(lift: &mut Lift<'_>, limits: &Limits) -> Lifted<OrderRequest> {
    Ok(OrderRequest {
        client_order_id: order_id(lift, limits)?,
        instrument: InstrumentIx(lift.u16()?),
        side: lift.case()?,
        order_type: lift.case()?,
        quantity: Quantity::new(lift.u64()?),
        price: lift.optional_s64()?.map(Price::from_units),
        trigger_price: lift.optional_s64()?.map(Price::from_units),
        trigger_type: lift.option(1, 1, Lift::case)?,
        time_in_force: lift.case()?,
        expire_time: lift.optional_u64()?.map(TsNanos::from_nanos),
        post_only: lift.bool()?,
        reduce_only: lift.bool()?,
        tags: lift.texts_within(limits, GuestLimit::Tags, GuestLimit::Tag)?,
    })
}
