//! Single commands and their outcomes.

use std::time::Duration;

use domain::OrderSide;
use ipc::OrderListFilter;
use orders::{DeskRules, OrderPhase};
use venues::web_broker::CallFailure;

use crate::broker::{answer, refused};
use crate::world::{InFlight, World, limit_buy, masters};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Without balance guards, so that the order itself is the first request.
fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

fn world() -> World {
    let mut world = World::ready(rules(), false);
    world.reported.clear();
    world
}

/// Specification 4, P9: events name the command; P10.
#[test]
fn an_order_is_logged_reported_and_sent_and_its_answer_reported() {
    let mut world = world();
    let request_id = world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.log.lines("submit").len(), 1, "before the answer");
    assert_eq!(world.json("OrderSubmitted")["request_id"], request_id.as_str());
    assert_eq!(world.events(), ["OrderSubmitted a"]);
    assert_eq!(world.passwords, ["0000"]);
    world.answer();
    assert_eq!(world.events(), ["OrderAccepted a 1000", "SubmitOrderResult a 1000 Created"]);
    assert!(world.log.lines("accepted")[0].contains(r#""venue_order_id":"1000""#));
    world.deliver_all();
    world.broker.fill("1000", 40);
    world.broker.fill("1000", 60);
    world.deliver_all();
    assert_eq!(world.events(), ["OrderFilled a 1000", "OrderFilled a 1000"]);
    let json = world.list(OrderListFilter::default());
    world.answer();
    let list = world.json("OrderListUpdated");
    assert_eq!(list["request_id"], json.as_str());
    let row = list["orders"][0].as_object().unwrap();
    assert_eq!(row.len(), 14, "P29: {row:?}");
    assert_eq!(list["orders"][0]["client_order_id"], "a");
    assert_eq!(list["orders"][0]["status"], "FILLED");
}

#[test]
fn a_venue_is_ready_after_masters_list_and_stream() {
    let mut world = World::new(rules(), false);
    world.submit(&limit_buy("a", 100, "2500"));
    let reported = world.json("OrderRejected");
    assert_eq!(reported["reason_code"], "SESSION_EXPIRED");
    assert!(reported["reason_text"].as_str().unwrap().starts_with("NOT_LOGGED_IN: "));
    assert!(world.log.lines("submit").is_empty());
    world.reported.clear();
    let now = world.now();
    world.desk.login(Some("login".to_owned()), now);
    world.desk.login(Some("second".to_owned()), now);
    world.collect();
    world.answer();
    assert_eq!(world.events(), ["VenueLoginStarted", "VenueCredentialsRefreshed"]);
    world.answer_all();
    assert_eq!(world.events(), [""; 0], "the stream is not up");
    world.connect();
    assert_eq!(world.events(), ["VenueReady", "VenueReady"]);
    world.answer_all();
    world.login_again();
    world.login_fails();
    assert_eq!(world.events(), ["VenueLoginStarted", "VenueError login_failed"]);
}

/// Specification 2, "Unknown-state resend rules"; specification 4, P10, P11.
#[test]
fn a_resend_never_sends_twice() {
    let mut world = world();
    let order = limit_buy("a", 100, "2500");
    world.submit(&order);
    world.events();
    world.submit(&order);
    assert_eq!(world.events(), ["SubmitOrderResult a IdempotentReplay"]);
    let reported = {
        world.submit(&order);
        world.json("SubmitOrderResult")
    };
    assert_eq!(reported["warning_code"], "order_status_unknown");
    assert_eq!(reported["status"], "SUBMITTED");
    world.events();
    world.submit(&limit_buy("a", 200, "2500"));
    assert_eq!(world.events(), ["Error conflict"]);
    // A request that cannot be an order gets no data of the order with that id.
    world.submit(&limit_buy("a", 150, "2500"));
    assert_eq!(world.events(), ["OrderRejected a VALIDATION_ERROR"]);
    world.answer();
    world.events();
    world.submit(&order);
    assert_eq!(world.events(), ["SubmitOrderResult a 1000 IdempotentReplay"]);
    world.submit(&limit_buy("a", 200, "2500"));
    assert_eq!(world.events(), ["Error 1000 conflict"]);
    assert_eq!(world.broker.placed, 1);
}

/// Specification 4, P18 to P21.
#[test]
fn a_lost_answer_is_found_in_the_next_list() {
    let mut world = world();
    let order = limit_buy("a", 100, "2500");
    world.submit(&order);
    world.events();
    world.lose(true);
    assert_eq!(world.events(), ["Error INTERNAL_ERROR"]);
    assert!(world.log.lines("rejected").is_empty());
    world.submit(&order);
    assert_eq!(world.events(), ["SubmitOrderResult a IdempotentReplay"]);
    world.pass(Duration::from_millis(200));
    world.answer();
    assert_eq!(world.events(), ["OrderAccepted a 1000"]);
    assert!(world.log.lines("accepted")[0].contains("1000"));
    world.submit(&order);
    assert_eq!(world.events(), ["SubmitOrderResult a 1000 IdempotentReplay"]);
    assert_eq!(world.broker.placed, 1);
}

#[test]
fn an_order_that_no_list_has_is_rejected_after_a_while_and_its_id_is_free() {
    let mut world = world();
    let order = limit_buy("a", 100, "2500");
    world.submit(&order);
    world.lose(false);
    world.pass(Duration::from_millis(200));
    world.answer_all();
    assert!(!world.events().iter().any(|event| event.contains("OrderRejected")), "too early");
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    assert_eq!(world.events(), ["OrderRejected a INTERNAL_ERROR"]);
    assert!(world.log.lines("rejected")[0].contains("NOT_AT_BROKER: "));
    world.submit(&order);
    world.answer();
    assert_eq!(world.broker.placed, 1);
    assert_eq!(world.log.lines("submit").len(), 2);
}

#[test]
fn two_orders_that_fit_one_row_stay_unknown() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.lose(true);
    world.submit(&limit_buy("b", 100, "2500"));
    // The list that the first one requested may be before the second order.
    while world.in_flight.as_ref().is_some_and(
        |sent| matches!(sent, InFlight::Request { request, .. } if request.id == "list"),
    ) {
        world.answer();
    }
    world.events();
    world.lose(false);
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    let reported = world.events();
    if reported.iter().any(|event| event.starts_with("OrderAccepted a")) {
        return;
    }
    assert_eq!(
        reported.iter().filter(|event| event.contains("ambiguous")).count(),
        2,
        "each once: {reported:?}"
    );
    assert!(!reported.iter().any(|event| event.contains("OrderRejected")), "{reported:?}");
}

