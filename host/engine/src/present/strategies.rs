//! What the order desk says of strategies with real orders, as clients know it (specification 4, P98, P121, P122, P124,
//! P125).

use domain::account::Position;
use ipc::{
    Event, OrderSettled, ShareCount, StrategyPosition, StrategyPositionAdjusted, StrategyPositions,
    error_code,
};
use orders::event::{StrategyEvent, StrategyHolding};

use super::session::engine_error;
use super::text;
use crate::ledger::average_cost;

/// The event of the wire; none for what the run of the strategy decides on, and tells itself.
pub(crate) fn strategy_event(event: &StrategyEvent) -> Option<Event<'_>> {
    Some(match event {
        StrategyEvent::CameBack { strategy_id, client_order_id, venue_order_id, is_left } => {
            let what = match is_left {
                true => "it works on until its strategy starts or you cancel it",
                false => "it is being cancelled",
            };
            let message = format!(
                "order {client_order_id} had been taken as not at the broker; the broker has it with the number \
                 {venue_order_id}, and {what}"
            );
            engine_error(None, error_code::ORDER_CAME_BACK, message, Some(strategy_id))
        }
        StrategyEvent::OutcomeUnknown { strategy_id, client_order_id, why } => {
            let message = format!("order {client_order_id}: its outcome is unknown: {why}");
            engine_error(None, error_code::INTERNAL_ERROR, message, Some(strategy_id))
        }
        StrategyEvent::EndUnknown { strategy_id, order } => {
            let message = format!(
                "the broker does not tell what became of order {order} of an earlier day; look at its own pages, then \
                 say by `kumiki live adjust` what the strategy holds"
            );
            engine_error(None, error_code::ORDERS_UNSETTLED, message, Some(strategy_id))
        }
        StrategyEvent::SecondPasswordNeeded { strategy_id } => {
            let message = "the second password is gone, and the strategy holds shares or has a working order; until \
                           you give it with `kumiki order password`, it can neither sell nor cancel";
            engine_error(None, error_code::SECOND_PASSWORD_NEEDED, message, Some(strategy_id))
        }
        StrategyEvent::Holdings { request_id, held } => {
            Event::StrategyPositions(StrategyPositions {
                request_id: text(request_id),
                positions: held.iter().map(position).collect(),
            })
        }
        StrategyEvent::Settled { request_id, client_order_id } => {
            Event::OrderSettled(OrderSettled {
                request_id: text(request_id),
                client_order_id: text(client_order_id),
            })
        }
        StrategyEvent::Adjusted { request_id, held } => {
            Event::StrategyPositionAdjusted(StrategyPositionAdjusted {
                request_id: text(request_id),
                position: position(held),
            })
        }
        StrategyEvent::TakenOver { .. }
        | StrategyEvent::OwnOrders { .. }
        | StrategyEvent::FillNotWritten { .. }
        | StrategyEvent::Cash(_)
        | StrategyEvent::Mismatch(_) => return None,
    })
}

/// What a strategy holds, its average rounded half to even at 4 decimals.
fn position(held: &StrategyHolding) -> StrategyPosition<'_> {
    let shares = u64::try_from(held.quantity).unwrap_or_default();
    let average = (shares > 0).then(|| {
        average_cost(&Position { quantity: held.quantity, cost: held.cost, ..Position::default() })
    });
    StrategyPosition {
        strategy_id: text(&held.strategy_id),
        instrument_id: text(&held.instrument_id),
        quantity: ShareCount::from(domain::Quantity::new(shares)),
        average_price: average.map(Into::into),
        margin_quantity: held.margin,
    }
}

#[cfg(test)]
mod tests {
    use domain::Money;
    use serde_json::{Value, json};

    use super::*;

    fn told(event: &StrategyEvent) -> Value {
        serde_json::to_value(strategy_event(event)).unwrap()
    }

    fn holding(quantity: i64, cost: i64, margin: i64) -> StrategyHolding {
        StrategyHolding {
            strategy_id: "mine".into(),
            instrument_id: "7203.TSE".into(),
            quantity,
            cost: Money::from_units(cost),
            margin,
            margin_cost: Money::ZERO,
        }
    }

    /// P125: shares with the price that one cost; margin shares apart, and no price of no shares.
    #[test]
    fn p125_what_strategies_hold_is_told_in_rows() {
        let held = vec![holding(300, 8_551_000, 0), holding(0, 0, -100)];
        let event = StrategyEvent::Holdings { request_id: "r".to_owned(), held };
        assert_eq!(
            told(&event),
            json!({"event": "StrategyPositions", "request_id": "r", "positions": [
                {"strategy_id": "mine", "instrument_id": "7203.TSE", "quantity": "300",
                 "average_price": "2.8503", "margin_quantity": "0"},
                {"strategy_id": "mine", "instrument_id": "7203.TSE", "quantity": "0",
                 "average_price": null, "margin_quantity": "-100"},
            ]})
        );
        let event = StrategyEvent::Adjusted {
            request_id: "r".to_owned(),
            held: holding(200, 2_650_500_000, 0),
        };
        let adjusted = told(&event);
        assert_eq!(adjusted["event"], "StrategyPositionAdjusted");
        assert_eq!(adjusted["position"]["average_price"], "1325.25");
    }

    #[test]
    fn p124_a_decided_order_is_told_to_who_decided() {
        let event =
            StrategyEvent::Settled { request_id: "r".to_owned(), client_order_id: "o".into() };
        let expected = json!({"event": "OrderSettled", "request_id": "r", "client_order_id": "o"});
        assert_eq!(told(&event), expected);
    }

    /// P98, P121, P122: each names the strategy, and the order by all its ids.
    #[test]
    fn p98_p121_p122_what_went_wrong_names_strategy_and_order() {
        let strategy_id = || "mine".into();
        let came_back = StrategyEvent::CameBack {
            strategy_id: strategy_id(),
            client_order_id: "w-1".into(),
            venue_order_id: "12345".into(),
            is_left: false,
        };
        let unknown = StrategyEvent::OutcomeUnknown {
            strategy_id: strategy_id(),
            client_order_id: "w-1".into(),
            why: "no answer came".to_owned(),
        };
        let password = StrategyEvent::SecondPasswordNeeded { strategy_id: strategy_id() };
        for (event, code, words) in [
            (came_back, "order_came_back", vec!["w-1", "12345"]),
            (unknown, "internal_error", vec!["w-1", "no answer came"]),
            (password, "second_password_needed", vec!["kumiki order password"]),
        ] {
            let error = told(&event);
            assert_eq!((&error["event"], &error["code"]), (&"EngineError".into(), &code.into()));
            assert_eq!(error["strategy_id"], "mine");
            let message = error["message"].as_str().unwrap();
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        }
        assert_eq!(told(&StrategyEvent::Cash(Money::ZERO)), Value::Null, "the run's own matter");
    }
}
