//! What a dialect makes is what it was asked for.

use super::*;

/// A dialect cannot place an order where it is asked for something else.
#[test]
fn a_request_of_another_operation_is_a_fault() {
    let mut dialect = turns();
    let change = BrokerChange {
        venue_order_id: "1".into(),
        business_day: None,
        order_type: OrderType::Limit,
        quantity: None,
        price: Some(Price::from_yen(2_440)),
        trigger_price: None,
        expire_date: None,
    };
    for (asked, found) in [
        ("CLMKabuCorrectOrder", dialect.modify_order(&change).map(drop)),
        ("CLMKabuCancelOrder", dialect.cancel_order("1", None).map(drop)),
        ("CLMKabuCancelOrderAll", dialect.cancel_all().map(drop)),
    ] {
        let fault = found.unwrap_err().to_string();
        assert!(
            fault.contains(&format!("`CLMKabuNewOrder` where `{asked}` is asked for")),
            "{fault}"
        );
    }
    let fault = dialect.list_orders().unwrap_err().to_string();
    assert!(fault.contains("wants the second password for a list"), "{fault}");
}

#[test]
fn a_plan_that_names_a_position_twice_is_a_fault() {
    let fault = turns().plan(&order(&[])).unwrap_err();
    assert!(fault.to_string().contains("names a position twice"), "{fault}");
}
