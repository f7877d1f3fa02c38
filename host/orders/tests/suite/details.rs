//! Fills that a list has and no notice told: the order's details have their prices. Told by whatever came
//! first, each counts once.

use std::time::Duration;

use domain::OrderStatus;
use domain::order_mapping::Field;
use ipc::OrderListFilter;
use orders::limits::DETAILS_TRIES_MAX;
use orders::{DeskRules, OrderPhase};

use crate::broker::{answer, refused};
use crate::reconciliation::permutations;
use crate::world::{InFlight, World, limit_buy};

/// Without balance guards, so that the order itself is the first request.
fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

/// A desk with an order `a` for so many shares, number 1000, whose notices were told.
fn placed(shares: u64) -> World {
    let mut world = World::with_details(rules());
    world.submit(&limit_buy("a", shares, "2600"));
    world.answer_all();
    world.deliver_all();
    settle(&mut world);
    world.told.clear();
    world.sent.clear();
    world
}

/// Time passes and all is answered; notices stay where they are.
fn settle(world: &mut World) {
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
}

/// A list is asked for, and everything that comes of it happens.
fn look(world: &mut World) {
    world.list(OrderListFilter::default());
    world.answer_all();
    settle(world);
}

/// The stream loses what the broker has told so far.
fn lose_notices(world: &mut World) {
    world.broker.notices.clear();
    world.streamed = 0;
}

/// Fills as they were told: shares, price, all so far, what is left.
fn fills(world: &World) -> Vec<[String; 4]> {
    let all = world.told.iter().map(|(_, event)| serde_json::to_value(event).unwrap());
    all.filter(|event| event["event"] == "OrderFilled")
        .map(|event| {
            ["last_qty", "last_price", "cumulative_qty", "leaves_qty"]
                .map(|name| event[name].as_str().unwrap().to_owned())
        })
        .collect()
}

fn fill(of: [&str; 4]) -> [String; 4] {
    of.map(str::to_owned)
}

fn count(world: &World, name: &str) -> usize {
    world.sent.iter().filter(|id| *id == name).count()
}

fn missing(world: &mut World) -> usize {
    let told = world.events();
    told.iter().filter(|event| event.contains("fills_missing")).count()
}

#[test]
fn fills_that_the_stream_lost_are_told_with_their_prices() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.broker.fill_at("1000", 200, "2502.5");
    lose_notices(&mut world);
    look(&mut world);
    assert_eq!(
        fills(&world),
        [fill(["100", "2501", "100", "200"]), fill(["200", "2502.5", "300", "0"])]
    );
    assert_eq!(count(&world, "detail"), 1);
    let told = world.json("OrderFilled");
    assert_eq!((&told["client_order_id"], &told["trade_id"]), (&"a".into(), &"D2".into()));
    assert_eq!(missing(&mut world), 0);
    // It is filled: nothing is asked any more.
    world.submit(&limit_buy("a", 300, "2600"));
    assert_eq!(world.json("SubmitOrderResult")["status"], "FILLED");
    world.sent.clear();
    look(&mut world);
    assert_eq!((count(&world, "detail"), fills(&world).len()), (0, 0));
}

/// A list that is quicker than the notice does not ask for details.
#[test]
fn details_are_asked_for_only_once_the_notice_has_had_its_time() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.list(OrderListFilter::default());
    world.answer_all();
    world.pass(Duration::from_secs(1));
    world.answer_all();
    world.deliver_all();
    settle(&mut world);
    assert_eq!((fills(&world).len(), count(&world, "detail")), (1, 0));
}

/// A notice that comes after the details is of a fill that was told.
#[test]
fn a_notice_that_comes_late_is_the_fill_that_the_details_told() {
    let mut world = placed(400);
    for price in ["2501", "2501", "2502"] {
        world.broker.fill_at("1000", 100, price);
    }
    look(&mut world);
    assert_eq!(fills(&world).len(), 3);
    world.deliver_all();
    world.disconnect();
    world.connect();
    world.deliver_all();
    assert_eq!(fills(&world).len(), 3, "each once");
    // One like the others is told by its own notice.
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    settle(&mut world);
    assert_eq!(fills(&world).last().unwrap(), &fill(["100", "2501", "400", "0"]));
    assert_eq!((fills(&world).len(), missing(&mut world)), (4, 0));
}

/// The details have no numbers: where a notice is taken for the fill that it is not, a later list finds it.
#[test]
fn equal_fills_of_which_one_notice_is_lost_come_to_their_number() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    look(&mut world);
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    assert_eq!(fills(&world).len(), 1, "it may be the notice of the first one");
    look(&mut world);
    assert_eq!(fills(&world).last().unwrap(), &fill(["100", "2501", "200", "100"]));
    assert_eq!((fills(&world).len(), missing(&mut world)), (2, 0));
}

