//! Balances and positions: requested by people, and before an order is sent.

use std::time::Duration;

use domain::OrderSide;
use domain::order_mapping::Field;
use orders::DeskRules;
use venues::web_broker::{Answered, CallFailure};

use crate::broker::{answer, refused};
use crate::world::{InFlight, World, limit_buy};

const MARGIN: [&str; 2] = ["CLMZanShinkiKanoIjiritu", "CLMShinyouTategyokuList"];

fn world(has_margin: bool) -> World {
    let mut world = World::new(DeskRules::default(), false);
    world.has_margin = has_margin;
    world.log_in();
    world.password("0000");
    world.reported.clear();
    world
}

fn listed(id: &str, name: &str, rows: Vec<Vec<Field>>) -> Answered {
    let mut answered = answer(id, "", vec![Field::new("sResultCode", "0")]);
    answered.lists.insert(name.to_owned(), rows);
    answered
}

/// The right answer for an account.
fn right(id: &str) -> Answered {
    let field = |name, value| vec![Field::new("sResultCode", "0"), Field::new(name, value)];
    match id {
        "CLMZanKaiKanougaku" => answer(id, "", field("sSummaryGenkabuKaituke", "5000")),
        "CLMZanShinkiKanoIjiritu" => answer(id, "", field("sSummarySinyouSinkidate", "9000")),
        "CLMGenbutuKabuList" => listed(id, "aGenbutuKabuList", Vec::new()),
        _ => listed(id, "aShinyouTategyokuList", vec![position("1", OrderSide::Buy, true, 100)]),
    }
}

fn position(id: &str, side: OrderSide, is_general: bool, shares: u64) -> Vec<Field> {
    let shares = shares.to_string();
    [
        ("sOrderTategyokuNumber", id),
        ("sOrderIssueCode", "7203"),
        ("sOrderBaibaiKubun", if side == OrderSide::Buy { "3" } else { "1" }),
        ("sOrderBensaiKubun", if is_general { "36" } else { "26" }),
        ("sOrderZyoutoekiKazeiC", "1"),
        ("sOrderTategyokuSuryou", &shares),
        ("sOrderHensaiKanouSuryou", &shares),
        ("sOrderTategyokuTanka", "2500"),
    ]
    .map(|(name, value)| Field::new(name, value))
    .into()
}

fn read(world: &mut World, positions: bool) {
    let (context, now) = (world.context(), world.now());
    if positions {
        world.desk.positions(context, now);
    } else {
        world.desk.buying_power(context, now);
    }
    world.collect();
}

#[test]
fn half_of_an_account_is_not_reported_as_all_of_it() {
    type Spoil = fn(&str) -> Result<Answered, CallFailure>;
    let spoils: [Spoil; 6] = [
        |id| Ok(refused(id, "no")),
        |id| Ok(refused(id, "closed")),
        |id| Ok(answer(id, "9", vec![])),
        |_| Err(CallFailure::Refused("no connection".to_owned())),
        |_| Err(CallFailure::NotSent("no number".to_owned())),
        |_| Err(CallFailure::Unknown("reset".to_owned())),
    ];
    for positions in [false, true] {
        for spoil in spoils {
            let mut world = world(true);
            read(&mut world, positions);
            world.answer_with(right);
            let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take()
            else {
                panic!("margin is asked for");
            };
            assert!(MARGIN.contains(&request.id.as_str()), "{}", request.id);
            world.give(ticket, sent_p_no, spoil(&request.id));
            assert_eq!(world.events(), ["Error INTERNAL_ERROR"]);
        }
        let mut world = world(true);
        read(&mut world, positions);
        world.answer_with(right);
        world.answer_with(right);
        let reported = world.events();
        assert_eq!(
            reported,
            [["BuyingPowerUpdated"], ["PositionsUpdated"]][usize::from(positions)]
        );
    }
}

/// As long as it stays unreadable, each client gets one report of it.
#[test]
fn unreadable_data_are_reported_once_to_each_client() {
    let mut world = world(false);
    let odd = |id: &str| {
        if id == "CLMZanKaiKanougaku" {
            let odd = Field::new("sSummaryGenkabuKaituke", "much");
            return answer(id, "", vec![Field::new("sResultCode", "0"), odd]);
        }
        listed(id, "aGenbutuKabuList", vec![vec![Field::new("sUriOrderIssueCode", "7203")]])
    };
    for (positions, answered) in [(true, "PositionsUpdated"), (false, "BuyingPowerUpdated")] {
        let mut reported = |client: u64, odd: &dyn Fn(&str) -> Answered| {
            let (mut context, now) = (world.context(), world.now());
            context.client = client;
            match positions {
                true => world.desk.positions(context, now),
                false => world.desk.buying_power(context, now),
            }
            world.collect();
            world.answer_with(odd);
            world.events()
        };
        let with_error = vec![answered.to_owned(), "Error INTERNAL_ERROR".to_owned()];
        assert_eq!(reported(8, &odd), with_error);
        assert_eq!(
            (reported(8, &odd), reported(8, &odd)),
            (vec![answered.into()], vec![answered.into()])
        );
        assert_eq!(reported(9, &odd), with_error);
        assert_eq!(reported(8, &right), [answered]);
        assert_eq!(reported(8, &odd), with_error);
    }
}

