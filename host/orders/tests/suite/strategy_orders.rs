//! Real orders of strategies: their names, events, refusals, guards, and what is watched during a run.

use std::time::Duration;

use domain::order_mapping::BrokerOrder;
use domain::{Money, OrderOrigin, OrderSide, OrderType, Price, Quantity, TimeInForce};
use ipc::{OrderListFilter, SubmitOrderRequest};
use orders::event::{Shortfall, StrategyEvent};
use orders::{DeskCommand, DeskRules, OrderPhase};
use venues::web_broker::CallFailure;

use crate::broker::{answer, refused};
use crate::world::{InFlight, World, limit_buy};

pub(crate) const ID: &str = "sma-cross";

pub(crate) fn strategy() -> OrderOrigin {
    OrderOrigin::Strategy(ID.into())
}

/// Without balance guards, so that the order itself is the first request.
pub(crate) fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

pub(crate) fn limit_sell(id: &str, quantity: u64, price: &str) -> SubmitOrderRequest {
    SubmitOrderRequest { order_side: OrderSide::Sell, ..limit_buy(id, quantity, price) }
}

pub(crate) fn submit(world: &mut World, order: &SubmitOrderRequest) {
    world.submit_of(strategy(), order);
    world.answer_all();
    world.deliver_all();
}

/// A desk whose strategy runs and has bought so many shares by order `buy`, number 1000.
pub(crate) fn holding(shares: u64) -> World {
    let mut world = World::ready(rules(), false);
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    submit(&mut world, &limit_buy("buy", shares, "2600"));
    world.broker.fill("1000", shares);
    world.deliver_all();
    world.answer_all();
    world.broker.held = vec![("7203".to_owned(), shares)];
    world.reported.clear();
    world.told.clear();
    world.sent.clear();
    world
}

/// An order of a person at another terminal.
pub(crate) fn elsewhere(world: &mut World, side: OrderSide, shares: u64) -> String {
    let order = BrokerOrder {
        symbol: "7203".into(),
        side,
        order_type: OrderType::Limit,
        quantity: Quantity::new(shares),
        price: Some(Price::from_yen(2_500)),
        trigger_price: None,
        time_in_force: TimeInForce::Day,
        expire_date: None,
        tags: Vec::new(),
    };
    let wall = world.wall;
    world.broker.place_elsewhere(order, wall)
}

/// Shares that the strategy holds of 7203, by the desk's answer.
pub(crate) fn held(world: &mut World) -> i64 {
    world.told.clear();
    world.tell(DeskCommand::Holdings);
    match world.told.pop() {
        Some(StrategyEvent::Holdings { held, .. }) => {
            held.iter().filter(|one| &*one.strategy_id == ID).map(|one| one.quantity).sum()
        }
        other => panic!("{other:?}"),
    }
}

/// P91, P92, P93: an id belongs to its kind of sender, and events and rows of a strategy's order name it.
#[test]
fn p91_p92_p93_a_strategy_s_order_has_a_name_of_its_own_and_no_request() {
    let mut world = World::ready(rules(), false);
    world.submit(&limit_buy("a", 100, "2500"));
    world.answer_all();
    world.events();
    world.submit_of(strategy(), &limit_buy("a", 200, "2500"));
    assert_eq!(world.json("OrderSubmitted").get("request_id"), None);
    world.answer_all();
    world.deliver_all();
    let event = world.json("OrderAccepted");
    assert_eq!((&event["origin"], &event["strategy_id"]), (&"strategy".into(), &ID.into()));
    assert_eq!(event.get("request_id"), None);
    assert_eq!(
        world.events(),
        ["OrderSubmitted a", "OrderAccepted a 1001"],
        "no SubmitOrderResult"
    );
    world.list(OrderListFilter::default());
    world.answer_all();
    let rows = world.json("OrderListUpdated")["orders"].clone();
    assert_eq!(rows[0].get("origin"), None, "a person's row has its 14 fields");
    assert_eq!((&rows[1]["origin"], &rows[1]["strategy_id"]), (&"strategy".into(), &ID.into()));
    // The same after a restart.
    world.restart(false);
    world.log_in();
    world.reported.clear();
    world.list(OrderListFilter::default());
    world.answer_all();
    let rows = world.json("OrderListUpdated")["orders"].clone();
    assert_eq!(rows[0].get("origin"), None);
    assert_eq!((&rows[1]["client_order_id"], &rows[1]["strategy_id"]), (&"a".into(), &ID.into()));
}

