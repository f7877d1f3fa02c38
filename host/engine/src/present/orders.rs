//! The order desk as clients know it: orders at a broker, answers, discrepancies and its session
//! (specification 2, "Events").

use std::borrow::Cow;

use domain::{OrderOrigin, OrderSide, Origin, Rejection, ShortText, TriggerType, TsNanos};
use ipc::{
    BuyingPowerUpdated, CancelAllResult, Error, Event, OrderContext, OrderDiscrepancy,
    OrderEventParts, OrderListUpdated, OrderRecordWire, OrderRejected, PositionRow,
    PositionsUpdated, SecondPasswordRequired, SecondPasswordSet, SecondPasswordState,
    SubmitOrderResult, SubmitOutcome, Text, VenueCredentialsRefreshed, VenueError, VenueLifecycle,
    VenueLoginCancelled, VenueLoginStarted, VenueReady, VenueState, error_code,
};
use orders::PasswordStage;
use orders::desk::VENUE;
use orders::event::{
    CommandFailed, CommandRefused, DeskEvent, DeskOrderEvent, DiscrepancyReport, FailureCode,
    ListedOrder, OrderListPart, Reply, SessionEvent, SubmitReply, VenueStage, VenueStanding,
};
use venues::web_broker::account::{Holding, MarginPosition};

use super::{optional, text};

/// The event of the wire; none for what is about strategies with real orders.
pub(crate) fn desk_event(event: &DeskEvent) -> Option<Event<'_>> {
    Some(match event {
        DeskEvent::Order(event) => order(event),
        DeskEvent::Reply(reply) => answer(reply),
        DeskEvent::Discrepancy(report) => discrepancy(report),
        DeskEvent::Session(event) => session(event),
        DeskEvent::Strategy(_) => return None,
    })
}

/// A rejection of what a client wants of an order, at a time.
pub(crate) fn rejected<'a>(
    client_order_id: Option<&'a str>,
    rejection: Cow<'a, Rejection>,
    at: TsNanos,
    context: OrderContext<'a>,
) -> Event<'a> {
    let reason_code = rejection.code;
    let reason_text = match rejection {
        Cow::Borrowed(rejection) => Text::Borrowed(&*rejection.text),
        Cow::Owned(rejection) => Text::Owned(rejection.text),
    };
    Event::OrderRejected(OrderRejected {
        client_order_id: client_order_id.map(Text::Borrowed),
        reason_code,
        reason_text,
        ts_event_ms: at.millis(),
        context,
    })
}

/// Which command an event answers, at a venue that is known.
pub(crate) fn of_command<'a>(
    request_id: Option<&'a str>,
    venue: Option<&'a str>,
    origin: Option<Origin>,
) -> OrderContext<'a> {
    let (request_id, venue) = (request_id.map(text), venue.map(text));
    OrderContext { request_id, venue, origin, ..OrderContext::default() }
}

/// Which order and command an event belongs to. Events of people's orders have no origin.
fn context<'a>(
    request_id: &'a Option<String>,
    origin: &'a Option<OrderOrigin>,
    instrument_id: Option<&'a ShortText>,
    order_side: Option<OrderSide>,
) -> OrderContext<'a> {
    let strategy_id = origin.as_ref().and_then(OrderOrigin::strategy_id);
    OrderContext {
        request_id: optional(request_id),
        venue: Some(VENUE.into()),
        origin: strategy_id.and(origin.as_ref()).map(OrderOrigin::kind),
        strategy_id: strategy_id.map(text),
        instrument_id: instrument_id.map(|id| text(id)),
        order_side,
    }
}

fn order(event: &DeskOrderEvent) -> Event<'_> {
    let DeskOrderEvent { request_id, origin, instrument_id, side, .. } = event;
    let parts = OrderEventParts {
        client_order_id: event.client_order_id.as_deref(),
        venue_order_id: event.venue_order_id.as_deref(),
        ts_event: event.ts_event,
        kind: &event.kind,
    };
    Event::of_order_parts(
        parts,
        context(request_id, origin, Some(instrument_id), Some(*side)),
        None,
    )
}

