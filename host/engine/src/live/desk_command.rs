//! From a client's command to a command of the order desk: decoded once, with the texts as they were sent in
//! the key of an order (specification 4, P35).

use domain::order_rules::{check_texts, stock_symbol};
use domain::{OrderFilter, OrderOrigin, OrderRequest, ReasonCode, Rejection};
use ipc::{Command, OrderListFilter, SubmitOrderRequest};
use orders::limits::{CHARS_SHOWN, TAGS_MAX};
use orders::{CancelMany, DeskCommand, InstrumentTable, NamedOrder, NewOrder, OrderChange};

/// The desk's command; none for a command that is none of the desk's.
pub(crate) fn desk_command(command: Command, instruments: &InstrumentTable) -> Option<DeskCommand> {
    Some(match command {
        Command::SubmitOrder(submit) => DeskCommand::Submit(new_order(&submit.order, instruments)),
        Command::ModifyOrder(modify) => DeskCommand::Modify(OrderChange {
            change: modify.change.to_modify(),
            order: NamedOrder {
                client_order_id: modify.client_order_id,
                venue_order_id: modify.venue_order_id,
            },
        }),
        Command::CancelOrder(cancel) => DeskCommand::Cancel(NamedOrder {
            client_order_id: cancel.client_order_id,
            venue_order_id: cancel.venue_order_id,
        }),
        // A person's cancel of many ends the orders of all.
        Command::CancelAllOrders(all) => DeskCommand::CancelAll(CancelMany {
            origin: None,
            instrument_id: all.instrument_id,
            side: all.order_side,
        }),
        Command::GetOrderList(list) => DeskCommand::OrderList(filter(list.filter)),
        Command::GetBuyingPower(_) => DeskCommand::BuyingPower,
        Command::GetPositions(_) => DeskCommand::Positions,
        Command::SetSecondPassword(set) => DeskCommand::SetSecondPassword(set.value),
        Command::ForgetSecondPassword(_) => DeskCommand::ForgetSecondPassword,
        Command::RequestVenueLogin(login) => {
            DeskCommand::Login(login.request_id.map(|id| id.as_text().into_owned()))
        }
        Command::GetVenueState(_) => DeskCommand::VenueState,
        Command::Hello(_)
        | Command::Ping(_)
        | Command::LoadReplayData(_)
        | Command::StartEngine(_)
        | Command::StopEngine(_)
        | Command::SetReplaySpeed(_)
        | Command::GetSession(_)
        | Command::Subscribe(_)
        | Command::Unsubscribe(_)
        | Command::GetBoard(_)
        | Command::EvictLru(_)
        | Command::Shutdown(_) => return None,
    })
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
