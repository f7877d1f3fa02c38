//! What a strategy hands over, from the generated bindings into the host's words, and how many bytes
//! of its memory it came from.

use domain::strategy::{Action, LogLevel, NarrativeRecord, Signal, SignalKind};
use domain::{
    GuestLimit, InstrumentIx, OrderCommand, OrderModify, OrderRequest, OrderSide, OrderType, Price,
    Quantity, ShortText, TimeInForce, TriggerType, TsNanos,
};

use super::strategy_bindings::kumiki::strategy::{log, types as wit};
use super::to_guest::same_cases;
use crate::abi::ACTION_BYTES;
use crate::config::Limits;
use crate::state::Breach;

same_cases!(wit::OrderSide => OrderSide { Buy, Sell });
same_cases!(wit::OrderType => OrderType {
    Market, Limit, StopMarket, StopLimit, MarketIfTouched, LimitIfTouched,
});
same_cases!(wit::TimeInForce => TimeInForce { Day, Gtc, Gtd, Ioc, Fok, AtTheOpen, AtTheClose });
same_cases!(wit::TriggerType => TriggerType { Last });
same_cases!(wit::SignalKind => SignalKind { EntryLong, EntryShort, Exit, Annotate });
same_cases!(log::Level => LogLevel { Debug, Info, Warn, Error, Panic });

/// Bytes of a text's place and length inside a list.
const TEXT_BYTES: usize = 8;

/// Bytes of a strategy's memory behind an action: the same that the direct path counts.
pub(super) fn bytes_of(action: &wit::Action) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    ACTION_BYTES
        + match action {
            wit::Action::Submit(order) => {
                let tags = order.tags.iter().map(|tag| TEXT_BYTES + tag.len());
                order.client_order_id.len() + tags.sum::<usize>()
            }
            wit::Action::Modify(change) => change.client_order_id.len(),
            wit::Action::Cancel(client_order_id) => client_order_id.len(),
            wit::Action::CancelAll(_) => 0,
            wit::Action::EmitSignal(signal) => length(&signal.tag) + length(&signal.note),
            wit::Action::Narrate(record) => {
                length(&record.client_order_id) + record.title.len() + record.body.len()
            }
        }
}

/// Holds the texts of an action against their limits.
pub(super) fn check(action: &wit::Action, limits: &Limits) -> Breach<()> {
    let within = |limit, text: &str| limits.allow(limit, text.len());
    let order_id = |id: &str| within(GuestLimit::OrderId, id);
    let optional =
        |limit, text: &Option<String>| text.as_deref().map_or(Ok(()), |text| within(limit, text));
    match action {
        wit::Action::Submit(order) => {
            order_id(&order.client_order_id)?;
            limits.allow(GuestLimit::Tags, order.tags.len())?;
            order.tags.iter().try_for_each(|tag| within(GuestLimit::Tag, tag))
        }
        wit::Action::Modify(change) => order_id(&change.client_order_id),
        wit::Action::Cancel(client_order_id) => order_id(client_order_id),
        wit::Action::CancelAll(_) => Ok(()),
        wit::Action::EmitSignal(signal) => {
            optional(GuestLimit::Tag, &signal.tag)?;
            optional(GuestLimit::Note, &signal.note)
        }
        wit::Action::Narrate(record) => {
            optional(GuestLimit::OrderId, &record.client_order_id)?;
            within(GuestLimit::Title, &record.title)?;
            within(GuestLimit::Body, &record.body)
        }
    }
}

pub(super) fn action(action: wit::Action) -> Action {
    match action {
        wit::Action::Submit(order) => Action::Order(OrderCommand::Submit(order_request(order))),
        wit::Action::Modify(change) => Action::Order(OrderCommand::Modify {
            client_order_id: ShortText::from(change.client_order_id),
            change: OrderModify {
                quantity: change.quantity.map(Quantity::new),
                price: change.price.map(Price::from_units),
                trigger_price: change.trigger_price.map(Price::from_units),
                expire_time: change.expire_time.map(TsNanos::from_nanos),
            },
        }),
        wit::Action::Cancel(client_order_id) => Action::Order(OrderCommand::Cancel {
            client_order_id: ShortText::from(client_order_id),
        }),
        wit::Action::CancelAll(instrument) => Action::Order(OrderCommand::CancelAll {
            instrument: instrument.map(InstrumentIx),
            side: None,
        }),
        wit::Action::EmitSignal(signal) => Action::Signal(Signal {
            instrument: InstrumentIx(signal.instrument),
            kind: signal.kind.into(),
            side: signal.side.map(Into::into),
            price: signal.price.map(Price::from_units),
            tag: signal.tag,
            note: signal.note,
        }),
        wit::Action::Narrate(record) => Action::Narrative(NarrativeRecord {
            client_order_id: record.client_order_id.map(ShortText::from),
            title: record.title,
            body: record.body,
        }),
    }
}

fn order_request(order: wit::OrderRequest) -> OrderRequest {
    OrderRequest {
        client_order_id: ShortText::from(order.client_order_id),
        instrument: InstrumentIx(order.instrument),
        side: order.side.into(),
        order_type: order.order_type.into(),
        quantity: Quantity::new(order.quantity),
        price: order.price.map(Price::from_units),
        trigger_price: order.trigger_price.map(Price::from_units),
        trigger_type: order.trigger_type.map(Into::into),
        time_in_force: order.time_in_force.into(),
        expire_time: order.expire_time.map(TsNanos::from_nanos),
        post_only: order.post_only,
        reduce_only: order.reduce_only,
        tags: order.tags,
    }
}
