//! Wall clocks that are set wrong, and machines that sleep.

use std::time::Duration;

use orders::DeskRules;

use crate::world::{World, limit_buy};

const DAY_NANOS: u64 = 86_400 * 1_000_000_000;

fn world() -> World {
    let mut world = World::ready(DeskRules::default(), false);
    world.events();
    world
}

/// Specification 4, P23: a clock that is a day ahead for a moment ends no day. So the same command never makes
/// a second order.
#[test]
fn a_clock_that_is_ahead_for_a_moment_frees_no_id() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.broker.end("1000", domain::OrderStatus::Canceled);
    world.deliver_all();
    let right = world.wall;
    world.wall = right.plus_nanos(DAY_NANOS);
    world.pass(Duration::from_secs(1));
    world.wall = right;
    world.pass(Duration::from_secs(1));
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["SubmitOrderResult a 1000 IdempotentReplay"]);
    assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "new").count(), 1);
}

/// Specification 4, P23a: a command that is queued while the machine sleeps is not sent hours later.
#[test]
fn what_waited_through_a_sleep_is_not_sent() {
    let mut world = world();
    world.submit(&limit_buy("first", 100, "2500"));
    world.submit(&limit_buy("second", 100, "2500"));
    world.events();
    world.wall = world.wall.plus_nanos(8 * 3_600 * 1_000_000_000);
    world.answer_all();
    world.pass(Duration::from_millis(200));
    let reported = world.events();
    assert!(reported.contains(&"OrderRejected second INTERNAL_ERROR".to_owned()), "{reported:?}");
    assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "new").count(), 1);
}
