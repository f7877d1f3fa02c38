//! Orders of strategies beside those of people: their lines, their events, and cancels of one sender.

use domain::order_mapping::BrokerOrder;
use domain::{OrderOrigin, OrderSide, OrderType, Price, Quantity, TimeInForce};
use orders::audit::restore::RestoredOrder;
use orders::{CancelMany, DeskCommand, DeskRules, OrderPhase, Restored};

use crate::world::{World, limit_buy};

fn strategy() -> OrderOrigin {
    OrderOrigin::Strategy("sma-cross".into())
}

/// A desk with an order `a` of a person and an order `b` of a strategy, both accepted.
fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.reported.clear();
    world.submit_of(strategy(), &limit_buy("b", 100, "2400"));
    world.answer_all();
    world
}

#[test]
fn lines_and_events_of_a_strategy_name_it_and_those_of_people_do_not() {
    let mut world = world();
    for phase in ["submit", "accepted"] {
        let lines = world.log.lines(phase);
        assert!(!lines[0].contains("origin") && !lines[0].contains("strategy_id"), "{lines:?}");
        assert!(
            lines[1].ends_with(r#","origin":"strategy","strategy_id":"sma-cross"}"#),
            "{lines:?}"
        );
    }
    let event = world.json("OrderAccepted");
    assert_eq!(
        (&event["origin"], &event["strategy_id"]),
        (&"strategy".into(), &"sma-cross".into())
    );
    world.modify("a", Some("200"), None);
    let event = world.json("OrderPendingUpdate");
    assert!(event.get("origin").is_none() && event.get("strategy_id").is_none(), "{event}");
}

#[test]
fn a_log_says_whose_orders_are() {
    let world = world();
    let restored = Restored::read(&world.log.bytes.lock().unwrap());
    let whose = restored.entries.iter().map(|RestoredOrder { origin, .. }| origin.clone());
    assert_eq!(whose.collect::<Vec<_>>(), [OrderOrigin::Person, strategy()]);
}

/// P92: an id belongs to one order of each kind of sender, and a strategy sends none again.
#[test]
fn p92_the_id_of_a_strategy_is_no_resend_of_a_person() {
    let mut world = world();
    world.reported.clear();
    world.submit_of(strategy(), &limit_buy("b", 100, "2400"));
    assert_eq!(world.events(), ["Error 1001 conflict"]);
    world.submit(&limit_buy("b", 100, "2400"));
    world.answer_all();
    assert_eq!(world.json("SubmitOrderResult")["outcome"], "Created");
    world.submit(&limit_buy("b", 100, "2400"));
    assert_eq!(world.json("SubmitOrderResult")["outcome"], "IdempotentReplay");
}

#[test]
fn a_cancel_of_one_sender_leaves_the_others() {
    let mut world = world();
    // An order placed elsewhere.
    let order = BrokerOrder {
        symbol: "7203".into(),
        side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(100),
        price: Some(Price::from_yen(2_300)),
        trigger_price: None,
        time_in_force: TimeInForce::Day,
        expire_date: None,
        tags: Vec::new(),
    };
    let wall = world.wall;
    world.broker.place_elsewhere(order, wall);
    world.reported.clear();
    let many = CancelMany { origin: Some(strategy()), ..CancelMany::default() };
    let context = world.context();
    let now = world.now();
    world.desk.command(context, DeskCommand::CancelAll(many), now);
    world.collect();
    for _ in 0..20 {
        world.answer_all();
        world.deliver_all();
        world.pass(std::time::Duration::from_secs(1));
    }
    let result = world.json("CancelAllResult");
    assert_eq!((&result["canceled_count"], &result["failed_count"]), (&1.into(), &0.into()));
    let canceled = world.events().into_iter().filter(|event| event.starts_with("OrderCanceled"));
    assert_eq!(canceled.collect::<Vec<_>>(), ["OrderCanceled b 1001"]);
    assert!(!world.sent.contains(&"cancel-all".to_owned()), "{:?}", world.sent);
}
