//! Rows that are left out of a list, and fills that an earlier process has reported.
//!
//! Specification 4, P129, P130.

use std::time::Duration;

use domain::order_mapping::Field;
use ipc::OrderListFilter;
use orders::limits::REASONS_PER_ORDER_MAX;
use orders::{DeskRules, OrderPhase};

use crate::world::{InFlight, World, limit_buy};

fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.reported.clear();
    world
}

/// The broker answers a list, with one unreadable row in place of that of a number.
pub(crate) fn answer_odd(world: &mut World, odd: &str) {
    let is_list =
        matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id == "list");
    assert!(is_list);
    let mut rows = Vec::new();
    if let Some(InFlight::Request { request, .. }) = &world.in_flight {
        let answered = world.broker.take(request, world.wall);
        rows = answered.lists["rows"].clone();
    }
    rows.retain(|row| !row.iter().any(|field| field.name == "number" && field.value == odd));
    rows.push(vec![Field::new("number", odd)]);
    world.answer_with(|id| {
        let mut answered = crate::broker::answer(id, "", vec![]);
        answered.lists.insert("rows".to_owned(), rows);
        answered
    });
}

/// A list whose rows the dialect of these tests cannot read, each with an error of its own.
fn answer_rows(world: &mut World, rows: Vec<Vec<Field>>) {
    world.list(OrderListFilter::default());
    world.answer_with(|id| {
        let mut answered = crate::broker::answer(id, "", vec![]);
        answered.lists.insert("rows".to_owned(), rows);
        answered
    });
}

/// Each fault of a row is reported once for its order, whatever the lists between had; and only so many are.
#[test]
fn p129_a_row_is_reported_once_for_each_order_and_reason() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.events();
    let odd = |what: &str| vec![vec![Field::new("number", "1000"), Field::new("odd", what)]];
    let reported = |world: &mut World, rows| {
        answer_rows(world, rows);
        let events = world.events().into_iter();
        events.filter(|one| one == "OrderDiscrepancy a 1000 unreadable").count()
    };
    for (what, count) in [("side", 1), ("side", 0), ("price", 1), ("side", 0), ("price", 0)] {
        assert_eq!(reported(&mut world, odd(what)), count, "{what}");
    }
    let many: usize = (0..2 * REASONS_PER_ORDER_MAX)
        .map(|number| reported(&mut world, odd(&number.to_string())))
        .sum();
    assert_eq!(many, REASONS_PER_ORDER_MAX - 2);
    // Rows without any field are reported once, however many there are.
    answer_rows(&mut world, vec![Vec::new(), Vec::new()]);
    let events = world.events();
    let odd = events.iter().filter(|one| *one == "OrderDiscrepancy unreadable");
    assert_eq!(odd.count(), 1, "{events:?}");
}

fn settle(world: &mut World) {
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
        world.deliver_all();
    }
}

fn fills(world: &mut World) -> Vec<String> {
    let reported = world.events().into_iter();
    reported.filter(|one| one.starts_with("OrderFilled") || one.contains("fills")).collect()
}

#[test]
fn p129_a_row_that_is_left_out_is_reported_once_and_proves_no_absence() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.submit(&limit_buy("lost", 200, "2400"));
    world.lose(true);
    world.events();
    for round in 0..5 {
        world.pass(Duration::from_secs(60));
        while world.in_flight.is_some() {
            answer_odd(&mut world, "1001");
        }
        world.list(OrderListFilter::default());
        answer_odd(&mut world, "1001");
        let listed = world.json("OrderListUpdated")["orders"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{round}");
        let reported = world.events();
        let odd = reported.iter().filter(|one| one.starts_with("OrderDiscrepancy"));
        let expected: &[&str] = &["OrderDiscrepancy 1001 unreadable"];
        assert_eq!(odd.collect::<Vec<_>>(), expected[..usize::from(round == 0)], "{reported:?}");
        assert!(!reported.iter().any(|one| one.starts_with("OrderRejected")), "{reported:?}");
    }
    // As soon as the row can be read the order is found.
    world.pass(Duration::from_secs(60));
    world.answer_all();
    world.list(OrderListFilter::default());
    world.answer_all();
    assert!(world.events().contains(&"OrderAccepted lost 1001".to_owned()));
}

