//! What a person decides and corrects: orders whose answer was lost, and what strategies hold.

use std::time::Duration;

use domain::{InstrumentId, Money, OrderSide, Origin, Quantity};
use orders::event::StrategyEvent;
use orders::{Adjustment, DeskCommand, SettleOrder};

use crate::left_out::answer_odd;
use crate::strategy_orders::{ID, elsewhere, held, holding, rules, strategy, submit};
use crate::world::{InFlight, World, limit_buy};

fn settle(world: &mut World, id: &str, number: Option<&str>) {
    world.events();
    world.told.clear();
    world.tell(DeskCommand::Settle(SettleOrder {
        origin: Origin::Strategy,
        client_order_id: id.into(),
        venue_order_id: number.map(Into::into),
    }));
}

fn refusal(world: &World) -> String {
    let error = world.json("Error");
    assert_eq!(error["code"], "validation_error", "{error} {:?}", world.told);
    error["message"].as_str().unwrap().to_owned()
}

/// A desk with a lost order `lost` that two rows of the list fit, 1000 and 1001: its number stays unknown.
fn ambiguous() -> World {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("lost", 300, "2500"));
    world.lose(true);
    elsewhere(&mut world, OrderSide::Buy, 300);
    elsewhere(&mut world, OrderSide::Sell, 300);
    world.settle(10);
    world
}

/// P124: by a number: the order is the strategy's, and what was filled of it counts.
#[test]
fn p124_a_person_names_the_number_of_an_order() {
    let mut world = ambiguous();
    world.broker.fill("1000", 100);
    world.settle(1);
    assert_eq!(held(&mut world), 0, "it counts as placed elsewhere so far");
    settle(&mut world, "lost", Some("1000"));
    assert!(matches!(world.told.as_slice(), [StrategyEvent::Settled { .. }]), "{:?}", world.told);
    assert_eq!(world.events(), ["OrderAccepted lost 1000", "OrderFilled lost 1000"]);
    assert_eq!(held(&mut world), 100);
    assert!(world.log.lines("accepted").last().unwrap().contains(r#""venue_order_id":"1000""#));
    world.settle(2);
    world.broker.fill("1000", 100);
    world.settle(10);
    assert_eq!(held(&mut world), 200);
    world.restart(false);
    world.log_in();
    world.deliver_all();
    world.settle(10);
    assert_eq!(held(&mut world), 200);
}

/// P124: not at the broker.
#[test]
fn p124_a_person_says_that_the_broker_does_not_have_it() {
    let mut world = ambiguous();
    settle(&mut world, "lost", None);
    let event = world.json("OrderRejected");
    assert!(event["reason_text"].as_str().unwrap().starts_with("SETTLED_BY_HAND: "), "{event}");
    assert_eq!(world.log.lines("rejected").len(), 1);
    world.tell(DeskCommand::OwnOrders(ID.into()));
    assert!(
        matches!(world.told.last(), Some(StrategyEvent::OwnOrders { orders, .. }) if orders.is_empty())
    );
}

/// P124: what is refused, and changes nothing.
#[test]
fn p124_a_settlement_that_cannot_be_right_is_refused() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("known", 300, "2500"));
    settle(&mut world, "known", None);
    assert!(refusal(&world).contains("nothing to decide"));
    settle(&mut world, "nobody", None);
    assert!(refusal(&world).contains("no order"));
    world.submit_of(strategy(), &limit_buy("lost", 300, "2500"));
    settle(&mut world, "lost", None);
    assert!(refusal(&world).contains("on its way"));
    world.lose(false);
    settle(&mut world, "lost", None);
    assert!(refusal(&world).contains("a whole list"), "a list of today still decides it");
    let mut world = ambiguous();
    submit(&mut world, &limit_buy("mine", 300, "2600"));
    for (number, why) in
        [("1003", "that of order `mine`"), ("1002", "a SELL order"), ("x y", "is no number")]
    {
        settle(&mut world, "lost", Some(number));
        let text = refusal(&world);
        assert!(text.starts_with("SETTLE: ") && text.contains(why), "{number}: {text}");
    }
    assert_eq!(world.log.lines("rejected").len(), 0);
    // People's ids are people's.
    world.events();
    world.tell(DeskCommand::Settle(SettleOrder {
        origin: Origin::Client,
        client_order_id: "lost".into(),
        venue_order_id: None,
    }));
    assert!(refusal(&world).contains("no order"));
}

/// P124 and P129: a list with a row left out decides nothing, so a person may.
#[test]
fn p124_p129_where_lists_never_come_whole_a_person_decides() {
    let mut world = World::ready(rules(), false);
    let odd = elsewhere(&mut world, OrderSide::Buy, 100);
    world.submit_of(strategy(), &limit_buy("lost", 300, "2500"));
    world.lose(false);
    for _ in 0..200 {
        while let Some(InFlight::Request { request, .. }) = &world.in_flight {
            match request.id.as_str() {
                "list" => answer_odd(&mut world, &odd),
                _ => world.answer(),
            }
        }
        world.pass(Duration::from_millis(200));
    }
    settle(&mut world, "lost", None);
    assert!(matches!(world.told.as_slice(), [StrategyEvent::Settled { .. }]), "{:?}", world.told);
}

