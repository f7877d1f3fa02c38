//! Lists and notices in any order, once or twice, have the same result in one process or two.
//!
//! Specification 4, P19, P27, P28.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::OrderStatus;
use ipc::OrderListFilter;
use orders::{DeskRules, OrderPhase};

use crate::world::{World, limit_buy};

fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

/// All orders of the numbers below `count`.
pub(crate) fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..=shorter.len() {
            let mut longer = shorter.clone();
            longer.insert(place, count - 1);
            all.push(longer);
        }
    }
    all
}

/// What the desk has reported of orders, without times and order: the count of each event, and the final state.
pub(crate) fn outcome(world: &mut World) -> (BTreeMap<String, usize>, String) {
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    world.list(OrderListFilter::default());
    world.answer_all();
    let list = world.json("OrderListUpdated")["orders"].to_string();
    let mut events = BTreeMap::new();
    for (_, event) in &world.reported {
        let json = serde_json::to_value(event).unwrap();
        let name = json["event"].as_str().unwrap();
        if name.starts_with("Order") && name != "OrderListUpdated" {
            let reported = format!("{name} {} {}", json["venue_order_id"], json["trade_id"]);
            *events.entry(reported).or_default() += 1;
        }
    }
    (events, list)
}

/// An order that is filled twice, in part, and cancelled; and one from elsewhere that is filled.
fn world_with_a_day() -> World {
    let mut world = World::ready(rules(), false);
    world.submit(&limit_buy("a", 300, "2500"));
    world.answer_all();
    world.pump();
    let (order, wall) = (world.broker.orders["1000"].order.clone(), world.wall);
    world.broker.fill("1000", 100);
    world.broker.fill("1000", 100);
    world.broker.end("1000", OrderStatus::Canceled);
    let foreign = world.broker.place_elsewhere(order, wall);
    world.broker.fill(&foreign, 300);
    world.reported.clear();
    world
}

/// Delivers the day's notices and one list, in an order. A notice's own place in the stream is its number;
/// `lists` is the number of times that the list comes.
fn play(mut world: World, order: &[usize], lists: usize) -> (BTreeMap<String, usize>, String) {
    world.pump();
    let notices: Vec<_> = world.stream.drain(..).collect();
    for step in order {
        match notices.get(*step) {
            Some(notice) => {
                world.stream.push_back(notice.clone());
                world.deliver(0);
            }
            None => {
                for _ in 0..lists {
                    world.list(OrderListFilter::default());
                    world.answer_all();
                }
            }
        }
    }
    outcome(&mut world)
}

#[test]
fn no_order_of_notices_and_list_makes_a_difference() {
    let mut world = world_with_a_day();
    world.pump();
    let notices = world.stream.len();
    assert_eq!(notices, 6, "accepted, two fills, a cancel, and two of the other one");
    let expected = play(world_with_a_day(), &(0..=notices).collect::<Vec<_>>(), 1);
    let reported: usize = expected.0.values().sum();
    assert_eq!(reported, 4, "two fills, a cancel, a fill: {expected:?}");
    // The notice of the acceptance has no effect; all others and the list come in every order.
    for order in permutations(notices) {
        let order: Vec<usize> = order.iter().map(|step| step + 1).collect();
        assert_eq!(play(world_with_a_day(), &order, 1), expected, "{order:?}");
    }
}

#[test]
fn twice_is_once() {
    let expected = play(world_with_a_day(), &[0, 1, 2, 3, 4, 5, 6], 1);
    for order in [[0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [0, 6, 1, 2, 3, 4, 5]] {
        let twice: Vec<usize> = order.iter().flat_map(|step| [*step, *step]).collect();
        assert_eq!(play(world_with_a_day(), &twice, 2), expected, "{order:?}");
    }
}

#[test]
fn a_restart_finds_working_orders_and_reports_the_same() {
    let day = || {
        let mut world = World::ready(rules(), false);
        world.submit(&limit_buy("a", 300, "2500"));
        world.answer_all();
        world.submit(&limit_buy("lost", 200, "2400"));
        world.lose(true);
        world.broker.fill("1000", 100);
        world.restart(false);
        world.reported.clear();
        world
    };
    let finish = |mut world: World, stream_first: bool| {
        world.login_again();
        if stream_first {
            world.answer();
            world.connect();
            world.deliver_all();
            world.answer_all();
        } else {
            world.answer_all();
            world.connect();
            world.answer_all();
            world.deliver_all();
        }
        outcome(&mut world)
    };
    let (events, list) = finish(day(), true);
    assert_eq!((events.clone(), list.clone()), finish(day(), false));
    assert_eq!(events.len(), 2, "a fill, and the lost one is accepted: {events:?}");
    assert!(
        list.contains(r#""client_order_id":"a""#) && list.contains(r#""client_order_id":"lost""#)
    );
    // The same log gives the same result, however often it is read.
    let mut twice = day();
    twice.restart(false);
    assert_eq!(finish(twice, true), (events, list));
}
