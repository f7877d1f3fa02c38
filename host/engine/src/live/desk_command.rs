//! From a client's command to a command of the order desk, with the texts as they were sent in the key of an
//! order (specification 4, P35).

use domain::order_rules::{check_texts, stock_symbol};
use domain::{OrderFilter, OrderOrigin, OrderRequest, Origin, ReasonCode, Rejection};
use ipc::{OrderListFilter, SubmitOrderRequest};
use orders::limits::{CHARS_SHOWN, TAGS_MAX};
use orders::{CancelMany, DeskCommand, InstrumentTable, NamedOrder, NewOrder, OrderChange};

use crate::command::{AccountCommand, OrderInstruction, PasswordCommand};

pub(super) fn order(command: OrderInstruction, instruments: &InstrumentTable) -> DeskCommand {
    match command {
        OrderInstruction::Submit(submit) => {
            DeskCommand::Submit(new_order(&submit.order, instruments))
        }
        OrderInstruction::Modify(modify) => DeskCommand::Modify(OrderChange {
            change: modify.change.to_modify(),
            order: NamedOrder {
                origin: Origin::Client,
                client_order_id: modify.client_order_id,
                venue_order_id: modify.venue_order_id,
            },
        }),
        OrderInstruction::Cancel(cancel) => DeskCommand::Cancel(NamedOrder {
            origin: Origin::Client,
            client_order_id: cancel.client_order_id,
            venue_order_id: cancel.venue_order_id,
        }),
        // A person's cancel of many ends the orders of all.
        OrderInstruction::CancelAll(all) => DeskCommand::CancelAll(CancelMany {
            origin: None,
            instrument_id: all.instrument_id,
            side: all.order_side,
        }),
    }
}

pub(super) fn account(command: AccountCommand, request_id: Option<&str>) -> DeskCommand {
    match command {
        AccountCommand::OrderList(list) => DeskCommand::OrderList(filter(list)),
        AccountCommand::BuyingPower => DeskCommand::BuyingPower,
        AccountCommand::Positions => DeskCommand::Positions,
        AccountCommand::Login => DeskCommand::Login(request_id.map(str::to_owned)),
        AccountCommand::VenueState => DeskCommand::VenueState,
    }
}

pub(super) fn password(command: PasswordCommand) -> DeskCommand {
    match command {
        PasswordCommand::Set(value) => DeskCommand::SetSecondPassword(value),
        PasswordCommand::Forget => DeskCommand::ForgetSecondPassword,
    }
}

fn new_order(order: &SubmitOrderRequest, instruments: &InstrumentTable) -> NewOrder {
    NewOrder {
        origin: OrderOrigin::Person,
        client_order_id: order.client_order_id.as_str().into(),
        request_key: order.request_key(),
        request: request(order, instruments),
    }
}

/// The order, or what is wrong with its texts.
fn request(
    order: &SubmitOrderRequest,
    instruments: &InstrumentTable,
) -> Result<OrderRequest, Rejection> {
    let tags = order.tags.as_deref().unwrap_or_default();
    check_texts(&order.client_order_id, tags, TAGS_MAX)?;
    stock_symbol(&order.instrument_id, CHARS_SHOWN)?;
    let place = instruments.place(&order.instrument_id).ok_or_else(|| {
        let text = "TOO_MANY_INSTRUMENTS: the order desk knows too many instruments; restart the \
                    engine";
        Rejection::new(ReasonCode::InternalError, text)
    })?;
    order.to_request(place)
}

fn filter(filter: OrderListFilter) -> Result<OrderFilter, Rejection> {
    let OrderListFilter { status, instrument_id, date } = filter;
    OrderFilter::read(status.as_deref(), instrument_id, date.as_deref(), CHARS_SHOWN)
}
