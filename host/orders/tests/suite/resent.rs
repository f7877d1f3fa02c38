//! Notices that are resent, or late: they decide nothing about later requests.

use std::time::Duration;

use domain::order_mapping::Field;
use orders::{DeskRules, OrderPhase};

use crate::world::{World, limit_buy};

/// A desk with an order `a`, number 1000, whose notices were delivered.
fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.deliver_all();
    world.pass(Duration::from_millis(1));
    world.reported.clear();
    world
}

fn reconnect(world: &mut World) {
    world.disconnect();
    world.connect();
    world.deliver_all();
}

fn at(world: &World) -> Vec<Field> {
    vec![Field::new("at", world.wall.nanos().to_string())]
}

/// Answers all requests, until nothing more is due.
fn settle(world: &mut World) {
    for _ in 0..100 {
        world.answer_all();
        world.pass(Duration::from_millis(200));
    }
}

#[test]
fn a_change_that_was_done_before_does_not_end_the_next_one() {
    let mut world = world();
    world.modify("a", None, Some("2501"));
    world.answer_all();
    world.deliver_all();
    world.modify("a", None, Some("2400"));
    world.events();
    world.lose(false);
    reconnect(&mut world);
    settle(&mut world);
    let reported = world.events();
    assert!(!reported.iter().any(|event| event.starts_with("OrderUpdated")), "{reported:?}");
    assert!(reported.contains(&"OrderRejected a INTERNAL_ERROR".to_owned()), "{reported:?}");
    assert_eq!(world.broker.orders["1000"].order.price.unwrap().to_string(), "2501");
}

#[test]
fn a_refusal_of_before_does_not_refuse_the_cancel_that_is_under_way() {
    let mut world = world();
    // The broker takes a cancel, and the exchange refuses it later.
    let taken = |id: &str| crate::broker::answer(id, "", vec![Field::new("number", "1000")]);
    world.cancel(Some("a"), None);
    world.answer_with(taken);
    world.broker.notify("cancel-refused", "1000", vec![]);
    world.events();
    world.deliver_all();
    assert_eq!(world.events(), ["OrderRejected a VENUE_REJECTED"]);
    world.answer_all();
    world.cancel(Some("a"), None);
    world.answer_with(taken);
    reconnect(&mut world);
    assert_eq!(world.events(), ["OrderPendingCancel a"]);
    world.broker.end("1000", domain::OrderStatus::Canceled);
    world.deliver_all();
    assert_eq!(world.events(), ["OrderCanceled a 1000"]);
}

#[test]
fn a_refused_change_is_reported_once() {
    let mut world = world();
    world.modify("a", None, Some("2501"));
    world.answer_all();
    world.broker.notify("update-refused", "1000", vec![]);
    world.deliver_all();
    world.answer_all();
    let reported = world.events();
    assert!(reported.contains(&"OrderRejected a VENUE_REJECTED".to_owned()), "{reported:?}");
    for _ in 0..3 {
        reconnect(&mut world);
        settle(&mut world);
    }
    assert_eq!(world.events(), [""; 0]);
}

/// Events from a time when the stream was down arrive when it is up again.
#[test]
fn a_notice_that_was_missed_decides_nothing_of_a_later_request() {
    for (has_time, pause) in [(true, 0), (false, 0), (true, 10), (false, 10)] {
        let mut world = world();
        let taken = |id: &str| crate::broker::answer(id, "", vec![Field::new("number", "1000")]);
        world.cancel(Some("a"), None);
        world.answer_with(taken);
        world.disconnect();
        let more = if has_time { at(&world) } else { Vec::new() };
        world.broker.notify("cancel-refused", "1000", more);
        settle(&mut world);
        assert!(world.events().contains(&"OrderRejected a INTERNAL_ERROR".to_owned()));
        world.cancel(Some("a"), None);
        world.answer_with(taken);
        world.pass(Duration::from_secs(pause));
        reconnect(&mut world);
        assert_eq!(world.events(), ["OrderPendingCancel a"], "time {has_time}, pause {pause}");
    }
}

#[test]
fn notices_of_before_a_start_decide_nothing_of_requests_after_it() {
    for has_time in [true, false] {
        let mut world = world();
        let taken = |id: &str| crate::broker::answer(id, "", vec![Field::new("number", "1000")]);
        for kind in ["updated", "cancel-refused", "update-refused"] {
            let more = if has_time { at(&world) } else { vec![Field::new("p_ALT", "0")] };
            world.broker.notify(kind, "1000", more);
        }
        world.restart(true);
        world.pass(Duration::from_secs(2));
        world.log_in();
        world.password("0000");
        world.cancel(Some("a"), None);
        world.answer_with(taken);
        world.events();
        world.deliver_all();
        assert_eq!(world.events(), [""; 0], "time {has_time}");
        world.answer_all();
        // The notice about this request itself has its usual effect.
        world.pass(Duration::from_secs(1));
        let more = at(&world);
        world.broker.notify("cancel-refused", "1000", more);
        world.deliver_all();
        assert_eq!(world.events(), ["OrderRejected a VENUE_REJECTED"], "time {has_time}");
    }
}

/// The broker's list lags: the order was reported as not at the broker, and then the list has it.
#[test]
fn an_order_that_a_late_list_has_is_named() {
    let mut world = world();
    world.submit(&limit_buy("b", 200, "2500"));
    world.lose(true);
    for _ in 0..60 {
        world.answer_with(|id| {
            let mut answered = crate::broker::answer(id, "", vec![]);
            answered.lists.insert("rows".to_owned(), Vec::new());
            answered
        });
        world.pass(Duration::from_millis(200));
    }
    assert!(world.events().contains(&"OrderRejected b INTERNAL_ERROR".to_owned()));
    for _ in 0..2 {
        world.list(ipc::OrderListFilter::default());
        world.answer_all();
    }
    let reported = world.json("OrderDiscrepancy");
    assert_eq!(
        (&reported["client_order_id"], &reported["venue_order_id"]),
        (&"b".into(), &"1001".into())
    );
    let reported = world.events();
    let named = reported.iter().filter(|event| event.starts_with("OrderDiscrepancy b 1001 ended"));
    assert_eq!(named.count(), 1, "{reported:?}");
}
