//! Orders whose answers were lost, and the rows of lists that may be theirs (specification 4, P19, P20).

use std::time::Duration;

use domain::order_mapping::Field;
use domain::{OrderSide, OrderStatus, OrderType, Quantity};
use ipc::{OrderListFilter, SubmitOrderRequest};
use orders::{DeskRules, OrderPhase};
use venues::web_broker::CallFailure;

use crate::world::{InFlight, World, limit_buy};

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn world() -> World {
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.reported.clear();
    world
}

/// Passes time for all lists that the desk requests by itself, and for notices.
fn settle(world: &mut World) {
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
        world.deliver_all();
    }
}

/// An order like a desk's one, placed elsewhere.
fn place(
    world: &mut World,
    change: impl FnOnce(&mut domain::order_mapping::BrokerOrder),
) -> String {
    let mut order = domain::order_mapping::BrokerOrder {
        symbol: "7203".into(),
        side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(100),
        price: "2500".parse().ok(),
        trigger_price: None,
        time_in_force: domain::TimeInForce::Day,
        expire_date: None,
        tags: Vec::new(),
    };
    change(&mut order);
    let wall = world.wall;
    world.broker.place_elsewhere(order, wall)
}

/// An order whose request never reached the broker, and whose answer was lost.
fn lost(world: &mut World, order: &SubmitOrderRequest) {
    world.submit(order);
    world.lose(false);
}

#[test]
fn a_lost_order_of_an_earlier_day_hides_no_order_of_today() {
    let mut world = world();
    world.submit(&limit_buy("old", 100, "2500"));
    world.pass(DAY);
    world.restart(false);
    world.log_in();
    world.password("0000");
    settle(&mut world);
    world.events();
    let number = place(&mut world, |_| ());
    settle(&mut world);
    world.broker.fill(&number, 40);
    world.deliver_all();
    assert_eq!(world.events(), [format!("OrderFilled {number}")]);
    world.cancel(None, Some(&number));
    world.answer_all();
    world.deliver_all();
    let reported = world.events();
    assert_eq!(reported, ["OrderPendingCancel".to_owned(), format!("OrderCanceled {number}")]);
    world.submit(&limit_buy("old", 100, "2500"));
    assert_eq!(world.events(), ["SubmitOrderResult old IdempotentReplay"], "it stays unknown");
}

#[test]
fn the_row_of_another_lost_order_is_no_reason_to_doubt() {
    for restarts in [false, true] {
        let mut world = world();
        lost(&mut world, &limit_buy("a", 100, "2400"));
        world.submit(&limit_buy("b", 100, "2410"));
        world.lose(true);
        if restarts {
            world.restart(false);
            world.log_in();
        }
        // The first list is requested when both must be in it.
        world.pass(Duration::from_secs(6));
        settle(&mut world);
        let reported: Vec<String> = world.events();
        let end = ["OrderAccepted b 1000", "OrderRejected a INTERNAL_ERROR"].map(str::to_owned);
        assert!(end.iter().all(|one| reported.contains(one)), "{restarts}: {reported:?}");
        assert!(
            !reported.iter().any(|one| one.contains("OrderDiscrepancy")),
            "{restarts}: {reported:?}"
        );
        assert!(world.log.lines("rejected")[0].contains("NOT_AT_BROKER: "));
    }
}

