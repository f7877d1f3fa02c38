//! Cancels of many: what they cancel and count, and that each has one end.

use std::time::Duration;

use domain::OrderSide;
use orders::limits::CANCELS_UNDER_WAY_MAX;
use orders::{DeskRules, OrderPhase};
use venues::web_broker::CallFailure;

use crate::broker::{answer, refused};
use crate::world::{InFlight, World, limit_buy};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.reported.clear();
    world
}

fn with_orders(ids: &[&str]) -> World {
    let mut world = world();
    for id in ids {
        world.submit(&limit_buy(id, 100, "2500"));
        world.answer_all();
    }
    world.deliver_all();
    world.events();
    world
}

/// Answers all requests and delivers all notices for a while.
fn settle(world: &mut World, rounds: usize) {
    for _ in 0..rounds {
        world.answer_all();
        world.deliver_all();
        world.pass(Duration::from_millis(200));
    }
}

fn count(world: &World, kind: &str) -> usize {
    world.sent.iter().filter(|id| *id == kind).count()
}

/// Events that name a command and end it, as `(name, reason)`.
fn ends(world: &World, request_id: &str) -> Vec<(String, String)> {
    let reported = world.reported.iter().map(|(_, event)| serde_json::to_value(event).unwrap());
    reported
        .filter(|event| event["request_id"] == request_id)
        .filter(|event| {
            let name = event["event"].as_str().unwrap();
            let is_refusal = name == "OrderRejected" && event["instrument_id"].is_null();
            is_refusal || name == "CancelAllResult" || name == "Error"
        })
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            (text("event"), text("reason_text").split(':').next().unwrap_or_default().to_owned())
        })
        .collect()
}

fn one_end(world: &World, request_id: &str, name: &str, reason: &str) {
    assert_eq!(ends(world, request_id), [(name.to_owned(), reason.to_owned())]);
}

fn counts(world: &World) -> (u64, u64) {
    let result = world.json("CancelAllResult");
    (result["canceled_count"].as_u64().unwrap(), result["failed_count"].as_u64().unwrap())
}

fn is_requested(world: &World, kind: &str) -> bool {
    let is_it =
        |sent: &InFlight| matches!(sent, InFlight::Request { request, .. } if request.id == kind);
    world.in_flight.as_ref().is_some_and(is_it)
}

/// A foreign order that may be the one whose answer was lost: no order of the book has its row yet.
fn with_an_unclaimed_row() -> World {
    let mut world = with_orders(&[]);
    world.submit(&limit_buy("lost", 100, "2500"));
    let Some(InFlight::Request { request, .. }) = &world.in_flight else { panic!("sent") };
    let mut order = crate::dialect::order(&request.fields).unwrap();
    order.quantity = domain::Quantity::new(200);
    world.lose(false);
    let wall = world.wall;
    world.broker.place_elsewhere(order, wall);
    world.pass(Duration::from_millis(200));
    world.answer_all();
    world.events();
    world
}

/// Specification 4, P23b: every open order of the account.
#[test]
fn rows_that_may_be_an_unknown_order_are_cancelled_and_counted_too() {
    for (side, kind) in [(None, "cancel-all"), (Some(OrderSide::Buy), "cancel")] {
        let mut world = with_an_unclaimed_row();
        let request_id = world.cancel_all(side);
        settle(&mut world, 10);
        assert_eq!(count(&world, kind), 1);
        one_end(&world, &request_id, "CancelAllResult", "");
        assert_eq!(counts(&world), (1, 0), "{kind}");
        settle(&mut world, 200);
        let reported = world.events();
        let canceled = reported.iter().filter(|event| *event == "OrderCanceled 1000").count();
        assert_eq!(canceled, 1, "whose it is, is known by now: {reported:?}");
    }
    // A single cancel that is refused names the instrument and is no end.
    let mut world = with_an_unclaimed_row();
    let request_id = world.cancel_all(Some(OrderSide::Buy));
    while !is_requested(&world, "cancel") {
        world.answer();
    }
    world.answer_with(|id| refused(id, "no"));
    let reported = world.json("OrderRejected");
    assert_eq!(reported["request_id"], request_id.as_str());
    assert_eq!(reported["instrument_id"], "7203.TSE");
    settle(&mut world, 160);
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!(counts(&world), (0, 1));
}

#[test]
fn two_orders_of_one_look_whose_answers_were_lost_are_cancelled_and_counted() {
    let mut world = with_orders(&[]);
    world.disconnect();
    for id in ["a", "b"] {
        world.submit(&limit_buy(id, 100, "2500"));
        world.lose(true);
        while world.in_flight.is_some() {
            world.answer_with(|id| answer(id, "9", vec![]));
        }
    }
    world.events();
    let request_id = world.cancel_all(None);
    settle(&mut world, 20);
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!(counts(&world), (2, 0));
}

/// The list may lag behind the broker.
#[test]
fn without_a_filter_the_broker_always_gets_the_request() {
    let mut world = with_orders(&[]);
    let request_id = world.cancel_all(None);
    world.answer();
    assert!(is_requested(&world, "cancel-all"));
    assert!(ends(&world, &request_id).is_empty(), "not before its answer");
    world.answer();
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!(counts(&world), (0, 0));
    // With a filter, and without an open order for it, nothing is sent.
    let request_id = world.cancel_all(Some(OrderSide::Sell));
    world.answer();
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!((count(&world, "cancel-all"), count(&world, "cancel")), (1, 0));
}

