//! Balances, orders and positions, requested by clients.

use domain::Money;

use super::*;
use crate::OrderQuery;
use crate::local_broker::event::ErrorCode;
use crate::local_broker::limits::LIST_ROWS_SENT_MAX;

fn order(number: usize) -> Value {
    json!({
        "ID": format!("20261124A02N{number:08}"), "State": 3, "OrderState": 3, "OrdType": 1,
        "RecvTime": "2026-11-24T09:00:51.763683+09:00", "Symbol": "130A", "SymbolName": "n",
        "Exchange": 9, "ExchangeName": "SOR", "Price": 704.5, "OrderQty": 300.0, "CumQty": 100,
        "Side": "2", "AccountType": 4, "DelivType": 2, "ExpireDay": 20_261_124, "Details": []
    })
}

fn list(world: &mut World, query: OrderQuery) -> Vec<VenueEvent> {
    let now = world.now();
    world.gateway.order_list(World::context(1, "r"), &query, now);
    world.settle();
    world.wait(secs(1));
    std::mem::take(&mut world.reported).into_iter().map(|(_, event)| event).collect()
}

#[test]
fn p57_balances_are_sent_together_and_null_stays_null() {
    let mut world = World::ready();
    world.buying_power("a");
    world.wait(secs(1));
    let Some((Recipient::Client(1), VenueEvent::BuyingPower { request_id, cash, margin, .. })) =
        world.reported.first()
    else {
        panic!("{:?}", world.reported)
    };
    assert_eq!(*cash, Some(Money::from_units(123_455_000)));
    assert_eq!((*margin, request_id.as_str()), (None, "a"));
}

#[test]
fn a_long_list_is_sent_in_parts() {
    let mut world = World::ready();
    for (rows, expected) in [
        (0, vec![(0, None, None)]),
        (LIST_ROWS_SENT_MAX, vec![(LIST_ROWS_SENT_MAX, None, None)]),
        (
            LIST_ROWS_SENT_MAX + 1,
            vec![
                (LIST_ROWS_SENT_MAX, Some(true), Some(LIST_ROWS_SENT_MAX as u64)),
                (1, Some(false), None),
            ],
        ),
    ] {
        world.fake.orders = (0..rows).map(order).collect();
        let reported = list(&mut world, OrderQuery::default());
        let parts = reported.iter().map(|event| {
            let VenueEvent::Orders { orders, more, next, .. } = event else { panic!("{event:?}") };
            (orders.len(), *more, *next)
        });
        assert_eq!(parts.collect::<Vec<_>>(), expected);
    }
}

/// One unreadable order is left out and reported once, to all clients. The others are shown, and no end of it
/// is reported.
#[test]
fn p129_an_unreadable_order_is_reported_once_and_hides_no_other_one() {
    let mut world = World::ready();
    let mut odd = order(2);
    odd["Exchange"] = json!(4);
    world.fake.orders = vec![order(1), odd, order(3)];
    for round in 0..3 {
        let reported = list(&mut world, OrderQuery::default());
        let discrepancies: Vec<_> = reported
            .iter()
            .filter_map(|event| match event {
                VenueEvent::UnreadableOrder { venue_order_id, message, .. } => {
                    Some((venue_order_id.as_deref(), message))
                }
                _ => None,
            })
            .collect();
        assert_eq!(discrepancies.len(), usize::from(round == 0), "{reported:?}");
        if let Some((id, message)) = discrepancies.first() {
            assert_eq!(*id, Some("20261124A02N00000002"));
            assert!(message.contains("Exchange `4`"), "{message}");
        }
        let Some(VenueEvent::Orders { orders, .. }) = reported.last() else {
            panic!("{reported:?}")
        };
        let ids: Vec<&str> = orders.iter().map(|row| &*row.venue_order_id).collect();
        assert_eq!(ids, ["20261124A02N00000001", "20261124A02N00000003"]);
        assert_eq!(reported.len(), discrepancies.len() + 1, "{reported:?}");
    }
}

