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
        assert!(fault.contains(&format!("`CLMKabuNewOrder`; expected `{asked}`")), "{fault}");
    }
    let fault = dialect.list_orders().unwrap_err().to_string();
    assert!(fault.contains("wants the second password for a list"), "{fault}");
}

#[test]
fn a_plan_that_names_a_position_twice_is_a_fault() {
    let fault = turns().plan(&order(&[])).unwrap_err();
    assert!(fault.to_string().contains("names a position twice"), "{fault}");
}

/// The second interface, which dialects of 1.1 have.
#[test]
fn what_a_dialect_says_of_hosts_and_fills_is_held_against_the_contract() {
    let mut dialect = turns();
    let description = dialect.description();
    assert_eq!(description.hosts, ["broker.example"]);
    assert_eq!(description.fill_rows.as_deref(), Some("fills"));
    let made = dialect.list_fills("11", None).unwrap().unwrap();
    assert_eq!(
        (made.id.as_str(), made.fields),
        ("CLMOrderListDetail", fields(&[("sOrderNumber", "11")]))
    );
    for (number, words) in [
        ("other-request", "`CLMKabuNewOrder`; expected `CLMOrderListDetail`"),
        ("password", "wants the second password for a list"),
    ] {
        let fault = dialect.list_fills(number, None).unwrap_err().to_string();
        assert!(fault.contains(words) && fault.contains("in `list-fills`"), "{fault}");
    }
    let refused = dialect.list_fills("1\n", None).unwrap().unwrap_err();
    assert!(refused.text.starts_with("VENUE_ORDER_ID: "), "{refused}");
    for (pair, words) in [
        (("quantity", "0"), "a fill of no shares"),
        (("price", "2440.0"), "is no price"),
        (("time", "20260511"), "is no time"),
    ] {
        let mut row = fields(&[("quantity", "100")]);
        row.retain(|field| field.name != pair.0);
        row.extend(fields(&[pair]));
        let fault = dialect.read_fills(&[row]).unwrap_err().to_string();
        assert!(fault.contains(words), "{pair:?}: {fault}");
    }
    let mut rows: Vec<_> = (1..=2 * DIALECT_ROWS_PER_CALL)
        .map(|shares| fields(&[("quantity", &shares.to_string())]))
        .collect();
    rows[3] = Vec::new();
    let read = dialect.read_fills(&rows).unwrap();
    assert_eq!(read.len(), rows.len());
    for (index, fill) in read.into_iter().enumerate() {
        match fill {
            Err(why) => assert_eq!((index, why.as_str()), (3, "no shares")),
            Ok(fill) => {
                assert_eq!(fill.quantity.shares(), index as u64 + 1);
                assert_eq!((fill.price.to_string().as_str(), fill.time), ("2440", None));
            }
        }
    }
}

/// Specification 4, P1.
#[test]
fn the_specs_dialect_is_for_this_machine_and_the_vendors_for_the_vendors_hosts() {
    for name in ALL {
        let dialect = load("dialects", name);
        let description = dialect.description();
        for host in ["demo-kabuka.e-shiten.jp", "kabuka.e-shiten.jp"] {
            let is_vendors = name != "web-broker-spec";
            assert_eq!(description.is_made_for(host, false), is_vendors, "{name} {host}");
        }
        assert!(description.is_made_for("localhost", true), "{name}");
        assert!(!description.is_made_for("price-kabuka.e-shiten.jp", false), "{name}");
        assert_eq!(description.fill_rows.as_deref(), Some("aYakuzyouSikkouList"), "{name}");
    }
}