#[test]
fn a_row_that_only_seems_too_old_is_no_proof_that_the_order_is_not_there() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    // The broker's clock is a minute behind.
    let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
        panic!("sent");
    };
    let behind = domain::TsNanos::from_nanos(world.wall.nanos() - 60_000_000_000);
    world.broker.take(&request, behind);
    world.give(ticket, sent_p_no, Err(CallFailure::Unknown("reset".to_owned())));
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    let reported = world.events();
    assert!(reported.contains(&"OrderDiscrepancy a ambiguous".to_owned()), "{reported:?}");
    assert!(!reported.iter().any(|event| event.contains("OrderRejected")), "{reported:?}");
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["SubmitOrderResult a IdempotentReplay"]);
    assert_eq!(world.broker.placed, 1);
}

#[test]
fn a_full_disk_refuses_the_order_and_sends_nothing() {
    let mut world = world();
    *world.log.fails.lock().unwrap() = true;
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected a INTERNAL_ERROR"]);
    assert!(!world.sent.contains(&"new".to_owned()));
    *world.log.fails.lock().unwrap() = false;
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer();
    assert_eq!(world.broker.placed, 1, "the id is free");
}

/// Specification 4, P18, P21: each end of a call.
#[test]
fn each_end_of_a_call_means_what_the_table_says() {
    let cases: [(&str, Result<&str, CallFailure>, &str); 6] = [
        ("business refusal", Ok("refused"), "VENUE_REJECTED"),
        ("money", Ok("funds"), "INSUFFICIENT_FUNDS"),
        ("closed", Ok("closed"), "MARKET_CLOSED"),
        ("nothing sent", Err(CallFailure::NotSent("x".into())), "INTERNAL_ERROR"),
        ("no connection", Err(CallFailure::Refused("x".into())), "CONNECTION_ERROR"),
        ("no session", Err(CallFailure::NotLoggedIn), "SESSION_EXPIRED"),
    ];
    for (name, result, code) in cases {
        let mut world = world();
        world.submit(&limit_buy("a", 100, "2500"));
        world.events();
        let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
            panic!("{name}");
        };
        world.give(ticket, sent_p_no, result.map(|why| refused(&request.id, why)));
        assert_eq!(world.events(), [format!("OrderRejected a {code}")], "{name}");
        assert_eq!(world.log.lines("rejected").len(), 1, "{name}");
        let resent = world.submit(&limit_buy("a", 100, "2500"));
        let reported = world.events();
        if code == "MARKET_CLOSED" {
            assert_eq!(reported, ["OrderRejected a MARKET_CLOSED"], "refused first: {resent}");
            assert_eq!(world.log.lines("rejected").len(), 1);
            // If the broker answers this list, it is reachable again.
            world.list(OrderListFilter::default());
            world.answer_all();
            world.events();
            world.submit(&limit_buy("a", 100, "2500"));
            assert_eq!(world.events(), ["OrderSubmitted a"]);
        } else {
            assert_eq!(reported, ["OrderSubmitted a"], "{name}: the id is free");
        }
    }
}

