//! The local broker's venue as clients know it: its events and its account (specification 1, "Events";
//! specification 4, P45 to P61).

use std::borrow::Cow;

use ipc::{
    BuyingPowerUpdated, Decimal, Discrepancy, Event, OrderDiscrepancy, OrderListUpdated,
    OrderRecordWire, PositionRow, PositionsUpdated, SubscriptionEvicted, VenueError,
    VenueLifecycle, VenueLoginCancelled, VenueLoginStarted, VenueReady, VenueState,
};
use venues::local_broker::account::{AccountOrder, AccountPosition, PositionKind};
use venues::local_broker::lifecycle::State;
use venues::local_broker::{VENUE, VenueEvent};

use super::market::{self, EXCHANGE};
use super::{optional, text};

/// An event of the venue.
pub(crate) fn event(event: &VenueEvent) -> Event<'_> {
    let venue = || text(VENUE);
    match event {
        VenueEvent::LoginStarted { request_id } => Event::VenueLoginStarted(VenueLoginStarted {
            venue: venue(),
            request_id: optional(request_id),
        }),
        VenueEvent::LoginCancelled { request_id } => {
            Event::VenueLoginCancelled(VenueLoginCancelled {
                venue: venue(),
                request_id: optional(request_id),
            })
        }
        VenueEvent::Ready { request_id } => {
            Event::VenueReady(VenueReady { venue: venue(), request_id: optional(request_id) })
        }
        VenueEvent::Unusable { code, message } => Event::VenueError(VenueError {
            venue: venue(),
            code: code.name().into(),
            message: text(message),
        }),
        VenueEvent::State { request_id, state, code, since } => Event::VenueState(VenueState {
            request_id: Some(text(request_id)),
            venue: venue(),
            state: lifecycle(*state),
            push: state.push().map(|push| Cow::Owned(push.to_string())),
            code: code.map(|code| code.name().into()),
            since_ms: since.millis(),
            second_password: None,
            locked_until_ms: None,
        }),
        VenueEvent::Error { request_id, code, message } => Event::Error(ipc::Error {
            request_id: optional(request_id),
            code: code.name().into(),
            message: text(message),
            venue_order_id: None,
        }),
        VenueEvent::Subscribed { request_id, symbol, name } => {
            market::subscribed(text(request_id), (VENUE, EXCHANGE), symbol, optional(name))
        }
        VenueEvent::Unsubscribed { request_id, symbol } => {
            market::unsubscribed(text(request_id), VENUE, symbol)
        }
        VenueEvent::Evicted { request_id, symbol } => {
            Event::SubscriptionEvicted(SubscriptionEvicted {
                request_id: Some(text(request_id)),
                symbol: text(symbol),
            })
        }
        VenueEvent::Board { request_id, board } => {
            let request_id = Some(text(request_id));
            Event::DepthSnapshot(ipc::DepthSnapshot { request_id, ..market::depth(board) })
        }
        VenueEvent::BuyingPower { request_id, cash, margin, at } => {
            Event::BuyingPowerUpdated(BuyingPowerUpdated {
                request_id: Some(text(request_id)),
                venue: venue(),
                cash_available: cash.map(|amount| Decimal::from_units(amount.units())),
                cash_shortfall: None,
                credit_available: margin.map(|amount| Decimal::from_units(amount.units())),
                ts_ms: at.millis(),
            })
        }
        VenueEvent::Orders { request_id, orders, more, next } => {
            Event::OrderListUpdated(OrderListUpdated {
                request_id: text(request_id),
                orders: orders.iter().map(order).collect(),
                more: *more,
                next: *next,
            })
        }
        VenueEvent::Positions { request_id, positions, at } => {
            Event::PositionsUpdated(PositionsUpdated {
                request_id: Some(text(request_id)),
                venue: venue(),
                positions: positions.iter().map(position).collect(),
                ts_ms: at.millis(),
            })
        }
        VenueEvent::UnreadableOrder { venue_order_id, message, at } => {
            Event::OrderDiscrepancy(OrderDiscrepancy {
                venue: venue(),
                client_order_id: None,
                venue_order_id: optional(venue_order_id),
                discrepancy: Discrepancy::Unreadable,
                message: text(message),
                ts_event_ms: at.millis(),
            })
        }
    }
}