fn answer(reply: &Reply) -> Event<'_> {
    match reply {
        Reply::Refused(refused) => {
            let CommandRefused { request_id, origin, instrument_id, side, .. } = refused;
            rejected(
                refused.client_order_id.as_deref(),
                Cow::Borrowed(&refused.rejection),
                refused.ts,
                context(request_id, origin, instrument_id.as_ref(), *side),
            )
        }
        Reply::Failed(CommandFailed { request_id, code, message, venue_order_id }) => {
            Event::Error(Error {
                request_id: Some(text(request_id)),
                code: text(match code {
                    FailureCode::Reason(code) => code.as_str(),
                    FailureCode::Invalid => error_code::VALIDATION_ERROR,
                    FailureCode::Conflict => error_code::CONFLICT,
                }),
                message: text(message),
                venue_order_id: optional(venue_order_id),
            })
        }
        Reply::Submitted(reply) => submitted(reply),
        Reply::CanceledMany { request_id, canceled, failed } => {
            Event::CancelAllResult(CancelAllResult {
                request_id: text(request_id),
                canceled_count: *canceled,
                failed_count: *failed,
            })
        }
        Reply::OrderList(OrderListPart { request_id, orders, more, next }) => {
            Event::OrderListUpdated(OrderListUpdated {
                request_id: text(request_id),
                orders: orders.iter().map(row).collect(),
                more: *more,
                next: *next,
            })
        }
        Reply::BuyingPower { request_id, cash, margin, ts } => {
            Event::BuyingPowerUpdated(BuyingPowerUpdated {
                request_id: Some(text(request_id)),
                venue: VENUE.into(),
                cash_available: cash.map(Into::into),
                cash_shortfall: None,
                credit_available: margin.map(Into::into),
                ts_ms: ts.millis(),
            })
        }
        Reply::Positions { request_id, held, margin, ts } => {
            Event::PositionsUpdated(PositionsUpdated {
                request_id: Some(text(request_id)),
                venue: VENUE.into(),
                positions: held
                    .iter()
                    .map(shares)
                    .chain(margin.iter().map(margin_position))
                    .collect(),
                ts_ms: ts.millis(),
            })
        }
        Reply::SecondPasswordRequired { request_id } => {
            Event::SecondPasswordRequired(SecondPasswordRequired { request_id: text(request_id) })
        }
        Reply::SecondPasswordSet { request_id } => {
            Event::SecondPasswordSet(SecondPasswordSet { request_id: text(request_id) })
        }
        Reply::VenueState(standing) => venue_state(standing),
    }
}

fn submitted(reply: &SubmitReply) -> Event<'_> {
    let warning = reply.warning.as_ref();
    Event::SubmitOrderResult(SubmitOrderResult {
        request_id: text(&reply.request_id),
        client_order_id: text(&reply.client_order_id),
        outcome: match reply.is_new {
            true => SubmitOutcome::Created,
            false => SubmitOutcome::IdempotentReplay,
        },
        status: reply.status,
        venue_order_id: optional(&reply.venue_order_id),
        warning_code: warning.map(|(code, _)| text(code)),
        warning_text: warning.map(|(_, words)| text(words)),
    })
}

fn row(order: &ListedOrder) -> OrderRecordWire<'_> {
    let ListedOrder { origin, client_order_id, instrument_id, expire_time, row } = order;
    let is_of_strategy = origin.as_ref().is_some_and(|origin| origin.strategy_id().is_some());
    OrderRecordWire {
        client_order_id: optional(client_order_id),
        venue_order_id: text(&row.venue_order_id),
        instrument_id: text(instrument_id),
        order_side: row.side,
        order_type: row.order_type,
        quantity: row.quantity.into(),
        filled_qty: row.filled.into(),
        leaves_qty: row.leaves.into(),
        price: row.price.map(Into::into),
        trigger_price: row.trigger_price.map(Into::into),
        time_in_force: row.time_in_force,
        expire_time_ns: expire_time.map(TsNanos::nanos),
        status: row.status,
        ts_event_ms: row.time.millis(),
        trigger_type: row.trigger_price.map(|_| TriggerType::Last),
        tags: row.tags.iter().map(|tag| text(tag)).collect(),
        extra: None,
        origin: origin.as_ref().filter(|_| is_of_strategy).map(OrderOrigin::kind),
        strategy_id: origin.as_ref().and_then(OrderOrigin::strategy_id).map(text),
    }
}