/// One unreadable position, or amount, hides no other one.
#[test]
fn unreadable_data_are_reported_after_the_rest() {
    let mut world = world(true);
    read(&mut world, true);
    world.answer_with(|id| {
        listed(id, "aGenbutuKabuList", vec![vec![Field::new("sUriOrderIssueCode", "7203")]])
    });
    world.answer_with(right);
    let (positions, error) = (world.json("PositionsUpdated"), world.json("Error"));
    assert_eq!(positions["positions"].as_array().unwrap().len(), 1);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("7203: sUriOrderZanKabuSuryou is missing"), "{message}");
    assert_eq!(world.events(), ["PositionsUpdated", "Error INTERNAL_ERROR"]);
    read(&mut world, false);
    world.answer_with(|id| {
        let odd = Field::new("sSummaryGenkabuKaituke", "much");
        answer(id, "", vec![Field::new("sResultCode", "0"), odd])
    });
    world.answer_with(right);
    let (reported, error) = (world.json("BuyingPowerUpdated"), world.json("Error"));
    assert_eq!(
        (&reported["cash_available"], &reported["credit_available"]),
        (&serde_json::Value::Null, &"9000".into())
    );
    assert!(error["message"].as_str().unwrap().contains("sSummaryGenkabuKaituke"), "{error}");
}

/// Only the login says so.
#[test]
fn margin_is_not_requested_for_an_account_without_it() {
    let mut world = world(false);
    read(&mut world, false);
    world.answer_with(right);
    let reported = world.json("BuyingPowerUpdated");
    assert_eq!(reported["cash_available"], "5000");
    assert!(reported["credit_available"].is_null());
    read(&mut world, true);
    world.answer_with(right);
    assert_eq!(world.json("PositionsUpdated")["positions"], serde_json::json!([]));
    assert!(world.in_flight.is_none() && !world.sent.iter().any(|id| MARGIN.contains(&&**id)));
}

/// Specification 4, P23a: its guard is under way, and the order itself was not sent.
#[test]
fn an_order_whose_guard_is_not_answered_in_time_is_refused_and_never_sent() {
    for right in [true, false] {
        let mut world = World::ready(DeskRules::default(), false);
        world.events();
        world.submit(&limit_buy("a", 100, "2500"));
        world.pass(Duration::from_secs(30));
        let reported = world.json("OrderRejected");
        assert!(reported["reason_text"].as_str().unwrap().starts_with("NOT_SENT: "), "{reported}");
        assert_eq!(world.events(), ["OrderRejected a INTERNAL_ERROR"], "one end, and a known one");
        // The id is free at once; the guard's answer belongs to no order.
        world.submit(&limit_buy("a", 200, "2500"));
        match right {
            true => world.answer(),
            false => world.answer_with(|id| refused(id, "no")),
        }
        assert_eq!((world.events(), world.broker.placed), (vec![], 0));
        world.answer_all();
        assert_eq!(world.broker.placed, 1);
        assert_eq!(world.broker.orders["1000"].order.quantity.shares(), 200);
        assert_eq!(world.log.lines("submit").len(), 1);
    }
}

/// Specification 4, P40: an order that closes positions needs enough open shares of those that it can close.
#[test]
fn positions_of_another_side_or_kind_close_nothing() {
    use OrderSide::{Buy, Sell};
    let rows = |id: &str| {
        listed(
            id,
            "aShinyouTategyokuList",
            vec![
                position("1", Buy, false, 100),
                position("2", Buy, true, 200),
                position("3", Sell, false, 300),
                position("4", Sell, true, 400),
            ],
        )
    };
    let open = |side: OrderSide, tags: &[&str]| {
        // The most that the guard lets pass.
        let is_taken = |shares: &u64| {
            let mut world = world(true);
            let mut order = limit_buy("a", *shares, "2500");
            order.order_side = side;
            order.tags = Some(tags.iter().map(|tag| (*tag).to_owned()).collect());
            world.submit(&order);
            world.answer_with(rows);
            if world.sent.last().unwrap() == "CLMZanKaiKanougaku" {
                world.answer();
            }
            world.sent.last().unwrap() == "new"
        };
        (1..=10).map(|lots| lots * 100).take_while(is_taken).last().unwrap_or(0)
    };
    let (credit, general) = ("cash_margin=margin_credit_repay", "cash_margin=margin_general_repay");
    assert_eq!((open(Sell, &[credit]), open(Sell, &[general])), (100, 200));
    assert_eq!((open(Buy, &[credit]), open(Buy, &[general])), (300, 400));
    assert_eq!(open(Sell, &[credit, "tategyoku=1"]), 100);
    for other in ["tategyoku=2", "tategyoku=3", "tategyoku=4"] {
        assert_eq!(open(Sell, &[credit, other]), 0, "{other}");
    }
    // For both sides of the order.
    for side in [Buy, Sell] {
        assert_eq!(open(side, &[credit, "close_action=physical_settle_buy"]), 100);
        assert_eq!(open(side, &[general, "close_action=physical_settle_sell"]), 400);
    }
}