const fn lifecycle(state: State) -> VenueLifecycle {
    match state {
        State::Disconnected => VenueLifecycle::Disconnected,
        State::LoggingIn(_) => VenueLifecycle::LoggingIn,
        State::Ready(_) => VenueLifecycle::Ready,
        State::TokenExpired => VenueLifecycle::TokenExpired,
        State::AppDown => VenueLifecycle::AppDown,
    }
}

fn order(order: &AccountOrder) -> OrderRecordWire<'_> {
    OrderRecordWire {
        client_order_id: None,
        venue_order_id: text(&order.venue_order_id),
        instrument_id: text(&order.instrument_id),
        order_side: order.side,
        order_type: order.order_type,
        quantity: order.quantity.into(),
        filled_qty: order.filled.into(),
        leaves_qty: order.leaves.into(),
        price: order.price.map(Into::into),
        trigger_price: None,
        time_in_force: order.time_in_force,
        expire_time_ns: order.expires.map(domain::TsNanos::nanos),
        status: order.status,
        ts_event_ms: order.received.millis(),
        trigger_type: None,
        tags: Vec::new(),
        extra: Some(order.extra.clone()),
        origin: None,
        strategy_id: None,
    }
}

fn position(position: &AccountPosition) -> PositionRow<'_> {
    let kind = match position.kind {
        PositionKind::Cash => "cash",
        PositionKind::SystemMargin => "margin_credit",
        PositionKind::GeneralMargin => "margin_general",
        PositionKind::Derivative => "derivative",
    };
    PositionRow {
        instrument_id: text(&position.instrument_id),
        qty: position.quantity.into(),
        avg_open_price: position.average_price.map(Into::into),
        market_value: position.market_value.map(|value| Decimal::from_units(value.units())),
        unrealized_pnl: position.unrealized.map(|value| Decimal::from_units(value.units())),
        side: position.side,
        position_type: kind.into(),
        tategyoku_id: optional(&position.number),
        venue: VENUE.into(),
    }
}

#[cfg(test)]
mod tests {
    use domain::market_update::{Board, Level, Symbol, TimeSource};
    use domain::{Money, OrderSide, OrderStatus, OrderType, Price, Quantity, TimeInForce, TsNanos};
    use ipc::error_code;
    use serde_json::{Value, json};
    use venues::local_broker::ErrorCode;
    use venues::local_broker::lifecycle::Push;

    use super::*;

    fn written(of: &VenueEvent) -> Value {
        serde_json::to_value(event(of)).unwrap()
    }

    fn id() -> String {
        "r".to_owned()
    }

    /// P57: rows of the account with all that clients get of them.
    #[test]
    fn p57_orders_and_positions_are_written_whole() {
        let order = AccountOrder {
            venue_order_id: "20261124A02N04738436".to_owned(),
            instrument_id: "130A.TSE".to_owned(),
            side: OrderSide::Buy,
            order_type: OrderType::Limit,
            quantity: Quantity::new(300),
            filled: Quantity::new(100),
            leaves: Quantity::new(200),
            price: Some(Price::from_units(7_045_000)),
            time_in_force: TimeInForce::Day,
            expires: None,
            status: OrderStatus::Accepted,
            received: TsNanos::from_nanos(1_795_478_451_763_683_000),
            extra: json!({ "State": 3 }).as_object().unwrap().clone(),
        };
        let orders =
            VenueEvent::Orders { request_id: id(), orders: vec![order], more: None, next: None };
        assert_eq!(
            written(&orders)["orders"],
            json!([{
                "client_order_id": null, "venue_order_id": "20261124A02N04738436",
                "instrument_id": "130A.TSE", "order_side": "BUY", "order_type": "LIMIT",
                "quantity": "300", "filled_qty": "100", "leaves_qty": "200", "price": "704.5",
                "trigger_price": null, "time_in_force": "DAY", "expire_time_ns": null,
                "status": "ACCEPTED", "ts_event_ms": 1_795_478_451_763_u64,
                "extra": { "State": 3 },
            }])
        );
        let position = AccountPosition {
            instrument_id: "8306.TSE".to_owned(),
            quantity: Quantity::new(500),
            average_price: Some(Price::from_yen(704)),
            market_value: Some(Money::from_yen(207_250)),
            unrealized: Some(Money::from_yen(144_750)),
            side: OrderSide::Sell,
            kind: PositionKind::SystemMargin,
            number: Some("E20220404xxxxx".to_owned()),
        };
        let at = TsNanos::from_nanos(7_000_000);
        let positions = VenueEvent::Positions { request_id: id(), positions: vec![position], at };
        assert_eq!(
            written(&positions),
            json!({
                "event": "PositionsUpdated", "request_id": "r", "venue": "local_broker", "ts_ms": 7,
                "positions": [{
                    "instrument_id": "8306.TSE", "qty": "500", "avg_open_price": "704",
                    "market_value": "207250", "unrealized_pnl": "144750", "side": "SELL",
                    "position_type": "margin_credit", "tategyoku_id": "E20220404xxxxx",
                    "venue": "local_broker",
                }],
            })
        );
    }

