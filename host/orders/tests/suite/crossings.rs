//! Crossings that random play has found.
//!
//! In each, an order that works counted as ended, or an ended order as working.

use std::time::Duration;

use ipc::OrderListFilter;
use orders::{DeskRules, OrderPhase};

use crate::broker::answer;
use crate::world::{World, limit_buy};

fn world(phase: OrderPhase) -> World {
    let mut world = World::ready(DeskRules { phase, ..DeskRules::default() }, false);
    world.reported.clear();
    world
}

/// An order of so many shares, which the broker has under 1000.
fn placed(world: &mut World, shares: u64) {
    world.submit(&limit_buy("a", shares, "2500"));
    world.answer_all();
    world.deliver_all();
    world.events();
}

/// Passes time for a list that resolves unknown outcomes.
fn wait(world: &mut World) {
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
        world.deliver_all();
    }
}

/// State of the order: a resend of it, which sends no request, has it in its reply.
fn status(world: &mut World, shares: u64) -> String {
    let sent = world.sent.len();
    world.submit(&limit_buy("a", shares, "2500"));
    let reported = world.json("SubmitOrderResult");
    assert_eq!((reported["outcome"].as_str(), world.sent.len()), (Some("IdempotentReplay"), sent));
    world.reported.clear();
    reported["status"].as_str().unwrap().to_owned()
}

/// Specification 4, P27, P28: the fill comes before the answer by which the order has more shares.
#[test]
fn a_fill_that_crosses_a_change_to_more_shares_ends_nothing() {
    for is_lost in [false, true] {
        let mut world = world(OrderPhase::O2);
        placed(&mut world, 100);
        world.modify("a", Some("300"), None);
        world.events();
        world.reach();
        world.broker.fill("1000", 100);
        world.deliver_all();
        assert_eq!(world.events(), [""; 0], "it is not known yet what is left");
        if is_lost {
            world.lose(true);
            wait(&mut world);
        } else {
            world.answer();
        }
        assert_eq!(world.json("OrderUpdated")["quantity"], "300");
        let fill = world.json("OrderFilled");
        assert_eq!(
            (fill["cumulative_qty"].as_str(), fill["leaves_qty"].as_str()),
            (Some("100"), Some("200"))
        );
        assert_eq!(status(&mut world, 100), "PARTIALLY_FILLED");
        world.cancel(Some("a"), None);
        world.answer_all();
        world.deliver_all();
        assert_eq!(world.events(), ["OrderPendingCancel a", "OrderCanceled a 1000"]);
    }
}

/// The change was too late: the order is filled, and that is reported.
#[test]
fn a_fill_that_crosses_a_change_that_is_refused_ends_the_order() {
    for is_lost in [false, true] {
        let mut world = world(OrderPhase::O2);
        placed(&mut world, 100);
        world.modify("a", Some("300"), None);
        world.broker.fill("1000", 100);
        world.deliver_all();
        if is_lost {
            world.lose(false);
            wait(&mut world);
        } else {
            world.answer_all();
        }
        let reported = world.events();
        assert!(reported.contains(&"OrderFilled a 1000".to_owned()), "{reported:?}");
        assert_eq!(status(&mut world, 100), "FILLED");
    }
}

/// The log does not record changes. The list has them, and fills wait for it.
#[test]
fn an_order_that_was_changed_before_a_restart_has_the_shares_of_the_list() {
    for (shares, changed, filled, left, state) in
        [(100, "300", 100, "200", "PARTIALLY_FILLED"), (500, "100", 100, "0", "FILLED")]
    {
        let mut world = world(OrderPhase::O2);
        placed(&mut world, shares);
        world.modify("a", Some(changed), None);
        world.answer_all();
        world.restart(true);
        world.broker.fill("1000", filled);
        world.reported.clear();
        world.login_again();
        // The login is answered, its list is not.
        world.answer();
        world.connect();
        world.deliver_all();
        assert!(!world.events().iter().any(|event| event.starts_with("OrderFilled")));
        world.answer_all();
        assert_eq!(world.json("OrderFilled")["leaves_qty"], left);
        world.password("0000");
        assert_eq!(status(&mut world, shares), state);
    }
}

/// Without notices of fills, the list shows that nothing is left to cancel or to change.
#[test]
fn a_pending_operation_ends_when_the_list_has_the_order_filled() {
    for is_cancel in [false, true] {
        let mut world = world(OrderPhase::O1);
        placed(&mut world, 100);
        if is_cancel {
            world.cancel(Some("a"), None);
        } else {
            world.modify("a", Some("300"), None);
        }
        world.lose(false);
        world.broker.fill("1000", 100);
        assert!(status(&mut world, 100).starts_with("PENDING"));
        wait(&mut world);
        let reported = world.json("OrderRejected");
        let text = reported["reason_text"].as_str().unwrap();
        assert!(text.ends_with("_NOT_DONE: the broker's list has the order filled"), "{text}");
        assert_eq!(status(&mut world, 100), "FILLED", "by the list's word; no fill was told");
        assert!(!world.events().iter().any(|event| event.starts_with("OrderFilled")));
    }
}

/// The order gets more shares elsewhere; the fill comes before the list with their number.
#[test]
fn a_fill_that_follows_a_change_elsewhere_ends_nothing() {
    let mut world = world(OrderPhase::O2);
    placed(&mut world, 100);
    world.broker.change_elsewhere("1000", 300);
    world.broker.fill("1000", 100);
    world.deliver_all();
    assert_eq!(world.events(), [""; 0], "it is not known yet what is left");
    wait(&mut world);
    assert_eq!(world.json("OrderUpdated")["quantity"], "300");
    assert_eq!(world.json("OrderFilled")["leaves_qty"], "200");
    assert_eq!(status(&mut world, 100), "PARTIALLY_FILLED");
    // And to fewer.
    world.broker.change_elsewhere("1000", 200);
    world.broker.fill("1000", 100);
    world.deliver_all();
    wait(&mut world);
    assert_eq!(status(&mut world, 100), "FILLED");
}

/// Without a list the fill is reported all the same: late rather than never.
#[test]
fn a_fill_waits_for_a_list_no_longer_than_for_an_answer() {
    let mut world = world(OrderPhase::O2);
    placed(&mut world, 100);
    world.broker.change_elsewhere("1000", 300);
    world.broker.fill("1000", 100);
    world.list(OrderListFilter::default());
    world.answer_with(|id| answer(id, "2", vec![]));
    world.deliver_all();
    world.events();
    world.pass(Duration::from_secs(29));
    assert_eq!(world.events(), [""; 0]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.events(), ["OrderFilled a 1000"]);
}