/// Specification 2, "Session and password states"; specification 4, P23a.
#[test]
fn a_freeze_ends_what_was_not_sent_and_the_one_it_answered() {
    let mut world = world();
    world.submit(&limit_buy("lost", 100, "2400"));
    world.lose(true);
    world.pass(Duration::from_millis(200));
    world.answer_all();
    world.submit(&limit_buy("a", 100, "2500"));
    world.submit(&limit_buy("b", 100, "2500"));
    world.cancel(None, Some("1000"));
    world.list(OrderListFilter::default());
    world.events();
    world.answer_with(|id| answer(id, "2", vec![]));
    let reported = world.events();
    assert_eq!(
        reported,
        [
            "VenueError session_expired",
            "OrderRejected b SESSION_EXPIRED",
            "OrderRejected lost SESSION_EXPIRED",
            "OrderRejected SESSION_EXPIRED",
            "OrderRejected a SESSION_EXPIRED",
        ]
    );
    assert_eq!(world.log.lines("session_expired").len(), 1);
    assert_eq!(world.log.lines("rejected").len(), 1, "only the order that was sent");
    let text = String::from_utf8(world.log.bytes.lock().unwrap().clone()).unwrap();
    assert!(text.find("session_expired").unwrap() < text.rfind("\"rejected\"").unwrap());
    world.submit(&limit_buy("c", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected c SESSION_EXPIRED"]);
    world.log_in();
    world.events();
    world.submit(&limit_buy("c", 100, "2500"));
    assert_eq!(world.events(), ["SecondPasswordRequired"], "it was forgotten");
    world.password("0000");
    world.submit(&limit_buy("c", 100, "2500"));
    world.answer();
    assert!(world.events().contains(&"OrderAccepted c 1001".to_owned()));
}

/// Specification 4, P41, P42.
#[test]
fn the_second_password_is_requested_refused_and_locked() {
    let mut world = World::new(rules(), false);
    world.log_in();
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["SecondPasswordRequired"]);
    assert!(world.log.lines("submit").is_empty());
    let now = world.now();
    world.desk.forget_second_password(now);
    world.collect();
    assert_eq!(world.events(), ["OrderRejected a SECOND_PASSWORD_REQUIRED"]);
    for round in 1..=3 {
        world.password("wrong");
        world.events();
        world.submit(&limit_buy("a", 100, "2500"));
        world.answer_with(|id| answer(id, "4", vec![]));
        let reported = world.events();
        assert_eq!(
            reported,
            ["OrderSubmitted a", "OrderRejected a SECOND_PASSWORD_INVALID"],
            "{round}"
        );
    }
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected a SECOND_PASSWORD_LOCKED"]);
    world.cancel_all(None);
    assert_eq!(world.events(), ["OrderRejected SECOND_PASSWORD_LOCKED"]);
    world.password("0000");
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected a SECOND_PASSWORD_LOCKED"]);
    world.pass(seconds(1_799));
    world.pass(seconds(1));
    world.answer_all();
    world.events();
    world.password("0000");
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer();
    assert!(world.events().contains(&"OrderAccepted a 1000".to_owned()));
}

#[test]
fn a_password_that_was_refused_is_not_sent_again_for_what_waits() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.submit(&limit_buy("b", 100, "2500"));
    world.events();
    world.answer_with(|id| answer(id, "4", vec![]));
    assert_eq!(
        world.events(),
        ["OrderRejected a SECOND_PASSWORD_INVALID", "OrderRejected b SECOND_PASSWORD_INVALID"]
    );
    assert_eq!(world.sent.iter().filter(|id| *id == "new").count(), 1);
    assert_eq!(world.log.lines("submit").len(), 1);
}

/// Specification 4, P23a: the 30 s count from the receipt.
#[test]
fn what_is_not_sent_in_time_never_is_and_a_late_answer_still_counts() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.submit(&limit_buy("b", 100, "2500"));
    world.events();
    world.pass(seconds(30));
    let reported = world.events();
    assert_eq!(reported, ["OrderRejected b INTERNAL_ERROR", "Error INTERNAL_ERROR"]);
    world.pass(seconds(5));
    world.answer();
    assert_eq!(world.events(), ["OrderAccepted a 1000"], "and nobody waits for a result");
    assert_eq!(world.log.lines("accepted").len(), 1);
    world.answer_all();
    assert_eq!(world.broker.placed, 1);
    world.restart(false);
    world.log_in();
    world.password("0000");
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    assert_eq!(world.events(), ["SubmitOrderResult a 1000 IdempotentReplay"]);
}