/// P124: an order of an earlier day, which lists have no more.
#[test]
fn p124_an_order_of_an_earlier_day_is_decided_by_a_person() {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("lost", 300, "2500"));
    world.lose(false);
    world.mono += Duration::from_secs(24 * 3_600);
    world.wall = world.wall.plus_nanos(24 * 3_600 * 1_000_000_000);
    world.restart(false);
    world.log_in();
    world.settle(10);
    settle(&mut world, "lost", Some("4711"));
    assert!(matches!(world.told.as_slice(), [StrategyEvent::Settled { .. }]), "{:?}", world.told);
    world.settle(10);
    world.told.clear();
    world.tell(DeskCommand::OwnOrders(ID.into()));
    assert!(
        matches!(world.told.last(), Some(StrategyEvent::OwnOrders { orders, .. }) if orders.is_empty()),
        "it is over"
    );
}

pub(crate) fn adjustment(shares: u64, yen: i64) -> Adjustment {
    Adjustment {
        strategy_id: ID.into(),
        instrument: "7203.TSE".parse::<InstrumentId>().unwrap(),
        quantity: Quantity::new(shares),
        cost: Money::from_yen(yen),
        why: "split\n3:1".to_owned(),
    }
}

/// P125: a correction counts once it is on the disk, and is told to the next run only.
#[test]
fn p125_a_correction_counts_and_is_told_to_the_next_run() {
    let mut world = holding(100);
    world.tell(DeskCommand::StrategyRuns(None));
    world.told.clear();
    world.tell(DeskCommand::Adjust(adjustment(300, 250_000)));
    match world.told.pop() {
        Some(StrategyEvent::Adjusted { held, .. }) => {
            assert_eq!((held.quantity, held.cost), (300, Money::from_yen(250_000)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(held(&mut world), 300);
    world.broker.held = vec![("7203".to_owned(), 300)];
    world.restart(false);
    world.log_in();
    let corrections = |world: &mut World| {
        world.told.clear();
        world.tell(DeskCommand::TakeOver(ID.into()));
        world.settle(3);
        match world.told.pop() {
            Some(StrategyEvent::TakenOver { taken: Ok(standing), .. }) => standing.corrections,
            other => panic!("{other:?}"),
        }
    };
    let told = ["7203.TSE: 100 shares became 300, which cost 250000 yen: split3:1"];
    assert_eq!(corrections(&mut world), told);
    // The start was refused, or the run sent no order: the next one is told as well.
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    assert_eq!(corrections(&mut world), told);
    world.password("0000");
    submit(&mut world, &limit_buy("first", 100, "2500"));
    world.cancel_of_strategy("first");
    world.tell(DeskCommand::StrategyRuns(None));
    world.settle(2);
    assert!(corrections(&mut world).is_empty());
    world.restart(false);
    world.log_in();
    assert!(corrections(&mut world).is_empty());
    assert_eq!(held(&mut world), 300);
}

/// P125: what is refused, and changes nothing.
#[test]
fn p125_a_correction_that_cannot_be_right_is_refused() {
    let mut world = holding(100);
    let refused = |world: &mut World, adjustment: Adjustment, why: &str| {
        world.events();
        world.tell(DeskCommand::Adjust(adjustment));
        let text = refusal(world);
        assert!(text.starts_with("ADJUST: ") && text.contains(why), "{why}: {text}");
    };
    refused(&mut world, adjustment(300, 250_000), "stop it first");
    world.tell(DeskCommand::StrategyRuns(None));
    refused(&mut world, adjustment(0, 1), "no shares have no cost");
    refused(&mut world, adjustment(100, 0), "above zero");
    refused(&mut world, Adjustment { why: " \n".to_owned(), ..adjustment(100, 1) }, "say why");
    refused(
        &mut world,
        Adjustment { strategy_id: "".into(), ..adjustment(100, 1) },
        "id is missing",
    );
    submit(&mut world, &limit_buy("works", 100, "2500"));
    refused(&mut world, adjustment(300, 250_000), "works");
    *world.log.fails.lock().unwrap() = true;
    world.cancel_of_strategy("works");
    world.settle(2);
    world.events();
    world.tell(DeskCommand::Adjust(adjustment(300, 250_000)));
    assert_eq!(world.json("Error")["code"], "INTERNAL_ERROR");
    assert_eq!(held(&mut world), 100);
}

/// P124: a person's lost order is decided the same way.
#[test]
fn p124_a_person_s_own_order_is_settled_too() {
    let mut world = World::ready(rules(), false);
    world.submit(&limit_buy("mine", 300, "2500"));
    world.lose(true);
    elsewhere(&mut world, OrderSide::Buy, 300);
    world.settle(10);
    world.events();
    world.tell(DeskCommand::Settle(SettleOrder {
        origin: Origin::Client,
        client_order_id: "mine".into(),
        venue_order_id: Some("1000".into()),
    }));
    assert_eq!(world.events(), ["OrderAccepted mine 1000"]);
    world.settle(2);
    world.cancel(Some("mine"), None);
    world.settle(2);
    assert!(world.events().contains(&"OrderCanceled mine 1000".to_owned()));
}
