//! Orders that live on to another day than that of their submit (specification 4, P23, P28).
//!
//! They have an expiry date, or were placed in the evening for the next business day.

use std::time::Duration;

use domain::order_mapping::BrokerOrder;
use domain::{OrderSide, OrderStatus, OrderType, Quantity, TimeInForce, TsNanos};
use ipc::{OrderListFilter, SubmitOrderRequest};
use orders::{DeskRules, OrderPhase};

use crate::reconciliation::{outcome, permutations};
use crate::world::{MORNING, World, limit_buy, masters};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// An order up to the broker's last day, 2026-11-25.
fn dated(id: &str, quantity: u64) -> SubmitOrderRequest {
    let last = masters().days.as_ref().unwrap().next[1];
    let mut order = limit_buy(id, quantity, "2500");
    order.time_in_force = TimeInForce::Gtd;
    order.expire_time_ns = TsNanos::from_jst(last, 86_399_999_999_999).map(TsNanos::nanos);
    order
}

/// How an order of Friday lives on to Tuesday, 2026-11-24, 09:30 in Japan.
#[derive(Debug, Clone, Copy)]
enum Carried {
    /// With an expiry date.
    Dated,
    /// Placed in the evening, when the broker takes orders for the next business day.
    Evening,
    /// Placed elsewhere, with an expiry date.
    Foreign,
}

const CARRIED: [Carried; 3] = [Carried::Dated, Carried::Evening, Carried::Foreign];

impl Carried {
    fn order(self) -> SubmitOrderRequest {
        match self {
            Self::Evening => limit_buy("g", 300, "2500"),
            Self::Dated | Self::Foreign => dated("g", 300),
        }
    }

    /// The desk on Tuesday morning, of the same process or a new one, logged out of Friday's session.
    fn world(self, restarts: bool) -> World {
        let mut world = World::new(DeskRules::default(), false);
        if matches!(self, Self::Evening) {
            world.wall = MORNING.plus_nanos(11 * 3_600_000_000_000);
        }
        world.log_in();
        world.password("0000");
        if matches!(self, Self::Foreign) {
            let last = masters().days.as_ref().unwrap().next[1];
            let order = BrokerOrder {
                symbol: "7203".into(),
                side: OrderSide::Buy,
                order_type: OrderType::Limit,
                quantity: Quantity::new(300),
                price: "2500".parse().ok(),
                trigger_price: None,
                time_in_force: TimeInForce::Gtd,
                expire_date: Some(last),
                tags: Vec::new(),
            };
            let wall = world.wall;
            world.broker.place_elsewhere(order, wall);
        } else {
            world.submit(&self.order());
            world.answer_all();
        }
        world.deliver_all();
        // The stream begins anew with each day.
        world.broker.notices.clear();
        let tuesday = MORNING.plus_nanos(4 * 86_400_000_000_000);
        world.disconnect();
        if restarts {
            world.restart(false);
        }
        world.pass(Duration::from_nanos(tuesday.nanos() - world.wall.nanos()));
        world.reported.clear();
        world
    }
}

fn settle(world: &mut World) {
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
        world.deliver_all();
    }
}

fn filled(world: &mut World) -> Vec<String> {
    let reported = world.events();
    reported.into_iter().filter(|one| !one.contains("List") && one.starts_with("Order")).collect()
}

/// Repeated notices of the broker are known, and the id stays that order's on its last day, too.
#[test]
fn a_fill_of_an_order_of_an_earlier_day_is_reported_once() {
    for carried in CARRIED {
        for restarts in [false, true] {
            let mut world = carried.world(restarts);
            world.log_in();
            settle(&mut world);
            world.events();
            world.broker.fill("1000", 300);
            settle(&mut world);
            let id = if matches!(carried, Carried::Foreign) { "" } else { "g " };
            let reported = filled(&mut world);
            assert_eq!(reported, [format!("OrderFilled {id}1000")], "{carried:?} {restarts}");
            for _ in 0..2 {
                world.disconnect();
                world.connect();
                settle(&mut world);
                let reported = filled(&mut world);
                assert!(reported.is_empty(), "{carried:?} {restarts}: {reported:?}");
            }
            world.list(OrderListFilter::default());
            world.answer_all();
            let listed = world.json("OrderListUpdated")["orders"][0]["client_order_id"].clone();
            assert_eq!(listed.as_str(), (!id.is_empty()).then_some("g"), "{carried:?}");
            if id.is_empty() {
                continue;
            }
            world.events();
            world.submit(&carried.order());
            let reported = world.json("SubmitOrderResult");
            assert_eq!(
                (&reported["outcome"], &reported["status"]),
                (&"IdempotentReplay".into(), &"FILLED".into())
            );
            // On the next day the id is free, and a repeated notice of the fill has no effect.
            world.pass(DAY);
            world.pass(Duration::from_secs(60));
            world.events();
            world.password("0000");
            world.submit(&limit_buy("g", 100, "2500"));
            world.answer_all();
            world.disconnect();
            world.connect();
            settle(&mut world);
            let reported = filled(&mut world);
            assert_eq!(
                reported,
                ["OrderSubmitted g", "OrderAccepted g 1001"],
                "{carried:?} {restarts}"
            );
        }
    }
}