/// Specification 4, P12, P27.
#[test]
fn an_order_is_changed_and_cancelled() {
    let mut world = world();
    world.submit(&limit_buy("a", 300, "2500"));
    world.answer_all();
    world.events();
    world.modify("a", Some("200"), Some("2510.7"));
    assert_eq!(world.events(), ["OrderPendingUpdate a"]);
    world.answer();
    let reported = world.json("OrderUpdated");
    assert_eq!(
        (reported["quantity"].as_str(), reported["price"].as_str()),
        (Some("200"), Some("2510"))
    );
    world.events();
    world.modify("a", None, None);
    assert_eq!(world.events(), ["OrderRejected a VALIDATION_ERROR"]);
    world.cancel(Some("a"), None);
    assert_eq!(world.events(), ["OrderPendingCancel a"]);
    world.answer_all();
    assert_eq!(world.events(), [""; 0], "P27: not on the answer");
    world.deliver_all();
    assert_eq!(world.events(), ["OrderCanceled a 1000"]);
    world.connect();
    world.deliver_all();
    world.answer_all();
    assert_eq!(world.events(), [""; 0], "once");
    world.cancel(Some("a"), None);
    assert_eq!(world.events(), ["OrderRejected a VENUE_REJECTED"]);
    world.cancel(Some("nobody"), None);
    assert_eq!(world.events(), ["OrderRejected nobody ORDER_STATUS_UNKNOWN"]);
    world.cancel(None, None);
    assert_eq!(world.events(), ["OrderRejected VALIDATION_ERROR"]);
}

/// Specification 4, P26.
#[test]
fn a_refused_change_leaves_a_working_order_in_the_end() {
    for rejects in [false, true] {
        let mut world = World::ready(rules(), rejects);
        world.submit(&limit_buy("a", 300, "2500"));
        world.answer_all();
        world.events();
        world.modify("a", Some("200"), None);
        world.answer_with(|id| refused(id, "no"));
        assert_eq!(world.events(), ["OrderPendingUpdate a", "OrderRejected a VENUE_REJECTED"]);
        world.broker.fill("1000", 100);
        world.deliver_all();
        assert_eq!(world.events(), ["OrderFilled a 1000"]);
        world.pass(Duration::from_millis(200));
        world.answer_all();
        let reported = world.events();
        let again: &[&str] = if rejects { &["OrderAccepted a 1000"] } else { &[] };
        assert!(
            reported.starts_with(&again.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        );
        assert!(world.log.lines("rejected").is_empty(), "changes are not logged (P22)");
        world.cancel(Some("a"), None);
        assert_eq!(world.events(), ["OrderPendingCancel a"], "{rejects}");
    }
}

#[test]
fn lost_answers_of_changes_and_cancels_are_settled_by_lists() {
    let settle = |world: &mut World| {
        for _ in 0..40 {
            world.pass(Duration::from_millis(200));
            world.answer_all();
        }
    };
    let placed = || {
        let mut world = world();
        world.submit(&limit_buy("a", 300, "2500"));
        world.answer_all();
        world.disconnect();
        world.events();
        world
    };
    let mut world = placed();
    world.modify("a", Some("200"), None);
    world.lose(true);
    settle(&mut world);
    assert_eq!(
        world.events(),
        ["OrderPendingUpdate a", "Error INTERNAL_ERROR", "OrderUpdated a 1000"]
    );
    let mut world = placed();
    world.modify("a", Some("200"), None);
    world.lose(false);
    settle(&mut world);
    assert_eq!(
        world.events(),
        ["OrderPendingUpdate a", "Error INTERNAL_ERROR", "OrderRejected a INTERNAL_ERROR"]
    );
    let mut world = placed();
    world.cancel(Some("a"), None);
    world.lose(false);
    settle(&mut world);
    assert_eq!(
        world.events(),
        ["OrderPendingCancel a", "Error INTERNAL_ERROR", "OrderRejected a INTERNAL_ERROR"]
    );
    let mut world = placed();
    world.cancel(Some("a"), None);
    world.lose(true);
    settle(&mut world);
    assert_eq!(
        world.events(),
        ["OrderPendingCancel a", "Error INTERNAL_ERROR", "OrderCanceled a 1000"]
    );
}

/// Specification 4, P27, P17.
#[test]
fn notices_that_come_early_or_for_foreign_orders_wait_for_what_they_belong_to() {
    let mut world = world();
    world.submit(&limit_buy("a", 300, "2500"));
    world.events();
    // The broker takes it, fills it, and sends notices before its answer.
    let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
        panic!("sent");
    };
    let answered = world.broker.take(&request, world.wall);
    world.broker.fill("1000", 300);
    world.deliver_all();
    assert_eq!(world.events(), [""; 0]);
    world.give(ticket, sent_p_no, Ok(answered));
    assert_eq!(
        world.events(),
        ["OrderAccepted a 1000", "SubmitOrderResult a 1000 Created", "OrderFilled a 1000"]
    );
    let order = world.broker.orders["1000"].order.clone();
    let wall = world.wall;
    let number = world.broker.place_elsewhere(order, wall);
    world.broker.fill(&number, 100);
    world.deliver_all();
    world.pass(Duration::from_millis(200));
    world.answer_all();
    assert_eq!(world.events(), ["OrderFilled 1001"]);
    world.cancel(None, Some("1001"));
    world.answer_all();
    world.deliver_all();
    let reported = world.events();
    assert_eq!(reported, ["OrderPendingCancel", "OrderCanceled 1001"]);
}

