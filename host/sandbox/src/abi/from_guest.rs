//! The strategy's values, read in the contract's layout, field by field in the order of
//! `wit/strategy`.

use domain::fault::FaultKind;
use domain::strategy::{Action, NarrativeRecord, Signal};
use domain::{
    GuestLimit, InstrumentIx, OrderCommand, OrderModify, OrderRequest, Price, Quantity, ShortText,
    TsNanos,
};

use super::Lift;
use super::lift::{case, is_some};
use crate::config::Limits;

/// Bytes of a `variant action`: the case, and an order request as the widest payload.
pub(crate) const ACTION_BYTES: usize = 104;

type Lifted<T> = Result<T, FaultKind>;

/// `list<action>`, behind those that are in `into`.
pub(crate) fn actions(
    lift: &mut Lift<'_>,
    limits: &Limits,
    (pointer, length): (u32, u32),
    into: &mut Vec<Action>,
) -> Lifted<()> {
    lift.list_into(into, pointer, length, 8, ACTION_BYTES, |lift| action(lift, limits))
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
            client_order_id: lift
                .optional_text_within(limits, GuestLimit::OrderId)?
                .map(ShortText::from),
            title: lift.text_within(limits, GuestLimit::Title)?.to_owned(),
            body: lift.text_within(limits, GuestLimit::Body)?.to_owned(),
        }),
        other => return Err(FaultKind::Protocol(format!("{other} is no case of an action"))),
    })
}

/// The id of an order.
fn order_id(lift: &mut Lift<'_>, limits: &Limits) -> Lifted<ShortText> {
    lift.text_within(limits, GuestLimit::OrderId).map(ShortText::from)
}

/// `record order-request`. It is read in 64 bits each: every order comes this way.
fn order_request(lift: &mut Lift<'_>, limits: &Limits) -> Lifted<OrderRequest> {
    let words: [u64; 12] = lift.words()?;
    let [id, about, quantity, has_price, price, has_trigger, trigger, how, ..] = words;
    let [.., has_expiry, expiry, flags_and_tags, tag_count] = words;
    let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
    let byte = |word: u64, at: u32| (word >> (8 * at)) as u8;
    Ok(OrderRequest {
        client_order_id: lift
            .text_at_within(limits, GuestLimit::OrderId, low(id), high(id))
            .map(ShortText::from)?,
        instrument: InstrumentIx(about as u16),
        side: case(byte(about, 2))?,
        order_type: case(byte(about, 3))?,
        quantity: Quantity::new(quantity),
        price: is_some(byte(has_price, 0))?.then(|| Price::from_units(price.cast_signed())),
        trigger_price: is_some(byte(has_trigger, 0))?
            .then(|| Price::from_units(trigger.cast_signed())),
        trigger_type: is_some(byte(how, 0))?.then(|| case(byte(how, 1))).transpose()?,
        time_in_force: case(byte(how, 2))?,
        expire_time: is_some(byte(has_expiry, 0))?.then(|| TsNanos::from_nanos(expiry)),
        post_only: byte(flags_and_tags, 0) != 0,
        reduce_only: byte(flags_and_tags, 1) != 0,
        tags: lift.texts_at_within(
            limits,
            (GuestLimit::Tags, GuestLimit::Tag),
            high(flags_and_tags),
            low(tag_count),
        )?,
    })
}