/// Unreadable amounts and positions are errors after the readable ones.
#[test]
fn unreadable_amounts_and_positions_are_reported_after_the_rest() {
    let mut world = World::ready();
    world.fake.instead = vec![("/wallet/cash", 200, r#"{"StockAccountWallet": "much"}"#)];
    world.buying_power("a");
    world.wait(secs(1));
    let [
        (_, VenueEvent::BuyingPower { cash: None, .. }),
        (_, VenueEvent::Error { request_id, message, .. }),
    ] = world.reported.as_slice()
    else {
        panic!("{:?}", world.reported)
    };
    assert!(message.contains("StockAccountWallet"), "{message}");
    assert_eq!(request_id.as_deref(), Some("a"));
    world.reported.clear();
    let rows = r#"[{"ExecutionID":"E1","Symbol":"8306","Exchange":4,"LeavesQty":1,"Side":"2"},
        {"ExecutionID":null,"Symbol":"7203","Exchange":1,"LeavesQty":100,"Side":"2"}]"#;
    world.fake.instead = vec![("/positions", 200, rows)];
    world.positions(1, "p");
    world.wait(secs(1));
    let [(_, VenueEvent::Positions { positions, .. }), (_, VenueEvent::Error { message, .. })] =
        world.reported.as_slice()
    else {
        panic!("{:?}", world.reported)
    };
    assert_eq!((positions.len(), positions[0].instrument_id.as_str()), (1, "7203.TSE"));
    assert!(message.starts_with("E1: GET /positions: Exchange `4`"), "{message}");
    // Each client gets one report of it.
    for (client, errors) in [(1, 0), (2, 1), (2, 0)] {
        world.reported.clear();
        world.fake.instead = vec![
            ("/positions", 200, rows),
            ("/wallet/cash", 200, r#"{"StockAccountWallet": "much"}"#),
        ];
        world.positions(client, "again");
        world.wait(secs(1));
        let is_error =
            |reported: &&(Recipient, VenueEvent)| matches!(reported.1, VenueEvent::Error { .. });
        assert_eq!(
            world.reported.iter().filter(is_error).count(),
            errors,
            "{client}: {:?}",
            world.reported
        );
    }
    world.reported.clear();
    world.buying_power("b");
    world.wait(secs(1));
    assert_eq!(world.reported.len(), 1, "{:?}", world.reported);
}

#[test]
fn p57_a_filter_takes_what_fits_and_no_date_takes_everything() {
    let mut world = World::ready();
    world.fake.orders = vec![order(1)];
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let filter = |status: &str, instrument: &str, date: &str| OrderQuery {
        status: some(status),
        instrument_id: some(instrument),
        date: some(date),
    };
    for (status, instrument, date, rows) in [
        ("", "", "", 1),
        ("ACCEPTED", "130A.TSE", "20261124", 1),
        ("FILLED", "", "", 0),
        // Without a market it is Tokyo's.
        ("", "130A", "", 1),
        ("", "7203.TSE", "", 0),
        ("", "7203", "", 0),
        // Rows may be of other markets.
        ("", "130A.NSE", "", 0),
        ("", "", "20261123", 0),
    ] {
        let reported = list(&mut world, filter(status, instrument, date));
        let [VenueEvent::Orders { orders, .. }] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert_eq!(orders.len(), rows, "{status} {instrument} {date}");
    }
    for (status, instrument, date, what) in [
        ("accepted", "", "", "STATUS: `accepted` is not an order status"),
        ("", "72.TSE", "", "INSTRUMENT_ID: "),
        ("", "", "2026-11-24", "DATE: `2026-11-24` is not a date; write YYYYMMDD"),
        ("", "", "20261131", "DATE: `20261131` is not a date"),
    ] {
        let reported = list(&mut world, filter(status, instrument, date));
        let [VenueEvent::Error { message, code, .. }] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert!(message.starts_with(what), "{message}");
        assert_eq!(*code, ErrorCode::ValidationError);
    }
}

/// An unreadable board takes no place, also if other clients have tried it.
#[test]
fn a_board_that_is_refused_takes_no_place() {
    let mut world = World::ready();
    world.fake.instead = vec![("/board", 400, "no such issue"); 2];
    world.board(1, "a", "7203");
    world.board(2, "b", "7203");
    world.wait(secs(2));
    assert_eq!(world.events(), ["1 Error a gateway_error", "2 Error b gateway_error"]);
    assert_eq!(world.gateway.symbols(), [""; 0]);
}

/// Of two reads of one client, the one that succeeds holds the place.
#[test]
fn a_board_that_is_read_twice_holds_its_place_if_one_of_both_is_refused() {
    for is_first_refused in [true, false] {
        let mut world = World::ready();
        // Both are queued behind this.
        world.positions(2, "p");
        world.board(1, "a", "7203");
        world.board(1, "b", "7203");
        if !is_first_refused {
            world.wait(Duration::from_millis(150));
        }
        world.fake.instead = vec![("/board", 400, "no such issue")];
        world.wait(secs(2));
        let refused = if is_first_refused { "a" } else { "b" };
        let events = world.events();
        assert!(events.contains(&format!("1 Error {refused} gateway_error")), "{events:?}");
        assert!(
            events.iter().any(|reported| reported.starts_with("1 DepthSnapshot")),
            "{events:?}"
        );
        assert_eq!(world.gateway.symbols(), ["7203"], "{events:?}");
    }
}

/// A refused subscription takes no place of a board that was read.
#[test]
fn a_refused_subscription_leaves_the_place_of_a_board() {
    let mut world = World::ready();
    world.board(1, "a", "7203");
    world.wait(secs(1));
    world.events();
    // The gateway's list lacks it, so that a subscription must register it.
    world.gateway.registrations.set.refused("7203");
    world.fake.instead = vec![("/register", 400, "no such issue"); 2];
    world.subscribe(1, "s", "7203");
    world.wait(secs(2));
    assert_eq!(world.events(), ["1 Error s gateway_error"]);
    assert_eq!(world.gateway.symbols(), ["7203"]);
    world.unsubscribe(1, "u", "7203");
    assert_eq!(world.gateway.symbols(), [""; 0]);
}

/// A read waits for its next try while its client releases the symbol, and another read: if all fail, no place
/// is taken.
#[test]
fn boards_that_all_fail_leave_no_place() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.subscribe(2, "t", "9984");
    world.wait(secs(1));
    world.fake.instead = vec![("/board", 500, "oops"); 10];
    // The stream lives, so that only this read is tried again.
    assert!(world.push(&frame("9984", 1_000, 0)));
    world.board(1, "a", "7203");
    world.wait(secs(1));
    world.unsubscribe(1, "u", "7203");
    world.fake.instead.insert(0, ("/board", 404, "no such board"));
    world.board(1, "b", "7203");
    for _ in 0..30 {
        assert!(world.push(&frame("9984", 1_000, 0)));
        world.wait(secs(1));
    }
    let events = world.events();
    for request in ["a", "b"] {
        assert!(events.contains(&format!("1 Error {request} gateway_error")), "{events:?}");
    }
    assert_eq!(world.gateway.symbols(), ["9984"], "{events:?}");
    assert_eq!(world.fake.symbols(), ["9984"]);
}

/// A request that always fails gets its error in the end, also if others are answered meanwhile.
#[test]
fn a_request_that_hangs_is_answered_in_the_end() {
    let mut world = World::ready();
    world.fake.mute.push("/positions");
    world.positions(1, "a");
    for second in 0..40 {
        world.wait(secs(1));
        world.subscribe(2, &format!("s{second}"), &(1_000 + second).to_string());
    }
    let events = world.events();
    assert!(events.contains(&"1 Error a gateway_error".to_owned()), "{events:?}");
    assert!(
        events.iter().filter(|reported| reported.starts_with("2 Subscribed")).count() >= 38,
        "{events:?}"
    );
    assert_eq!(world.state(), "Ready Streaming");
}