#[test]
fn discrepancies_are_reported_and_nothing_is_made_up() {
    let mut world = world();
    world.submit(&limit_buy("a", 300, "2500"));
    world.answer_all();
    world.events();
    // The list has a fill that no notice ever reports.
    world.broker.orders.get_mut("1000").unwrap().filled = 100;
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.list(OrderListFilter::default());
        world.answer_all();
    }
    let reported: Vec<String> =
        world.events().into_iter().filter(|event| !event.starts_with("OrderList")).collect();
    assert_eq!(reported, ["OrderDiscrepancy a 1000 fills_missing"]);
    world.broker.notify("fill-canceled", "1000", vec![]);
    world.broker.notify("canceled", "7777", vec![]);
    world.deliver_all();
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    let reported = world.events();
    assert_eq!(
        reported,
        ["OrderDiscrepancy a 1000 fill_canceled", "OrderDiscrepancy 7777 notice_without_order"]
    );
}

#[test]
fn many_are_cancelled_at_once_or_by_a_filter() {
    let mut world = world();
    for id in ["a", "b"] {
        world.submit(&limit_buy(id, 100, "2500"));
        world.answer_all();
    }
    let mut sell = limit_buy("s", 100, "2500");
    sell.order_side = OrderSide::Sell;
    world.submit(&sell);
    world.answer_all();
    world.events();
    world.cancel_all(Some(OrderSide::Sell));
    for _ in 0..30 {
        world.answer_all();
        world.deliver_all();
        world.pass(Duration::from_millis(200));
    }
    let reported = world.events();
    assert!(reported.contains(&"OrderCanceled s 1002".to_owned()), "{reported:?}");
    assert_eq!(reported.last().unwrap(), "CancelAllResult");
    assert_eq!(world.sent.iter().filter(|id| *id == "cancel").count(), 1);
    world.cancel_all(None);
    for _ in 0..30 {
        world.answer_all();
        world.deliver_all();
        world.pass(Duration::from_millis(200));
    }
    let result = world.json("CancelAllResult");
    assert_eq!(
        (result["canceled_count"].as_u64(), result["failed_count"].as_u64()),
        (Some(2), Some(0))
    );
    assert_eq!(world.sent.iter().filter(|id| *id == "cancel-all").count(), 1);
    assert!(world.broker.orders.values().all(|order| !order.is_open()));
    world.events();
    world.cancel_all(None);
    world.answer_all();
    let result = world.json("CancelAllResult");
    assert_eq!(result["canceled_count"].as_u64(), Some(0));
}

/// Specification 4, P40.
#[test]
fn balances_are_requested_before_an_order_is_sent() {
    let mut world = World::ready(DeskRules::default(), false);
    world.broker.cash = 249_999;
    world.events();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer();
    assert_eq!(world.events(), ["OrderRejected a INSUFFICIENT_FUNDS"]);
    assert!(world.log.lines("submit").is_empty(), "before the submit line");
    world.broker.cash = 250_000;
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer();
    world.answer();
    let reported = world.events();
    assert_eq!(reported[..2], ["OrderSubmitted a", "OrderAccepted a 1000"]);
    let mut market = limit_buy("m", 100, "2500");
    (market.order_type, market.price) = (domain::OrderType::Market, None);
    world.broker.cash = 299_999;
    world.submit(&market);
    world.answer();
    assert_eq!(world.events(), ["OrderRejected m INSUFFICIENT_FUNDS"], "at the upper limit");
    world.submit(&limit_buy("b", 100, "2500"));
    world.lose(false);
    let reported = world.events();
    assert_eq!(reported, ["OrderRejected b INTERNAL_ERROR"], "a guard that cannot be asked");
}