/// Whatever of stream, lists and details tells a fill first, and in whatever order they come.
#[test]
fn each_fill_counts_once_in_every_order_of_notices_and_lists() {
    let prices = ["2501", "2501", "2502"];
    for lost in [None, Some(0), Some(2)] {
        for order in permutations(prices.len() + 1) {
            let mut world = placed(300);
            for price in prices {
                world.broker.fill_at("1000", 100, price);
            }
            world.pump();
            let notices: Vec<_> = world.stream.drain(..).collect();
            assert_eq!(notices.len(), prices.len());
            if let Some(lost) = lost {
                // The broker does not tell it again either.
                world.broker.notices.remove(world.broker.notices.len() - prices.len() + lost);
                world.streamed = world.broker.notices.len();
            }
            for step in &order {
                match notices.get(*step) {
                    Some(_) if lost == Some(*step) => {}
                    Some(notice) => {
                        world.stream.push_back(notice.clone());
                        world.deliver(0);
                    }
                    None => look(&mut world),
                }
            }
            look(&mut world);
            let mut told: Vec<String> =
                fills(&world).into_iter().map(|one| one[1].clone()).collect();
            told.sort();
            assert_eq!(told, prices, "{lost:?} {order:?}");
            assert_eq!(missing(&mut world), 0, "{lost:?} {order:?}");
        }
    }
}

/// Only what the details do not have either is missing, after some questions.
#[test]
fn what_the_details_do_not_have_is_missing() {
    for fails in ["short", "refused", "lost", "other order", "no rows"] {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        lose_notices(&mut world);
        if fails == "short" {
            world.broker.orders.get_mut("1000").unwrap().fills.clear();
        }
        for _ in 0..200 {
            world.pass(Duration::from_millis(500));
            while let Some(InFlight::Request { request, .. }) = &world.in_flight {
                match (request.id.as_str(), fails) {
                    ("detail", "refused") => world.answer_with(|id| refused(id, "no")),
                    ("detail", "lost") => world.lose(false),
                    ("detail", "other order") => {
                        world.answer_with(|id| answer(id, "", vec![Field::new("number", "7")]));
                    }
                    ("detail", "no rows") => {
                        world.answer_with(|id| answer(id, "", Vec::new()));
                    }
                    _ => world.answer(),
                }
            }
            if world.mono.as_millis().is_multiple_of(5_000) {
                world.list(OrderListFilter::default());
            }
        }
        assert_eq!(count(&world, "detail"), DETAILS_TRIES_MAX as usize, "{fails}");
        let told = world.json("OrderDiscrepancy");
        let text = told["message"].as_str().unwrap();
        assert!(
            text.starts_with("the list has 100 shares filled, 0 were told; "),
            "{fails}: {text}"
        );
        assert_eq!((missing(&mut world), fills(&world).len()), (1, 0), "{fails}");
    }
}

/// Details that contradict a notice tell nothing.
#[test]
fn details_without_a_fill_that_a_notice_told_are_not_taken() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    world.broker.fill_at("1000", 100, "2502");
    lose_notices(&mut world);
    world.broker.orders.get_mut("1000").unwrap().fills = vec![(200, "2501.5")];
    for _ in 0..10 {
        look(&mut world);
    }
    assert_eq!((fills(&world).len(), missing(&mut world)), (1, 1));
}

/// A fill that is found after its order has ended is told, and the order stays as it is.
#[test]
fn a_lost_fill_of_a_cancelled_order_is_told() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.broker.end("1000", OrderStatus::Canceled);
    lose_notices(&mut world);
    look(&mut world);
    assert_eq!(fills(&world), [fill(["100", "2501", "100", "200"])]);
    world.submit(&limit_buy("a", 300, "2600"));
    assert_eq!(world.json("SubmitOrderResult")["status"], "CANCELED");
}

/// What waits is asked for before details, and a session that ends takes them along.
#[test]
fn details_end_with_the_session_and_are_asked_for_in_the_next() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    for _ in 0..200 {
        world.pass(Duration::from_millis(200));
        let in_flight = &world.in_flight;
        if matches!(in_flight, Some(InFlight::Request { request, .. }) if request.id == "detail") {
            break;
        }
        world.answer();
        if world.mono.as_millis().is_multiple_of(1_000) && world.in_flight.is_none() {
            world.list(OrderListFilter::default());
        }
    }
    world.answer_with(|id| answer(id, "2", Vec::new()));
    assert!(world.events().contains(&"VenueError session_expired".to_owned()));
    world.log_in();
    look(&mut world);
    assert_eq!(fills(&world), [fill(["100", "2501", "100", "200"])]);
    assert_eq!(missing(&mut world), 0);
}

/// P130: what details told before a kill is not told again, neither by a notice that comes late nor by details.
#[test]
fn p130_fills_that_details_told_before_a_kill_are_not_told_again() {
    for is_lost in [true, false] {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        if is_lost {
            lose_notices(&mut world);
        }
        look(&mut world);
        assert_eq!(fills(&world).len(), 1, "{is_lost}");
        world.told.clear();
        world.restart(false);
        world.log_in();
        settle(&mut world);
        world.deliver_all();
        look(&mut world);
        assert_eq!((fills(&world).len(), missing(&mut world)), (0, 0), "{is_lost}");
        // The next one is told, under a number that no other has.
        world.broker.fill_at("1000", 200, "2502");
        lose_notices(&mut world);
        look(&mut world);
        assert_eq!(fills(&world), [fill(["200", "2502", "300", "0"])], "{is_lost}");
        assert_eq!(world.json("OrderFilled")["trade_id"], "D2", "{is_lost}");
    }
}