#[test]
fn p130_fills_that_were_reported_before_a_kill_are_not_reported_again() {
    for restarts in 1..3 {
        let mut world = world();
        world.submit(&limit_buy("a", 300, "2500"));
        world.answer_all();
        let order = world.broker.orders["1000"].order.clone();
        let wall = world.wall;
        let foreign = world.broker.place_elsewhere(order, wall);
        world.broker.fill("1000", 100);
        world.broker.fill(&foreign, 100);
        settle(&mut world);
        assert_eq!(fills(&mut world), ["OrderFilled a 1000", "OrderFilled 1001"]);
        // Events while the program is down were not reported.
        for _ in 0..restarts {
            world.restart(false);
        }
        world.broker.fill("1000", 200);
        world.broker.fill(&foreign, 50);
        world.log_in();
        settle(&mut world);
        for (number, cumulative) in [("1000", "300"), (foreign.as_str(), "150")] {
            let reported =
                world.reported.iter().map(|(_, event)| serde_json::to_value(event).unwrap());
            let reported: Vec<_> = reported
                .filter(|event| {
                    event["event"] == "OrderFilled" && event["venue_order_id"] == number
                })
                .collect();
            assert_eq!(reported.len(), 1, "{reported:?}");
            assert_eq!(reported[0]["cumulative_qty"], cumulative);
        }
        world.reported.clear();
        world.restart(false);
        world.log_in();
        settle(&mut world);
        assert_eq!(fills(&mut world), [""; 0]);
        world.list(OrderListFilter::default());
        world.answer_all();
        let listed = world.json("OrderListUpdated")["orders"].clone();
        assert_eq!(
            (&listed[0]["filled_qty"], &listed[1]["filled_qty"]),
            (&"300".into(), &"150".into())
        );
        world.submit(&limit_buy("a", 300, "2500"));
        assert_eq!(world.json("SubmitOrderResult")["status"], "FILLED");
    }
}

/// Numbers of orders and of fills begin again: those of another day's order are not reported yet.
#[test]
fn p130_a_fill_of_another_order_of_that_number_is_reported() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.broker.fill("1000", 100);
    settle(&mut world);
    assert_eq!(fills(&mut world), ["OrderFilled a 1000"]);
    world.restart(false);
    world.broker = crate::broker::Broker { cash: 1_000_000_000, ..Default::default() };
    world.pass(Duration::from_secs(4 * 24 * 3_600));
    world.log_in();
    world.password("0000");
    world.submit(&limit_buy("b", 100, "2500"));
    world.answer_all();
    world.broker.fill("1000", 100);
    settle(&mut world);
    assert_eq!(fills(&mut world), ["OrderFilled b 1000"]);
}

#[test]
fn rows_have_the_tags_of_the_dialect_and_the_type_of_a_trigger() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    for (with, tags) in
        [(false, serde_json::Value::Null), (true, serde_json::json!(["close_strategy=funari"]))]
    {
        world.list(OrderListFilter::default());
        let Some(InFlight::Request { request, .. }) = &world.in_flight else { panic!() };
        let mut rows = world.broker.take(request, world.wall).lists["rows"].clone();
        if with {
            rows[0].retain(|field| field.name != "trigger");
            rows[0].push(Field::new("trigger", "2600"));
            rows[0].push(Field::new("tags", "close_strategy=funari"));
        }
        world.answer_with(|id| {
            let mut answered = crate::broker::answer(id, "", vec![]);
            answered.lists.insert("rows".to_owned(), rows);
            answered
        });
        let row = world.json("OrderListUpdated")["orders"][0].clone();
        assert_eq!(row["tags"], tags);
        assert_eq!(row["trigger_type"].as_str(), with.then_some("LAST"));
        world.events();
    }
}