/// P94: people reach it by the broker's number only, and by a cancel of all.
#[test]
fn p94_people_reach_a_strategy_s_order_by_its_number() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("s", 100, "2500"));
    world.events();
    world.cancel(Some("s"), None);
    assert_eq!(world.events(), ["OrderRejected s ORDER_STATUS_UNKNOWN"]);
    let request_id = world.cancel(None, Some("1000"));
    let event = world.json("OrderPendingCancel");
    assert_eq!((&event["request_id"], &event["origin"]), (&request_id.into(), &"strategy".into()));
    world.answer_all();
    world.deliver_all();
    assert_eq!(world.events(), ["OrderPendingCancel s", "OrderCanceled s 1000"]);
    submit(&mut world, &limit_buy("t", 100, "2500"));
    world.events();
    world.cancel_all(None);
    world.settle(3);
    assert!(world.events().contains(&"OrderCanceled t 1001".to_owned()));
}

/// P97: without a second password the order is refused at once, and clients are asked once.
#[test]
fn p97_without_a_second_password_it_is_refused_and_clients_are_asked_once() {
    let mut world = World::new(rules(), false);
    world.log_in();
    world.events();
    world.submit_of(strategy(), &limit_buy("a", 100, "2500"));
    let event = world.json("OrderRejected");
    assert_eq!(
        (&event["origin"], &event["instrument_id"]),
        (&"strategy".into(), &"7203.TSE".into())
    );
    assert!(event["reason_text"].as_str().unwrap().starts_with("NO_PASSWORD: "), "{event}");
    assert_eq!(world.json("SecondPasswordRequired")["request_id"], "a");
    assert_eq!(
        world.events(),
        ["SecondPasswordRequired", "OrderRejected a SECOND_PASSWORD_REQUIRED"]
    );
    world.submit_of(strategy(), &limit_buy("b", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected b SECOND_PASSWORD_REQUIRED"]);
    assert!(world.log.lines("submit").is_empty() && world.log.lines("rejected").is_empty());
    world.password("0000");
    submit(&mut world, &limit_buy("c", 100, "2500"));
    assert_eq!(world.sent.iter().filter(|id| *id == "new").count(), 1, "nothing is sent again");
    let now = world.now();
    world.desk.forget_second_password(now);
    world.events();
    world.cancel_of_strategy("c");
    assert_eq!(
        world.events(),
        ["SecondPasswordRequired", "OrderRejected c SECOND_PASSWORD_REQUIRED"]
    );
}

/// P99: logged out and frozen, each order is refused by its own event, and a login thaws it.
#[test]
fn p99_a_frozen_session_refuses_each_order_until_the_next_login() {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("a", 100, "2500"));
    world.answer_with(|id| answer(id, "2", Vec::new()));
    world.events();
    world.submit_of(strategy(), &limit_buy("b", 100, "2500"));
    let event = world.json("OrderRejected");
    assert_eq!(
        (&event["reason_code"], &event["origin"]),
        (&"SESSION_EXPIRED".into(), &"strategy".into())
    );
    world.log_in();
    world.password("0000");
    world.events();
    submit(&mut world, &limit_buy("c", 100, "2500"));
    assert_eq!(world.events(), ["OrderSubmitted c", "OrderAccepted c 1000"]);
}

/// P114: a strategy sells for cash what it holds and does not sell already; a change likewise.
#[test]
fn p114_a_strategy_sells_what_it_holds() {
    let mut world = holding(300);
    submit(&mut world, &limit_sell("too-much", 400, "2500"));
    let event = world.json("OrderRejected");
    assert_eq!(event["reason_code"], "VALIDATION_ERROR");
    assert!(event["reason_text"].as_str().unwrap().starts_with("POSITION: "), "{event}");
    submit(&mut world, &limit_sell("s1", 200, "2500"));
    world.events();
    submit(&mut world, &limit_sell("s2", 200, "2500"));
    assert_eq!(world.events(), ["OrderRejected s2 VALIDATION_ERROR"]);
    submit(&mut world, &limit_sell("s3", 100, "2500"));
    world.events();
    world.modify_of_strategy("s1", 300);
    assert_eq!(world.events(), ["OrderRejected s1 VALIDATION_ERROR"]);
    // What was sold is neither held nor being sold.
    world.broker.fill("1001", 100);
    world.deliver_all();
    world.answer_all();
    world.events();
    submit(&mut world, &limit_sell("s4", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected s4 VALIDATION_ERROR"]);
    assert_eq!(held(&mut world), 200);
    // A person's order is none of its business, and another strategy holds nothing.
    world.submit(&limit_sell("p", 1_000, "2500"));
    world.answer_all();
    assert!(world.events().contains(&"OrderAccepted p 1003".to_owned()));
    world.submit_of(OrderOrigin::Strategy("other".into()), &limit_sell("o", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected o VALIDATION_ERROR"]);
}

/// A refused change of a strategy's order keeps it working in every dialect: it must not sell its shares twice.
#[test]
fn a_refused_change_of_a_strategy_s_order_keeps_it_working() {
    let mut world = World::ready(rules(), true);
    submit(&mut world, &limit_buy("a", 200, "2500"));
    world.events();
    world.modify_of_strategy("a", 100);
    world.answer_with(|id| refused(id, "no"));
    let event = world.json("OrderRejected");
    assert_eq!((&event["client_order_id"], event.get("request_id")), (&"a".into(), None));
    world.answer_all();
    world.cancel_of_strategy("a");
    world.answer_all();
    world.deliver_all();
    let reported = world.events();
    let expected = [
        "OrderPendingUpdate a",
        "OrderRejected a VENUE_REJECTED",
        "OrderPendingCancel a",
        "OrderCanceled a 1000",
    ];
    assert_eq!(reported, expected);
}

/// P98: an order whose answer is lost keeps working for its strategy until a list decides it.
#[test]
fn p98_a_lost_answer_is_told_to_its_strategy_and_the_order_works_on() {
    let mut world = World::ready(rules(), false);
    world.events();
    world.submit_of(strategy(), &limit_buy("a", 100, "2500"));
    world.lose(true);
    match world.told.as_slice() {
        [StrategyEvent::OutcomeUnknown { strategy_id, client_order_id, why }] => {
            assert_eq!((&**strategy_id, &**client_order_id), (ID, "a"));
            assert!(why.starts_with("OUTCOME_UNKNOWN: "), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.events(), ["OrderSubmitted a"], "no Error, no rejection");
    world.settle(1);
    assert_eq!(world.events(), ["OrderAccepted a 1000"]);
    // An answer that comes after its time: told as unknown once, then as it is.
    world.told.clear();
    world.submit_of(strategy(), &limit_buy("b", 100, "2500"));
    world.pass(Duration::from_secs(31));
    assert!(
        matches!(world.told.as_slice(), [StrategyEvent::OutcomeUnknown { .. }]),
        "{:?}",
        world.told
    );
    world.answer_all();
    assert_eq!(world.told.len(), 1);
    assert!(world.events().contains(&"OrderAccepted b 1001".to_owned()));
}

/// P103: the cash is asked after each fill of the strategy that runs, and after no other.
#[test]
fn p103_the_cash_is_asked_after_each_fill() {
    let mut world = holding(100);
    let number = elsewhere(&mut world, OrderSide::Buy, 100);
    world.settle(1);
    world.broker.fill(&number, 100);
    world.settle(1);
    assert!(!world.told.iter().any(|event| matches!(event, StrategyEvent::Cash(_))));
    submit(&mut world, &limit_sell("s", 100, "2500"));
    world.broker.cash = 777;
    world.broker.fill("1002", 100);
    world.settle(1);
    assert!(world.told.contains(&StrategyEvent::Cash(Money::from_yen(777))), "{:?}", world.told);
}

/// P107: after a fill of somebody else's SELL the account must hold what strategies hold.
#[test]
fn p107_somebody_else_s_sell_of_what_the_strategy_holds_is_a_mismatch() {
    for (left, is_short) in [(300, false), (200, true)] {
        let mut world = holding(300);
        let number = elsewhere(&mut world, OrderSide::Sell, 100);
        world.settle(1);
        world.broker.fill(&number, 100);
        world.broker.held = vec![("7203".to_owned(), left)];
        world.settle(10);
        let instrument_id = "7203.TSE".into();
        let account = left as i64;
        let short = Shortfall { instrument_id, strategy: 300, together: 300, account };
        assert_eq!(
            world.told.contains(&StrategyEvent::Mismatch(short)),
            is_short,
            "{:?}",
            world.told
        );
    }
}

/// P107: a broker that does not say what the account holds is asked until it does.
#[test]
fn p107_positions_are_asked_until_the_broker_says_them() {
    let mut world = holding(300);
    let number = elsewhere(&mut world, OrderSide::Sell, 100);
    world.settle(1);
    world.broker.fill(&number, 100);
    world.broker.held = vec![("7203".to_owned(), 200)];
    let mut asked = 0;
    for _ in 0..300 {
        while let Some(InFlight::Request { request, .. }) = &world.in_flight {
            match request.id.as_str() {
                "CLMGenbutuKabuList" if asked < 4 => {
                    asked += 1;
                    world.lose(false);
                }
                _ => world.answer(),
            }
        }
        world.deliver_all();
        world.pass(Duration::from_millis(200));
    }
    assert_eq!(asked, 4);
    let is_short = |event: &StrategyEvent| matches!(event, StrategyEvent::Mismatch(_));
    assert!(world.told.iter().any(is_short), "{:?}", world.told);
}

/// A fill that no share can have had is no fill, whoever is in charge of the order; a list shows what there was.
#[test]
fn a_fill_at_a_price_that_cannot_be_is_none() {
    let mut world = holding(100);
    submit(&mut world, &limit_buy("b", 300, "2600"));
    world.broker.fill_at("1001", 100, "9300000000000");
    world.deliver_all();
    assert_eq!(held(&mut world), 100);
    assert!(world.events().iter().any(|event| event.contains("unreadable")));
}

/// A change to more whose answer is lost: what is filled beyond the old number of shares counts too.
#[test]
fn fills_beyond_what_a_lost_change_left_count() {
    let mut world = holding(100);
    submit(&mut world, &limit_buy("b", 100, "2600"));
    world.modify_of_strategy("b", 200);
    world.lose(false);
    // The list has the old number of shares; the change comes through later.
    world.settle(10);
    world.broker.orders.get_mut("1001").unwrap().order.quantity = Quantity::new(200);
    world.broker.fill("1001", 200);
    world.settle(1);
    assert_eq!(held(&mut world), 300);
}

/// A strategy hands over no shares for a margin position: they would be another's.
#[test]
fn p114_a_strategy_hands_over_no_shares_for_a_margin_position() {
    let mut world = World::ready(DeskRules { phase: OrderPhase::O3, ..rules() }, false);
    let tags =
        ["cash_margin=margin_credit_repay", "close_action=physical_settle_sell", "tategyoku=1"];
    let tags = Some(tags.map(str::to_owned).to_vec());
    let sell = limit_sell("t", 100, "2600");
    let order = SubmitOrderRequest { order_type: OrderType::Market, price: None, tags, ..sell };
    world.submit_of(strategy(), &order);
    let rejected = world.json("OrderRejected");
    let why = rejected["reason_text"].as_str().unwrap_or_default();
    assert!(why.starts_with("CLOSE_ACTION: "), "{rejected}");
}

/// One change of an order waits at most, so that a flood of changes holds nobody up.
#[test]
fn a_flood_of_changes_leaves_room_for_sells_and_cancels() {
    let mut world = holding(100);
    submit(&mut world, &limit_buy("b", 100, "2500"));
    world.events();
    for shares in 1..=300 {
        world.modify_of_strategy("b", 100 + shares * 100);
    }
    world.submit_of(strategy(), &limit_sell("s", 100, "2600"));
    let rejected = |world: &mut World| {
        let events = world.events().into_iter();
        events.filter(|event| event.starts_with("OrderRejected")).count()
    };
    assert_eq!(rejected(&mut world), 298, "one is under way, one waits");
    world.answer_all();
    world.deliver_all();
    assert_eq!(world.broker.orders["1001"].order.quantity, Quantity::new(30_100));
    assert!(world.broker.orders["1002"].is_open(), "the sell left");
}

/// P107: a shortage that passes is none: an own fill whose notice was under way.
#[test]
fn p107_a_shortage_that_passes_is_no_mismatch() {
    let mut world = holding(300);
    let number = elsewhere(&mut world, OrderSide::Sell, 100);
    world.settle(1);
    world.broker.fill(&number, 100);
    world.broker.held = vec![("7203".to_owned(), 200)];
    world.settle(4);
    world.broker.held = vec![("7203".to_owned(), 300)];
    world.settle(10);
    assert!(
        !world.told.iter().any(|one| matches!(one, StrategyEvent::Mismatch(_))),
        "{:?}",
        world.told
    );
}

/// P122: the password stays during a run; where it is taken away, the strategy that needs it is named once.
#[test]
fn p122_a_password_that_is_gone_is_told_while_the_strategy_needs_it() {
    let mut world = holding(100);
    world.settle(1);
    world.pass(Duration::from_secs(7_200));
    world.answer_all();
    submit(&mut world, &limit_sell("s", 100, "2500"));
    assert!(world.sent.contains(&"new".to_owned()), "two hours later it is still held");
    let now = world.now();
    world.desk.forget_second_password(now);
    world.told.clear();
    world.settle(2);
    let needed = StrategyEvent::SecondPasswordNeeded { strategy_id: ID.into() };
    assert_eq!(world.told.iter().filter(|event| **event == needed).count(), 1);
    // After the run the idle time runs on.
    world.password("0000");
    world.tell(DeskCommand::StrategyRuns(None));
    world.pass(Duration::from_secs(7_200));
    assert!(world.desk.second_password().is_none());
}

/// Cancels and sells of the own position go before reads, and between the guards of other orders.
#[test]
fn what_reduces_risk_waits_for_no_question_of_others() {
    let rules = DeskRules { phase: OrderPhase::O3, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.trusts_strategies = true;
    submit(&mut world, &limit_buy("buy", 100, "2600"));
    world.broker.fill("1000", 100);
    world.deliver_all();
    submit(&mut world, &limit_buy("open", 100, "2500"));
    world.answer_all();
    world.sent.clear();
    // A person's order is at its guard; a list and a person's cancel wait.
    world.submit(&limit_buy("p", 100, "2500"));
    world.list(OrderListFilter::default());
    world.submit_of(strategy(), &limit_sell("sell", 100, "2500"));
    world.cancel_of_strategy("open");
    world.answer_all();
    let sent: Vec<&str> = world.sent.iter().map(String::as_str).collect();
    assert_eq!(sent[..4], ["CLMZanKaiKanougaku", "new", "cancel", "new"], "{sent:?}");
    assert!(!sent.contains(&"CLMZanUriKanousuu"), "no guard for what it holds: {sent:?}");
}

/// The answer to a guard that failed refuses a strategy's order by its own event.
#[test]
fn a_guard_that_fails_is_an_event_of_the_strategy_s_order() {
    let rules = DeskRules { phase: OrderPhase::O3, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    world.events();
    world.submit_of(strategy(), &limit_buy("a", 100, "2500"));
    let Some(InFlight::Request { ticket, sent_p_no, .. }) = world.in_flight.take() else {
        panic!("a guard is asked")
    };
    world.give(ticket, sent_p_no, Err(CallFailure::Unknown("reset".to_owned())));
    let event = world.json("OrderRejected");
    assert_eq!(
        (&event["origin"], &event["reason_code"]),
        (&"strategy".into(), &"INTERNAL_ERROR".into())
    );
    assert_eq!(world.events(), ["OrderRejected a INTERNAL_ERROR"]);
}
