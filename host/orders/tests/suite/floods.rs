//! A broker that sends much unreadable data: clients get a count of it, not all of it.

use std::time::Duration;

use domain::order_mapping::Field;
use ipc::OrderListFilter;
use orders::limits::{DISCREPANCIES_PER_MINUTE_MAX, UNREADABLE_ROWS_REPORTED_MAX};
use orders::{DeskRules, OrderPhase};

use crate::world::{World, limit_buy};

fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.reported.clear();
    world
}

/// The discrepancies since the last look, by their messages.
fn discrepancies(world: &mut World) -> Vec<String> {
    let reported = std::mem::take(&mut world.reported).into_iter().map(|(_, event)| event);
    let reported = reported.map(|event| serde_json::to_value(event).unwrap());
    let ours = reported.filter(|event| event["event"] == "OrderDiscrepancy");
    ours.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rows_that_cannot_be_read_are_counted_past_the_first_ones() {
    let mut world = world();
    world.list(OrderListFilter::default());
    world.answer_with(|id| {
        let mut answered = crate::broker::answer(id, "", vec![]);
        let row = |number: u32| vec![Field::new("number", number.to_string())];
        answered.lists.insert("rows".to_owned(), (0..49_000).map(row).collect());
        answered
    });
    let reported = discrepancies(&mut world);
    assert_eq!(reported.len(), UNREADABLE_ROWS_REPORTED_MAX + 1);
    let more = format!("{} more rows", 49_000 - UNREADABLE_ROWS_REPORTED_MAX);
    assert!(reported.last().unwrap().contains(&more), "{reported:?}");
}

#[test]
fn what_cannot_be_read_is_counted_past_so_many_in_a_minute() {
    let mut world = world();
    let most = usize::try_from(DISCREPANCIES_PER_MINUTE_MAX).unwrap();
    let now = world.now();
    for round in 0..most + 900 {
        match round % 2 {
            0 => world.desk.frame(&[Field::new("kind", "nothing")], now),
            _ => world.desk.unreadable_frame("no key".to_owned(), now),
        }
    }
    world.collect();
    assert_eq!(discrepancies(&mut world).len(), most);
    world.pass(Duration::from_secs(59));
    assert_eq!(discrepancies(&mut world).len(), 0);
    world.pass(Duration::from_secs(1));
    let reported = discrepancies(&mut world);
    assert!(
        reported.len() == 1 && reported[0].starts_with("900 more of this kind"),
        "{reported:?}"
    );
    world.desk.unreadable_frame("no key".to_owned(), world.now());
    world.collect();
    assert_eq!(discrepancies(&mut world), ["no key"], "another minute");
}

/// Reports about an order of ours are never left out.
#[test]
fn a_report_about_an_order_of_ours_is_never_left_out() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    let now = world.now();
    for _ in 0..1_000 {
        world.desk.unreadable_frame("no key".to_owned(), now);
    }
    world.broker.notify("fill-canceled", "1000", vec![]);
    world.deliver_all();
    let reported = discrepancies(&mut world);
    assert!(
        reported.iter().any(|message| message.contains("took a fill back")),
        "{}",
        reported.len()
    );
}
