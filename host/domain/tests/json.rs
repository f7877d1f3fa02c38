//! What journals have of the words: read as it was written, and nothing else.

use domain::adjustment::Adjustment;
use domain::{Money, OrderEventKind, Split, TimeInForce};

#[test]
fn why_an_order_expired_is_read_from_a_closed_list() {
    let json = |why: &str| format!(r#"{{"expired":"{why}"}}"#);
    let others = ["PRICE_LIMIT", "EX_RIGHTS", "LOT_CHANGE", "TICK_CHANGE", "END_OF_DATA"];
    for why in TimeInForce::ALL.iter().map(|kind| kind.as_str()).chain(others) {
        let kind = OrderEventKind::Expired(why);
        assert_eq!(serde_json::to_string(&kind).unwrap(), json(why));
        assert_eq!(serde_json::from_str::<OrderEventKind>(&json(why)).unwrap(), kind);
    }
    let error = serde_json::from_str::<OrderEventKind>(&json("LATER")).unwrap_err();
    assert!(error.to_string().starts_with("`LATER` is no reason"), "{error}");
}

#[test]
fn a_split_is_read_within_its_bounds() {
    let split = Split {
        adjustment: Adjustment::from_terms(2, 1).unwrap(),
        quantity: 200,
        cash_paid: Money::from_units(5),
        last_price: None,
    };
    let json = serde_json::to_string(&split).unwrap();
    assert_eq!(json, r#"{"adjustment":[2,1],"quantity":200,"cash_paid":5,"last_price":null}"#);
    assert_eq!(serde_json::from_str::<Split>(&json).unwrap(), split);
    assert!(serde_json::from_str::<Split>(&json.replace("[2,1]", "[0,1]")).is_err());
}