/// Specification 4, P23a.
#[test]
fn a_list_that_does_not_come_in_time_is_no_count_of_nothing() {
    let mut world = with_orders(&["a"]);
    let request_id = world.cancel_all(None);
    world.pass(seconds(30));
    one_end(&world, &request_id, "OrderRejected", "NOT_SENT");
    settle(&mut world, 20);
    one_end(&world, &request_id, "OrderRejected", "NOT_SENT");
    // The list arrives before the time limit was checked.
    let request_id = world.cancel_all(None);
    world.mono += seconds(30);
    world.answer();
    one_end(&world, &request_id, "OrderRejected", "NOT_SENT");
    assert_eq!(count(&world, "cancel-all"), 0, "never sent later");
    // The broker's own request waits in the queue for too long.
    let request_id = world.cancel_all(None);
    world.submit(&limit_buy("b", 100, "2400"));
    world.mono += seconds(20);
    world.answer();
    world.pass(seconds(10));
    one_end(&world, &request_id, "OrderRejected", "NOT_SENT");
    settle(&mut world, 20);
    one_end(&world, &request_id, "OrderRejected", "NOT_SENT");
    assert_eq!(count(&world, "cancel-all"), 0, "never sent later");
}

/// Specification 2, "Session and password states": the freeze ends every cancel of many.
#[test]
fn the_end_of_the_session_ends_each_cancel_of_many_once() {
    // By the answer to its first list, to the broker's own request, to a single cancel, to a later list.
    for (side, kind, later) in [
        (None, "list", false),
        (None, "cancel-all", false),
        (Some(OrderSide::Buy), "cancel", false),
        (None, "list", true),
    ] {
        let mut world = with_orders(&["a", "b"]);
        world.disconnect();
        let request_id = world.cancel_all(side);
        if later {
            world.answer();
            world.lose(false);
            world.pass(seconds(1));
        }
        while !is_requested(&world, kind) {
            world.answer();
        }
        world.answer_with(|id| answer(id, "2", vec![]));
        one_end(&world, &request_id, "OrderRejected", "SESSION_EXPIRED");
        let (_, last) = world.reported.last().unwrap();
        let last = crate::world::short(last);
        assert_eq!(last, "OrderRejected SESSION_EXPIRED", "its parts come before");
        settle(&mut world, 160);
        one_end(&world, &request_id, "OrderRejected", "SESSION_EXPIRED");
    }
    let mut world = with_an_unclaimed_row();
    let request_id = world.cancel_all(Some(OrderSide::Buy));
    while !is_requested(&world, "cancel") {
        world.answer();
    }
    world.answer_with(|id| answer(id, "2", vec![]));
    one_end(&world, &request_id, "OrderRejected", "SESSION_EXPIRED");
}

#[test]
fn what_the_broker_refuses_as_a_whole_has_one_end() {
    let mut world = with_orders(&["a"]);
    let request_id = world.cancel_all(None);
    world.answer();
    world.answer_with(|id| refused(id, "no"));
    one_end(&world, &request_id, "OrderRejected", "11104");
    // The outcome is unknown, so the end is the count.
    let request_id = world.cancel_all(None);
    world.answer();
    world.lose(false);
    assert!(ends(&world, &request_id).is_empty());
    settle(&mut world, 160);
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!(counts(&world), (0, 1));
    // The request is still under way when its time is over.
    let request_id = world.cancel_all(None);
    world.answer();
    world.pass(seconds(30));
    one_end(&world, &request_id, "CancelAllResult", "");
    world.answer_with(|id| refused(id, "no"));
    settle(&mut world, 5);
    one_end(&world, &request_id, "CancelAllResult", "");
}

/// Specification 4, P23a: the time of the whole counts from its receipt.
#[test]
fn single_cancels_that_were_not_sent_in_time_never_are() {
    let mut world = with_orders(&["a", "b", "c"]);
    let request_id = world.cancel_all(Some(OrderSide::Buy));
    world.pass(seconds(20));
    world.answer();
    world.pass(seconds(9));
    world.answer();
    assert!(is_requested(&world, "cancel"));
    world.pass(seconds(1));
    let reported = world.reported.iter().map(|(_, event)| crate::world::short(event));
    let is_of_orders = |event: &String| !event.contains("Pending") && *event != "VenueState";
    let reported: Vec<String> = reported.filter(is_of_orders).collect();
    assert_eq!(
        reported,
        ["OrderRejected c INTERNAL_ERROR", "OrderListUpdated", "CancelAllResult"],
        "what was not sent is told before the end"
    );
    one_end(&world, &request_id, "CancelAllResult", "");
    settle(&mut world, 100);
    assert_eq!(count(&world, "cancel"), 2);
    one_end(&world, &request_id, "CancelAllResult", "");
}

#[test]
fn so_many_are_under_way_at_once_and_one_list_serves_them_all() {
    let mut world = with_orders(&["a"]);
    // The broker takes them, and the order does not end.
    world.disconnect();
    for _ in 0..CANCELS_UNDER_WAY_MAX {
        world.cancel_all(None);
        world.answer();
        let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
            panic!("sent");
        };
        assert_eq!(request.id, "cancel-all");
        world.give(ticket, sent_p_no, Err(CallFailure::Unknown("reset".to_owned())));
        while world.in_flight.is_some() {
            world.answer();
        }
    }
    world.events();
    let request_id = world.cancel_all(None);
    one_end(&world, &request_id, "OrderRejected", "TOO_MANY_CANCELS");
    let before = count(&world, "list");
    for _ in 0..25 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    let lists = count(&world, "list") - before;
    assert!(lists <= 8, "{lists} lists in 5 s");
    world.pass(seconds(30));
    world.answer_all();
    world.reported.clear();
    let request_id = world.cancel_all(None);
    settle(&mut world, 10);
    one_end(&world, &request_id, "CancelAllResult", "");
    assert_eq!(counts(&world), (1, 0));
}