/// After a restart the day's notices and the first list come in any order.
#[test]
fn no_order_of_notices_and_list_makes_a_difference_to_an_order_of_an_earlier_day() {
    let day = |carried: Carried, restarts: bool, is_filled: bool| {
        let mut world = carried.world(restarts);
        world.broker.fill("1000", 100);
        if is_filled {
            world.broker.fill("1000", 100);
            world.broker.fill("1000", 100);
        } else {
            world.broker.fill("1000", 50);
            world.broker.end("1000", OrderStatus::Canceled);
        }
        world.login_again();
        world.answer();
        world.connect();
        world
    };
    for carried in CARRIED {
        for (restarts, is_filled) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut expected = None;
            for order in permutations(4) {
                let mut world = day(carried, restarts, is_filled);
                let notices: Vec<_> = world.stream.drain(..).collect();
                assert_eq!(notices.len(), 3);
                for step in &order {
                    match notices.get(*step) {
                        Some(notice) => {
                            world.stream.push_back(notice.clone());
                            world.deliver(0);
                        }
                        None => world.answer_all(),
                    }
                }
                let reported = outcome(&mut world);
                let fills = reported.0.keys().filter(|one| one.starts_with("OrderFilled")).count();
                let ends = usize::from(!is_filled && !matches!(carried, Carried::Foreign));
                let name = format!("{carried:?} {restarts} {is_filled} {order:?}");
                assert_eq!(fills, if is_filled { 3 } else { 2 }, "{name}: {reported:?}");
                assert!(reported.0.values().all(|times| *times == 1), "{name}: {reported:?}");
                assert_eq!(reported.0.len(), fills + ends, "{name}: {reported:?}");
                assert_eq!(&reported, expected.get_or_insert_with(|| reported.clone()), "{name}");
            }
        }
    }
}

/// After a restart no notice repeats the fills of an earlier day: that is reported once. In the end the order
/// has the broker's state, without an invented fill.
#[test]
fn fills_of_days_before_are_missing_after_a_restart_and_the_order_ends_as_listed() {
    for carried in CARRIED {
        for restarts in [false, true] {
            let id = if matches!(carried, Carried::Foreign) { "" } else { "g " };
            let mut world = carried.world(restarts);
            if restarts {
                world.broker.fill("1000", 100);
                world.broker.notices.clear();
            }
            world.log_in();
            settle(&mut world);
            settle(&mut world);
            let missing = format!("OrderDiscrepancy {id}1000 fills_missing");
            let reported = filled(&mut world);
            assert_eq!(reported, vec![missing; usize::from(restarts)], "{carried:?}");
            for left in [1, 0] {
                world.broker.fill("1000", if left == 1 || restarts { 100 } else { 200 });
                settle(&mut world);
                let reported = filled(&mut world);
                assert_eq!(reported, [format!("OrderFilled {id}1000")], "{carried:?} {restarts}");
            }
            assert_eq!(world.broker.orders["1000"].status, OrderStatus::Filled);
            world.password("0000");
            world.cancel(None, Some("1000"));
            let reported = world.json("OrderRejected");
            assert_eq!(
                reported["reason_text"],
                "ORDER_STATE: the order is FILLED and takes no change or cancel now",
                "{carried:?} {restarts}"
            );
            world.events();
            settle(&mut world);
            let reported = world.events();
            assert!(reported.is_empty(), "{carried:?} {restarts}: {reported:?}");
        }
    }
}

/// A list often arrives before the notice of a fill that it has: that is no discrepancy.
#[test]
fn a_list_before_the_notice_of_a_fill_is_no_discrepancy() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&limit_buy("g", 300, "2500"));
    world.answer_all();
    settle(&mut world);
    world.events();
    world.broker.fill("1000", 300);
    world.list(OrderListFilter::default());
    world.answer_all();
    world.pass(Duration::from_secs(1));
    world.answer_all();
    world.deliver_all();
    settle(&mut world);
    assert_eq!(filled(&mut world), ["OrderFilled g 1000"]);
}

/// If no notices are taken, only the list shows that an order is filled.
#[test]
fn without_notices_an_order_is_filled_as_listed() {
    let rules = DeskRules { phase: OrderPhase::O1, ..DeskRules::default() };
    let mut world = World::new(rules, false);
    world.log_in();
    world.password("0000");
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.broker.fill("1000", 100);
    world.list(OrderListFilter::default());
    world.answer_all();
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.json("SubmitOrderResult")["status"], "FILLED");
}

/// An order that the broker no longer lists is compared with nothing.
#[test]
fn an_order_that_ended_on_a_day_before_is_forgotten_without_a_word() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.list(OrderListFilter::default());
    world.answer_all();
    world.broker.fill("1000", 100);
    world.deliver_all();
    world.disconnect();
    world.broker.orders.clear();
    world.broker.notices.clear();
    world.pass(4 * DAY);
    world.reported.clear();
    world.log_in();
    settle(&mut world);
    world.pass(Duration::from_secs(60));
    settle(&mut world);
    assert!(filled(&mut world).is_empty());
    // Its number belongs to another order now.
    world.password("0000");
    world.submit(&limit_buy("a", 200, "2500"));
    world.answer_all();
    let reported = filled(&mut world);
    assert_eq!(reported, ["OrderSubmitted a", "OrderAccepted a 1000"]);
}