/// These are other orders: what no change can make of an order, orders placed long before or after it, and
/// orders that the desk knew before.
#[test]
fn an_order_that_a_lost_one_cannot_have_become_is_no_reason_to_doubt() {
    type Placed = (&'static str, fn(&mut World));
    let sooner: [Placed; 1] = [("known before", |world| {
        place(world, |_| ());
        settle(world);
    })];
    let later: [Placed; 3] = [
        ("more shares", |world| drop(place(world, |order| order.quantity = Quantity::new(200)))),
        ("another side", |world| drop(place(world, |order| order.side = OrderSide::Sell))),
        ("another symbol", |world| drop(place(world, |order| order.symbol = "6758".into()))),
    ];
    let cases = sooner.map(|case| (case, true)).into_iter();
    for ((name, other), is_sooner) in cases.chain(later.map(|case| (case, false))) {
        let mut world = world();
        if is_sooner {
            other(&mut world);
        }
        lost(&mut world, &limit_buy("a", 100, "2500"));
        if !is_sooner {
            other(&mut world);
        }
        settle(&mut world);
        let reported = world.events();
        assert!(
            reported.contains(&"OrderRejected a INTERNAL_ERROR".to_owned()),
            "{name}: {reported:?}"
        );
        assert!(
            !reported.iter().any(|one| one.contains("OrderDiscrepancy")),
            "{name}: {reported:?}"
        );
    }
    let mut world = world();
    place(&mut world, |_| ());
    world.pass(Duration::from_secs(601));
    world.restart(false);
    lost_after_login(&mut world);
}

/// The same before the desk began: it knows only when the orders were placed.
fn lost_after_login(world: &mut World) {
    world.disconnect();
    world.login_again();
    world.answer();
    world.password("0000");
    // The list is not answered before the order.
    world.lose(false);
    world.events();
    lost(world, &limit_buy("a", 100, "2500"));
    settle(world);
    let reported = world.events();
    assert!(reported.contains(&"OrderRejected a INTERNAL_ERROR".to_owned()), "{reported:?}");
}

/// An ambiguous order is reported with its reason, hides no other order, and ends with its reason: each list is
/// judged by itself.
#[test]
fn doubt_lasts_as_long_as_its_reason() {
    for restarts in [false, true] {
        let mut world = world();
        lost(&mut world, &limit_buy("a", 100, "2500"));
        let number = place(&mut world, |order| order.price = "2490".parse().ok());
        if restarts {
            world.restart(false);
            world.log_in();
            world.password("0000");
        }
        settle(&mut world);
        let reported = world.json("OrderDiscrepancy");
        assert_eq!(
            (&reported["discrepancy"], &reported["client_order_id"]),
            (&"ambiguous".into(), &"a".into())
        );
        let text = reported["message"].as_str().unwrap();
        assert!(text.starts_with("order 1000 of the list may be it"), "{text}");
        world.events();
        settle(&mut world);
        world.cancel(None, Some(&number));
        world.answer_all();
        world.deliver_all();
        let reported = world.events();
        assert_eq!(reported, ["OrderPendingCancel".to_owned(), format!("OrderCanceled {number}")]);
        world.submit(&limit_buy("a", 100, "2500"));
        assert_eq!(world.events(), ["SubmitOrderResult a IdempotentReplay"], "{restarts}");
        world.broker.orders.clear();
        world.list(OrderListFilter::default());
        world.answer_all();
        assert_eq!(world.events()[0], "OrderRejected a INTERNAL_ERROR", "{restarts}");
    }
}

/// Specification 4, P39: the broker has an order that settles a position with the side that its tag means.
#[test]
fn an_order_that_settles_a_position_is_found_by_its_row_whatever_its_side() {
    let cases = [
        (OrderSide::Sell, "close_action=physical_settle_buy", OrderSide::Buy),
        (OrderSide::Buy, "close_action=physical_settle_buy", OrderSide::Buy),
        (OrderSide::Buy, "close_action=physical_settle_sell", OrderSide::Sell),
    ];
    for (side, action, at_broker) in cases {
        for (is_lost, restarts) in [(false, false), (true, false), (true, true)] {
            let mut world = World::ready(DeskRules::default(), false);
            world.broker.account.positions.insert("201".to_owned(), 100);
            world.broker.account.are_short = at_broker == OrderSide::Sell;
            let tags = ["cash_margin=margin_credit_repay", action, "tategyoku=201"];
            let mut order = limit_buy("g", 100, "2500");
            order.order_side = side;
            (order.order_type, order.price) = (OrderType::Market, None);
            order.tags = Some(tags.map(str::to_owned).to_vec());
            world.submit(&order);
            while matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id != "new")
            {
                world.answer();
            }
            world.reported.clear();
            let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take()
            else {
                panic!("{action}: {:?}", world.sent);
            };
            let answered = world.broker.take(&request, world.wall);
            world.broker.orders.get_mut("1000").unwrap().order.side = at_broker;
            if is_lost {
                world.give(ticket, sent_p_no, Err(CallFailure::Unknown("reset".to_owned())));
            } else {
                world.give(ticket, sent_p_no, Ok(answered));
                assert!(world.events().contains(&"OrderAccepted g 1000".to_owned()));
            }
            if restarts {
                world.restart(false);
                world.login_again();
                world.answer();
            }
            for _ in 0..60 {
                world.pass(Duration::from_millis(200));
                while matches!(world.in_flight, Some(InFlight::Request { .. })) {
                    let Some(InFlight::Request { ticket, request, sent_p_no }) =
                        world.in_flight.take()
                    else {
                        panic!("sent");
                    };
                    let mut answered = world.broker.take(&request, world.wall);
                    for row in answered.lists.get_mut("rows").unwrap() {
                        row.retain(|field| field.name != "tags");
                        row.push(Field::new("tags", action));
                    }
                    world.give(ticket, sent_p_no, Ok(answered));
                }
            }
            let reported = world.events();
            assert_eq!(
                reported.contains(&"OrderAccepted g 1000".to_owned()),
                is_lost,
                "{reported:?}"
            );
            assert!(!reported.iter().any(|one| one.contains("OrderDiscrepancy")), "{reported:?}");
            world.broker.end("1000", OrderStatus::Canceled);
            world.connect();
            world.deliver_all();
            assert!(world.events().contains(&"OrderCanceled g 1000".to_owned()));
        }
    }
}

/// A notice of a number that no list has delays the judgement of a lost order for a limited time, and is
/// reported.
#[test]
fn a_notice_of_an_unknown_order_leaves_no_order_unknown_for_ever() {
    let mut world = world();
    lost(&mut world, &limit_buy("a", 100, "2500"));
    world.connect();
    let fields = [("symbol", "7203")].map(|(name, value)| Field::new(name, value)).to_vec();
    world.broker.notify("accepted", "29999999", fields);
    world.deliver_all();
    for _ in 0..6 {
        settle(&mut world);
    }
    let reported = world.events();
    assert!(reported.contains(&"OrderRejected a INTERNAL_ERROR".to_owned()), "{reported:?}");
    assert!(reported.iter().any(|one| one.starts_with("OrderDiscrepancy")), "{reported:?}");
}