    /// P53: an order book has every field; the bids are carried as they came.
    #[test]
    fn p53_a_snapshot_has_every_field() {
        let level = |price, shares: i64| Level { price, quantity: shares * 10_000 };
        let board = Board {
            symbol: Symbol::new("7203").unwrap(),
            stream_session_id: "20261124-1795478400000".into(),
            sequence_id: 1,
            received: TsNanos::from_nanos(1_795_478_401_002_000_000),
            timestamp_ms: 1_795_478_400_000,
            timestamp_source: TimeSource::Venue,
            last_price: Some(1_010_000),
            bids: vec![level(1_000_000, 300), level(1_005_000, 0)],
            asks: vec![level(1_020_000, 300)],
        };
        assert_eq!(
            written(&VenueEvent::Board { request_id: id(), board }),
            json!({
                "event": "DepthSnapshot", "request_id": "r",
                "venue": "local_broker", "exchange": "LocalBrokerStock", "ticker": "7203",
                "stream_session_id": "20261124-1795478400000", "sequence_id": 1,
                "received_ms": 1_795_478_401_002_u64, "timestamp_ms": 1_795_478_400_000_u64,
                "timestamp_source": "venue", "last_price": "101",
                "bids": [{"price": "100", "qty": "300"}, {"price": "100.5", "qty": "0"}],
                "asks": [{"price": "102", "qty": "300"}],
            })
        );
    }

    /// P45, P57: states, amounts and orders that cannot be read.
    #[test]
    fn p45_states_and_amounts_are_written() {
        let at = TsNanos::from_nanos(7_000_000);
        let state = |state, code| VenueEvent::State { request_id: id(), state, code, since: at };
        for (said, expected) in [
            (
                state(State::Ready(Push::Reconnecting(3)), None),
                json!({
                    "event": "VenueState", "request_id": "r", "venue": "local_broker",
                    "state": "Ready", "push": "Reconnecting 3", "code": null, "since_ms": 7,
                }),
            ),
            (
                VenueEvent::BuyingPower {
                    request_id: id(),
                    cash: Some(Money::from_units(123_455_000)),
                    margin: None,
                    at,
                },
                json!({
                    "event": "BuyingPowerUpdated", "request_id": "r", "venue": "local_broker",
                    "cash_available": "12345.5", "credit_available": null, "ts_ms": 7,
                }),
            ),
            (
                VenueEvent::UnreadableOrder {
                    venue_order_id: Some("5".to_owned()),
                    message: "why".to_owned(),
                    at,
                },
                json!({
                    "event": "OrderDiscrepancy", "venue": "local_broker", "client_order_id": null,
                    "venue_order_id": "5", "discrepancy": "unreadable", "message": "why",
                    "ts_event_ms": 7,
                }),
            ),
        ] {
            let written = written(&said);
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(written.get(name).unwrap_or(&Value::Null), value, "{name}: {written}");
            }
        }
        for (code, name) in [
            (ErrorCode::ValidationError, error_code::VALIDATION_ERROR),
            (ErrorCode::RegisterFull, error_code::REGISTER_FULL),
            (ErrorCode::RateLimited, error_code::RATE_LIMITED),
            (ErrorCode::TokenExpired, error_code::TOKEN_EXPIRED),
            (ErrorCode::LocalAppDown, error_code::LOCAL_APP_DOWN),
            (ErrorCode::GatewayError, error_code::GATEWAY_ERROR),
            (ErrorCode::LoginFailed, error_code::LOGIN_FAILED),
        ] {
            assert_eq!(code.name(), name);
        }
    }
}
