//! Numbers of the broker, which are unique on one day only (specification 4, P28).

use std::time::Duration;

use domain::TimeInForce;
use ipc::SubmitOrderRequest;
use orders::DeskRules;

use crate::world::{World, limit_buy, masters};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// An order up to 2026-11-25.
fn dated(id: &str) -> SubmitOrderRequest {
    let last = masters().days.as_ref().unwrap().next[1];
    let mut order = limit_buy(id, 100, "2500");
    order.time_in_force = TimeInForce::Gtd;
    let seconds = 15 * 3_600 * 1_000_000_000;
    order.expire_time_ns = Some(domain::TsNanos::from_jst(last, seconds).unwrap().nanos());
    order
}

fn settle(world: &mut World) {
    for _ in 0..60 {
        world.answer_all();
        world.pass(Duration::from_millis(200));
    }
}

/// An order that lives on from another day does not stand in the way of today's of the same number, and a
/// person who means the one never cancels the other.
#[test]
fn an_order_of_another_day_has_no_claim_on_todays_number() {
    for restarts in [false, true] {
        let mut world = World::ready(DeskRules::default(), false);
        world.submit(&dated("old"));
        world.answer_all();
        world.disconnect();
        // It is cancelled elsewhere, and the broker begins to count again.
        world.broker.orders.clear();
        world.broker.notices.clear();
        world.pass(4 * DAY);
        if restarts {
            world.restart(false);
        }
        let now = world.now();
        world.desk.login(None, now);
        world.collect();
        world.answer();
        world.password("0000");
        world.events();
        world.submit(&limit_buy("new", 100, "2500"));
        // The list that is on its way comes first.
        world.answer_all();
        let told = world.events();
        assert!(told.contains(&"OrderAccepted new 1000".to_owned()), "{restarts}: {told:?}");
        world.cancel(Some("old"), None);
        let told = world.events();
        assert_eq!(told, ["OrderRejected old ORDER_STATUS_UNKNOWN"], "{restarts}");
        assert!(!world.sent.contains(&"cancel".to_owned()));
        settle(&mut world);
        let told = world.events();
        assert!(!told.iter().any(|one| one.contains("new")), "{restarts}: {told:?}");
        // When a list has shown that the old one is over, the number is the new one's alone.
        world.cancel(Some("new"), None);
        world.answer_all();
        assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "cancel").count(), 1);
    }
}

/// Specification 4, P23: one list without an order that should work on is no proof that it is over.
#[test]
fn an_order_with_a_date_of_its_own_outlives_a_list_without_it() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&dated("g"));
    world.answer_all();
    let hidden = std::mem::take(&mut world.broker.orders);
    world.pass(3 * DAY);
    world.restart(false);
    let now = world.now();
    world.desk.login(None, now);
    world.collect();
    settle(&mut world);
    world.pass(Duration::from_secs(120));
    settle(&mut world);
    let told = world.events();
    assert!(told.iter().any(|one| one.starts_with("OrderDiscrepancy")), "{told:?}");
    world.broker.orders = hidden;
    world.password("0000");
    world.submit(&dated("g"));
    assert_eq!(world.json("SubmitOrderResult")["outcome"], "IdempotentReplay");
    assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "new").count(), 1);
}