/// Specification 4, P30, P31, P32, P33, P35, P36.
#[test]
fn lots_ticks_dates_and_codes_are_checked_by_the_masters() {
    let mut world = World::ready(DeskRules::default(), false);
    world.events();
    let mut check = |change: &dyn Fn(&mut ipc::SubmitOrderRequest), code: &str, text: &str| {
        let mut order = limit_buy("x", 100, "2500");
        change(&mut order);
        world.submit(&order);
        let reported = world.json("OrderRejected");
        assert_eq!(reported["reason_code"], code, "{reported}");
        assert!(reported["reason_text"].as_str().unwrap().starts_with(text), "{reported}");
        world.events();
    };
    let wrong = "VALIDATION_ERROR";
    check(&|order| order.quantity = "150".into(), wrong, "QUANTITY: 150 shares");
    check(&|order| order.quantity = "0100".into(), wrong, "QUANTITY: ");
    check(&|order| order.quantity = "-100".into(), wrong, "QUANTITY: ");
    check(&|order| order.instrument_id = "9999.TSE".into(), wrong, "INSTRUMENT_ID: ");
    check(&|order| order.instrument_id = "7203.OSE".into(), wrong, "INSTRUMENT_ID: ");
    check(&|order| order.instrument_id = "7203".into(), wrong, "INSTRUMENT_ID: ");
    check(&|order| order.client_order_id = "  ".into(), wrong, "CLIENT_ORDER_ID: ");
    check(&|order| order.price = Some("0.5".into()), wrong, "PRICE: ");
    check(&|order| order.price = None, wrong, "PRICE: ");
    check(&|order| order.trigger_price = Some("1".into()), wrong, "TRIGGER_PRICE: ");
    check(
        &|order| order.instrument_id = "163060018.TSE".into(),
        "UNSUPPORTED_INSTRUMENT",
        "FUTURES: ",
    );
    check(&|order| order.instrument_id = "6758.TSE".into(), "INTERNAL_ERROR", "MASTER_MISSING: ");
    check(&|order| order.post_only = true, "VENUE_UNSUPPORTED", "POST_ONLY: ");
    check(&|order| order.reduce_only = true, "VENUE_UNSUPPORTED", "REDUCE_ONLY: ");
    for time in [domain::TimeInForce::Gtc, domain::TimeInForce::Ioc, domain::TimeInForce::Fok] {
        check(&|order| order.time_in_force = time, "VENUE_UNSUPPORTED", &format!("{time}: "));
    }
    for kind in [domain::OrderType::MarketIfTouched, domain::OrderType::LimitIfTouched] {
        check(&|order| order.order_type = kind, "VENUE_UNSUPPORTED", &format!("{kind}: "));
    }
    let day = |nanos: u64| {
        move |order: &mut ipc::SubmitOrderRequest| {
            order.time_in_force = domain::TimeInForce::Gtd;
            order.expire_time_ns = Some(nanos);
        }
    };
    let hour = 3_600_000_000_000_u64;
    let morning = crate::world::MORNING.nanos();
    check(&day(morning - hour), wrong, "EXPIRE_TIME_NS: 2026-11-20 is past");
    check(&day(morning + 24 * hour), wrong, "EXPIRE_TIME_NS: the exchange is closed on 2026-11-21");
    check(&day(morning + 6 * 24 * hour), wrong, "EXPIRE_TIME_NS: 2026-11-26 is later than");
    // The last nanosecond of the broker's last day.
    let last = masters().days.as_ref().unwrap().next[1];
    let last = domain::TsNanos::from_jst(last, 24 * hour - 1).unwrap();
    let mut order = limit_buy("gtd", 100, "2500.9");
    day(last.nanos())(&mut order);
    world.submit(&order);
    world.answer_all();
    let made = &world.broker.orders["1000"].order;
    assert_eq!(made.price.unwrap().to_string(), "2500", "a limit to buy is rounded down");
    assert_eq!(made.expire_date, last.jst_date().into());
    let mut sell = limit_buy("sell", 100, "2500.1");
    sell.order_side = OrderSide::Sell;
    world.submit(&sell);
    world.answer_all();
    assert_eq!(world.broker.orders["1001"].order.price.unwrap().to_string(), "2501");
}

/// Specification 4, P23: the day rolls over without a restart; what is open outlives it.
#[test]
fn ids_of_settled_orders_are_free_on_the_next_day() {
    let mut world = world();
    for id in ["done", "open"] {
        world.submit(&limit_buy(id, 100, "2500"));
        world.answer_all();
    }
    world.broker.end("1000", domain::OrderStatus::Canceled);
    world.deliver_all();
    world.pass(seconds(24 * 3_600));
    world.answer_all();
    world.password("0000");
    world.events();
    world.pass(seconds(60));
    world.answer_all();
    world.events();
    world.submit(&limit_buy("open", 100, "2500"));
    assert_eq!(world.events(), ["SubmitOrderResult open 1001 IdempotentReplay"]);
    world.submit(&limit_buy("done", 100, "2500"));
    assert_eq!(world.events(), ["OrderSubmitted done"]);
}

