//! Whether the venue takes orders, by frames, masters and answers of the broker.

use ipc::OrderListFilter;
use orders::{DeskRules, OrderPhase};

use crate::broker::refused;
use crate::world::{World, limit_buy};

/// Without balance guards, so that the order itself is the first request.
fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

#[test]
fn the_venue_is_closed_by_the_broker_s_word_only() {
    let mut world = World::ready(rules(), false);
    world.events();
    world.broker.notify("closed", "", vec![]);
    world.deliver_all();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected a MARKET_CLOSED"]);
    world.broker.notify("open", "", vec![]);
    world.deliver_all();
    world.broker.notify("ended", "", vec![]);
    world.deliver_all();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["OrderSubmitted a"], "P8: an ended stream freezes nothing");
    world.answer();
    world.broker.notify("night", "", vec![]);
    world.broker.notify("open", "", vec![]);
    world.deliver_all();
    world.events();
    world.submit(&limit_buy("b", 100, "2500"));
    assert_eq!(world.events(), ["SecondPasswordRequired"], "forgotten at the night's closing");
}

/// Specification 4, P2: the newest of masters, frames and answers counts.
#[test]
fn the_last_word_says_whether_the_venue_is_open() {
    let order = |world: &mut World, id: &str| {
        world.events();
        world.submit(&limit_buy(id, 100, "2500"));
        let reported = world.events();
        world.answer_all();
        reported
    };
    let (open, closed) = (["OrderSubmitted a"], ["OrderRejected a MARKET_CLOSED"]);
    for is_open in [None, Some(true)] {
        let mut world = World::new(rules(), false);
        world.is_open = is_open;
        world.log_in();
        world.password("0000");
        assert_eq!(order(&mut world, "a"), open);
    }
    let mut world = World::new(rules(), false);
    world.is_open = Some(false);
    world.log_in();
    world.password("0000");
    // Lists are answered outside the hours, too.
    world.list(OrderListFilter::default());
    world.answer_all();
    assert_eq!(order(&mut world, "a"), closed);
    world.broker.notify("open", "", vec![]);
    world.deliver_all();
    assert_eq!(order(&mut world, "a"), open);
    world.broker.notify("closed", "", vec![]);
    world.deliver_all();
    assert_eq!(order(&mut world, "b"), ["OrderRejected b MARKET_CLOSED"]);
    world.is_open = Some(true);
    world.streamed = world.broker.notices.len();
    world.login_again();
    world.answer_all();
    world.password("0000");
    assert_eq!(order(&mut world, "b"), ["OrderSubmitted b"]);
    world.submit(&limit_buy("c", 100, "2500"));
    world.answer_with(|id| refused(id, "closed"));
    assert_eq!(order(&mut world, "d"), ["OrderRejected d MARKET_CLOSED"]);
}

/// Specification 4, P2, P34: notices of orders need a later phase, the state of the venue does not.
#[test]
fn the_venue_s_word_counts_in_every_phase() {
    for phase in OrderPhase::ALL {
        let mut world = World::ready(DeskRules { phase, ..DeskRules::default() }, false);
        world.events();
        let mut order = limit_buy("a", 100, "2500");
        (order.order_type, order.price) = (domain::OrderType::Market, None);
        world.broker.notify("closed", "", vec![]);
        world.deliver_all();
        world.submit(&order);
        assert_eq!(world.events(), ["OrderRejected a MARKET_CLOSED"], "{phase}");
        world.broker.notify("night", "", vec![]);
        world.broker.notify("open", "", vec![]);
        world.deliver_all();
        world.submit(&order);
        assert_eq!(world.events(), ["SecondPasswordRequired"], "{phase}");
        world.password("0000");
        world.submit(&order);
        world.answer_all();
        world.broker.fill("1000", 100);
        world.deliver_all();
        world.answer_all();
        let is_filled = world.events().contains(&"OrderFilled a 1000".to_owned());
        assert_eq!(is_filled, phase.takes_notices(), "{phase}");
        // Unreadable frames do not count in a phase without notices.
        world.broker.notify("garbage", "", vec![]);
        world.deliver_all();
        assert_eq!(world.events().is_empty(), !phase.takes_notices(), "{phase}");
    }
}
