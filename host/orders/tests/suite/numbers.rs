//! Numbers of the broker, which are unique on one day only (specification 4, P28).

use std::time::Duration;

use domain::TimeInForce;
use domain::order_mapping::Field;
use ipc::SubmitOrderRequest;
use orders::DeskRules;

use crate::world::{InFlight, World, limit_buy, masters};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// An order up to 2026-11-25.
fn dated(id: &str) -> SubmitOrderRequest {
    let last = masters().days.as_ref().unwrap().next[1];
    let mut order = limit_buy(id, 100, "2500");
    order.time_in_force = TimeInForce::Gtd;
    let seconds = 15 * 3_600 * 1_000_000_000;
    order.expire_time_ns = Some(domain::TsNanos::from_jst(last, seconds).unwrap().nanos());
    order
}

fn settle(world: &mut World) {
    for _ in 0..60 {
        world.answer_all();
        world.pass(Duration::from_millis(200));
    }
}

/// An order that lives on from another day does not block today's order of the same number. A person who
/// cancels the one never cancels the other.
#[test]
fn an_order_of_another_day_has_no_claim_on_todays_number() {
    for restarts in [false, true] {
        let mut world = World::ready(DeskRules::default(), false);
        world.submit(&dated("old"));
        world.answer_all();
        world.disconnect();
        // It is cancelled elsewhere, and the broker begins to count again.
        world.broker.orders.clear();
        world.broker.notices.clear();
        world.pass(4 * DAY);
        if restarts {
            world.restart(false);
        }
        world.login_again();
        world.answer();
        world.password("0000");
        world.events();
        world.submit(&limit_buy("new", 100, "2500"));
        // The list that is under way comes first.
        world.answer_all();
        let reported = world.events();
        assert!(
            reported.contains(&"OrderAccepted new 1000".to_owned()),
            "{restarts}: {reported:?}"
        );
        world.cancel(Some("old"), None);
        let reported = world.events();
        assert_eq!(reported, ["OrderRejected old ORDER_STATUS_UNKNOWN"], "{restarts}");
        assert!(!world.sent.contains(&"cancel".to_owned()));
        settle(&mut world);
        let reported = world.events();
        assert!(!reported.iter().any(|one| one.contains("new")), "{restarts}: {reported:?}");
        // After a list without the old order, the number belongs to the new one alone.
        world.cancel(Some("new"), None);
        world.answer_all();
        assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "cancel").count(), 1);
    }
}

/// Specification 4, P23: one list without an order that should work on does not prove that it has ended.
#[test]
fn an_order_with_a_date_of_its_own_outlives_a_list_without_it() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&dated("g"));
    world.answer_all();
    let hidden = std::mem::take(&mut world.broker.orders);
    world.pass(3 * DAY);
    world.restart(false);
    world.login_again();
    settle(&mut world);
    world.pass(Duration::from_secs(120));
    settle(&mut world);
    let reported = world.events();
    assert!(reported.iter().any(|one| one.starts_with("OrderDiscrepancy")), "{reported:?}");
    world.broker.orders = hidden;
    world.password("0000");
    world.submit(&dated("g"));
    assert_eq!(world.json("SubmitOrderResult")["outcome"], "IdempotentReplay");
    assert_eq!(world.sent.iter().filter(|sent| sent.as_str() == "new").count(), 1);
}

/// Both work, and the list distinguishes them by their days. A request without the day could hit either.
#[test]
fn a_request_by_number_alone_is_not_sent_where_two_orders_have_it() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&dated("old"));
    world.answer_all();
    let old = world.broker.orders.remove("1000").unwrap();
    world.broker.notices.clear();
    world.pass(4 * DAY);
    world.password("0000");
    world.submit(&limit_buy("new", 100, "2400"));
    world.answer_all();
    world.events();
    world.list(ipc::OrderListFilter::default());
    let Some(InFlight::Request { ticket, request, sent_p_no }) = world.in_flight.take() else {
        panic!("no list was asked for")
    };
    let mut answered = world.broker.take(&request, world.wall);
    let rows = answered.lists.get_mut("rows").unwrap();
    rows[0].push(Field::new("day", "20261124"));
    let new = std::mem::replace(world.broker.orders.get_mut("1000").unwrap(), old);
    let mut carried = world.broker.take(&request, world.wall).lists["rows"][0].clone();
    carried.push(Field::new("day", "20261120"));
    rows.push(carried);
    world.broker.orders.insert("1000".to_owned(), new);
    world.give(ticket, sent_p_no, Ok(answered));
    let listed = world.json("OrderListUpdated")["orders"].clone();
    let ids: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["client_order_id"].as_str())
        .collect();
    assert_eq!(ids, ["new", "old"]);
    world.events();
    for id in ["old", "new"] {
        world.cancel(Some(id), None);
        assert_eq!(world.events(), [format!("OrderRejected {id} ORDER_STATUS_UNKNOWN")]);
    }
    world.modify("old", None, Some("2490"));
    assert_eq!(world.events(), ["OrderRejected old ORDER_STATUS_UNKNOWN"]);
    assert!(!world.sent.iter().any(|sent| sent == "cancel" || sent == "modify"));
}

/// Fill numbers begin again on each day.
#[test]
fn fills_of_two_days_with_one_number_are_two() {
    let mut world = World::ready(DeskRules::default(), false);
    world.submit(&SubmitOrderRequest { quantity: "300".to_owned(), ..dated("g") });
    world.answer_all();
    world.events();
    for (day, event) in [("20261120", "x1"), ("20261124", "x2"), ("20261120", "x1")] {
        let more = [("symbol", "7203"), ("trade", "1"), ("quantity", "100"), ("price", "2500")];
        let mut fields: Vec<Field> =
            more.iter().map(|(name, value)| Field::new(*name, *value)).collect();
        fields.extend([Field::new("day", day), Field::new("again", event)]);
        world.broker.notify("filled", "1000", fields);
        world.deliver_all();
        world.pass(4 * DAY);
    }
    let filled =
        world.reported.iter().filter(|(_, event)| matches!(event, ipc::Event::OrderFilled(_)));
    assert_eq!(filled.count(), 2);
}