/// Specification 4, P20: only a full list proves that the broker does not have an order.
#[test]
fn a_list_that_is_not_full_proves_no_absence() {
    let rest = |world: &mut World, spoil: &dyn Fn(&mut venues::web_broker::Answered)| {
        for _ in 0..60 {
            world.pass(Duration::from_millis(200));
            while let Some(InFlight::Request { ticket, request, sent_p_no }) =
                world.in_flight.take()
            {
                let mut answered = world.broker.take(&request, world.wall);
                if request.id == "list" {
                    spoil(&mut answered);
                }
                world.give(ticket, sent_p_no, Ok(answered));
            }
        }
        world.submit(&limit_buy("a", 100, "2500"));
        let reported = world.events();
        assert_eq!(
            reported.last().unwrap(),
            "SubmitOrderResult a IdempotentReplay",
            "{reported:?}"
        );
        assert_eq!(world.broker.placed, 1);
    };
    // A row that cannot be read.
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.lose(true);
    rest(&mut world, &|answered| {
        let rows = answered.lists.get_mut("rows").unwrap();
        rows[0].retain(|field| field.name != "status");
    });
    // The answer to another request.
    let mut world = self::world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.lose(true);
    rest(&mut world, &|answered| answered.lists.clear());
    // An order was changed elsewhere before the list was read.
    let mut world = self::world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.lose(true);
    world.broker.orders.get_mut("1000").unwrap().order.price = "2600".parse().ok();
    rest(&mut world, &|_| ());
}

/// Numbers are unique on one business day only.
#[test]
fn an_order_of_an_earlier_day_does_not_take_another_ones_number() {
    let mut world = world();
    world.submit(&limit_buy("old", 100, "2500"));
    world.answer_all();
    world.restart(false);
    world.broker = crate::broker::Broker { cash: 1_000_000_000, ..Default::default() };
    world.pass(seconds(24 * 3_600));
    world.log_in();
    world.password("0000");
    world.events();
    world.submit(&limit_buy("new", 100, "2500"));
    world.lose(true);
    world.pass(Duration::from_millis(200));
    world.answer_all();
    let reported = world.events();
    assert_eq!(reported, ["OrderSubmitted new", "Error INTERNAL_ERROR", "OrderAccepted new 1000"]);
    // A number of another symbol is another order, too.
    let mut order = world.broker.orders["1000"].order.clone();
    order.symbol = "6758".into();
    world.broker.orders.get_mut("1000").unwrap().order = order;
    world.list(OrderListFilter::default());
    world.answer_all();
    let list = world.json("OrderListUpdated");
    assert_eq!(list["orders"][0]["client_order_id"], serde_json::Value::Null);
}

#[test]
fn an_answer_with_the_number_of_another_order_is_no_answer() {
    let mut world = world();
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.events();
    world.submit(&limit_buy("b", 100, "2400"));
    world.answer_with(|id| {
        answer(id, "", vec![domain::order_mapping::Field::new("number", "1000")])
    });
    assert_eq!(world.events(), ["OrderSubmitted b", "Error INTERNAL_ERROR"]);
    world.submit(&limit_buy("c", 100, "2300"));
    while world.in_flight.is_some() {
        let url = "https://secret/";
        world.answer_with(|id| match id {
            "new" => answer(id, "", vec![domain::order_mapping::Field::new("number", url)]),
            _ => answer(id, "9", vec![]),
        });
    }
    let reported = format!("{:?}", world.reported);
    assert!(!reported.contains("secret") && world.log.lines("accepted").len() == 1, "{reported}");
}

/// Specification 2, "Session and password states": the freeze ends a cancel of many, too.
#[test]
fn a_cancel_of_all_that_fails_leaves_no_order_pending() {
    let placed = || {
        let mut world = world();
        world.submit(&limit_buy("a", 100, "2500"));
        world.answer_all();
        world.cancel_all(None);
        world.answer();
        world.events();
        world
    };
    let mut world = placed();
    world.answer_with(|id| answer(id, "2", vec![]));
    let reported = world.events();
    assert_eq!(
        reported,
        [
            "OrderRejected a SESSION_EXPIRED",
            "VenueError session_expired",
            "OrderRejected SESSION_EXPIRED",
        ]
    );
    world.log_in();
    world.password("0000");
    world.cancel(Some("a"), None);
    world.answer_all();
    world.deliver_all();
    assert!(world.events().contains(&"OrderCanceled a 1000".to_owned()));
    // An answer after the end of the cancel of many.
    let mut world = placed();
    world.pass(seconds(31));
    world.answer_with(|id| refused(id, "no"));
    world.answer_all();
    world.events();
    world.cancel(Some("a"), None);
    assert_eq!(world.events(), ["OrderPendingCancel a"]);
}