/// A row of a position of an issue, of which nothing else is known.
fn position(symbol: &str) -> PositionRow<'_> {
    PositionRow {
        instrument_id: Text::Owned(format!("{symbol}.TSE")),
        qty: domain::Quantity::ZERO.into(),
        avg_open_price: None,
        market_value: None,
        unrealized_pnl: None,
        side: OrderSide::Buy,
        position_type: "cash".into(),
        tategyoku_id: None,
        venue: VENUE.into(),
    }
}

fn shares(held: &Holding) -> PositionRow<'_> {
    PositionRow {
        qty: held.quantity.into(),
        avg_open_price: held.average_price.map(Into::into),
        market_value: held.market_value.map(Into::into),
        unrealized_pnl: held.profit.map(Into::into),
        ..position(&held.symbol)
    }
}

fn margin_position(open: &MarginPosition) -> PositionRow<'_> {
    PositionRow {
        qty: open.quantity.into(),
        avg_open_price: Some(open.price.into()),
        market_value: open.market_value.map(Into::into),
        unrealized_pnl: open.profit.map(Into::into),
        side: open.side,
        position_type: if open.is_general { "margin_general" } else { "margin_credit" }.into(),
        tategyoku_id: Some(text(&open.id)),
        ..position(&open.symbol)
    }
}

fn venue_state(standing: &VenueStanding) -> Event<'_> {
    Event::VenueState(VenueState {
        request_id: optional(&standing.request_id),
        venue: VENUE.into(),
        state: match standing.stage {
            VenueStage::LoggedOut => VenueLifecycle::Disconnected,
            VenueStage::LoggingIn => VenueLifecycle::LoggingIn,
            VenueStage::Ready => VenueLifecycle::Ready,
            VenueStage::Expired => VenueLifecycle::TokenExpired,
        },
        push: standing.stream_is_up.map(|is_up| match is_up {
            true => "Streaming".into(),
            false => "Reconnecting".into(),
        }),
        code: standing.fault.map(|fault| fault.as_str().into()),
        since_ms: standing.since_ms,
        second_password: Some(match standing.password {
            PasswordStage::None => SecondPasswordState::None,
            PasswordStage::Held => SecondPasswordState::Held,
            PasswordStage::Locked(_) => SecondPasswordState::Locked,
        }),
        locked_until_ms: standing.locked_until_ms,
    })
}

fn discrepancy(report: &DiscrepancyReport) -> Event<'_> {
    Event::OrderDiscrepancy(OrderDiscrepancy {
        venue: VENUE.into(),
        client_order_id: optional(&report.client_order_id),
        venue_order_id: optional(&report.venue_order_id),
        discrepancy: report.discrepancy,
        message: text(&report.message),
        ts_event_ms: report.ts.millis(),
    })
}

fn session(event: &SessionEvent) -> Event<'_> {
    let venue = || Text::Borrowed(VENUE);
    match event {
        SessionEvent::LoginStarted { request_id } => {
            let request_id = optional(request_id);
            Event::VenueLoginStarted(VenueLoginStarted { venue: venue(), request_id })
        }
        SessionEvent::LoginCancelled { request_id } => {
            let request_id = optional(request_id);
            Event::VenueLoginCancelled(VenueLoginCancelled { venue: venue(), request_id })
        }
        SessionEvent::LoggedIn { epoch, changed, ts } => {
            Event::VenueCredentialsRefreshed(VenueCredentialsRefreshed {
                venue: venue(),
                session_epoch: *epoch,
                changed: changed.iter().map(|name| text(name)).collect(),
                ts_ms: ts.millis(),
            })
        }
        SessionEvent::Ready { request_id } => {
            Event::VenueReady(VenueReady { venue: venue(), request_id: optional(request_id) })
        }
        SessionEvent::Fault { fault, message } => Event::VenueError(VenueError {
            venue: venue(),
            code: fault.as_str().into(),
            message: text(message),
        }),
    }
}