/// Specification 4, P3.
#[test]
fn a_login_without_a_stream_is_reported_and_another_one_may_follow() {
    let mut world = World::new(rules(), false);
    let now = world.now();
    world.desk.login(Some("one".to_owned()), now);
    world.collect();
    world.answer_all();
    for _ in 0..31 {
        world.pass(seconds(1));
        world.answer_all();
    }
    assert!(world.events().contains(&"VenueError not_ready".to_owned()));
    let now = world.now();
    world.desk.login(Some("two".to_owned()), now);
    world.collect();
    world.answer_all();
    world.connect();
    assert_eq!(world.events(), ["VenueLoginStarted", "VenueCredentialsRefreshed", "VenueReady"]);
}

/// Specification 4, P24: of several reasons the first in this order is reported.
#[test]
fn reasons_are_reported_in_their_order() {
    let mut world = World::ready(DeskRules::default(), false);
    world.broker.cash = 0;
    world.events();
    let order = limit_buy("a", 100, "2500");
    let mut wrong = limit_buy("a", 150, "2500");
    wrong.post_only = true;
    let reason = |world: &mut World, order: &ipc::SubmitOrderRequest| {
        world.events();
        world.submit(order);
        world.answer_all();
        world.json("OrderRejected")["reason_code"].as_str().unwrap_or_default().to_owned()
    };
    // Locked, without a password, without money.
    let locked = |world: &mut World| {
        for _ in 0..3 {
            world.password("wrong");
            // There is no open order for these, so only a list is requested.
            world.cancel_all(Some(OrderSide::Sell));
            world.answer();
            world.submit(&limit_buy("locks", 100, "2500"));
            world.broker.cash = 1_000_000_000;
            world.answer();
            world.answer_with(|id| answer(id, "4", vec![]));
            world.broker.cash = 0;
        }
    };
    locked(&mut world);
    assert_eq!(reason(&mut world, &order), "SECOND_PASSWORD_LOCKED");
    // Frozen, too.
    world.list(OrderListFilter::default());
    world.answer_with(|id| answer(id, "2", vec![]));
    assert_eq!(reason(&mut world, &order), "SESSION_EXPIRED");
    // The venue does not take it at all.
    let mut unsupported = limit_buy("a", 100, "2500");
    unsupported.post_only = true;
    assert_eq!(reason(&mut world, &unsupported), "VENUE_UNSUPPORTED");
    // And it is no order.
    wrong.price = None;
    assert_eq!(reason(&mut world, &wrong), "VALIDATION_ERROR");
    // Logged in again and unlocked: first the password, then the money.
    world.log_in();
    world.pass(seconds(1_801));
    world.answer_all();
    world.events();
    world.submit(&order);
    assert_eq!(world.events(), ["SecondPasswordRequired"]);
    world.password("0000");
    assert_eq!(reason(&mut world, &order), "INSUFFICIENT_FUNDS");
    assert!(world.log.lines("submit").iter().all(|line| line.contains("locks")));
}

#[test]
fn a_change_down_to_what_is_filled_ends_the_order() {
    let mut world = world();
    world.submit(&limit_buy("a", 300, "2500"));
    world.answer_all();
    world.modify("a", Some("200"), None);
    world.broker.fill("1000", 100);
    let order = world.broker.orders.get_mut("1000").unwrap();
    order.order.quantity = domain::Quantity::new(200);
    world.broker.fill("1000", 100);
    world.deliver_all();
    world.answer_with(|id| answer(id, "", vec![]));
    world.answer_all();
    world.events();
    world.cancel(Some("a"), None);
    let reported = world.json("OrderRejected");
    assert_eq!(
        reported["reason_text"],
        "ORDER_STATE: the order is FILLED and takes no change or cancel now"
    );
}

#[test]
fn a_number_that_a_list_has_twice_is_reported_once_and_changes_nothing() {
    let mut world = world();
    world.submit(&limit_buy("a", 300, "2500"));
    world.answer_all();
    world.events();
    for _ in 0..3 {
        world.list(OrderListFilter::default());
        let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
            panic!("sent");
        };
        let mut answered = world.broker.take(&request, world.wall);
        let mut again = answered.lists["rows"][0].clone();
        again.iter_mut().find(|field| field.name == "price").unwrap().value = "2600".to_owned();
        answered.lists.get_mut("rows").unwrap().push(again);
        world.give(ticket, sent_p_no, Ok(answered));
    }
    let reported = world.events();
    assert_eq!(
        reported.iter().filter(|event| event.contains("ambiguous")).count(),
        1,
        "{reported:?}"
    );
    assert!(!reported.iter().any(|event| event.starts_with("OrderUpdated")), "{reported:?}");
}

#[test]
fn an_empty_second_password_is_none() {
    let mut world = world();
    world.password("");
    assert_eq!(world.events(), ["Error validation_error"]);
}
